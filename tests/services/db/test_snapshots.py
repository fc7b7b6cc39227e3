"""Rows of snapshots: what their traversals' ends make of them, and what they hold on to."""

from dataclasses import asdict

import pytest
import sqlalchemy as sa
from services.db.rows import (
    NOW,
    A,
    a_resource,
    a_snapshot,
    a_stack,
    new_id,
    set_traversal,
    step,
    store,
    store_graph,
    traversal_of,
)
from stoker.db import content, resources, snapshots
from stoker.db.engine import Database
from stoker.db.rows import FailureCause, Outcome, Snapshot, Stack
from stoker.db.schema import tables
from stoker.db.states import Status, TaskState, TraversalState
from stoker.db.work import endings

pytestmark = pytest.mark.usefixtures("bystander")


def stored_snapshot(database: Database, stack: Stack, **fields: object) -> Snapshot:
    snapshot = a_snapshot(stack, **fields)
    database.write(lambda conn: snapshots.insert(conn, stack, snapshot))
    return snapshot


def now(database: Database, stack: Stack) -> list[tuple[str, str, str]]:
    stored = database.read(lambda conn: snapshots.of_stack(conn, stack.id))
    return [(snapshot.action, snapshot.status, snapshot.reason) for snapshot in stored]


def test_a_snapshot_ends_with_its_traversal_and_only_once(database: Database) -> None:
    stack = store(database, a_stack())
    later = stored_snapshot(database, stack, status=Status.IN_PROGRESS, created_at=NOW - 1)
    snapshot = stored_snapshot(database, stack, status=Status.IN_PROGRESS)
    database.write(lambda conn: snapshots.end(conn, [snapshot.traversal], reason="well", failed=False))
    database.write(lambda conn: snapshots.end(conn, [snapshot.traversal], reason="late", failed=True))
    assert now(database, stack) == [("CREATE", "IN_PROGRESS", ""), ("CREATE", "COMPLETE", "well")]
    database.write(lambda conn: snapshots.end(conn, [later.traversal], reason="why", failed=True))
    assert now(database, stack)[0] == ("CREATE", "FAILED", "why")


def test_of_two_deletions_of_one_snapshot_one_begins(database: Database) -> None:
    stack = store(database, a_stack())
    snapshot = stored_snapshot(database, stack)
    begun = database.write(lambda conn: snapshots.begin_deletion(conn, snapshot, new_id(), "begins"))
    assert begun is not None
    assert (begun.action, begun.status) == ("DELETE", Status.IN_PROGRESS)
    assert database.write(lambda conn: snapshots.begin_deletion(conn, snapshot, new_id(), "again")) is None
    assert now(database, stack) == [("DELETE", "IN_PROGRESS", "begins")]
    database.write(lambda conn: snapshots.end(conn, [begun.traversal], reason="", failed=False))
    assert now(database, stack) == []


def test_a_stacks_deletion_takes_all_its_snapshots_over(database: Database) -> None:
    stack = store(database, a_stack())
    other_stack = store(database, a_stack())
    stored_snapshot(database, other_stack)
    stored_snapshot(database, stack)
    alone = stored_snapshot(database, stack, action="DELETE", status=Status.IN_PROGRESS)
    traversal = new_id()
    taken_over = database.write(lambda conn: snapshots.take_over(conn, stack.id, traversal))
    assert taken_over == [alone.traversal]
    assert now(database, stack) == [("DELETE", "IN_PROGRESS", "Stack DELETE started")] * 2
    assert now(database, other_stack) == [("CREATE", "COMPLETE", "")]
    database.write(lambda conn: snapshots.end(conn, [alone.traversal], reason="", failed=False))
    assert len(now(database, stack)) == 2, "it was superseded"
    database.write(lambda conn: snapshots.end(conn, [traversal], reason="why", failed=True))
    assert now(database, stack) == [("DELETE", "FAILED", "why")] * 2


