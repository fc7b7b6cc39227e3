"""The claims of a conductor: their timers, their polls, and their end."""

import types
import typing

import pytest
from harness.counting import Counting
from stoker.conductor.steps.results import StepResult
from stoker.conductor.worker.claimed import ClaimedTask, ClaimEvent, ClaimKey, ClaimState
from stoker.conductor.worker.claims import CancelRequest, Claims
from stoker.conductor.worker.executor import Detachment, StepExecutor, WorkMetrics
from stoker.db.ids import MemberId, TaskId, TraversalId
from stoker.db.work.claim import Claimant
from stoker.observe import metrics

Json = typing.Any
WHO = Claimant(MemberId("one/i"), "one")
WALL = 1e9
GRACE = 10.0
STATES = {
    ClaimState.CLAIMED: (),
    ClaimState.RUNNING: (ClaimEvent.START,),
    ClaimState.STOPPING: (ClaimEvent.START, ClaimEvent.STOP),
    ClaimState.STORING: (ClaimEvent.START, ClaimEvent.RESULT),
    ClaimState.WAITING: (ClaimEvent.START, ClaimEvent.RESULT, ClaimEvent.POLL_LATER),
    ClaimState.DETACHED: (ClaimEvent.START, ClaimEvent.STOP, ClaimEvent.DETACH),
}
"""The events that lead to a state."""


def claim(number: int = 1, *, attempt: int = 1, traversal: str = "t", **fields: Json) -> Json:
    usual = {"claimed_at": None, "expires_at": None, "kind": "create", "request": None, "stack_id": "s"}
    task = {**usual, "id": TaskId(number), "attempt": attempt, "traversal": traversal, **fields}
    resource = types.SimpleNamespace(name="r")
    return types.SimpleNamespace(task=types.SimpleNamespace(**task), resource=resource, project_id="p")


class Scene:
    """Claims whose steps are begun and detached as the test says.

    :ivar detachment: the state of each step that is to be detached.
    :ivar started: results of the steps that were begun.
    :ivar steps_left: the claims whose steps have not ended.
    :ivar can_cancel: whether the type of each resource has something to do when its action is cancelled.
    """

    def __init__(self) -> None:
        self.now = 100.0
        self.detachment = Detachment.HANGS
        self.started: list[tuple[ClaimKey, object]] = []
        self.steps_left: list[ClaimedTask] = []
        self.can_cancel = False
        self.counting = Counting()
        self.claims = Claims(
            typing.cast(StepExecutor, self),
            typing.cast(Json, self),
            metrics=WorkMetrics(self.counting),
            clock=lambda: WALL + self.now,
            monotonic=lambda: self.now,
            grace=GRACE,
        )

    def add(self, state: ClaimState = ClaimState.CLAIMED, number: int = 1, **fields: Json) -> ClaimedTask:
        claimed = self.claims.add(claim(number, **fields))
        for event in STATES[state]:
            claimed.move(event)
        return claimed

    def cancel_due(self, seconds: float = 0.0, who: Claimant | None = WHO) -> list[tuple[ClaimKey, Json]]:
        """Let so much time pass, and return what is to be stored then."""
        self.now += seconds
        self.claims.cancel_due(who)
        results = [((r.claim.task.id, r.claim.task.attempt), r.progress) for r in self.claims.results]
        self.claims.results.clear()
        return results

    # -- the executor

    def start(self, claimed: ClaimedTask, step: Json) -> None:
        self.started.append((claimed.key, step().progress))

    def detach(self, claimed: ClaimedTask) -> Detachment:
        return self.detachment

    def running(self) -> list[ClaimedTask]:
        return self.steps_left

    # -- the steps

    def has_cancel(self, claim: Json) -> bool:
        return self.can_cancel

    def cancel(self, claim: Json, who: Claimant) -> StepResult:
        assert who is WHO
        return StepResult(claim, None, progress="cancels")

    def cancelled(self, claim: Json, who: Claimant) -> StepResult:
        assert who is WHO
        return StepResult(claim, None, progress="cancelled")

    def detached(self, claim: Json, who: Claimant) -> StepResult:
        assert who is WHO
        return StepResult(claim, None, progress="detached")


def key(number: int, attempt: int = 1) -> ClaimKey:
    return TaskId(number), attempt


