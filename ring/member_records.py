"""What the records of the group say about who is alive, by our own watch."""

import logging
import typing
from collections.abc import Iterable, Mapping, Sequence

from .group import Record
from .hashring import ACTIVE, Member
from .timing import LEFT, MembershipTiming, Sign, latest, living, watch

LOG = logging.getLogger(__name__)


class MemberRecords:
    """Remembers the records and signs of life of all members.  Used by the membership's thread."""

    def __init__(self, timing: MembershipTiming) -> None:
        self._timing = timing
        self._records: dict[str, Record] = {}
        self._signs: dict[str, Sign] = {}
        self._looked: float | None = None

    def interrupted(self) -> None:
        """Nobody could look: the time until the next look is nobody's silence."""
        self._looked = None

    def see(self, read: Iterable[Record], began: float) -> tuple[Mapping[str, Record], Sequence[Member]]:
        """Take in the records as they were read now.

        :param began: the moment at which reading began, by the monotonic clock.
        :returns: the newest record of each host that has one now; who is alive and has not said farewell.
        """
        records = latest(filter(is_valid_record, read))
        elapsed = 0.0 if self._looked is None else self._timing.watched(began - self._looked)
        self._looked = began
        beats = {host: (str(r["incarnation"]), int(str(r["beat"]))) for host, r in records.items()}
        self._signs = watch(self._signs, beats, elapsed)
        self._records |= records
        alive = living(self._signs, self._timing.timeout)
        self._signs = {host: sign for host, sign in self._signs.items() if host in alive or host in records}
        self._records = {host: self._records[host] for host in self._signs}
        there = [member_of(self._records[host]) for host in alive if self._records[host].get("state") != LEFT]
        return records, there


def is_valid_record(record: Record) -> bool:
    """A neighbour of another release, or a fault of the backend, must not break us."""
    try:
        member_of(record)
        int(record["beat"])
    except (TypeError, ValueError):
        LOG.warning("A record in the group is not understood: %s", record)
        return False
    return True


def member_of(record: typing.Any) -> Member:
    """Return the member that a record tells of."""
    return Member(
        host=str(record["host"]),
        incarnation=str(record["incarnation"]),
        weight=float(record.get("weight", 1.0)),
        state=str(record.get("state", ACTIVE)),
        started_at=float(record["started_at"]),
    )
