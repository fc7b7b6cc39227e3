"""The stored values of an attempt that is to be retried, stopped, parked or polled."""

import typing
from dataclasses import replace

import pytest
from stoker.conductor.steps.outcomes import Outcomes
from stoker.conductor.steps.results import StepResult
from stoker.db.ids import MemberId, ResourceId
from stoker.db.rows import Resource, Task
from stoker.db.states import TaskKind, TaskState
from stoker.db.work.cancel import LOST
from stoker.db.work.claim import Claimant
from stoker.resources.contract.children import ChildFailure
from stoker.resources.contract.errors import OverQuota, PermanentError, RetryableError, StepTimedOut
from stoker.resources.contract.steps import Park, Poll
from stoker.resources.nested.base import ChildFailed
from stoker.sealing.secrets import Secrets
from unit.conductor.steps.claims import a_claim, a_row, a_task

NOW = 1000.0
TASK = a_task()
ROW = a_row()
FAILURE = RetryableError("away")
RETRIED = "will be tried again: away"


def outcomes(task: Task = TASK, row: Resource = ROW, **changes: typing.Any) -> Outcomes:
    """Return the outcomes of a task.

    :param changes: other values of the task, but for `quota_wait`.
    """
    quota_wait = changes.pop("quota_wait", 100.0)
    claim = a_claim(replace(task, **changes), row)
    secrets = Secrets(typing.cast(typing.Any, None))
    return Outcomes(claim, Claimant(MemberId("one/i"), "one"), lambda: NOW, secrets, quota_wait)


def stored(result: StepResult) -> typing.Any:
    assert result.outcome is not None
    return result.outcome


@pytest.mark.parametrize(
    ("error", "attempt", "pause"),
    [
        (FAILURE, 0, 1.0),
        (FAILURE, 1, 1.0),
        (FAILURE, 2, 2.0),
        (FAILURE, 4, 8.0),
        (FAILURE, 7, 60.0),
        (FAILURE, 2000, 60.0),
        (RetryableError("", at_least=5.0), 1, 5.0),
        (RetryableError("", at_least=1.5), 3, 4.0),
        (RetryableError("", after=90.0, at_least=5.0), 3, 90.0),
    ],
)
def test_pauses_grow_with_each_attempt(error: RetryableError, attempt: int, pause: float) -> None:
    outcome = stored(outcomes(attempt=attempt).retry(error))
    assert (outcome.state, outcome.due_at, outcome.retries_left) == (TaskState.PARKED, NOW + pause, 2)


def test_the_first_failure_after_a_success_costs_no_retry_and_begins_with_the_shortest_pause() -> None:
    last = outcomes(attempt=9, retries_left=0)
    outcome = stored(last.retry(FAILURE, after_success=True))
    assert (outcome.state, outcome.due_at, outcome.retries_left) == (TaskState.PARKED, NOW + 1.0, 0)
    for error, after_success in ((FAILURE, False), (StepTimedOut("late"), True)):
        assert stored(last.retry(error, after_success=after_success)).state == TaskState.FAILED


@pytest.mark.parametrize(("attempt", "wait", "fails"), [(3, 8.0, True), (3, 8.1, False), (1, 0.0, True)])
def test_a_quota_is_waited_for_as_long_as_each_attempt_has_met_it(
    *, attempt: int, wait: float, fails: bool
) -> None:
    error = OverQuota("full", after=4.0)
    state = stored(outcomes(attempt=attempt, quota_wait=wait).retry(error)).state
    assert (state == TaskState.FAILED) == fails


def test_only_a_long_pause_for_a_new_reason_is_an_event() -> None:
    for pause, is_event in ((4.9, False), (5.0, True)):
        event = stored(outcomes().retry(RetryableError("away", after=pause))).event
        assert (event is not None) == is_event
    known = outcomes(row=replace(ROW, reason=RETRIED))
    assert stored(known.retry(RetryableError("away", after=9.0))).event is None
    observer = outcomes(kind=TaskKind.OBSERVE)
    assert stored(observer.retry(RetryableError("away", after=9.0))).event is None


@pytest.mark.parametrize(
    ("kind", "has_begun", "is_start"),
    [(TaskKind.UPDATE, True, True), (TaskKind.UPDATE, False, False), (TaskKind.CREATE, True, False)],
)
def test_a_retry_shows_a_start_where_the_type_was_called(
    *, kind: TaskKind, has_begun: bool, is_start: bool
) -> None:
    outcome = stored(outcomes(kind=kind).retry(FAILURE, has_begun=has_begun))
    status = {"action": "UPDATE", "status": "IN_PROGRESS"} if is_start else {}
    assert outcome.changes == {"reason": RETRIED, **status}
    assert (outcome.begun is not None) == is_start


