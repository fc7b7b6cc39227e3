"""The tasks of a conductor: hints and cancel requests that came, and claims with states and polls."""

import collections
import contextlib
import enum
import heapq
import itertools
import threading
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...db.ids import TaskId, TraversalId
from ...db.work.claim import Claim
from ...observe import logs

Json = typing.Any
ClaimKey = tuple[TaskId, int]
"""Task and attempt: the name of one claim."""
T = typing.TypeVar("T")


class ClaimState(enum.Enum):
    """A state of a claim in the conductor that has made it."""

    CLAIMED = "claimed"  #: its first step was not submitted yet
    RUNNING = "running"  #: its step waits for a thread of the pool, or runs on one
    STOPPING = "stopping"  #: the same, but the step was asked to stop; a grace period runs
    WAITING = "waiting"  #: a timer waits for its next poll
    STORING = "storing"  #: a result waits to be stored
    DETACHED = "detached"  #: its step hangs on a detached thread; the task's failure waits to be stored
    REQUEUING = "requeuing"  #: no thread could run its step, or the step broke: others may claim the task
    LOST = "lost"  #: the claim is not ours any more, but its step has not ended
    HUNG = "hung"  #: the claim is not ours any more, and its step hangs on a detached thread
    CLOSED = "closed"  #: nothing of it is left here


class ClaimEvent(enum.Enum):
    """An event in the life of a claim."""

    START = "start"  #: a step is submitted to the pool
    STOP = "stop"  #: a message, or the task's own timeout, ends it
    RESULT = "result"  #: a step has ended with a result, or none is needed for one
    BREAK = "break"  #: a step has ended, or could not start, without a result
    POLL_LATER = "poll later"  #: nothing is left to do but the next poll
    DETACH = "detach"  #: the grace period is over, and the step hangs
    CLOSE = "close"  #: the database has the result, or refuses it
    LOSE = "lose"  #: the claim was requeued, taken away, or made in a name that is not ours any more


_S = ClaimState
_E = ClaimEvent
TRANSITIONS: Mapping[ClaimState, Mapping[ClaimEvent, ClaimState]] = {
    _S.CLAIMED: {_E.START: _S.RUNNING, _E.LOSE: _S.CLOSED},
    _S.RUNNING: {_E.STOP: _S.STOPPING, _E.RESULT: _S.STORING, _E.BREAK: _S.REQUEUING, _E.LOSE: _S.LOST},
    _S.STOPPING: {
        _E.START: _S.STOPPING,  # The type cancels what it has started outside: that is a step, too.
        _E.RESULT: _S.STORING,
        _E.BREAK: _S.REQUEUING,
        _E.DETACH: _S.DETACHED,
        _E.LOSE: _S.LOST,
    },
    _S.WAITING: {_E.START: _S.RUNNING, _E.STOP: _S.STOPPING, _E.LOSE: _S.CLOSED},
    _S.STORING: {
        _E.STOP: _S.STORING,  # What has ended is stored; a poll that would follow is stopped.
        _E.POLL_LATER: _S.WAITING,
        _E.CLOSE: _S.CLOSED,
        _E.LOSE: _S.CLOSED,
    },
    # The result of a detached step is refused; the task's failure waits to be stored all the same.
    _S.DETACHED: {_E.RESULT: _S.STORING, _E.BREAK: _S.STORING, _E.CLOSE: _S.HUNG, _E.LOSE: _S.HUNG},
    # A submit that was interrupted by an error may have submitted the step all the same: its result is late.
    _S.REQUEUING: {
        _E.STOP: _S.REQUEUING,
        _E.RESULT: _S.REQUEUING,
        _E.BREAK: _S.REQUEUING,
        _E.LOSE: _S.CLOSED,
    },
    _S.LOST: {_E.RESULT: _S.CLOSED, _E.BREAK: _S.CLOSED, _E.DETACH: _S.HUNG, _E.LOSE: _S.LOST},
    _S.HUNG: {_E.RESULT: _S.CLOSED, _E.BREAK: _S.CLOSED, _E.LOSE: _S.HUNG},
    _S.CLOSED: {_E.RESULT: _S.CLOSED, _E.BREAK: _S.CLOSED, _E.LOSE: _S.CLOSED},
}


def next_state(state: ClaimState, event: ClaimEvent) -> ClaimState:
    """Return the state after the event.

    :raises ValueError: the event is impossible in this state.
    """
    try:
        return TRANSITIONS[state][event]
    except KeyError:
        raise ValueError(f"{event} is impossible for a claim that is {state.value}") from None


@dataclass(eq=False)
class ClaimedTask:
    """A claim, from the moment it is made until nothing of it is left in this process.

    :ivar key: the name of the claim.
    :ivar since: when it was claimed, in seconds since the epoch.
    :ivar state: changed by the thread of the work loop only; any thread may read it.
    :ivar stop: set when its step is to end.
    :ivar job: the pool's handle of the step.
    :ivar started_at: when the step started that runs now; None: none runs.
    :ivar thread: the identifier of the thread it runs on.
    """

    claim: Claim
    key: ClaimKey
    since: float = 0.0
    state: ClaimState = ClaimState.CLAIMED
    stop: threading.Event = field(default_factory=threading.Event)
    job: Json = None
    started_at: float | None = None
    thread: int | None = None

    def move(self, event: ClaimEvent) -> None:
        """Change the state.

        :raises ValueError: the event is impossible.
        """
        self.state = next_state(self.state, event)

    @property
    def is_detached(self) -> bool:
        """Return whether the step hangs on a thread that was detached."""
        return self.state in (ClaimState.DETACHED, ClaimState.HUNG)


