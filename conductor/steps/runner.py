"""Runs the steps of claimed tasks, and turns whatever they raise into results."""

import logging
import threading
import traceback
import typing
from collections.abc import Callable, Mapping

from ...db.errors import Unavailable
from ...db.states import TaskKind
from ...db.work.claim import Claim, Claimant, action_of
from ...planning.task_definition import TaskDefinition
from ...resources.errors import (
    Cancelled,
    PermanentError,
    PropertyError,
    RetryableError,
    StepError,
    StepTimedOut,
    UnknownType,
)
from ...resources.plugin import ResourceType
from ...resources.registry import ResourceRegistry
from ...sandbox.errors import HelperUnavailable
from ...sandbox.evaluator import charged_to
from ...sealing.sealer import SealError
from ...template.errors import TemplateError
from .children import NestedStackOperations, StepChildren
from .context import RunningStepContext, StepServices
from .kinds.actions import CheckStep, ObserveStep, ResumeStep, ScaleStep, SuspendStep
from .kinds.base import TaskStep
from .kinds.create import AdoptStep, CreateStep
from .kinds.delete import CleanupStep, DeleteSnapshotStep, DeleteStep
from .kinds.snapshot import SnapshotStep
from .kinds.update import Restricted, UpdateStep
from .orphans import orphaned_create
from .outcomes import Outcomes
from .results import StepResult
from .secrets import Secrets
from .target import make_target

LOG = logging.getLogger(__name__)
Json = typing.Any
STALLED = 2.0
"""Seconds until a step is retried that needed the database, or a helper process, while there was none."""
KINDS: Mapping[TaskKind, type[TaskStep]] = {
    TaskKind.CREATE: CreateStep,
    TaskKind.UPDATE: UpdateStep,
    TaskKind.DELETE: DeleteStep,
    TaskKind.CLEANUP: CleanupStep,
    TaskKind.SUSPEND: SuspendStep,
    TaskKind.RESUME: ResumeStep,
    TaskKind.CHECK: CheckStep,
    TaskKind.OBSERVE: ObserveStep,
    TaskKind.SNAPSHOT: SnapshotStep,
    TaskKind.DELETE_SNAPSHOT: DeleteSnapshotStep,
    TaskKind.ADOPT: AdoptStep,
    TaskKind.SCALE: ScaleStep,
}
"""The class of each kind of task that is claimed."""


class StepRunner:
    """Implements results.Steps; holds no state, so that all threads of the pool share it."""

    def __init__(
        self, *, registry: ResourceRegistry, services: StepServices, nested: NestedStackOperations
    ) -> None:
        self._registry = registry
        self._services = services
        self._nested = nested

    def run(self, claim: Claim, progress: Json, stop: threading.Event, who: Claimant) -> StepResult:
        """See Steps."""
        outcomes = self._outcomes(claim, who)
        return self._guard(outcomes, lambda: self._step(outcomes, progress, stop), progress)

    def has_cancel(self, claim: Claim) -> bool:
        """See Steps."""
        try:
            plugin = self._registry.get(claim.resource.plugin)
        except UnknownType:
            return False
        return type(plugin).handle_cancel is not ResourceType.handle_cancel

    def cancel(self, claim: Claim, who: Claimant) -> StepResult:
        """See Steps."""
        outcomes = self._outcomes(claim, who)
        return self._guard(outcomes, lambda: self._cancel(outcomes, None), None)

    def cancelled(self, claim: Claim, who: Claimant) -> StepResult:
        """See Steps."""
        return self._outcomes(claim, who).stopped()

    def detached(self, claim: Claim, who: Claimant) -> StepResult:
        """See Steps."""
        return self._outcomes(claim, who).detached(orphaned_create(claim))

    def lost_too_often(self, claim: Claim, who: Claimant) -> StepResult:
        """See Steps."""
        return self._outcomes(claim, who).lost_too_often()

    def unstorable(self, claim: Claim, who: Claimant) -> StepResult:
        """See Steps."""
        text = f"{action_of(claim.task.kind)} came to a result that cannot be stored"
        return self._outcomes(claim, who).failed(PermanentError(text))

    def _outcomes(self, claim: Claim, who: Claimant) -> Outcomes:
        secrets = Secrets(self._services.sealer.of_stack(claim.tenant, claim.root_id))
        return Outcomes(claim, who, self._services.clock, secrets)

    def _context(self, outcomes: Outcomes, stop: threading.Event) -> RunningStepContext:
        children = StepChildren(outcomes.claim, self._nested, outcomes.secrets)
        return RunningStepContext(
            outcomes.claim, outcomes.secrets, services=self._services, stop=stop, children=children
        )

    def _guard(self, outcomes: Outcomes, call: Callable[[], StepResult], progress: Json) -> StepResult:
        """Return the result of the call, whatever it raises."""
        claim = outcomes.claim
        where = f"{claim.task.stack_id}/{claim.resource.name}"
        try:
            try:
                with charged_to(claim.tenant):
                    return call()
            except Cancelled:
                return self._cancel(outcomes, progress)
        except RetryableError as error:
            return outcomes.retry(error)
        except Restricted as error:
            return outcomes.refused(error)
        except (StepError, PropertyError, TemplateError, SealError, UnknownType) as error:
            return outcomes.failed(error)
        except Unavailable as error:
            # Not the resource's failure: its step is done again, under the same claim and key.
            LOG.warning("Resource %s: retrying its step, the database is unavailable: %s", where, error)
            return StepResult(claim, None, poll_after=STALLED, progress=progress)
        except HelperUnavailable as error:
            LOG.warning("Resource %s: retrying its step, expressions cannot be evaluated: %s", where, error)
            return StepResult(claim, None, poll_after=STALLED, progress=progress)
        except Exception as error:  # noqa: BLE001 - top of a thread: a plugin's bug fails its resource only
            # The traceback may hold what was unsealed for the step.
            text = outcomes.secrets.redact(traceback.format_exc())
            LOG.error("Resource %s: its step failed by an unexpected error\n%s", where, text)
            return outcomes.failed(error)

    def _step(self, outcomes: Outcomes, progress: Json, stop: threading.Event) -> StepResult:
        claim = outcomes.claim
        expires_at = claim.task.expires_at
        if expires_at is not None and self._services.clock() >= expires_at:
            raise StepTimedOut(f"{action_of(claim.task.kind)} timed out")
        context = self._context(outcomes, stop)
        context.checkpoint()
        kind = KINDS[claim.task.kind]
        return kind(outcomes, self._registry, context, _stored_progress(claim, progress)).run()

    def _cancel(self, outcomes: Outcomes, progress: Json) -> StepResult:
        """End a step that was asked to stop; its type may have something to stop outside."""
        claim = outcomes.claim
        progress = _stored_progress(claim, progress)
        if progress is not None and self.has_cancel(claim):
            plugin = self._registry.get(claim.resource.plugin)
            definition = TaskDefinition.from_json(claim.task.definition)
            target, _ = make_target(claim, plugin, definition, outcomes.secrets)
            # With an event of its own: the type has to be able to pause while it cancels.
            context = self._context(outcomes, threading.Event())
            try:
                plugin.handle_cancel(target, progress, context)
            except (StepError, Unavailable) as error:
                where = f"{claim.task.stack_id}/{claim.resource.name}"
                LOG.warning("Resource %s: its cancel failed: %s", where, outcomes.secrets.redact(str(error)))
        return outcomes.stopped()


def _stored_progress(claim: Claim, progress: Json) -> Json:
    """Return the token to poll with; where none is given, the one that an earlier step has stored."""
    return claim.resource.progress["token"] if progress is None and claim.begun else progress
