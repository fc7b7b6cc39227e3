"""The rows of traversals."""

import typing
from dataclasses import replace

import pytest
import sqlalchemy as sa
from services.db.rows import (
    NOW,
    B,
    a_snapshot,
    a_stack,
    new_id,
    set_task,
    stack_of,
    store_graph,
    traversal_of,
)
from stoker.db import snapshots, stacks, traversals
from stoker.db.engine import Database
from stoker.db.ids import StackId, TraversalId, TraversalNumber
from stoker.db.rows import FailureCause, Traversal
from stoker.db.states import DeadlinePolicy, Status, TaskState, TraversalState
from stoker.db.work import breakpoints, endings, tasks

pytestmark = pytest.mark.usefixtures("bystander")


def a_traversal(number: int = 5, **fields: typing.Any) -> Traversal:
    plain: dict[str, typing.Any] = {
        "id": TraversalNumber(number),
        "traversal": TraversalId(new_id()),
        "stack_id": StackId(new_id()),
        "shard": 7,
        "open_tasks": 3,
    }
    return Traversal(**{**plain, **fields})


def stored(database: Database, traversal: Traversal) -> Traversal:
    database.write(lambda conn: traversals.insert(conn, traversal))
    return traversal


FIRST = FailureCause("first", path="resources.a")
SECOND = FailureCause("second", breakpoint="b")
FULL = {
    "action": "UPDATE",
    "held_tasks": 2,
    "failure": "why",
    "failure_cause": FailureCause("why", "ValueError", "resources.a"),
    "aborted": True,
    "deadline_policy": DeadlinePolicy.COUNTS,
    "waits_for_paused_children": True,
    "request": "req-1",
    "due_at": NOW,
}


@pytest.mark.parametrize("state", TraversalState)
@pytest.mark.parametrize("fields", [{}, FULL], ids=["plain", "full"])
def test_a_traversal_is_read_as_it_was_stored(
    database: Database, state: TraversalState, fields: dict[str, typing.Any]
) -> None:
    traversal = stored(database, a_traversal(state=state, **fields))
    assert database.read(lambda conn: traversals.get(conn, traversal.id)) == traversal
    assert database.write(lambda conn: traversals.lock(conn, traversal.id)) == traversal
    assert database.read(lambda conn: traversals.get(conn, TraversalNumber(9))) is None
    assert database.write(lambda conn: traversals.lock(conn, TraversalNumber(9))) is None


def test_tasks_are_counted(database: Database) -> None:
    traversal = stored(database, a_traversal())

    def count(conn: sa.Connection) -> None:
        counted = traversals.count_down(conn, traversal.id, 2)
        assert counted == replace(traversal, open_tasks=1)
        traversals.count_up(conn, traversal.id, 4)
        traversals.count_held(conn, traversal.id, 3)
        traversals.count_held(conn, traversal.id, -1)

    database.write(count)
    assert traversal_of(database, traversal.id) == replace(traversal, open_tasks=5, held_tasks=2)


@pytest.mark.parametrize("aborted", [False, True])
def test_the_first_failure_is_kept(database: Database, aborted: bool) -> None:
    traversal = stored(database, a_traversal(held_tasks=2))

    def fail(conn: sa.Connection) -> None:
        traversals.fail(conn, traversal.id, "first", FIRST, aborted=aborted)
        traversals.fail(conn, traversal.id, "second", SECOND, aborted=not aborted)
        traversals.count_cancelled(conn, traversal.id, 1)

    database.write(fail)
    failed = replace(
        traversal, open_tasks=2, held_tasks=0, failure="first", failure_cause=FIRST, aborted=aborted
    )
    assert traversal_of(database, traversal.id) == failed


def test_those_that_failed_are_distinguished_from_the_others(database: Database) -> None:
    for number in range(5, 9):
        stored(database, a_traversal(number, failure="why" if number in (6, 8) else None))
    numbers = [TraversalNumber(n) for n in (4, 5, 6, 7)]
    shared = [TraversalNumber(n) for n in (6, 7, 8)]
    assert database.write(lambda conn: traversals.lock_failed(conn, numbers)) == {6}
    assert database.write(lambda conn: traversals.lock_failed(conn, numbers, shared)) == {6}
    assert database.write(lambda conn: traversals.lock_failed(conn, [])) == set()


def test_a_traversal_that_was_purged_is_neither_counted_nor_failed(database: Database) -> None:
    traversal = stored(database, a_traversal())
    other = stored(database, a_traversal(6))
    purged = TraversalNumber(9)

    def count(conn: sa.Connection) -> None:
        assert traversals.count_down(conn, purged, 1) is None
        assert traversals.count_down_each(conn, {purged: 1}, []) == {}
        assert traversals.count_down_each(conn, {}, []) == {}
        rows = traversals.count_down_each(conn, {purged: 1, traversal.id: 2, other.id: 0}, [])
        assert rows == {traversal.id: replace(traversal, open_tasks=1), other.id: other}
        traversals.fail(conn, purged, "why", None, aborted=False)

    database.write(count)
    assert traversal_of(database, traversal.id).open_tasks == 1


def test_a_paused_child_is_noted_and_the_end_is_stored(database: Database) -> None:
    traversal = stored(database, a_traversal())
    database.write(lambda conn: traversals.note_paused_child(conn, traversal.id))
    assert traversal_of(database, traversal.id).may_pause
    database.write(lambda conn: traversals.end(conn, [traversal.id], now=NOW))
    done = traversal_of(database, traversal.id)
    assert (done.state, done.open_tasks, done.due_at) == (TraversalState.DONE, 0, NOW + traversals.KEPT)


