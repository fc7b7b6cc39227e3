"""The order in which projects take places that all of them share: helper processes, threads of the API."""

import math
import time
from collections.abc import Callable, Iterable

HALF_LIFE = 10.0
"""Seconds after which the past use of a project counts half."""
LIGHT = 1.0
"""Seconds of places' time below which a project is a light user."""
MOST_REMEMBERED = 1000
"""Projects that hold nothing and are still remembered."""


class _Use:
    """The use that one project makes of the places.

    :ivar held: places that it holds.
    :ivar spent: seconds of its places, with HALF_LIFE, at the moment `at`.
    :ivar turns: number of places that it took, with HALF_LIFE, at the moment `at`.
    """

    def __init__(self, now: float) -> None:
        self.held = 0
        self.spent = 0.0
        self.turns = 0.0
        self.at = now

    def spent_until(self, now: float) -> float:
        return self.spent * self._decay(now) + self.held * max(0.0, now - self.at)

    def change(self, places: int, now: float) -> None:
        self.spent = self.spent_until(now)
        self.turns = self.turns * self._decay(now) + max(0, places)
        self.at = now
        self.held += places

    def mean(self, now: float) -> float:
        """Return the seconds of one turn."""
        return self.spent_until(now) / max(1.0, self.turns * self._decay(now))

    def _decay(self, now: float) -> float:
        share: float = 0.5 ** (max(0.0, now - self.at) / HALF_LIFE)
        return share


class FairShares:
    """Decides who takes the next place.  Not thread-safe: the user holds a lock.

    A project holds its share of the places at most.  The last one that is free is kept for light users, so
    that a newcomer need not wait for the end of others' computations.  Of those who wait, the project that
    holds the fewest goes first; of several, the one that has used least of late.  A use below twice the least
    one counts as equal to it, and then the one goes first that came first.  Were uses compared exactly, or
    with fixed bounds, of many projects with the same load each would wait for seconds now and then.

    :param places: the number of places; a single one is not kept for light users.
    :param share: places of one project; 0: half of them, rounded up.
    :param monotonic: seconds that never jump.
    :ivar share: places of one project.
    """

    def __init__(
        self, places: int, *, share: int = 0, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.share = min(share or (places + 1) // 2, places)
        self._free = places
        self._kept = 1 if self.share < places else 0
        self._monotonic = monotonic
        self._uses: dict[str, _Use] = {}

    def is_heavy(self, project: str) -> bool:
        """Return whether the project is no light user."""
        use = self._uses.get(project)
        return use is not None and use.spent_until(self._monotonic()) > LIGHT

    def expected_wait(self, project: str, waiting: int) -> float:
        """Return the seconds that the last of so many waits for its project's share, by the project's use.

        While there is room for all of them none waits, however long the project's turns take.
        """
        use = self._uses.get(project)
        if use is None or waiting <= self.room(project):
            return 0.0
        return waiting * use.mean(self._monotonic()) / self.share

    def first_of(self, waiting: Iterable[str]) -> str | None:
        """Return the project that takes the next place; None: none may take one now.

        :param waiting: projects, in the order in which they came.
        """
        now = self._monotonic()
        uses = {project: self._held_and_spent(project, now) for project in waiting if self.room(project)}
        if not uses:
            return None
        least = max(LIGHT, min(spent for _, spent in uses.values()))

        def rank(project: str) -> tuple[int, int]:
            seats, spent = uses[project]
            return seats, 0 if spent <= LIGHT else math.frexp(spent / least)[1]

        return min(uses, key=rank)

    def room(self, project: str) -> int:
        """Return the number of places that the project may take now."""
        use = self._uses.get(project)
        seats = 0 if use is None else use.held
        reserved = self._kept if self.is_heavy(project) else 0
        return max(0, min(self.share - seats, self._free - reserved))

    def take(self, project: str) -> None:
        """Give the project a place; `first_of` has named it."""
        self._free -= 1
        now = self._monotonic()
        self._uses.setdefault(project, _Use(now)).change(1, now)

    def release(self, project: str) -> None:
        """Take a place back."""
        self._free += 1
        self._uses[project].change(-1, self._monotonic())
        if len(self._uses) > MOST_REMEMBERED:
            self._forget()

    def _held_and_spent(self, project: str, now: float) -> tuple[int, float]:
        use = self._uses.get(project)
        return (0, 0.0) if use is None else (use.held, use.spent_until(now))

    def _forget(self) -> None:
        """Forget the half that has used least."""
        now = self._monotonic()
        idle = [project for project, use in self._uses.items() if not use.held]
        for project in sorted(idle, key=lambda name: self._uses[name].spent_until(now))[: len(idle) // 2]:
            del self._uses[project]
