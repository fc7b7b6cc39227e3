"""Cancels claimed tasks: messages ask for it, and the tasks' own timeouts.

A task that waits for its next poll ends at once.  A step that runs is asked to stop, and has a grace period
for it.  After that its thread is detached: the task continues without the step, whose result is refused.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ...db.work.claim import Claim, Claimant
from ...observe import logs
from ..steps.results import StepResult, Steps
from .claimed import (
    CancelRequest,
    ClaimedTask,
    ClaimedTasks,
    ClaimEvent,
    ClaimKey,
    ClaimState,
    Intake,
    TimerQueue,
    log_context,
)
from .executor import Detachment, StepExecutor, WorkMetrics

LOG = logging.getLogger(__name__)
SURELY = 0.01
"""Seconds past a moment of the stored time at which it is past, although two clocks measure it."""


@dataclass
class Cancellation:
    """Stops claims.  For the thread of the work loop.

    :ivar store: stores a result, soon.
    :ivar leave: ends the quarantine of a claim whose thread was detached.
    :ivar answer_later: answers for a claim that is not ours.
    :ivar add_hung: records a claim that is not ours any more, and whose step hangs.
    :ivar clock: seconds since the epoch, as the database counts them.
    :ivar grace: seconds in which a step that was asked to stop may end.
    :ivar expiries: when the tasks' own time is over.
    :ivar graces: when the grace periods are over.
    """

    intake: Intake
    held: ClaimedTasks
    executor: StepExecutor
    steps: Steps
    metrics: WorkMetrics
    store: Callable[[StepResult], None]
    leave: Callable[[Claim], None]
    answer_later: Callable[[ClaimKey], None]
    add_hung: Callable[[Claim], None]
    clock: Callable[[], float]
    monotonic: Callable[[], float]
    grace: float
    expiries: TimerQueue[ClaimKey] = field(default_factory=TimerQueue)
    graces: TimerQueue[ClaimedTask] = field(default_factory=TimerQueue)

    def watch(self, held: ClaimedTask) -> None:
        """Cancel the task when its own time is over."""
        if (expires_at := held.claim.task.expires_at) is not None:
            self.expiries.add(self.monotonic() + expires_at - self.clock() + SURELY, held.key)

    def apply(self, who: Claimant | None) -> None:
        """Stop what is to stop now, and detach steps whose grace period is over."""
        while self.intake.cancels:
            request = self.intake.cancels.popleft()
            found = list(self._found(request))
            _log(request, found)
            for held in found:
                self._stop(held, who)
        for key in self.expiries.pop_due(self.monotonic()):
            if (expired := self.held.get(key)) is not None:
                self._stop(expired, who)
        for held in self.graces.pop_due(self.monotonic()):
            self._detach(held, who)

    def lose(self, held: ClaimedTask) -> None:
        """Let go of a claim that is not ours any more; a step that runs for it is asked to stop.

        Nobody needs the step: the fence will refuse its result.
        """
        held.stop.set()
        self.held.remove(held, ClaimEvent.LOSE)
        if held.state is ClaimState.LOST:
            self.graces.add(self.monotonic() + self.grace, held)

    def restore(self) -> None:
        """Start the grace periods again whose ends an error in the work loop has lost."""
        timed = set(self.graces.items())
        for held in self.executor.running():
            if held.stop.is_set() and not held.is_detached and held not in timed:
                self.graces.add(self.monotonic() + self.grace, held)

    def _found(self, request: CancelRequest) -> Iterator[ClaimedTask]:
        if request.traversal is not None:
            for held in self.held.all():
                task = held.claim.task
                if task.traversal == request.traversal and task.id not in request.spared:
                    yield held
        for key in request.claims:
            found = self.held.get(key)
            if found is None:
                self.answer_later(key)
            else:
                yield found

    def _stop(self, held: ClaimedTask, who: Claimant | None) -> None:
        if held.stop.is_set():
            return
        self.metrics.asked()
        held.stop.set()
        self.graces.add(self.monotonic() + self.grace, held)
        is_waiting = held.state is ClaimState.WAITING
        held.move(ClaimEvent.STOP)
        if not is_waiting or who is None:
            return
        if self.steps.has_cancel(held.claim):
            held.move(ClaimEvent.START)
            self.executor.start(held, lambda: self.steps.cancel(held.claim, who))
        else:
            held.move(ClaimEvent.RESULT)
            self.store(self.steps.cancelled(held.claim, who))

    def _detach(self, held: ClaimedTask, who: Claimant | None) -> None:
        """Continue without a step whose grace period is over, if it has not ended."""
        found = self.executor.detach(held)
        if found is Detachment.ENDED:
            return
        self.leave(held.claim)
        held.move(ClaimEvent.DETACH if found is Detachment.HANGS else ClaimEvent.RESULT)
        if found is Detachment.HANGS:
            task = held.claim.task
            text = "The step of task %s (resource %s, %s) did not stop within %g s: its thread is detached"
            with log_context(held.claim):
                LOG.error(text, task.id, held.claim.resource.name, task.kind, self.grace)
        if held.state is ClaimState.HUNG:
            # Nobody stores a result of ours: what the step makes after all must be found even so.
            self.add_hung(held.claim)
        elif held.state is not ClaimState.CLOSED and who is not None:
            end = self.steps.detached if held.is_detached else self.steps.cancelled
            self.store(end(held.claim, who))


def _log(request: CancelRequest, found: Sequence[ClaimedTask]) -> None:
    """Log under the request that cancels, and under the one that is cancelled."""
    if request.traversal is None or not found:
        return
    with log_context(found[0].claim), logs.about(request=request.request):
        LOG.info("Cancelling %d tasks of trv-%s", len(found), request.traversal)
