"""The ring: which member owns which shard, as a pure function of the set of members.

A shard is a fixed bucket of stacks, so that ownership is a small table however many stacks there are.

Weighted rendezvous hashing with bounded load.  Each member bids for shards, one after the other, in an
order and at moments that follow from its host's name alone; a heavier member bids faster.  A shard belongs
to the first bidder that has room.  No member gets more than ``ceil(1.05 × fair share)``.

All conductors that see the same members compute the same map without talking.  When a member leaves, its
shards go to the next bidder; others move only where that one was full.

Sources: Thaler, Ravishankar, "Using Name-Based Mappings to Increase Hit Rates", 1998 (each shard ranks the
members; the race of bids is the same with fewer hashes); Mirrokni, Thorup, Zadimoghaddam, "Consistent
Hashing with Bounded Loads", 2016.  Against a circle with 128 points for each member it moves fewer shards
(measured in benchmarks/ring.py), for its shares are more even and so fewer members are full.
"""

import hashlib
import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

SLACK = 1.05
"""How far above its fair share a member may go: less makes more shards move when members change."""
ROUNDS = 32
"""A round is the time in which all members together bid as often as there are shards.  Shards without an
owner after so many rounds are assigned one by one."""
FIRST_STEP = 0.25
"""The part of a round whose bids are sorted together, at first: those of all rounds would take megabytes,
which a process keeps."""
STEP_GROWTH = 1.5
"""The length of a step by that of the one before it, up to a round: fewer and fewer bids are for a shard
without owner."""
MAX_WEIGHT = 1000.0

DEFAULT_SHARD_COUNT = 4096

ACTIVE = "active"
DRAINING = "draining"


