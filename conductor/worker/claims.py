"""The claims of this conductor: hints and cancel requests that came, claimed tasks, and their timers.

A task that waits for its next poll is cancelled at once.  A step that runs is asked to stop, and has a grace
period for it.  After that its thread is detached: the task continues without the step, whose result is
refused.
"""

import collections
import heapq
import itertools
import logging
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ...db.ids import TaskId, TraversalId
from ...db.work.claim import Claim, Claimant
from ...observe import logs
from ...shapes import Json
from ..steps.results import StepResult, Steps
from .claimed import ClaimedTask, ClaimEvent, ClaimKey, ClaimState, log_context
from .executor import Detachment, StepExecutor, WorkMetrics
from .turns import Intake, Room, Turns

LOG = logging.getLogger(__name__)
SURELY = 0.01
"""Seconds past a moment of the stored time at which it is past, although two clocks measure it."""
T = typing.TypeVar("T")


class TimerQueue(typing.Generic[T]):
    """Items with the moment at which they are due.  For the thread of the work loop.

    :ivar entries: a heap of (moment, number, item); to read.
    """

    def __init__(self) -> None:
        self.entries: list[tuple[float, int, T]] = []
        self._order = itertools.count()

    def __len__(self) -> int:
        return len(self.entries)

    def add(self, at: float, item: T) -> None:
        """Make `item` due at the moment `at` (seconds, of the clock that is given to pop_due)."""
        heapq.heappush(self.entries, (at, next(self._order), item))

    def items(self) -> list[T]:
        """Return all items, in no order."""
        return [entry[2] for entry in self.entries]

    def pop_due(self, now: float, most: int | None = None) -> list[T]:
        """Take out the items whose moment has come, `most` at the most, the longest due first."""
        due: list[T] = []
        while self.entries and (most is None or len(due) < most) and self.entries[0][0] <= now:
            due.append(heapq.heappop(self.entries)[2])
        return due


@dataclass(frozen=True)
class CancelRequest:
    """A message that asks to cancel tasks.

    :ivar traversal: cancel all tasks of it but the spared ones; None: cancel the claims.
    :ivar claims: are answered for if they are not ours.
    :ivar request: the id of the user's request that cancels, if it is known.
    """

    traversal: TraversalId | None
    spared: frozenset[TaskId] = frozenset()
    claims: tuple[ClaimKey, ...] = ()
    request: str | None = None


