"""The tasks a conductor holds, and when it looks at which again."""

import contextlib
import heapq
import itertools
import threading
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ...db.ids import TaskId, TraversalId
from ...db.work.claim import Claim
from ...observe import logs
from ..steps.outcomes import StepResult

Json = typing.Any
T = typing.TypeVar("T")


class TimerQueue(typing.Generic[T]):
    """Items with the moment at which they are due.  Not thread-safe: the pipeline's own thread uses it."""

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
        """The earliest moment, or None."""
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now: float, most: int) -> list[T]:
        """Take out at most `most` items whose moment has come, the longest due first."""
        due: list[T] = []
        while self._heap and len(due) < most and self._heap[0][0] <= now:
            due.append(heapq.heappop(self._heap)[2])
        return due


@dataclass
class ClaimedTask:
    """A claimed task.

    :ivar since: when it was claimed.
    :ivar begun_at: when its step began that runs now, None: none does; `thread`: its name.
    :ivar stop: set when its step shall end.
    :ivar busy: a step runs or waits for a thread, or its result is being stored.
    :ivar running: the step has not ended; kept by workers.py, as `given_up` and `job` are.
    :ivar given_up: nobody counts on the step's end any more.
    :ivar job: the pool's handle of the step.
    """

    claim: Claim
    since: float = 0.0
    stop: threading.Event = field(default_factory=threading.Event)
    busy: bool = False
    running: bool = False
    given_up: bool = False
    job: Json = None
    begun_at: float | None = None
    thread: int | None = None


@dataclass(frozen=True)
class WorkerView:
    """What a pipeline has at hand.

    :ivar waiting: tasks known by hint that wait for a free thread.
    :ivar held: tasks that are claimed.
    :ivar running: those whose steps have not ended, also if nobody counts on that any more.
    """

    waiting: int
    held: Sequence[ClaimedTask]
    running: Sequence[ClaimedTask]


def claim_lines(claim: Claim) -> contextlib.AbstractContextManager[None]:
    """Inside, what the log says belongs to the claim's stack."""
    task = claim.task
    request = logs.named(task.request, task.traversal)
    return logs.about(request=request, project=claim.tenant, stack=task.stack_id)


class ClaimedTasks:
    """Not thread-safe, but for `all`: the mover's thread uses it."""

    def __init__(self, clock: Callable[[], float], monotonic: Callable[[], float]) -> None:
        self._clock = clock
        self._monotonic = monotonic
        self._held: dict[TaskId, ClaimedTask] = {}
        self._timers: TimerQueue[tuple[TaskId, int, Json]] = TimerQueue()

    def __len__(self) -> int:
        return len(self._held)

    def all(self) -> list[ClaimedTask]:
        """Those held at this moment, from any thread."""
        return list(self._held.values())

    def add(self, claim: Claim) -> ClaimedTask:
        """A task that was claimed now."""
        held = self._held[claim.task.id] = ClaimedTask(claim, self._clock())
        return held

    def drop(self, task_id: TaskId) -> ClaimedTask | None:
        """It is not ours any more; what it was."""
        return self._held.pop(task_id, None)

    def drop_all(self) -> list[ClaimedTask]:
        """Nothing is ours any more: what was; what runs of it is asked to stop."""
        dropped = list(self._held.values())
        for held in dropped:
            held.stop.set()
        self._held.clear()
        return dropped

    def has(self, task_id: TaskId, attempt: int) -> bool:
        """Whether we hold that attempt."""
        return self.get(task_id, attempt) is not None

    def get(self, task_id: TaskId, attempt: int) -> ClaimedTask | None:
        """That attempt, if we hold it."""
        held = self._held.get(task_id)
        return held if held is not None and held.claim.task.attempt == attempt else None

    def idle(self) -> list[tuple[TaskId, int]]:
        """(task, attempt) of what stands between two looks."""
        return [
            (held.claim.task.id, held.claim.task.attempt) for held in self._held.values() if not held.busy
        ]

    def of(self, traversal: TraversalId) -> list[ClaimedTask]:
        """Those of a traversal."""
        return [held for held in self._held.values() if held.claim.task.traversal == traversal]

    def poll_later(self, result: StepResult) -> None:
        """The task waits for its next look."""
        task = result.claim.task
        held = self._held[task.id]
        held.claim, held.busy = result.claim, False
        after = 0.0 if held.stop.is_set() else result.look_after or 0.0
        self._timers.add(self._monotonic() + after, (task.id, task.attempt, result.progress))

    def due(self, most: int) -> Iterator[tuple[ClaimedTask, Json]]:
        """At most so many of those whose next look is due, each with the token to look with."""
        for task_id, attempt, progress in self._timers.pop_due(self._monotonic(), max(0, most)):
            held = self.get(task_id, attempt)
            if held is not None and not held.busy:
                yield held, progress

    def timed(self) -> set[tuple[TaskId, int]]:
        """Return the claims (task, attempt) that wait for their next look."""
        return {(task_id, attempt) for task_id, attempt, _ in self._timers.items()}

    def next_poll(self) -> float | None:
        """The moment of it on the monotonic clock; None: none waits for one."""
        return self._timers.next_at()