@dataclass(frozen=True)
class WorkerView:
    """The tasks that the work loop has now.

    :ivar waiting: hinted tasks that wait for a free thread.
    :ivar held: claimed tasks.
    :ivar running: claims whose steps have not ended, those on detached threads included.
    """

    waiting: int
    held: Sequence[ClaimedTask]
    running: Sequence[ClaimedTask]


def claim_key(claim: Claim) -> ClaimKey:
    """Return the name of a claim."""
    return claim.task.id, claim.task.attempt


def log_context(claim: Claim) -> contextlib.AbstractContextManager[None]:
    """Return a context in which log lines belong to the claim's stack and request."""
    task = claim.task
    request = logs.named(task.request, task.traversal)
    return logs.about(request=request, project=claim.project_id, stack=task.stack_id)


class TimerQueue(typing.Generic[T]):
    """Items with the moment at which they are due.  For the thread of the work loop."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, T]] = []
        self._order = itertools.count()

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, at: float, item: T) -> None:
        """Make `item` due at the moment `at` (seconds, of the clock that is given to pop_due)."""
        heapq.heappush(self._heap, (at, next(self._order), item))

    def items(self) -> list[T]:
        """Return all items, in no order."""
        return [entry[2] for entry in self._heap]

    def next_at(self) -> float | None:
        """Return the earliest moment; None: the queue is empty."""
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now: float, most: int | None = None) -> list[T]:
        """Take out the items whose moment has come, `most` at the most, the longest due first."""
        due: list[T] = []
        while self._heap and (most is None or len(due) < most) and self._heap[0][0] <= now:
            due.append(heapq.heappop(self._heap)[2])
        return due


class ClaimedTasks:
    """The claims that are ours, by task.  For the thread of the work loop; any thread may call `all`.

    :ivar by_task: the claims by their task, whatever the attempt; to read.
    :ivar polls: the next poll of each task that waits for one, with the progress token to poll with.
    """

    def __init__(self, clock: Callable[[], float], monotonic: Callable[[], float]) -> None:
        self._clock = clock
        self._monotonic = monotonic
        self._held: dict[TaskId, ClaimedTask] = {}
        self.by_task: Mapping[TaskId, ClaimedTask] = self._held
        self.polls: TimerQueue[tuple[ClaimKey, Json]] = TimerQueue()

    def __len__(self) -> int:
        return len(self._held)

    def all(self) -> list[ClaimedTask]:
        """Return the claims of this moment."""
        return list(self._held.values())

    def add(self, claim: Claim) -> ClaimedTask:
        """Add a claim that was made now."""
        held = self._held[claim.task.id] = ClaimedTask(claim, claim_key(claim), self._clock())
        return held

    def remove(self, held: ClaimedTask, event: ClaimEvent) -> None:
        """Remove a claim that is not ours any more: CLOSE or LOSE."""
        if self._held.get(held.key[0]) is held:
            del self._held[held.key[0]]
        held.move(event)

    def get(self, key: ClaimKey) -> ClaimedTask | None:
        """Return a claim; None: it is not ours."""
        held = self._held.get(key[0])
        return held if held is not None and held.key == key else None

    def poll_later(self, claim: Claim, after: float | None, progress: Json) -> None:
        """Poll the task again after so many seconds; at once, if it is to stop.

        :param claim: with the resource as it is now.
        """
        held = self._held[claim.task.id]
        held.claim = claim
        held.move(ClaimEvent.POLL_LATER)
        pause = 0.0 if held.stop.is_set() else after or 0.0
        self.polls.add(self._monotonic() + pause, (held.key, progress))

    def due(self, most: int) -> Iterator[tuple[ClaimedTask, Json]]:
        """Take out at most `most` tasks whose next poll is due, each with the token to poll with."""
        for key, progress in self.polls.pop_due(self._monotonic(), max(0, most)):
            held = self.get(key)
            if held is not None and held.state is ClaimState.WAITING:
                yield held, progress


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


class Intake:
    """A bounded set of task ids, first in first out, and the cancel requests.  Thread-safe.

    Hints that do not fit are dropped: a hint is only a hint, and the redelivery duty repeats it.

    :ivar ids: the hinted tasks; to read.
    :ivar cancels: any thread appends to it; the work loop takes from it.
    :param most: ids held at the most.
    """

    def __init__(self, most: int = 100_000) -> None:
        self.cancels: collections.deque[CancelRequest] = collections.deque()
        self._most = most
        self.ids: dict[TaskId, None] = {}
        self._lock = threading.Lock()

    def enqueue(self, task_ids: Iterable[TaskId]) -> int:
        """Remember the ids; return how many were dropped."""
        dropped = 0
        with self._lock:
            for task_id in task_ids:
                if len(self.ids) >= self._most:
                    dropped += task_id not in self.ids
                else:
                    self.ids[task_id] = None
        return dropped

    def take(self, most: int) -> list[TaskId]:
        """Take out at most `most` ids, oldest first."""
        with self._lock:
            task_ids = [task_id for task_id, _ in zip(self.ids, range(max(0, most)), strict=False)]
            for task_id in task_ids:
                del self.ids[task_id]
        return task_ids

    def clear(self) -> None:
        """Forget all hints: the conductor drains."""
        with self._lock:
            self.ids.clear()
