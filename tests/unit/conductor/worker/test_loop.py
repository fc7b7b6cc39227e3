"""The rounds of the work loop: what each claims, starts and stores, and when the next one is due."""

import types
import typing

import pytest
from stoker.conductor.steps.results import StepResult
from stoker.conductor.worker.claimed import ClaimEvent, ClaimState
from stoker.conductor.worker.loop import WorkLimits
from stoker.conductor.worker.pool import NoThread
from stoker.db.errors import DamagedRow, RowLocked
from stoker.db.ids import MemberId, TaskId, TraversalId
from stoker.db.rows import ReadyTasks
from stoker.db.work.claim import Claimant
from stoker.observe import metrics
from unit.conductor.worker.scene import WHO, Scene, claim, done, later

Json = typing.Any
T, U = TraversalId("t"), TraversalId("u")
OTHER = Claimant(MemberId("one/j"), "one")


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


def ready(**tasks: list[int]) -> ReadyTasks:
    return ReadyTasks({TraversalId(name): [TaskId(each) for each in ids] for name, ids in tasks.items()})


@pytest.mark.parametrize(("threads", "share"), [(1, 1), (2, 1), (4, 3), (8, 6), (20, 15)])
def test_a_project_may_have_all_threads_but_a_quarter(threads: int, share: int) -> None:
    assert WorkLimits(task_losses=3, cancel_grace=1.0, threads=threads).share == share


# -- messages


def test_each_message_wakes_the_loop(scene: Scene) -> None:
    scene.loop.cancel(T)
    scene.loop.stop([(TaskId(1), 1)])
    scene.hint(1)
    assert len(scene.wakes) == 3


