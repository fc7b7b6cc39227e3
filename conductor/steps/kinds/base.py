"""The steps of a task: the phases that all kinds share, and the steps that give a stack a resource."""

import contextlib
import functools
import logging
from collections.abc import Callable
from dataclasses import replace

from ....db.errors import Unavailable
from ....db.states import DELETING, TaskKind
from ....db.work.claim import Claim
from ....engine.named_things import IDS, check_found, uses_names, with_ids
from ....engine.planning.plan import TaskDefinition
from ....resources.contract.context import StepContext
from ....resources.contract.errors import (
    PermanentError,
    ReplaceNeeded,
    RetryableError,
    StepError,
    UnknownType,
)
from ....resources.contract.plugin import ADOPTED_ID, ResourceType
from ....resources.contract.steps import Park, Poll, Step
from ....resources.contract.views import ResourceView
from ....resources.imported import IMPORTED
from ....resources.registry import ResourceRegistry
from ....shapes import Json, JsonMap
from ....template.residual import evaluate, holds_secret, partial
from ..inputs import ClaimLookup, SealedLookup
from ..outcomes import Outcomes
from ..results import StepResult
from ..returned import TooLarge, kept_data, kept_values
from ..target import GIVEN, make_target

LOG = logging.getLogger(__name__)


class TaskStep:
    """A step, in the phases that all kinds share: settle, prepare, start or poll, finish.

    An object is one step of one attempt; one thread uses it, once.

    :ivar action: names the type's methods: ``handle_ACTION`` starts it, ``check_ACTION_complete`` polls it.
    :ivar reason: the resource's status reason where the action ends well.
    :ivar target: the resource as its type sees it; known from `prepare` on.
    :ivar stored: columns with the properties that the resource was given; known from `prepare` on.
    :param progress: the token to poll with; None: the stored one; the action starts if there is none.
    """

    action: str
    reason = "state changed"
    target: ResourceView
    stored: JsonMap

    def __init__(
        self, outcomes: Outcomes, registry: ResourceRegistry, context: StepContext, progress: Json
    ) -> None:
        self.outcomes = outcomes
        self.claim = outcomes.claim
        self.secrets = outcomes.secrets
        self.context = context
        # Where no token is given, an earlier step may have stored one.
        is_stored = progress is None and self.claim.begun
        self.progress = self.claim.resource.progress["token"] if is_stored else progress
        self.definition = TaskDefinition.from_json(self.claim.task.definition)
        self._registry = registry
        self._was_read = False

    @functools.cached_property
    def plugin(self) -> ResourceType:
        """Return the type of the resource; it is looked up late, for some steps need none.

        :raises UnknownType: there is none of this name any more.
        """
        return self._registry.get(self.claim.resource.plugin)

    def run(self) -> StepResult:
        """Run the step.

        :raises StepError: the action fails, or is retried, or is cancelled.
        """
        ended = self.settle()
        if ended is None:
            self.target, self.stored = self._make_target()
            ended = self.prepare()
        if ended is not None:
            return ended
        self._read_imported()
        try:
            step = self.start() if self.progress is None else self.poll()
        except ReplaceNeeded as error:
            return self.replace(error)
        except RetryableError as error:
            if self.progress is not None:
                raise
            return self.outcomes.retry(error, has_begun=True)
        if isinstance(step, Poll) and self.progress is not None and self._is_unchanged(step):
            # The resource is as it was: the task is polled again, and nothing is written.
            return StepResult(self.claim, None, poll_after=step.after, progress=step.progress)
        return self.finish(step)

    def _make_target(self) -> tuple[ResourceView, dict[str, Json]]:
        return make_target(self.claim, self.plugin, self.definition, self.secrets)

    def _read_imported(self) -> None:
        """Read what an import has taken over unread, before the first action on it but its deletion.

        Where it is gone the action finds that out itself.
        """
        if IMPORTED not in self.target.data or self.claim.task.kind in (*DELETING, TaskKind.DELETE_SNAPSHOT):
            return
        with contextlib.suppress(PermanentError):
            read = self.plugin.refresh(self.target, self.context)
            data = {name: value for name, value in read.items() if name != IMPORTED}
            self.target = replace(self.target, data=data)
            self._was_read = True

    @staticmethod
    def has_cancel(claim: Claim, registry: ResourceRegistry) -> bool:
        """Return whether the resource's type has something to do when its action is cancelled."""
        try:
            plugin = registry.get(claim.resource.plugin)
        except UnknownType:
            return False
        return type(plugin).handle_cancel is not ResourceType.handle_cancel

    def cancel(self) -> None:
        """Let the type stop its action in the cloud; log where that fails, for the task ends anyway.

        :raises PermanentError: the resource refers to another one that is gone.
        """
        if self.progress is None or not self.has_cancel(self.claim, self._registry):
            return
        self.target, _ = self._make_target()
        try:
            self.plugin.handle_cancel(self.target, self.progress, self.context)
        except (StepError, Unavailable) as error:
            where = f"{self.claim.task.stack_id}/{self.claim.resource.name}"
            LOG.warning("Resource %s: cancelling its step failed: %s", where, self.secrets.redact(str(error)))

    def settle(self) -> StepResult | None:
        """Return the result where the resource's type is not needed for it; None: there is none yet."""
        return None

    def prepare(self) -> StepResult | None:
        """Complete the view of the resource; return the result, if there is one already."""
        return None

    def start(self) -> Step:
        """Start the action."""
        start: Callable[..., Step] = getattr(self.plugin, f"handle_{self.action}")
        return start(self.target, self.context)

    def poll(self) -> Step:
        """Poll the action once."""
        poll: Callable[..., Step] = getattr(self.plugin, f"check_{self.action}_complete")
        return poll(self.target, self.progress, self.context)

    def replace(self, error: ReplaceNeeded) -> StepResult:
        """Replace a resource whose type refuses to change it; only updates can.

        :raises ReplaceNeeded: always, in other kinds.
        """
        raise error

    def finish(self, step: Step) -> StepResult:
        """Make the result of the step that the type has returned."""
        if self._was_read and step.data is None:
            step = replace(step, data=self.target.data)
        has_begun = self.progress is None and self.claim.task.kind in GIVEN
        if has_begun and (self._uses_names or IDS in self.target.data):
            # The step that has begun the action has asked for these ids: nobody is asked again.
            data = step.data if step.data is not None else self.target.data
            named = with_ids(data, self.context, self.plugin.properties_schema, self.target.properties)
            step = step if named == data else replace(step, data=named)
        elif step.data is not None and IDS in self.target.data:
            step = replace(step, data={IDS: self.target.data[IDS], **step.data})
        self.take(step)
        return self.store(step, {**self.stored, **kept_data(self.plugin, step, self.target, self.secrets)})

    @functools.cached_property
    def _uses_names(self) -> bool:
        return uses_names(self.plugin, self.target.properties)

    def take(self, step: Step) -> None:
        """Put the data that the type has returned into the view."""
        self.target = replace(
            self.target,
            physical_id=step.physical_id if step.physical_id is not None else self.target.physical_id,
            data=step.data if step.data is not None else self.target.data,
        )

    def store(self, step: Step, changes: JsonMap) -> StepResult:
        """Make the result that stores these columns of the resource."""
        if isinstance(step, Poll):
            return self.outcomes.poll_later(step, changes)
        if isinstance(step, Park):
            return self.outcomes.park(step, changes)
        return self.complete(changes)

    def complete(self, changes: JsonMap) -> StepResult:
        """Make the result of an action that has ended well, with the values that others refer to."""
        try:
            values = kept_values(self.plugin, self.target, self.context, self.secrets)
        except TooLarge as error:  # What was made stays the resource's, or nobody would delete it.
            return self.outcomes.failed(error, changes)
        return self.outcomes.done({**changes, **values}, self.target.physical_id, self.reason)

    def find_created(self) -> None:
        """Give the view the physical id that a lost attempt has made, before its result was stored."""
        key = self.claim.resource.key
        if self.target.physical_id is None and key:
            created = self.plugin.find_created(key, self.target, self.context)
            self.target = replace(self.target, physical_id=created)

    def _is_unchanged(self, step: Poll) -> bool:
        return step.progress == self.progress and step.physical_id is None and step.data is None