class Claims:
    """The claims that this conductor holds, and their end.  For the thread of the work loop.

    Any thread may call `all`, use the intake, and append to the cancel requests.

    :ivar held: the claims by their tasks; to read, from any thread.
    :ivar timers: timers of timeouts and of grace periods.
    :ivar intake: hints, as they came.
    :ivar cancels: cancel requests, as they came.
    :ivar results: results of claims that are to be stored.
    :ivar polls: the next poll of each task that waits for one, with the progress token to poll with.
    :ivar due_polls: those whose moment has come, and that wait for a thread of their project.
    :ivar unanswered: claims to be answered for: a message asks to cancel them, and they are not held here.
    :ivar hung: claims that are not ours any more, and whose steps hang on detached threads.
    :param clock: seconds since the epoch, as the database counts them.
    :param grace: seconds in which a step that was asked to stop may end.
    """

    def __init__(
        self,
        executor: StepExecutor,
        steps: Steps,
        *,
        metrics: WorkMetrics,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
        grace: float,
    ) -> None:
        self._executor = executor
        self._steps = steps
        self._metrics = metrics
        self._clock = clock
        self._monotonic = monotonic
        self._grace = grace
        self.held: dict[TaskId, ClaimedTask] = {}
        self._expiries: TimerQueue[ClaimKey] = TimerQueue()
        self._graces: TimerQueue[ClaimedTask] = TimerQueue()
        self.timers: Sequence[TimerQueue[typing.Any]] = (self._expiries, self._graces)
        self.intake = Intake()
        self.cancels: collections.deque[CancelRequest] = collections.deque()
        self.results: collections.deque[StepResult] = collections.deque()
        self.polls: TimerQueue[tuple[ClaimKey, Json]] = TimerQueue()
        self.due_polls: Turns[tuple[ClaimKey, Json]] = Turns()
        self.unanswered: list[ClaimKey] = []
        self.hung: collections.deque[Claim] = collections.deque()

    def all(self) -> list[ClaimedTask]:
        """Return the claims of this moment."""
        return list(self.held.values())

    def get(self, key: ClaimKey) -> ClaimedTask | None:
        """Return a claim; None: it is not ours."""
        claimed = self.held.get(key[0])
        return claimed if claimed is not None and claimed.key == key else None

    def add(self, claim: Claim) -> ClaimedTask:
        """Add a claim that was made now, and cancel it when its own time is over."""
        if (old := self.held.get(claim.task.id)) is not None:
            self.lose(old)  # It was taken away from us, and is ours again.
        self.intake.learn(claim.task.traversal, claim.project_id)
        claimed = self.held[claim.task.id] = ClaimedTask(
            claim, (claim.task.id, claim.task.attempt), claim.task.claimed_at or 0.0
        )
        self.watch(claimed)
        return claimed

    def watch(self, claimed: ClaimedTask) -> None:
        """Cancel the task when its own time is over."""
        if (expires_at := claimed.claim.task.expires_at) is not None:
            self._expiries.add(self._monotonic() + expires_at - self._clock() + SURELY, claimed.key)

    def remove(self, claimed: ClaimedTask, event: ClaimEvent) -> None:
        """Remove a claim that is not ours any more: CLOSE or LOSE."""
        if self.held.get(claimed.key[0]) is claimed:
            del self.held[claimed.key[0]]
        claimed.move(event)

    def lose(self, claimed: ClaimedTask) -> None:
        """Let go of a claim that is not ours any more; a step that runs for it is asked to stop.

        Nobody needs the step: the fence will refuse its result.
        """
        claimed.stop.set()
        self.remove(claimed, ClaimEvent.LOSE)
        if claimed.state is ClaimState.LOST:
            self._graces.add(self._monotonic() + self._grace, claimed)

    # -- polls -------------------------------------------------------------------------------------

    def poll_later(self, claim: Claim, after: float | None, progress: Json) -> None:
        """Poll the task again after so many seconds; at once, if it is to stop.

        :param claim: with the resource as it is now.
        """
        claimed = self.held[claim.task.id]
        claimed.claim = claim
        claimed.move(ClaimEvent.POLL_LATER)
        pause = 0.0 if claimed.stop.is_set() else after or 0.0
        self.polls.add(self._monotonic() + pause, (claimed.key, progress))

    def due(self, most: int, room: Room) -> Iterator[tuple[ClaimedTask, Json]]:
        """Take out at most `most` tasks whose next poll is due, each with the token to poll with.

        :param room: returns how many a project may have.
        """
        for key, progress in self.polls.pop_due(self._monotonic()):
            if (claimed := self.get(key)) is not None:
                self.due_polls.add(claimed.claim.project_id, (key, progress))
        for _, (key, progress) in self.due_polls.take(most, room):
            claimed = self.get(key)
            if claimed is not None and claimed.state is ClaimState.WAITING:
                yield claimed, progress

    # -- cancellation ------------------------------------------------------------------------------

    def cancel_due(self, who: Claimant | None) -> None:
        """Stop the tasks that are to stop now, and detach steps whose grace period is over."""
        while self.cancels:
            request = self.cancels.popleft()
            requested = list(self._requested(request))
            _log(request, requested)
            for claimed in requested:
                self._stop(claimed, who)
        for key in self._expiries.pop_due(self._monotonic()):
            if (expired := self.get(key)) is not None:
                self._stop(expired, who)
        for claimed in self._graces.pop_due(self._monotonic()):
            self._detach(claimed, who)

    def restore_graces(self) -> None:
        """Start the grace periods again whose ends an error in the work loop has lost."""
        timed = set(self._graces.items())
        for claimed in self._executor.running():
            if claimed.stop.is_set() and not claimed.is_detached and claimed not in timed:
                self._graces.add(self._monotonic() + self._grace, claimed)

    def _requested(self, request: CancelRequest) -> Iterator[ClaimedTask]:
        """Yield the claims of the request that are ours, and note the others."""
        if request.traversal is not None:
            for claimed in self.all():
                task = claimed.claim.task
                if task.traversal == request.traversal and task.id not in request.spared:
                    yield claimed
        for key in request.claims:
            named_task = self.get(key)
            if named_task is None:
                self.unanswered.append(key)
            else:
                yield named_task

    def _stop(self, claimed: ClaimedTask, who: Claimant | None) -> None:
        if claimed.stop.is_set():
            return
        self._metrics.cancel_requested()
        claimed.stop.set()
        self._graces.add(self._monotonic() + self._grace, claimed)
        is_waiting = claimed.state is ClaimState.WAITING
        claimed.move(ClaimEvent.STOP)
        if not is_waiting or who is None:
            return
        if self._steps.has_cancel(claimed.claim):
            claimed.move(ClaimEvent.START)
            self._executor.start(claimed, lambda: self._steps.cancel(claimed.claim, who))
        else:
            claimed.move(ClaimEvent.RESULT)
            self.results.append(self._steps.cancelled(claimed.claim, who))

    def _detach(self, claimed: ClaimedTask, who: Claimant | None) -> None:
        """Continue without a step whose grace period is over, if it has not ended."""
        detachment = self._executor.detach(claimed)
        if detachment is Detachment.ENDED:
            return
        claimed.move(ClaimEvent.DETACH if detachment is Detachment.HANGS else ClaimEvent.RESULT)
        if detachment is Detachment.HANGS:
            task = claimed.claim.task
            text = "The step of task %s (resource %s, %s) did not stop within %g s: its thread is detached"
            with log_context(claimed.claim):
                LOG.error(text, task.id, claimed.claim.resource.name, task.kind, self._grace)
        if claimed.state is ClaimState.HUNG:
            # No result of this claim is stored any more: what the step still makes must be found.
            self.hung.append(claimed.claim)
        elif claimed.state is not ClaimState.CLOSED and who is not None:
            end = self._steps.detached if claimed.is_detached else self._steps.cancelled
            self.results.append(end(claimed.claim, who))


def _log(request: CancelRequest, claimed: Sequence[ClaimedTask]) -> None:
    """Log under the request that cancels, and under the one that is cancelled."""
    if request.traversal is None or not claimed:
        return
    with log_context(claimed[0].claim), logs.about(request=request.request):
        LOG.info("Cancelling %d tasks of trv-%s", len(claimed), request.traversal)
