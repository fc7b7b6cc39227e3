"""What expands the schema only adds, so that the release before works on; what contracts it comes last."""

import ast
import hashlib
import pathlib
import typing
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from services.db.rows import NOW, A, a_resource, a_stack
from stoker.db import conductors, resources, stacks
from stoker.db.conductors import ACTIVE, ConductorRecord
from stoker.db.engine import Database
from stoker.db.errors import WrongRevision
from stoker.db.ids import ResourceId, TaskId
from stoker.db.rows import Stack, Task
from stoker.db.schema import revisions, tables, upgrade
from stoker.db.schema.revisions import Fit, fit_of, place_of
from stoker.db.states import TaskKind, TaskState
from stoker.db.work import member_claims, tasks
from stoker.db.work.claim import claim

VERSIONS = pathlib.Path(upgrade.__file__).parent / "migrations/versions"
FROZEN = {
    "0001_initial.py": "c7974767a09c186cc91b50b67c8e3487134a4abb3da1af28858edb4da8aa2321",
    "0002_expand.py": "47c6175bb3f3a4521a51e01b42f63e947e4be7ef898006a8422777785bdfd021",
    "0002_contract.py": "b14c337c1752f2e05a202f572f1390776103b8a03f34cd6e0b8009cc5797a44a",
    "0003_expand.py": "2ce7073b5028064aebe97bbd5cfe414c5c5382060a9453082d9ab180b4ebbc29",
    "0003_contract.py": "3192e2a856ad1275eef6cce6f67b734ced7abeab92f5cc200c1b353396c51e98",
    "0004_expand.py": "d6c587e4e8c52eb95adffb4d25ae5adbf3de20703a9926f38f75576e5c2e37e6",
    "0004_contract.py": "4283181483a0185a2d8b1dc8bfff560cd9a6bc79909558dab7ce680d20083d5b",
    "0005_expand.py": "3aeabd61ce0eeff4aabadda028d2674d00e9b4668e8c7e78ccdaaab390f8c034",
    "0005_contract.py": "4bde6914b9bbbb4ff7e0af938446edf65ee0f302fb458f4ac8ff51f31a7e4813",
    "0006_expand.py": "05c5b9a23b8a89710f409a5c0e8e1c4774ee45e9851b37d72a7f8f015a8cf57f",
    "0006_contract.py": "e7dd6fe4637151fe0a91a51b24ad2a3f109e7cb4e3c94fe96cb3a4d7011cd55e",
    "0007_expand.py": "c437b6e733d323e215dd2494758d258e18029e7f34cf9b9f14a70a255fc0c6c4",
    "0007_contract.py": "c8665a9f40df773ed60d461195d236a6eb213b7bc1f9e9f3783d8312f0f2813c",
}
"""What databases were made with does not change any more."""
BEFORE = f"{revisions.NUMBER - 1:04}_contract"
"""Where the release before has left a database."""
CHAIN = sorted((path.stem.removesuffix("_initial") for path in VERSIONS.glob("0*.py")), key=place_of)
FACTS = {"compare_type": True, "compare_server_default": True}
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
    """A schema as the database tells it: table -> name -> facts."""

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
    found = []
    for table, columns in old.columns.items():
        if table not in new.columns:
            found.append(f"table {table} is gone")
            continue
        for name, column in columns.items():
            found += [f"{table}.{name} {why}" for why in changed(column, new.columns[table].get(name))]
        for name, column in new.columns[table].items():
            if name not in columns and not column["nullable"] and column["default"] is None:
                found.append(f"{table}.{name} is new, and must be given")
        for kind in ("indexes", "uniques"):
            before, after = getattr(old, kind)[table], getattr(new, kind)[table]
            found += [f"{table}: {name} is gone" for name in before if name not in after]
            forbids = [n for n in after if n not in before and after[n].get("unique", kind == "uniques")]
            found += [f"{table}: {name} forbids what was allowed" for name in forbids]
    return found


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


