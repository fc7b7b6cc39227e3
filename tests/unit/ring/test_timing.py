"""The intervals of membership, and the arithmetic of silence."""

import math

import pytest
from stoker.ring.group import Record
from stoker.ring.member_records import MemberRecords, member_of
from stoker.ring.timing import MembershipTiming, Sign, alive_hosts, latest, watch

NAN = math.nan
INF = math.inf


@pytest.mark.parametrize(
    "values",
    [
        (0, 5, 1),
        (1, 0, 1),
        (1, 5, 0),
        (-1, 5, 1),
        (1, -5, 1),
        (1, 5, -1),
        (NAN, 5, 1),
        (1, NAN, 1),
        (1, INF, 1),
    ],
)
def test_an_interval_that_is_no_time_is_refused(values: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="heartbeat, timeout and poll must be above 0 seconds"):
        MembershipTiming(*values)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (
            (2, 5.9, 1),
            r"timeout \(5.9 s\) must be at least three heartbeats \(2 s each\), or one lost heartbeat",
        ),
        (
            (1, 5, 2.6),
            r"poll \(2.6 s\) must be at most half the timeout \(5 s\), or the heartbeats of a living member",
        ),
        ((10.1, 60, 5), r"heartbeat \(10.1 s\) must be at most 10 s, or the backend would forget members"),
    ],
)
def test_intervals_that_contradict_each_other_are_refused_with_the_reason(
    values: tuple[float, float, float], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        MembershipTiming(*values)


@pytest.mark.parametrize("values", [(1, 5, 1), (1, 3, 1.5), (10, 30, 15), (0.01, 0.03, 0.015)])
def test_intervals_at_their_limits_are_taken(values: tuple[float, float, float]) -> None:
    timing = MembershipTiming(*values)
    assert 0 < timing.self_stop < timing.timeout


def test_a_member_stops_a_heartbeat_before_others_may_take_over() -> None:
    assert MembershipTiming(1, 5, 1).self_stop == 4


@pytest.mark.parametrize(
    ("timing", "settling", "silence", "progress"),
    [(MembershipTiming(0.5, 2.0, 0.8), 1.2, 1.5, 5.0), (MembershipTiming(2.0, 8.0, 3.0), 4.5, 6.0, 8.0)],
)
def test_what_follows_from_the_intervals(
    timing: MembershipTiming, settling: float, silence: float, progress: float
) -> None:
    assert (timing.settling, timing.silence, timing.progress) == pytest.approx((settling, silence, progress))


def test_a_look_counts_for_what_passed_but_not_for_the_backends_absence() -> None:
    timing = MembershipTiming(heartbeat=1, timeout=5, poll=1)
    assert timing.watched(1.1) == 1.1
    assert timing.watched(60) == 2
    assert MembershipTiming(1, 3, 1.5).watched(60) == 1.5


def test_a_conductor_is_quiet_whose_counter_does_not_move() -> None:
    signs = watch({}, {"a": ("i", 1), "b": ("i", 1)}, 0.0)
    signs = watch(signs, {"a": ("i", 1), "b": ("i", 2)}, 2.0)
    assert signs == {"a": Sign(("i", 1), 2.0), "b": Sign(("i", 2), 0.0)}
    signs = watch(signs, {"a": ("j", 1), "b": ("i", 2)}, 1.0)
    assert signs == {"a": Sign(("j", 1), 0.0), "b": Sign(("i", 2), 1.0)}


def test_who_is_missing_is_only_silent_for_backends_forget_on_their_own() -> None:
    signs = watch({"a": Sign(("i", 7), 1.0)}, {}, 2.0)
    assert signs == {"a": Sign(("i", 7), 3.0)}
    assert watch(signs, {"a": ("i", 7)}, 1.0) == {"a": Sign(("i", 7), 4.0)}
    assert alive_hosts(signs, 3.5) == {"a"}
    assert alive_hosts(signs, 3.0) == frozenset()


def test_of_two_records_of_a_host_the_later_start_counts_then_the_higher_counter() -> None:
    old = {"host": "a", "started_at": 1.0, "beat": 90}
    new = {"host": "a", "started_at": 2.0, "beat": 1}
    newest = {"host": "a", "started_at": 2.0, "beat": 2}
    for order in ([old, new, newest], [newest, new, old], [new, newest, old]):
        assert latest(order) == {"a": newest}


def heartbeat(host: str, beat: int) -> Record:
    return {"host": host, "incarnation": "i", "started_at": 1.0, "beat": beat}


def test_the_next_death_is_that_of_the_member_silent_for_longest() -> None:
    records = MemberRecords(MembershipTiming(heartbeat=1.0, timeout=4.0, poll=1.5))
    assert records.next_death_in() == math.inf
    records.see([heartbeat("a", 1), heartbeat("b", 1)], 0.0)
    assert records.next_death_in() == 4.0
    records.see([heartbeat("a", 2), heartbeat("b", 1)], 1.5)
    assert records.next_death_in() == 2.5
    records.see([heartbeat("a", 3), heartbeat("b", 1)], 3.0)
    records.see([heartbeat("a", 4), heartbeat("b", 1)], 4.0)
    assert records.next_death_in() == 4.0, "the dead one dies no more, though the backend has its record"


def test_time_before_an_interrupted_read_makes_nobody_silent() -> None:
    records = MemberRecords(MembershipTiming(heartbeat=1.0, timeout=4.0, poll=1.5))
    records.see([heartbeat("a", 1)], 0.0)
    records.see([heartbeat("a", 1)], 1.0)
    records.interrupted()
    records.see([heartbeat("a", 1)], 9.0)
    assert records.next_death_in() == 3.0


def test_one_that_died_and_was_forgotten_is_new_when_it_returns() -> None:
    records = MemberRecords(MembershipTiming(heartbeat=1.0, timeout=4.0, poll=2.0))
    record = {**heartbeat("a", 1), "state": "draining"}
    for began in (0.0, 2.0):
        assert [member.host for member in records.see([record], began)[1]] == ["a"]
    assert records.see([record], 4.0)[1] == []
    assert records.see([record], 6.0)[1] == [], "its record remains"
    assert records.see([], 8.0)[1] == []
    assert records.see([record], 10.0) == ({"a": record}, [member_of(record)])


def test_a_member_of_another_release_has_one_share_and_is_active() -> None:
    member = member_of(heartbeat("a", 1))
    assert (member.weight, member.state) == (1.0, "active")
