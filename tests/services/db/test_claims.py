"""Claiming: each ready task goes to one claimant, as a new attempt."""

import collections
import typing

import pytest
from services.db.rows import (
    NOW,
    A,
    B,
    Graph,
    a_stack,
    claim_all,
    on,
    outcome,
    raised,
    resource,
    set_task,
    step,
    store_graph,
    task,
    together,
    traversal_of,
)
from stoker.db import events, resources
from stoker.db.engine import Database
from stoker.db.events import EventQuery
from stoker.db.ids import MemberId, TaskId
from stoker.db.states import Status, TaskKind, TaskState
from stoker.db.work import member_claims, tasks
from stoker.db.work.claim import Claim, Claimant, lock, read, stack_names

pytestmark = pytest.mark.usefixtures("bystander")


def event_texts(database: Database, graph: Graph) -> list[tuple[str, str, str]]:
    stored_events = database.read(lambda conn: events.list_events(conn, EventQuery(graph.stack.id)))
    return [(event.resource_name, event.action, event.status) for event, _ in stored_events]


def test_each_task_of_a_batch_goes_to_exactly_one_of_many_claimants(database: Database) -> None:
    graph = store_graph(database, {f"r{number}": [] for number in range(60)})
    claimants = [Claimant(MemberId(f"host{number}/1"), f"host{number}") for number in range(6)]

    def grab(who: Claimant) -> list[Claim]:
        return [held for _ in range(4) for held in claim_all(database, graph.ids, who)]

    results = together(*(lambda who=who: grab(who) for who in claimants))  # type: ignore[misc]
    assert raised(results) == []
    claims = collections.Counter(held.task.id for held_by in results for held in held_by)  # type: ignore[union-attr]
    assert claims == dict.fromkeys(graph.ids, 1)
    stored = [task(database, task_id) for task_id in graph.ids]
    assert {(item.state, item.attempt) for item in stored} == {(TaskState.RUNNING, 1)}


def test_a_claim_holds_all_a_step_needs(database: Database) -> None:
    stack = a_stack(name="web", project_id="acme")
    graph = store_graph(database, {"net": [], "server": ["net"]}, stack=stack, definition={"x": 1})
    [first] = claim_all(database, graph.ids)
    changes = {"reference_id": "net-1", "attributes": {"cidr": "10.0.0.0/24"}}
    [held] = step(database, [outcome(first, changes=changes)]).claims
    assert (held.stack_name, held.project_id, held.resource.name) == ("web", "acme", "server")
    assert held.task.definition == {"x": 1}
    assert held.inputs["net"].reference_id == "net-1"
    assert held.inputs["net"].attributes == {"cidr": "10.0.0.0/24"}
    assert not held.begun


def test_an_input_without_attributes_has_none(database: Database) -> None:
    graph = store_graph(database, {"net": [], "server": ["net"]})
    [first] = claim_all(database, graph.ids)
    [held] = step(database, [outcome(first)]).claims
    assert held.inputs["net"].attributes == {}


def test_what_is_returned_is_what_is_stored(database: Database) -> None:
    graph = store_graph(database, {"one": []}, timeout=60.0)
    [held] = claim_all(database, graph.ids)
    stored = task(database, graph.tasks["one"])
    assert held.task.expires_at == stored.expires_at == NOW + 60
    assert stored.due_at == NOW + 60
    assert (held.task.attempt, held.task.member, held.task.state) == (1, A.member, TaskState.RUNNING)


STALE: dict[str, typing.Any] = {
    "an attempt after it has begun": {"attempt": 2},
    "another member has it": {"member": B.member},
    "it is to stop": {"stop_by": NOW + 60},
    "it has ended": {"state": TaskState.DONE},
    "it was put back": {"state": TaskState.READY},
}


@pytest.mark.parametrize("values", STALE.values(), ids=list(STALE))
def test_only_the_attempt_that_runs_locks_its_claim(
    database: Database, values: dict[str, typing.Any]
) -> None:
    graph = store_graph(database, {"one": []})
    [held] = claim_all(database, graph.ids)
    assert database.write(lambda conn: lock(conn, held.task))
    set_task(database, held.task.id, **values)
    assert not database.write(lambda conn: lock(conn, held.task))


