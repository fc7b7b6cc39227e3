import pytest
from stoker.template.budget import MAX_VALUE_DEPTH, Budget, BudgetLimits, measure
from stoker.template.errors import LimitExceeded


class Clock:
    """Processor time that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_bytes_are_refused_before_they_are_made():
    budget = Budget(BudgetLimits(bytes=1000))
    budget.take_text(900)
    with pytest.raises(LimitExceeded, match="more than 1000 bytes of values"):
        budget.take_text(100)


def test_a_text_that_is_not_ascii_takes_four_times_as_much():
    budget = Budget(BudgetLimits(bytes=1000))
    budget.take_text(200, is_ascii=False)
    with pytest.raises(LimitExceeded):
        budget.take_text(200, is_ascii=False)


def test_steps_are_counted_exactly():
    budget = Budget(BudgetLimits(steps=5000))
    for _ in range(5000):
        budget.step()
    with pytest.raises(LimitExceeded, match="more than 5000 steps"):
        budget.step()


def test_a_large_step_is_refused_before_it_is_done():
    with pytest.raises(LimitExceeded):
        Budget(BudgetLimits(steps=5000)).step(1_000_000)


def test_the_time_is_looked_at_now_and_then():
    clock = Clock()
    budget = Budget(BudgetLimits(steps=0, seconds=2.0), clock=clock)
    budget.step(100_000)
    clock.now += 2.5
    with pytest.raises(LimitExceeded, match="more than 2 seconds of work"):
        budget.step(10_000)


def test_what_another_process_has_used_counts_too():
    clock = Clock()
    budget = Budget(BudgetLimits(seconds=2.0), clock=clock)
    clock.now += 0.5
    assert budget.seconds_left() == 1.5
    budget.spend(1.0)
    assert budget.seconds_left() == 0.5
    with pytest.raises(LimitExceeded):
        budget.spend(1.0)
    assert budget.seconds_left() == 0.0


def test_zero_means_no_limit():
    clock = Clock()
    budget = Budget(BudgetLimits(bytes=0, steps=0, seconds=0), clock=clock)
    clock.now += 1e6
    budget.take(10**15)
    budget.step(10**15)
    assert budget.seconds_left() == float("inf")


def test_a_value_is_charged_part_by_part_so_that_a_vast_one_is_refused_at_once():
    shared = ["x" * 1000] * 1000
    vast = [shared] * 1_000_000  # a terabyte if it were copied
    budget = Budget(BudgetLimits(bytes=50_000_000, steps=0))
    with pytest.raises(LimitExceeded):
        budget.take_value(vast)
    assert budget.bytes < 120_000_000


def test_a_value_that_is_too_deep_is_refused():
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(LimitExceeded, match=f"deeper than {MAX_VALUE_DEPTH} levels"):
        Budget().take_value(deep)
    level: list[object] = []
    for _ in range(89):
        level = [level]
    Budget().take_value(level, MAX_VALUE_DEPTH - 90)
    with pytest.raises(LimitExceeded):
        Budget().take_value(level, MAX_VALUE_DEPTH - 89)


def test_the_size_is_near_to_what_it_takes_in_memory():
    assert 1_000_000 < measure("x" * 1_000_000).bytes < 1_001_000
    assert 80_000 < measure([1] * 10_000 + []).bytes < 400_000
    assert measure({"a": [{"b": "c"}]}).depth == 3
    assert measure("text").depth == 0
