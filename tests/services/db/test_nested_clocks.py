"""The clocks of a tree of stacks, on each server, also when several of them stop or continue at once."""

import pytest
import sqlalchemy as sa
from services.db.rows import (
    NOW,
    B,
    Graph,
    a_stack,
    claim_all,
    on,
    outcome,
    raised,
    set_task,
    set_traversal,
    stack_of,
    step,
    store_graph,
    task,
    together,
    traversal_of,
)
from services.db.servers import SERVERS
from stoker.db.engine import Database
from stoker.db.ids import TraversalNumber, WaitsOn
from stoker.db.schema import tables
from stoker.db.states import TaskState
from stoker.db.work import clear_breakpoints, countdown, due_tasks

pytestmark = pytest.mark.usefixtures("bystander")


def tree_of(database: Database) -> tuple[Graph, list[Graph]]:
    """A parent that waits for two children, each with a breakpoint on `b` behind `a`; all have 100 s.

    The parent's resources have 1,000 s.
    """
    parent = store_graph(database, {"x": [], "y": []}, stack=a_stack(deadline_at=NOW + 100), timeout=1000.0)
    children = []
    for name in ("x", "y"):
        below = a_stack(
            deadline_at=NOW + 100,
            live_name=None,
            parent_id=parent.stack.id,
            parent_resource_id=parent.resources[name],
            root_id=parent.stack.id,
            depth=1,
        )
        child = store_graph(database, {"a": [], "b": ["a"]}, stack=below)
        set_task(database, child.tasks["b"], hooks={"pre-create": {}})
        children.append(child)
        [claim] = claim_all(database, [parent.tasks[name]])
        waits = outcome(claim, TaskState.PARKED, waits_on=WaitsOn.stack(child.stack.id), due_at=NOW + 300)
        step(database, [waits], slots=0)
    return parent, children


def stop(database: Database, child: Graph, *, now: float) -> None:
    """The child's running tasks end, and its clock is paused at its breakpoint."""
    [claim] = claim_all(database, [child.tasks["a"]], who=B, now=now)
    step(database, [outcome(claim)], who=B, now=now, slots=0)


def clear(database: Database, child: Graph, *, now: float) -> None:
    ids = [child.tasks["b"]]
    done = database.write(lambda conn: clear_breakpoints.clear(conn, ids, stepping=None, by="x", now=now))
    assert done is not None


def is_paused(database: Database, graph: Graph) -> bool:
    stack = stack_of(database, graph.stack.id)
    assert (stack.remaining is None) == (stack.deadline_at is not None)
    return stack.remaining is not None


def test_a_parent_pauses_when_all_its_children_do_and_continues_with_the_first(database: Database) -> None:
    parent, (first, second) = tree_of(database)
    stop(database, first, now=NOW + 10)
    assert (is_paused(database, first), is_paused(database, parent)) == (True, False)
    waiting = task(database, parent.tasks["x"])
    assert (waiting.due_at, waiting.expires_at) == (None, None)
    stop(database, second, now=NOW + 30)
    assert stack_of(database, parent.stack.id).remaining == 70
    clear(database, first, now=NOW + 5000)
    assert stack_of(database, parent.stack.id).deadline_at == NOW + 5070
    assert stack_of(database, first.stack.id).deadline_at == NOW + 5090
    assert is_paused(database, second)
    waiting = task(database, parent.tasks["x"])
    assert (waiting.due_at, waiting.expires_at) == (NOW + 5300, NOW + 6000)
    assert task(database, parent.tasks["y"]).due_at is None


@on(*SERVERS)
def test_of_two_children_that_stop_at_once_the_second_stops_the_parent(database: Database) -> None:
    for _ in range(3):
        parent, (first, second) = tree_of(database)
        results = together(
            lambda child=first: stop(database, child, now=NOW + 10),  # type: ignore[misc]
            lambda child=second: stop(database, child, now=NOW + 10),  # type: ignore[misc]
        )
        assert raised(results) == []
        assert [is_paused(database, graph) for graph in (first, second, parent)] == [True] * 3


@pytest.mark.parametrize("turn", range(3))
@on(*SERVERS)
def test_of_one_that_continues_and_one_that_stops_at_once_the_parent_continues(
    database: Database, turn: int
) -> None:
    parent, (first, second) = tree_of(database)
    stop(database, first, now=NOW + 10)
    results = together(
        lambda: clear(database, first, now=NOW + 20), lambda: stop(database, second, now=NOW + 20)
    )
    assert raised(results) == []
    assert [is_paused(database, graph) for graph in (first, second, parent)] == [False, True, False]