def test_a_claim_shows_the_action_on_the_resource_and_in_the_events_once(database: Database) -> None:
    graph = store_graph(database, {"one": []})
    [held] = claim_all(database, graph.ids, now=NOW + 1)
    row = resource(database, graph.resources["one"])
    assert (row.action, row.status, row.reason) == ("CREATE", Status.IN_PROGRESS, "state changed")
    assert row.updated_at == NOW + 1
    database.write(lambda conn: member_claims.release(conn, [(held.task.id, 1)], now=NOW))
    [again] = claim_all(database, graph.ids, B)
    assert (again.task.attempt, again.task.member) == (2, B.member)
    assert event_texts(database, graph) == [("one", "CREATE", "IN_PROGRESS")]


@pytest.mark.parametrize("is_of_another_task", [False, True])
def test_an_attempt_after_one_that_stored_progress_has_begun(
    database: Database, is_of_another_task: bool
) -> None:
    graph = store_graph(database, {"one": []})
    [held] = claim_all(database, graph.ids)
    progress = {"task": held.task.id + is_of_another_task, "token": {"n": 1}}
    step(database, [outcome(held, TaskState.RUNNING, changes={"progress": progress})])
    database.write(lambda conn: member_claims.release(conn, [(held.task.id, 1)], now=NOW))
    [again] = claim_all(database, graph.ids, B)
    assert again.begun is not is_of_another_task
    assert again.resource.progress == progress


@on("sqlite")
def test_a_refresh_of_a_resource_that_was_replaced_is_one_of_the_replacement(database: Database) -> None:
    graph = store_graph(database, {"older": [], "newer": [], "updated": []})
    newer = graph.resources["newer"]
    set_task(database, graph.tasks["older"], kind=TaskKind.REFRESH, spare_id=newer)
    set_task(database, graph.tasks["updated"], kind=TaskKind.UPDATE, spare_id=newer)
    [held] = claim_all(database, [graph.tasks["older"]])
    by_task = {claim.task.id: claim.resource.id for claim in claim_all(database, graph.ids)}
    assert (held.resource.id, by_task[graph.tasks["updated"]]) == (newer, graph.resources["updated"])
    stored = task(database, held.task.id)
    assert (stored.resource_id, stored.spare_id) == (newer, None)
    assert (held.task.resource_id, held.task.spare_id) == (stored.resource_id, None)


def test_only_ready_tasks_can_be_claimed(database: Database) -> None:
    graph = store_graph(database, {"one": []})
    for state in TaskState:
        set_task(database, graph.tasks["one"], state=state)
        assert bool(claim_all(database, graph.ids)) == (state == TaskState.READY), state
    assert claim_all(database, [TaskId(graph.number), TaskId(10**12)]) == []


def test_a_timeout_counts_from_the_first_claim_over_all_attempts(database: Database) -> None:
    graph = store_graph(database, {"one": []}, timeout=60.0)
    claim_all(database, graph.ids)
    database.write(lambda conn: member_claims.release(conn, [(graph.tasks["one"], 1)], now=NOW))
    [again] = claim_all(database, graph.ids, now=NOW + 50)
    assert again.task.expires_at == NOW + 60


def test_a_task_claimed_after_its_timeout_is_not_due_at_once(database: Database) -> None:
    graph = store_graph(database, {"one": []}, timeout=60.0)
    claim_all(database, graph.ids)
    database.write(lambda conn: member_claims.release(conn, [(graph.tasks["one"], 1)], now=NOW))
    [again] = claim_all(database, graph.ids, now=NOW + 100)
    assert again.task.expires_at == NOW + 60
    assert task(database, again.task.id).due_at == NOW + 130


def test_newly_ready_tasks_come_before_those_of_hints_and_no_more_than_slots(database: Database) -> None:
    graph = store_graph(database, {"a": [], "b": ["a"], "c": ["a"]})
    hinted = store_graph(database, {f"r{number}": [] for number in range(5)})
    [held] = claim_all(database, [graph.tasks["a"]])
    done = step(database, [outcome(held)], hinted.ids, slots=3)
    names = [(claim.task.stack_id == graph.stack.id, claim.resource.name) for claim in done.claims]
    assert len(names) == 3
    assert [name for is_successor, name in names if is_successor] == ["b"], (
        "one newly ready task for each outcome"
    )
    assert done.ready == {graph.traversal: [graph.tasks["c"]]}
    assert done.locked == []
    nothing = step(database, [], hinted.ids, slots=0)
    assert nothing.claims == []


def test_a_traversal_with_many_tasks_is_claimed_in_one_transaction(database: Database) -> None:
    graph = store_graph(database, {f"r{number}": [] for number in range(1200)})
    assert len(claim_all(database, graph.ids)) == 1200
    stored_tasks = database.read(lambda conn: tasks.of_traversal(conn, graph.traversal))
    assert {item.state for item in stored_tasks} == {TaskState.RUNNING}
    assert traversal_of(database, graph.number).open_tasks == 1200