def test_a_claim_is_found_by_its_task_and_its_attempt() -> None:
    scene = Scene()
    claimed = scene.add(attempt=2, claimed_at=90.0)
    assert scene.claims.get(key(1, 2)) is claimed
    assert [scene.claims.get(key(*other)) for other in ((1, 1), (2, 2))] == [None, None]
    assert (claimed.since, scene.add(number=2).since) == (90.0, 0.0)


def test_a_claim_shows_whose_traversal_it_is() -> None:
    scene = Scene()
    scene.claims.intake.enqueue({TraversalId("t"): [TaskId(2)]})
    scene.add()
    assert scene.claims.intake.take(1, lambda owner: 1) == [("p", 2)]


def test_a_task_that_is_claimed_again_ends_its_former_claim() -> None:
    scene = Scene()
    old = scene.add(ClaimState.RUNNING)
    new = scene.add(attempt=2)
    assert (old.state, old.stop.is_set()) == (ClaimState.LOST, True)
    assert scene.claims.all() == [new]
    scene.claims.remove(old, ClaimEvent.RESULT)
    assert (scene.claims.all(), old.state) == ([new], ClaimState.CLOSED)


def test_a_task_is_stopped_when_its_own_time_is_surely_over() -> None:
    scene = Scene()
    scene.add(ClaimState.WAITING, expires_at=WALL + 105.0)
    assert scene.cancel_due(5.0) == []
    assert scene.cancel_due(0.1) == [((1, 1), "cancelled")]
    assert scene.add(number=2).stop.is_set() is False


def test_the_time_of_a_claim_that_is_gone_stops_nothing() -> None:
    scene = Scene()
    claimed = scene.add(expires_at=WALL + 105.0)
    scene.claims.lose(claimed)
    again = scene.add(attempt=2)
    assert scene.cancel_due(6.0) == []
    assert not again.stop.is_set()


def test_a_step_whose_claim_is_lost_has_its_grace_period_too() -> None:
    scene = Scene()
    for state, after in ((ClaimState.CLAIMED, ClaimState.CLOSED), (ClaimState.RUNNING, ClaimState.LOST)):
        claimed = scene.add(state)
        scene.claims.lose(claimed)
        assert (claimed.state, claimed.stop.is_set(), scene.claims.all()) == (after, True, [])
    scene.cancel_due(9.9)
    assert list(scene.claims.hung) == []
    scene.cancel_due(0.1)
    assert list(scene.claims.hung) == [claimed.claim]
    assert not scene.claims.results, "what becomes of the task is not ours to say"


@pytest.mark.parametrize(
    ("after", "stops", "seconds"), [(3.0, False, 3.0), (None, False, 0.0), (3.0, True, 0.0)]
)
def test_the_next_poll_comes_when_the_step_wants_it_or_at_once(
    *, after: float | None, stops: bool, seconds: float
) -> None:
    scene = Scene()
    claimed = scene.add(ClaimState.STORING)
    if stops:
        claimed.stop.set()
    newer = claim()
    scene.claims.poll_later(newer, after, "token")
    assert (claimed.claim, claimed.state) == (newer, ClaimState.WAITING)
    if seconds:
        scene.now += seconds - 0.1
        assert list(scene.claims.due(9, lambda owner: 9)) == []
        scene.now += 0.1
    assert list(scene.claims.due(9, lambda owner: 9)) == [(claimed, "token")]
    assert list(scene.claims.due(9, lambda owner: 9)) == []


def test_a_poll_waits_for_a_thread_of_its_project_and_comes_only_while_its_task_waits() -> None:
    scene = Scene()
    claimed = [scene.add(ClaimState.STORING, number) for number in range(1, 6)]
    for each in claimed:
        scene.claims.poll_later(each.claim, None, each.key)
    scene.claims.lose(claimed[0])
    assert list(scene.claims.due(9, lambda owner: 0)) == []
    scene.claims.lose(claimed[1])
    claimed[2].move(ClaimEvent.STOP)
    assert list(scene.claims.due(3, {"p": 3}.__getitem__)) == [(claimed[3], key(4))]
    assert list(scene.claims.due(9, lambda owner: 9)) == [(claimed[4], key(5))]


