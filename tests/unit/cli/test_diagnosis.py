"""Why a task is not over, in words: each thing that can hold it up."""

import dataclasses
import typing

import pytest
from stoker.db.conductors import STOPPED, ConductorRecord
from stoker.db.ids import ContentId, MemberId, StackId, TaskId, TraversalId, WaitsOn
from stoker.db.queries.guests import AwaitedGuest
from stoker.db.rows import FailureCause, Stack
from stoker.db.states import Standing, Status, TaskKind, TaskState
from stoker.features.diagnosis.fleet import ConductorFleet, Reason, health_problems
from stoker.features.diagnosis.inspections import Child, LongStep, Unfinished, Waiting
from stoker.features.diagnosis.report import StackReport, as_json, as_lines, of_stack
from stoker.features.diagnosis.tasks import DiagnosisContext, explain
from stoker.observe.instants import describe_moment

NOW = 1_800_000_000.0
ONE = MemberId("one/i1")
TWO = MemberId("two/i1")
FIELDS: typing.Any = {
    "id": TaskId(1),
    "stack_id": StackId("S"),
    "traversal": TraversalId("T"),
    "shard": 1,
    "kind": TaskKind.CREATE,
    "state": TaskState.RUNNING,
    "standing": Standing.OWN,
    "attempt": 1,
    "member": ONE,
    "ready_at": None,
    "claimed_at": NOW - 100,
    "due_at": None,
    "expires_at": None,
    "stop_by": None,
    "retries_left": 3,
    "redelivered": 0,
    "waits_on": None,
    "hook": None,
    "resource": "server",
    "type": "OS::Nova::Server",
    "reason": "",
    "told_at": NOW - 50,
    "begun": False,
    "stack_name": "shop",
    "traversal_now": TraversalId("T"),
    "path": "server",
}


def a_task(**fields: typing.Any) -> Unfinished:
    return Unfinished(**{**FIELDS, **fields})


def ready(**fields: typing.Any) -> Unfinished:
    return a_task(state=TaskState.READY, member=None, claimed_at=None, **{"due_at": NOW + 3, **fields})


def parked(**fields: typing.Any) -> Unfinished:
    return a_task(**{"state": TaskState.PARKED, "member": None, "due_at": NOW + 3, **fields})


def a_conductor(host: str, **fields: typing.Any) -> ConductorRecord:
    plain: typing.Any = {
        "incarnation": f"{host}/i1",
        "state": "active",
        "started_at": 0.0,
        "heartbeat_at": NOW - 0.5,
        "threads": 4,
    }
    return ConductorRecord(host, **{**plain, **fields})


def a_fleet(*conductors: ConductorRecord, **fields: typing.Any) -> ConductorFleet:
    by_host = {c.host: c for c in conductors or (a_conductor("one"), a_conductor("two"))}
    living = frozenset(
        host for host, c in by_host.items() if c.state != STOPPED and NOW - c.heartbeat_at < 10
    )
    owner = "two" if "two" in living else min(living, default=None)
    plain: typing.Any = {
        "now": NOW,
        "conductors": by_host,
        "alive": living,
        "owner_of": lambda shard: owner,
        "takeover": 20.0,
        "grace": 30.0,
        "manage": "stoker-manage",
        "skews": {},
    }
    return ConductorFleet(**{**plain, **fields})


def why(task: Unfinished, fleet: ConductorFleet | None = None, **around: typing.Any) -> Reason:
    plain: typing.Any = {"deadline_at": NOW + 600, "children": {}, "handles": {}}
    return explain(task, fleet or a_fleet(), DiagnosisContext(**{**plain, **around})).reason


RETRY = "stoker-manage stack retry S"
SILENT = a_conductor("one", heartbeat_at=NOW - 34)


def test_a_call_that_has_lasted_for_long_may_hang() -> None:
    reason = why(a_task())
    assert reason.cause == "call"
    assert "has not returned from its first call on one" in reason.why
    assert (reason.next, reason.at) == (
        "nothing until the call returns; at the latest the stack times out",
        NOW + 600,
    )
    assert reason.commands == (f"{RETRY} --resource server",)
    assert why(a_task(), deadline_at=None).next == "nothing until the call returns"
    assert why(a_task(expires_at=NOW + 5)).at == NOW + 5
    assert why(a_task(claimed_at=NOW - 3)).commands == ()


