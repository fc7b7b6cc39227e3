"""The rows of traversals, in both forms in which they may be stored, and the way from one to the other."""

import pathlib
import threading
import typing
from collections.abc import Iterator
from dataclasses import replace

import pytest
import sqlalchemy as sa
from services.db.rows import (
    NOW,
    A,
    B,
    Graph,
    a_snapshot,
    a_stack,
    claim_all,
    new_id,
    outcome,
    raised,
    set_task,
    stack_of,
    step,
    store_graph,
    together,
    traversal_of,
)
from stoker.db import snapshots, stacks, traversals
from stoker.db.engine import Database
from stoker.db.ids import StackId, TraversalId, TraversalNumber
from stoker.db.rows import Traversal
from stoker.db.schema import revisions, tables, upgrade
from stoker.db.states import DeadlinePolicy, Status, TaskKind, TaskState, TraversalState
from stoker.db.work import breakpoints, due_tasks, endings, tasks

FORMS = ("row", "finish task")


SERVERS = ("sqlite", "postgresql", "mariadb")


def made(request: pytest.FixtureRequest, server: str, folder: pathlib.Path) -> Database:
    """A database that is expanded, and not contracted: traversals are stored in the older form."""
    url = f"sqlite:///{folder}/expanded.sqlite"
    if server != "sqlite":
        url = request.getfixturevalue(server).create_database()
    database = Database(url, pool_size=20)
    upgrade.upgrade(database, revisions.EXPANDED)
    return database


