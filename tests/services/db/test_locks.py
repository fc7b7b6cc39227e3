"""One row whose holder never returns delays nobody's work but its own, and no wait is without an end."""

import contextlib
import threading
import time
import typing
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
import sqlalchemy as sa
from harness.duties import duty_context
from harness.waiting import wait_for
from services.db.rows import (
    NOW,
    Graph,
    a_stack,
    claim_all,
    new_id,
    on,
    outcome,
    set_task,
    set_traversal,
    stack_of,
    step,
    store_graph,
    store_graphs,
    task,
    together,
)
from stoker.conductor.duties import stack_purge, stack_timeouts
from stoker.conductor.duties.context import DutyContext, DutySettings
from stoker.conductor.duties.slice_scan import LONGEST_PAUSE
from stoker.conductor.duties.stack_purge import StackPurge
from stoker.conductor.duties.stack_timeouts import StackTimeouts
from stoker.conductor.duties.task_due import TaskDue
from stoker.conductor.duties.traversal_purge import TraversalPurge
from stoker.db import stacks
from stoker.db.connections import DatabaseLimits
from stoker.db.engine import Database
from stoker.db.errors import NotFound, RowLocked, TooSlow, Unavailable
from stoker.db.ids import StackId
from stoker.db.schema import tables
from stoker.db.states import Status, TaskState, TraversalState

WAITS = DatabaseLimits(lock=1.0, statement=60.0, pool=1.0, retry=1.0, busy=0.5)
LATE = NOW + 100
Json = typing.Any


class Quiet:
    """A ring of one, and hints that nobody hears."""

    def owns(self, shard: int) -> bool:
        return True

    def present(self) -> frozenset[str]:
        return frozenset()

    def __getattr__(self, name: str) -> Json:
        return lambda *_: None


@contextlib.contextmanager
def holding(database: Database, table: sa.Table, keys: Sequence[Json]) -> Iterator[None]:
    """Somebody has locked rows, and does nothing more: as a host that has lost power."""
    engine = sa.create_engine(database.url, poolclass=sa.NullPool)
    with engine.connect() as conn:
        locked = sa.select(table.c.id).where(table.c.id.in_(keys)).order_by(table.c.id).with_for_update()
        rows = conn.execute(locked).all()
        assert len(rows) == len(keys)
        try:
            yield
        finally:
            conn.rollback()


@contextlib.contextmanager
def limited(database: Database, limits: DatabaseLimits = WAITS) -> Iterator[Database]:
    """The same one, by connections with short limits."""
    limited_database = Database(database.url, pool_size=4, limits=limits)
    try:
        yield limited_database
    finally:
        limited_database.close()


def context(database: Database, **settings: Json) -> DutyContext:
    settings_of_duties = DutySettings("a", cancel_grace=1.0, **settings)
    return duty_context(database, Quiet(), hints=Quiet(), clock=lambda: LATE, settings=settings_of_duties)


def timeouts(database: Database) -> StackTimeouts:
    return StackTimeouts(context(database))


def late_graphs(database: Database, count: int) -> list[Graph]:
    late = [a_stack(deadline_at=NOW + number / 100) for number in range(count)]
    return store_graphs(database, {"a": []}, late)


def fill(database: Database) -> None:
    """Rows of others.  In a table of few rows InnoDB uses no index, and locks whatever it comes by."""
    store_graphs(database, {"a": []}, [a_stack() for _ in range(150)])
    if database.dialect == "mysql":
        database.write(lambda conn: conn.exec_driver_sql("ANALYZE TABLE stack, task, resource").fetchall())


def failed(database: Database, graphs: Sequence[Graph]) -> int:
    s = tables.stack
    ids = [graph.stack.id for graph in graphs]
    query = sa.select(sa.func.count()).where(s.c.id.in_(ids), s.c.status == Status.FAILED)
    return database.read(lambda conn: conn.execute(query).scalar_one())


@on("postgresql", "mariadb")
@pytest.mark.parametrize("locked_part", ["its stack", "one of its tasks"])
def test_of_a_hundred_timeouts_ninety_nine_strike_while_one_is_locked(
    database: Database, locked_part: str
) -> None:
    graphs = late_graphs(database, 100)
    fill(database)
    table = tables.stack
    key = graphs[3].stack.id
    if locked_part != "its stack":
        table = tables.task
        key = graphs[3].ids[0]
    with limited(database) as limited_database, holding(database, table, [key]):
        duty = timeouts(limited_database)
        duty.run()
        assert failed(database, graphs) == 99
        assert stack_of(database, graphs[3].stack.id).status == Status.IN_PROGRESS
        duty.run()
    deadline = time.monotonic() + LONGEST_PAUSE + 120
    while failed(database, graphs) < 100 and time.monotonic() < deadline:
        duty.run()
        time.sleep(0.1)
    assert failed(database, graphs) == 100, "once it is free it strikes, too"