def test_hints_beyond_the_intake_are_dropped_and_counted(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.hint(*range(50_000))
    assert caplog.text == ""
    scene.hint(*range(50_002))
    assert "2 hints were dropped" in caplog.text
    assert scene.counting.of(metrics.HINTS_DROPPED) == 2
    assert scene.loop.view().waiting == 50_000


def test_cancelled_tasks_are_stored_in_the_same_round(scene: Scene) -> None:
    scene.result = later(30.0)
    scene.rows[3] = claim(3, traversal="u")
    scene.claimed(1, 2, 3)
    scene.round(steps=3)
    scene.take_exchanges()
    scene.loop.cancel(T, [TaskId(2)])
    scene.round()
    assert scene.take_exchanges() == [([1], [], 6, 0)]
    scene.loop.stop([(TaskId(2), 1), (TaskId(3), 2)])
    scene.round()
    assert scene.take_exchanges() == [([2], [], 6, 0)]
    assert scene.take_calls() == [("answer", [(3, 2)], [(3, 2)], [])]
    assert [claimed.key for claimed in scene.claims.all()] == [(3, 1)]


def test_the_loop_shows_its_tasks(scene: Scene) -> None:
    [hangs, _] = scene.claimed(1, 2)
    scene.hint(3)
    assert (scene.loop.busy, scene.loop.in_progress, scene.loop.view().waiting) == (2, 2, 1)
    scene.loop.stop([(TaskId(1), 1)])
    scene.round()
    scene.round(10.0)
    assert (scene.loop.busy, scene.loop.in_progress) == (2, 2), "one is detached, one is new"
    view = scene.loop.view()
    assert (len(view.held), len(view.running), hangs in view.running) == (2, 3, True)


# -- the name


def test_another_name_drops_all_claims_and_the_same_one_none(scene: Scene) -> None:
    [claimed] = scene.claimed(1)
    scene.loop.work_as(WHO)
    assert scene.loop.in_progress == 1
    scene.hint(2)
    scene.ours = [(7, 2)]
    scene.loop.work_as(OTHER)
    assert (scene.loop.in_progress, claimed.state, claimed.stop.is_set()) == (0, ClaimState.LOST, True)
    scene.loop.work_as(WHO)
    scene.round()
    assert scene.take_exchanges()[1:] == [([], [2], 5, 1)], "hints stay"
    assert scene.take_calls() == [("release", [(7, 2)], [])], "claims of a lapse before are found"


def test_without_a_name_nothing_is_claimed_or_compared(scene: Scene) -> None:
    scene.hint(1)
    scene.loop.work_as(None)
    scene.ours = [(7, 2)]
    assert scene.round() is None
    assert (scene.exchanges, scene.calls) == ([], [])


def test_steps_that_hang_under_the_old_name_are_recorded_under_the_new_one(scene: Scene) -> None:
    scene.claimed(1, 2)
    scene.loop.stop([(TaskId(1), 1)])
    scene.round()
    scene.round(10.0)
    scene.loop.work_as(None)
    scene.loop.work_as(WHO)
    scene.take_calls()
    scene.round()
    assert scene.take_calls() == [("hung", 1)]


# -- drain, and the database's absence


def test_a_drain_requeues_what_waits_and_claims_nothing_more(scene: Scene) -> None:
    scene.result = later(30.0)
    scene.claimed(1, 2)
    scene.round(steps=1)
    scene.hint(3)
    scene.loop.drain()
    assert scene.take_calls() == [("release", [(1, 1)], [])]
    assert [claimed.key for claimed in scene.claims.all()] == [(2, 1)]
    assert scene.loop.view().waiting == 0
    scene.take_exchanges()
    scene.hint(4)
    scene.result = lambda claim, progress: done(claim)
    scene.round(steps=1)
    assert scene.take_exchanges() == [([2], [], 0, 0)]


def test_a_drain_without_a_name_requeues_nothing(scene: Scene) -> None:
    scene.loop.work_as(None)
    scene.loop.drain()
    assert (scene.calls, scene.briefs) == ([], [])


def test_whether_the_database_answers_is_logged_once_a_minute(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    assert scene.loop.database_answers()
    scene.is_away = True
    assert [scene.loop.database_answers() for _ in range(3)] == [False] * 3
    assert len(caplog.records) == 1


def test_everything_is_kept_while_the_database_is_unavailable(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.claimed(1)
    scene.take_exchanges()
    scene.hint(2)
    scene.is_away = True
    pauses = []
    for steps in (1, 0):
        pauses.append(scene.round(steps=steps))
        assert len(caplog.records) == 1
    assert pauses == [0.5, 0.5]
    scene.is_away = False
    scene.ours = [(2, 1), (9, 4)]
    scene.round()
    assert scene.take_exchanges() == [([1], [2], 6, 1)]
    assert scene.take_calls() == [("release", [(9, 4)], [])], "claims that were made unseen are found"


# -- results


def test_a_result_is_stored_once_and_ends_its_claim(scene: Scene) -> None:
    [claimed] = scene.claimed(1)
    assert scene.take_exchanges() == [([], [1], 6, 1)]
    assert scene.round() is None
    scene.round(steps=1)
    assert scene.take_exchanges() == [([1], [], 6, 0)]
    assert (claimed.state, scene.loop.in_progress) == (ClaimState.CLOSED, 0)
    assert scene.counting.of(metrics.RESULTS, "create", "done") == 1
    scene.round()
    assert (scene.exchanges, scene.calls) == ([], [])


def test_a_refused_result_is_late(scene: Scene) -> None:
    [claimed] = scene.claimed(1)
    scene.reply = {"refused": [types.SimpleNamespace(task_id=1)]}
    scene.result = lambda claim, progress: done(claim, keeps_claim=True, progress="made")
    scene.round(steps=1)
    assert scene.take_calls() == [("late", 1, "made")]
    assert (claimed.state, scene.loop.in_progress) == (ClaimState.CLOSED, 0)
    assert scene.counting.of(metrics.RESULTS, "create", "done") == 0
    assert scene.counting.of(metrics.REFUSED) == 1


def test_progress_is_stored_and_its_task_polled_later(scene: Scene) -> None:
    [claimed] = scene.claimed(1)
    scene.result = lambda claim, progress: done(claim, keeps_claim=True, poll_after=3.0, progress="token")
    assert scene.round(steps=1) == 3.0
    assert scene.take_exchanges()[1:] == [([1], [], 6, 0)]
    tokens: list[object] = []
    scene.result = lambda claim, progress: tokens.append(progress) or done(claim)  # type: ignore[func-returns-value]
    assert scene.round(2.0) == 1.0
    scene.round(1.0)
    scene.round(steps=1)
    assert tokens == ["token"]
    assert claimed.state is ClaimState.CLOSED


def test_a_step_without_news_is_polled_later_and_stores_nothing(scene: Scene) -> None:
    scene.claimed(1)
    scene.take_exchanges()
    scene.result = later(3.0)
    assert scene.round(steps=1) == 3.0
    assert scene.exchanges == []
    assert scene.claims.held[TaskId(1)].state is ClaimState.WAITING


def test_a_task_that_is_to_stop_is_polled_at_once_within_its_grace_period(scene: Scene) -> None:
    [claimed] = scene.claimed(1)
    scene.result = later(30.0)
    scene.loop.stop([claimed.key])
    scene.round()
    scene.round(5.0, steps=1)
    assert (claimed.state, scene.loop.busy) == (ClaimState.STOPPING, 1)
    scene.round(5.0)
    assert claimed.is_detached


def test_the_result_of_a_step_whose_submission_was_interrupted_is_late(scene: Scene) -> None:
    [claimed] = scene.claimed(1)
    claimed.move(ClaimEvent.BREAK)
    scene.take_exchanges()
    scene.result = lambda claim, progress: done(claim, progress="made")
    scene.round(steps=1)
    assert (scene.exchanges, scene.take_calls()) == ([], [("late", 1, "made")])


def test_a_result_whose_claim_was_lost_is_late(scene: Scene) -> None:
    scene.claimed(1, 2, 3)
    scene.result = lambda claim, progress: done(claim, progress="made")
    scene.claims.lose(scene.claims.held[TaskId(1)])
    scene.rows[2] = claim(2, attempt=2)
    scene.hint(2)
    scene.round()
    scene.take_exchanges()
    scene.round(steps=2)
    assert scene.take_calls() == [("late", 1, "made"), ("late", 2, "made")]
    assert scene.exchanges == []
    scene.claims.results.append(done(claim(8)))
    scene.round(steps=1)
    assert scene.take_calls() == [("late", 8, None)]
    assert scene.take_exchanges() == [([3], [], 5, 0)]


def test_a_step_that_breaks_gives_its_claim_up(scene: Scene) -> None:
    scene.claimed(1)

    def fail(claim: Json, progress: Json) -> StepResult:
        raise ValueError("broken")

    scene.result = fail
    with pytest.raises(ValueError, match="broken"):
        scene.jobs.pop()()
    scene.released = ready(t=[1])
    scene.round()
    assert scene.take_calls() == [("release", [(1, 1)], [1])]
    assert (scene.hints, scene.loop.in_progress) == ([("t", [1])], 0)


def test_the_end_of_a_detached_step_is_late_with_and_without_a_result(scene: Scene) -> None:
    scene.claimed(1, 2)
    scene.result = lambda claim, progress: done(claim, progress="made")
    scene.loop.stop([(TaskId(1), 1), (TaskId(2), 1)])
    scene.round()
    scene.take_exchanges()
    scene.is_away = True
    scene.round(10.0)
    scene.is_away = False
    scene.loop.work_as(WHO)
    scene.jobs.pop(0)()
    scene.round()
    assert scene.take_exchanges() == [([1, 2], [], 6, 0)], "the failures of the tasks"
    assert scene.take_calls() == [("late", 1, "made")]
    scene.round(steps=1)
    assert scene.take_calls() == [("late", 2, "made")]
    assert scene.exchanges == []


def test_no_more_results_share_a_transaction_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, batch=2)
    scene.claimed(1, 2, 3)
    scene.take_exchanges()
    assert scene.round(steps=3) == 0.0
    assert scene.round() is None
    assert scene.take_exchanges() == [([1, 2], [], 6, 0), ([3], [], 6, 0)]


def test_results_that_break_their_transaction_are_tried_alone_and_nothing_is_claimed_with_them(
    scene: Scene,
) -> None:
    scene.claimed(1, 2)
    scene.take_exchanges()
    scene.errors = [ValueError("broken"), ValueError("broken")]
    with pytest.raises(ValueError, match="broken"):
        scene.round(steps=2)
    assert scene.briefs[-1:] == [False]
    with pytest.raises(ValueError, match="broken"):
        scene.round()
    assert scene.round() == 0.0
    scene.hint(3)
    assert scene.round() == 0.0
    assert scene.briefs[-1:] == [True]
    assert scene.round() is None
    assert scene.take_exchanges() == [
        ([1, 2], [], 6, 0),
        ([1], [], 0, 0),
        ([1], [], 0, 0),
        ([2], [], 0, 0),
        ([], [3], 6, 1),
    ]


def test_a_failure_in_the_place_of_a_result_is_made_under_a_name_only(scene: Scene) -> None:
    scene.claimed(1)
    scene.errors = [ValueError("broken")]
    with pytest.raises(ValueError, match="broken"):
        scene.round(steps=1)
    scene.loop.work_as(None)
    scene.round()
    assert scene.calls == []
    scene.loop.work_as(WHO)
    scene.round()
    assert scene.take_calls() == [("late", 1, "unstorable")]


def test_results_that_are_locked_out_are_put_off_and_without_a_name_too(scene: Scene) -> None:
    scene.claimed(1)
    scene.hint(2)
    scene.errors = [RowLocked("locked")]
    assert scene.round(steps=1) == 0.5
    assert scene.loop.view().waiting == 1
    scene.take_exchanges()
    scene.round()
    assert scene.take_exchanges() == [([], [2], 6, 1)]
    assert scene.round(1.0) == 1.0
    scene.loop.work_as(None)
    assert scene.round(5.0) is None
    assert scene.exchanges == []


def test_a_result_that_is_locked_out_is_tried_again(scene: Scene) -> None:
    scene.claimed(1)
    scene.errors = [RowLocked("locked")]
    scene.round(steps=1)
    scene.take_exchanges()
    assert scene.round() == 2.0
    scene.round(2.0)
    assert scene.take_exchanges() == [([1], [], 0, 0)]


def test_hints_that_are_locked_without_results_are_dropped(scene: Scene) -> None:
    scene.hint(1)
    scene.errors = [RowLocked("locked")]
    scene.round()
    assert scene.loop.view().waiting == 0


# -- claims


def test_no_more_is_claimed_than_threads_and_limits_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, threads=8, in_progress=5)
    scene.result = later(30.0)
    scene.hint(1, 2, 3)
    scene.round()
    scene.hint(4, 5, 6, 7)
    assert scene.round(steps=3) == 30.0
    assert scene.take_exchanges() == [([], [1, 2, 3], 5, 3), ([], [4, 5], 2, 2)]
    assert scene.loop.view().waiting == 2


def test_projects_have_turns_and_leave_threads_to_the_others(scene: Scene) -> None:
    for number in range(1, 9):
        scene.rows[number] = claim(number, project="p")
    scene.claimed(1)
    scene.hint(*range(2, 9))
    scene.rows[20] = claim(20, project="q", traversal="u")
    scene.hint(20, traversal="u")
    scene.round()
    assert scene.take_exchanges() == [([], [1], 6, 1), ([], [2, 20, 3, 4, 5], 5, 5)]
    scene.round(steps=1)
    assert scene.take_exchanges() == [([1], [6], 1, 0)]


def test_a_project_gets_its_share_of_the_threads_and_what_is_claimed_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(monkeypatch, threads=8)
    scene.claimed(1, 2, 3)
    scene.hint(*range(4, 20))
    scene.round()
    assert [(len(hinted), slots) for _, hinted, slots, _ in scene.take_exchanges()] == [(3, 12), (7, 9)]


def test_hints_of_other_projects_than_the_results_are_counted(scene: Scene) -> None:
    scene.claimed(1)
    scene.take_exchanges()
    scene.rows[3] = claim(3, project="q", traversal="u")
    scene.hint(2)
    scene.hint(3, traversal="u")
    scene.round(steps=1)
    assert scene.take_exchanges() == [([1], [2, 3], 6, 1)]


def test_as_many_more_are_claimed_as_the_threads_end_while_results_are_stored(scene: Scene) -> None:
    def wait() -> None:
        scene.now += 1.0

    scene.during = wait
    scene.rows = {number: claim(number, project=str(number), traversal=str(number)) for number in range(99)}

    def slow(claim: Json, progress: Json) -> StepResult:
        scene.now += 3.2
        return done(claim)

    scene.result = slow
    scene.claimed(1, 2)
    scene.round(steps=2)
    # Two steps of 3.2 s have a moving average of 0.197 s, one transaction has 0.5 s, and two have 0.75 s.
    scene.hint(3)
    scene.round()
    assert [slots for _, _, slots, _ in scene.take_exchanges()] == [6, 11, 13]
    assert scene.counting.observed(metrics.COMMIT) == [1.0, 1.0, 1.0]


def test_nothing_is_claimed_for_a_while_after_a_thread_could_not_start(scene: Scene) -> None:
    scene.hint(1)
    scene.no_thread = NoThread("none")
    assert scene.round() == 0.0
    scene.no_thread = None
    assert scene.round() is None
    assert scene.take_calls() == [("release", [(1, 1)], [])]
    scene.hint(2)
    assert scene.round() == 5.0
    assert scene.round(2.0) == 3.0
    assert scene.round(2.9) == pytest.approx(0.1)
    scene.take_exchanges()
    scene.round(0.1)
    assert scene.take_exchanges() == [([], [2], 6, 1)]


def test_a_clock_that_is_set_back_ends_the_shortage(scene: Scene) -> None:
    scene.loop._executor.refused_at = 1e9 + 200.0
    scene.hint(1)
    scene.round()
    assert scene.take_exchanges() == [([], [1], 6, 1)]


def test_threads_are_restarted_while_steps_run(scene: Scene) -> None:
    scene.round()
    assert scene.restarts == 0
    scene.claimed(1)
    scene.round()
    assert scene.restarts == 1


def test_a_task_whose_row_is_damaged_is_claimed_alone(scene: Scene) -> None:
    scene.hint(1, 2)
    scene.errors = [DamagedRow("no such kind"), DamagedRow("no such kind")]
    assert scene.round() == 0.0
    assert scene.round() == 0.0
    assert scene.take_exchanges() == [([], [1, 2], 6, 2), ([], [1], 6, 1)]
    assert scene.take_calls() == [("unreadable", 1, "no such kind")]
    assert scene.cancels == ["t"]
    scene.round()
    assert scene.take_exchanges() == [([], [2], 6, 1)]
    assert [*scene.claims.held] == [2]


def test_results_that_come_with_a_damaged_row_are_retried_alone(scene: Scene) -> None:
    scene.claimed(1)
    scene.take_exchanges()
    scene.hint(2)
    scene.errors = [DamagedRow("no such kind")]
    scene.round(steps=1)
    scene.round()
    scene.round()
    assert scene.take_exchanges() == [([1], [2], 6, 0), ([1], [], 0, 0), ([], [2], 6, 1)]


def test_a_result_ends_its_stack_where_not_even_a_failure_in_its_place_can_be_stored(scene: Scene) -> None:
    scene.claimed(1, 2)
    scene.errors = [DamagedRow("no such kind")] * 3
    scene.round(steps=2)
    calls = []
    for _ in range(3):
        scene.round()
        calls.append(scene.take_calls())
    assert calls == [[], [("unreadable", 1, "no such kind")], []]
    assert [*scene.claims.held] == [1]


def test_suspects_wait_for_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, in_progress=1)
    scene.claimed(1)
    scene.take_exchanges()
    scene.faults.suspects.append(TaskId(2))
    scene.round()
    assert scene.exchanges == []
    scene.round(steps=1)
    assert scene.take_exchanges() == [([1], [], 0, 0)]
    scene.round()
    assert scene.take_exchanges() == [([], [2], 1, 1)]