def test_the_revisions_stand_in_one_row_and_each_number_has_both_parts() -> None:
    numbers = range(2, revisions.NUMBER + 1)
    assert ["0001", *(f"{n:04}_{part}" for n in numbers for part in ("expand", "contract"))] == CHAIN
    assert CHAIN[-2:] == [revisions.EXPANDED, revisions.NEWEST]
    before: str | None = None
    for path in sorted(VERSIONS.glob("0*.py"), key=lambda path: place_of(path.stem.removesuffix("_initial"))):
        values = {
            node.targets[0].id: ast.literal_eval(node.value)
            for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id in ("revision", "down_revision")
        }
        assert values["down_revision"] == before
        before = values["revision"]
    assert before == revisions.NEWEST


@pytest.mark.parametrize("name", FROZEN)
def test_what_databases_were_made_with_does_not_change(name: str) -> None:
    assert hashlib.sha256((VERSIONS / name).read_bytes()).hexdigest() == FROZEN[name]


@pytest.mark.parametrize("number", range(2, revisions.NUMBER + 1))
def test_what_expands_only_adds_and_what_contracts_takes_away(fresh: Database, number: int) -> None:
    upgrade.upgrade(fresh, CHAIN[CHAIN.index(f"{number:04}_expand") - 1])
    old = shape(fresh)
    upgrade.upgrade(fresh, f"{number:04}_expand")
    expanded = shape(fresh)
    assert breaches(old, expanded) == []
    upgrade.upgrade(fresh, f"{number:04}_contract")
    contracted = shape(fresh)
    # So that the code that works on one of them works on the other: what it does not give need not be given.
    for table, columns in expanded.columns.items():
        gone = {name: column for name, column in columns.items() if name not in contracted.columns[table]}
        assert all(column["nullable"] or column["default"] is not None for column in gone.values())
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
    given = {**column, "nullable": False}

    def one(**columns: typing.Any) -> Shape:
        return Shape({"t": columns}, {"t": {}}, {"t": {}})

    assert breaches(one(), one(a=given)) == ["t.a is new, and must be given"]
    assert breaches(one(a=column), one(a=given)) == ["t.a must be given"]
    assert breaches(one(a=given), one(a=column)) == []
    assert breaches(one(a=column), one(a={**column, "type": "TEXT"})) == ["t.a is TEXT, it was INTEGER"]
    assert breaches(one(a={**column, "default": "1"}), one(a=column)) == ["t.a has another default"]


def rows_of(database: Database) -> dict[str, list[dict[str, typing.Any]]]:
    """Everything that is stored."""
    found = sa.MetaData()
    with database.engine.connect() as conn:
        found.reflect(conn)
        names = [name for name in found.tables if name != "alembic_version"]
        return {
            name: [dict(row) for row in conn.execute(sa.select(found.tables[name])).mappings()]
            for name in names
        }


def old_release(database: Database) -> sa.MetaData:
    """The tables as the code of the release before knows them."""
    found = sa.MetaData()
    with database.engine.connect() as conn:
        found.reflect(conn)
    return found


def store_old(database: Database, old: sa.MetaData, host: str, first_id: int) -> None:
    """As the code of the release before does: every column is given, and no other."""
    stack = a_stack()
    resource = a_resource(stack.id, first_id)
    task = a_task(stack, first_id)
    known = old.tables["conductor"].columns.keys()
    reporting = {name: value for name, value in vars(reported(host)).items() if name in known}

    def store(conn: sa.Connection) -> None:
        for table, value in ((tables.stack, stack), (tables.resource, resource), (tables.task, task)):
            # Values in JSON are written by the tables of ours; the names of the columns are the old ones.
            names = old.tables[table.name].columns.keys()
            types = {"held": sa.Integer(), "reason": sa.Text(), **{c.name: c.type for c in table.c}}
            one = sa.Table(table.name, sa.MetaData(), *(sa.Column(name, types[name]) for name in names))
            given = {"held": 0, "reason": None, **vars(value)}
            given["tenant"] = given.get("project_id")
            conn.execute(sa.insert(one), {name: given[name] for name in names})
        conn.execute(sa.insert(old.tables["conductor"]), reporting)

    database.write(store)


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


