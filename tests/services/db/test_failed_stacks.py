"""Actions that are ended before their work is done: which rows say so, and which stay as they are."""

import typing
from collections.abc import Sequence
from dataclasses import replace

import pytest
import sqlalchemy as sa
from services.db.rows import (
    NOW,
    Graph,
    a_snapshot,
    a_stack,
    claim_all,
    new_id,
    on,
    stack_of,
    store_graph,
    store_graphs,
    task,
    traversal_of,
)
from stoker.db import events, snapshots, stacks
from stoker.db.engine import Database
from stoker.db.events import EventQuery
from stoker.db.ids import TaskId
from stoker.db.rows import Stack
from stoker.db.schema import tables
from stoker.db.stacks import DueStack
from stoker.db.states import Status, TaskState, TraversalState
from stoker.db.work import stack_transitions
from stoker.db.work.claim import Claim
from stoker.engine import cancel
from stoker.engine.cancel import TimedOutStacks

pytestmark = [on("sqlite"), pytest.mark.usefixtures("bystander")]
GRACE = 30.0


def late_stack(**fields: typing.Any) -> Stack:
    """A stack whose time is over, and whose user wants a rollback."""
    return a_stack(deadline_at=NOW - 1, disable_rollback=False, **fields)


def time_out(database: Database, graphs: Sequence[Graph], now: float = NOW) -> TimedOutStacks:
    due = [DueStack(graph.stack.id, graph.stack.shard, graph.traversal, NOW - 1) for graph in graphs]
    return database.write(lambda conn: cancel.time_out_all(conn, due, by="a", now=now, grace=GRACE))


def cancel_as(database: Database, seen: Stack) -> TimedOutStacks | None:
    return database.write(lambda conn: cancel.cancel_stack(conn, seen, "Enough", now=NOW, grace=GRACE))


def unreadable(database: Database, task_id: TaskId) -> TimedOutStacks:
    return database.write(
        lambda conn: cancel.fail_unreadable(conn, task_id, "no JSON", by="a", now=NOW, grace=GRACE)
    )


def shown(database: Database, stack: Stack) -> tuple[str, Status, str]:
    """The state of a stack, as users see it."""
    current = stack_of(database, stack.id)
    return current.action, current.status, current.reason


def supersede(database: Database, graph: Graph) -> None:
    def begin(conn: sa.Connection) -> None:
        stack = stacks.lock(conn, graph.stack.id)
        assert stack_transitions.begin(conn, stack, new_id(), action="UPDATE")

    database.write(begin)


def check_stopped(database: Database, claim: Claim) -> None:
    """Check that a running task is asked to stop within the grace."""
    stored_task = task(database, claim.task.id)
    assert (stored_task.state, stored_task.stop_by) == (TaskState.RUNNING, NOW + GRACE)


def test_stacks_that_time_out_together_each_say_which_action_did(database: Database) -> None:
    actions = ("CREATE", "UPDATE")
    graphs = store_graphs(
        database, {"run": [], "wait": ["run"]}, [late_stack(action=action) for action in actions]
    )
    claims = [claim for graph in graphs for claim in claim_all(database, [graph.tasks["run"]])]
    ended = time_out(database, graphs)
    assert sorted(ended.stacks) == sorted(graph.stack.id for graph in graphs)
    assert sorted(ended.running) == sorted(graph.traversal for graph in graphs)
    for claim, graph, action in zip(claims, graphs, actions, strict=True):
        why = f"{action.title()} timed out"
        query = EventQuery(graph.stack.id, resource_name=graph.stack.name)
        entries = database.read(lambda conn: events.list_events(conn, query))  # noqa: B023
        texts = [(entry.action, entry.status, entry.reason) for entry, _ in entries]
        begun = f"Stack ROLLBACK started: {why}"
        assert texts == [(action, "FAILED", why), ("ROLLBACK", "IN_PROGRESS", begun)]
        assert shown(database, graph.stack) == ("ROLLBACK", Status.IN_PROGRESS, begun)
        assert traversal_of(database, graph.number).state == TraversalState.CANCELLED
        assert task(database, graph.tasks["wait"]).state == TaskState.CANCELLED
        check_stopped(database, claim)


def test_a_stack_with_a_new_action_does_not_time_out(database: Database) -> None:
    graph, other = store_graphs(database, {"run": []}, [late_stack(), late_stack()])
    supersede(database, graph)
    assert time_out(database, [graph], NOW - 2) == TimedOutStacks()
    assert time_out(database, [graph, other]).stacks == [other.stack.id]
    assert stack_of(database, graph.stack.id).status == Status.IN_PROGRESS