def test_suspects_are_not_claimed_with_results(scene: Scene) -> None:
    scene.claimed(1)
    scene.take_exchanges()
    scene.faults.suspects.append(TaskId(2))
    scene.round(steps=1)
    scene.round()
    assert scene.take_exchanges() == [([1], [], 6, 0), ([], [2], 6, 1)]


def test_tasks_whose_resources_are_locked_are_hinted_again_later(scene: Scene) -> None:
    scene.hint(1, 2)
    scene.rows = {1: claim(1)}
    scene.reply = {"locked": [TaskId(2)], "claims": [claim(1)]}
    assert scene.round() == pytest.approx(0.1)
    scene.reply = {}
    scene.take_exchanges()
    scene.round()
    assert scene.exchanges == []
    scene.round(0.1)
    assert scene.take_exchanges() == [([], [2], 5, 1)]
    assert scene.faults.locked_tasks.times == {}


def test_tasks_that_are_ready_are_announced_and_those_of_parents_claimed_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(monkeypatch, in_progress=4)
    scene.claimed(1)
    scene.take_exchanges()
    scene.reply = {"ready": ready(t=[5]), "woken": ready(u=[6, 7], v=[8, 9, 10])}
    scene.round(steps=1)
    assert scene.hints == [("t", [5]), ("v", [10])]
    scene.reply = {}
    scene.take_exchanges()
    scene.round()
    assert [sorted(hinted) for _, hinted, _, _ in scene.take_exchanges()] == [[6, 7, 8, 9]]


