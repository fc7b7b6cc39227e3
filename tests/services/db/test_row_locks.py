"""The rows that each operation locks, in their order.  No result shows it where few transactions meet.

All go the same way: rows that tasks wait for, own tasks, resources, successors, traversals, stacks.
"""

import typing
from collections.abc import Callable, Mapping, Sequence

import pytest
import sqlalchemy as sa
from harness.lock_order import locks_taken
from services.db.rows import (
    NOW,
    A,
    Graph,
    a_stack,
    claim_now,
    on,
    set_task,
    set_traversal,
    store_graph,
)
from stoker.db import resources, stacks, traversals
from stoker.db.engine import Database
from stoker.db.ids import ContentId, WaitsOn
from stoker.db.rows import OrphanedCreate, Outcome, Task
from stoker.db.schema import tables
from stoker.db.states import Standing, TaskKind, TaskState
from stoker.db.work import (
    cancel,
    claim,
    clear_breakpoints,
    commit,
    countdown,
    due_tasks,
    losses,
    member_claims,
    orphans,
    tasks,
)

pytestmark = [on("sqlite"), pytest.mark.usefixtures("bystander")]

Act = Callable[[sa.Connection, Graph, Graph], object]
"""A transaction on a stack, one of whose tasks waits for a nested stack, and on that one."""
NEEDS: dict[str, list[str]] = {"runs": [], "held": [], "parked": [], "ready": [], "waits": ["runs"]}


def stored(database: Database) -> tuple[Graph, Graph]:
    """A stack with a task in each state, and a nested stack whose deadline is paused."""
    graph = store_graph(database, NEEDS, stack=a_stack(deadline_at=NOW + 100))
    nested = store_graph(database, {"held": []}, stack=a_stack(remaining=50.0, parent_id=graph.stack.id))
    ids = graph.tasks
    set_task(database, ids["runs"], state=TaskState.RUNNING, member=A.member, attempt=1)
    set_task(database, ids["held"], state=TaskState.HELD, hook="pre-create", due_at=NOW)
    waits_on = str(WaitsOn.stack(nested.stack.id))
    set_task(database, ids["parked"], state=TaskState.PARKED, attempt=1, waits_on=waits_on)
    set_traversal(database, graph.number, held_tasks=1)
    return graph, nested


def running(conn: sa.Connection, graph: Graph) -> Task:
    row = tasks.get(conn, graph.tasks["runs"])
    assert row is not None
    return row


def exchange(state: TaskState, **fields: typing.Any) -> Act:
    def act(conn: sa.Connection, graph: Graph, nested: Graph) -> object:
        waits_on = WaitsOn.parse(f"resource:{graph.resources['held']}") if state == TaskState.PARKED else None
        result = Outcome(graph.tasks["runs"], 1, state, graph.resources["runs"], waits_on=waits_on, **fields)
        return commit.exchange(conn, [result], [], who=A, now=NOW, slots=0)

    return act


def exchange_and_park(state: TaskState) -> Act:
    """Store the result of a step, and park another task in the same transaction."""

    def act(conn: sa.Connection, graph: Graph, nested: Graph) -> object:
        t = tables.task
        claimed = sa.update(t).where(t.c.id == graph.tasks["ready"])
        conn.execute(claimed.values(state=TaskState.RUNNING, member=A.member, attempt=1))
        results = [
            Outcome(graph.tasks["runs"], 1, state, graph.resources["runs"], due_at=NOW + 9),
            Outcome(graph.tasks["ready"], 1, TaskState.PARKED, graph.resources["ready"], due_at=NOW + 9),
        ]
        return commit.exchange(conn, results, [], who=A, now=NOW, slots=0)

    return act


def park_for_paused(conn: sa.Connection, graph: Graph, nested: Graph) -> object:
    waits_on = WaitsOn.stack(nested.stack.id)
    result = Outcome(graph.tasks["runs"], 1, TaskState.PARKED, graph.resources["runs"], waits_on=waits_on)
    return commit.exchange(conn, [result], [], who=A, now=NOW, slots=0)


