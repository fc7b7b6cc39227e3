"""This conductor as a member: its record in the group, and the warnings while it is not in the ring."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .group import Group, Record
from .timing import MembershipTiming

LOG = logging.getLogger(__name__)
WARN_EVERY = 60.0
"""Seconds between two warnings of a conductor that is not in the ring."""
DROPS = 3
"""Drops within a minute of which a conductor says why."""


PROCESS = 6
"""Characters of an incarnation that all incarnations of one process have in common."""


def process_of(member: str) -> str:
    """Return the part of a member's name (HOST/INCARNATION) that is the same as long as its process lives."""
    host, _, incarnation = member.rpartition("/")
    return f"{host}/{incarnation[:PROCESS]}"


@dataclass(frozen=True)
class LocalMember:
    """This conductor as the others see it."""

    host: str
    weight: float = 1.0
    version: str = "1.0"


class RecordWriter:
    """Writes our record, each time with a higher counter.  Used by the membership's thread.

    :param clock: seconds since the epoch.
    """

    def __init__(self, group: Group, clock: Callable[[], float]) -> None:
        self._group = group
        self._clock = clock
        self._started_at: float | None = None
        self._beat = 0

    def write(
        self, me: LocalMember, incarnation: str, state: str, read: Sequence[Record] | None = None
    ) -> None:
        """Send a heartbeat.

        :param read: the records of all members, as for `Group.write`.
        :raises GroupError: as `Group.write` raises it.
        """
        self._group.write(self._next(me, incarnation, state), read)

    def exchange(self, me: LocalMember, incarnation: str, state: str) -> list[Record] | None:
        """Send a heartbeat and read the records of all members by one request.

        :returns: as `Group.exchange`.
        :raises GroupError: as `Group.exchange` raises it.
        """
        return self._group.exchange(self._next(me, incarnation, state))

    def _next(self, me: LocalMember, incarnation: str, state: str) -> Record:
        if self._started_at is None:
            self._started_at = self._clock()
        self._beat += 1
        return {
            "host": me.host,
            "incarnation": incarnation,
            "weight": me.weight,
            "version": me.version,
            "state": state,
            "started_at": self._started_at,
            "beat": self._beat,
        }


class AbsenceWarning:
    """Warns, once a minute, while we are not in the ring.

    :ivar why: the reason, as far as it is known.
    :param first: seconds until the first warning.
    """

    def __init__(self, first: float) -> None:
        self.why = "it has not joined yet"
        self._first = first
        self._warned: float | None = None

    def warn_if_due(self, now: float, *, is_in: bool) -> None:
        """Warn if the last warning is a minute old.

        :param now: by the monotonic clock.
        :param is_in: whether we are in the ring.
        """
        if is_in or self._warned is None:
            self._warned = now + self._first - WARN_EVERY
        elif now - self._warned >= WARN_EVERY:
            self._warned = now
            LOG.warning("Not in the ring, so it does no work: %s", self.why)


class DropWarning:
    """Warns where this conductor drops out of the ring again and again because it does not renew in time.

    It distinguishes a busy process, which runs the membership's thread late, from a slow backend, which takes
    long for a heartbeat.
    """

    def __init__(self, timing: MembershipTiming) -> None:
        self._timing = timing
        self._drops: list[float] = []
        self._latest = 0.0
        self._slowest = 0.0

    def ran(self, late: float) -> None:
        """Remember by how many seconds the membership's thread ran later than it should have."""
        self._latest = max(self._latest, late)

    def took(self, seconds: float) -> None:
        """Remember for how long the backend had a heartbeat."""
        self._slowest = max(self._slowest, seconds)

    def dropped(self, now: float) -> None:
        """Warn at the third drop within a minute, and start to count again.

        :param now: by the monotonic clock.
        """
        self._drops = [moment for moment in self._drops if now - moment < WARN_EVERY] + [now]
        if len(self._drops) < DROPS:
            return
        busy = self._latest >= self._slowest
        LOG.warning(
            "Dropped out of the ring %d times within a minute: the thread that sends heartbeats ran up to "
            "%.1f s late, and the coordination backend took up to %.1f s for one. %s A larger "
            "[coordination] timeout (now %g s) makes the ring bear it; deaths are then detected later",
            len(self._drops),
            self._latest,
            self._slowest,
            "This host or process has more to do than it can." if busy else "The backend is slow.",
            self._timing.timeout,
        )
        self._drops.clear()
        self._latest = self._slowest = 0.0
