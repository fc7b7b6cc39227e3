"""The turns of steps that compute much."""

import threading

import pytest
from stoker.conductor.steps import computing
from stoker.conductor.steps.computing import BURST, RATE, SMALL, SOONEST, Computing, NoTurn
from stoker.template.budget import Budget
from stoker.template.errors import LimitExceeded, TemplateError
from stoker.template.sandbox import evaluator
from stoker.template.sandbox.evaluator import charged_to


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Making:
    """A computation that makes so many bytes."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.budgets: list[Budget] = []

    def __call__(self, budget: Budget) -> int:
        self.budgets.append(budget)
        budget.take(self.size)
        return self.size


LARGE = SMALL.bytes + 1


def test_what_is_small_is_computed_at_once() -> None:
    compute = Making(SMALL.bytes)
    assert Computing(Clock()).result_of("p", compute) == SMALL.bytes
    assert len(compute.budgets) == 1


def test_what_is_large_is_computed_again_with_the_budget_of_a_step() -> None:
    compute = Making(LARGE)
    assert Computing(Clock()).result_of("p", compute) == LARGE
    assert [budget.limits.bytes for budget in compute.budgets] == [SMALL.bytes, Budget().limits.bytes]


def test_work_without_bytes_is_large_too() -> None:
    calls = []

    def compute(budget: Budget) -> None:
        calls.append(budget)
        for _ in range(3):
            budget.step(SMALL.steps // 2 + 1)

    Computing(Clock()).result_of("p", compute)
    assert len(calls) == 2


def test_the_budget_of_a_step_stays() -> None:
    with pytest.raises(LimitExceeded, match=f"more than {Budget().limits.bytes} bytes"):
        Computing(Clock()).result_of("p", Making(Budget().limits.bytes + 1))


def test_an_error_is_no_reason_to_compute_again() -> None:
    compute = Making(1)

    def fail(budget: Budget) -> None:
        compute(budget)
        raise TemplateError("wrong")

    with pytest.raises(TemplateError, match="wrong"):
        Computing(Clock()).result_of("p", fail)
    assert len(compute.budgets) == 1


def test_a_project_makes_so_many_bytes_over_time_and_others_are_free() -> None:
    clock = Clock()
    turns = Computing(clock)
    size = Budget().limits.bytes
    for _ in range(BURST // size + 1):
        turns.result_of("hog", Making(size))
    with pytest.raises(NoTurn):
        turns.result_of("hog", Making(size))
    assert turns.result_of("other", Making(LARGE)) == LARGE
    assert turns.result_of("hog", Making(1)) == 1, "small ones need no turn"
    clock.now += 2 * size / RATE
    assert turns.result_of("hog", Making(size)) == size


def test_steps_without_a_turn_are_run_again_one_after_the_other() -> None:
    clock = Clock()
    turns = Computing(clock)
    for _ in range(BURST // Budget().limits.bytes + 1):
        turns.result_of("hog", Making(Budget().limits.bytes))
    pauses = []
    for _ in range(200):
        with pytest.raises(NoTurn) as refused:
            turns.result_of("hog", Making(LARGE))
        pauses.append(refused.value.after)
    assert pauses == sorted(pauses)
    assert pauses[0] >= SOONEST
    assert len(set(pauses)) > 100


def test_one_step_of_a_project_waits_and_a_newcomer_goes_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computing, "LONGEST_WAIT", 60.0)
    turns = Computing()
    order: list[str] = []
    holds, lets_go = threading.Event(), threading.Event()

    def hold(budget: Budget) -> None:
        budget.take(LARGE)
        holds.set()
        lets_go.wait(60)

    def run(project: str) -> threading.Thread:
        def compute(budget: Budget) -> None:
            budget.take(LARGE)
            order.append(project)

        thread = threading.Thread(target=lambda: turns.result_of(project, compute))
        thread.start()
        return thread

    first = threading.Thread(target=lambda: turns.result_of("hog", hold))
    first.start()
    assert holds.wait(60)
    threads = [first, run("hog")]
    while "hog" not in turns._waiting:
        pass
    with pytest.raises(NoTurn):
        turns.result_of("hog", Making(LARGE))
    threads.append(run("newcomer"))
    while "newcomer" not in turns._waiting:
        pass
    turns._shares._uses["hog"].spent = 60.0
    lets_go.set()
    for thread in threads:
        thread.join(60)
    assert order == ["newcomer", "hog"]


def test_a_step_waits_for_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computing, "LONGEST_WAIT", 0.0)
    turns = Computing()

    def nested(budget: Budget) -> None:
        budget.take(LARGE)
        turns.result_of("other", Making(LARGE))

    with pytest.raises(NoTurn):
        turns.result_of("p", nested)


def test_uses_that_are_over_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computing, "MOST_REMEMBERED", 10)
    clock = Clock()
    turns = Computing(clock)
    for number in range(100):
        turns.result_of(f"p{number}", Making(LARGE))
        clock.now += 100
    assert len(turns._paid_at) <= 11


def test_expressions_of_the_first_try_do_not_count() -> None:
    left: list[float] = []

    def compute(budget: Budget) -> None:
        account = evaluator.account()
        assert account is not None
        left.append(account.seconds_left())
        account.spend(1.0)
        budget.take(LARGE)

    with charged_to("p", 1.5):
        Computing(Clock()).result_of("p", compute)
    assert left == [1.5, 1.5]