def test_a_traversal_is_cancelled_but_for_its_spared_tasks(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    scene = Scene()
    waiting = scene.add(ClaimState.WAITING, 1)
    others = [scene.add(ClaimState.WAITING, 2), scene.add(ClaimState.WAITING, 3, traversal="u")]
    scene.claims.cancels.append(CancelRequest(TraversalId("t"), frozenset([TaskId(2)]), request="req"))
    assert scene.cancel_due() == [((1, 1), "cancelled")]
    assert (waiting.state, [each.state for each in others]) == (ClaimState.STORING, [ClaimState.WAITING] * 2)
    assert scene.counting.of(metrics.CANCELS_ASKED) == 1
    scene.claims.cancels.append(CancelRequest(TraversalId("v")))
    scene.claims.cancels.append(CancelRequest(TraversalId("t")))
    assert scene.cancel_due() == [((2, 1), "cancelled")], "the first is stopped already"
    assert [record.message for record in caplog.records] == [
        "Cancelling 1 tasks of trv-t",
        "Cancelling 2 tasks of trv-t",
    ]


def test_claims_that_are_not_ours_are_to_be_answered_for(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    scene = Scene()
    running = scene.add(ClaimState.RUNNING, 1)
    scene.claims.cancels.append(CancelRequest(None, claims=(key(1), key(1, 2), key(2))))
    assert scene.cancel_due() == []
    assert (running.state, running.stop.is_set()) == (ClaimState.STOPPING, True)
    assert scene.claims.unanswered == [key(1, 2), key(2)]
    assert caplog.text == ""


def test_a_type_may_cancel_its_action_where_its_task_waits_for_a_poll() -> None:
    scene = Scene()
    scene.can_cancel = True
    for number, state in enumerate((ClaimState.WAITING, ClaimState.RUNNING), start=1):
        scene.add(state, number)
        scene.claims.cancels.append(CancelRequest(None, claims=(key(number),)))
    assert scene.cancel_due() == []
    assert scene.started == [((1, 1), "cancels")]
    assert {each.state for each in scene.claims.all()} == {ClaimState.STOPPING}


def test_without_a_name_a_task_is_stopped_and_nothing_is_stored() -> None:
    scene = Scene()
    claimed = scene.add(ClaimState.WAITING)
    scene.claims.cancels.append(CancelRequest(None, claims=(key(1),)))
    assert scene.cancel_due(who=None) == []
    assert (claimed.state, scene.started) == (ClaimState.STOPPING, [])


@pytest.mark.parametrize(
    ("detachment", "state", "progress"),
    [
        (Detachment.HANGS, ClaimState.DETACHED, "detached"),
        (Detachment.NOT_STARTED, ClaimState.STORING, "cancelled"),
        (Detachment.ENDED, ClaimState.STOPPING, None),
    ],
)
@pytest.mark.parametrize("who", [WHO, None])
def test_after_its_grace_period_a_task_continues_without_its_step(
    detachment: Detachment,
    state: ClaimState,
    progress: str | None,
    who: Claimant | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = Scene()
    scene.detachment = detachment
    claimed = scene.add(ClaimState.RUNNING)
    scene.claims.cancels.append(CancelRequest(None, claims=(key(1),)))
    assert scene.cancel_due() == []
    assert scene.cancel_due(9.9) == []
    assert claimed.state is ClaimState.STOPPING
    assert scene.cancel_due(0.1, who) == ([((1, 1), progress)] if progress and who else [])
    assert claimed.state is state
    assert ("did not stop within 10 s" in caplog.text) == (detachment is Detachment.HANGS)
    assert list(scene.claims.hung) == []


def test_a_lost_step_that_has_never_started_leaves_nothing() -> None:
    scene = Scene()
    scene.detachment = Detachment.NOT_STARTED
    claimed = scene.add(ClaimState.RUNNING)
    scene.claims.lose(claimed)
    assert scene.cancel_due(10.0) == []
    assert (claimed.state, list(scene.claims.hung)) == (ClaimState.CLOSED, [])


def test_grace_periods_that_were_lost_start_again() -> None:
    scene = Scene()
    states = (ClaimState.STOPPING, ClaimState.RUNNING, ClaimState.DETACHED)
    scene.steps_left = [scene.add(state, number) for number, state in enumerate(states)]
    timed = scene.add(ClaimState.RUNNING, 3)
    scene.claims.cancels.append(CancelRequest(None, claims=(timed.key,)))
    scene.cancel_due()
    for each in (scene.steps_left[0], scene.steps_left[2]):
        each.stop.set()
    scene.steps_left.append(timed)
    scene.claims.restore_graces()
    assert scene.cancel_due(9.9) == []
    assert scene.cancel_due(0.1) == [((3, 1), "detached"), ((0, 1), "detached")]
    assert [timer.entries for timer in scene.claims.timers] == [[], []]
