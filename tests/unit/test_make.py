"""The output of `make` for somebody who has just cloned the project."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
NOISY = ["sh", "-c", "echo noise; echo trouble >&2; exit $CODE"]


def quiet(code: int, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "V": "", "CODE": str(code), **variables}
    return subprocess.run(
        [ROOT / "tools" / "quiet", "Doing it", *NOISY], env=env, capture_output=True, text=True
    )


def test_a_command_that_ends_well_is_one_line_when_it_begins_and_one_with_its_seconds() -> None:
    done = quiet(0)
    begun, ended = done.stdout.splitlines()
    assert (done.returncode, done.stderr, begun) == (0, "", "Doing it …")
    assert ended.startswith("Doing it: ")
    assert ended.endswith(" s")


def test_a_command_that_fails_shows_all_that_it_printed_and_its_code() -> None:
    done = quiet(3)
    assert (done.returncode, done.stdout) == (3, "Doing it …\n")
    assert done.stderr == "Doing it failed:\nnoise\ntrouble\n"


def test_all_is_shown_where_that_is_requested() -> None:
    done = quiet(3, V="1")
    assert (done.returncode, done.stdout, done.stderr) == (3, "noise\n", "trouble\n")


@pytest.mark.parametrize("program", ["install -q ", "/mypy ", "/ruff ", "collect-only", "-m venv .venv "])
def test_the_makefile_runs_what_prints_much_quietly(program: str) -> None:
    recipes = [
        line for line in (ROOT / "Makefile").read_text().replace("\\\n", "").splitlines() if line[:1] == "\t"
    ]
    lines = [line for line in recipes if program in line.partition("||")[0].partition("#")[0]]
    assert lines
    assert [line for line in lines if "$(QUIET)" not in line] == []


def test_make_shows_its_recipes_only_where_that_is_requested() -> None:
    command = ["make", "-f", ROOT / "Makefile", "--eval", "told: ; echo told", "told"]
    env = {key: value for key, value in os.environ.items() if key not in ("V", "MAKEFLAGS", "MFLAGS")}
    for variables, is_shown in (({}, False), ({"V": "1"}, True)):
        done = subprocess.run(command, env={**env, **variables}, capture_output=True, text=True, check=True)
        assert ("echo told" in done.stdout) == is_shown, done.stdout