def park_for_nested(conn: sa.Connection, graph: Graph, nested: Graph) -> object:
    waits_on = WaitsOn.stack(nested.stack.id)
    result = Outcome(graph.tasks["runs"], 1, TaskState.PARKED, graph.resources["runs"], waits_on=waits_on)
    return commit.lock_awaited(conn, [(waits_on, result)])


def pause(conn: sa.Connection, graph: Graph, nested: Graph) -> None:
    t = tables.task
    ended = sa.update(t).where(t.c.id.in_([graph.tasks["runs"], graph.tasks["ready"]]))
    conn.execute(ended.values(state=TaskState.DONE))
    countdown.pause_deadline(conn, graph.number, now=NOW)


def resolve(conn: sa.Connection, graph: Graph, nested: Graph) -> object:
    product = OrphanedCreate(running(conn, graph), resources.get(conn, graph.resources["runs"]))
    return orphans.resolve(conn, product, "p", now=NOW)


OPERATIONS: dict[str, tuple[Act, list[str]]] = {
    "claim": (
        lambda conn, graph, _: claim_now(conn, graph.ids),
        ["task unless locked", "resource unless locked"],
    ),
    "check a claim": (
        lambda conn, graph, _: claim.lock(conn, running(conn, graph)),
        ["task"],
    ),
    "store an end": (exchange(TaskState.DONE), ["task"]),  # The end itself locks its own task.
    "store a failure": (
        exchange(TaskState.FAILED, reason="no"),
        ["task", "task", "traversal", "task", "task"],
    ),
    "store an end and park another task": (
        exchange_and_park(TaskState.DONE),
        ["task", "task", "traversal", "task"],
    ),
    "release a task and park another one": (exchange_and_park(TaskState.READY), ["task", "traversal"]),
    "park two tasks": (exchange_and_park(TaskState.PARKED), ["task", "traversal shared"]),
    "park for a nested stack that is paused": (park_for_paused, ["stack", "task", "traversal"]),
    "park for a resource": (exchange(TaskState.PARKED), ["resource", "task", "traversal shared"]),
    "park for a nested stack": (park_for_nested, ["stack"]),
    "clear a breakpoint": (
        lambda conn, graph, _: clear_breakpoints.clear(
            conn, [graph.tasks["held"]], stepping=True, by=None, now=NOW
        ),
        ["task", "task", "traversal"],
    ),
    "expire a breakpoint": (
        lambda conn, graph, _: clear_breakpoints.expire(conn, [graph.tasks["held"]], by=None, now=NOW),
        ["task", "task", "traversal"],
    ),
    "cancel": (
        lambda conn, graph, _: cancel.cancel_unstarted(conn, graph.stack.id, graph.traversal, now=NOW),
        ["task"],
    ),
    "supersede": (lambda conn, graph, _: tasks.running_of_stack(conn, graph.stack.id), ["task"]),
    "pause a deadline": (pause, ["stack", "task"]),
    "resume a deadline": (
        lambda conn, _, nested: countdown.resume_deadline(conn, nested.stack.id, nested.traversal, now=NOW),
        ["task"],
    ),
    "release": (
        lambda conn, graph, _: member_claims.release(conn, [(graph.tasks["runs"], 1)], now=NOW),
        ["task"],
    ),
    "ask whether claims hold": (
        lambda conn, graph, _: member_claims.still_claimed(conn, [(graph.tasks["runs"], 1)]),
        ["task"],
    ),
    "forgive a loss": (lambda conn, graph, _: losses.forgive(conn, graph.ids, "a"), ["task"]),
    "resolve an orphan": (resolve, ["task"]),
    "wake": (lambda conn, _, nested: due_tasks.wake(conn, WaitsOn.stack(nested.stack.id), now=NOW), ["task"]),
    "wake what is due": (
        lambda conn, graph, _: due_tasks.wake_due(
            conn, due_tasks.due(conn, NOW + 99, limit=99), now=NOW + 99
        ),
        ["task unless locked"],
    ),
    "repeat hints": (
        lambda conn, graph, _: due_tasks.repeat_hints(conn, due_tasks.due(conn, NOW + 99, limit=99), now=NOW),
        ["task unless locked"],
    ),
    "lock a stack": (lambda conn, graph, _: stacks.lock(conn, graph.stack.id), ["stack"]),
    "lock stacks": (lambda conn, graph, _: stacks.lock_each(conn, [graph.stack.id]), ["stack"]),
    "lock a stack of a signal": (lambda conn, graph, _: stacks.lock_as_late(conn, graph.stack.id), ["stack"]),
    "lock nested stacks": (lambda conn, graph, _: stacks.lock_inside(conn, [graph.stack.id]), ["stack"]),
    "lock stacks that are due": (
        lambda conn, graph, _: stacks.lock_due(conn, [graph.stack.id], NOW),
        ["stack unless locked"],
    ),
    "rename a content": (
        lambda conn, graph, _: stacks.rename_content(conn, graph.stack.id, ContentId("t"), ContentId("u")),
        ["stack"],
    ),
    "lock a traversal": (lambda conn, graph, _: traversals.lock(conn, graph.number), ["traversal"]),
    "ask for failures": (lambda conn, graph, _: traversals.lock_failed(conn, [graph.number]), ["traversal"]),
    "ask for failures elsewhere": (
        lambda conn, graph, _: traversals.lock_failed(conn, [graph.number], [graph.number]),
        ["traversal shared"],
    ),
    "look whether a traversal has ended": (
        lambda conn, graph, _: traversals.count_down_each(conn, {graph.number: 0}, []),
        ["traversal"],
    ),
    "purge a traversal": (
        lambda conn, graph, _: traversals.purge(conn, graph.traversal, again=1.0, has_tasks=lambda: True),
        ["traversal"],
    ),
    "hasten hints": (
        lambda conn, graph, _: due_tasks.hasten_hints(conn, [graph.traversal], now=NOW),
        ["task unless locked"],
    ),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_locks_its_rows_in_this_order(database: Database, name: str) -> None:
    act, expected = OPERATIONS[name]
    graph, nested = stored(database)
    with locks_taken() as taken:
        database.write(lambda conn: act(conn, graph, nested))
    assert taken == expected


def test_a_cancel_locks_the_running_tasks_that_the_traversal_has_carried_over(database: Database) -> None:
    graph, _ = stored(database)
    set_task(database, graph.tasks["runs"], traversal="older", standing=Standing.CARRIED_OVER)
    for name, standing in (("held", Standing.CARRIED_OVER), ("waits", Standing.OWN)):
        set_task(database, graph.tasks[name], traversal="older", standing=standing)
    set_task(database, graph.tasks["waits"], state=TaskState.RUNNING, member=A.member)
    ids: list[int] = []

    def look(
        conn: sa.Connection, cursor: object, statement: str, parameters: Sequence[int], *_: object
    ) -> None:
        if "task.waits_on" in statement:
            ids.extend(parameters)

    def cancel_all(conn: sa.Connection) -> None:
        sa.event.listen(conn, "before_cursor_execute", look)
        cancel.cancel_unstarted(conn, graph.stack.id, graph.traversal, now=NOW)

    database.write(cancel_all)
    assert sorted(ids) == [graph.tasks[name] for name in ("runs", "parked", "ready")]


def test_a_claim_locks_the_resources_whose_action_it_shows(database: Database) -> None:
    graph = store_graph(database, {"shown": [], "undecided": []})
    set_task(database, graph.tasks["undecided"], kind=TaskKind.UPDATE)
    ids: list[int] = []

    def look(
        conn: sa.Connection,
        statement: object,
        rows: object,
        parameters: Mapping[str, int],
        options: object,
    ) -> None:
        if "claimed_ids" in parameters:
            ids.append(parameters["claimed_ids"])

    def claim_both(conn: sa.Connection) -> None:
        sa.event.listen(conn, "before_execute", look)
        assert len(claim_now(conn, graph.ids).claims) == 2

    database.write(claim_both)
    assert ids == [graph.resources["shown"]]
