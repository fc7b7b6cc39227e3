"""One step of one claimed task: call the plugin, and say what is to be stored."""

import logging
import threading
import traceback
import typing
from collections.abc import Callable
from dataclasses import replace

from ...db.errors import Unavailable
from ...db.states import DELETING, REMOVING, TaskKind
from ...db.work.claim import Claim, Claimant, action_of
from ...engine.nested_stacks import NestedStacks
from ...planning.task_definition import TaskDefinition
from ...resources.context import ResourceView
from ...resources.errors import (
    Cancelled,
    PermanentError,
    PropertyError,
    ReplaceNeeded,
    RetryableError,
    StepError,
    StepTimedOut,
    UnknownType,
)
from ...resources.plugin import ResourceType
from ...resources.properties import changed
from ...resources.registry import ResourceRegistry
from ...resources.signals import Scaling
from ...resources.steps import Done, Park, Poll, Step
from ...resources.update_decision import UpdateDecision, checkable
from ...sandbox.errors import HelperUnavailable
from ...sandbox.evaluator import charged_to
from ...sealing.sealer import SealError
from ...template.errors import TemplateError
from ...template.residual import evaluate, holds_secret, partial
from .children import StepChildren
from .context import RunningStepContext, StepServices
from .copies import copy_columns, with_copy
from .decision import Restricted, check_allowed, decide
from .lookup import ClaimLookup, SealedLookup
from .orphans import orphaned_create
from .outcomes import Outcomes
from .results import StepResult
from .secrets import Secrets
from .target import kept_data, kept_values, live_changes, make_target, never_made, restored

LOG = logging.getLogger(__name__)
Json = typing.Any
GOAL = ("definition", "type", "properties", "metadata", "generation", "requires")
"""Columns that say what a resource was brought to."""
STALLED = 2.0
"""Seconds until a step is done again that needed the database, or a helper process, while there was none."""


