"""Claims that the database and the work loop know differently: which are requeued, answered for, resolved."""

import typing

import pytest
from stoker.conductor.worker.claimed import ClaimState
from stoker.db.errors import DamagedRow, RowLocked, Unavailable
from stoker.db.ids import TaskId, TraversalId
from stoker.db.rows import ReadyTasks
from stoker.observe import metrics
from unit.conductor.worker.scene import WHO, Scene, claim, done, later

Json = typing.Any


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


def reconciled(scene: Scene, seconds: float = 0.0) -> list[tuple[Json, ...]]:
    """Let so much time pass, and return the calls of the next comparison."""
    scene.now += seconds
    scene.faults.reconcile(WHO)
    return scene.take_calls()


def test_the_database_is_not_read_without_a_doubt(scene: Scene) -> None:
    scene.round()
    scene.briefs.clear()
    scene.faults.reconcile(WHO)
    assert (scene.briefs, scene.calls) == ([], [])


def test_claims_in_our_name_that_are_unknown_are_requeued_once(scene: Scene) -> None:
    scene.claimed(1)
    scene.ours = [(1, 1), (2, 5)]
    scene.faults.doubt()
    scene.released = ReadyTasks({TraversalId("t"): [TaskId(2)]})
    assert reconciled(scene) == [("release", [(2, 5)], [])]
    assert scene.hints == [("t", [2])]
    assert reconciled(scene) == []
    scene.ours = [(1, 1)]
    scene.faults.doubt()
    assert reconciled(scene) == []


@pytest.mark.parametrize("has_run", [False, True])
def test_an_unfinished_claim_is_requeued_as_lost_if_a_step_has_started(
    *, has_run: bool, scene: Scene
) -> None:
    [claimed, other] = scene.claimed(1, 2)
    claimed.has_run, other.has_run = has_run, True
    claimed.state = ClaimState.REQUEUING
    scene.faults.give_up(claimed)
    assert reconciled(scene) == [("release", [(1, 1)], [1] if has_run else [])]
    assert (scene.claims.all(), claimed.state) == ([other], ClaimState.CLOSED)
    assert reconciled(scene) == []
    scene.faults.requeue([claimed.key])
    assert scene.take_calls() == [("release", [(1, 1)], [])], "it was lost once"


def test_a_claim_that_is_locked_is_requeued_later(scene: Scene) -> None:
    [claimed] = scene.claimed(1)
    claimed.has_run, claimed.state = True, ClaimState.REQUEUING
    scene.faults.give_up(claimed)
    scene.errors = [RowLocked("locked")]
    assert reconciled(scene) == []
    assert scene.claims.all() == [claimed]
    assert scene.round() == pytest.approx(0.1)
    assert reconciled(scene, 0.1) == [("release", [(1, 1)], [1])]


def test_what_is_lost_is_remembered_as_long_as_the_claim_is_ours(scene: Scene) -> None:
    [gone, ours] = scene.claimed(1, 2)
    for claimed in (gone, ours):
        claimed.has_run = True
        scene.faults._note_lost(claimed)
    scene.ours = [(2, 1)]
    scene.faults.doubt()
    reconciled(scene)
    scene.faults.requeue([(TaskId(1), 1), (TaskId(2), 1)])
    assert scene.take_calls() == [("release", [(1, 1), (2, 1)], [2])]


