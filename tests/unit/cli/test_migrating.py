"""Which conductors keep `db sync --contract` from taking away what they need."""

import pathlib
import time

import pytest
import sqlalchemy as sa
from harness.next_release import EXPANDED, MIGRATIONS, NEWEST, NUMBER
from stoker.cli.commands.base import AdminError
from stoker.cli.commands.database import migrate, outdated
from stoker.db import conductors
from stoker.db.conductors import ACTIVE, ConductorRecord
from stoker.db.engine import Database
from stoker.db.schema import revisions, tables, upgrade
from stoker.rpc.contract import VERSION


@pytest.fixture
def database(tmp_path: pathlib.Path) -> Database:
    """A database of this release; see `MIGRATIONS` for the next one."""
    fresh = Database(f"sqlite:///{tmp_path}/one.sqlite")
    upgrade.sync(fresh)
    return fresh


def report(database: Database, host: str, number: int, *, state: str = ACTIVE, ago: float = 0.0) -> None:
    row = ConductorRecord(
        host,
        f"{host}/a",
        state,
        started_at=0.0,
        heartbeat_at=time.time() - ago,
        rpc_version=VERSION,
        schema_number=number,
    )
    database.write(lambda conn: conductors.report(conn, row))


def test_a_conductor_of_an_older_schema_is_found_though_its_messages_are_the_same(
    database: Database,
) -> None:
    report(database, "old", NUMBER - 1)
    report(database, "new", NUMBER)
    report(database, "ended", NUMBER - 1, state=conductors.STOPPED)
    report(database, "gone", NUMBER - 1, ago=2 * conductors.FORGOTTEN_AFTER)
    assert outdated(database, NUMBER) == ["old"]
    assert outdated(database) == []
    migrate(database, expand=True, contract=False, migrations=MIGRATIONS)
    with pytest.raises(AdminError, match="conductors of an older release run: old;"):
        migrate(database, expand=False, contract=True, migrations=MIGRATIONS)
    assert database.read(revisions.current) == EXPANDED
    report(database, "old", NUMBER)
    migrate(database, expand=False, contract=True, migrations=MIGRATIONS)
    assert database.read(revisions.current) == NEWEST


def test_columns_that_a_migration_adds_are_not_read_before_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The code of the next release has a column that the database lacks."""
    report(database, "old", NUMBER - 1)
    conductor = tables.conductor.to_metadata(sa.MetaData())
    conductor.append_column(sa.Column("zone", sa.String(64)))
    monkeypatch.setattr(tables, "conductor", conductor)
    with pytest.raises(sa.exc.OperationalError, match="zone"):
        database.read(conductors.list_all)
    for contract in (False, True):
        with pytest.raises(AdminError, match="conductors of an older release run: old;"):
            migrate(database, expand=False, contract=contract, migrations=MIGRATIONS)
    database.write(lambda conn: conn.execute(sa.delete(conductor)))
    migrate(database, expand=False, contract=False, migrations=MIGRATIONS)
    assert database.read(revisions.current) == NEWEST
