"""The database of a test: empty, upgraded, on each of the three servers in turn."""

import pathlib
import sqlite3
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from harness.lock_order import LockWatch
from harness.mariadb import MariaDB
from harness.postgresql import PostgreSQL
from services.db import servers
from services.db.bystander import Bystander
from stoker.db.connections import DatabaseLimits
from stoker.db.engine import Database
from stoker.db.schema import tables, upgrade

PATIENT = DatabaseLimits(lock=30.0, statement=60.0, idle=120.0, pool=60.0, retry=120.0, busy=300.0)
"""Threads wait for each other longer than by default where the host pauses for seconds."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test on the servers of its file, unless the test names its own."""
    has_own_schema = any(
        "upgraded" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")
    )
    if "upgraded" in metafunc.fixturenames and not has_own_schema:
        file = metafunc.definition.path.stem
        metafunc.parametrize("upgraded", servers.parameters(file), indirect=True, scope="module")


def _upgraded(url: str) -> Iterator[Database]:
    database = Database(url, pool_size=20, limits=PATIENT)
    upgrade.upgrade(database)
    if database.dialect == "sqlite":
        sa.event.listen(database.engine, "connect", _reverse)
        database.engine.dispose()
    yield database
    database.close()


def _reverse(connection: sqlite3.Connection, _: object) -> None:
    """Let SQLite return rows the other way round where a query does not say their order."""
    connection.execute("PRAGMA reverse_unordered_selects = ON")


@pytest.fixture(scope="session")
def on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    directory: pathlib.Path = tmp_path_factory.mktemp("sqlite")
    yield from _upgraded(f"sqlite:///{directory / 'stoker.sqlite'}")


@pytest.fixture(scope="session")
def on_postgresql(postgresql: PostgreSQL) -> Iterator[Database]:
    yield from _upgraded(postgresql.create_database())


@pytest.fixture(scope="session")
def on_mariadb(mariadb: MariaDB) -> Iterator[Database]:
    yield from _upgraded(mariadb.create_database())


@pytest.fixture(scope="module")
def upgraded(request: pytest.FixtureRequest) -> Database:
    """The database on one server, without the rows of the modules before."""
    database: Database = request.getfixturevalue(f"on_{request.param}")
    _clear(database)
    return database


@pytest.fixture
def database(upgraded: Database) -> Database:
    """Without rows."""
    _clear(upgraded)
    return upgraded


@pytest.fixture(scope="session")
def locks() -> Iterator[LockWatch]:
    """All locks of this process are watched."""
    with LockWatch() as watch:
        yield watch


@pytest.fixture(autouse=True)
def rows_are_locked_in_the_order_of_their_ids(locks: LockWatch) -> Iterator[None]:
    """Fail a test in which two transactions could wait for each other."""
    locks.offences.clear()
    yield
    assert sorted(locks.offences) == []


@pytest.fixture
def bystander(database: Database) -> Iterator[None]:
    """Fail a test that changes rows of another project's stack, which is in the middle of everything."""
    stack = Bystander(database)
    yield
    stack.check()


WITH_ROWS = sa.union_all(
    *(
        sa.select(sa.literal(table.name)).where(sa.exists().select_from(table))
        for table in tables.metadata.tables.values()
    )
)


def _clear(database: Database) -> None:
    def clear(conn: sa.Connection) -> None:
        for name in conn.execute(WITH_ROWS).scalars().all():
            conn.execute(sa.delete(tables.metadata.tables[name]))

    database.write(clear)