def test_what_a_snapshot_holds_is_not_swept_away_until_it_is_gone(database: Database) -> None:
    stack = store(database, a_stack())
    later = NOW + 10 * content.KEEP_UNUSED

    def put(conn: sa.Connection) -> list[str]:
        return [content.put(conn, {"only": [new_id()]}, NOW) for _ in range(3)]

    template, environment, files = database.write(put)
    goal = {"template": template, "environment": environment, "files": files, "parameters": {}}
    held = stored_snapshot(database, stack, goal=goal, status=Status.IN_PROGRESS, action="DELETE")
    database.write(lambda conn: content.purge_unused(conn, later, limit=1000))
    assert len(database.read(lambda conn: content.get_many(conn, held.contents))) == 3
    database.write(lambda conn: snapshots.end(conn, [held.traversal], reason="", failed=False))
    database.write(lambda conn: content.purge_unused(conn, later, limit=1000))
    assert database.read(lambda conn: content.get_many(conn, held.contents)) == {}


@pytest.mark.parametrize("changes", [{"data": {}}, {}], ids=["both", "the copy alone"])
def test_a_copy_is_no_resource_of_its_stack_and_is_written_with_its_resource(
    database: Database, changes: dict[str, object]
) -> None:
    graph = store_graph(database, {"one": []})
    snapshot = stored_snapshot(database, graph.stack, status=Status.IN_PROGRESS)
    copy = a_resource(graph.stack.id, 10_000_000 + graph.resources["one"], "one", snapshot_id=snapshot.id)
    database.write(lambda conn: resources.insert_many(conn, [copy]))
    step(database, [], hinted=[graph.tasks["one"]])
    columns = {"id": copy.id, "data": {"picture": 1}, "status": "COMPLETE"}
    done = Outcome(graph.tasks["one"], 1, TaskState.DONE, graph.resources["one"], changes, copy=columns)
    step(database, [done])
    [kept_one] = database.read(lambda conn: resources.copies(conn, graph.stack.id, snapshot.id))
    assert (kept_one.data, kept_one.status) == ({"picture": 1}, "COMPLETE")
    [current] = database.read(lambda conn: resources.of_stack(conn, graph.stack.id))
    assert (current.id, current.data or {}) == (graph.resources["one"], {})
    row = database.read(lambda conn: resources.by_name(conn, graph.stack.id, "one"))
    assert row.id == current.id
    tree = database.read(lambda conn: resources.of_tree(conn, graph.stack, 0))
    assert [row.id for row in tree] == [current.id]


def test_the_end_of_a_stack_closes_no_traversal_that_deletes_a_snapshot(database: Database) -> None:
    graph = store_graph(database, {"one": []})
    deletion = stored_snapshot(database, graph.stack, action="DELETE", status=Status.IN_PROGRESS)

    def move(conn: sa.Connection) -> None:
        for t in (tables.task, tables.traversal):
            conn.execute(
                sa.update(t).where(t.c.traversal == graph.traversal).values(traversal=deletion.traversal)
            )
        ending = endings.StackEnd(graph.stack.id, graph.traversal)
        endings.end_stacks(conn, [ending], by=A.host, now=NOW)

    database.write(move)
    assert traversal_of(database, graph.number).state == TraversalState.RUNNING


@pytest.mark.parametrize(
    ("failure", "left"), [(None, []), ("why", [("DELETE", "FAILED", "why")])], ids=["well", "badly"]
)
def test_the_deletion_of_a_single_snapshot_ends_beside_its_stack(
    database: Database, failure: str | None, left: list[tuple[str, str, str]]
) -> None:
    graph = store_graph(database, {"one": []})
    snapshot = stored_snapshot(database, graph.stack, action="DELETE", status=Status.IN_PROGRESS)
    cause = None if failure is None else asdict(FailureCause(failure))
    columns = {"open_tasks": 0, "failure": failure, "failure_cause": cause}
    set_traversal(database, graph.number, traversal=snapshot.traversal, **columns)
    ended = database.write(lambda conn: endings.finish(conn, {graph.number: 0}, by=None, now=NOW))
    assert ended.stacks == {}
    assert now(database, graph.stack) == left


def test_the_traversal_of_a_stack_that_is_gone_ends_nothing(database: Database) -> None:
    end = endings.StackEnd(new_id(), new_id())
    assert database.write(lambda conn: endings.end_stacks(conn, [end], by=None, now=NOW)) == endings.Ended()
