"""The conductors that are alive: only their group knows.

The table of conductors holds the last report of each, however old it is.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace

from ...db.conductors import STOPPED, ConductorRecord
from ...ring.hashring import Member, View, assign
from ...ring.observer import GroupStatus
from .fleet import SKEW, ConductorFleet

UP = "up"
DOWN = "down"
UNKNOWN = "unknown"
SILENT = "silent"


@dataclass(frozen=True)
class Presence:
    """The conductors: their last reports, and the members of their group.

    :ivar now: seconds since the epoch, when both were read.
    :ivar rows: the last reports, by host.
    :ivar group: the members of the group; None: it is unreachable.
    :ivar unreachable: why the group is unreachable.
    :ivar shard_count: number of shards of the installation.
    """

    now: float
    rows: Mapping[str, ConductorRecord]
    group: GroupStatus | None
    unreachable: str | None
    shard_count: int

    @property
    def hosts(self) -> list[str]:
        """Return all known hosts."""
        return sorted({*self.rows, *(member.host for member in self.members)})

    @property
    def members(self) -> frozenset[Member]:
        """Return all members of the group, silent ones too."""
        return frozenset() if self.group is None else self.group.alive | self.group.silent

    @property
    def alive(self) -> list[ConductorRecord]:
        """Return the reports of those that are alive, each under its name in the group."""
        names = {} if self.group is None else {member.host: member.name for member in self.group.alive}
        return [replace(row, incarnation=names[host]) for host, row in self.rows.items() if host in names]

    def is_alive(self, host: str) -> bool | None:
        """Return whether a conductor is alive; None: unknown."""
        return None if self.group is None else host in self.group.hosts

    def status(self, host: str) -> str:
        """Return a conductor's status in Heat's words."""
        alive = self.is_alive(host)
        return UNKNOWN if alive is None else UP if alive else DOWN

    def state(self, host: str) -> str:
        """Return a conductor's state: its own report while it is alive, or has stopped."""
        row = self.rows.get(host)
        reported = row.state if row is not None else next(m.state for m in self.members if m.host == host)
        return reported if self.is_alive(host) is not False or reported == STOPPED else SILENT

    @property
    def ring(self) -> View:
        """Return the ring as those that are alive have it; silent ones are on it until these drop them."""
        group = self.group or GroupStatus()
        alone = View.of(group.alive, self.shard_count)
        together = View.of(self.members, self.shard_count)
        versions = {row.ring_version for row in self.alive}
        return together if together.version in versions and alone.version not in versions else alone

    def ring_of_reports(self, records: Iterable[ConductorRecord]) -> View:
        """Return the ring that these conductors make, without regard to the rings that they report."""
        members = {member.host: member for member in self.members}
        present = [
            members.get(row.host) or Member(row.host, row.incarnation, row.weight, row.state, row.started_at)
            for row in records
        ]
        return View.of(present, self.shard_count)

    def shards(self) -> Mapping[str, int]:
        """Return the number of shards of each conductor; the reported one while the group is unreachable."""
        if self.group is None:
            return {host: row.shards_owned for host, row in self.rows.items()}
        if not self.ring.owners:
            return {}
        return {host: len(owned) for host, owned in assign(self.ring).by_host.items()}

    def unsettled(self) -> str | None:
        """Return why not every shard has exactly one owner that is alive; None: each has."""
        if self.group is None:
            return f"the group of conductors is unreachable: {self.unreachable}"
        if not self.group.alive:
            return "no conductor is alive"
        if lost := sorted({owner.host for owner in self.ring.owners} - self.group.hosts):
            return f"{', '.join(lost)} is silent; its shards go to the others when its timeout expires"
        return self._not_agreed()

    def _not_agreed(self) -> str | None:
        reports = self.alive
        if missing := sorted((self.group or GroupStatus()).hosts - self.rows.keys()):
            return f"no report yet from: {', '.join(missing)}"
        if {row.ring_version for row in reports} != {self.ring.version}:
            rings = ", ".join(f"{row.host} at {row.ring_version or 'none'}" for row in reports)
            return f"the conductors see different rings: {rings}"
        owned = sum(row.shards_owned for row in reports)
        return None if owned == self.shard_count else f"{owned} of {self.shard_count} shards are owned"


@dataclass(frozen=True)
class FleetSettings:
    """The options that a diagnosis needs.

    :ivar takeover: seconds after a conductor's last report until the others have its work.
    :ivar grace: seconds that a cancelled step has to end.
    :ivar manage: the operator's command line of ``stoker-manage``.
    """

    takeover: float
    grace: float
    manage: str = "stoker-manage"


FRESH = 7.5
"""Seconds since its last report within which a conductor reports, for who does not wait for the next one.

More than the seven between its last report before a rest and the first one of the rest: the interval of the
report, and that of the forecasts, with which it reports while it rests."""


def fleet_by_reports(presence: Presence, settings: FleetSettings) -> ConductorFleet:
    """Return the fleet at once: while the group is unreachable, those are alive that have reported lately."""
    fresh = {row.host for row in presence.rows.values() if presence.now - row.heartbeat_at <= FRESH}
    return make_fleet(presence, fresh, settings)


def make_fleet(
    presence: Presence, reporting: Set[str], settings: FleetSettings, *, since: float | None = None
) -> ConductorFleet:
    """Return the fleet: alive by their group, or while that is unreachable, by new reports.

    :param reporting: hosts that have reported lately.
    :param since: instant since which each of them has reported, as somebody saw; None: nobody watched.
    """
    living = (
        presence.alive
        if presence.group is not None
        else [row for row in presence.rows.values() if row.host in reporting]
    )
    view = presence.ring_of_reports(living)
    assignment = assign(view) if view.owners else None
    return ConductorFleet(
        now=presence.now,
        conductors=dict(presence.rows) | {row.host: row for row in living},
        alive=frozenset(row.host for row in living),
        owner_of=lambda shard: None if assignment is None else assignment.owner_of(shard),
        takeover=settings.takeover,
        grace=settings.grace,
        manage=settings.manage,
        skews={row.host: skew for row in living if (skew := _skew(row, presence.now, reporting, since))},
        unsettled=presence.unsettled(),
        unreachable=presence.unreachable,
    )


def _skew(row: ConductorRecord, now: float, reporting: Set[str], since: float | None) -> float:
    """Return by how many seconds a host's clock is ahead at the least; 0.0: not by much, as far as is known.

    A report of the future is of a fast clock.  One that was written while somebody watched, and seems older
    than that, is of a slow clock.  The age of any other says nothing: a conductor that rests reports rarely.
    """
    if row.heartbeat_at - now > SKEW:
        return row.heartbeat_at - now
    if since is not None and row.host in reporting and row.heartbeat_at - since < -SKEW:
        return row.heartbeat_at - since
    return 0.0
