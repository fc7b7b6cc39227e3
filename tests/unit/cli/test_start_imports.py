"""Modules that a program imports when it needs them only: a start takes a second of a processor."""

import pathlib
import subprocess
import sys

import pytest

IMPORT = "import importlib, sys; importlib.import_module(sys.argv[1])"
SERVE = """
import pathlib, sys
from stoker.cli.programs.all_in_one import Embedded, EmbeddedSettings
embedded = Embedded(EmbeddedSettings(pathlib.Path(sys.argv[1]), port=0, conductors=1))
embedded.start()
embedded.stop()
"""
NAMES = "\nimport sys; print(*sys.modules)"
KEYSTONE = {"keystonemiddleware", "keystoneclient", "webob", "dogpile"}
MIGRATIONS = {"alembic", "mako"}
REPORTS = {"jinja2"}
"""The renderer of reports on SIGUSR2."""
EXPRESSIONS = {"yaql"}
"""They are evaluated in processes of their own."""
API = {"falcon", "jsonschema"}
AUDIT = {"pycadf"}
SCREENS = {"rich"}
POLICY = {"oslo_policy"}
METRICS = {"prometheus_client", "waitress"}
"""The page of a conductor's metrics, which has no port by default."""
LOGINS = {"keystoneauth1.identity"}
"""All ways to authenticate: a conductor uses one where a stack has a credential."""
DIALECTS = {"sqlalchemy.dialects.mysql", "sqlalchemy.dialects.postgresql"}
"""Dialects of databases: the engine loads the one that is configured."""
UNUSED = KEYSTONE | MIGRATIONS | REPORTS | EXPRESSIONS | DIALECTS | SCREENS
"""Both daemons need these in some installations only, or never."""


def imported(program: str, argument: object) -> set[str]:
    """Return the names of the modules that a process has imported at its end."""
    command = [sys.executable, "-W", "ignore", "-c", program + NAMES, str(argument)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    ("program", "unused"),
    [
        ("api", UNUSED | AUDIT),
        ("conductor", UNUSED | API | POLICY | METRICS | LOGINS),
    ],
)
def test_a_daemon_imports_only_what_it_needs(program: str, unused: set[str]) -> None:
    assert imported(IMPORT, f"stoker.cli.programs.{program}") & unused == set()


def test_the_all_in_one_needs_no_migrations_and_no_keystone(tmp_path: pathlib.Path) -> None:
    first = imported(SERVE, tmp_path)
    assert first & (MIGRATIONS | KEYSTONE) == MIGRATIONS
    assert imported(SERVE, tmp_path) & (MIGRATIONS | KEYSTONE | REPORTS | EXPRESSIONS) == set()
