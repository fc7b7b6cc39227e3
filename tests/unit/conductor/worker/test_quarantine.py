"""Tasks with which conductors were lost: when their steps run, and when one runs alone."""

import threading
import types
import typing
from collections.abc import Callable

import pytest
from stoker.conductor.steps.results import StepResult, Steps
from stoker.conductor.worker.claimed import ClaimedTask
from stoker.conductor.worker.executor import Quarantine
from stoker.db.engine import Database
from stoker.db.errors import Unavailable
from stoker.db.ids import MemberId, ResourceId, StackId, TaskId, TraversalId
from stoker.db.rows import Outcome, Task
from stoker.db.states import TaskKind, TaskState
from stoker.db.work.claim import Claim, Claimant

Json = typing.Any
WHO = Claimant(MemberId("one/i"), "one")


def claimed(number: int, losses: int) -> ClaimedTask:
    task = Task(
        id=TaskId(number),
        traversal=TraversalId("t"),
        stack_id=StackId("s"),
        kind=TaskKind.CREATE,
        state=TaskState.RUNNING,
        pending=0,
        shard=0,
        resource_id=ResourceId(number),
        attempt=1,
        losses={"hosts": ["two", "three", "four"][:losses]} if losses else None,
    )
    claim = Claim(task, typing.cast(Json, None), {}, "stack", "p", StackId("s"), has_sinks=False)
    return ClaimedTask(claim, (task.id, task.attempt))


class Scene:
    """A quarantine in which three losses are too many.

    :ivar answer: of the database to the announcement of a step that runs alone.
    :ivar log: what was announced, and which steps have run.
    :ivar during: called by each step.
    :ivar outcome: of each step.
    """

    def __init__(self) -> None:
        self.answer: bool | Exception = True
        self.log: list[object] = []
        self.during: Callable[[], object] = lambda: None
        self.outcome: Outcome | None = None
        self.member: MemberId | None = WHO.member
        self.quarantine = Quarantine(
            typing.cast(Steps, self), database=typing.cast(Database, self), most=3, member=lambda: self.member
        )

    def write(self, transaction: object) -> bool:
        self.log.append("announced")
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def run(self, claim: Claim, progress: Json, stop: threading.Event, who: Claimant) -> StepResult:
        assert who is WHO
        self.log.append((claim.task.id, progress, stop))
        self.during()
        return StepResult(claim, self.outcome, progress="next")

    def lost_too_often(self, claim: Claim, who: Claimant) -> StepResult:
        return StepResult(claim, None, progress="lost too often")

    def step(self, each: ClaimedTask) -> tuple[float | None, Json, bool]:
        """Return when the next step comes, its token, and whether the task has losses still."""
        result = self.quarantine.run(each, "token", WHO)
        assert result.claim.task.id == each.claim.task.id
        return result.poll_after, result.progress, bool(result.claim.task.losses)


def test_only_a_last_chance_is_announced_and_the_losses_are_forgotten_as_soon_as_a_step_ends() -> None:
    for losses, announced in ((0, False), (1, False), (2, True)):
        scene = Scene()
        each = claimed(1, losses)
        assert scene.step(each) == (None, "next", False)
        assert scene.log == [*(["announced"] * announced), (1, "token", each.stop)]
        assert list(scene.quarantine.cleared) == ([1] if losses else [])


def test_a_result_that_is_stored_forgets_the_losses_itself() -> None:
    scene = Scene()
    scene.outcome = typing.cast(Outcome, types.SimpleNamespace())
    assert scene.step(claimed(1, 1)) == (None, "next", False)
    assert not scene.quarantine.cleared


@pytest.mark.parametrize("losses", [3, 4])
def test_a_task_that_was_lost_too_often_runs_no_step(losses: int) -> None:
    scene = Scene()
    assert scene.step(claimed(1, losses)) == (None, "lost too often", True)
    assert scene.log == []


@pytest.mark.parametrize("name", [None, "one/j"])
def test_no_step_runs_while_the_name_is_in_doubt(name: str | None) -> None:
    scene = Scene()
    scene.member = None if name is None else MemberId(name)
    assert scene.step(claimed(1, 0)) == (1.0, "token", False)
    assert scene.log == []


def test_one_runs_alone_and_the_others_of_its_kind_wait() -> None:
    scene = Scene()
    during: list[object] = []

    def others() -> None:
        scene.during = lambda: None
        during.append(scene.step(claimed(2, 2)))
        scene.quarantine.leave(claimed(2, 2).claim)
        during.append(scene.step(claimed(3, 2)))
        during.append(scene.step(claimed(4, 1)))
        scene.quarantine.leave(claimed(1, 2).claim)
        during.append(scene.step(claimed(5, 2)))

    scene.during = others
    assert scene.step(claimed(1, 2)) == (None, "next", False)
    waits = (1.0, "token", True)
    assert during == [waits, waits, (None, "next", False), (None, "next", False)]
    assert scene.step(claimed(2, 2)) == (None, "next", False), "the first has ended"


@pytest.mark.parametrize("answer", [False, Unavailable("away")])
def test_one_that_cannot_be_announced_waits_and_the_next_one_has_its_turn(
    answer: bool | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene()
    scene.answer = answer
    assert scene.step(claimed(1, 2)) == (1.0, "token", True)
    assert scene.log == ["announced"]
    assert "runs alone" not in caplog.text
    scene.answer = True
    assert scene.step(claimed(2, 2)) == (None, "next", False)
    assert "Task 2 runs alone in quarantine: it was running on two and three" in caplog.text