def test_a_database_with_rows_goes_all_the_way_with_both_releases_at_work(fresh: Database) -> None:
    upgrade.upgrade(fresh, BEFORE)
    old = old_release(fresh)
    store_old(fresh, old, "a", 1)
    before = rows_of(fresh)
    upgrade.expand(fresh)
    assert fit_of(fresh.read(revisions.current)) == Fit.EXPANDED
    after = rows_of(fresh)
    added = ["event_delivery", "event_sink"]
    assert [after.pop(table) for table in added] == [[]] * len(added)
    assert [row.pop("has_sinks") for row in after["stack"]] == [None]
    assert after == before

    store_old(fresh, old, "b", 2)
    stack = a_stack()
    task = replace(a_task(stack, 3), request="req-1")

    def store_new(conn: sa.Connection) -> None:
        stacks.insert(conn, stack)
        resources.insert_many(conn, [a_resource(stack.id, 3)])
        tasks.insert_many(conn, [task])
        conductors.report(conn, reported("b"))
        conductors.report(conn, reported("c"))

    fresh.write(store_new)
    assert [c.host for c in fresh.read(conductors.list_all)] == ["a", "b", "c"]
    work_on(fresh)
    upgrade.contract(fresh)
    upgrade.contract(fresh)
    assert fit_of(fresh.read(revisions.current)) == Fit.EXACT
    assert [c.host for c in fresh.read(conductors.list_all)] == ["a", "b", "c"]
    with fresh.engine.connect() as conn:
        assert compare_metadata(MigrationContext.configure(conn, opts=FACTS), tables.metadata) == []
    work_on(fresh)


def work_on(database: Database) -> None:
    """Claim all there is, by the code of this release; whatever release has made it."""
    found = database.write(lambda conn: claim(conn, [1, 2, 3], who=A, now=NOW))  # type: ignore[list-item]
    assert [c.task.request for c in found.claims] == [None, None, "req-1"]
    ids = [(c.task.id, c.task.attempt) for c in found.claims]
    database.write(lambda conn: member_claims.release(conn, ids, now=NOW))
    states = database.read(lambda conn: [tasks.get(conn, task_id) for task_id, _ in ids])
    assert {task.state for task in states if task} == {TaskState.READY}


def test_what_comes_first_is_told(fresh: Database) -> None:
    with pytest.raises(WrongRevision, match="at no version: first it has to be expanded"):
        upgrade.contract(fresh)
    upgrade.upgrade(fresh, BEFORE)
    with pytest.raises(WrongRevision, match=f"at {BEFORE}: first it has to be expanded"):
        upgrade.contract(fresh)
    upgrade.expand(fresh)
    upgrade.expand(fresh)
    assert fresh.read(revisions.current) == revisions.EXPANDED
    upgrade.sync(fresh)
    upgrade.expand(fresh)
    assert fresh.read(revisions.current) == revisions.NEWEST
    for newer in ("0009_expand", "0010_contract", "something else"):
        stamp = sa.text("UPDATE alembic_version SET version_num = :newer")
        fresh.write(lambda conn: conn.execute(stamp, {"newer": newer}))  # noqa: B023
        for bring in (upgrade.expand, upgrade.contract, upgrade.sync):
            with pytest.raises(WrongRevision, match=f"at {newer}, this release knows {revisions.NEWEST}"):
                bring(fresh)


def test_a_release_expands_nothing_over_what_an_older_one_has_left_to_contract(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(f"sqlite:///{tmp_path}/one.sqlite")
    upgrade.expand(database)
    monkeypatch.setattr(upgrade, "EXPANDED", "0009_expand")
    with pytest.raises(WrongRevision, match="at 0008_expand: first it has to be contracted"):
        upgrade.expand(database)
    upgrade.contract(database)
    assert database.read(revisions.current) == "0008_contract"
    database.close()


def test_code_works_on_its_own_number_and_on_what_the_next_one_has_added() -> None:
    fits = {"0008_expand": Fit.EXPANDED, "0008_contract": Fit.EXACT, "0009_expand": Fit.AHEAD}
    newer = {"0009_contract": Fit.NEW, "0010_expand": Fit.NEW, "x": Fit.NEW}
    wrong = {None: Fit.NONE, "0001": Fit.OLD, "0004_contract": Fit.OLD, **newer}
    for name, fit in {**fits, **wrong}.items():
        assert fit_of(name) == fit
        assert fit.works == (name in fits)
