"""`stoker-manage db recount` lists the counters that were wrong, and says where none was."""

import argparse
import io
import pathlib
import types
import typing

import pytest
import sqlalchemy as sa
from services.db.rows import a_stack, store
from stoker.cli.commands import recount
from stoker.db.engine import Database
from stoker.db.schema import tables, upgrade


@pytest.fixture
def database(tmp_path: pathlib.Path) -> typing.Iterator[Database]:
    database = Database(f"sqlite:///{tmp_path / 's.sqlite'}")
    upgrade.upgrade(database)
    yield database
    database.close()


def test_an_empty_list_is_distinguished_from_a_command_that_did_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recount, "session_of", lambda *_, **__: types.SimpleNamespace(database=database))
    store(database, a_stack())
    database.write(lambda conn: conn.execute(sa.update(tables.project).values(stacks=9)))
    told = io.StringIO()
    command = recount.DbRecount(types.SimpleNamespace(stderr=told), argparse.Namespace())

    def counters(*, dry_run: bool) -> list[tuple[str, int, int]]:
        _, rows = command.take_action(argparse.Namespace(project=[], dry_run=dry_run))
        return [row[1:] for row in rows]

    for dry_run in (True, False):
        assert ("stacks", 9, 1) in counters(dry_run=dry_run)
    assert told.getvalue() == ""
    assert counters(dry_run=False) == []
    assert told.getvalue() == "no counter is wrong\n"