def test_a_step_may_wait_for_a_thread_that_another_one_holds() -> None:
    crowded = a_fleet(a_conductor("one", threads_busy=6), a_conductor("two"))
    longest = [LongStep(StackId("X"), "other", "disk", ONE, NOW - 300)]
    reason = why(a_task(), crowded, longest=longest)
    assert "it waits for a thread, or is in its first call: all 4 of one are busy" in reason.why
    assert "the longest call (5 min) is that of resource disk of stack other on one" in reason.why
    assert reason.commands == ("stoker-manage stack retry X --resource disk",)
    assert why(a_task(claimed_at=NOW - 400), crowded, longest=longest).cause == "call"


def test_a_step_that_is_polled_is_no_trouble() -> None:
    assert why(a_task(begun=True)) == Reason(
        "polled",
        "one polls it; its progress was last stored 50 s ago",
        "it ends when the resource's type reports so; at the latest the stack times out",
        NOW + 600,
    )


@pytest.mark.parametrize(
    ("conductor", "message"),
    [
        (SILENT, "one holds it, which sends no heartbeat (last report 34 s ago)"),
        (a_conductor("one", state=STOPPED), "one holds it, which has stopped"),
        (a_conductor("one", incarnation="one/i2"), "one holds it, which has restarted since"),
        (a_conductor("three"), "one holds it, which is no longer registered"),
    ],
)
def test_a_conductor_that_is_gone_is_named_with_what_became_of_it(
    conductor: ConductorRecord, message: str
) -> None:
    reason = why(a_task(), a_fleet(conductor, a_conductor("two")))
    assert (reason.cause, reason.why) == ("gone", message)
    assert reason.next == "two takes the task over from one and requeues it"
    assert reason.at is not None
    assert reason.at >= NOW
    assert reason.commands == (RETRY,)


def test_without_conductors_nothing_happens() -> None:
    nobody = a_fleet(SILENT)
    reason = why(a_task(), nobody)
    assert reason.next == "nothing: no conductor is alive"
    assert reason.commands == (
        "stoker-manage config validate --connect",
        "systemctl restart stoker-conductor@one",
    )
    assert why(ready(), nobody).why == "the task is ready, but no conductor is alive"
    assert why(parked(), nobody).commands == nobody.revive()
    [general] = health_problems(nobody, unsettled=None, database=None)
    assert general.why.startswith("no conductor is alive; last reports: one (34 s ago);")


def test_a_cancel_that_was_not_answered() -> None:
    reason = why(a_task(stop_by=NOW + 7, standing=Standing.SUPERSEDED, traversal=TraversalId("old")))
    assert reason.cause == "cancel"
    assert reason.why.startswith(
        "one was asked to cancel it and has not: its step hangs in a call; it belongs to"
    )
    assert reason.next.startswith("two asks one again every second; then its claim is revoked")
    assert reason.at == NOW + 7.5
    assert reason.commands == (f"{RETRY} --resource server",)


def test_a_hint_that_was_lost_is_sent_again_by_the_owner() -> None:
    reason = why(ready(ready_at=NOW - 2, due_at=NOW + 3))
    assert (
        reason.why
        == "the task is ready, and no conductor has claimed it: one hint sent, the last one 2 s ago"
    )
    assert (reason.next, reason.at) == ("two sends the hint again", NOW + 3)
    assert reason.commands == (RETRY,)
    reason = why(ready(redelivered=2, due_at=NOW + 8))
    assert reason.why.endswith("12 s ago; hints are not delivered: check that the message bus answers")
    assert reason.commands == ("stoker-manage config validate --connect", RETRY)
    task = explain(ready(ready_at=NOW - 27), a_fleet(), DiagnosisContext(None, {}, {}))
    assert task.since == NOW - 27


def test_an_owner_that_does_not_act_is_named() -> None:
    reason = why(ready(due_at=NOW - 60))
    assert reason.why.endswith("; two should have acted 1 min ago: its duties make no progress")
    assert reason.commands == (RETRY, "systemctl restart stoker-conductor@two")


