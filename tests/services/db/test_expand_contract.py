"""A change of the schema in two parts, made up: both releases work between them."""

import hashlib
import pathlib
import typing
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
import sqlalchemy as sa
from alembic.script import ScriptDirectory
from harness.next_release import EXPANDED, MIGRATIONS, NEWEST
from services.db.rows import NOW, a_resource, a_stack, claim_now
from stoker.db import conductors, resources, stacks
from stoker.db.conductors import ACTIVE, ConductorRecord
from stoker.db.engine import Database
from stoker.db.errors import RowLocked, WrongRevision
from stoker.db.ids import ResourceId, TaskId
from stoker.db.rows import Stack, Task
from stoker.db.schema import revisions, tables, upgrade
from stoker.db.schema.revisions import Fit, fit_of, place_of
from stoker.db.states import TaskKind, TaskState
from stoker.db.work import member_claims, tasks

VERSIONS = pathlib.Path(upgrade.__file__).parent / "migrations/versions"
FROZEN = {
    "0001_initial.py": "6f33b328bb99f9efe3bef91621da86b2759311565ca4084b9e9fea6ef170757c",
    "0002_expand.py": "e1119f46a5eb74e648603506412cdc1cf594fc512f813004595a8a1cdccff374",
    "0002_contract.py": "1b439690abdc48a645fa74e4644c0f463134a62b060960baf1fa2070ce3b930e",
}
"""Revisions that databases of releases were made with -> their hashes: they do not change any more."""
Names = Mapping[str, Mapping[str, typing.Any]]


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def fresh(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[Database]:
    """A database without tables."""
    sqlite = request.param == "sqlite"
    url = (
        f"sqlite:///{tmp_path}/fresh.sqlite"
        if sqlite
        else request.getfixturevalue(request.param).create_database()
    )
    database = Database(url)
    yield database
    database.close()


class Shape(typing.NamedTuple):
    """A schema as the database reports it: table -> name -> facts."""

    columns: Names
    indexes: Names
    uniques: Names


def shape(database: Database) -> Shape:
    inspector = sa.inspect(database.engine)
    names = [name for name in inspector.get_table_names() if name != "alembic_version"]
    return Shape(
        {t: {c["name"]: c for c in inspector.get_columns(t)} for t in names},
        {t: {str(i["name"]): i for i in inspector.get_indexes(t)} for t in names},
        {t: {str(u["name"]): u for u in inspector.get_unique_constraints(t)} for t in names},
    )


def breaches(old: Shape, new: Shape) -> list[str]:
    """Why code for the old schema might not work on the new one."""
    messages = []
    for table, columns in old.columns.items():
        if table not in new.columns:
            messages.append(f"table {table} is gone")
            continue
        for name, column in columns.items():
            messages += [f"{table}.{name} {why}" for why in changed(column, new.columns[table].get(name))]
        for name, column in new.columns[table].items():
            if name not in columns and not column["nullable"] and column["default"] is None:
                messages.append(f"{table}.{name} is new, and must be given")
        for kind in ("indexes", "uniques"):
            before = getattr(old, kind)[table]
            after = getattr(new, kind)[table]
            messages += [f"{table}: {name} is gone" for name in before if name not in after]
            forbids = [n for n in after if n not in before and after[n].get("unique", kind == "uniques")]
            messages += [f"{table}: {name} forbids what was allowed" for name in forbids]
    return messages


def changed(old: Mapping[str, typing.Any], new: Mapping[str, typing.Any] | None) -> Iterator[str]:
    if new is None:
        yield "is gone"
        return
    if str(old["type"]) != str(new["type"]):
        yield f"is {new['type']}, it was {old['type']}"
    if old["nullable"] and not new["nullable"]:
        yield "must be given"
    if old["default"] is not None and old["default"] != new["default"]:
        yield "has another default"


def chain(migrations: upgrade.Migrations) -> list[tuple[str, str | None]]:
    """Each revision with the one before it."""
    scripts = ScriptDirectory.from_config(migrations.config()).walk_revisions()
    return [(script.revision, typing.cast(str | None, script.down_revision)) for script in scripts][::-1]


@pytest.mark.parametrize("migrations", [upgrade.OWN, MIGRATIONS])
def test_the_revisions_are_in_one_row_and_each_number_has_both_parts(
    migrations: upgrade.Migrations,
) -> None:
    numbers = range(2, migrations.number + 1)
    names = ["0001", *(name for n in numbers for name in (revisions.expanded(n), revisions.newest(n)))]
    assert chain(migrations) == list(zip(names, [None, *names], strict=False))
    assert sorted(names, key=place_of) == names


@pytest.mark.parametrize("name", FROZEN)
def test_what_databases_were_made_with_does_not_change(name: str) -> None:
    assert hashlib.sha256((VERSIONS / name).read_bytes()).hexdigest() == FROZEN[name]


@pytest.mark.parametrize("number", range(2, MIGRATIONS.number + 1))
def test_what_expands_only_adds_and_what_contracts_takes_away(fresh: Database, number: int) -> None:
    upgrade.upgrade(fresh, revisions.newest(number - 1), migrations=MIGRATIONS)
    old = shape(fresh)
    upgrade.upgrade(fresh, revisions.expanded(number), migrations=MIGRATIONS)
    expanded = shape(fresh)
    assert breaches(old, expanded) == []
    upgrade.upgrade(fresh, revisions.newest(number), migrations=MIGRATIONS)
    contracted = shape(fresh)
    # So that the code that works on one of them works on the other: what it does not give need not be given.
    for table, columns in expanded.columns.items():
        removed = {name: column for name, column in columns.items() if name not in contracted.columns[table]}
        assert all(column["nullable"] or column["default"] is not None for column in removed.values())
        assert not set(contracted.columns[table]) - set(columns)


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("DROP TABLE stack_tag", "table stack_tag is gone"),
        ("ALTER TABLE task DROP COLUMN request", "task.request is gone"),
        ("ALTER TABLE task ADD COLUMN more INTEGER DEFAULT 1 NOT NULL", None),
        ("ALTER TABLE task ADD COLUMN more INTEGER", None),
        ("DROP INDEX ix_task_due", "task: ix_task_due is gone"),
        ("CREATE INDEX ix_task_more ON task (kind)", None),
        ("CREATE UNIQUE INDEX ix_task_more ON task (due_at)", "task: ix_task_more forbids what was allowed"),
    ],
)
def test_a_breach_of_the_rule_would_be_seen(tmp_path: pathlib.Path, statement: str, why: str | None) -> None:
    database = Database(f"sqlite:///{tmp_path}/one.sqlite")
    upgrade.upgrade(database)
    old = shape(database)
    database.write(lambda conn: conn.exec_driver_sql(statement))
    assert breaches(old, shape(database)) == ([] if why is None else [why])
    database.close()


