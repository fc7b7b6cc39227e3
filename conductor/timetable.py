"""Decides when each duty begins its next round."""

import enum
import math
import typing
from collections.abc import Mapping


class Cadence(enum.Enum):
    """The times at which a duty runs."""

    STEADY = "at its interval; while the conductor rests, with its forecasts, so that it wakes once for all"
    """Its longest pause is its interval and that of the forecasts: it comes when a rest begins."""
    ACTIVE = "at its interval while the conductor is active"
    FORECAST = "when the lookout has to make a forecast"


class Outlook(typing.Protocol):
    """The state of a lookout, for the timetable of the duties.  Moments are by the monotonic clock."""

    def is_resting(self, now: float) -> bool:
        """Return whether the duties rest."""

    def forecast_at(self, now: float) -> float:
        """Return when the next forecast is to be made."""

    def changes_at(self, now: float) -> float:
        """Return when the rest ends by itself; infinity: the duties do not rest."""


class AlwaysActive:
    """The outlook of a conductor that never rests; see Outlook."""

    def is_resting(self, now: float) -> bool:
        """Return False: the duties do not rest."""
        return False

    def forecast_at(self, now: float) -> float:
        """Return infinity: nobody makes forecasts."""
        return math.inf

    def changes_at(self, now: float) -> float:
        """Return infinity: nothing changes."""
        return math.inf


class Timetable:
    """The moments at which duties begin their next rounds, by the monotonic clock.  Used by one thread.

    :param intervals: seconds between two rounds, by duty.
    :param cadences: cadences of the same duties.
    """

    def __init__(
        self, intervals: Mapping[str, float], cadences: Mapping[str, Cadence], outlook: Outlook
    ) -> None:
        self._intervals = intervals
        self._cadences = cadences
        self._outlook = outlook
        self._next = dict.fromkeys(intervals, -math.inf)

    def start(self, now: float) -> None:
        """Let each duty begin after one interval; without this they begin at once."""
        self._next = {name: now + interval for name, interval in self._intervals.items()}

    def take_due(self, now: float) -> list[str]:
        """Return the duties that begin a round now; each of them is due again after its interval."""
        due = [name for name in self._intervals if self._next_round(name, now) <= now]
        for name in due:
            self._next[name] = now + self._intervals[name]
        return due

    def resting(self, now: float) -> list[str]:
        """Return the duties that do not run at their interval now."""
        if not self._outlook.is_resting(now):
            return []
        return [name for name, cadence in self._cadences.items() if cadence is Cadence.ACTIVE]

    def next_at(self, now: float) -> float:
        """Return when something is due next, unless a stir comes before."""
        rounds = (self._next_round(name, now) for name in self._intervals)
        return min(self._outlook.changes_at(now), min(rounds, default=math.inf))

    def _next_round(self, name: str, now: float) -> float:
        cadence = self._cadences[name]
        if cadence is Cadence.ACTIVE and self._outlook.is_resting(now):
            return math.inf
        if cadence is Cadence.FORECAST or self._outlook.is_resting(now):
            return max(self._next[name], self._outlook.forecast_at(now))
        return self._next[name]
