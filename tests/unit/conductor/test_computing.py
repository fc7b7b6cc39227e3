"""The turns of steps that compute much."""

import contextlib
import threading
from collections.abc import Iterator

import pytest
from stoker.conductor.steps import computing
from stoker.conductor.steps.computing import (
    BURST,
    LONGEST_WAIT,
    RATE,
    SMALL,
    SOONEST,
    Computing,
    NoTurn,
    StepComputing,
)
from stoker.resources.contract.errors import Cancelled
from stoker.template.budget import SOURCE, BudgetLimits, new_budget
from stoker.template.errors import LimitExceeded

USUAL = BudgetLimits()
LARGE = SMALL.bytes + 1


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def compute(turns: Computing, project: str, size: int) -> None:
    """Make so many bytes, in a step of the project."""
    with a_step(turns, project).budget(USUAL) as budget:
        budget.take(size)


def a_step(turns: Computing, project: str = "p") -> StepComputing:
    return StepComputing(turns, project, threading.Event())


class Turns(Computing):
    """Counts the turns that it gives; others hold the only place while `is_taken`."""

    def __init__(self) -> None:
        super().__init__(Clock())
        self.taken: list[bool] = []
        self.released: list[int] = []
        self.is_taken = False

    def take(self, project: str, stop: threading.Event | None = None) -> float:
        if self.is_taken and stop is None:
            raise NoTurn(1.0)
        self.taken.append(stop is None)
        return 0.0

    def release(self, project: str, size: int, began: float) -> None:
        self.released.append(size)


@pytest.fixture
def turns() -> Turns:
    return Turns()


@pytest.fixture
def step(turns: Turns) -> StepComputing:
    return a_step(turns)


def test_what_is_small_takes_no_turn(turns: Turns, step: StepComputing) -> None:
    with step.budget(USUAL) as budget:
        budget.take(SMALL.bytes)
    assert turns.taken == turns.released == []


def test_what_is_large_continues_in_a_turn_with_the_usual_budget(turns: Turns, step: StepComputing) -> None:
    with step.budget(USUAL) as budget:
        budget.take(LARGE)
        assert (turns.taken, turns.released) == ([True], [])
        budget.take(LARGE)
        with pytest.raises(LimitExceeded, match=f"more than {USUAL.bytes} bytes"):
            budget.take(USUAL.bytes)
    assert (turns.taken, turns.released) == ([True], [2 * LARGE + USUAL.bytes])


def test_work_without_bytes_is_large_too(turns: Turns, step: StepComputing) -> None:
    with step.budget(USUAL) as budget:
        budget.step(SMALL.steps + 1)
        budget.step(USUAL.steps - SMALL.steps - 1)
        with pytest.raises(LimitExceeded, match=f"more than {USUAL.steps} steps"):
            budget.step(1)
    assert turns.taken == [True]