def test_a_moment_that_is_too_far_away_was_stored_by_a_wrong_clock() -> None:
    result = why(ready(due_at=NOW + 3600))
    assert result.cause == "clock"
    assert "stored by a clock that is ahead" in result.why
    skewed = a_fleet(skews={"one": 3600.0})
    [general] = health_problems(skewed, unsettled=None, database=-7.0)[:1]
    assert general.why == "the clock of one is 1 h ahead of this host's: what is due comes late or early"
    assert "the clock of the database is 7 s behind this host's" in "".join(
        reason.why for reason in health_problems(skewed, unsettled=None, database=-7.0)
    )


def test_threads_that_are_all_busy_are_shown_with_what_holds_them() -> None:
    fleet = a_fleet(a_conductor("one", threads_busy=4), a_conductor("two", threads_busy=8))
    longest = LongStep(StackId("X"), "other", "disk", ONE, NOW - 300)
    reason = why(ready(), fleet, longest=[longest])
    assert reason.cause == "threads"
    assert "all threads of all conductors are busy (one: 4, two: 4)" in reason.why
    assert "the longest call (5 min) is that of resource disk of stack other on one" in reason.why
    assert reason.commands == ("stoker-manage stack retry X --resource disk",)


def test_threads_that_were_detached_are_shown() -> None:
    fleet = a_fleet(a_conductor("one", threads_written_off=2))
    [reason] = health_problems(fleet, unsettled=None, database=None)
    assert reason.why == "one: 2 threads hang in calls that were cancelled, and were detached"


def test_what_waits_in_the_database_says_for_what() -> None:
    signal = why(parked(waits_on=WaitsOn.parse("resource:7")), handles={"7": "hand le"})
    assert signal.why == "it waits for a signal to hand le, which has not arrived"
    assert signal.commands == ("openstack stack resource signal S 'hand le'",)
    again = why(parked(reason="will be tried again: quota"))
    assert again.why == "it will be retried (3 retries left): will be tried again: quota"
    assert again.commands == (f"{RETRY} --resource server",)
    left = why(parked(waits_on=WaitsOn.parse("step:4:1"), member=ONE))
    assert left.why == "the step on one that may still create it has not returned"


@pytest.mark.parametrize(
    ("guest", "message"),
    [
        (
            AwaitedGuest("web", None, is_up_to_date=False),
            "server web has never asked for its metadata: check that it runs, has the agents, and reaches",
        ),
        (
            AwaitedGuest("web", NOW - 90, is_up_to_date=False),
            "server web last asked for its metadata 1 min ago, and has not got the newest deployment",
        ),
        (
            AwaitedGuest("web", NOW - 20, is_up_to_date=True),
            "server web last asked for its metadata 20 s ago, and has all of its deployments",
        ),
    ],
)
def test_a_deployment_that_waits_for_its_server_says_what_the_server_did(
    guest: AwaitedGuest, message: str
) -> None:
    waiting = parked(waits_on=WaitsOn.parse("resource:7"))
    reason = why(waiting, handles={"7": "greet"}, guests={"7": guest})
    assert reason.why.startswith("it waits for a signal to greet, which has not arrived; server web ")
    assert message in reason.why


def test_a_nested_stack_is_shown_with_its_state() -> None:
    def on_child(status: str, stands: bool = False) -> Reason:
        child = Child(StackId("C"), "shop-web", "CREATE", status, stands)
        return why(parked(waits_on=WaitsOn.parse("stack:C"), due_at=NOW + 200), children={"C": child})

    assert on_child("IN_PROGRESS").why == "it waits for the nested stack shop-web (CREATE_IN_PROGRESS)"
    assert on_child("IN_PROGRESS", True).why.endswith("which is held at breakpoints")
    ended = on_child("COMPLETE")
    assert ended.why.endswith("shop-web (CREATE_COMPLETE), which has ended without resuming it")
    assert ended.next == "two polls it"
    assert ended.commands == (f"{RETRY} --resource server",)