@on("sqlite")
def test_a_parents_clock_runs_on_where_a_task_is_claimed_as_it_begins_to_wait(database: Database) -> None:
    needs: dict[str, list[str]] = {"first": [], "waits": [], "next": ["first"]}
    parent = store_graph(database, needs, stack=a_stack(deadline_at=NOW + 100))
    paused = store_graph(database, {"held": []}, stack=a_stack(remaining=50.0, parent_id=parent.stack.id))
    first, waits = claim_all(database, parent.ids[:2])
    waits_on = WaitsOn.stack(paused.stack.id)
    done = step(database, [outcome(first), outcome(waits, TaskState.PARKED, waits_on=waits_on)])
    assert [claim.task.id for claim in done.claims] == [parent.tasks["next"]]
    assert not is_paused(database, parent)


@on("sqlite")
def test_a_parents_clock_runs_on_where_a_child_continues_before_its_row_is_locked(database: Database) -> None:
    parent, (first, second) = tree_of(database)
    stop(database, first, now=NOW + 10)
    s = tables.stack
    continues = sa.update(s).where(s.c.id == first.stack.id).values(remaining=None, deadline_at=NOW + 200)

    def look(
        conn: sa.Connection, statement: sa.ClauseElement, rows: object, parameters: object, options: object
    ) -> None:
        is_lock = isinstance(statement, sa.Select) and statement._for_update_arg is not None
        if is_lock and [column.key for column in statement.selected_columns] == ["remaining"]:
            conn.execute(continues)

    sa.event.listen(database.engine, "before_execute", look)
    try:
        stop(database, second, now=NOW + 30)
    finally:
        sa.event.remove(database.engine, "before_execute", look)
    assert [is_paused(database, graph) for graph in (first, second, parent)] == [False, True, False]


@on("sqlite")
def test_no_timeout_runs_while_a_nested_stack_is_paused(database: Database) -> None:
    """A group that scales waits for its nested stack, too, and no traversal counts that task."""
    graph = store_graph(database, {"counted": [], "scales": []}, timeout=60.0)
    set_task(database, graph.tasks["scales"], finish_id=None)
    claim_all(database, graph.ids)
    database.write(lambda conn: countdown.pause_parents(conn, graph.ids, now=NOW))
    for task_id in graph.ids:
        stored = task(database, task_id)
        assert (stored.due_at, stored.expires_at) == (None, None)
    assert traversal_of(database, graph.number).waits_for_paused_children


@on("sqlite")
def test_the_clock_of_a_traversal_that_was_purged_is_left_alone(database: Database) -> None:
    database.write(lambda conn: countdown.pause_deadline(conn, TraversalNumber(9), now=NOW))


@on("sqlite")
def test_a_clock_is_left_alone_by_a_traversal_that_was_superseded(database: Database) -> None:
    running = store_graph(database, {"held": []}, stack=a_stack(deadline_at=NOW + 100))
    paused = store_graph(database, {"held": []}, stack=a_stack(remaining=50.0))
    for graph in (running, paused):
        set_task(database, graph.tasks["held"], state=TaskState.HELD, hook="pre-create")
        set_traversal(database, graph.number, held_tasks=1)
        newer = sa.update(tables.stack).where(tables.stack.c.id == graph.stack.id).values(traversal="newer")
        database.write(lambda conn, newer=newer: conn.execute(newer))  # type: ignore[misc]

    def pause_and_resume(conn: sa.Connection) -> None:
        countdown.pause_deadline(conn, running.number, now=NOW)
        countdown.resume_deadline(conn, paused.stack.id, paused.traversal, now=NOW)

    database.write(pause_and_resume)
    assert [is_paused(database, graph) for graph in (running, paused)] == [False, True]


@on("sqlite")
def test_a_parents_clock_continues_when_its_task_is_woken(database: Database) -> None:
    parent, (first, second) = tree_of(database)
    for child in (first, second):
        stop(database, child, now=NOW + 10)
    database.write(lambda conn: due_tasks.wake(conn, WaitsOn.stack(first.stack.id), now=NOW + 20))
    assert [is_paused(database, graph) for graph in (first, second, parent)] == [True, True, False]
