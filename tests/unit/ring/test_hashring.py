"""Views, maps and plans: examples.  The laws are in tests/property."""

import hashlib
import math
import tracemalloc

import pytest
from stoker.ring import hashring
from stoker.ring.changes import plan
from stoker.ring.hashring import (
    ACTIVE,
    DEFAULT_SHARD_COUNT,
    DRAINING,
    MAX_WEIGHT,
    Member,
    NoMembersError,
    View,
    assign,
    shard_of,
)


def _view(*hosts: str, shards: int = 256) -> View:
    return View.of([Member(host, "i") for host in hosts], shards)


def test_the_shard_of_a_stack_is_the_same_in_every_release() -> None:
    """It is stored with the stack."""
    assert DEFAULT_SHARD_COUNT == 4096
    assert shard_of("6ba7b810-9dad-11d1-80b4-00c04fd430c8", 4096) == 3757
    assert shard_of("00000000-0000-0000-0000-000000000000", 4096) == 2058
    assert shard_of("5ca1ab1e-0000-4000-8000-000000000001", 4096) == 1731
    assert shard_of("5ca1ab1e-0000-4000-8000-000000000001", 7) == 1


def test_the_map_is_the_same_in_every_release() -> None:
    """Neighbours of two releases must agree while one is rolled out."""
    members = [Member("alpha", "1"), Member("beta", "2", weight=2.5), Member("gamma", "3", state=DRAINING)]
    view = View.of([*members, Member("delta", "4", weight=0.5)], 4096)
    assert view.version == "f7acd0959eaa"
    hosts = ",".join(assign(view).hosts)
    assert hashlib.sha256(hosts.encode()).hexdigest()[:16] == "e927ae79e4943878"


def test_what_nobody_has_bid_for_goes_to_who_has_room_in_every_release(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So many rounds of bids leave hardly ever a shard without an owner."""
    monkeypatch.setattr(hashring, "ROUNDS", 0)
    view = View.of([Member("alpha", "1"), Member("beta", "2", weight=2.5)], 64)
    assignment = assign(view)
    assert [len(assignment.shards_of(host)) for host in ("alpha", "beta")] == [20, 44]
    hosts = ",".join(assignment.hosts)
    assert hashlib.sha256(hosts.encode()).hexdigest()[:16] == "6006a8aecd23b5dd"


def test_the_maps_of_small_rings_are_the_same_in_every_release() -> None:
    """Few shards are left at the end of a round, so each of its bids decides."""
    views = (
        View.of([Member(f"host-{number}", "i", weight=1 + number % 3) for number in range(members)], shards)
        for shards in range(1, 41)
        for members in range(2, 6)
    )
    maps = "\n".join(",".join(assign(view).hosts) for view in views)
    assert hashlib.sha256(maps.encode()).hexdigest()[:16] == "5b817618dd408961"


@pytest.mark.parametrize("members", [1, 2, 30])
def test_a_map_is_made_in_little_memory(members: int) -> None:
    """A process keeps what it has taken once, and each change of the members makes a map."""
    view = _view(*(f"host-{number}" for number in range(members)), shards=DEFAULT_SHARD_COUNT)
    tracemalloc.start()
    try:
        assign(view)
        assert tracemalloc.get_traced_memory()[1] < 1e6
    finally:
        tracemalloc.stop()


def test_of_two_incarnations_of_a_host_the_later_one_is_in_the_view() -> None:
    old = Member("a", "z", started_at=1.0)
    new = Member("a", "b", started_at=2.0)
    assert View.of([old, new], 16) == View.of([new, old], 16) == View.of([new], 16)
    since_a_moment = Member("a", "b", started_at=0.5)
    assert View.of([Member("a", "z"), since_a_moment], 16).members == {since_a_moment}


def test_a_restarted_host_keeps_its_slice() -> None:
    before = View.of([Member("a", "1"), Member("b", "1")], 256)
    after = View.of([Member("a", "1"), Member("b", "2", started_at=5.0)], 256)
    assert before != after
    assert before.version == after.version
    assert plan(before, after).moves == {}


def test_a_draining_member_owns_nothing_while_an_active_one_is_there() -> None:
    going = Member("b", "i", state=DRAINING)
    view = View.of([Member("a", "i"), going, Member("c", "i")], 256)
    assert assign(view).shards_of("b") == frozenset()
    assert assign(view).hosts == assign(_view("a", "c")).hosts
    assert going in view.members


def test_if_all_drain_they_keep_their_slices() -> None:
    members = [Member(host, "i") for host in ("a", "b")]
    draining = [Member(host, "i", state=DRAINING) for host in ("a", "b")]
    assert assign(View.of(draining, 64)).hosts == assign(View.of(members, 64)).hosts


def test_the_version_tells_views_apart_whose_maps_differ() -> None:
    a = Member("a", "i")
    views = [
        _view("a"),
        _view("b"),
        _view("a", "b"),
        View.of([a], 128),
        View.of([Member("a", "i", weight=2)], 256),
        View.of([a, Member("b", "i", weight=2)], 256),
        _view("a=1.0;b"),
    ]
    assert len({view.version for view in views}) == len(views)


def test_the_version_does_not_depend_on_how_a_weight_is_written() -> None:
    assert (
        View.of([Member("a", "i", weight=1)], 8).version == View.of([Member("a", "i", weight=1.0)], 8).version
    )


def test_an_empty_ring_owns_nothing_and_says_so() -> None:
    empty = View.of([], 16)
    with pytest.raises(NoMembersError) as caught:
        assign(empty)
    assert caught.value.view is empty
    for old, new in ((empty, _view("a")), (_view("a"), empty)):
        with pytest.raises(NoMembersError):
            plan(old, new)


@pytest.mark.parametrize("weight", [0, -1, math.nan, math.inf, MAX_WEIGHT + 1])
def test_a_weight_out_of_bounds_is_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="weight of a must be above 0 and at most 1000"):
        Member("a", "i", weight=weight)


def test_a_plan_says_which_shards_go_from_whom_to_whom() -> None:
    old = _view("a", "b", shards=4096)
    new = _view("a", "b", "c", shards=4096)
    moves = plan(old, new)
    before = assign(old)
    after = assign(new)
    assert set(moves.moves) == {s for s in range(4096) if before.owner_of(s) != after.owner_of(s)}
    assert all(moves.moves[s] == (before.owner_of(s), after.owner_of(s)) for s in moves.moves)
    assert sum(moves.counts.values()) == len(moves.moves) > 0
    assert plan(old, old).moves == {}


def test_the_map_answers_both_ways() -> None:
    assignment = assign(_view("a", "b"))
    assert all(shard in assignment.shards_of(assignment.owner_of(shard)) for shard in range(256))
    assert assignment.shards_of("stranger") == frozenset()
    assert sum(len(owned) for owned in assignment.by_host.values()) == 256


def test_a_member_is_named_by_host_and_incarnation() -> None:
    assert Member("a", "1f", state=ACTIVE).name == "a/1f"