class CreateStep(TaskStep):
    """A step of a creation.  What the template names by ``external_id`` is there already, and is adopted."""

    action = "create"

    def prepare(self) -> StepResult | None:
        """Give the view the physical id that exists, or that an earlier attempt has made."""
        external_id = self.definition.external_id
        if external_id is not None:
            self.action = "adopt"
            if holds_secret(partial(external_id, SealedLookup(self.claim))):
                raise PermanentError(
                    "external_id must not be a secret: an id is stored and shown",
                    kind="StackValidationFailed",
                )
            physical_id = evaluate(external_id, ClaimLookup(self.claim, self.secrets))
            self.target = replace(self.target, physical_id=str(physical_id))
        if self.progress is None and self.target.attempt > 1:
            self.find_created()
        return None

    def start(self) -> Step:
        """Start the creation, once all that the properties name is there."""
        if self.target.physical_id is None and self._uses_names:
            check_found(self.context, self.plugin.properties_schema, self.target.properties)
        return super().start()


class AdoptStep(TaskStep):
    """A step of the adoption of a thing that another stack has left."""

    action = "adopt"

    def prepare(self) -> StepResult | None:
        """Give the view the id that the document names, where its type is to find out whose it is."""
        data = dict(self.target.data)
        if (adopted_id := data.pop(ADOPTED_ID, None)) is not None and self.target.physical_id is None:
            self.target = replace(self.target, physical_id=str(adopted_id), data=data)
        return None

    def finish(self, step: Step) -> StepResult:
        """Keep the data that came with the thing, unless its type has other data."""
        return super().finish(replace(step, data=self.target.data) if step.data is None else step)
