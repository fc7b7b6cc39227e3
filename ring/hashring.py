"""The ring: which member owns which shard, as a pure function of the set of members.

Consistent hashing with bounded load: each member stands at POINTS × weight places of a circle, each shard
at one; a shard belongs to the first member clockwise that has room.  No member gets more than
``ceil(1.05 × fair share)``.  Idea: Mirrokni, Thorup, Zadimoghaddam, "Consistent Hashing with Bounded
Loads", 2016.  All conductors that see the same members compute the same map without talking.
"""

import bisect
import hashlib
import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

POINTS = 128
"""Places of a member of weight 1: more make the arcs more even, and the ring slower to build."""
SLACK = 1.05
"""How far above its fair share a member may go: less makes more shards move when members change."""

ACTIVE = "active"
DRAINING = "draining"


class NoMembersError(ValueError):
    """A ring without members owns nothing.

    :ivar view: the empty view.
    """

    def __init__(self, view: "View") -> None:
        super().__init__("no member is there to own the shards")
        self.view = view


@dataclass(frozen=True, order=True)
class Member:
    """One incarnation of a conductor.

    :ivar host: stable over restarts; the place on the ring follows from it, so a restarted conductor gets its
        old slice back.
    :ivar incarnation: new for each start, and for each rejoining.
    :ivar weight: share relative to the others; above 0.
    :ivar state: active, or draining: owns nothing while an active one is there.
    :ivar started_at: seconds since the epoch; of two incarnations of a host the later one counts.
    """

    host: str
    incarnation: str
    weight: float = 1.0
    state: str = ACTIVE
    started_at: float = 0.0

    @property
    def name(self) -> str:
        """HOST/INCARNATION: what stands in claims."""
        return f"{self.host}/{self.incarnation}"


@dataclass(frozen=True)
class View:
    """Who is there; immutable.

    :ivar members: of several incarnations of one host only the latest one is kept by `of`.
    """

    members: frozenset[Member]
    shard_count: int

    @classmethod
    def of(cls, members: Iterable[Member], shard_count: int) -> "View":
        """From members in any order."""
        latest: dict[str, Member] = {}
        for member in sorted(members, key=lambda m: (m.started_at, m.incarnation)):
            latest[member.host] = member
        return cls(frozenset(latest.values()), shard_count)

    @cached_property
    def owners(self) -> tuple[Member, ...]:
        """Those that own shards, by host: the active ones, or all if none is."""
        active = [member for member in self.members if member.state == ACTIVE]
        return tuple(sorted(active or self.members))

    @cached_property
    def version(self) -> str:
        """Fingerprint of what the map depends on: equal views have equal ones."""
        text = ";".join(f"{m.host}={m.weight!r}" for m in self.owners) + f";{self.shard_count}"
        return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


@dataclass(frozen=True)
class Assignment:
    """The map of a view.

    :ivar hosts: for each shard the host that owns it.
    """

    view: View
    hosts: Sequence[str]

    @cached_property
    def by_host(self) -> Mapping[str, frozenset[int]]:
        """The shards of each host that owns any."""
        shards: dict[str, set[int]] = {}
        for shard, host in enumerate(self.hosts):
            shards.setdefault(host, set()).add(shard)
        return {host: frozenset(owned) for host, owned in shards.items()}

    def owner_of(self, shard: int) -> str:
        """The host that owns the shard."""
        return self.hosts[shard]

    def shards_of(self, host: str) -> frozenset[int]:
        """What the host owns; empty for a stranger."""
        return self.by_host.get(host, frozenset())


def capacities(owners: Sequence[Member], shard_count: int) -> list[int]:
    """How many shards each may own at the most."""
    total = sum(member.weight for member in owners)
    return [math.ceil(SLACK * shard_count * member.weight / total) for member in owners]


def assign(view: View) -> Assignment:
    """The map: the same for the same members, in whatever order they are given.

    :raises NoMembersError: the view is empty.
    """
    owners = view.owners
    if not owners:
        raise NoMembersError(view)
    places, indices = _circle(owners)
    room = capacities(owners, view.shard_count)
    hosts = [""] * view.shard_count
    for shard in range(view.shard_count):
        at = bisect.bisect_left(places, _place(f"shard-{shard}"))
        for step in range(len(places)):
            index = indices[(at + step) % len(places)]
            if room[index] > 0:
                room[index] -= 1
                hosts[shard] = owners[index].host
                break
    return Assignment(view, hosts)


def _circle(owners: Sequence[Member]) -> tuple[list[int], list[int]]:
    """Places in ascending order, and for each the index of its member."""
    pairs = [(place, index) for index, member in enumerate(owners) for place in _places(member)]
    pairs.sort()
    return [place for place, _ in pairs], [index for _, index in pairs]


def _places(member: Member) -> list[int]:
    count = max(1, round(POINTS * member.weight))
    found: list[int] = []
    for block in range(math.ceil(count / 8)):
        digest = hashlib.blake2b(f"{member.host}#{block}".encode(), digest_size=64).digest()
        found.extend(struct.unpack(">8Q", digest))
    return found[:count]


def _place(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


@dataclass(frozen=True)
class Moves:
    """What changes from one map to another.

    :ivar moves: shard -> (from host, to host).
    """

    moves: Mapping[int, tuple[str, str]] = field(default_factory=dict)

    @cached_property
    def counts(self) -> Mapping[tuple[str, str], int]:
        """How many shards go from whom to whom."""
        counted: dict[tuple[str, str], int] = {}
        for pair in self.moves.values():
            counted[pair] = counted.get(pair, 0) + 1
        return counted


def plan(old: View, new: View) -> Moves:
    """Which shards would change hands.

    :raises NoMembersError: one of the views is empty.
    """
    before, after = assign(old).hosts, assign(new).hosts
    pairs = enumerate(zip(before, after, strict=True))
    return Moves({shard: (b, a) for shard, (b, a) in pairs if b != a})