def test_a_breakpoint_is_shown_with_the_clients_command() -> None:
    reason = why(a_task(state=TaskState.HELD, member=None, hook="pre-create"))
    assert reason.why == "it is held at the breakpoint pre-create"
    assert reason.commands == ("openstack stack continue S server",)
    held = a_task(state=TaskState.HELD, member=None, hook="pre-create", held_since=NOW - 7)
    since = explain(held, a_fleet(), DiagnosisContext(None, {}, {})).since
    assert since == NOW - 7, "not when its resource's row was written"
    limited = why(a_task(state=TaskState.HELD, member=None, hook="pre-create", due_at=NOW + 9))
    assert (limited.next, limited.at) == ("the breakpoint's own limit ends it", NOW + 9)


def test_a_conductor_that_has_not_answered_for_what_is_over_holds_nothing_up() -> None:
    assert "no stack waits for it" in why(a_task(state=TaskState.CANCELLED)).why
    lost = why(a_task(state=TaskState.CANCELLED), a_fleet(SILENT, a_conductor("two")))
    assert lost.next == "nothing: that conductor is gone"


# -- the stack as a whole ------------------------------------------------------------------------------

STACK = Stack(
    id=StackId("S"),
    project_id="demo",
    name="shop",
    action="CREATE",
    status=Status.IN_PROGRESS,
    traversal=TraversalId("T"),
    shard=1,
    template_id=ContentId(""),
    environment_id=ContentId(""),
    files_id=ContentId(""),
    created_at=NOW,
    root_id=StackId("S"),
    deadline_at=NOW + 600,
)
EMPTY = Waiting([], {}, {}, {})


def whole(**fields: typing.Any) -> Reason:
    stack = dataclasses.replace(STACK, **fields)
    [reason] = of_stack(stack, EMPTY, "two", a_fleet())
    return reason


def test_a_stack_that_has_ended_is_shown_with_the_clients_command() -> None:
    failed = whole(status=Status.FAILED, reason="no quota")
    assert (failed.why, failed.commands) == ("no quota", ("openstack stack update --existing S",))
    assert whole(status=Status.FAILED, action="DELETE").commands == ("openstack stack delete S",)
    assert whole(status=Status.FAILED, action="SUSPEND").commands == ("openstack stack suspend S",)
    assert whole(status=Status.FAILED, action="CHECK").commands == (
        "openstack stack update --existing --converge S",
    )
    quota = whole(status=Status.FAILED, failure_cause=FailureCause("over the quota: 2 of 2"))
    assert quota.next == "nothing: the project's quota has to be raised, or something deleted"
    assert whole(status=Status.COMPLETE).commands == ()
    assert whole(deleted_at=NOW).cause == "deleted"
    assert whole(status=Status.FAILED, rollback_at=NOW).next == "two starts it"


def test_a_stack_of_which_nothing_can_continue_is_a_bug() -> None:
    report = whole()
    assert report.cause == "lost"
    assert report.commands == ("stoker-manage stack fail S",)


def test_the_report_says_all_of_it_as_text_and_as_json() -> None:
    fleet = a_fleet()
    waiting = Waiting([a_task()], {TaskState.RUNNING: 3, TaskState.WAITING: 2}, {}, {})
    finding = explain(a_task(), fleet, DiagnosisContext(STACK.deadline_at, {}, {}))
    report = StackReport(STACK, "two", waiting, [], [finding], [])
    text = "\n".join(as_lines(report, fleet))
    assert text.splitlines()[0] == "stack shop (S) of project demo: CREATE_IN_PROGRESS"
    assert "unfinished: 3 running, 2 waiting; owned by two" in text
    since = describe_moment(NOW - 100, NOW)
    assert f"server: create is running on one since {since}, attempt 1" in text
    assert f"  sooner: {RETRY} --resource server" in text
    assert "2 more are not shown" in text
    assert "2 wait for other tasks" in text
    document = as_json(report)
    assert document["tasks"][0]["cause"] == "call"
    assert document["tasks"][0]["commands"] == [f"{RETRY} --resource server"]
    assert document["more"] == 2


def test_moments_are_shown_with_their_distance() -> None:
    assert describe_moment(NOW - 300, NOW).endswith("UTC (5 min ago)")
    assert describe_moment(NOW + 7200, NOW).endswith("UTC (in 2 h)")
    assert describe_moment(NOW + 86400 * 3, NOW).startswith("2027-01-18 ")