def test_who_cancels_wants_no_rollback_and_the_action_that_they_have_seen(database: Database) -> None:
    graph = store_graph(database, {"run": []}, stack=late_stack())
    [claim] = claim_all(database, graph.ids)
    assert cancel_as(database, replace(graph.stack, traversal=new_id())) is None
    assert shown(database, graph.stack)[:2] == ("CREATE", Status.IN_PROGRESS)
    ended = cancel_as(database, graph.stack)
    assert ended is not None
    assert (ended.stacks, ended.running) == ([graph.stack.id], [graph.traversal])
    assert shown(database, graph.stack) == ("CREATE", Status.FAILED, "Enough")
    check_stopped(database, claim)
    assert cancel_as(database, graph.stack) is None, "it has ended"


def test_a_task_that_cannot_be_read_ends_its_current_action_without_a_rollback(database: Database) -> None:
    graph = store_graph(database, {"run": [], "ready": []}, stack=late_stack())
    [claim] = claim_all(database, [graph.tasks["run"]])
    ended = unreadable(database, claim.task.id)
    assert (ended.stacks, ended.running) == ([graph.stack.id], [graph.traversal])
    why = f"Task {claim.task.id} cannot be read: no JSON"
    assert shown(database, graph.stack) == ("CREATE", Status.FAILED, why)
    states = [task(database, each).state for each in graph.ids]
    assert states == [TaskState.CANCELLED, TaskState.CANCELLED]
    assert unreadable(database, claim.task.id) == TimedOutStacks(), "the task has ended"


def test_a_task_of_a_superseded_action_that_cannot_be_read_ends_alone(database: Database) -> None:
    graph = store_graph(database, {"run": [], "ready": []}, stack=late_stack())
    [claim] = claim_all(database, [graph.tasks["run"]])
    supersede(database, graph)
    assert unreadable(database, claim.task.id) == TimedOutStacks()
    assert shown(database, graph.stack)[:2] == ("UPDATE", Status.IN_PROGRESS)
    assert task(database, claim.task.id).state == TaskState.CANCELLED


def test_a_task_without_a_stack_that_cannot_be_read_ends(database: Database) -> None:
    graph = store_graph(database, {"run": []})
    s = tables.stack
    database.write(lambda conn: conn.execute(sa.delete(s).where(s.c.id == graph.stack.id)))
    assert unreadable(database, graph.tasks["run"]) == TimedOutStacks()
    assert task(database, graph.tasks["run"]).state == TaskState.CANCELLED


def test_nested_actions_end_with_their_parents_without_rollbacks_of_their_own(database: Database) -> None:
    parent = store_graph(database, {"run": []})
    nested = late_stack(
        parent_id=parent.stack.id,
        root_id=parent.stack.id,
        live_name=None,
        parent_resource_id=parent.resources["run"],
    )
    child, ended = store_graphs(
        database, {"run": []}, [nested, replace(nested, id=new_id(), status=Status.COMPLETE)]
    )
    [claim] = claim_all(database, child.ids)
    running = database.write(lambda conn: cancel.cancel_nested(conn, [parent.stack.id], now=NOW, grace=GRACE))
    assert running == [child.traversal]
    assert shown(database, child.stack) == (
        *("CREATE", Status.FAILED),
        "Stopped with the stack that it is part of",
    )
    assert shown(database, ended.stack)[1] == Status.COMPLETE
    check_stopped(database, claim)
    assert database.write(lambda conn: cancel.cancel_nested(conn, [child.stack.id], now=NOW, grace=0)) == []


def test_a_snapshot_fails_with_the_action_that_makes_it(database: Database) -> None:
    graphs = store_graphs(database, {"run": []}, [late_stack(action="SNAPSHOT"), late_stack(action="UPDATE")])
    making = [
        a_snapshot(graph.stack, status=Status.IN_PROGRESS, traversal=graph.traversal) for graph in graphs[:1]
    ]
    snapshot = a_snapshot(graphs[1].stack)
    database.write(lambda conn: snapshots.insert_many(conn, graphs[0].stack, making))
    database.write(lambda conn: snapshots.insert(conn, graphs[1].stack, snapshot))
    time_out(database, graphs)
    stored = [
        database.read(lambda conn: snapshots.get(conn, each.stack_id, each.id))  # noqa: B023
        for each in (*making, snapshot)
    ]
    assert [(each.status, each.reason) for each in stored] == [
        (Status.FAILED, "Snapshot timed out"),
        (Status.COMPLETE, ""),
    ]
