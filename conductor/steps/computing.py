"""The turns of steps that compute much: one at a time, fair by project, and within a budget over time.

Python computes in one thread of a process at a time.  If the steps of one project computed in all threads of
a conductor, each other thread would wait for all of them, again and again.

So what a step computes begins with a small budget, which is enough for almost every template.  If that is
exceeded, it continues in a turn of its project, with the usual budget.  A project has one turn at a time, and
of the turns that wait the project goes first that has used least of late.  The values that its turns make
count against bytes that it may make in a second.  A step that gets no turn holds no thread: it is run again
when its project may have one.

All that is evaluated or compiled in the thread of a step, by whatever code, has its budget from here: see
`template.budget.SOURCE`.
"""

import collections
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ...db.engine import in_transaction
from ...resources.contract.errors import Cancelled
from ...template.budget import Budget, BudgetLimits
from ...template.sandbox.fair_shares import FairShares

SMALL = BudgetLimits(bytes=512 * 1024, steps=20_000, seconds=0.05)
"""Limits of what a step computes without a turn, as long as the service's are not below them."""
LONGEST_WAIT = 2.0
"""Seconds for which a step waits for a turn on its thread."""
LOOK = 0.5
"""Seconds after which a step that waits for a further turn looks whether it is to stop."""
SOONEST = 1.0
"""Seconds after which a step that got no turn is run again, at the earliest.  If a turn will probably be free
sooner, the step waits for it; of those for whom none will be, one waits."""
RATE = 64 * 1024 * 1024
"""Bytes of values that the turns of one project may make in a second, in the mean."""
BURST = 256 * 1024 * 1024
"""Bytes that they may make at once, after a pause."""
MOST_REMEMBERED = 1000
"""Projects whose use is remembered where it is over."""
_FIRST_MEAN = 0.1
_TURNS_IN_MEAN = 16


class NoTurn(Exception):
    """The step gets no turn now.

    :ivar after: the seconds after which it is run again.
    """

    def __init__(self, after: float) -> None:
        super().__init__(f"its project uses much processor time; it continues in {after:.1f} s")
        self.after = after


class Computing:
    """Gives turns.  Thread-safe.

    :param monotonic: seconds that never jump.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._shares = FairShares(1, monotonic=monotonic)
        self._changed = threading.Condition()
        self._waiting: collections.Counter[str] = collections.Counter()
        self._mean = _FIRST_MEAN
        self._paid_at: dict[str, float] = {}
        self._slots: dict[str, float] = {}

    def take(self, project: str, stop: threading.Event | None = None) -> float:
        """Take a turn; return when it began.

        :param stop: the step waits until it has the turn, or this is set; None: it may be refused.
        :raises NoTurn: the project has to wait.
        :raises Cancelled: the step is to stop.
        """
        with self._changed:
            if stop is None:
                now = self._monotonic()
                waiting = self._waiting[project]
                is_long = waiting > 0 and (waiting + 1) * self._mean > SOONEST
                is_over = self._paid_at.get(project, now) > now
                if is_long or is_over or not self._wait(project, LONGEST_WAIT):
                    raise NoTurn(self._next_slot(project))
            else:
                while not self._wait(project, LOOK):
                    if stop.is_set():
                        raise Cancelled
        return self._monotonic()

    def release(self, project: str, size: int, began: float) -> None:
        """End a turn.

        :param size: bytes of the values that it has made.
        """
        with self._changed:
            self._shares.release(project)
            self._charge(project, size, self._monotonic() - began)
            self._changed.notify_all()

    def _wait(self, project: str, longest: float) -> bool:
        """Take the only place when it is the project's turn; return False if others had it for too long."""
        self._waiting[project] += 1
        try:
            is_free = self._changed.wait_for(lambda: self._shares.first_of(self._waiting) == project, longest)
            if is_free:
                self._shares.take(project)
            return is_free
        finally:
            self._waiting[project] -= 1
            if not self._waiting[project]:
                del self._waiting[project]
            self._changed.notify_all()

    def _next_slot(self, project: str) -> float:
        """Return the seconds after which a step is run again: one after the other, as turns take it."""
        now = self._monotonic()
        begins = max(now, self._slots.get(project, now), self._paid_at.get(project, now))
        self._slots[project] = begins + self._mean
        return max(SOONEST, begins - now)

    def _charge(self, project: str, size: int, seconds: float) -> None:
        now = self._monotonic()
        self._mean += (seconds - self._mean) / _TURNS_IN_MEAN
        self._paid_at[project] = max(self._paid_at.get(project, 0.0), now - BURST / RATE) + size / RATE
        for use in (self._paid_at, self._slots):
            if len(use) > MOST_REMEMBERED:
                for name in [name for name, at in use.items() if at <= now]:
                    del use[name]