@on("sqlite")
@pytest.mark.parametrize("kind", [TaskKind.CREATE, TaskKind.ADOPT])
def test_a_claim_has_the_newest_of_what_it_refers_to(database: Database, kind: TaskKind) -> None:
    replacements = {"first": "second", "second": "third", "net": "new net", "lone": "gone"}
    inputs = ["first", "net", "lone", "gone"]
    needs: dict[str, list[str]] = {name: [] for name in (*inputs, "second", "third", "new net")}
    graph = store_graph(database, {**needs, "server": inputs}, kind=kind)
    server = graph.tasks["server"]
    set_task(database, server, state=TaskState.READY, pending=0)
    chain = [
        {"id": graph.resources[older], "replaced_by": graph.resources[newer]}
        for older, newer in replacements.items()
    ]
    database.write(lambda conn: resources.store_changes(conn, chain, now=NOW))
    database.write(lambda conn: resources.delete_many(conn, [graph.resources["gone"]]))
    [held] = claim_all(database, [server])
    newest = {"first": "first", "net": "net", "lone": "lone"}
    if kind != TaskKind.ADOPT:
        newest |= {"first": "third", "net": "new net"}
    read_again = database.read(lambda conn: read(conn, held.task))
    assert read_again is not None
    for claimed in (held, read_again):
        ids = {name: value.id for name, value in claimed.inputs.items()}
        assert ids == {name: graph.resources[newer] for name, newer in newest.items()}
    assert (read_again.stack_name, read_again.root_id) == (held.stack_name, held.root_id)
    assert read_again.resource.id == held.resource.id
    names = database.read(lambda conn: stack_names(conn, [graph.stack.id]))
    assert names == {graph.stack.id: (graph.stack.name, graph.stack.project_id)}
    database.write(lambda conn: resources.delete_many(conn, [graph.resources["server"]]))
    assert database.read(lambda conn: read(conn, held.task)) is None


@on("sqlite")
@pytest.mark.parametrize(
    ("kind", "status", "has_step"),
    [
        (TaskKind.CHECK, Status.COMPLETE, True),
        (TaskKind.CHECK, Status.FAILED, False),
        (TaskKind.UPDATE, Status.FAILED, True),
    ],
)
def test_a_check_has_a_step_where_the_resource_was_made(
    database: Database, kind: TaskKind, status: Status, has_step: bool
) -> None:
    graph = store_graph(database, {"one": []}, kind=kind)
    row = {"id": graph.resources["one"], "action": "CREATE", "status": status, "physical_id": None}
    database.write(lambda conn: resources.store_changes(conn, [row], now=NOW))
    assert [held.task.id for held in claim_all(database, graph.ids)] == (graph.ids if has_step else [])
    assert task(database, graph.ids[0]).state == (TaskState.RUNNING if has_step else TaskState.DONE)


@on("sqlite")
def test_each_claim_of_a_batch_shows_its_own_action(database: Database) -> None:
    graph = store_graph(database, {"silent": [], "begun": [], "new": []})
    set_task(database, graph.tasks["silent"], kind=TaskKind.SIGNAL)
    set_task(database, graph.tasks["begun"], attempt=1)
    begun = {"id": graph.resources["begun"], "action": "CREATE", "status": Status.IN_PROGRESS}
    database.write(lambda conn: resources.store_changes(conn, [begun], now=NOW))
    claim_all(database, graph.ids)
    assert event_texts(database, graph) == [("new", "CREATE", "IN_PROGRESS")]
    reasons = {name: resource(database, graph.resources[name]).reason for name in graph.resources}
    assert reasons == {"silent": "", "begun": "", "new": "state changed"}


@on("sqlite")
def test_a_later_attempt_shows_its_action_where_none_has(database: Database) -> None:
    graph = store_graph(database, {"retried": [], "repeated": []})
    set_task(database, graph.tasks["retried"], attempt=1)
    states = {"retried": Status.FAILED, "repeated": Status.IN_PROGRESS}
    for name, status in states.items():
        row = {"id": graph.resources[name], "action": "CREATE", "status": status}
        database.write(lambda conn: resources.store_changes(conn, [row], now=NOW))  # noqa: B023
    claim_all(database, graph.ids)
    assert len(event_texts(database, graph)) == 2