@pytest.fixture(params=SERVERS)
def expanded(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[Database]:
    """A database that a test may contract."""
    database = made(request, request.param, tmp_path)
    yield database
    database.close()


@pytest.fixture(scope="module", params=[(server, form) for server in SERVERS for form in FORMS], ids="-".join)
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """One for each server and form."""
    server, form = request.param
    database = made(request, server, tmp_path_factory.mktemp("shared"))
    if form == "row":
        upgrade.contract(database)
    yield database
    database.close()


@pytest.fixture
def in_form(shared: Database) -> Database:
    """A database without rows in which new traversals are stored in one of the forms."""
    some = (tables.traversal, tables.task, tables.resource, tables.stack, tables.snapshot)
    shared.write(lambda conn: [conn.execute(sa.delete(table)) for table in some])
    return shared


def a_traversal(number: int = 5, **fields: typing.Any) -> Traversal:
    plain: dict[str, typing.Any] = {
        "id": TraversalNumber(number),
        "traversal": TraversalId(new_id()),
        "stack_id": StackId(new_id()),
        "shard": 7,
        "open_tasks": 3,
    }
    return Traversal(**{**plain, **fields})


def stored(database: Database, one: Traversal) -> Traversal:
    database.write(lambda conn: traversals.insert(conn, one))
    return one


def old_forms(database: Database) -> int:
    kind = tables.task.c.kind == TaskKind.FINISH
    return int(database.read(lambda conn: conn.execute(sa.select(sa.func.count()).where(kind)).scalar_one()))


def known(one: Traversal, database: Database) -> Traversal:
    """As it is read: the older form does not have the action."""
    return replace(one, action=None) if old_forms(database) else one


FULL = {
    "action": "UPDATE",
    "held_tasks": 2,
    "failure": "why",
    "aborted": True,
    "deadline_policy": DeadlinePolicy.COUNTS,
    "waits_for_paused_children": True,
    "request": "req-1",
    "due_at": NOW,
}


@pytest.mark.parametrize("state", TraversalState)
@pytest.mark.parametrize("fields", [{}, FULL], ids=["plain", "full"])
def test_a_traversal_is_read_as_it_was_stored(
    in_form: Database, state: TraversalState, fields: dict[str, typing.Any]
) -> None:
    one = stored(in_form, a_traversal(state=state, **fields))
    assert in_form.read(lambda conn: traversals.get(conn, one.id)) == known(one, in_form)
    assert in_form.write(lambda conn: traversals.lock(conn, one.id)) == known(one, in_form)
    assert in_form.read(lambda conn: traversals.get(conn, TraversalNumber(9))) is None
    assert in_form.write(lambda conn: traversals.lock(conn, TraversalNumber(9))) is None


def test_the_form_follows_the_schema(expanded: Database) -> None:
    one, two = a_traversal(5), a_traversal(6)
    stored(expanded, one)
    assert old_forms(expanded) == 1
    upgrade.contract(expanded)
    assert old_forms(expanded) == 0
    stored(expanded, two)
    assert old_forms(expanded) == 0
    assert [traversal_of(expanded, item.id) for item in (one, two)] == [one, two]


def test_tasks_are_counted(in_form: Database) -> None:
    one = stored(in_form, a_traversal())

    def count(conn: sa.Connection) -> None:
        traversals.count_down(conn, one.id, 2)
        traversals.count_up(conn, one.id, 4)
        traversals.count_held(conn, one.id, 3)
        traversals.count_held(conn, one.id, -1)

    in_form.write(count)
    assert traversal_of(in_form, one.id) == replace(one, open_tasks=5, held_tasks=2)


@pytest.mark.parametrize("aborted", [False, True])
def test_the_first_failure_is_kept(in_form: Database, aborted: bool) -> None:
    one = stored(in_form, a_traversal(held_tasks=2))

    def fail(conn: sa.Connection) -> None:
        traversals.count_down(conn, one.id, 1, failure="first", aborted=aborted)
        traversals.count_down(conn, one.id, 1, failure="second", aborted=not aborted)
        traversals.count_cancelled(conn, one.id, 1)

    in_form.write(fail)
    failed = replace(one, open_tasks=0, held_tasks=0, failure="first", aborted=aborted)
    assert traversal_of(in_form, one.id) == failed


def test_those_that_failed_are_told_from_the_others(in_form: Database) -> None:
    for number in range(5, 8):
        stored(in_form, a_traversal(number, failure="why" if number == 6 else None))
    numbers = [TraversalNumber(n) for n in (4, 5, 6, 7)]
    assert in_form.write(lambda conn: traversals.lock_failed(conn, numbers)) == {6}
    assert in_form.write(lambda conn: traversals.lock_failed(conn, [])) == set()


def test_a_paused_child_is_noted_and_the_end_is_stored(in_form: Database) -> None:
    one = stored(in_form, a_traversal())
    in_form.write(lambda conn: traversals.note_paused_child(conn, one.id))
    assert traversal_of(in_form, one.id).may_pause
    in_form.write(lambda conn: traversals.end(conn, one.id, now=NOW))
    done = traversal_of(in_form, one.id)
    assert (done.state, done.open_tasks, done.due_at) == (TraversalState.DONE, 0, NOW + traversals.KEPT)


def test_the_present_traversal_of_a_stack_is_found_while_it_is_in_progress(in_form: Database) -> None:
    stack, over = a_stack(), a_stack(status=Status.COMPLETE)
    one = a_traversal(5, stack_id=stack.id, traversal=stack.traversal)
    stored(in_form, one)
    stored(in_form, a_traversal(6, stack_id=stack.id))
    stored(in_form, a_traversal(7, stack_id=over.id, traversal=over.traversal))
    in_form.write(lambda conn: [stacks.insert(conn, each) for each in (stack, over)])
    assert in_form.read(lambda conn: traversals.get_running(conn, stack.id)) == one
    assert in_form.read(lambda conn: traversals.get_running(conn, over.id)) is None


def test_those_of_a_stack_are_closed_but_not_a_deletion_of_a_snapshot(in_form: Database) -> None:
    stack = a_stack()
    deletion = a_snapshot(stack, action="DELETE", status=Status.IN_PROGRESS)
    in_form.write(lambda conn: [stacks.insert(conn, stack), snapshots.insert(conn, deletion)])
    done = TraversalState.DONE
    stored(in_form, a_traversal(5, stack_id=stack.id))
    stored(in_form, a_traversal(6, stack_id=stack.id, traversal=deletion.traversal))
    stored(in_form, a_traversal(7, stack_id=stack.id, state=done, due_at=NOW))
    stored(in_form, a_traversal(8))
    in_form.write(lambda conn: traversals.close(conn, [stack.id], now=NOW))
    found = [traversal_of(in_form, TraversalNumber(n)) for n in range(5, 9)]
    running, cancelled = TraversalState.RUNNING, TraversalState.CANCELLED
    assert [one.state for one in found] == [cancelled, running, done, running]
    assert [one.due_at for one in found] == [NOW + traversals.KEPT, None, NOW, None]


def test_what_is_due_is_read_in_pages(in_form: Database) -> None:
    for number in range(5, 9):
        stored(in_form, a_traversal(number, due_at=NOW + (10 - number) // 2))
    stored(in_form, a_traversal(9, due_at=NOW + 100))
    seen, after = [], (0.0, 0)
    while page := in_form.read(lambda conn, after=after: traversals.due(conn, NOW + 9, limit=2, after=after)):  # type: ignore[misc]
        seen += [one.id for one in page]
        after = (page[-1].due_at or 0.0, page[-1].id)
    assert seen == [7, 8, 5, 6]


def test_a_finished_traversal_is_purged_when_no_task_is_left(in_form: Database) -> None:
    one = stored(in_form, a_traversal(due_at=NOW))

    def purge(conn: sa.Connection, has_tasks: bool) -> int:
        return traversals.purge(conn, one.traversal, again=60, has_tasks=lambda: has_tasks)

    assert in_form.write(lambda conn: purge(conn, True)) == 0
    assert traversal_of(in_form, one.id).due_at == NOW + 60
    assert in_form.write(lambda conn: purge(conn, False)) == 1
    assert in_form.read(lambda conn: traversals.get(conn, one.id)) is None
    assert in_form.write(lambda conn: purge(conn, False)) == 0


def test_a_finished_traversal_is_kept_for_longer_or_stored_anew(in_form: Database) -> None:
    one = stored(in_form, a_traversal(due_at=NOW))
    later = replace(one, id=TraversalNumber(6), due_at=NOW + 9)
    in_form.write(lambda conn: traversals.keep(conn, later))
    assert traversal_of(in_form, one.id).due_at == NOW + 9
    assert in_form.read(lambda conn: traversals.get(conn, later.id)) is None
    in_form.write(lambda conn: traversals.purge(conn, one.traversal, again=60, has_tasks=lambda: False))
    in_form.write(lambda conn: traversals.keep(conn, later))
    assert traversal_of(in_form, later.id) == later


def test_a_traversal_in_the_older_form_is_worked_on_to_its_end(expanded: Database) -> None:
    graph = store_graph(expanded, {"a": [], "b": ["a"]})
    assert old_forms(expanded) == 1
    assert {item.id for item in expanded.read(lambda conn: tasks.of_traversal(conn, graph.traversal))} == {
        *graph.ids
    }
    run(expanded, graph)
    assert stack_of(expanded, graph.stack.id).status == Status.COMPLETE
    assert expanded.read(lambda conn: due_tasks.due(conn, NOW + 100, limit=9)) == []
    [over] = expanded.read(lambda conn: traversals.due(conn, NOW + 100, limit=9))
    assert expanded.write(lambda conn: due_tasks.purge_traversal(conn, over.traversal)) == 3
    assert old_forms(expanded) == 0


def run(database: Database, graph: Graph) -> None:
    """Bring all tasks to their end."""
    claims = claim_all(database, graph.ids)
    while claims:
        claims = list(step(database, [outcome(one) for one in claims]).claims)


def test_a_traversal_is_moved_with_all_it_has_counted(expanded: Database) -> None:
    graph = store_graph(expanded, {"a": [], "b": ["a"], "c": ["b"]})
    others = [stored(expanded, a_traversal(10**6 + n, **FULL)) for n in range(3)]
    [held] = claim_all(expanded, graph.ids)
    step(expanded, [outcome(held)], slots=0)
    upgrade.contract(expanded)
    assert old_forms(expanded) == 0
    moved = traversal_of(expanded, graph.number)
    assert (moved.open_tasks, moved.state, moved.action) == (2, TraversalState.RUNNING, "CREATE")
    assert [traversal_of(expanded, one.id) for one in others] == [replace(o, action=None) for o in others]
    run(expanded, graph)
    assert stack_of(expanded, graph.stack.id).status == Status.COMPLETE


WIDE = 12


def test_no_count_is_lost_while_the_row_is_moved(expanded: Database) -> None:
    graphs = [store_graph(expanded, {f"r{n}": [] for n in range(WIDE)}) for _ in range(4)]
    claims = [claim_all(expanded, graph.ids) for graph in graphs]

    def commit(of: int, which: int) -> None:
        step(expanded, [outcome(claims[of][which])], slots=0, who=A)

    jobs = [
        lambda which=which: [commit(of, which) for of in range(len(graphs))]  # type: ignore[misc]
        for which in range(WIDE)
    ]
    results = together(*jobs, lambda: upgrade.contract(expanded))  # type: ignore[misc]
    assert raised(results) == []
    assert old_forms(expanded) == 0
    for graph in graphs:
        over = traversal_of(expanded, graph.number)
        assert (over.open_tasks, over.state) == (0, TraversalState.DONE)
        assert stack_of(expanded, graph.stack.id).status == Status.COMPLETE


@pytest.mark.parametrize("expanded", ["postgresql", "mariadb"], indirect=True)
@pytest.mark.parametrize("first", ["the move", "the count"])
def test_who_counts_waits_for_the_move_and_the_move_for_who_counts(expanded: Database, first: str) -> None:
    """Each in turn holds the row while the other one comes to it."""
    one = stored(expanded, a_traversal())
    move = upgrade.script(revisions.NEWEST).move_batch
    began, go_on = threading.Event(), threading.Event()

    def count(conn: sa.Connection) -> None:
        traversals.count_down(conn, one.id, 1)

    def slowly(work: typing.Callable[[sa.Connection], object]) -> None:
        def held(conn: sa.Connection) -> None:
            work(conn)
            began.set()
            assert go_on.wait(20)

        expanded.write(held)

    def second(work: typing.Callable[[sa.Connection], object]) -> None:
        assert began.wait(20)
        threading.Timer(0.3, go_on.set).start()
        expanded.write(work)

    works = (move, count) if first == "the move" else (count, move)
    assert raised(together(lambda: slowly(works[0]), lambda: second(works[1]))) == []
    assert old_forms(expanded) == 0
    assert traversal_of(expanded, one.id).open_tasks == 2


@pytest.mark.parametrize("expanded", ["postgresql", "mariadb"], indirect=True)
def test_a_traversal_that_begins_while_the_schema_is_contracted_is_not_left_in_the_older_form(
    expanded: Database,
) -> None:
    """The one that has begun is waited for, and the next one waits and takes the new form."""
    early, late = a_traversal(5), a_traversal(6)
    began, go_on = threading.Event(), threading.Event()

    def begin_early() -> None:
        def insert(conn: sa.Connection) -> None:
            traversals.insert(conn, early)
            began.set()
            assert go_on.wait(20)

        expanded.write(insert)

    def contract() -> None:
        assert began.wait(20)
        upgrade.contract(expanded)

    def begin_late() -> None:
        assert began.wait(20)
        threading.Timer(1.0, go_on.set).start()
        assert not go_on.wait(0.5), "the contract part waits by now"
        stored(expanded, late)

    assert raised(together(begin_early, contract, begin_late)) == []
    assert old_forms(expanded) == 0
    assert [traversal_of(expanded, one.id) for one in (early, late)] == [early, late]


def test_a_deadline_pauses_in_both_forms(in_form: Database) -> None:
    graph = store_graph(in_form, {"a": []}, stack=a_stack(deadline_at=NOW + 100), hooks={"pre-create": {}})
    # As a task is that the plan, or the last predecessor's end, brings to its breakpoint.
    set_task(in_form, graph.tasks["a"], state=TaskState.WAITING)
    held = in_form.read(lambda conn: tasks.of_traversal(conn, graph.traversal))

    def hold(conn: sa.Connection) -> None:
        hits = [breakpoints.BreakpointHit(task, "pre-create") for task in held]
        breakpoints.hold(conn, hits, by=B.host, now=NOW)
        assert endings.finish(conn, graph.number, by=B.host, now=NOW) is None

    in_form.write(hold)
    found = stack_of(in_form, graph.stack.id)
    assert (found.deadline_at, found.remaining) == (None, 100)
    assert traversal_of(in_form, graph.number).held_tasks == 1
    assert {t.state for t in in_form.read(lambda c: tasks.of_traversal(c, graph.traversal))} == {
        TaskState.HELD
    }
