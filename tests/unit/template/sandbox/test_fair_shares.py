"""The order in which projects take places that all share."""

import pytest
from stoker.template.sandbox.fair_shares import HALF_LIFE, LIGHT, MOST_REMEMBERED, FairShares


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def order_of(shares: FairShares, *waiting: str) -> list[str]:
    """Who takes places, in order, until none may."""
    queue = list(waiting)
    order = []
    while (project := shares.first_of(queue)) is not None:
        shares.take(project)
        queue.remove(project)
        order.append(project)
    return order


def make_heavy(shares: FairShares, clock: Clock, *projects: str) -> None:
    for project in projects:
        shares.take(project)
        clock.now += LIGHT + 1
        shares.release(project)


def test_a_project_has_its_share_and_the_fewest_places_go_first(clock: Clock) -> None:
    assert order_of(FairShares(4, monotonic=clock), "a", "a", "a", "b", "c") == ["a", "b", "c", "a"]
    assert order_of(FairShares(4, monotonic=clock), "a", "a", "a") == ["a", "a"]
    assert order_of(FairShares(4, share=3, monotonic=clock), *"aaaa") == ["a"] * 3
    assert order_of(FairShares(4, share=9, monotonic=clock), *"aaaaa") == ["a"] * 4
    assert order_of(FairShares(1, monotonic=clock), "a", "b") == ["a"]


def test_the_last_place_is_kept_for_a_newcomer(clock: Clock) -> None:
    shares = FairShares(4, monotonic=clock)
    make_heavy(shares, clock, "a", "b", "c")
    assert sorted(order_of(shares, *"aabbcc")) == ["a", "b", "c"]
    assert order_of(shares, "a", "newcomer", "newcomer") == ["newcomer"]


def test_who_has_used_least_of_late_goes_first(clock: Clock) -> None:
    shares = FairShares(4, monotonic=clock)
    make_heavy(shares, clock, "a", "b", "b")
    assert order_of(shares, "b", "a", "newcomer") == ["newcomer", "a", "b"]


def test_of_similar_uses_who_came_first_goes_first(clock: Clock) -> None:
    shares = FairShares(4, monotonic=clock)
    make_heavy(shares, clock, "a", "b", "c", "c", "c")
    assert order_of(shares, "c", "b", "a") == ["b", "a", "c"]
    assert order_of(FairShares(4, share=2, monotonic=clock), "b", "a") == ["b", "a"]


def test_a_use_that_is_a_little_larger_is_no_reason_to_wait(clock: Clock) -> None:
    shares = FairShares(4, monotonic=clock)
    shares.take("a")
    shares.take("b")
    clock.now += 3.9 * LIGHT
    shares.release("a")
    clock.now += 0.2 * LIGHT
    shares.release("b")
    assert order_of(shares, "b", "a") == ["b", "a"]


def test_what_runs_counts_and_what_was_used_is_forgiven(clock: Clock) -> None:
    shares = FairShares(4, monotonic=clock)
    shares.take("a")
    assert not shares.is_heavy("a")
    clock.now += 2 * LIGHT
    assert shares.is_heavy("a")
    shares.release("a")
    clock.now += HALF_LIFE / 2
    assert shares.is_heavy("a")
    clock.now += HALF_LIFE
    assert not shares.is_heavy("a")


def test_the_wait_is_expected_by_the_length_of_turns(clock: Clock) -> None:
    shares = FairShares(4, monotonic=clock)
    for _ in range(1000):
        shares.take("quick")
        clock.now += 0.005
        shares.release("quick")
    assert shares.is_heavy("quick")
    assert shares.expected_wait("quick", 30) == pytest.approx(30 * 0.005 / 2, rel=0.01)
    shares.take("slow")
    clock.now += 2
    assert shares.expected_wait("slow", 3) == pytest.approx(3, rel=0.2)
    assert shares.expected_wait("unknown", 30) == 0


def test_nobody_waits_while_there_is_room_however_long_the_turns_take(clock: Clock) -> None:
    shares = FairShares(4, monotonic=clock)
    for _ in range(3):
        shares.take("slow")
        clock.now += 4
        shares.release("slow")
    assert shares.expected_wait("slow", 2) == 0
    shares.take("slow")
    assert shares.expected_wait("slow", 1) == 0
    assert shares.expected_wait("slow", 2) > 2


def test_not_all_projects_are_remembered(clock: Clock) -> None:
    shares = FairShares(4, monotonic=clock)
    make_heavy(shares, clock, "heavy")
    shares.take("holds")
    for number in range(2 * MOST_REMEMBERED):
        shares.take(f"p{number}")
        shares.release(f"p{number}")
    assert len(shares._uses) <= MOST_REMEMBERED + 1  # noqa: SLF001
    shares.release("holds")
    assert shares.is_heavy("heavy")


def test_a_project_has_room_for_its_share_of_what_is_free(clock: Clock) -> None:
    shares = FairShares(4, monotonic=clock)
    assert shares.room("a") == 2
    shares.take("a")
    assert (shares.room("a"), shares.room("b")) == (1, 2)
    make_heavy(shares, clock, "b")
    shares.take("c")
    assert (shares.room("b"), shares.room("newcomer")) == (1, 2)
