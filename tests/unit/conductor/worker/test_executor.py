"""Steps on the threads of a pool, without a thread: their ends, their detachment, and their numbers."""

import threading
import types
import typing
from collections.abc import Callable

import pytest
from harness.counting import Counting
from stoker.conductor.steps.results import StepResult
from stoker.conductor.worker.claimed import ClaimedTask
from stoker.conductor.worker.executor import Detachment, Quarantine, StepExecutor, WorkMetrics
from stoker.conductor.worker.pool import NoThread
from stoker.db.ids import TaskId
from stoker.observe import metrics

Json = typing.Any


def claimed(number: int, project: str = "p", *, ready_at: float | None = None) -> ClaimedTask:
    task = types.SimpleNamespace(id=TaskId(number), attempt=1, kind="create", ready_at=ready_at)
    stack = {"request": None, "traversal": "t", "stack_id": "s"}
    claim: Json = types.SimpleNamespace(task=types.SimpleNamespace(**vars(task), **stack), project_id=project)
    return ClaimedTask(claim, (TaskId(number), 1))


class Pool:
    """A pool whose steps run when the test says so.

    :ivar jobs: the steps that were submitted.
    :ivar error: of the next submission.
    :ivar hangs: whether a step that is detached has started.
    """

    def __init__(self) -> None:
        self.now = 100.0
        self.jobs: list[Callable[[], object]] = []
        self.error: Exception | None = None
        self.hangs = True
        self.restarts = 0
        self.wakes: list[int] = []
        self.left: list[Json] = []
        self.recorder = Counting()
        self.executor = StepExecutor(
            self,
            typing.cast(Quarantine, types.SimpleNamespace(leave=self.left.append)),
            wake=lambda: self.wakes.append(len(self.executor.ended)),
            clock=lambda: 1e9 + self.now,
            monotonic=lambda: self.now,
            recorder=self.recorder,
        )

    def submit(self, fn: Callable[..., object], /, *args: object) -> int:
        if self.error is not None:
            raise self.error
        self.jobs.append(lambda: fn(*args))
        return len(self.jobs) - 1

    def detach(self, job: int) -> bool:
        assert self.jobs[job]
        return self.hangs

    def restart_threads(self) -> None:
        self.restarts += 1

    def step(self, of: ClaimedTask, seconds: float = 0.0) -> Callable[[], StepResult]:
        """Return a step that takes so long."""

        def run() -> StepResult:
            assert of.started_at == self.now
            assert of.thread == threading.get_ident()
            self.now += seconds
            return StepResult(of.claim, None, progress=of.key)

        return run


def test_a_step_that_has_ended_is_in_the_inbox_before_the_wake_and_runs_no_more() -> None:
    pool = Pool()
    first, second = claimed(1), claimed(2, "q")
    for each in (first, second):
        pool.executor.start(each, pool.step(each, 3.2))
    assert [pool.executor.active_of(project) for project in ("p", "q", "r")] == [1, 1, 0]
    assert pool.executor.running() == [first, second]
    assert not first.has_run
    pool.jobs[0]()
    assert [(each, result and result.progress) for each, result in pool.executor.ended] == [(first, (1, 1))]
    assert pool.wakes == [1]
    assert (first.has_run, first.started_at, first.thread) == (True, None, None)
    assert (pool.executor.runs((TaskId(1), 1)), pool.executor.runs((TaskId(2), 1))) == (False, True)
    assert (pool.executor.active_of("p"), [*pool.executor.active]) == (0, [(2, 1)])
    assert set(pool.executor._active_of) == {"q"}, "it does not grow with the projects that were there once"
    assert pool.executor.step_seconds == pytest.approx(0.1)
    pool.jobs[1]()
    assert pool.executor.step_seconds == pytest.approx(0.1 + 3.1 / 32)
    assert pool.recorder.observed(metrics.STEP, "create") == pytest.approx([3.2, 3.2])


def test_a_project_has_as_many_steps_as_it_has_claims() -> None:
    pool = Pool()
    cancelled, other = claimed(1), claimed(2)
    for each in (cancelled, cancelled, other):
        pool.executor.start(each, pool.step(each))
    assert pool.executor.active_of("p") == 2
    pool.jobs[2]()
    assert pool.executor.active_of("p") == 1


