"""Runs the steps of claimed tasks, and turns whatever they raise into results."""

import functools
import logging
import threading
import traceback
from collections.abc import Callable

from ...db.errors import Unavailable
from ...db.work.claim import Claim, Claimant, action_of
from ...observe.seldom import Seldom
from ...resources.contract.errors import (
    Cancelled,
    PermanentError,
    PropertyError,
    RetryableError,
    StepError,
    StepTimedOut,
    UnknownType,
)
from ...resources.registry import ResourceRegistry
from ...sealing.sealer import SealError
from ...sealing.secrets import Secrets
from ...shapes import Json
from ...template.budget import SOURCE
from ...template.errors import TemplateError
from ...template.sandbox.errors import HelperUnavailable
from ...template.sandbox.evaluator import charged_to
from .children import StepChildren
from .computing import NoTurn, StepComputing
from .context import RunningStepContext, StepServices
from .kinds.table import KINDS
from .orphaned_create import orphaned_create
from .outcomes import Outcomes, Restricted
from .results import StepResult, Steps
from .signalled_values import ENDED_BY_SIGNALS, SignalledValues

LOG = logging.getLogger(__name__)
STALLED = 2.0
"""Seconds until a step is retried that needed the database, or a helper process, while there was none."""


class StepRunner(Steps):
    """Implements results.Steps; all threads of the pool share it."""

    def __init__(self, *, registry: ResourceRegistry, services: StepServices) -> None:
        self._registry = registry
        self._services = services
        self._seldom = Seldom()
        self._signalled = SignalledValues(services.database, registry, services.clock)

    def run(self, claim: Claim, progress: Json, stop: threading.Event, who: Claimant) -> StepResult:
        outcomes = self._outcomes(claim, who)
        computing = StepComputing(self._services.computing, claim.project_id, stop)
        return self._guard(outcomes, computing, lambda: self._step(outcomes, progress, stop), progress)

    def has_cancel(self, claim: Claim) -> bool:
        return KINDS[claim.task.kind].has_cancel(claim, self._registry)

    def cancel(self, claim: Claim, who: Claimant) -> StepResult:
        outcomes = self._outcomes(claim, who)
        computing = StepComputing(self._services.computing, claim.project_id, threading.Event())
        computing.stopping()
        return self._guard(outcomes, computing, lambda: self._cancel(outcomes, None), None)

    def cancelled(self, claim: Claim, who: Claimant) -> StepResult:
        return self._outcomes(claim, who).stopped()

    def detached(self, claim: Claim, who: Claimant) -> StepResult:
        return self._outcomes(claim, who).detached(orphaned_create(claim))

    def lost_too_often(self, claim: Claim, who: Claimant) -> StepResult:
        return self._outcomes(claim, who).lost_too_often()

    def unstorable(self, claim: Claim, who: Claimant) -> StepResult:
        text = f"{action_of(claim.task.kind)} came to a result that cannot be stored"
        return self._outcomes(claim, who).failed(PermanentError(text))

    def _outcomes(self, claim: Claim, who: Claimant) -> Outcomes:
        secrets = Secrets(self._services.sealer.of_stack(claim.project_id, claim.root_id))
        services = self._services
        return Outcomes(claim, who, services.clock, secrets, services.quota_wait)

    def _context(self, outcomes: Outcomes, stop: threading.Event) -> RunningStepContext:
        claim = outcomes.claim
        secrets = outcomes.secrets
        services = self._services
        children = functools.partial(StepChildren, claim, services.database, services.nested, secrets)
        return RunningStepContext(claim, secrets, services=services, stop=stop, children=children)

    def _guard(
        self, outcomes: Outcomes, computing: StepComputing, step: Callable[[], StepResult], progress: Json
    ) -> StepResult:
        """Return the result of the call, whatever it raises."""
        claim = outcomes.claim
        where = f"{claim.task.stack_id}/{claim.resource.name}"
        budgets = SOURCE.set(computing)
        try:
            try:
                with charged_to(claim.project_id):
                    return step()
            except Cancelled:
                computing.stopping()
                return self._cancel(outcomes, progress)
        except RetryableError as error:
            return outcomes.retry(error, after_success=progress is not None)
        except Restricted as error:
            return outcomes.refused(error)
        except (StepError, PropertyError, TemplateError, SealError, UnknownType) as error:
            return outcomes.failed(error)
        except NoTurn as error:
            return StepResult(claim, None, poll_after=error.after, progress=progress)
        except (Unavailable, HelperUnavailable, MemoryError) as error:
            # Not the resource's failure: its step is done again, under the same claim and key.  Timeouts
            # end a step that never gets as much memory as it wants.
            if self._seldom.passes(claim.project_id, type(error).__name__):
                LOG.warning("Resource %s: %s", where, _retry_line(error))
            return StepResult(claim, None, poll_after=STALLED, progress=progress)
        except Exception as error:  # noqa: BLE001 - top of a thread: a plugin's bug fails its resource only
            # The traceback may hold values that were unsealed for the step.
            text = outcomes.secrets.redact(traceback.format_exc())
            LOG.error("Resource %s: its step failed by an unexpected error\n%s", where, text)
            return outcomes.failed(error)
        finally:
            SOURCE.reset(budgets)

    def _step(self, outcomes: Outcomes, progress: Json, stop: threading.Event) -> StepResult:
        claim = outcomes.claim
        expires_at = claim.task.expires_at
        if expires_at is not None and self._services.clock() >= expires_at:
            raise StepTimedOut(f"{action_of(claim.task.kind)} timed out")
        context = self._context(outcomes, stop)
        context.checkpoint()
        kind = KINDS[claim.task.kind]
        try:
            result = kind(outcomes, self._registry, context, progress).run()
        except PermanentError:
            if not context.forget_unchecked():
                raise
            result = kind(outcomes, self._registry, context, progress).run()
        # Before the end is stored: a step that is lost between both is done again.
        return self._signalled.store(result) if claim.task.kind in ENDED_BY_SIGNALS else result

    def _cancel(self, outcomes: Outcomes, progress: Json) -> StepResult:
        """End a step that was asked to stop; its type may have something to stop outside."""
        # With an event of its own: the type has to be able to pause while it cancels.
        context = self._context(outcomes, threading.Event())
        KINDS[outcomes.claim.task.kind](outcomes, self._registry, context, progress).cancel()
        return outcomes.stopped()


def _retry_line(error: Unavailable | HelperUnavailable | MemoryError) -> str:
    """Return the log's words for a step that is done again."""
    if isinstance(error, MemoryError):
        return "retrying its step, memory is short"
    if isinstance(error, Unavailable):
        return f"retrying its step, the database is unavailable: {error}"
    return f"retrying its step, expressions cannot be evaluated: {error}"
