"""A statement of a program that reaches a thing by an id alone fails the test that has sent the request."""

import pathlib

import pytest
from harness.owned_statements import WATCHED, ReportedOffences
from harness.programs import run

READER = """
import sqlalchemy as sa
from stoker.db.schema import tables

with sa.create_engine("sqlite://").connect() as conn:
    tables.stack.create(conn)
    conn.execute(sa.select(tables.stack.c.name).where(tables.stack.c.id == "x", {more}))
"""


def _ended(tmp_path: pathlib.Path, more: str) -> ReportedOffences:
    script = tmp_path / "reader"
    script.write_text(READER.format(more=more))
    ended = run([script], env={WATCHED: "1"})
    assert ended.returncode == 0, ended.stderr
    log = tmp_path / "log"
    log.write_text(ended.stderr)
    return ReportedOffences(log)


def test_an_offence_of_a_program_is_seen_with_its_statement_and_once(tmp_path: pathlib.Path) -> None:
    offences = _ended(tmp_path, "sa.true()")
    with pytest.raises(AssertionError, match=r"stack\.id by nobody: SELECT stack\.name FROM stack"):
        offences.check()
    offences.check()


def test_a_statement_with_an_owner_is_none(tmp_path: pathlib.Path) -> None:
    _ended(tmp_path, "tables.stack.c.project_id == 'p'").check()
