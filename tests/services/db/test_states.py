"""Every state of a task, and every move that anything in this layer makes or refuses."""

import typing
from collections.abc import Callable
from dataclasses import replace

import pytest
import sqlalchemy as sa
from services.db.rows import NOW, A, Graph, claim_now, new_id, set_task, step, store_graph, task
from stoker.db.engine import Database
from stoker.db.ids import WaitsOn
from stoker.db.rows import Outcome, Task
from stoker.db.schema import tables
from stoker.db.states import FINAL, TRANSITIONS, UNSTARTED, TaskState
from stoker.db.work import (
    breakpoints,
    cancel,
    clear_breakpoints,
    due_tasks,
    member_claims,
    stack_transitions,
    transitions,
)
from stoker.db.work.countdown import FinishedTask
from stoker.db.work.due_tasks import DueTask

pytestmark = pytest.mark.usefixtures("bystander")

W = TaskState.WAITING
READY = TaskState.READY
RUN = TaskState.RUNNING
PARK = TaskState.PARKED
HELD = TaskState.HELD
CANCELLED = TaskState.CANCELLED
Operation = Callable[[Database, Graph], object]
Moves = dict[TaskState, TaskState]


def commit(state: TaskState, **fields: typing.Any) -> Operation:
    def operation(database: Database, graph: Graph) -> object:
        result = Outcome(graph.tasks["one"], 1, state, graph.resources["one"], **fields)
        return step(database, [result], slots=0)

    return operation


def due_now(database: Database, graph: Graph) -> list[DueTask]:
    t = tables.task
    names = [t.c[name] for name in DueTask.__dataclass_fields__]
    query = sa.select(*names).where(t.c.id == graph.tasks["one"])
    return [DueTask(**row) for row in database.read(lambda conn: conn.execute(query).mappings().all())]


def waiting(database: Database, graph: Graph) -> list[Task]:
    row = task(database, graph.tasks["one"])
    return [row] if row.state == W else []


def supersede(database: Database, graph: Graph) -> None:
    def begin_next(conn: sa.Connection) -> None:
        stack_transitions.begin(conn, graph.stack, new_id(), action="UPDATE")
        cancel.cancel_unstarted(conn, graph.stack.id, graph.traversal, now=NOW)

    database.write(begin_next)


def release(database: Database, graph: Graph) -> None:
    database.write(lambda conn: member_claims.release(conn, [(graph.tasks["one"], 1)], now=NOW))


def release_superseded(database: Database, graph: Graph) -> None:
    stack = replace(graph.stack, traversal=graph.traversal)
    database.write(lambda conn: stack_transitions.begin(conn, stack, new_id(), action="UPDATE"))
    release(database, graph)


def reach(database: Database, graph: Graph) -> None:
    """The last predecessor has ended, and there is a breakpoint."""
    task_id = graph.tasks["one"]
    set_task(database, task_id, hooks={"pre-create": {}})
    done = FinishedTask(replace(task(database, task_id), successors=[task_id], finish_id=None))
    set_task(database, task_id, pending=1)
    database.write(lambda conn: breakpoints.advance(conn, [done], now=NOW))
    set_task(database, task_id, hooks=None, pending=0)


def clear(hook: str) -> Operation:
    def operation(database: Database, graph: Graph) -> object:
        task_id = graph.tasks["one"]
        set_task(database, task_id, hook=hook)
        cleared = database.write(
            lambda conn: clear_breakpoints.clear(conn, [task_id], stepping=None, by=None, now=NOW)
        )
        set_task(database, task_id, hook=None)
        return cleared

    return operation


def lapse(hook: str) -> Operation:
    def operation(database: Database, graph: Graph) -> object:
        task_id = graph.tasks["one"]
        set_task(database, task_id, hook=hook, hooks={hook: {"timeout": 1, "then": "fail"}})
        lapsed = database.write(lambda conn: clear_breakpoints.expire(conn, [task_id], by=None, now=NOW))
        set_task(database, task_id, hook=None, hooks=None)
        return lapsed

    return operation


