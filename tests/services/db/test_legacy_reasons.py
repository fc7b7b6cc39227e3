"""Rows whose cause only a text tells, as the release before writes them, and the way to typed columns."""

import importlib
import pathlib
import typing
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from services.db.rows import NOW, A, a_resource, a_stack, new_id, stack_of
from stoker.db import legacy_reasons, resources, stacks, traversals
from stoker.db.engine import Database
from stoker.db.ids import ResourceId, StackId, TraversalNumber
from stoker.db.rows import FailureCause, Resource, Stack
from stoker.db.schema import revisions, tables, upgrade
from stoker.db.states import Status, TraversalState
from stoker.db.work import cancel, endings
from stoker.db.work.endings import Failure

INNER = "Resource CREATE failed: ValueError: resources.a.resources.b: too: many"
ODD = "Resource CREATE failed: odd"
AT_BREAKPOINT = "UPDATE aborted due to breakpoint on resource n/b"
CAUSES = {
    INNER: FailureCause("too: many", "ValueError", "resources.a.resources.b"),
    "Create timed out": FailureCause("Create timed out"),
    ODD: FailureCause(ODD),
    AT_BREAKPOINT: FailureCause(AT_BREAKPOINT, breakpoint="n/b"),
}
LYING = FailureCause("typed", "KeyError", "resources.typed")
"""What no text tells."""


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def expanded(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[Database]:
    """A database on which the release before works, too."""
    url = f"sqlite:///{tmp_path}/expanded.sqlite"
    if request.param != "sqlite":
        url = request.getfixturevalue(request.param).create_database()
    database = Database(url)
    upgrade.upgrade(database, revisions.EXPANDED)
    yield database
    database.close()


def column(database: Database, table: sa.Table, key: typing.Any, name: str) -> typing.Any:
    """The value as it is stored."""
    query = sa.select(table.c[name]).where(table.c.id == key)
    return database.read(lambda conn: conn.execute(query).scalar_one())


def set_row(database: Database, table: sa.Table, key: typing.Any, **values: typing.Any) -> None:
    """As the release before does, which knows none of the columns."""
    changed = sa.update(table).where(table.c.id == key).values(**values)
    database.write(lambda conn: conn.execute(changed))


def stored(database: Database, *rows: Resource) -> Stack:
    stack = a_stack()
    database.write(lambda conn: [stacks.insert(conn, stack), resources.insert_many(conn, rows)])
    return stack


def resource(database: Database, number: int) -> Resource:
    return database.read(lambda conn: resources.get(conn, ResourceId(number)))


def fail(database: Database, stack: Stack, reason: str, cause: FailureCause | None) -> None:
    end = Failure(reason, cause)
    args = (stack.id, stack.traversal, end)
    ended = database.write(lambda conn: endings.end_stack(conn, *args, by=A.host, now=NOW))
    assert ended is not None


def change(database: Database, number: int, **columns: typing.Any) -> None:
    row = {"row_id": number, **columns}
    database.write(lambda conn: resources.store_changes(conn, [row], now=NOW))


FAILED = {"status": Status.FAILED, "action": "CREATE"}
ABORTED = "CREATE aborted: the step on one did not stop"


def test_a_cancelled_action_is_read_from_its_reason_until_the_schema_is_contracted(
    expanded: Database,
) -> None:
    stored(expanded, *(a_resource(StackId(new_id()), number) for number in range(1, 6)))
    set_row(expanded, tables.resource, 1, **FAILED, reason=ABORTED, cancelled=None)
    set_row(expanded, tables.resource, 2, **FAILED, reason="it is broken", cancelled=None)
    change(expanded, 3, **FAILED, reason=ABORTED, cancelled=True)
    change(expanded, 4, **FAILED, reason="it is broken")
    cancelled = {1: True, 2: False, 3: True, 4: False, 5: False}
    assert {n: resource(expanded, n).was_cancelled for n in cancelled} == cancelled
    stored_values = {column(expanded, tables.resource, n, "cancelled") for n in (1, 2, 3, 4)}
    assert stored_values == {None}
    # The release before changes a row without a value that could contradict its text.
    set_row(expanded, tables.resource, 3, **FAILED, reason="it is broken")
    assert not resource(expanded, 3).was_cancelled
    upgrade.contract(expanded)
    cancelled[3] = False
    assert {n: resource(expanded, n).was_cancelled for n in cancelled} == cancelled
    assert {n: column(expanded, tables.resource, n, "cancelled") for n in (1, 2, 3, 4)} == {
        n: cancelled[n] for n in (1, 2, 3, 4)
    }


def test_a_text_means_nothing_once_the_schema_is_contracted(expanded: Database) -> None:
    stored(expanded, *(a_resource(StackId(new_id()), number) for number in range(1, 5)))
    upgrade.contract(expanded)
    change(expanded, 1, **FAILED, reason="stopped", cancelled=True)
    change(expanded, 2, **FAILED, reason=ABORTED)
    set_row(expanded, tables.resource, 3, action="UPDATE", status=Status.IN_PROGRESS)
    expanded.write(lambda conn: cancel.show_aborted(conn, [3, 4], now=NOW))
    assert [resource(expanded, n).was_cancelled for n in (1, 2, 3, 4)] == [True, False, True, False]
    # Whoever fails it again says why.
    change(expanded, 1, **FAILED, reason=ABORTED)
    assert not resource(expanded, 1).was_cancelled
    args = {"action": "CHECK", "status": Status.FAILED, "reason": "CHECK aborted"}
    expanded.write(lambda conn: resources.set_status(conn, ResourceId(1), **args, now=NOW))
    assert not resource(expanded, 1).was_cancelled


def test_who_takes_its_place_again_is_known_by_the_order_of_ids_until_then(expanded: Database) -> None:
    rows = [a_resource(StackId(new_id()), number) for number in range(1, 7)]
    stored(expanded, *rows)
    again = {"replaced_by": None, "replaces": 9, "reinstated": True}
    expanded.write(lambda conn: resources.change_many(conn, {ResourceId(1): again, ResourceId(2): again}))
    set_row(expanded, tables.resource, 3, replaces=9, reinstated=None)
    set_row(expanded, tables.resource, 4, replaces=1, reinstated=None)
    set_row(expanded, tables.resource, 2, replaces=None)  # As the release before ends it.
    found = {1: True, 2: False, 3: True, 4: False}
    assert {n: resource(expanded, n).reinstated for n in found} == found
    upgrade.contract(expanded)
    assert {n: resource(expanded, n).reinstated for n in found} == found
    assert [column(expanded, tables.resource, n, "reinstated") for n in (1, 3)] == [True, True]
    # From now on the column decides alone.
    down = {**again, "replaces": 1}
    expanded.write(lambda conn: resources.change_many(conn, {ResourceId(5): down}))
    change(expanded, 1, reinstated=False)
    assert [resource(expanded, n).reinstated for n in (1, 5)] == [False, True]


def test_the_cause_of_a_failed_stack_is_read_from_its_reason_until_then(expanded: Database) -> None:
    theirs = {reason: stored(expanded) for reason in CAUSES}
    ours = {reason: stored(expanded) for reason in CAUSES}
    good, late = stored(expanded), stored(expanded)
    for reason, cause in CAUSES.items():
        old = {"status": Status.FAILED, "reason": reason}
        set_row(expanded, tables.stack, theirs[reason].id, **old)
        fail(expanded, ours[reason], reason, cause)
        assert column(expanded, tables.stack, ours[reason].id, "failure_cause") is None
    for _ in range(2):
        for reason, cause in CAUSES.items():
            for one in (theirs, ours):
                assert stack_of(expanded, one[reason].id).failure_cause == cause
        assert stack_of(expanded, good.id).failure_cause is None
        upgrade.contract(expanded)
    assert column(expanded, tables.stack, theirs[INNER].id, "failure_cause") is not None
    fail(expanded, good, INNER, LYING)
    assert stack_of(expanded, good.id).failure_cause == LYING
    expanded.write(lambda conn: stacks.fail_locked(conn, [late.id], INNER, NOW))
    assert stack_of(expanded, late.id).failure_cause == FailureCause(INNER)


def test_the_columns_are_filled_in_batches_while_daemons_run(
    expanded: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(expanded, *(a_resource(StackId(new_id()), number) for number in range(1, 8)))
    stack = stored(expanded)
    set_row(expanded, tables.stack, stack.id, status=Status.FAILED, reason=INNER)
    for number in range(1, 7):
        set_row(expanded, tables.resource, number, **FAILED, reason=ABORTED)
    set_row(expanded, tables.resource, 7, replaces=9, reinstated=None)
    migration = importlib.import_module("stoker.db.schema.migrations.versions.0005_contract")
    assert upgrade.script(revisions.NEWEST).move_batch is migration.move_batch
    monkeypatch.setattr(migration, "BATCH", 4)
    counts = []
    while count := expanded.write(migration.move_batch):
        counts.append(count)
        change(expanded, 7, status=Status.COMPLETE)  # Somebody works meanwhile.
    assert counts == [6, 2]
    # It fails for another reason before the schema is contracted: that counts.
    change(expanded, 1, **FAILED, reason="it is broken")
    upgrade.contract(expanded)
    assert [resource(expanded, n).was_cancelled for n in (1, 2)] == [False, True]


@pytest.mark.parametrize("reason", [*CAUSES, "", "Resource X", "Resource X failed: ", ": : : ", f"x {INNER}"])
def test_the_migration_reads_a_reason_as_the_code_does(reason: str) -> None:
    migration = upgrade.script("0005_contract")
    filled = tables.JsonText().process_result_value(migration.cause_of(reason), None)  # type: ignore[arg-type]
    assert FailureCause(**filled) == FailureCause(**legacy_reasons.cause_of(reason))


def test_traversals_that_are_tasks_are_moved_to_their_table(tmp_path: pathlib.Path) -> None:
    """A database of the release before the last one goes all the way."""
    database = Database(f"sqlite:///{tmp_path}/old.sqlite")
    upgrade.upgrade(database, "0004_expand")
    shared = "9, 'trv', 'stk', 7, 'finish', 'waiting', 3, 2, 0, 0, 0, 'own', '[]', '{}', '[]', 0"
    names = "id, traversal, stack_id, shard, kind, state, pending, held, attempt, retries_left, redelivered,"
    names += " standing, restricted, inputs, successors, stepped, reason, hook, hooks, waits_on, request"
    extra = """'why', 'abort', '{"clock":"counts"}', 'children', 'req-1'"""
    row = sa.text(f"INSERT INTO task ({names}) VALUES ({shared}, {extra})".replace(":", "\\:"))
    database.write(lambda conn: conn.execute(row))
    upgrade.upgrade(database)
    moved = database.read(lambda conn: traversals.get(conn, TraversalNumber(9)))
    assert moved is not None
    assert (moved.open_tasks, moved.held_tasks, moved.failure) == (3, 2, "why")
    assert (moved.state, moved.aborted, moved.request) == (TraversalState.RUNNING, True, "req-1")
    assert (moved.deadline_policy, moved.waits_for_paused_children) == ("counts", True)
    left = sa.select(sa.func.count()).select_from(tables.task)
    assert database.read(lambda conn: conn.execute(left).scalar()) == 0
    database.close()
