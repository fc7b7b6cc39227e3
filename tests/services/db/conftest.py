"""The database of a test: empty, upgraded, on each of the three servers in turn."""

import pathlib
import typing
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from stoker.db.connections import DatabaseLimits
from stoker.db.engine import Database
from stoker.db.schema import tables, upgrade

PATIENT = DatabaseLimits(lock=30.0, statement=60.0, idle=120.0, pool=60.0, retry=120.0, busy=300.0)
"""Threads wait for each other longer than by default where the host pauses for seconds."""


@pytest.fixture(scope="module", params=["sqlite", "postgresql", "mariadb"])
def upgraded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """One database for a module's tests on one server."""
    kind: str = request.param
    if kind == "sqlite":
        directory: pathlib.Path = tmp_path_factory.mktemp("sqlite")
        url = f"sqlite:///{directory / 'stoker.sqlite'}"
    else:
        server: typing.Any = request.getfixturevalue(kind)
        url = server.create_database()
    database = Database(url, pool_size=20, limits=PATIENT)
    upgrade.upgrade(database)
    yield database
    database.close()


@pytest.fixture
def database(upgraded: Database) -> Database:
    """Without rows, but for the sequence of ids."""

    def clear(conn: sa.Connection) -> None:
        for table in tables.metadata.tables.values():
            if table is not tables.sequence:
                conn.execute(sa.delete(table))

    upgraded.write(clear)
    return upgraded