def test_many_small_computations_of_a_step_are_large_together(turns: Turns, step: StepComputing) -> None:
    counts = []
    for _ in range(9):
        with step.budget(USUAL) as budget:
            budget.take(SMALL.bytes // 3)
        counts.append(len(turns.taken))
    assert counts == [0, 0, 0, 1, 1, 1, 1, 2, 2]
    assert turns.taken == [True, False], "it is refused no second one"


def test_what_was_computed_before_takes_nothing_of_the_usual_budget(step: StepComputing) -> None:
    with step.budget(USUAL) as budget:
        budget.take(SMALL.bytes)
        budget.step(SMALL.steps)
    with step.budget(USUAL) as budget:
        budget.take(USUAL.bytes)
        budget.step(USUAL.steps)


def test_a_step_that_has_had_a_turn_is_refused_no_other(turns: Turns, step: StepComputing) -> None:
    with step.budget(USUAL) as budget:
        budget.take(LARGE)
    turns.is_taken = True
    with step.budget(USUAL) as budget:
        budget.take(LARGE)
    with pytest.raises(NoTurn), a_step(turns).budget(USUAL) as budget:
        budget.take(LARGE)
    assert len(turns.released) == len(turns.taken) == 2


def test_a_computation_within_another_shares_its_turn(turns: Turns, step: StepComputing) -> None:
    with step.budget(USUAL) as outer:
        outer.take(LARGE)
        with step.budget(USUAL) as inner:
            inner.take(LARGE)
        assert (turns.taken, turns.released) == ([True], [])
    assert turns.released == [2 * LARGE]


def test_limits_of_the_service_that_are_below_the_small_ones_hold(step: StepComputing) -> None:
    for limits in (BudgetLimits(bytes=1000), BudgetLimits(steps=1000)):
        with step.budget(limits) as budget, pytest.raises(LimitExceeded, match="more than 1000"):
            budget.take(1001) if limits.bytes == 1000 else budget.step(1001)


def test_no_limit_of_the_service_is_none_after_the_small_one(turns: Turns, step: StepComputing) -> None:
    with step.budget(BudgetLimits(bytes=0, steps=0, seconds=0)) as budget:
        budget.take(LARGE)
        budget.step(10**9)
    assert turns.taken == [True]


def test_work_that_is_not_counted_takes_a_turn_and_has_the_time_of_the_service(
    turns: Turns, step: StepComputing
) -> None:
    with step.budget(BudgetLimits(seconds=1000)) as budget:
        budget._clock = lambda: budget._since + 10
        budget.step(SMALL.steps // 2)
        assert (turns.taken, budget.seconds_left()) == ([True], 990)
        budget._clock = lambda: budget._since + 1001
        with pytest.raises(LimitExceeded, match="more than 1000 seconds"):
            budget.step(SMALL.steps // 2)


def test_a_budget_takes_no_turn_after_its_computation(turns: Turns, step: StepComputing) -> None:
    with step.budget(USUAL) as budget:
        pass
    with pytest.raises(AssertionError, match="has ended"):
        budget.take(LARGE)
    assert turns.taken == []


def test_a_step_that_is_to_stop_waits_for_no_further_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computing, "LOOK", 0.0)
    turns = Computing()
    step = a_step(turns)
    with step.budget(USUAL) as budget:
        budget.take(LARGE)
    step.stop.set()
    with held(turns, "other"), pytest.raises(Cancelled), step.budget(USUAL) as budget:
        budget.take(LARGE)
    assert not turns._waiting


def test_a_step_that_stops_is_refused_no_turn(turns: Turns, step: StepComputing) -> None:
    turns.is_taken = True
    step.stop.set()
    step.stopping()
    with step.budget(USUAL) as budget:
        budget.take(LARGE)
    assert turns.taken == [False]
    assert not step.stop.is_set()


def test_a_transaction_waits_for_no_turn(
    turns: Turns, step: StepComputing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(computing, "in_transaction", lambda: True)
    turns.is_taken = True
    with step.budget(USUAL) as budget:
        budget.take(LARGE)
    assert turns.taken == []


def test_a_thread_has_its_budgets_from_its_step(turns: Turns, step: StepComputing) -> None:
    token = SOURCE.set(step)
    try:
        with new_budget() as budget:
            budget.take(LARGE)
    finally:
        SOURCE.reset(token)
    assert turns.taken == [True]
    with new_budget() as budget:
        budget.take(LARGE)
    assert turns.taken == [True]


def test_a_project_makes_so_many_bytes_over_time_and_others_are_free() -> None:
    clock = Clock()
    turns = Computing(clock)
    size = USUAL.bytes
    for _ in range(BURST // size + 1):
        compute(turns, "hog", size)
    with pytest.raises(NoTurn):
        compute(turns, "hog", size)
    compute(turns, "other", LARGE)
    compute(turns, "hog", 1)  # Small ones need no turn.
    clock.now += 2 * size / RATE
    compute(turns, "hog", size)


def test_steps_without_a_turn_are_run_again_one_after_the_other() -> None:
    turns = Computing(Clock())
    for _ in range(BURST // USUAL.bytes + 1):
        compute(turns, "hog", USUAL.bytes)
    pauses = []
    for _ in range(200):
        with pytest.raises(NoTurn) as refused:
            compute(turns, "hog", LARGE)
        pauses.append(refused.value.after)
    assert pauses == sorted(pauses)
    assert pauses[0] >= SOONEST
    assert len(set(pauses)) > 100


@contextlib.contextmanager
def held(turns: Computing, project: str) -> Iterator[None]:
    """Hold the only place for a project."""
    began = turns.take(project)
    try:
        yield
    finally:
        turns.release(project, 1, began)


@pytest.mark.parametrize(("waiting", "waits"), [(0, True), (1, True), (2, True), (3, False)])
def test_a_step_waits_if_its_turn_comes_sooner_than_it_would_be_run_again(
    monkeypatch: pytest.MonkeyPatch, *, waiting: int, waits: bool
) -> None:
    turns = Computing()
    turns._mean = SOONEST / 3
    turns._waiting["p"] = waiting
    waited: list[float] = []
    monkeypatch.setattr(turns, "_wait", lambda project, longest: waited.append(longest) or True)
    with contextlib.nullcontext() if waits else pytest.raises(NoTurn):
        turns.take("p")
    assert waited == ([LONGEST_WAIT] if waits else [])


def test_one_step_of_a_project_waits_and_a_newcomer_goes_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computing, "LONGEST_WAIT", 60.0)
    turns = Computing()
    turns._mean = SOONEST
    order: list[str] = []

    def run(project: str, stop: threading.Event | None = None) -> threading.Thread:
        def take() -> None:
            began = turns.take(project, stop)
            order.append(project)
            turns.release(project, 1, began)

        count = turns._waiting[project]
        thread = threading.Thread(target=take)
        thread.start()
        while turns._waiting[project] == count:
            pass
        return thread

    with held(turns, "hog"):
        threads = [run("hog")]
        with pytest.raises(NoTurn):
            turns.take("hog")
        threads.append(run("hog", threading.Event()))
        threads.append(run("newcomer"))
        turns._shares._uses["hog"].spent = 60.0
    for thread in threads:
        thread.join(60)
    assert order == ["newcomer", "hog", "hog"]
    assert not turns._waiting


def test_a_step_waits_for_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computing, "LONGEST_WAIT", 0.0)
    turns = Computing()
    with held(turns, "other"), pytest.raises(NoTurn):
        turns.take("p")
    assert not turns._waiting
    with held(turns, "p"):
        pass


def test_uses_that_are_over_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computing, "MOST_REMEMBERED", 10)
    clock = Clock()
    turns = Computing(clock)
    for number in range(100):
        compute(turns, f"p{number}", LARGE)
        clock.now += 100
    assert len(turns._paid_at) <= 11
