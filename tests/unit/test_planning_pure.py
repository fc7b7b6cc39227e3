"""Planning computes only: each of its modules can be imported where there is no database and no network."""

import pathlib
import pkgutil
import subprocess
import sys

import pytest
import stoker.planning

MODULES = sorted(module.name for module in pkgutil.iter_modules(stoker.planning.__path__))
ALONE = """
import importlib, sys

BLOCKED = ("sqlalchemy", "alembic", "oslo", "requests", "keystoneauth1", "urllib3")

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(BLOCKED):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocker())
importlib.import_module(sys.argv[1])
"""


def imported_alone(module: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", ALONE, module]
    return subprocess.run(command, capture_output=True, text=True, cwd=pathlib.Path("/"), check=False)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_of_planning_needs_no_database_and_no_network(module: str) -> None:
    done = imported_alone(f"stoker.planning.{module}")
    assert done.returncode == 0, done.stderr


def test_a_module_that_needs_the_database_is_noticed() -> None:
    done = imported_alone("stoker.db.resources")
    assert done.returncode != 0
    assert "is blocked" in done.stderr
