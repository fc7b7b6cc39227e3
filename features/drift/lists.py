"""The lists of one project, each read once in an observation of its stacks."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...db.ids import ResourceId, StackId
from ...resources.contract.context import CloudCalls, Collection
from ...resources.contract.errors import PermanentError, RetryableError, StepError
from ...resources.contract.plugin import ResourceType
from ...resources.contract.views import ResourceView
from ...shapes import JsonMap
from . import metrics
from .context import DriftServices, ObservationContext
from .rows import QuietStack

LOG = logging.getLogger(__name__)
MOST_CREDENTIALS = 3
"""Credentials of one user with which a list is tried: one of their stacks may have fewer roles."""
MOST_CONFIRMED = 100
"""Things of a project that are read alone in one observation, because no list has them."""
Reading = tuple[str | None, Collection]
"""The user and the collection: users may see different things, such as their own key pairs."""


@dataclass
class _ListedThings:
    """The outcome of reading a list.

    :ivar things: the things by physical id; None: it could not be read.
    :ivar error: why not.
    :ivar credentials: roots of the trees with whose credentials it was tried.
    """

    things: Mapping[str, JsonMap] | None = None
    error: StepError | None = None
    credentials: set[StackId] = field(default_factory=set)


class ProjectLists:
    """Finds the things of a project's resources.  Used by one thread, for one observation.

    :param unlisted: resources whose things no list has although they are there; they come last when the
        number of single readings is limited.  It is kept from one observation to the next.
    """

    def __init__(self, project_id: str, services: DriftServices, unlisted: set[ResourceId]) -> None:
        self._project_id = project_id
        self._services = services
        self._unlisted = unlisted
        self._lists: dict[Reading, _ListedThings] = {}
        self._contexts: dict[StackId, CloudCalls] = {}
        self._left = MOST_CONFIRMED

    def context_of(self, stack: QuietStack) -> CloudCalls:
        """Return the context with the rights of a stack."""
        if stack.root_id not in self._contexts:
            context = ObservationContext(self._project_id, stack.root_id, self._services)
            self._contexts[stack.root_id] = context
        return self._contexts[stack.root_id]

    def thing(
        self, stack: QuietStack, plugin: ResourceType, target: ResourceView, *, was_gone: bool
    ) -> JsonMap | None:
        """Return the thing of a resource; None: it is gone.

        One that is missing in its list is read alone before it counts as gone: it may be another project's,
        or hidden from lists.

        :param was_gone: the observation before has confirmed that it is gone.
        :raises StepError: it is not known whether it is there.
        """
        collection = plugin.collection()
        assert collection is not None, "only types with a collection are observed"
        things = self._listed((stack.reader, collection), stack)
        physical_id = str(target.physical_id)
        if physical_id in things:
            return things[physical_id]
        return None if was_gone else self._alone(stack, plugin, target)

    def _listed(self, reading: Reading, stack: QuietStack) -> Mapping[str, JsonMap]:
        outcome = self._lists.setdefault(reading, _ListedThings())
        may_try = (
            not isinstance(outcome.error, RetryableError)
            and stack.root_id not in outcome.credentials
            and len(outcome.credentials) < MOST_CREDENTIALS
        )
        if outcome.things is None and may_try:
            self._read(reading[1], stack, outcome)
        if outcome.things is None:
            raise outcome.error or RetryableError("the list was not read")
        return outcome.things

    def _read(self, collection: Collection, stack: QuietStack, outcome: _ListedThings) -> None:
        outcome.credentials.add(stack.root_id)
        self._services.recorder.add(metrics.LISTS, collection.service)
        try:
            outcome.things = collection.read(self.context_of(stack), self._project_id)
        except StepError as error:
            outcome.error = error
            text = "Drift of project %s: %s of %s cannot be listed: %s"
            LOG.warning(text, self._project_id, collection.path, collection.service, error)

    def _alone(self, stack: QuietStack, plugin: ResourceType, target: ResourceView) -> JsonMap | None:
        resource_id = ResourceId(target.id)
        # The last tenth is for things that are known to be missing in lists only.
        reserve = 0 if resource_id in self._unlisted else MOST_CONFIRMED // 10
        if self._left <= reserve:
            raise RetryableError(
                f"more than {MOST_CONFIRMED - reserve} things are missing in the project's lists; "
                "the next observations read the others"
            )
        self._left -= 1
        self._services.recorder.add(metrics.LISTS, str(plugin.service))
        try:
            remote = plugin.remote(target, self.context_of(stack))
        except PermanentError as error:
            if error.kind != "NotFound":
                raise
            self._unlisted.discard(resource_id)
            return None
        self._unlisted.add(resource_id)
        return remote