def test_the_present_traversal_of_a_stack_is_found_while_it_is_in_progress(database: Database) -> None:
    stack = a_stack()
    over = a_stack(status=Status.COMPLETE)
    traversal = a_traversal(5, stack_id=stack.id, traversal=stack.traversal)
    stored(database, traversal)
    stored(database, a_traversal(6, stack_id=stack.id))
    stored(database, a_traversal(7, stack_id=over.id, traversal=over.traversal))
    database.write(lambda conn: [stacks.insert(conn, each) for each in (stack, over)])
    assert database.read(lambda conn: traversals.get_running(conn, stack.id)) == traversal
    assert database.read(lambda conn: traversals.get_running(conn, over.id)) is None


def test_those_of_a_stack_are_closed_but_not_a_deletion_of_a_snapshot(database: Database) -> None:
    stack = a_stack()
    deletion = a_snapshot(stack, action="DELETE", status=Status.IN_PROGRESS)
    snapshot = a_snapshot(stack)
    database.write(lambda conn: [stacks.insert(conn, stack), snapshots.insert(conn, stack, deletion)])
    database.write(lambda conn: snapshots.insert(conn, stack, snapshot))
    done = TraversalState.DONE
    stored(database, a_traversal(5, stack_id=stack.id, traversal=snapshot.traversal))
    stored(database, a_traversal(6, stack_id=stack.id, traversal=deletion.traversal))
    stored(database, a_traversal(7, stack_id=stack.id, state=done, due_at=NOW))
    stored(database, a_traversal(8))
    database.write(lambda conn: traversals.close(conn, [stack.id], now=NOW))
    rows = [traversal_of(database, TraversalNumber(n)) for n in range(5, 9)]
    running = TraversalState.RUNNING
    cancelled = TraversalState.CANCELLED
    assert [row.state for row in rows] == [cancelled, running, done, running]
    assert [row.due_at for row in rows] == [NOW + traversals.KEPT, None, NOW, None]


def test_what_is_due_is_read_in_pages(database: Database) -> None:
    for number, moment in {5: 9, 6: 1, 7: 1, 8: 1, 9: 0, 10: 100}.items():
        stored(database, a_traversal(number, due_at=NOW + moment))
    listed: list[tuple[float, int]] = []
    after = (0.0, 0)
    for _ in range(4):
        page = database.read(lambda conn: traversals.due(conn, NOW + 9, limit=2, after=after))  # noqa: B023
        assert len(page) <= 2
        listed += [(row.due_at or 0.0, row.id) for row in page]
        after = listed[-1]
    assert [number for _, number in listed] == [9, 6, 7, 8, 5]


def test_a_finished_traversal_is_purged_when_no_task_is_left(database: Database) -> None:
    traversal = stored(database, a_traversal(due_at=NOW))
    other = stored(database, a_traversal(6, due_at=NOW))

    def purge(conn: sa.Connection, has_tasks: bool) -> int:
        return traversals.purge(conn, traversal.traversal, again=60, has_tasks=lambda: has_tasks)

    assert database.write(lambda conn: purge(conn, True)) == 0
    assert traversal_of(database, traversal.id).due_at == NOW + 60
    assert database.write(lambda conn: purge(conn, False)) == 1
    assert database.read(lambda conn: traversals.get(conn, traversal.id)) is None
    assert database.write(lambda conn: purge(conn, False)) == 0
    assert traversal_of(database, other.id) == other


def test_a_finished_traversal_is_kept_for_longer_or_stored_again(database: Database) -> None:
    traversal = stored(database, a_traversal(due_at=NOW))
    later = replace(traversal, id=TraversalNumber(6), due_at=NOW + 9)
    database.write(lambda conn: traversals.keep(conn, later))
    assert traversal_of(database, traversal.id).due_at == NOW + 9
    assert database.read(lambda conn: traversals.get(conn, later.id)) is None
    database.write(
        lambda conn: traversals.purge(conn, traversal.traversal, again=60, has_tasks=lambda: False)
    )
    database.write(lambda conn: traversals.keep(conn, later))
    assert traversal_of(database, later.id) == later


def test_a_deadline_pauses_while_all_is_held(database: Database) -> None:
    graph = store_graph(database, {"a": []}, stack=a_stack(deadline_at=NOW + 100), hooks={"pre-create": {}})
    # As a task is that the plan, or the last predecessor's end, brings to its breakpoint.
    set_task(database, graph.tasks["a"], state=TaskState.WAITING)
    held = database.read(lambda conn: tasks.of_traversal(conn, graph.traversal))

    def hold(conn: sa.Connection) -> None:
        hits = [breakpoints.BreakpointHit(task, "pre-create") for task in held]
        breakpoints.hold(conn, hits, by=B.host, now=NOW)
        assert endings.finish(conn, {graph.number: 0}, by=B.host, now=NOW).stacks == {}

    database.write(hold)
    stack = stack_of(database, graph.stack.id)
    assert (stack.deadline_at, stack.remaining) == (None, 100)
    assert traversal_of(database, graph.number).held_tasks == 1
    assert {t.state for t in database.read(lambda c: tasks.of_traversal(c, graph.traversal))} == {
        TaskState.HELD
    }