def test_a_column_that_must_be_given_is_a_breach() -> None:
    column = {"type": "INTEGER", "nullable": True, "default": None}
    required = {**column, "nullable": False}

    def shape(**columns: typing.Any) -> Shape:
        return Shape({"t": columns}, {"t": {}}, {"t": {}})

    assert breaches(shape(), shape(a=required)) == ["t.a is new, and must be given"]
    assert breaches(shape(a=column), shape(a=required)) == ["t.a must be given"]
    assert breaches(shape(a=required), shape(a=column)) == []
    assert breaches(shape(a=column), shape(a={**column, "type": "TEXT"})) == ["t.a is TEXT, it was INTEGER"]
    assert breaches(shape(a={**column, "default": "1"}), shape(a=column)) == ["t.a has another default"]


def a_task(stack: Stack, number: int) -> Task:
    """That is ready, for the resource of the same number."""
    return Task(
        id=TaskId(number),
        traversal=stack.traversal,
        stack_id=stack.id,
        kind=TaskKind.CREATE,
        state=TaskState.READY,
        pending=0,
        shard=stack.shard,
        resource_id=ResourceId(number),
        due_at=NOW,
    )


def reported(host: str) -> ConductorRecord:
    return ConductorRecord(host, f"{host}/1", ACTIVE, started_at=NOW, heartbeat_at=NOW)


def report_new(database: Database, host: str) -> None:
    """Insert a row as the next release does: with its column, and without the one that goes."""
    row = {name: value for name, value in vars(reported(host)).items() if name != "clock_ahead"}
    table = sa.table("conductor", *(sa.column(name) for name in (*row, "zone")))
    database.write(lambda conn: conn.execute(sa.insert(table), {**row, "zone": "a"}))


def store_and_claim(database: Database, number: int) -> None:
    """Store work, and claim it, by the code of this release."""
    stack = a_stack()

    def begin(conn: sa.Connection) -> None:
        stacks.insert(conn, stack)
        resources.insert_many(conn, [a_resource(stack.id, number)])
        tasks.insert_many(conn, [replace(a_task(stack, number), request="req-1")])

    database.write(begin)
    claimed = database.write(lambda conn: claim_now(conn, [TaskId(number)]))
    [claimed_attempt] = [(c.task.id, c.task.attempt) for c in claimed.claims]
    database.write(lambda conn: member_claims.release(conn, [claimed_attempt], now=NOW))
    task = database.read(lambda conn: tasks.get(conn, claimed_attempt[0]))
    assert task is not None
    assert (task.state, task.request) == (TaskState.READY, "req-1")


def zones(database: Database) -> list[tuple[str, str | None]]:
    query = sa.text("SELECT host, zone FROM conductor ORDER BY host")
    return database.read(lambda conn: [tuple(row) for row in conn.execute(query)])


