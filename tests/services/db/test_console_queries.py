"""Reads for consoles and operators, on each database: the graph, counts, stuck stacks, claims in hand."""

import json
from dataclasses import replace

import pytest
import sqlalchemy as sa
from harness import pace
from services.db.rows import NOW, A, a_resource, a_stack
from stoker.db import events, resources, stacks
from stoker.db.engine import Database
from stoker.db.ids import MemberId, ResourceId, StackId, TaskId
from stoker.db.queries import overview, stack_list
from stoker.db.queries.stack_list import StackQuery
from stoker.db.rows import Event, Stack, Task
from stoker.db.states import Status, TaskKind, TaskState
from stoker.db.work import tasks
from stoker.features.diagnosis import graphs
from stoker.features.diagnosis.graph_views import SharedGraph

MANY = 10_000


def a_task(stack: Stack, number: int, state: TaskState, **fields: object) -> Task:
    plain = Task(
        id=TaskId(number),
        traversal=stack.traversal,
        stack_id=stack.id,
        kind=TaskKind.CREATE,
        state=state,
        pending=0,
        shard=stack.shard,
        resource_id=ResourceId(number),
    )
    return replace(plain, **fields)  # type: ignore[arg-type]


def stored(
    database: Database, stack: Stack, *stack_tasks: Task, names: dict[int, str] | None = None
) -> Stack:
    """Store a stack with tasks, each with the resource of its number."""

    def store(conn: sa.Connection) -> None:
        stacks.insert(conn, stack)
        rows = [
            a_resource(stack.id, task.id, (names or {}).get(task.id, f"r{task.id}")) for task in stack_tasks
        ]
        resources.insert_many(conn, rows)
        tasks.insert_many(conn, list(stack_tasks))

    database.write(store)
    return stack


def test_the_graph_of_a_tree_has_states_edges_and_present_tasks(database: Database) -> None:
    root = a_stack()
    child = a_stack(
        live_name=None, parent_id=root.id, root_id=root.id, depth=1, parent_resource_id=ResourceId(2)
    )
    older = a_stack().traversal
    stored(
        database,
        root,
        a_task(root, 1, TaskState.RUNNING, member=A.member, attempt=2, claimed_at=NOW),
        a_task(root, 2, TaskState.PARKED),
        a_task(root, 3, TaskState.WAITING),
        a_task(root, 4, TaskState.READY, ready_at=NOW, due_at=NOW + 5),
        a_task(root, 5, TaskState.DONE),
        a_task(root, 6, TaskState.RUNNING, member=A.member, traversal=older),
    )
    stored(database, child, a_task(child, 7, TaskState.HELD, hook="pre-create"))
    graph = database.read(lambda conn: graphs.read(conn, root.id, deepest=5, most=100))
    assert [(stack.id, stack.parent_resource_id) for stack in graph.stacks] == [
        (root.id, None),
        (child.id, 2),
    ]
    assert [item.id for item in graph.resources] == [1, 2, 3, 4, 5, 6, 7]
    assert {task.resource_id: (task.state, task.since) for task in graph.tasks} == {
        1: (TaskState.RUNNING, NOW),
        2: (TaskState.PARKED, None),
        4: (TaskState.READY, NOW),
        7: (TaskState.HELD, None),
    }
    flat = database.read(lambda conn: graphs.read(conn, root.id, deepest=0, most=3))
    assert ([item.id for item in flat.resources], flat.is_cut) == ([1, 2, 3], True)
    assert [stack.id for stack in flat.stacks] == [root.id, child.id], "whose name is known, not its contents"


def test_the_last_event_of_a_tree_shows_changes_of_nested_stacks(database: Database) -> None:
    root = stored(database, a_stack())
    child = stored(database, a_stack(live_name=None, parent_id=root.id, root_id=root.id, depth=1))

    def last() -> int:
        return database.read(lambda conn: graphs.last_event(conn, root.id))

    assert last() == 0
    event = Event(child.id, "a", "t", None, "CREATE", "COMPLETE", "", NOW)
    database.write(lambda conn: events.add_many(conn, [event]))
    assert last() > 0


