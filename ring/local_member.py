"""This conductor as a member: its record in the group, and the warning while it is not in the ring."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from .group import Group

LOG = logging.getLogger(__name__)
WARN_EVERY = 60.0
"""Seconds between two warnings of a conductor that is not in the ring."""


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

    def write(self, me: LocalMember, incarnation: str, state: str) -> None:
        """Send a heartbeat.

        :raises GroupError: as `Group.write` raises it.
        """
        if self._started_at is None:
            self._started_at = self._clock()
        self._beat += 1
        record = {
            "host": me.host,
            "incarnation": incarnation,
            "weight": me.weight,
            "version": me.version,
            "state": state,
            "started_at": self._started_at,
            "beat": self._beat,
        }
        self._group.write(record)


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
