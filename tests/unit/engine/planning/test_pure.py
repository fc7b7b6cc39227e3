"""Planning computes only: each of its modules can be imported where there is no database and no network."""

import pathlib
import pkgutil
import subprocess
import sys

import stoker.engine.planning

MODULES = sorted(module.name for module in pkgutil.iter_modules(stoker.engine.planning.__path__))
ALONE = """
import importlib, sys

BLOCKED = ("sqlalchemy", "alembic", "oslo", "requests", "keystoneauth1", "urllib3")

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(BLOCKED):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocker())
for module in sys.argv[1:]:
    try:
        importlib.import_module(module)
    except ImportError as error:
        print(f"{module}: {error}")
"""


def failed_imports(modules: list[str]) -> list[str]:
    command = [sys.executable, "-c", ALONE, *modules]
    done = subprocess.run(command, capture_output=True, text=True, cwd=pathlib.Path("/"), check=True)
    return done.stdout.splitlines()


def test_no_module_of_planning_needs_a_database_or_the_network() -> None:
    assert len(MODULES) > 10
    assert failed_imports([f"stoker.engine.planning.{name}" for name in MODULES]) == []


def test_a_module_that_needs_the_database_is_noticed() -> None:
    [error] = failed_imports(["stoker.engine.planning.plan", "stoker.db.resources"])
    assert error.startswith("stoker.db.resources: sqlalchemy")
    assert error.endswith("is blocked")
