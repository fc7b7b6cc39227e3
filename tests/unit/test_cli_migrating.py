"""Which conductors keep `db sync --contract` from taking away what they need."""

import pathlib
import time

import pytest
import sqlalchemy as sa
from stoker.cli.commands.base import AdminError
from stoker.cli.commands.database import migrate, outdated
from stoker.db import conductors
from stoker.db.conductors import ACTIVE, ConductorRecord
from stoker.db.engine import Database
from stoker.db.schema import revisions, tables, upgrade
from stoker.rpc.contract import VERSION


@pytest.fixture
def database(tmp_path: pathlib.Path) -> Database:
    made = Database(f"sqlite:///{tmp_path}/one.sqlite")
    upgrade.upgrade(made, revisions.EXPANDED)
    return made


def report(database: Database, host: str, incarnation: str, number: int | None) -> None:
    """As a conductor does; where the number is None, one of a release that leaves the columns alone."""
    row = ConductorRecord(
        host,
        f"{host}/{incarnation}",
        ACTIVE,
        started_at=0.0,
        heartbeat_at=time.time(),
        rpc_version=VERSION,
        schema_number=number,
        schema_member=f"{host}/{incarnation}",
    )
    if number is not None:
        database.write(lambda conn: conductors.report(conn, row))
        return
    c = tables.conductor
    values = {name: value for name, value in vars(row).items() if not name.startswith("schema_")}

    def store(conn: sa.Connection) -> None:
        if not conn.execute(sa.update(c).where(c.c.host == host).values(values)).rowcount:
            conn.execute(sa.insert(c).values(values))

    database.write(store)


def test_a_conductor_of_an_older_schema_is_found_though_its_messages_are_the_same(
    database: Database,
) -> None:
    report(database, "silent", "a", None)
    report(database, "old", "a", revisions.NUMBER - 1)
    report(database, "new", "a", revisions.NUMBER)
    assert outdated(database) == ["old", "silent"]
    with pytest.raises(AdminError, match="conductors of an older release run: old, silent;"):
        migrate(database, expand=False, contract=True)
    assert database.read(revisions.current) == revisions.EXPANDED


def test_a_number_counts_only_for_the_incarnation_that_reported_it(database: Database) -> None:
    report(database, "one", "a", revisions.NUMBER)
    assert outdated(database) == []
    report(database, "one", "b", None)
    assert outdated(database) == ["one"]
    report(database, "one", "c", revisions.NUMBER)
    migrate(database, expand=False, contract=True)
    assert database.read(revisions.current) == revisions.NEWEST
