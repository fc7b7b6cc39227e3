"""What is to stop: messages say it, and the tasks' own timeouts.

A step that waits between two looks ends at once.  One that runs is asked, and has a grace period to end in;
then it is given up: the task goes on without it, its thread is replaced, and what it comes to is refused.
"""

import collections
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ...db.ids import TaskId, TraversalId
from ...db.work.claim import Claim, Claimant
from ...observe import logs
from ..steps.outcomes import StepResult
from ..steps.runner import StepRunner
from .claimed import ClaimedTask, ClaimedTasks, TimerQueue, claim_lines
from .executor import Step, Workers
from .metrics import WorkMetrics

LOG = logging.getLogger(__name__)
SURELY = 0.01
"""Seconds past a moment of the stored time at which it is past, although two clocks measure it."""


@dataclass(frozen=True)
class CancelRequest:
    """:ivar traversal: stop all of it but the spared tasks; None: stop the claims (task, attempt).
    :ivar request: the id of the user's request that wishes it, if it is known.
    """

    traversal: TraversalId | None
    spared: frozenset[TaskId] = frozenset()
    claims: Sequence[tuple[TaskId, int]] = ()
    request: str | None = None


@dataclass
class Cancellation:
    """Used by the mover's thread, but for `messages`, which any thread may append to.

    :ivar grace: seconds.
    :ivar unknown: claims we were asked to stop that are not ours (any more): to be said so.
    :ivar strays: claims whose steps hang and were given up, and which are not ours any more.
    """

    held: ClaimedTasks
    workers: Workers
    runner: StepRunner
    clock: Callable[[], float]
    monotonic: Callable[[], float]
    grace: float
    tally: WorkMetrics
    messages: collections.deque[CancelRequest] = field(default_factory=collections.deque)
    unknown: list[tuple[TaskId, int]] = field(default_factory=list)
    strays: collections.deque[Claim] = field(default_factory=collections.deque)
    _expiries: TimerQueue[tuple[TaskId, int]] = field(default_factory=TimerQueue)
    _graces: TimerQueue[ClaimedTask] = field(default_factory=TimerQueue)

    def watch(self, held: ClaimedTask) -> None:
        """Stop it when its own time is over."""
        if held.claim.task.expires_at is not None:
            task = held.claim.task
            left = held.claim.task.expires_at - self.clock() + SURELY
            self._expiries.add(self.monotonic() + left, (task.id, task.attempt))

    def replaced(self, task_id: TaskId) -> None:
        """A task that was taken away from us comes back as a new claim: the old one's step is to stop."""
        old = self.held.drop(task_id)
        if old is not None and old.busy:
            old.stop.set()
            self._graces.add(self.monotonic() + self.grace, old)

    def apply(self, who: Claimant | None) -> None:
        """Ask all that are to stop now, and give up those that have not for too long."""
        while self.messages:
            message = self.messages.popleft()
            meant = list(self._meant(message))
            _tell(message, meant)
            for held in meant:
                self._stop(held, who)
        for task_id, attempt in self._expiries.pop_due(self.monotonic(), len(self._expiries)):
            if (expired := self.held.get(task_id, attempt)) is not None:
                self._stop(expired, who)
        for slow in self._graces.pop_due(self.monotonic(), len(self._graces)):
            self._give_up(slow, who)

    def next_at(self) -> float | None:
        """The moment, on the monotonic clock, at which `apply` is due, None: not before a message comes."""
        known = [at for at in (self._expiries.next_at(), self._graces.next_at()) if at is not None]
        return min(known, default=None)

    def drop_all(self) -> None:
        """Nothing is ours any more; what runs is to stop even so, or is given up."""
        for held in self.held.drop_all():
            if held.busy:
                self._graces.add(self.monotonic() + self.grace, held)

    def restore(self) -> None:
        """After an error: give those that are to stop their grace period again, if its end was lost."""
        timed = {id(held) for held in self._graces.items()}
        for held in self.workers.running():
            if held.stop.is_set() and not held.given_up and id(held) not in timed:
                self._graces.add(self.clock() + self.grace, held)

    def _meant(self, message: CancelRequest) -> Iterator[ClaimedTask]:
        if message.traversal is not None:
            for held in self.held.of(message.traversal):
                if held.claim.task.id not in message.spared:
                    yield held
        for task_id, attempt in message.claims:
            found = self.held.get(task_id, attempt)
            if found is None:
                self.unknown.append((task_id, attempt))
            else:
                yield found

    def _stop(self, held: ClaimedTask, who: Claimant | None) -> None:
        if held.stop.is_set():
            return
        self.tally.asked()
        held.stop.set()
        self._graces.add(self.monotonic() + self.grace, held)
        if held.busy or who is None:
            return
        if self.runner.has_cancel(held.claim):
            self.workers.cancel(held, who)
        else:
            self._end(held, self.runner.cancelled(held.claim, who))

    def _end(self, held: ClaimedTask, result: StepResult) -> None:
        held.busy = True
        self.workers.results.append(result)

    def _give_up(self, held: ClaimedTask, who: Claimant | None) -> None:
        task, step = held.claim.task, self.workers.give_up(held)
        if step == Step.ENDED:
            return
        if step == Step.HANGS:
            told = "The step of task %s (resource %s, %s) did not stop within %g s: its thread is written off"
            with claim_lines(held.claim):
                LOG.error(told, task.id, held.claim.resource.name, task.kind, self.grace)
        if who is not None and self.held.get(task.id, task.attempt) is held:
            hangs = step == Step.HANGS
            end = self.runner.given_up if hangs else self.runner.cancelled
            self._end(held, end(held.claim, who))
        elif step == Step.HANGS:
            self.strays.append(held.claim)


def _tell(message: CancelRequest, meant: Sequence[ClaimedTask]) -> None:
    """A line under the request that wishes it, and under that which wished the work."""
    if message.traversal is None or not meant:
        return
    with claim_lines(meant[0].claim), logs.about(request=message.request):
        LOG.info("%d tasks of trv-%s are to stop", len(meant), message.traversal)
