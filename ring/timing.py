"""The arithmetic of membership: intervals, and which members are dead.  Pure.

A member is dead when it has been silent for the timeout, by the clock of the observing process, or when it
has left.  A missing record means nothing: a backend forgets members after timeouts of its own, and all of
them when it loses its memory, while they still work on what they own.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..settings import Seconds, setting

LONGEST_HEARTBEAT = 10.0
LEAST_PROGRESS = 5.0
"""Seconds: a database under load may take that long for one transaction, however short the timeout is."""
LEFT = "left"
"""State of a member that has left."""


@dataclass(frozen=True)
class MembershipTiming:
    """The intervals of a membership.

    A heartbeat takes at most 10 seconds, for backends forget a member after 30 without one.  While a member
    is silent the others are read when it counts as dead, so `poll` delays no takeover.

    :raises ValueError: they contradict each other; says how.
    """

    heartbeat: Seconds = setting(
        "heartbeat",
        1.5,
        "Seconds between two heartbeats. A shorter interval detects a death sooner, and costs one more "
        "write to the backend per conductor and interval.",
    )
    timeout: Seconds = setting(
        "timeout",
        5.0,
        "Seconds without a heartbeat after which a conductor counts as dead and others take over its work. "
        "At least three heartbeats. A value that is too short declares a busy conductor dead.",
    )
    poll: Seconds = setting(
        "poll",
        1.5,
        "Seconds between two reads of the group's members; at most half the timeout. A shorter interval "
        "notices unannounced changes sooner, and costs one more read of the backend.",
    )

    def __post_init__(self) -> None:
        if not all(0 < value < math.inf for value in (self.heartbeat, self.timeout, self.poll)):
            raise ValueError("membership heartbeat, timeout and poll must be above 0 seconds")
        if self.heartbeat > LONGEST_HEARTBEAT:
            raise ValueError(
                f"membership heartbeat ({self.heartbeat} s) must be at most {LONGEST_HEARTBEAT:g} s, or "
                f"the backend would forget members that are alive"
            )
        if self.timeout < 3 * self.heartbeat:
            raise ValueError(
                f"membership timeout ({self.timeout} s) must be at least three heartbeats "
                f"({self.heartbeat} s each), or one lost heartbeat would count as a death"
            )
        if self.poll > self.timeout / 2:
            raise ValueError(
                f"membership poll ({self.poll} s) must be at most half the timeout ({self.timeout} s), or "
                f"the heartbeats of a living member would be read too late"
            )

    @property
    def self_stop(self) -> float:
        """Seconds without a confirmed heartbeat after which a member stops its own work.

        It ends one heartbeat before the others may take over.
        """
        return self.timeout - self.heartbeat

    @property
    def settling(self) -> float:
        """Seconds after a change within which every member has read it."""
        return 1.5 * self.poll

    @property
    def silence(self) -> float:
        """Seconds of watching without a heartbeat after which an observer calls a member silent.

        One or two lost heartbeats are not enough, and no member is dead before the timeout.
        """
        return 3 * self.heartbeat

    @property
    def progress(self) -> float:
        """Seconds without progress of a member's own work after which it leaves the ring."""
        return max(self.timeout, LEAST_PROGRESS)

    def watched(self, elapsed: float) -> float:
        """Return the seconds since the last read that count as watching.

        At most two intervals count, or half the timeout.  In the rest we waited for the backend, which may
        have lost the others' heartbeats, too: they must not all be dead when it answers again.
        """
        return min(elapsed, 2 * self.poll, self.timeout / 2)


@dataclass(frozen=True)
class Sign:
    """The last heartbeat of a member.

    :ivar beat: its counter.
    :ivar quiet: seconds of watching since the counter changed.
    """

    beat: tuple[str, int]
    quiet: float


def watch(
    before: Mapping[str, Sign], beats: Mapping[str, tuple[str, int]], elapsed: float
) -> dict[str, Sign]:
    """Return the heartbeats after one more read; a host that is missing from `beats` is silent.

    Only our own watching counts, never the others' clocks.  For time in which the backend could not be read
    the caller passes 0.

    :param beats: host -> (incarnation, counter) as read now.
    :param elapsed: seconds since the last read.
    """
    signs = {host: Sign(sign.beat, sign.quiet + elapsed) for host, sign in before.items()}
    for host, beat in beats.items():
        sign = before.get(host)
        if sign is None or sign.beat != beat:
            signs[host] = Sign(beat, 0.0)
    return signs


def alive_hosts(signs: Mapping[str, Sign], timeout: float) -> frozenset[str]:
    """Return the hosts that have been silent for less than the timeout."""
    return frozenset(host for host, sign in signs.items() if sign.quiet < timeout)


def latest(records: Iterable[Mapping[str, object]]) -> dict[str, Mapping[str, object]]:
    """Return one record of each host: the one with the newest start, then the highest counter."""
    newest: dict[str, Mapping[str, object]] = {}
    for record in sorted(records, key=lambda r: (float(str(r["started_at"])), int(str(r["beat"])))):
        newest[str(record["host"])] = record
    return newest
