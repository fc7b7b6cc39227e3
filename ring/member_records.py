"""The members that are alive, as the records in the group and our own clock show them."""

import logging
import math
import typing
from collections.abc import Iterable, Mapping, Sequence

from .group import Record
from .hashring import ACTIVE, Member
from .timing import LEFT, MembershipTiming, Sign, alive_hosts, latest, watch

LOG = logging.getLogger(__name__)


class MemberRecords:
    """Keeps the records and the last heartbeats of all members.  Used by the membership's thread."""

    def __init__(self, timing: MembershipTiming) -> None:
        self._timing = timing
        self._records: dict[str, Record] = {}
        self._signs: dict[str, Sign] = {}
        self._read_at: float | None = None

    def interrupted(self) -> None:
        """Ignore the time until the next read: the backend could not be read, so no member was silent."""
        self._read_at = None

    def next_death_in(self) -> float:
        """Return the seconds of watching until the next member counts as dead, if it stays silent."""
        timeout = self._timing.timeout
        return min(
            (timeout - sign.quiet for sign in self._signs.values() if sign.quiet < timeout), default=math.inf
        )

    def see(self, read: Iterable[Record], began: float) -> tuple[Mapping[str, Record], Sequence[Member]]:
        """Store the records that were read now.

        :param began: the moment at which reading began, by the monotonic clock.
        :returns: the newest record of each host that has one now; the members that are alive.
        """
        records = latest(filter(is_valid_record, read))
        elapsed = 0.0 if self._read_at is None else self._timing.watched(began - self._read_at)
        self._read_at = began
        beats = {host: (str(r["incarnation"]), int(str(r["beat"]))) for host, r in records.items()}
        self._signs = watch(self._signs, beats, elapsed)
        self._records |= records
        alive = alive_hosts(self._signs, self._timing.timeout)
        self._signs = {host: sign for host, sign in self._signs.items() if host in alive or host in records}
        self._records = {host: self._records[host] for host in self._signs}
        members = [
            member_of(self._records[host]) for host in alive if self._records[host].get("state") != LEFT
        ]
        return records, members


def is_valid_record(record: Record) -> bool:
    """Return whether the record is valid; another release, or a broken backend, may write others."""
    try:
        member_of(record)
        int(record["beat"])
    except (TypeError, ValueError):
        LOG.warning("A record in the group is invalid, it is ignored: %s", record)
        return False
    return True


def member_of(record: typing.Any) -> Member:
    """Return the member of a record."""
    return Member(
        host=str(record["host"]),
        incarnation=str(record["incarnation"]),
        weight=float(record.get("weight", 1.0)),
        state=str(record.get("state", ACTIVE)),
        started_at=float(record["started_at"]),
    )