class StepRunner:
    """Runs steps; holds no state, so that all threads of the pool share it."""

    def __init__(
        self,
        *,
        catalogue: ResourceRegistry,
        around: StepServices,
        nesting: NestedStacks,
    ) -> None:
        self._catalogue = catalogue
        self._sealer = around.sealer
        self._around = around
        self._clock = around.clock
        self._nesting = nesting

    def run(self, claim: Claim, progress: Json, stop: threading.Event, who: Claimant) -> StepResult:
        """Do the next step of the claim.  Called in a thread of the pool; never raises.

        :param progress: the token to look with; None: what is stored, or start if nothing is.
        """
        attempt = self._attempt(claim, who)
        work = self._work(attempt, stop)
        return self._guarded(attempt, lambda: self._run(claim, progress, work, attempt), progress)

    def _guarded(self, attempt: Outcomes, call: Callable[[], StepResult], progress: Json) -> StepResult:
        """What the call comes to, whatever it raises."""
        try:
            try:
                with charged_to(attempt.claim.tenant):
                    return call()
            except Cancelled:
                return self._cancelled(attempt, progress)
        except RetryableError as error:
            return attempt.again(error)
        except Restricted as error:
            return attempt.refused(error)
        except (StepError, PropertyError, TemplateError, SealError, UnknownType) as error:
            return attempt.failed(error)
        except Unavailable as error:
            # Not the resource's failure: its step is done again, under the same claim and key.
            where = f"{attempt.claim.task.stack_id}/{attempt.claim.resource.name}"
            LOG.warning("Resource %s: its step waits, the database is away: %s", where, error)
            return StepResult(attempt.claim, None, poll_after=STALLED, progress=progress)
        except HelperUnavailable as error:
            where = f"{attempt.claim.task.stack_id}/{attempt.claim.resource.name}"
            LOG.warning("Resource %s: retrying its step, expressions cannot be evaluated: %s", where, error)
            return StepResult(attempt.claim, None, poll_after=STALLED, progress=progress)
        except Exception as error:  # noqa: BLE001 - top of a thread: a plugin's bug fails its resource only
            told = attempt.secrets.redact(traceback.format_exc())
            where = f"{attempt.claim.task.stack_id}/{attempt.claim.resource.name}"
            LOG.error("Resource %s: a step broke\n%s", where, told)
            return attempt.failed(error)

    def has_cancel(self, claim: Claim) -> bool:
        """Whether the resource type wants to be told that its action is cancelled."""
        try:
            plugin = self._catalogue.get(claim.resource.plugin)
        except UnknownType:
            return False
        return type(plugin).handle_cancel is not ResourceType.handle_cancel

    def cancel(self, claim: Claim, who: Claimant) -> StepResult:
        """Tell the resource type, for a task that is stopped between two looks.  Called in a thread of the
        pool; never raises."""
        attempt = self._attempt(claim, who)
        return self._guarded(attempt, lambda: self._cancelled(attempt, None), None)

    def cancelled(self, claim: Claim, who: Claimant) -> StepResult:
        """What a task comes to that is stopped between two looks, where the type need not be told."""
        return self._attempt(claim, who).stopped()

    def detached(self, claim: Claim, who: Claimant) -> StepResult:
        """What a task comes to whose step did not stop."""
        return self._attempt(claim, who).detached(orphaned_create(claim))

    def lost_too_often(self, claim: Claim, who: Claimant) -> StepResult:
        """Return what a task comes to that is not tried again, for too many conductors were lost with it."""
        return self._attempt(claim, who).lost_too_often()

    def unstorable(self, claim: Claim, who: Claimant) -> StepResult:
        """What a task comes to whose result cannot be stored."""
        text = f"{action_of(claim.task.kind)} came to a result that cannot be stored"
        return self._attempt(claim, who).failed(PermanentError(text))

    def _work(self, attempt: Outcomes, stop: threading.Event) -> RunningStepContext:
        return RunningStepContext(
            attempt.claim,
            attempt.secrets,
            around=self._around,
            stop=stop,
            children=StepChildren(attempt.claim, self._nesting, attempt.secrets),
        )

    def _attempt(self, claim: Claim, who: Claimant) -> Outcomes:
        secrets = Secrets(self._sealer.of_stack(claim.tenant, claim.root_id))
        return Outcomes(claim, who, self._clock, secrets)

    def _cancelled(self, attempt: Outcomes, progress: Json) -> StepResult:
        """The step ends because it was asked to; the type may have something to stop outside."""
        claim = attempt.claim
        if progress is None and claim.begun:
            progress = claim.resource.progress["token"]
        if progress is not None and self.has_cancel(claim):
            plugin = self._catalogue.get(claim.resource.plugin)
            definition = TaskDefinition.from_json(claim.task.definition)
            target, _ = make_target(claim, plugin, definition, attempt.secrets)
            try:
                plugin.handle_cancel(target, progress, self._work(attempt, threading.Event()))
            except (StepError, Unavailable) as error:
                told = attempt.secrets.redact(str(error))
                LOG.warning("Resource %s/%s: its cancel: %s", claim.task.stack_id, claim.resource.name, told)
        return attempt.stopped()

    def _run(self, claim: Claim, progress: Json, work: RunningStepContext, attempt: Outcomes) -> StepResult:
        expires_at = claim.task.expires_at
        if expires_at is not None and self._clock() >= expires_at:
            raise StepTimedOut(f"{action_of(claim.task.kind)} timed out")
        work.checkpoint()
        if progress is None and claim.begun:
            progress = claim.resource.progress["token"]
        definition = TaskDefinition.from_json(claim.task.definition)
        deleting = claim.task.kind in DELETING
        if claim.task.kind == TaskKind.CLEANUP and claim.resource.replaced_by is None:
            return attempt.nothing_to_do({})
        if claim.task.kind == TaskKind.CLEANUP and (held := attempt.held()) is not None:
            return held
        if deleting and definition.retain:
            return attempt.deleted()
        plugin = self._catalogue.get(claim.resource.plugin)
        if deleting and never_made(claim, plugin, attempt.secrets):
            return attempt.deleted()
        target, stored = make_target(claim, plugin, definition, attempt.secrets)
        target = _external(target, definition, attempt)
        if claim.task.kind == TaskKind.UPDATE and progress is None:
            if _is_external(claim, definition, target):
                return attempt.nothing_to_do(stored)
            if restored(claim):
                plugin.restore_after_replace(target, work)
            verdict = decide(claim, plugin, target, work)
            if verdict == UpdateDecision.SAME:
                return attempt.nothing_to_do(stored)
            if (held := attempt.held()) is not None:
                return held
            if verdict == UpdateDecision.REPLACE:
                return _replaced(plugin, target, work, attempt)
        if progress is None:
            target = _adopted(plugin, claim, target, work)
        try:
            step = _call(plugin, claim.task.kind, target, progress, work, definition)
        except ReplaceNeeded:
            if claim.task.kind != TaskKind.UPDATE:
                raise
            check_allowed(claim, UpdateDecision.REPLACE)
            return _replaced(plugin, target, work, attempt)
        if isinstance(step, Poll) and progress is not None and _nothing_new(step, progress):
            return StepResult(claim, None, poll_after=step.after, progress=step.progress)
        if claim.task.kind == TaskKind.ADOPT and step.data is None:
            step = replace(step, data=target.data)
        if claim.task.kind == TaskKind.SNAPSHOT:
            copy = copy_columns(claim, plugin, target, step, attempt.secrets)
            return with_copy(_result(plugin, replace(step, data=None), target, {}, attempt), copy)
        after = replace(
            target,
            physical_id=step.physical_id if step.physical_id is not None else target.physical_id,
            data=step.data if step.data is not None else target.data,
        )
        if claim.task.kind == TaskKind.OBSERVE and isinstance(step, Done):
            return attempt.nothing_to_do(
                {**live_changes(claim, plugin, after, work, attempt.secrets), "progress": None}
            )
        changes = {**stored, **kept_data(plugin, step, after, attempt.secrets)}
        return _result(plugin, step, after, changes, attempt)


