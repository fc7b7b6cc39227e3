"""The snapshot, event sinks and deadline of a stack, as they end with its action."""

import pytest
import sqlalchemy as sa
from services.db.rows import (
    NOW,
    Graph,
    a_snapshot,
    a_stack,
    claim_all,
    new_id,
    outcome,
    set_task,
    set_traversal,
    stack_of,
    step,
    store,
    store_graph,
    task,
)
from stoker.db import snapshots, stacks
from stoker.db.engine import Database
from stoker.db.ids import WaitsOn
from stoker.db.rows import Stack
from stoker.db.schema import tables
from stoker.db.states import Standing, Status, TaskState
from stoker.db.work import endings
from stoker.db.work.endings import StackEnd
from stoker.db.work.stack_transitions import Failure

pytestmark = pytest.mark.usefixtures("bystander")
FAILURE = Failure("why", rolled_back=False)


def end(database: Database, stack: Stack, failure: Failure | None) -> None:
    ending = StackEnd(stack.id, stack.traversal, failure)
    database.write(lambda conn: endings.end_stacks(conn, [ending], by=None, now=NOW))


@pytest.mark.parametrize(
    ("failure", "shown"),
    [(None, (Status.COMPLETE, "Stack SNAPSHOT completed successfully")), (FAILURE, (Status.FAILED, "why"))],
    ids=["well", "badly"],
)
def test_a_snapshot_ends_as_the_action_that_makes_it(
    database: Database, failure: Failure | None, shown: tuple[Status, str]
) -> None:
    stack = store(database, a_stack(action="SNAPSHOT"))
    snapshot = a_snapshot(stack, status=Status.IN_PROGRESS, traversal=stack.traversal)
    database.write(lambda conn: snapshots.insert(conn, stack, snapshot))
    end(database, stack, failure)
    stored = database.read(lambda conn: snapshots.get(conn, stack.id, snapshot.id))
    assert (stored.status, stored.reason) == shown


@pytest.mark.parametrize(
    ("action", "failure", "is_open"),
    [("DELETE", None, False), ("DELETE", FAILURE, True), ("UPDATE", None, True)],
)
def test_event_sinks_are_closed_once_their_stack_is_deleted(
    database: Database, action: str, failure: Failure | None, is_open: bool
) -> None:
    stack = store(database, a_stack(action=action, has_sinks=True))
    database.write(lambda conn: stacks.set_event_sinks(conn, stack, [("a", 60)], NOW))
    end(database, stack, failure)
    k = tables.event_sink.c
    closed_at = database.read(lambda conn: conn.execute(sa.select(k.closed_at)).scalar_one())
    assert (closed_at is None) is is_open


def remaining(database: Database, graph: Graph) -> float | None:
    return stack_of(database, graph.stack.id).remaining


def test_a_deadline_pauses_with_that_of_the_nested_stack_for_which_the_last_task_waits(
    database: Database,
) -> None:
    parent = store_graph(database, {"waits": []}, stack=a_stack(deadline_at=NOW + 100))
    paused = store(database, a_stack(remaining=50.0, parent_id=parent.stack.id))
    [claim] = claim_all(database, parent.ids)
    step(database, [outcome(claim, TaskState.PARKED, waits_on=WaitsOn.stack(paused.id), due_at=NOW + 9)])
    assert remaining(database, parent) == 100
    assert task(database, claim.task.id).due_at is None


def test_a_deadline_pauses_when_the_last_task_of_the_former_traversal_ends(database: Database) -> None:
    needs: dict[str, list[str]] = {"former": [], "held": [], "next": ["held"]}
    graph = store_graph(database, needs, stack=a_stack(deadline_at=NOW + 100))
    [claim] = claim_all(database, [graph.tasks["former"]])
    former = {"traversal": new_id(), "finish_id": None, "successors": [graph.tasks["next"]]}
    set_task(database, claim.task.id, standing=Standing.SUPERSEDED, **former)
    set_task(database, graph.tasks["held"], state=TaskState.HELD, hook="pre-create", due_at=None)
    set_task(database, graph.tasks["next"], pending=2)
    set_traversal(database, graph.number, open_tasks=2, held_tasks=1)
    step(database, [outcome(claim)])
    assert remaining(database, graph) == 100