def test_a_repair_requeues_the_claims_that_nothing_knows(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.rows = {number: claim(number, project=str(number)) for number in range(9)}
    scene.result = later(1.0)
    scene.claimed(1, 2, 3, 4, 5)
    scene.round(steps=2)
    scene.hint(6, traversal="u")
    scene.hint(7, traversal="v")
    scene.round()
    runs, ends, unstorable, polled, due, lost = [scene.claims.held[TaskId(n)] for n in (3, 4, 5, 1, 2, 6)]
    stored = scene.claims.held[TaskId(7)]
    scene.jobs.pop(1)()  # 4 is in the inbox.
    for claimed in (unstorable, stored, lost):
        del scene.loop._executor.active[claimed.key]
    scene.claims.results.append(done(stored.claim))
    with (
        pytest.raises(ValueError, match="broken"),
        scene.faults.unstorable.watch([done(unstorable.claim)], is_guilty=False),
    ):
        raise ValueError("broken")
    scene.now += 1.0
    assert list(scene.claims.due(9, lambda owner: 0)) == []
    scene.claims.polls.add(300.0, (polled.key, None))
    lost.has_run = True
    scene.ours = [claimed.key for claimed in scene.claims.all()]
    scene.faults.repair()
    assert scene.claims.all() == [polled, due, runs, ends, unstorable, stored]
    assert "1 claims are requeued" in caplog.text
    assert reconciled(scene) == [("release", [(6, 1)], [6])]


# -- answers


def test_it_is_stored_that_nobody_has_to_wait_for_claims_that_are_not_ours(scene: Scene) -> None:
    [claimed] = scene.claimed(1)
    scene.claims.lose(claimed)
    scene.claims.unanswered += [(TaskId(1), 1), (TaskId(2), 3)]
    scene.released = ReadyTasks({TraversalId("t"): [TaskId(5)]})
    assert reconciled(scene) == [("answer", [(1, 1), (2, 3)], [(2, 3)], [])], "a step of the first runs still"
    assert scene.hints == [("t", [5])]
    assert scene.counting.of(metrics.CANCELS_ANSWERED, "not_held") == 2
    assert reconciled(scene) == []


def test_an_answer_names_the_tasks_whose_steps_were_lost(scene: Scene) -> None:
    [claimed] = scene.claimed(1)
    claimed.has_run = True
    scene.faults._note_lost(claimed)
    scene.claims.unanswered += [(TaskId(1), 1), (TaskId(2), 1)]
    assert reconciled(scene) == [("answer", [(1, 1), (2, 1)], [(2, 1)], [1])]


def test_an_answer_that_is_locked_is_given_later(scene: Scene) -> None:
    scene.claims.unanswered.append((TaskId(2), 3))
    scene.errors = [RowLocked("locked")]
    assert scene.round() == pytest.approx(0.1)
    assert scene.counting.of(metrics.CANCELS_ANSWERED, "not_held") == 0
    assert reconciled(scene) == []
    assert reconciled(scene, 0.1) == [("answer", [(2, 3)], [(2, 3)], [])]


# -- losses


def test_losses_of_tasks_whose_steps_have_ended_are_forgotten(scene: Scene) -> None:
    cleared = scene.loop._executor.quarantine.cleared
    cleared.extend([TaskId(1), TaskId(2)])
    assert reconciled(scene) == [("forget", [1, 2])]
    cleared.append(TaskId(3))
    scene.errors = [RowLocked("locked")]
    assert reconciled(scene) == []
    assert scene.round() == pytest.approx(0.1)
    assert reconciled(scene, 0.1) == [("forget", [3])]
    assert reconciled(scene) == []


# -- late results


def test_late_results_are_resolved_without_a_name_too(scene: Scene) -> None:
    scene.faults.late.extend([(claim(1), done(claim(1), progress="made")), (claim(2), None)])
    scene.claims.hung.append(claim(3))
    scene.released = ReadyTasks({TraversalId("t"): [TaskId(5)]})
    scene.faults.reconcile(None)
    assert scene.take_calls() == [("late", 1, "made"), ("late", 2, None)]
    assert scene.hints == [("t", [5])] * 2
    assert scene.counting.of(metrics.REFUSED) == 2
    assert [each.task.id for each in scene.claims.hung] == [3]


def test_a_late_result_that_is_locked_delays_no_other_one(scene: Scene) -> None:
    scene.faults.late.extend([(claim(1), None), (claim(2), None)])
    scene.errors = [RowLocked("locked")]
    assert reconciled(scene) == [("late", 2, None)]
    assert scene.counting.of(metrics.REFUSED) == 1
    assert reconciled(scene) == []
    scene.errors = [RowLocked("locked")]
    assert reconciled(scene, 0.1) == []
    assert reconciled(scene, 0.1) == []
    assert reconciled(scene, 0.11) == [("late", 1, None)]
    scene.faults.late.append((claim(1), None))
    scene.errors = [RowLocked("locked")]
    assert reconciled(scene) == []
    assert reconciled(scene, 0.1) == [("late", 1, None)], "its pause is the first one again"
    assert scene.faults.locked_tasks.times == {}


@pytest.mark.parametrize("error", [Unavailable("away"), MemoryError()])
def test_a_late_result_waits_for_the_database(scene: Scene, error: Exception) -> None:
    scene.faults.late.extend([(claim(1), None), (claim(2), None)])
    scene.errors = [None, error]
    with pytest.raises(type(error)):
        reconciled(scene)
    assert scene.take_calls() == [("late", 1, None)]
    assert reconciled(scene) == [("late", 2, None)]


def test_a_task_that_was_continued_without_its_step_is_recorded_while_the_step_hangs(scene: Scene) -> None:
    [claimed] = scene.claimed(1)
    scene.faults.late.append((claimed.claim, done(claimed.claim)))
    assert reconciled(scene) == [("hung", 1)]
    assert scene.counting.of(metrics.REFUSED) == 1


# -- steps that hang


def test_a_step_that_hangs_is_recorded_once_and_one_that_has_ended_never(scene: Scene) -> None:
    [hangs] = scene.claimed(1)
    scene.claims.hung.extend([claim(2), hangs.claim])
    assert reconciled(scene) == [("hung", 1)]
    assert reconciled(scene) == []


def test_one_whose_row_is_locked_is_recorded_later(scene: Scene) -> None:
    claims = [claimed.claim for claimed in scene.claimed(1, 2)]
    scene.claims.hung.extend(claims)
    scene.errors = [RowLocked("locked")]
    assert reconciled(scene) == [("hung", 2)]
    assert scene.round() == pytest.approx(0.1)
    scene.errors = [RowLocked("locked")]
    assert reconciled(scene, 0.1) == []
    assert reconciled(scene, 0.1) == []
    assert reconciled(scene, 0.11) == [("hung", 1)]
    assert scene.faults._locked_hung.times == {}


def test_one_waits_for_the_database(scene: Scene) -> None:
    claims = [claimed.claim for claimed in scene.claimed(1, 2)]
    scene.claims.hung.extend(claims)
    scene.errors = [Unavailable("away")]
    with pytest.raises(Unavailable):
        reconciled(scene)
    assert reconciled(scene) == [("hung", 1), ("hung", 2)]


# -- damaged rows


def test_hints_one_of_which_is_damaged_are_claimed_alone(scene: Scene) -> None:
    error = DamagedRow("no such kind")
    scene.released = ReadyTasks({TraversalId("u"): [TaskId(5)]})
    for hinted, with_results in (([1, 2], False), ([3], True)):
        scene.faults.set_aside(WHO, [TaskId(each) for each in hinted], error, with_results=with_results)
    assert list(scene.faults.suspects) == [1, 2, 3]
    assert scene.calls == []
    scene.faults.set_aside(WHO, [TaskId(4)], error, with_results=False)
    assert scene.calls == [("unreadable", 4, "no such kind")]
    assert (scene.cancels, scene.hints) == (["t"], [("u", [5])])