def test_woken_tasks_for_which_no_thread_is_free_are_only_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, in_progress=2)
    scene.claimed(1, 2)
    scene.hint(3, 4)
    scene.reply = {"woken": ready(u=[6, 7]), "claims": []}
    scene.round(steps=1)
    assert scene.hints == [("u", [6, 7])]


def test_polls_wait_for_threads(scene: Scene) -> None:
    scene.result = later(1.0)
    scene.rows = {number: claim(number, project=str(number), traversal=str(number)) for number in range(99)}
    for number in range(12):
        scene.hint(number, traversal=str(number))
    assert scene.round() is None
    assert scene.round(steps=6) is None
    assert (scene.loop.busy, scene.loop.in_progress) == (6, 12)
    assert scene.round(1.0) is None, "six run, four of them on threads that are not there"
    scene.result = lambda claim, progress: done(claim)
    assert scene.round(steps=3) is None
    assert scene.loop.busy == 4
    scene.loop.stop([(TaskId(number), 1) for number in range(1, 5)])
    assert scene.round(steps=4) == 0.0, "those that were due first are stopped"
    scene.round()
    assert scene.loop.busy == 1


def test_polls_of_one_project_leave_threads_to_the_others(scene: Scene) -> None:
    scene.result = later(1.0)
    scene.claimed(*range(5))
    scene.round(steps=5)
    scene.hint(*range(5, 10))
    scene.round()
    scene.round(steps=5)
    assert scene.round(1.0) is None
    assert scene.loop.busy == 4