def test_a_database_with_rows_goes_all_the_way_with_both_releases_at_work(fresh: Database) -> None:
    upgrade.sync(fresh)
    for host in ("a", "b", "c"):
        fresh.write(lambda conn, host=host: conductors.report(conn, reported(host)))
    store_and_claim(fresh, 1)
    upgrade.expand(fresh, MIGRATIONS)
    assert fit_of(fresh.read(revisions.current)) == Fit.AHEAD
    assert MIGRATIONS.fit_of(EXPANDED) == Fit.EXPANDED
    store_and_claim(fresh, 2)
    report_new(fresh, "d")
    fresh.write(lambda conn: conductors.report(conn, reported("d")))
    fresh.write(lambda conn: conductors.report(conn, reported("e")))
    moved: list[tuple[str, int]] = []
    upgrade.contract(fresh, lambda name, rows: moved.append((name, rows)), MIGRATIONS)
    assert moved == [(NEWEST, 2), (NEWEST, 4)]
    upgrade.contract(fresh, migrations=MIGRATIONS)
    assert fresh.read(revisions.current) == NEWEST
    assert "clock_ahead" not in shape(fresh).columns["conductor"]
    report_new(fresh, "f")
    assert zones(fresh) == [
        ("a", "none"),
        ("b", "none"),
        ("c", "none"),
        ("d", "a"),
        ("e", "none"),
        ("f", "a"),
    ]


@pytest.mark.parametrize("revision", [None, "0001", EXPANDED, NEWEST])
def test_a_database_of_any_revision_is_brought_to_the_newest(fresh: Database, revision: str | None) -> None:
    if revision is not None:
        upgrade.upgrade(fresh, revision, migrations=MIGRATIONS)
    upgrade.sync(fresh, migrations=MIGRATIONS)
    assert fresh.read(revisions.current) == NEWEST


def test_what_has_to_come_first_is_named(fresh: Database) -> None:
    with pytest.raises(WrongRevision, match="at no version: first it has to be expanded"):
        upgrade.contract(fresh)
    upgrade.sync(fresh)
    with pytest.raises(WrongRevision, match=f"at {revisions.NEWEST}: first it has to be expanded"):
        upgrade.contract(fresh, migrations=MIGRATIONS)
    upgrade.expand(fresh, MIGRATIONS)
    upgrade.expand(fresh, MIGRATIONS)
    assert fresh.read(revisions.current) == EXPANDED
    upgrade.sync(fresh, migrations=MIGRATIONS)
    upgrade.expand(fresh, MIGRATIONS)
    assert fresh.read(revisions.current) == NEWEST


@pytest.mark.parametrize("unknown", ["0008_contract", "0003_expand", "0001_expand", "0002", "something else"])
def test_a_revision_that_this_release_does_not_know_is_named_with_what_to_do(
    tmp_path: pathlib.Path, unknown: str
) -> None:
    database = Database(f"sqlite:///{tmp_path}/one.sqlite")
    upgrade.sync(database)
    stamp = sa.text("UPDATE alembic_version SET version_num = :unknown")
    database.write(lambda conn: conn.execute(stamp, {"unknown": unknown}))
    message = (
        f"at {unknown}, this release knows {revisions.NEWEST} at the most: use the release that has migrated"
    )
    for bring in (upgrade.expand, upgrade.contract, upgrade.sync):
        with pytest.raises(WrongRevision, match=message):
            bring(database)
    database.close()


def test_a_release_expands_nothing_over_what_an_older_one_has_left_to_contract(
    tmp_path: pathlib.Path,
) -> None:
    database = Database(f"sqlite:///{tmp_path}/one.sqlite")
    later = replace(MIGRATIONS, number=MIGRATIONS.number + 1)
    upgrade.expand(database, MIGRATIONS)
    with pytest.raises(WrongRevision, match=f"at {EXPANDED}: first it has to be contracted"):
        upgrade.expand(database, later)
    upgrade.contract(database, migrations=later)
    assert database.read(revisions.current) == NEWEST
    database.close()


def test_code_works_on_its_own_number_and_on_what_the_next_one_has_added() -> None:
    fits = {"0008_expand": Fit.EXPANDED, "0008_contract": Fit.EXACT, "0009_expand": Fit.AHEAD}
    newer = {"0009_contract": Fit.NEW, "0010_expand": Fit.NEW, "x": Fit.NEW}
    wrong = {None: Fit.NONE, "0001": Fit.OLD, "0007_contract": Fit.OLD, **newer}
    for name, fit in {**fits, **wrong}.items():
        assert fit_of(name, 8) == fit
        assert fit.works == (name in fits)
    first = {"0001": Fit.EXACT, "0002_expand": Fit.AHEAD, "0002_contract": Fit.NEW, "0001_expand": Fit.NEW}
    assert {name: fit_of(name, 1) for name in first} == first


def test_who_uses_a_table_waits_only_briefly_behind_a_migration_of_it(
    fresh: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    if fresh.dialect == "sqlite":
        return  # A reader locks nothing there.
    upgrade.upgrade(fresh, revisions.expanded(2))
    monkeypatch.setattr(upgrade, "LONGEST_WAIT", 0.0)
    with fresh.engine.connect() as backup:
        backup.execute(sa.select(tables.task.c.id)).all()
        with pytest.raises(RowLocked):
            upgrade.contract(fresh)
        fresh.write(lambda conn: conn.execute(sa.delete(tables.task)))
    upgrade.contract(fresh)
    assert fresh.read(revisions.current) == revisions.NEWEST