OPERATIONS: dict[str, tuple[Operation, Moves]] = {
    "claim": (lambda database, graph: step(database, [], graph.ids), {READY: RUN}),
    "claim what was counted down": (
        lambda database, graph: database.write(lambda conn: claim_now(conn, [], waiting(database, graph))),
        {W: RUN},
    ),
    "progress": (commit(RUN), {RUN: RUN}),
    "park": (commit(PARK, due_at=NOW + 99), {RUN: PARK}),
    "hold": (commit(HELD, hook="pre-update"), {RUN: HELD}),
    "predecessors done, at a breakpoint": (reach, {W: HELD}),
    "clear": (clear("pre-create"), {HELD: READY}),
    "clear behind the action": (clear("post-create"), {HELD: TaskState.DONE}),
    "end of a breakpoint's time": (lapse("pre-create"), {HELD: CANCELLED}),
    "end of a breakpoint's time behind the action": (lapse("post-create"), {HELD: TaskState.DONE}),
    "put back": (commit(READY), {RUN: READY}),
    "done": (commit(TaskState.DONE), {RUN: TaskState.DONE}),
    "failed": (commit(TaskState.FAILED), {RUN: TaskState.FAILED}),
    "cancelled": (commit(CANCELLED), {RUN: CANCELLED}),
    "release": (release, {RUN: READY}),
    "release superseded": (release_superseded, {RUN: CANCELLED}),
    "supersede": (supersede, dict.fromkeys(UNSTARTED, CANCELLED)),
    "predecessors done": (
        lambda database, graph: database.write(lambda conn: transitions.unblock(conn, graph.ids, now=NOW)),
        {W: READY},
    ),
    "wake": (
        lambda database, graph: database.write(
            lambda conn: due_tasks.wake(conn, WaitsOn.parse("resource:1"), now=NOW)
        ),
        {PARK: READY},
    ),
    "wake parked": (
        lambda database, graph: database.write(
            lambda conn: due_tasks.wake_due(conn, due_now(database, graph), now=NOW)
        ),
        {PARK: READY},
    ),
    "repeat hints": (
        lambda database, graph: database.write(
            lambda conn: due_tasks.repeat_hints(conn, due_now(database, graph), now=NOW)
        ),
        {READY: READY},
    ),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_moves_the_states_it_may_and_leaves_all_others_alone(
    database: Database, name: str
) -> None:
    operation, moves = OPERATIONS[name]
    for state in TaskState:
        graph = store_graph(database, {"one": []})
        task_id = graph.tasks["one"]
        set_task(
            database,
            task_id,
            state=state,
            attempt=1,
            member=A.member,
            due_at=NOW,
            waits_on="resource:1",
            pending=0,
        )
        before = task(database, task_id)
        operation(database, graph)
        after = task(database, task_id)
        assert after.state == moves.get(state, state), f"from {state}"
        if state not in moves:
            assert after == before, f"a task that is {state} was changed"


def test_the_operations_make_only_moves_of_the_table() -> None:
    moves_made = {(old, new) for _, moves in OPERATIONS.values() for old, new in moves.items() if old != new}
    allowed = {(old, new) for old, news in TRANSITIONS.items() for new in news}
    assert moves_made <= allowed
    assert allowed - moves_made == {(RUN, RUN)}


def test_every_state_has_its_place_and_final_ones_have_no_way_out() -> None:
    assert set(TRANSITIONS) == set(TaskState)
    assert {state for state, news in TRANSITIONS.items() if not news} == FINAL
    assert set(TaskState) == {*FINAL, *UNSTARTED, RUN}
    assert all(CANCELLED in TRANSITIONS[state] for state in TaskState if state not in FINAL)


def test_what_a_commit_refuses_is_what_the_table_forbids() -> None:
    for state in TaskState:
        try:
            Outcome(1, 1, state, 1, hook="pre-update" if state == HELD else None)  # type: ignore[arg-type]
        except ValueError:
            assert state not in TRANSITIONS[RUN]
        else:
            assert state in TRANSITIONS[RUN]