def test_a_step_that_breaks_ends_without_a_result() -> None:
    pool = Pool()
    broken = claimed(1)

    def fail() -> StepResult:
        raise ValueError("broken")

    pool.executor.start(broken, fail)
    with pytest.raises(ValueError, match="broken"):
        pool.jobs[0]()
    assert list(pool.executor.ended) == [(broken, None)]
    assert broken.has_run


@pytest.mark.parametrize(("error", "refused_at"), [(NoThread("none"), 1e9 + 100.0), (MemoryError(), None)])
def test_a_step_that_cannot_start_ends_at_once(error: Exception, refused_at: float | None) -> None:
    pool = Pool()
    each = claimed(1)
    pool.error = error
    if refused_at is None:
        with pytest.raises(MemoryError):
            pool.executor.start(each, pool.step(each))
    else:
        pool.executor.start(each, pool.step(each))
    assert list(pool.executor.ended) == [(each, None)]
    assert (pool.executor.refused_at, each.has_run) == (refused_at, False)
    assert (pool.executor.active, pool.executor.active_of("p")) == ({}, 0)
    assert pool.executor.step_seconds == 0.0, "no step has run"


def test_a_detached_step_still_runs_but_counts_no_more_as_active() -> None:
    pool = Pool()
    each = claimed(1)
    pool.executor.start(each, pool.step(each))
    assert pool.executor.detach(each) is Detachment.HANGS
    assert pool.left == [each.claim], "the next one may run alone"
    assert pool.executor.runs(each.key)
    assert (pool.executor.running(), pool.executor.active, pool.executor.active_of("p")) == ([each], {}, 0)
    assert pool.executor.detach(each) is Detachment.ENDED
    pool.jobs[0]()
    assert (pool.executor.running(), len(pool.executor.ended)) == ([], 1)
    assert not pool.executor.runs(each.key)


def test_one_that_has_not_started_is_detached_for_good() -> None:
    pool = Pool()
    each = claimed(1)
    pool.executor.start(each, pool.step(each))
    pool.hangs = False
    assert pool.executor.detach(each) is Detachment.NOT_STARTED
    assert (pool.executor.running(), pool.left) == ([], [each.claim])
    pool.executor.restart_threads()
    assert pool.restarts == 1


def test_numbers_of_a_transaction_and_of_results() -> None:
    counting = Counting()
    numbers = WorkMetrics(counting)
    claims = [claimed(1, ready_at=90.0).claim, claimed(2, ready_at=95.0).claim, claimed(3).claim]
    numbers.exchanged(claims, [TaskId(1), TaskId(3)], began=100.0, seconds=0.5)
    assert counting.observed(metrics.COMMIT) == [0.5]
    assert counting.observed(metrics.CLAIM_WAIT) == [10.5], "the others were not hinted, or have no moment"
    for stop, detached, timed_out in (
        (False, False, True),
        (True, False, False),
        (True, False, False),
        (True, True, False),
    ):
        each = claimed(1)
        outcome: Json = types.SimpleNamespace(state="done")
        if stop:
            each.stop.set()
        numbers.stored(StepResult(each.claim, outcome, detached=detached, timed_out=timed_out), each)
    numbers.stored(StepResult(claims[0], outcome), None)
    assert counting.of(metrics.RESULTS, "create", "done") == 5
    assert counting.of(metrics.TIMEOUTS, "resource") == 1
    answers = ("stopped", "given_up", "not_held")
    assert [counting.of(metrics.CANCELS_ANSWERED, answer) for answer in answers] == [2, 1, 0]
    numbers.not_held(3)
    numbers.dropped(4)
    numbers.refused()
    numbers.cancel_requested()
    assert counting.of(metrics.CANCELS_ANSWERED, "not_held") == 3
    assert counting.of(metrics.HINTS_DROPPED) == 4
    assert (counting.of(metrics.REFUSED), counting.of(metrics.CANCELS_ASKED)) == (1, 1)