def _external(target: ResourceView, definition: TaskDefinition, attempt: Outcomes) -> ResourceView:
    """With the physical id of what is there already, where the template names it."""
    if definition.external_id is None or attempt.claim.task.kind != TaskKind.CREATE:
        return target
    if holds_secret(partial(definition.external_id, SealedLookup(attempt.claim))):
        raise PermanentError(
            "external_id must not be a secret: an id is stored and shown", kind="StackValidationFailed"
        )
    found = evaluate(definition.external_id, ClaimLookup(attempt.claim, attempt.secrets))
    return replace(target, physical_id=str(found))


def _is_external(claim: Claim, definition: TaskDefinition, target: ResourceView) -> bool:
    """Whether the thing is not the stack's own, so that an update leaves it alone.

    :raises Final: it would be another thing.
    """
    before = TaskDefinition.from_json(claim.resource.definition).external_id
    if definition.external_id != before:
        what = f"Update to property external_id of {target.name} ({target.type})"
        raise PermanentError(f"{what} is not supported.", kind="NotSupported")
    return before is not None


def _replaced(
    plugin: ResourceType, target: ResourceView, work: RunningStepContext, attempt: Outcomes
) -> StepResult:
    plugin.prepare_for_replace(target, work)
    return attempt.replaced()


def _result(
    plugin: ResourceType, step: Step, target: ResourceView, changes: dict[str, Json], attempt: Outcomes
) -> StepResult:
    kind = attempt.claim.task.kind
    if kind == TaskKind.UPDATE and not isinstance(step, Done):
        # Until it has ended, what was given before is what counts: a second try has to see the difference.
        changes = {name: value for name, value in changes.items() if name not in GOAL}
    if isinstance(step, Poll):
        return attempt.looks_again(step, changes)
    if isinstance(step, Park):
        return attempt.parked(step, changes)
    if kind in REMOVING:
        return attempt.deleted()
    values = kept_values(plugin, target, attempt.secrets)
    if kind == TaskKind.CHECK and not checkable(plugin):
        unsupported = f"CHECK not supported for {attempt.claim.resource.type}"
        return attempt.done({**changes, **values}, target.physical_id, unsupported)
    return attempt.done({**changes, **values}, target.physical_id)


def _call(
    plugin: ResourceType,
    kind: TaskKind,
    target: ResourceView,
    progress: Json,
    work: RunningStepContext,
    definition: TaskDefinition,
) -> Step:
    action = "delete" if kind in DELETING else "check" if kind == TaskKind.OBSERVE else kind.value
    if kind == TaskKind.CREATE and definition.external_id is not None:
        action = "adopt"
    if progress is not None:
        look: Callable[..., Step] = getattr(plugin, f"check_{action}_complete")
        return look(target, progress, work)
    start: Callable[..., Step] = getattr(plugin, f"handle_{action}")
    if kind == TaskKind.SCALE:
        return start(target, Scaling(**definition.properties), work)
    if kind == TaskKind.UPDATE:
        names = changed(plugin.properties_schema, target.previous, target.properties)
        return start(target, names, work) if names or plugin.always_updated else Done()
    return start(target, work)


def _adopted(
    plugin: ResourceType, claim: Claim, target: ResourceView, work: RunningStepContext
) -> ResourceView:
    """With the physical id of what an attempt has made that was lost before its result was stored."""
    kind = claim.task.kind
    begun_before = kind in DELETING or (kind == TaskKind.CREATE and claim.task.attempt > 1)
    if target.physical_id is not None or not claim.resource.key or not begun_before:
        return target
    return replace(target, physical_id=plugin.find_created(claim.resource.key, target, work))


def _nothing_new(step: Poll, progress: Json) -> bool:
    return step.progress == progress and step.physical_id is None and step.data is None