def shard_of(stack_id: str, shard_count: int) -> int:
    """Return the shard of a stack: the first 8 bytes of BLAKE2b of its id, big-endian, modulo the count.

    It is the same on every machine and in every release, for it is stored with the stack.

    >>> shard_of("6ba7b810-9dad-11d1-80b4-00c04fd430c8", 4096)
    3757
    """
    digest = hashlib.blake2b(stack_id.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % shard_count


class NoMembersError(ValueError):
    """A ring without members owns nothing.

    :ivar view: the empty view.
    """

    def __init__(self, view: "View") -> None:
        super().__init__("there is no member to own the shards")
        self.view = view


@dataclass(frozen=True, order=True)
class Member:
    """One incarnation of a conductor.

    :ivar host: stable over restarts; the place on the ring follows from it, so a restarted conductor gets its
        old slice back.
    :ivar incarnation: new for each start, and for each rejoining.
    :ivar weight: share relative to the others; above 0, at most 1000.
    :ivar state: active, or draining: owns nothing while an active one is there.
    :ivar started_at: seconds since the epoch; of two incarnations of a host the later one counts.
    :raises ValueError: the weight is out of bounds.
    """

    host: str
    incarnation: str
    weight: float = 1.0
    state: str = ACTIVE
    started_at: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.weight <= MAX_WEIGHT:
            bounds = f"above 0 and at most {MAX_WEIGHT:g}"
            raise ValueError(f"the weight of {self.host} must be {bounds}, not {self.weight}")

    @property
    def name(self) -> str:
        """HOST/INCARNATION, as claims have it."""
        return f"{self.host}/{self.incarnation}"


@dataclass(frozen=True)
class View:
    """The members at one moment; immutable.

    :ivar members: of several incarnations of one host only the latest one is kept by `of`.
    """

    members: frozenset[Member]
    shard_count: int

    @classmethod
    def of(cls, members: Iterable[Member], shard_count: int) -> "View":
        """Return the view of members in any order."""
        latest: dict[str, Member] = {}
        for member in sorted(members, key=lambda m: (m.started_at, m.incarnation)):
            latest[member.host] = member
        return cls(frozenset(latest.values()), shard_count)

    @cached_property
    def owners(self) -> tuple[Member, ...]:
        """Members that own shards, by host: the active ones, or all if none is active."""
        active = [member for member in self.members if member.state == ACTIVE]
        return tuple(sorted(active or self.members))

    @cached_property
    def version(self) -> str:
        """Fingerprint of the owners and the shard count: equal rings have equal ones."""
        text = repr(([(m.host, float(m.weight)) for m in self.owners], self.shard_count))
        return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


@dataclass(frozen=True)
class Assignment:
    """The ring of a view: the owner of each shard.

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
        """Return the host that owns the shard."""
        return self.hosts[shard]

    def shards_of(self, host: str) -> frozenset[int]:
        """Return the shards that the host owns; empty for a host that is no member."""
        return self.by_host.get(host, frozenset())


def capacities(owners: Sequence[Member], shard_count: int) -> list[int]:
    """Return the number of shards that each owner may have at most."""
    total = sum(member.weight for member in owners)
    return [math.ceil(SLACK * shard_count * member.weight / total) for member in owners]


def assign(view: View) -> Assignment:
    """Compute the owners of all shards; the result depends on the set of members, not on its order.

    :raises NoMembersError: the view is empty.
    """
    owners = view.owners
    if not owners:
        raise NoMembersError(view)
    room = capacities(owners, view.shard_count)
    owner_of = [-1] * view.shard_count
    unassigned = view.shard_count
    bidders = [_Bidder(index, member, view.shard_count) for index, member in enumerate(owners)]
    length = view.shard_count / sum(member.weight for member in owners)
    rounds = 0.0
    step = FIRST_STEP
    while unassigned and rounds < ROUNDS:
        rounds = min(rounds + step, ROUNDS)
        step = min(step * STEP_GROWTH, 1.0)
        until = rounds * length
        bids = [bid for bidder in bidders if room[bidder.index] for bid in bidder.bids(until, owner_of)]
        for _, index, shard in sorted(bids):
            if owner_of[shard] < 0 and room[index]:
                owner_of[shard] = index
                room[index] -= 1
                unassigned -= 1
    _assign_rest(owner_of, room, owners)
    return Assignment(view, [owners[index].host for index in owner_of])


class _Bidder:
    """The bids of one member, in the order of time.

    Its n-th bid comes at (n + own offset) / weight; offset and shards are SHAKE-128 of the host's
    name, whose longer outputs begin with the shorter ones.
    """

    def __init__(self, index: int, member: Member, shard_count: int) -> None:
        self.index = index
        self._hash = hashlib.shake_128(member.host.encode())
        self._weight = member.weight
        self._shard_count = shard_count
        self._draws = b""
        self._next = 0
        self._offset = self._drawn(0, 1)[0] / 2**32

    def bids(self, until: float, owner_of: Sequence[int]) -> list[tuple[float, int, int]]:
        """Return (time, index, shard) of the next bids before `until`.

        Bids for shards whose owner is known are left out.
        """
        first = self._next
        self._next = end = max(first, math.ceil(until * self._weight - self._offset))
        index = self.index
        weight = self._weight
        offset = self._offset
        count = self._shard_count
        return [
            ((n + offset) / weight, index, shard)
            for n, draw in enumerate(self._drawn(first + 1, end + 1), first)
            if owner_of[shard := draw * count >> 32] < 0
        ]

    def _drawn(self, first: int, end: int) -> Sequence[int]:
        size = len(self._draws)
        if 4 * end > size:
            self._draws = self._hash.digest(max(4 * end, 2 * size, 256))
        return struct.unpack_from(f"<{end - first}I", self._draws, 4 * first)


def _assign_rest(owner_of: list[int], room: list[int], owners: Sequence[Member]) -> None:
    """Give each shard without owner to the member with the highest hash of those that have room."""
    for shard, index in enumerate(owner_of):
        if index < 0:
            free = [candidate for candidate, places in enumerate(room) if places]
            best = max(free, key=lambda candidate: (_rank(owners[candidate].host, shard), candidate))
            owner_of[shard] = best
            room[best] -= 1


def _rank(host: str, shard: int) -> bytes:
    return hashlib.blake2b(f"{shard} {host}".encode(), digest_size=8).digest()
