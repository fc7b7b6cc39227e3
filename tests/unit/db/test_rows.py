"""The modules of db/ that pure code imports come without SQLAlchemy."""

import subprocess
import sys

import pytest

BLOCKED = """
import sys
sys.modules["sqlalchemy"] = None
import importlib
importlib.import_module(sys.argv[1])
"""
PURE = ["stoker.db.rows", "stoker.db.states", "stoker.db.ids", "stoker.db.work.breakpoint_rules"]


def imports(module: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BLOCKED, module], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("module", PURE)
def test_values_of_rows_come_without_sqlalchemy(module: str) -> None:
    done = imports(module)
    assert done.returncode == 0, done.stderr


def test_an_import_of_sqlalchemy_would_be_seen() -> None:
    assert "sqlalchemy" in imports("stoker.db.resources").stderr
