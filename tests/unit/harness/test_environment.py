"""The suite has the same variables whoever has called it, and lends those of registries to installations."""

import os
import pathlib
import subprocess
import sys

import pytest
from harness import environment

TESTS = pathlib.Path(__file__).parents[2]
CALLER = {
    **{"PATH": os.environ["PATH"], "HOME": "/home/caller", "TMPDIR": "/var/tmp", "PYTEST_ADDOPTS": "-q"},
    **{"PYTHONUNBUFFERED": "1", "PYTHONPATH": "/else", "TERM": "dumb", "LANG": "de_DE", "LC_ALL": "C"},
    **{"OS_CLOUD": "production", "GIT_DIR": "/else/.git", "MAKEFLAGS": "-j", "NO_COLOR": "1", "CI": "true"},
    **{"PIP_INDEX_URL": "https://index.test", "npm_config_registry": "https://npm.test"},
    **{"SSL_CERT_FILE": "/certificates", "https_proxy": "http://proxy.test"},
}
KEPT = {"HOME": "/home/caller", "LANG": "C.UTF-8", "PATH": os.environ["PATH"], "PYTEST_ADDOPTS": "-q"}
REGISTRIES = {"PIP_INDEX_URL", "npm_config_registry", "SSL_CERT_FILE", "https_proxy"}


def test_only_a_short_list_of_the_callers_variables_is_kept() -> None:
    variables = dict(CALLER)
    environment.clear(variables)
    del variables[environment.ASIDE]
    assert variables == {**KEPT, "TMPDIR": "/var/tmp"}


def test_the_variables_of_registries_are_kept_aside_for_the_processes_of_a_run() -> None:
    variables = dict(CALLER)
    environment.clear(variables)
    environment.clear(variables)
    assert environment.registries(variables) == {name: CALLER[name] for name in REGISTRIES}


def test_the_programs_of_a_run_have_no_others() -> None:
    program = "import harness.clean_start, subprocess; subprocess.run(['env'], check=True)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=TESTS, env=CALLER, capture_output=True, text=True, check=True)
    names = {line.partition("=")[0] for line in done.stdout.splitlines()}
    assert names <= {*environment.KEPT, *environment.FIXED, "PYTEST_ADDOPTS", environment.ASIDE}


def test_this_run_has_none_of_them() -> None:
    assert [name for name in ("PYTHONUNBUFFERED", "TERM", "OS_CLOUD") if name in os.environ] == []


def test_an_installation_has_the_variables_of_registries(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(environment.ASIDE, '{"PIP_INDEX_URL": "https://index.test"}')
    assert "PIP_INDEX_URL" not in os.environ
    request.getfixturevalue("registries")
    assert os.environ["PIP_INDEX_URL"] == "https://index.test"
