"""The time of the database's server, by which deadlines are stored and judged in every process.

A process measures now and then how far the server's clock is from its own monotonic one, and counts on from
there: so neither a host whose clock is wrong, nor one whose clock is set while the process runs, ends
anything early or late.  SQLite has no server: there it is the clock of the host, which all processes share.
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
"""The same while the last one was of no use, or in doubt."""
CONFIRMED_AFTER = 2.0
"""Seconds after which the server's time is taken that has moved to where this host's own clock is, too."""
BELIEVED_AFTER = 60.0
"""The same where only the server says so: time to set its clock right before anything is ended by it."""
TELL_EVERY = 60.0
"""Seconds between two warnings of the same."""


@dataclass(frozen=True)
class _Doubt:
    """A time of the server's that does not follow from the one before.

    :ivar offset: from our monotonic clock.
    :ivar since: by our monotonic clock.
    """

    offset: float
    since: float


class ServerClock:
    """Seconds since the epoch by the database server's clock.  Thread-safe.

    Before the first measurement it is the host's clock.  If the server's time jumps, the clock counts on as
    before until the jump is confirmed; who ends things by time pauses until then.

    :param wall: the host's clock.
    :param monotonic: seconds that never jump.
    :param tolerance: seconds that the server's time may be away from what was expected.
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
        self._told_at = float("-inf")

    def __call__(self) -> float:
        """Return the time now; in doubt the later one, so that no deadline is stored too early."""
        offset, doubt = self._offset, self._doubt
        if offset is None:
            return self.wall()
        return self.monotonic() + (offset if doubt is None else max(offset, doubt.offset))

    @property
    def is_sure(self) -> bool:
        """Whether what has a deadline may be ended by this clock."""
        return self._offset is not None and self._doubt is None

    @property
    def host_ahead(self) -> float:
        """Seconds by which the host's clock is ahead of the server's; 0 before the first measurement."""
        return 0.0 if self._offset is None else self.wall() - self.monotonic() - self._offset

    def trouble(self) -> str | None:
        """Return in words why the clock is not sure; None: it is, or nothing was measured yet."""
        doubt, offset = self._doubt, self._offset
        if doubt is None or offset is None:
            return None
        moved = doubt.offset - offset
        return f"clock in doubt: the database's time has jumped by {moved:+.1f} s; timeouts pause"

    def take_turn(self) -> bool:
        """Return whether a measurement is due; who is told so makes it."""
        with self._lock:
            now = self.monotonic()
            if now < self._next:
                return False
            self._next = now + AGAIN
            return True

    def measured(self, server: float, before: float, after: float) -> None:
        """Take a measurement.

        :param server: the server's time at some moment between
        :param before, after: by our monotonic clock.
        """
        with self._lock:
            if after - before <= self._tolerance:
                self._take(server - after, server - before, after)
            else:
                LOG.debug("The database's time took %.1f s to arrive: of no use", after - before)

    def _take(self, low: float, high: float, now: float) -> None:
        """The true offset is between the two; the one we have stays as long as it may be that."""
        old = self._offset
        new = (low + high) / 2 if old is None else min(max(old, low), high)
        if old is None or abs(new - old) <= self._tolerance:
            if self._doubt is not None:
                LOG.warning("The database's time is again what it was")
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
            LOG.warning("The database's time has jumped by %+.1f s, and stays so: it counts", new - old)

    def _compare(self, now: float) -> None:
        ahead = self.host_ahead
        if abs(ahead) > self._tolerance and now >= self._told_at + TELL_EVERY:
            self._told_at = now
            LOG.warning(
                "This host's clock differs from the database's by %+.1f s; the database's time counts. "
                "Check NTP on both hosts",
                ahead,
            )
