"""The arithmetic of membership: intervals, and who is to be considered dead.  Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class MembershipTiming:
    """All in seconds.

    :ivar heartbeat: between two signs of life.  Shorter notices a death sooner; costs one write to the
        backend each, from every member.
    :ivar timeout: without a sign of life after which a member is dead.  Shorter takes over sooner; too short
        takes a busy or swapping conductor for a dead one.  At least three heartbeats.
    :ivar poll: between two looks at the others.  A death is noticed within timeout + poll.
    :raises ValueError: they contradict each other; says how.
    """

    heartbeat: float = 1.0
    timeout: float = 5.0
    poll: float = 1.0

    def __post_init__(self) -> None:
        if min(self.heartbeat, self.timeout, self.poll) <= 0:
            raise ValueError("membership heartbeat, timeout and poll must be above 0 seconds")
        if self.timeout < 3 * self.heartbeat:
            raise ValueError(
                f"membership timeout ({self.timeout} s) must be at least three heartbeats "
                f"({self.heartbeat} s each), or one lost sign of life would count as a death"
            )
        if self.poll > self.timeout / 2:
            raise ValueError(
                f"membership poll ({self.poll} s) must be at most half the timeout ({self.timeout} s), or a "
                f"living member's signs of life would be seen too late"
            )

    @property
    def self_stop(self) -> float:
        """Seconds without a confirmed sign of life after which a member stops its own work: a heartbeat
        before the others may take over."""
        return self.timeout - self.heartbeat


@dataclass(frozen=True)
class Sign:
    """A member's last sign of life.

    :ivar beat: its counter.
    :ivar quiet: seconds of watching during which the counter stood still.
    """

    beat: tuple[str, int]
    quiet: float


def watch(
    before: Mapping[str, Sign], beats: Mapping[str, tuple[str, int]], elapsed: float
) -> dict[str, Sign]:
    """Signs of life after one more look.

    Only our own watching counts, never the others' clocks; time in which we could not look is no silence of
    theirs, so the caller gives 0 for it.

    :param beats: host -> (incarnation, counter) as read now.
    :param elapsed: seconds since the look before.
    """
    signs: dict[str, Sign] = {}
    for host, beat in beats.items():
        known = before.get(host)
        same = known is not None and known.beat == beat
        signs[host] = Sign(beat, known.quiet + elapsed if known is not None and same else 0.0)
    return signs


def living(signs: Mapping[str, Sign], timeout: float) -> frozenset[str]:
    """Hosts that are not silent for too long."""
    return frozenset(host for host, sign in signs.items() if sign.quiet < timeout)


def latest(records: Iterable[Mapping[str, object]]) -> dict[str, Mapping[str, object]]:
    """Of several records of one host the one with the newest start, then the highest counter."""
    found: dict[str, Mapping[str, object]] = {}
    for record in sorted(records, key=lambda r: (float(str(r["started_at"])), int(str(r["beat"])))):
        found[str(record["host"])] = record
    return found
