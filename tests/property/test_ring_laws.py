"""The laws of the ring, held against a second implementation that is as simple as can be."""

import hashlib
import itertools
import math
import random

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from stoker.ring.changes import plan
from stoker.ring.hashring import DRAINING, ROUNDS, Member, View, assign

HOSTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=12)
WEIGHTS = st.one_of(st.just(1.0), st.floats(0.01, 100.0), st.integers(1, 5))
SHARD_COUNTS = st.sampled_from([1, 2, 7, 64, 100, 256, 1000])


@st.composite
def members(draw: st.DrawFn, *, most: int = 12) -> list[Member]:
    hosts = draw(st.lists(HOSTS, min_size=1, max_size=most, unique=True))
    return [Member(host, "i", weight=draw(WEIGHTS)) for host in hosts]


def dumb_map(owners: list[Member], shard_count: int) -> list[str]:
    """All calls of all members in the order of time; the first with room gets the shard."""
    total = sum(member.weight for member in sorted(owners))
    room = {m.host: math.ceil(1.05 * shard_count * m.weight / total) for m in owners}
    calls = []
    for number, member in enumerate(sorted(owners)):
        stream = hashlib.shake_128(member.host.encode()).digest(4 * (ROUNDS * shard_count * 2 + 2))
        draws = [int.from_bytes(stream[at : at + 4], "little") for at in range(0, len(stream), 4)]
        for turn in itertools.count():
            at = (turn + draws[0] / 2**32) / member.weight
            if at >= ROUNDS * (shard_count / total):
                break
            calls.append((at, number, member.host, draws[turn + 1] * shard_count // 2**32))
    owner: dict[int, str] = {}
    for _, _, host, shard in sorted(calls):
        if shard not in owner and room[host] > 0:
            owner[shard] = host
            room[host] -= 1
    for shard in range(shard_count):
        if shard not in owner:
            ranked = [
                (hashlib.blake2b(f"{shard} {m.host}".encode(), digest_size=8).digest(), m.host)
                for m in owners
                if room[m.host] > 0
            ]
            owner[shard] = max(ranked)[1]
            room[owner[shard]] -= 1
    return [owner[shard] for shard in range(shard_count)]


@settings(deadline=None, max_examples=150)
@given(members(), SHARD_COUNTS)
def test_the_map_is_that_of_the_simple_twin(given_members: list[Member], shard_count: int) -> None:
    assert list(assign(View.of(given_members, shard_count)).hosts) == dumb_map(given_members, shard_count)


@settings(deadline=None)
@given(members(most=30), SHARD_COUNTS, st.randoms(use_true_random=False))
def test_the_order_of_members_changes_nothing(
    given_members: list[Member], shard_count: int, chance: random.Random
) -> None:
    mixed = list(given_members)
    chance.shuffle(mixed)
    ordered = View.of(given_members, shard_count)
    shuffled = View.of(mixed, shard_count)
    assert ordered == shuffled
    assert ordered.version == shuffled.version
    assert assign(ordered).hosts == assign(shuffled).hosts


@settings(deadline=None)
@given(members(most=40), SHARD_COUNTS)
def test_every_shard_has_one_owner_and_no_owner_more_than_its_bound(
    given_members: list[Member], shard_count: int
) -> None:
    shard_map = assign(View.of(given_members, shard_count))
    total = sum(member.weight for member in given_members)
    assert len(shard_map.hosts) == shard_count
    for member in given_members:
        fair = shard_count * member.weight / total
        assert len(shard_map.shards_of(member.host)) <= math.ceil(1.05 * fair * (1 + 1e-12))


@settings(deadline=None)
@given(members(), st.data())
def test_a_draining_member_counts_as_absent(given_members: list[Member], data: st.DataObject) -> None:
    assume(len(given_members) > 1)
    going = data.draw(st.sampled_from(given_members))
    remaining = [member for member in given_members if member is not going]
    drained = Member(going.host, "i", weight=going.weight, state=DRAINING)
    assert assign(View.of([*remaining, drained], 256)).hosts == assign(View.of(remaining, 256)).hosts


@settings(deadline=None)
@given(members(), members(), SHARD_COUNTS)
def test_a_plan_turns_the_old_map_into_the_new_one(
    before: list[Member], after: list[Member], shard_count: int
) -> None:
    old = View.of(before, shard_count)
    new = View.of(after, shard_count)
    moves = plan(old, new)
    hosts = list(assign(old).hosts)
    for shard, (giver, taker) in moves.moves.items():
        assert giver != taker
        assert hosts[shard] == giver
        hosts[shard] = taker
    assert hosts == list(assign(new).hosts)


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 90), st.integers(0, 2))
def test_one_leave_or_join_moves_little_more_than_the_share(count: int, seed: int) -> None:
    """The target is 1.5 of the leaver's share, up to 80 members.  With more, each other one has room for a
    few shards only, so that some move on: of 83 members 1.7 was seen.  The hosts are always the same: of any
    hosts the share is a matter of chance."""
    everybody = [Member(f"{seed}-{number}", "i") for number in range(count)]
    all_of_them = View.of(everybody, 4096)
    fewer = View.of(everybody[1:], 4096)
    leavers_shards = assign(all_of_them).shards_of(everybody[0].host)
    allowed = 1.5 if count <= 80 else 2.5
    moves = plan(all_of_them, fewer).moves
    assert leavers_shards <= set(moves)
    assert len(moves) <= allowed * max(len(leavers_shards), 4096 / count)
    assert len(plan(fewer, all_of_them).moves) == len(moves)


@settings(deadline=None, max_examples=5)
@given(st.sampled_from([1, 2, 3, 10, 100, 333, 1000]), st.integers(0, 10**9))
def test_from_one_to_a_thousand_members_the_load_is_even(count: int, seed: int) -> None:
    shard_map = assign(View.of([Member(f"{seed}-{number}", "i") for number in range(count)], 4096))
    loads = [len(owned) for owned in shard_map.by_host.values()]
    assert sum(loads) == 4096
    assert max(loads) <= max(1.05 * 4096 / count, 4096 / count + 1) + 1
    if count <= 100:
        assert min(loads) >= 0.6 * 4096 / count


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 30), st.floats(0.2, 5.0), st.integers(0, 10**9))
def test_a_weight_is_a_share(count: int, weight: float, seed: int) -> None:
    light_members = [Member(f"{seed}-{number}", "i") for number in range(count)]
    shard_map = assign(View.of([*light_members, Member("heavy", "i", weight=weight)], 4096))
    fair = 4096 * weight / (count + weight)
    assert 0.6 * fair - 3 <= len(shard_map.shards_of("heavy")) <= math.ceil(1.05 * fair)