@on("postgresql", "mariadb")
def test_a_page_full_of_locked_stacks_does_not_hide_the_others(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stack_timeouts, "PAGE", 5)
    fill(database)
    graphs = late_graphs(database, 12)
    first = [graph.stack.id for graph in graphs[:5]]
    with limited(database) as limited_database, holding(database, tables.stack, first):
        timeouts(limited_database).run()
        assert failed(database, graphs) == 7


@on("postgresql", "mariadb")
def test_old_stacks_are_purged_beside_a_page_of_locked_ones(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stack_purge, "PAGE", 2)
    fill(database)
    deleted = [a_stack(deleted_at=NOW + number, live_name=None) for number in range(4)]
    database.write(lambda conn: [stacks.insert(conn, stack) for stack in deleted])
    with (
        limited(database) as limited_database,
        holding(database, tables.stack, [stack.id for stack in deleted[:2]]),
    ):
        StackPurge(context(limited_database, keep_deleted=1.0)).run()
        assert [is_there(database, stack.id) for stack in deleted] == [True] * 2 + [False] * 2


def is_there(database: Database, stack_id: StackId) -> bool:
    try:
        stack_of(database, stack_id)
    except NotFound:
        return False
    return True


@on("postgresql", "mariadb")
def test_what_is_due_for_other_tasks_is_done_while_one_is_locked(database: Database) -> None:
    fill(database)
    graphs = store_graphs(database, {"a": []}, [a_stack() for _ in range(6)])
    for graph in graphs[:3]:
        set_task(database, graph.ids[0], state=TaskState.RUNNING, member="x/1", attempt=1, due_at=NOW)
    for graph in graphs[3:]:
        set_task(database, graph.ids[0], state=TaskState.DONE, due_at=None)
        set_traversal(database, graph.number, state=TraversalState.DONE, due_at=NOW)
    with (
        limited(database) as limited_database,
        holding(database, tables.task, [graphs[0].ids[0]]),
        holding(database, tables.traversal, [graphs[3].number]),
    ):
        TaskDue(context(limited_database)).run()
        TraversalPurge(context(limited_database)).run()
        assert task(database, graphs[0].ids[0]).stop_by is None
        assert None not in [task(database, graph.ids[0]).stop_by for graph in graphs[1:3]]
        stored = sa.select(tables.traversal.c.traversal)
        remaining = database.read(lambda conn: set(conn.execute(stored).scalars()))
        traversal_ids = {graph.traversal for graph in graphs}
        assert remaining & traversal_ids == {graph.traversal for graph in graphs[:4]}, (
            "the finished ones are cleared away"
        )


@on("postgresql", "mariadb")
@pytest.mark.parametrize("locked_part", ["its task", "its resource"])
def test_a_claim_skips_what_is_locked_and_takes_all_the_others(database: Database, locked_part: str) -> None:
    fill(database)
    graphs = store_graphs(database, {"a": []}, [a_stack() for _ in range(5)])
    ids = [graph.ids[0] for graph in graphs]
    table = tables.task
    key = ids[2]
    if locked_part == "its resource":
        table = tables.resource
        key = task(database, ids[2]).resource_id
    with limited(database) as limited_database:
        with holding(database, table, [key]):
            done = step(limited_database, hinted=ids)
            assert [held.task.id for held in done.claims] == [*ids[:2], *ids[3:]]
            assert task(database, ids[2]).state == TaskState.READY
            assert done.locked == ([ids[2]] if locked_part == "its resource" else [])
            ended = step(limited_database, [outcome(held) for held in done.claims])
            assert (len(ended.ended), ended.refused) == (4, [])
        assert [held.task.id for held in step(limited_database, hinted=ids).claims] == [ids[2]]


@on("postgresql", "mariadb")
def test_a_result_is_stored_although_what_it_makes_ready_is_locked(database: Database) -> None:
    fill(database)
    graph = store_graph(database, {"a": [], "b": ["a"]})
    [first] = claim_all(database, graph.ids[:1])
    with limited(database) as limited_database:
        with holding(database, tables.resource, [task(database, graph.ids[1]).resource_id]):
            done = step(limited_database, [outcome(first)])
            assert (done.claims, done.locked) == ([], [graph.ids[1]])
            assert done.ready == {graph.traversal: [graph.ids[1]]}
            assert task(database, graph.ids[1]).state == TaskState.READY
        assert [held.task.id for held in step(limited_database, hinted=graph.ids).claims] == [graph.ids[1]]


def rename(database: Database, stack_id: StackId) -> None:
    def change(conn: sa.Connection) -> None:
        stacks.lock(conn, stack_id)
        conn.execute(sa.update(tables.stack).where(tables.stack.c.id == stack_id).values(reason="changed"))

    database.write(change)


