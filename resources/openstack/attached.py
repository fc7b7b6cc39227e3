"""Types that attach one thing of the cloud to another; both exist without the attachment.

No service marks an attachment with an idempotency key.  So the first step of a creation searches for one, and
stores that there is none: only then may an attachment that is there later be the effect of a lost call.  An
attachment that was there before belongs to somebody else, and is never removed.
"""

import typing

from ...shapes import Json, JsonMap
from ..contract import Attribute, Done, PermanentError, Poll, ResourceView, RetryableError, Step, StepContext
from .declared import REMOTE, DeclaredThing
from .names import NameNotFound
from .polling import FIRST_PAUSE
from .service import Conflict, RemoteNotFound, in_use

Link = tuple[str, ...]
"""The ids by which an attachment is found; the first one is the physical id."""
CLAIMED = "claimed"
"""Key of the data that holds a link whose ends were not attached before this resource's first call."""


class AttachedType(DeclaredThing):
    """Base of the types whose resources attach a thing to another, and are found by the two.

    :cvar other: field of the service's answer that has the second id of the link; "": there is one id only.
    :cvar missing: the reason of a check that fails, with the ids of the link in place of ``{0}`` and ``{1}``.
    :cvar slow: whether an attachment is complete only a while after the service's answer.
    """

    mark = None
    attributes_schema = {"show": Attribute("All fields, as the service's API returns them.", "map")}
    other: typing.ClassVar[str] = ""
    missing: typing.ClassVar[str]
    slow: typing.ClassVar[bool] = False

    def link(self, properties: JsonMap, context: StepContext) -> Link:
        """Return the link that the properties describe.

        :raises NameNotFound, NameNotUnique: no thing, or several, have a name.
        """
        raise NotImplementedError

    def attach(self, link: Link, target: ResourceView, context: StepContext) -> Json:
        """Attach, and return the service's answer."""
        raise NotImplementedError

    def find(self, link: Link, context: StepContext) -> Json:
        """Return the attachment as the service has it; None: there is none."""
        raise NotImplementedError

    def detach(self, link: Link, context: StepContext) -> bool:
        """Detach, and return whether that takes a while.

        :raises RemoteNotFound: the attachment has ended already.
        """
        raise NotImplementedError

    def stored_link(self, target: ResourceView, context: StepContext) -> Link:
        """Return the link that was made; where its answer was lost, the one that was claimed."""
        if REMOTE not in target.data and (claimed := claimed_link(target)) is not None:
            return claimed
        if not self.other:
            return (self.id_of(target),)
        other = (target.data.get(REMOTE) or {}).get(self.other)
        return self.id_of(target), other or self.link(target.properties, context)[1]

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Search for an attachment of the two, before the service is asked to make one."""
        return self.begin(target, context, is_own=target.physical_id is not None)

    def check_create_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Attach, now that it is stored that the link was free; find the attachment of a lost call."""
        link = self.link(target.properties, context)
        is_claimed = claimed_link(target) == link
        if is_claimed and target.attempt > 1 and (attachment := self.find(link, context)) is not None:
            return self._attached(link, attachment, context)
        try:
            attachment = self.attach(link, target, context)
        except PermanentError:
            attachment = self.find(link, context) if is_claimed else None
            if attachment is None:
                raise
        return self._attached(link, attachment, context)

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        """Detach, unless the resource that has replaced this one has the same link."""
        try:
            if target.physical_id is None or self._is_taken_over(target, context):
                return Done()
            is_slow = self.detach(self.stored_link(target, context), context)
        except (RemoteNotFound, NameNotFound):
            return Done()
        except Conflict as error:
            raise in_use(error) from error
        return Poll(progress={"since": context.now()}, after=FIRST_PAUSE) if is_slow else Done()

    def handle_check(self, target: ResourceView, context: StepContext) -> Step:
        """Check that the service has the attachment.

        :raises RemoteNotFound: the attachment does not exist.
        """
        if target.physical_id is None or self.find(self.stored_link(target, context), context) is None:
            raise RemoteNotFound(self.missing.format(*self.stored_link(target, context)))
        return Done()

    def find_created(self, key: str, target: ResourceView, context: StepContext) -> str | None:
        """Return the physical id, if a lost call has attached a link that was free before."""
        link = claimed_link(target)
        return None if link is None or self.find(link, context) is None else link[0]

    def needs_replace_failed(self, target: ResourceView, context: StepContext) -> bool:
        """Return whether the service has no such attachment.

        The attachment of a lost call is detached first, for it is in the way of the replacement.

        :raises RetryableError: the detachment takes a while.
        """
        if target.physical_id is not None:
            return self.find(self.stored_link(target, context), context) is None
        if self.find_created(target.creation_key, target, context) is None:
            return True
        if self.detach(self.stored_link(target, context), context):
            raise RetryableError("an attachment of a lost call is being removed")
        return True

    def attribute_values(self, target: ResourceView) -> JsonMap:
        return {"show": target.data.get(REMOTE) or {}}

    def begin(self, target: ResourceView, context: StepContext, *, is_own: bool = False) -> Step:
        """Store that nothing attaches the two yet; where something does, the service judges a second one.

        :param is_own: whether an existing attachment is this resource's, even where no link is stored.
        """
        link = self.link(target.properties, context)
        attachment = self.find(link, context)
        if attachment is None:
            data = {**target.data, CLAIMED: list(link)}
            return Poll(progress={"since": context.now(), "phase": CLAIMED}, after=0.0, data=data)
        if not is_own and claimed_link(target) != link:
            attachment = self.attach(link, target, context)
        return self._attached(link, attachment, context)

    def _attached(self, link: Link, answer: Json, context: StepContext) -> Step:
        if not self.slow:
            return Done(physical_id=link[0], data={REMOTE: answer})
        progress = {"since": context.now(), "phase": "attach"}
        return Poll(progress=progress, after=FIRST_PAUSE, physical_id=link[0], data={REMOTE: answer})

    def _is_taken_over(self, target: ResourceView, context: StepContext) -> bool:
        """Return whether the attachment is by now that of the resource in this one's place."""
        identity = (target.type, target.physical_id)
        replacement = context.replacement()
        if replacement is None or (replacement.type, replacement.physical_id) != identity:
            return False
        if not self.other:
            return True
        return bool(
            (replacement.data.get(REMOTE) or {}).get(self.other) == self.stored_link(target, context)[1]
        )


def claimed_link(target: ResourceView) -> Link | None:
    """Return the link that was free before the resource's first call; None: none was."""
    link = target.data.get(CLAIMED)
    return None if link is None else tuple(link)