def test_a_refresh_changes_no_row_and_ends_with_its_time() -> None:
    refresh = outcomes(kind=TaskKind.REFRESH)
    assert stored(refresh.retry(FAILURE)).changes == {}
    assert stored(refresh.retry(StepTimedOut("late"))).state == TaskState.DONE


def test_an_action_that_timed_out_starts_again() -> None:
    result = outcomes().retry(StepTimedOut("late"))
    assert result.timed_out
    assert stored(result).changes["progress"] is None
    assert "progress" not in stored(outcomes().retry(FAILURE)).changes
    cleanup = outcomes(definition={"retries_permanent": True})
    assert stored(cleanup.failed(PermanentError("no"))).changes["progress"] is None
    final = outcomes(definition={"retries_permanent": True}, retries_left=0)
    assert stored(final.failed(PermanentError("no"))).state == TaskState.FAILED


@pytest.mark.parametrize(
    ("expires_at", "state"),
    [(None, TaskState.CANCELLED), (NOW + 1, TaskState.CANCELLED), (NOW, TaskState.PARKED)],
)
def test_a_step_that_was_stopped_is_late_or_cancelled(expires_at: float | None, state: TaskState) -> None:
    for result in (outcomes(expires_at=expires_at).stopped(), outcomes(expires_at=expires_at).detached(None)):
        assert stored(result).state == state
        assert stored(result).changes.get("cancelled", False) == (state == TaskState.CANCELLED)
    assert result.detached


def test_a_parked_task_is_due_at_the_earliest_of_its_moments() -> None:
    for expires_at, after, due_at in (
        (None, None, None),
        (None, 5.0, 1005.0),
        (1003.0, 5.0, 1003.0),
        (1003.0, None, 1003.0),
        (1009.0, 5.0, 1005.0),
    ):
        assert (
            stored(outcomes(expires_at=expires_at).park(Park({}, "stack:s", after=after), {})).due_at
            == due_at
        )


def test_a_start_is_shown_once_where_the_step_decides_that_there_is_one() -> None:
    for result in (outcomes().park(Park({}, "stack:s"), {}), outcomes().poll_later(Poll({}, after=1.0), {})):
        assert stored(result).changes["status"] == "IN_PROGRESS"
        assert stored(result).begun is not None
    begun = replace(ROW, action="UPDATE", status="IN_PROGRESS")
    lost = replace(begun, reason=LOST)
    polled = replace(begun, progress={"task": TASK.id, "token": {}})
    for kind, row, attempt, is_shown in (
        (TaskKind.UPDATE, begun, 1, True),
        (TaskKind.UPDATE, begun, 2, False),
        (TaskKind.UPDATE, lost, 2, True),
        (TaskKind.UPDATE, ROW, 2, True),
        (TaskKind.UPDATE, polled, 1, False),
        (TaskKind.OBSERVE, ROW, 1, False),
        (TaskKind.CREATE, ROW, 1, False),
    ):
        result = outcomes(kind=kind, row=row, attempt=attempt).poll_later(Poll({}, after=1.0), {})
        assert (stored(result).begun is not None) == is_shown


def test_a_step_that_runs_again_does_so_at_once_and_keeps_its_claim() -> None:
    result = outcomes().run_again({"physical_id": "x"}, {"token": 1})
    assert (result.poll_after, result.progress, result.keeps_claim) == (0.0, {"token": 1}, True)
    assert result.claim.resource.physical_id == "x"


def test_a_resource_that_is_no_more_unhealthy_after_an_action() -> None:
    assert stored(outcomes(row=replace(ROW, unhealthy=True)).done({}, "x")).changes["unhealthy"] is False
    assert "unhealthy" not in stored(outcomes().done({}, "x")).changes


@pytest.mark.parametrize(
    ("kind", "status", "reason"),
    [
        (TaskKind.UPDATE, "COMPLETE", None),
        (TaskKind.CHECK, "FAILED", None),
        (
            TaskKind.UPDATE,
            "FAILED",
            "Update status to COMPLETE for FAILED resource neither update nor replace.",
        ),
        (TaskKind.UPDATE, "IN_PROGRESS", "state changed"),
    ],
)
def test_only_another_status_is_an_event_where_there_is_nothing_to_do(
    kind: TaskKind, status: str, reason: str | None
) -> None:
    outcome = stored(outcomes(kind=kind, row=replace(ROW, status=status)).nothing_to_do({}))
    assert outcome.state == TaskState.DONE
    assert outcome.changes.get("reason") == reason
    assert (outcome.event is not None) == (reason is not None)