def test_a_round_that_breaks_is_followed_by_a_repair(scene: Scene) -> None:
    [claimed] = scene.claimed(1)
    scene.reply = {"claims": None}
    scene.hint(2)
    with pytest.raises(TypeError):
        scene.round()
    scene.reply = {}
    claimed.stop.set()
    claimed.move(ClaimEvent.STOP)
    scene.ours = [(1, 1), (2, 1)]
    scene.round()
    assert scene.take_calls() == [("release", [(2, 1)], [])]
    scene.take_exchanges()
    scene.round(10.0)
    assert claimed.state is ClaimState.HUNG, "its grace period has begun again"


def test_times_at_which_something_is_due_are_the_pause(scene: Scene) -> None:
    scene.rows[1] = claim(1, expires_at=1e9 + 107.0)
    assert scene.round() is None
    scene.claimed(1)
    assert scene.round() == pytest.approx(7.01)
    scene.loop.work_as(None)
    assert scene.round() is None, "no timer of claims matters"
    scene.faults._locked_late.retry_later((claim(9), None))
    assert scene.round() == pytest.approx(0.1)
    scene.loop.work_as(WHO)
    assert scene.round() == pytest.approx(0.1)


def test_a_step_that_ends_during_a_round_makes_another_one_due_at_once(scene: Scene) -> None:
    scene.claimed(1)
    scene.hint(2)
    scene.during = lambda: scene.jobs.pop(0)()
    assert scene.round() == 0.0
