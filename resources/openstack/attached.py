"""Types that attach one thing of the cloud to another; both exist without the attachment."""

import typing
from collections.abc import Mapping

from ..context import Json, ResourceView, StepContext
from ..errors import PermanentError
from ..schema import Attribute
from ..steps import Done, Poll, Step
from .declared import THING, DeclaredThing
from .names import NameNotFound, NameNotUnique
from .polling import FIRST_PAUSE
from .service import Conflict, ThingNotFound, in_use

Link = tuple[str, ...]
"""The ids by which an attachment is found; the first one is the physical id."""


class AttachedType(DeclaredThing):
    """Base of the types whose resources attach a thing to another, and are found by the two.

    :cvar other: field of the service's answer that has the second id of the link; "": there is one id only.
    :cvar missing: the reason of a check that fails, with the ids of the link in place of ``{0}`` and ``{1}``.
    :cvar slow: an attachment is complete a while after the service's answer.
    """

    mark = None
    attributes_schema = {"show": Attribute("All that the service reports of it.", "map")}
    other: typing.ClassVar[str] = ""
    missing: typing.ClassVar[str]
    slow: typing.ClassVar[bool] = False

    def link(self, properties: Mapping[str, Json], work: StepContext) -> Link:
        """Return the link that the properties describe.

        :raises NameNotFound, NameNotUnique: no thing, or several, have a name.
        """
        raise NotImplementedError

    def attach(self, link: Link, target: ResourceView, work: StepContext) -> Json:
        """Attach, and return the service's answer."""
        raise NotImplementedError

    def find(self, link: Link, work: StepContext) -> Json:
        """Return the attachment as the service has it; None: there is none."""
        raise NotImplementedError

    def detach(self, link: Link, work: StepContext) -> bool:
        """Detach, and return whether that takes a while.

        :raises ThingNotFound: it has ended already.
        """
        raise NotImplementedError

    def stored_link(self, target: ResourceView, work: StepContext) -> Link:
        """Return the link that was made; where its answer was lost, that of the properties."""
        if not self.other:
            return (self.id_of(target),)
        other = (target.data.get(THING) or {}).get(self.other)
        return self.id_of(target), other or self.link(target.properties, work)[1]

    def handle_create(self, target: ResourceView, work: StepContext) -> Step:
        """Attach; after a refusal find what an earlier call has attached."""
        link = self.link(target.properties, work)
        try:
            answer = self.attach(link, target, work)
        except PermanentError:
            # A lost call may be carried out after `find_created` has searched for its effect.  Whatever is in
            # the way of the very first call is somebody else's.
            answer = self.find(link, work) if target.attempt > 1 else None
            if answer is None:
                raise
        if not self.slow:
            return Done(physical_id=link[0], data={THING: answer})
        progress = {"since": work.now(), "phase": "attach"}
        return Poll(progress=progress, after=FIRST_PAUSE, physical_id=link[0], data={THING: answer})

    def handle_delete(self, target: ResourceView, work: StepContext) -> Step:
        """Detach."""
        try:
            is_slow = target.physical_id is not None and self.detach(self.stored_link(target, work), work)
        except (ThingNotFound, NameNotFound):
            return Done()
        except Conflict as error:
            raise in_use(error) from error
        return Poll(progress={"since": work.now()}, after=FIRST_PAUSE) if is_slow else Done()

    def handle_check(self, target: ResourceView, work: StepContext) -> Step:
        """Check that the service has the attachment.

        :raises ThingNotFound: it has not.
        """
        if self.needs_replace_failed(target, work):
            raise ThingNotFound(self.missing.format(*self.stored_link(target, work)))
        return Done()

    def find_created(self, key: str, target: ResourceView, work: StepContext) -> str | None:
        """Return the physical id, if the service has the attachment."""
        try:
            link = self.link(target.properties, work)
        except (NameNotFound, NameNotUnique):
            return None
        return None if self.find(link, work) is None else link[0]

    def needs_replace_failed(self, target: ResourceView, work: StepContext) -> bool:
        """Return whether the service has no such attachment."""
        return target.physical_id is None or self.find(self.stored_link(target, work), work) is None

    def attribute_values(self, target: ResourceView) -> Mapping[str, Json]:
        """Return the service's answer."""
        return {"show": target.data.get(THING) or {}}