@dataclass
class StepComputing:
    """The budgets of one run of a step; its thread uses it.

    A step that has had a turn gets all further ones, and waits for them.  If one were refused, the step would
    begin again without what it has computed, and might never get as many turns as it needs in one run.  In a
    transaction it takes none: whoever has the turn may wait for a row that the transaction has locked.

    :ivar project: the project that the turns count for.
    :ivar stop: set when the step is to stop.
    """

    turns: Computing
    project: str
    stop: threading.Event
    _may_be_refused: bool = field(default=True, init=False)
    _holds_turn: bool = field(default=False, init=False)
    _bytes: int = field(default=0, init=False)
    _steps: int = field(default=0, init=False)

    def stopping(self) -> None:
        """Let the step compute what it needs to stop: no turn is refused any more."""
        self._may_be_refused = False
        self.stop = threading.Event()

    @contextlib.contextmanager
    def budget(self, limits: BudgetLimits) -> Iterator[Budget]:
        """Give a budget for one computation, which may have to wait for a turn.

        :raises NoTurn: in the computation, if the project has to wait.
        :raises Cancelled: in the computation, if the step is to stop while it waits for a further turn.
        """
        turn: list[float] = []

        def take_turn() -> None:
            if not (self._holds_turn or in_transaction()):
                stop = None if self._may_be_refused else self.stop
                turn.append(self.turns.take(self.project, stop))
                self._may_be_refused = False
                self._holds_turn = True
                self._bytes = self._steps = 0

        budget = _StepBudget(limits, take_turn, self._bytes, self._steps)
        try:
            yield budget
        finally:
            self._bytes += budget.bytes - budget.bytes_before
            self._steps += budget.steps - budget.steps_before
            budget.end()
            if turn:
                size = self._bytes
                self._holds_turn = False
                self._bytes = self._steps = 0
                self.turns.release(self.project, size, turn[0])


class _StepBudget(Budget):
    """A budget that is small until a turn is taken.

    :ivar bytes_before, steps_before: the part of `bytes` and `steps` that the step has taken before.
    :param take_turn: called once, when the small one is spent.
    """

    def __init__(self, limits: BudgetLimits, take_turn: Callable[[], None], size: int, steps: int) -> None:
        small = BudgetLimits(
            bytes=_least(SMALL.bytes, limits.bytes),
            steps=_least(SMALL.steps, limits.steps),
            seconds=limits.seconds,
        )
        super().__init__(small)
        self.bytes = self.bytes_before = size
        self.steps = self.steps_before = steps
        self._usual = limits
        self._take_turn: Callable[[], None] | None = take_turn

    def extend(self, refusal: str) -> None:
        """Continue with the usual limits in a turn.

        :raises LimitExceeded: they are exceeded.
        :raises NoTurn: the project has to wait.
        """
        if self._take_turn is None:
            super().extend(refusal)
            return
        self._take_turn()
        self._take_turn = None
        self.limits = self._usual
        self.bytes -= self.bytes_before
        self.steps -= self.steps_before
        self.bytes_before = self.steps_before = 0

    def end(self) -> None:
        """Let nobody take from it any more who would have to take a turn, which nobody would end."""
        if self._take_turn is not None:
            self._take_turn = _refuse_turn

    def _check(self) -> None:
        # Not all work is counted in steps.
        if self._take_turn is not None and self._clock() - self._since > SMALL.seconds:
            self.extend("")
        super()._check()


def _least(small: int, usual: int) -> int:
    return min(small, usual) if usual else small


def _refuse_turn() -> None:
    raise AssertionError("the computation of this budget has ended")