def test_a_signal_changes_the_row_where_it_succeeds_and_is_an_event_where_it_fails() -> None:
    signal = outcomes(kind=TaskKind.SIGNAL)
    done, failed = stored(signal.done({"data": 1}, "x")), stored(signal.failed(PermanentError("no")))
    assert done.changes == {"data": 1, "progress": None}
    assert failed.changes is None or not failed.changes
    assert (done.event is None, failed.event is None) == (True, False)
    silent = stored(outcomes(kind=TaskKind.DELETE_SNAPSHOT).failed(PermanentError("no")))
    assert silent.event is None


@pytest.mark.parametrize("retries_left", [1, 0])
def test_a_cleanup_is_retried_as_long_as_it_has_retries_left(retries_left: int) -> None:
    cleanup = outcomes(definition={"retries_permanent": True}, retries_left=retries_left)
    outcome = stored(cleanup.failed(PermanentError("no")))
    assert outcome.state == (TaskState.PARKED if retries_left else TaskState.FAILED)


@pytest.mark.parametrize(
    ("path", "stopped_at", "where", "aborts"),
    [
        ("", "", "resources.r", False),
        ("resources.x", "", "resources.r.resources.x", False),
        ("resources.x", "x", "resources.r.resources.x", True),
    ],
)
def test_a_failure_of_a_nested_stack_names_its_first_cause(
    *, path: str, stopped_at: str, where: str, aborts: bool
) -> None:
    failure = ChildFailure("no", "Bad", path, stopped_at)
    outcome = stored(outcomes().failed(ChildFailed(failure), {"physical_id": "x"}))
    assert outcome.changes["reason"] == f"Bad: {where}: no"
    assert outcome.changes["physical_id"] == "x", "what the action has made"
    assert (outcome.state, outcome.aborts) == (TaskState.FAILED, aborts)
    if aborts:
        assert outcome.reason == "UPDATE aborted due to breakpoint on resource r/x"


def test_an_observation_shows_only_that_the_resource_is_wrong() -> None:
    observer = outcomes(kind=TaskKind.OBSERVE)
    outcome = stored(observer.failed(PermanentError("gone")))
    assert (outcome.state, outcome.changes["status"]) == (TaskState.DONE, "FAILED")
    outcome = stored(observer.failed(ValueError("a bug")))
    assert (outcome.state, outcome.changes, outcome.event) == (TaskState.DONE, {"progress": None}, None)
    outcome = stored(observer.stopped())
    assert (outcome.state, outcome.changes, outcome.event) == (TaskState.CANCELLED, {}, None)


def test_a_breakpoint_behind_an_action_holds_it_or_ends_the_stack() -> None:
    for options, state, aborts in (({}, TaskState.HELD, False), ({"abort": True}, TaskState.FAILED, True)):
        outcome = stored(outcomes(hooks={"post-update": options}).done({}, "x"))
        assert (outcome.state, outcome.aborts) == (state, aborts)
    assert stored(outcomes(hooks={"pre-update": {}}).done({}, "x")).state == TaskState.DONE


@pytest.mark.parametrize(
    ("hooks", "state", "hook"),
    [
        (None, TaskState.READY, None),
        ({"post-create": {"abort": True}}, TaskState.READY, None),
        ({"pre-create": {}}, TaskState.HELD, "pre-create"),
        ({"pre-create": {"abort": True}}, TaskState.FAILED, None),
    ],
)
def test_a_replacement_stops_at_the_breakpoint_before_its_creation(
    hooks: typing.Any, state: TaskState, hook: str | None
) -> None:
    outcome = stored(outcomes(hooks=hooks, spare_id=ResourceId(3)).replaced())
    assert (outcome.state, outcome.hook) == (state, hook)
    assert (outcome.replacement is None) == (state == TaskState.FAILED)


@pytest.mark.parametrize(
    ("definition", "names"),
    [({}, ("A::B", "A::B")), ({"type": "C::D", "plugin": "E::F"}, ("C::D", "E::F"))],
)
def test_a_replacement_has_the_type_of_the_goal(definition: typing.Any, names: tuple[str, str]) -> None:
    replacement = stored(outcomes(definition=definition, spare_id=ResourceId(3)).replaced()).replacement
    assert (replacement.type, replacement.plugin) == names
    assert (replacement.id, replacement.replaces) == (ResourceId(3), ROW.id)


def test_what_the_environment_forbids_fails_the_task_and_leaves_the_resource_as_it_is() -> None:
    outcome = stored(outcomes().refused(PermanentError("replace is restricted for resource.")))
    assert (outcome.state, outcome.changes) == (TaskState.FAILED, {})
    assert outcome.event is not None
    kind = "ResourceActionRestricted"
    assert outcome.reason.endswith(f"{kind}: resources.r: replace is restricted for resource.")