@on("postgresql", "mariadb")
def test_a_request_for_a_locked_stack_ends_and_the_pool_is_free_again(database: Database) -> None:
    stack_id = late_graphs(database, 1)[0].stack.id
    with limited(database) as limited_database:
        with holding(database, tables.stack, [stack_id]):
            results = together(*[lambda: rename(limited_database, stack_id)] * 8)
            assert all(isinstance(error, Unavailable) for error in results), results
            assert any(isinstance(error, RowLocked) for error in results)
        rename(limited_database, stack_id)


@on("postgresql", "mariadb")
def test_a_lock_that_is_released_meanwhile_is_no_error(database: Database) -> None:
    stack_id = late_graphs(database, 1)[0].stack.id

    def hold() -> None:
        with holding(database, tables.stack, [stack_id]):
            time.sleep(1.5)

    with limited(Database(database.url)) as limited_database:
        patient = Database(limited_database.url, limits=DatabaseLimits(lock=1.0, retry=120.0))
        results = together(hold, lambda: (time.sleep(0.2), rename(patient, stack_id)))
        patient.close()
    assert [error for error in results if isinstance(error, Exception)] == []


@on("postgresql", "mariadb")
def test_a_statement_that_takes_too_long_is_ended_and_not_tried_again(database: Database) -> None:
    runs = []
    text = (
        "SELECT pg_sleep(600)"
        if database.dialect == "postgresql"
        else ("SELECT count(*) FROM seq_1_to_1000000 a, seq_1_to_1000000 b")
    )

    def read_slowly(conn: sa.Connection) -> None:
        runs.append(1)
        conn.execute(sa.text(text))

    with limited(database, replace(WAITS, statement=2.0)) as limited_database, pytest.raises(TooSlow):
        limited_database.read(read_slowly)
    assert len(runs) == 1


@on("postgresql", "mariadb")
def test_what_an_idle_transaction_holds_is_freed_by_the_server(database: Database) -> None:
    stack_id = late_graphs(database, 1)[0].stack.id
    runs = []
    locked = threading.Event()

    def forget() -> None:
        def lock_and_idle(conn: sa.Connection) -> None:
            stacks.lock(conn, stack_id)
            runs.append(1)
            locked.set()
            if len(runs) == 1:
                wait_for(lambda: stack_of(database, stack_id).reason == "changed")
            conn.execute(sa.update(tables.stack).where(tables.stack.c.id == stack_id).values(owner="late"))

        own_database.write(lock_and_idle)

    own_database = Database(database.url, limits=DatabaseLimits(idle=1.0, retry=120.0))
    results = together(forget, lambda: (locked.wait(60), rename(database, stack_id)))
    own_database.close()
    assert [error for error in results if isinstance(error, Exception)] == []
    assert len(runs) > 1, "what the server had ended was run again"
    assert (stack_of(database, stack_id).reason, stack_of(database, stack_id).owner) == ("changed", "late")


@on("postgresql", "mariadb")
def test_a_brief_transaction_leaves_the_connection_as_it_was(database: Database) -> None:
    name = "lock_timeout" if database.dialect == "postgresql" else "innodb_lock_wait_timeout"

    def setting(conn: sa.Connection) -> str:
        return (
            str(conn.exec_driver_sql(f"SHOW VARIABLES LIKE '{name}'").one()[1])
            if name[0] == "i"
            else (str(conn.exec_driver_sql(f"SHOW {name}").scalar_one()))
        )

    single = Database(database.url, pool_size=1, limits=DatabaseLimits(lock=7.0))
    before = single.read(setting)
    assert single.write(setting, brief=True) != before
    assert single.read(setting) == before
    assert before in ("7s", "7")
    single.close()


@on("sqlite")
def test_the_turn_to_write_to_sqlite_is_waited_for_so_long_and_no_longer(database: Database) -> None:
    stack_id = late_graphs(database, 1)[0].stack.id
    with limited(database) as limited_database:
        engine = sa.create_engine(database.url, poolclass=sa.NullPool)
        with engine.connect() as conn:
            conn.exec_driver_sql("BEGIN IMMEDIATE")
            with pytest.raises(RowLocked):
                rename(limited_database, stack_id)
            assert stack_of(limited_database, stack_id).id == stack_id, "readers never wait"
            conn.rollback()
        rename(limited_database, stack_id)


def test_the_servers_time_is_measured_by_the_transactions(database: Database) -> None:
    fresh = Database(database.url)
    assert not fresh.clock.is_sure
    fresh.read(lambda conn: conn.execute(sa.select(sa.literal(new_id()))))
    assert fresh.clock.is_sure
    assert abs(fresh.clock() - time.time()) < 60.0, "the servers of the tests are on this host"
    fresh.close()
