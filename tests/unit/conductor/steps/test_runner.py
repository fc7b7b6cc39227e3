"""The result of a step that meets an error which is not its resource's failure."""

import base64
import threading
import types
import typing
from collections.abc import Callable

import pytest
from stoker.conductor.steps.computing import SMALL, Computing, NoTurn
from stoker.conductor.steps.context import StepServices
from stoker.conductor.steps.kinds.table import KINDS
from stoker.conductor.steps.outcomes import Outcomes, Restricted
from stoker.conductor.steps.results import StepResult
from stoker.conductor.steps.runner import StepRunner
from stoker.db.errors import Unavailable
from stoker.db.ids import MemberId
from stoker.db.states import TaskKind, TaskState
from stoker.db.work.claim import Claimant
from stoker.resources.contract.errors import Cancelled, RetryableError
from stoker.sealing.sealer import Sealer
from stoker.template.budget import SOURCE, new_budget
from stoker.template.sandbox.errors import HelperUnavailable
from unit.conductor.steps.claims import a_claim, a_row, a_task

Json = typing.Any
NOW = 1000.0
WHO = Claimant(MemberId("one/i"), "one")
ROW = a_row()


class Scene:
    """A runner of steps of one kind.

    :ivar step: what a step does.
    :ivar written: how many transactions the runner has begun by itself.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kind: TaskKind = TaskKind.UPDATE) -> None:
        self.kind = kind
        self.step: Callable[[Outcomes], StepResult] = lambda outcomes: outcomes.done({"data": {"n": 1}}, "x")
        self.cancelled = self.written = 0
        monkeypatch.setitem(KINDS, kind, typing.cast(Json, self._kind))
        services = StepServices(
            database=typing.cast(Json, types.SimpleNamespace(writes_of=lambda claim: self)),
            clock=lambda: NOW,
            addresses=typing.cast(Json, None),
            sealer=Sealer([base64.b64encode(bytes(64)).decode()]),
            nested=typing.cast(Json, None),
            quota_wait=0.0,
        )
        self.runner = StepRunner(registry=typing.cast(Json, None), services=services)

    def write(self, transaction: Callable[..., None]) -> None:
        self.written += 1

    def _kind(self, outcomes: Outcomes, *_: object) -> Json:
        return types.SimpleNamespace(run=lambda: self.step(outcomes), cancel=self._cancel)

    def _cancel(self) -> None:
        self.cancelled += 1

    def run(self, progress: Json = None, *, stop: bool = False) -> StepResult:
        event = threading.Event()
        if stop:
            event.set()
        return self.runner.run(a_claim(a_task(self.kind), ROW), progress, event, WHO)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


def raising(error: Exception) -> Callable[[Outcomes], StepResult]:
    def step(outcomes: Outcomes) -> StepResult:
        raise error

    return step


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (MemoryError(), "retrying its step, memory is short"),
        (Unavailable("no answer"), "retrying its step, the database is unavailable: no answer"),
        (HelperUnavailable("no child"), "retrying its step, expressions cannot be evaluated: no child"),
    ],
)
def test_what_the_conductor_lacks_delays_a_step_under_the_same_claim_and_is_logged_once(
    scene: Scene, caplog: pytest.LogCaptureFixture, error: Exception, line: str
) -> None:
    scene.step = raising(error)
    for _ in range(2):
        result = scene.run({"n": 1})
        assert (result.outcome, result.poll_after, result.progress) == (None, 2.0, {"n": 1})
        assert caplog.messages == [f"Resource s/r: {line}"]


def test_what_a_step_computes_to_stop_is_neither_refused_nor_stopped(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[bool] = []

    def take(self: Computing, project: str, stop: threading.Event | None = None) -> float:
        assert stop is not None, "it would be refused"
        turns.append(stop.is_set())
        return 0.0

    def cancel() -> None:
        with new_budget() as budget:
            budget.step(SMALL.steps + 1)

    monkeypatch.setattr(Computing, "take", take)
    monkeypatch.setattr(Computing, "release", lambda self, project, size, began: None)
    monkeypatch.setattr(scene, "_cancel", cancel)
    scene.step = raising(Cancelled())
    waiting = a_claim(a_task(scene.kind), ROW)
    for result in (scene.run(stop=True), scene.runner.cancel(waiting, WHO)):
        assert result.outcome is not None
        assert result.outcome.state == TaskState.CANCELLED
    assert turns == [False, False]


def test_a_thread_has_the_budgets_of_a_step_only_while_it_runs_it(scene: Scene) -> None:
    sources: list[object] = []

    def step(outcomes: Outcomes) -> StepResult:
        sources.append(SOURCE.get())
        return outcomes.done({}, "x")

    scene.step = step
    scene.run()
    assert sources != [None]
    assert SOURCE.get() is None


def test_a_step_that_waits_for_its_turn_runs_again_then(scene: Scene) -> None:
    scene.step = raising(NoTurn(0.5))
    result = scene.run({"n": 1})
    assert (result.outcome, result.poll_after, result.progress) == (None, 0.5, {"n": 1})


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (RetryableError("away"), TaskState.PARKED),
        (Restricted("no"), TaskState.FAILED),
        (ValueError("a bug"), TaskState.FAILED),
        (Cancelled(), TaskState.CANCELLED),
    ],
)
def test_an_error_ends_an_attempt_as_its_kind_says(scene: Scene, error: Exception, state: TaskState) -> None:
    scene.step = raising(error)
    outcome = scene.run().outcome
    assert outcome is not None
    assert outcome.state == state


def test_a_step_that_is_to_stop_does_not_begin(scene: Scene) -> None:
    scene.step = raising(AssertionError("it begins"))
    outcome = scene.run(stop=True).outcome
    assert outcome is not None
    assert (outcome.state, scene.cancelled) == (TaskState.CANCELLED, 1)


@pytest.mark.parametrize(("kind", "written"), [(TaskKind.SIGNAL, 1), (TaskKind.UPDATE, 0)])
def test_what_a_signal_changes_is_stored_before_its_end(
    monkeypatch: pytest.MonkeyPatch, kind: TaskKind, written: int
) -> None:
    scene = Scene(monkeypatch, kind)
    outcome = scene.run().outcome
    assert outcome is not None
    assert (outcome.state, scene.written) == (TaskState.DONE, written)


def test_a_result_that_cannot_be_stored_fails_its_resource(scene: Scene) -> None:
    result = scene.runner.unstorable(scene.run().claim, WHO)
    assert result.outcome is not None
    assert result.outcome.state == TaskState.FAILED
    assert result.outcome.reason.endswith("UPDATE came to a result that cannot be stored")
