"""Nothing depends on the name of the folder that the project was cloned into."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from harness.waiting import wait_for

ROOT = pathlib.Path(__file__).parents[2]
COMMAND = "make test fresh test-rest BUDGET=900"
FAKE_MAKE = """\
#!/bin/sh
echo "make $@ in $PWD"
cat told
exit 7
"""


def git(folder: pathlib.Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)
    return done.stdout.decode()


@pytest.mark.parametrize("name", ["stoker", "other", "stoker/inside", "Stoker-2", "with a space/stoker"])
def test_style_is_the_same_whatever_the_clone_is_called(tmp_path: pathlib.Path, name: str) -> None:
    clone = tmp_path / name
    listed = git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "*.py").split()
    for path in [path for path in [*listed, "pyproject.toml"] if (ROOT / path).exists()]:
        (clone / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, clone / path)
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "."]
    done = subprocess.run(command, cwd=clone, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.fixture
def checkout(tmp_path: pathlib.Path) -> pathlib.Path:
    """A project of one file, with CI's command."""
    checkout = tmp_path / "checkout"
    (checkout / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "run", checkout / ".ci" / "run")
    (checkout / "told").write_text("committed\n")
    git(checkout, "init", "-q")
    git(checkout, "add", ".")
    git(checkout, "commit", "-qm", "first")
    return checkout


def run_ci(checkout: pathlib.Path) -> subprocess.CompletedProcess[str]:
    """A clone with a make that prints where it runs."""
    base = checkout.parent
    (base / "bin").mkdir(exist_ok=True)
    fake = base / "bin" / "make"
    fake.write_text(FAKE_MAKE)
    fake.chmod(0o755)
    (base / "tmp").mkdir(exist_ok=True)
    env = {**os.environ, "PATH": f"{fake.parent}:{os.environ['PATH']}", "TMPDIR": str(base / "tmp")}
    return subprocess.run([checkout / ".ci" / "run"], env=env, capture_output=True, text=True)


def test_ci_tests_what_is_committed_in_a_clone_named_stoker_and_removes_it(checkout: pathlib.Path) -> None:
    git(checkout, "checkout", "-q", "--detach")
    (checkout / "told").write_text("not committed\n")
    done = run_ci(checkout)
    assert done.returncode == 7
    command, output = done.stdout.splitlines()
    assert command.startswith(f"{COMMAND} in {checkout.parent}/tmp/")
    assert command.endswith("/stoker")
    assert output == "committed"
    wait_for(lambda: not list((checkout.parent / "tmp").iterdir()), 30)


def test_ci_makes_no_clone_of_one_named_stoker(checkout: pathlib.Path) -> None:
    named = checkout.rename(checkout.parent / "stoker")
    done = run_ci(named)
    assert (done.returncode, done.stdout) == (7, f"{COMMAND} in {named}\ncommitted\n")
    (named / "told").write_text("not committed\n")
    assert run_ci(named).stdout.endswith("/stoker\ncommitted\n")
