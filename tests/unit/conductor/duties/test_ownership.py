"""Who owns a shard, and who substitutes for its owner."""

import typing
from collections.abc import Callable

import pytest
from stoker.conductor.ownership import Ownership
from stoker.ring.hashring import DRAINING, Member, View, assign
from stoker.ring.membership import Membership
from stoker.ring.timing import MembershipTiming

SHARDS = 256
TIMING = MembershipTiming()
HOSTS = ("a", "b", "c")


class FixedMembership:
    """A membership that sees the given members."""

    timing = TIMING

    def __init__(self, host: str) -> None:
        self.name: str | None = f"{host}/1"
        self.now = View(frozenset(), SHARDS)
        self.listeners: list[Callable[[View], None]] = []

    def member(self) -> str | None:
        return self.name

    def view(self) -> View:
        return self.now

    def on_change(self, listener: Callable[[View], None]) -> None:
        self.listeners.append(listener)

    def see(self, *members: Member) -> None:
        self.now = View.of(members, SHARDS)
        for listener in self.listeners:
            listener(self.now)


def member(host: str, **fields: typing.Any) -> Member:
    return Member(host, "1", **fields)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ownerships(clock: Clock) -> dict[str, tuple[FixedMembership, Ownership]]:
    """For each host its membership and what it owns by it, when all are there."""
    ownerships = {}
    for host in HOSTS:
        membership = FixedMembership(host)
        ownership = Ownership(typing.cast(Membership, membership), host, monotonic=clock)
        ownerships[host] = (membership, ownership)
        membership.see(*map(member, HOSTS))
    clock.now += TIMING.settling
    return ownerships


def test_each_shard_has_one_deputy_who_owns_it_when_its_owner_is_gone(
    ownerships: dict[str, tuple[FixedMembership, Ownership]],
) -> None:
    for shard in range(SHARDS):
        [owner] = [host for host, (_, ownership) in ownerships.items() if ownership.owns(shard)]
        [deputy] = [host for host, (_, ownership) in ownerships.items() if ownership.is_deputy(shard)]
        remaining = View.of([member(host) for host in HOSTS if host != owner], SHARDS)
        assert deputy == assign(remaining).owner_of(shard)


def test_a_lonely_conductor_is_nobodys_deputy(
    ownerships: dict[str, tuple[FixedMembership, Ownership]],
) -> None:
    membership, ownership = ownerships["a"]
    membership.see(member("a"))
    assert not any(ownership.is_deputy(shard) for shard in range(SHARDS))


def test_a_conductor_that_is_not_sure_of_its_membership_acts_for_nobody(
    ownerships: dict[str, tuple[FixedMembership, Ownership]],
) -> None:
    membership, ownership = ownerships["a"]
    membership.name = None
    assert not any(ownership.is_deputy(shard) for shard in range(SHARDS))


def test_a_conductor_that_drains_acts_for_nobody(
    ownerships: dict[str, tuple[FixedMembership, Ownership]], clock: Clock
) -> None:
    members = [member("a", state=DRAINING), member("b"), member("c")]
    for membership, _ in ownerships.values():
        membership.see(*members)
    clock.now += TIMING.settling
    assert not any(ownerships["a"][1].is_deputy(shard) for shard in range(SHARDS))
    assert all(ownerships["b"][1].owns(s) != ownerships["b"][1].is_deputy(s) for s in range(SHARDS))


def test_nobody_acts_for_an_owner_that_may_not_have_seen_the_last_change(
    ownerships: dict[str, tuple[FixedMembership, Ownership]], clock: Clock
) -> None:
    membership, ownership = ownerships["a"]
    membership.see(member("a"), member("b"))
    assert not any(ownership.is_deputy(shard) for shard in range(SHARDS))
    clock.now += TIMING.settling
    assert any(ownership.is_deputy(shard) for shard in range(SHARDS))
