"""The turns of steps that compute much: one at a time, fair by project, and within a budget over time.

Python computes in one thread of a process at a time.  If the steps of one project computed in all threads of
a conductor, each other thread would wait for all of them, again and again.

So a step computes with a small budget first, which is enough for almost every template.  If that is exceeded,
it begins again in a turn of its project, with the usual budget of a step.  A project has one turn at a time,
and of the turns that wait the project goes first that has used least of late.  The values that its turns make
count against bytes that it may make in a second.  A step that gets no turn holds no thread: it is run again
when its project may have one.
"""

import contextlib
import threading
import time
import typing
from collections.abc import Callable, Iterator

from ...template.budget import Budget, BudgetLimits
from ...template.errors import TemplateError
from ...template.sandbox import evaluator
from ...template.sandbox.evaluator import charged_to
from ...template.sandbox.fair_shares import FairShares

SMALL = BudgetLimits(bytes=512 * 1024, steps=20_000, seconds=0.0)
"""Budget of a step without a turn: some hundredths of a second."""
LONGEST_WAIT = 2.0
"""Seconds for which one step of a project waits for a turn on its thread."""
SOONEST = 1.0
"""Seconds after which a step that got no turn is run again, at the earliest."""
RATE = 64 * 1024 * 1024
"""Bytes of values that the turns of one project may make in a second, in the mean."""
BURST = 256 * 1024 * 1024
"""Bytes that they may make at once, after a pause."""
MOST_REMEMBERED = 1000
"""Projects whose use is remembered where it is over."""
_FIRST_MEAN = 0.1
_TURNS_IN_MEAN = 16
T = typing.TypeVar("T")


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
        self._waiting: dict[str, None] = {}
        self._mean = _FIRST_MEAN
        self._paid_at: dict[str, float] = {}
        self._slots: dict[str, float] = {}

    def result_of(self, project: str, compute: Callable[[Budget], T]) -> T:
        """Return what a function computes within the budget that it gets, which counts for a project.

        :param compute: is called twice, where the first budget is too small.
        :raises NoTurn: the project has to wait.
        :raises TemplateError: the function's own errors.
        """
        small = Budget(SMALL)
        account = evaluator.account()
        seconds = None if account is None else account.seconds_left()
        try:
            return compute(small)
        except TemplateError:
            if not is_spent(small):
                raise
        budget = Budget()
        # The expressions of the first try do not count: they are evaluated again.
        anew = contextlib.nullcontext() if seconds is None else charged_to(project, seconds)
        with self._turn(project, budget), anew:
            return compute(budget)

    @contextlib.contextmanager
    def _turn(self, project: str, budget: Budget) -> Iterator[None]:
        with self._changed:
            now = self._monotonic()
            if project in self._waiting or self._paid_at.get(project, now) > now:
                raise NoTurn(self._next_slot(project))
            self._wait(project)
        began = self._monotonic()
        try:
            yield
        finally:
            with self._changed:
                self._shares.release(project)
                self._charge(project, budget.bytes, self._monotonic() - began)
                self._changed.notify_all()

    def _wait(self, project: str) -> None:
        """Take the only place when it is the project's turn.

        :raises NoTurn: others had it for too long.
        """
        self._waiting[project] = None
        try:
            is_free = self._changed.wait_for(
                lambda: self._shares.first_of(self._waiting) == project, LONGEST_WAIT
            )
            if not is_free:
                raise NoTurn(self._next_slot(project))
            self._shares.take(project)
        finally:
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


def is_spent(budget: Budget) -> bool:
    """Return whether a budget has been exceeded, so that a larger one may be enough."""
    return budget.bytes > budget.limits.bytes > 0 or budget.steps > budget.limits.steps > 0
