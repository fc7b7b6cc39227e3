"""The time of the database's server, by which every process stores and compares deadlines.

A process measures every few seconds how far the server's clock is from its own monotonic clock, and adds that
to the latter.  So nothing ends early or late because a host's clock is wrong, or is set while the process
runs.  SQLite has no server: there it is the clock of the host, which all processes share.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

LOG = logging.getLogger(__name__)
EVERY = 5.0
"""Seconds between two measurements; each is one cheap statement of a transaction that runs anyway."""
AGAIN = 1.0
"""The same while the last measurement was useless, or the clock is in doubt."""
CONFIRMED_AFTER = 2.0
"""Seconds after which a jump of the server's time is accepted if this host's clock has the new time, too."""
BELIEVED_AFTER = 60.0
"""The same if only the server has the new time: an operator may correct its clock in the meantime."""
WARN_EVERY = 60.0
"""Seconds between two warnings about the same difference."""


@dataclass(frozen=True)
class _Doubt:
    """A time of the server that does not follow from the one before.

    :ivar offset: seconds from our monotonic clock to the new time.
    :ivar since: when it was measured first, by our monotonic clock.
    """

    offset: float
    since: float


class ServerClock:
    """The clock of the database server, in seconds since the epoch.  Thread-safe.

    Before the first measurement it shows the host's time.  If the server's time jumps, the clock runs on as
    before until the jump is confirmed.  Until then duties that end things by time pause.

    :param wall: the host's clock.
    :param monotonic: seconds that never jump.
    :param tolerance: seconds by which the server's time may differ from the expected time.
    """

    def __init__(
        self,
        *,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        tolerance: float = 1.0,
    ) -> None:
        self.wall = wall
        self.monotonic = monotonic
        self._tolerance = tolerance
        self._lock = threading.Lock()
        self._offset: float | None = None
        self._doubt: _Doubt | None = None
        self._next = float("-inf")
        self._warned_at = float("-inf")

    def __call__(self) -> float:
        """Return the time now; in doubt the later one, so that no deadline is stored too early."""
        offset, doubt = self._offset, self._doubt
        if offset is None:
            return self.wall()
        return self.monotonic() + (offset if doubt is None else max(offset, doubt.offset))

    @property
    def is_sure(self) -> bool:
        """Return whether duties may end things by this clock."""
        return self._offset is not None and self._doubt is None

    @property
    def host_ahead(self) -> float:
        """Return the seconds by which the host's clock is ahead; 0 before the first measurement."""
        return 0.0 if self._offset is None else self.wall() - self.monotonic() - self._offset

    def trouble(self) -> str | None:
        """Return in words why the clock is not sure; None: it is sure, or was not measured yet."""
        doubt, offset = self._doubt, self._offset
        if doubt is None or offset is None:
            return None
        moved = doubt.offset - offset
        return f"clock in doubt: the database's time has jumped by {moved:+.1f} s; timeouts pause"

    def take_turn(self) -> bool:
        """Return whether a measurement is due; a caller that gets True makes it."""
        with self._lock:
            now = self.monotonic()
            if now < self._next:
                return False
            self._next = now + AGAIN
            return True

    def measured(self, server: float, before: float, after: float) -> None:
        """Accept a measurement, or leave it out if it took too long.

        :param server: the server's time at some moment between the two others.
        :param before: our monotonic clock when the server was asked.
        :param after: our monotonic clock when it had answered.
        """
        with self._lock:
            if after - before <= self._tolerance:
                self._take(server - after, server - before, after)
            else:
                LOG.debug("Ignoring a measurement of the database's time that took %.1f s", after - before)

    def _take(self, low: float, high: float, now: float) -> None:
        """Accept that the true offset is between the two; the known one stays while it may be true."""
        old = self._offset
        new = (low + high) / 2 if old is None else min(max(old, low), high)
        if old is None or abs(new - old) <= self._tolerance:
            if self._doubt is not None:
                LOG.warning("The database's time has jumped back to the expected time")
            self._offset, self._doubt, self._next = new, None, now + EVERY
        else:
            self._question(old, new, now)
        self._compare(now)

    def _question(self, old: float, new: float, now: float) -> None:
        doubt = self._doubt
        if doubt is None or abs(new - doubt.offset) > self._tolerance:
            self._doubt = _Doubt(new, now)
            LOG.warning("The database's time has jumped by %+.1f s: timeouts pause", new - old)
            return
        witnessed = abs(self.wall() - self.monotonic() - new) <= self._tolerance
        if now - doubt.since >= (CONFIRMED_AFTER if witnessed else BELIEVED_AFTER):
            self._offset, self._doubt, self._next = new, None, now + EVERY
            LOG.warning("The database's time has jumped by %+.1f s for good: the new time counts", new - old)

    def _compare(self, now: float) -> None:
        ahead = self.host_ahead
        if abs(ahead) > self._tolerance and now >= self._warned_at + WARN_EVERY:
            self._warned_at = now
            LOG.warning(
                "This host's clock differs from the database's by %+.1f s; the database's time counts. "
                "Check NTP on both hosts",
                ahead,
            )