@pytest.mark.parametrize("upgraded", ["sqlite"], indirect=True, scope="module")
def test_a_graph_of_10000_resources_takes_a_moment(database: Database) -> None:
    """And a body that is no more than some megabytes."""
    stack = a_stack(status=Status.COMPLETE)
    rows = [
        a_resource(stack.id, n, f"resource-{n}", requires=[ResourceId(n - 1)] if n > 1 else [])
        for n in range(1, MANY + 1)
    ]
    database.write(lambda conn: (stacks.insert(conn, stack), resources.insert_many(conn, rows)))
    bodies: list[bytes] = []

    def read() -> None:
        graph = database.read(lambda conn: graphs.read(conn, stack.id, deepest=0, most=MANY))
        bodies.append(SharedGraph(stack, graph, ()).without_hosts)

    before = pace.measure()
    took = pace.measure(read)
    graph = json.loads(bodies[0])["graph"]
    assert (len(graph["resources"]), graph["more_resources"]) == (MANY, False)
    assert len(bodies[0]) < 5_000_000
    assert took.processor * pace.REFERENCE < 3 * before.worse(pace.measure()).processor


def test_stacks_are_counted_by_action_and_status(database: Database) -> None:
    for fields in (
        {},
        {"status": Status.COMPLETE},
        {"status": Status.COMPLETE, "action": "UPDATE"},
        {"project_id": "other"},
        {"live_name": None, "parent_id": StackId("p")},
        {"live_name": None, "deleted_at": NOW},
    ):
        stored(database, a_stack(**fields))

    def counted(project: str | None) -> dict[tuple[str, str], int]:
        return database.read(lambda conn: stack_list.count_by_state(conn, StackQuery(project)))

    project_counts = {("CREATE", "IN_PROGRESS"): 1, ("CREATE", "COMPLETE"): 1, ("UPDATE", "COMPLETE"): 1}
    assert counted("tenant") == project_counts
    assert counted(None) == {**project_counts, ("CREATE", "IN_PROGRESS"): 2}


def test_stuck_stacks_have_all_their_causes(database: Database) -> None:
    late = NOW - overview.LATE - 1
    stored(database, a_stack(name="well", deadline_at=NOW + 60), a_task(a_stack(), 1, TaskState.DONE))
    busy = a_stack(name="busy", deadline_at=late)
    stored(database, busy, a_task(busy, 2, TaskState.READY, due_at=late - 5))
    held = stored(database, a_stack(name="held", remaining=5.0))
    ended = stored(database, a_stack(name="ended", status=Status.FAILED, rollback_at=late))
    hung = a_stack(name="hung")
    stored(
        database,
        hung,
        a_task(hung, 3, TaskState.RUNNING, member=A.member, claimed_at=NOW - 9, stop_by=NOW - 1),
    )
    lost = a_stack(name="lost")
    lost_member = MemberId("gone/1")
    stored(
        database, lost, a_task(lost, 4, TaskState.RUNNING, member=lost_member, claimed_at=NOW - 5, due_at=NOW)
    )

    def stuck(alive: set[str] | None) -> list[tuple[str, set[str], float | None]]:
        rows = database.read(lambda conn: overview.stuck_stacks(conn, now=NOW, alive=alive, limit=10))
        return [(row.name, set(row.causes), row.since) for row in rows]

    expected = [
        ("busy", {"timeout", "overdue"}, late - 5),
        ("ended", {"rollback"}, late),
        ("hung", {"cancel"}, NOW - 9),
        ("lost", {"orphan"}, NOW - 5),
        ("held", {"held"}, None),
    ]
    assert stuck({A.member}) == expected
    assert stuck(None) == [row for row in expected if row[0] != "lost"]
    assert {ended.project_id, held.project_id} == {"tenant"}


def test_the_claims_of_a_conductor_are_those_of_all_its_incarnations(database: Database) -> None:
    stack = a_stack()
    stored(
        database,
        stack,
        a_task(stack, 1, TaskState.RUNNING, member=MemberId("a_1/x"), claimed_at=NOW),
        a_task(stack, 2, TaskState.CANCELLED, member=MemberId("a_1/old"), claimed_at=NOW - 5),
        a_task(stack, 3, TaskState.RUNNING, member=MemberId("ab1/x"), claimed_at=NOW),
        a_task(stack, 4, TaskState.READY),
    )
    claims = database.read(lambda conn: overview.claims_of(conn, "a_1", limit=10))
    assert [(claim.id, claim.resource, claim.project_id) for claim in claims] == [
        (2, "r2", "tenant"),
        (1, "r1", "tenant"),
    ]
