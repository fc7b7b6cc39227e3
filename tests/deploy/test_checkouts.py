"""Checkouts on unusual machines: each runs a command of the README, from nothing."""

import os
import pathlib
import shlex
import shutil
import subprocess
import typing

import pytest

ROOT = pathlib.Path(__file__).parents[2]
DEMO = ("demo",)
DATABASE = ("test", "PYTEST_ARGS=tests/services/db/test_schema.py")
"""Checks, and tests on PostgreSQL and MariaDB, whose servers run as accounts of their own."""
pytestmark = [pytest.mark.long, pytest.mark.usefixtures("registries"), pytest.mark.timeout(5400)]


def output_of(command: typing.Sequence[str | os.PathLike[str]], **variables: str) -> str:
    """Run a command that must succeed; return what it prints."""
    done = subprocess.run(
        command,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    return done.stdout


def checkout(folder: pathlib.Path) -> pathlib.Path:
    """Clone this project into a folder, with what is changed here."""
    output_of(["git", "clone", "-q", ROOT, folder])
    changed = output_of(["git", "-C", ROOT, "ls-files", "-z", "-m", "-o", "--exclude-standard"])
    for name in filter(None, changed.split("\0")):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def make(folder: pathlib.Path, *arguments: str, around: str = 'exec "$@"', **variables: str) -> str:
    """Run make in a checkout, with mounts of its own; return what it prints.

    :param around: a script that changes the machine, and then runs the command that is its arguments.
    """
    command = ["unshare", "--mount", "sh", "-euc", around, "sh", "make", "-C", folder, *arguments]
    return output_of(command, **variables)


def test_a_path_may_have_a_space_and_letters_that_are_not_ascii(tmp_path: pathlib.Path) -> None:
    folder = checkout(tmp_path / "Übungen für später" / "stoker")
    assert "== Done" in make(folder, *DEMO)
    make(folder, "check")


def test_a_home_may_be_read_only(tmp_path: pathlib.Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    mounts = f"mount --bind {(quoted := shlex.quote(str(home)))} {quoted}; mount -o remount,bind,ro {quoted}"
    around = f'{mounts}; touch {quoted}/file 2>/dev/null && exit 1; exec "$@"'
    assert "== Done" in make(checkout(tmp_path / "stoker"), *DEMO, around=around, HOME=str(home))


@pytest.mark.parametrize("language", ["C.UTF-8", "C", ""])
def test_a_machine_may_lack_all_locales(tmp_path: pathlib.Path, language: str) -> None:
    around = 'mount -t tmpfs none /usr/lib/locale; exec "$@"'
    output = make(checkout(tmp_path / "stoker"), *DEMO, around=around, LANG=language, LC_ALL=language)
    assert "== Done" in output


def test_a_machine_may_have_one_core(tmp_path: pathlib.Path) -> None:
    core = min(os.sched_getaffinity(0))
    make(checkout(tmp_path / "stoker"), *DATABASE, around=f'exec taskset -c {core} "$@"')


def test_files_may_be_for_their_owner_only(tmp_path: pathlib.Path) -> None:
    previous = os.umask(0o077)
    try:
        folder = checkout(tmp_path / "stoker")
        make(folder, *DATABASE)
    finally:
        os.umask(previous)
    assert (folder / "Makefile").stat().st_mode & 0o077 == 0
