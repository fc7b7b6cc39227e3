"""Versions of Stoker before this one, from the history."""

import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]
PREVIOUS = "HEAD^"


def commit_before(path: str) -> str:
    """Return the last commit that does not have a file, by any name; HEAD where it is not committed yet."""
    command = ["git", "-C", ROOT, "log", "--follow", "--format=%H", "--diff-filter=A", "--", path]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False).stdout.split()
    return f"{found[-1]}^" if found else "HEAD"


def older_version(directory: pathlib.Path, commit: str = PREVIOUS) -> pathlib.Path:
    """Unpack it; what goes into PYTHONPATH.

    Where there is no history, as in an archive of the sources, it is this version once more: then the test
    sees two installations beside each other, if not two versions.
    """
    target = directory / "stoker"
    target.mkdir(parents=True)
    archive = subprocess.run(
        ["git", "-C", ROOT, "archive", commit], capture_output=True, timeout=300, check=False
    )
    if archive.returncode == 0:
        subprocess.run(["tar", "x", "-C", target], input=archive.stdout, timeout=300, check=True)
    else:
        ignored = shutil.ignore_patterns(".*", "tests", "build", "__pycache__", "*.egg-info")
        shutil.copytree(ROOT, target, ignore=ignored, dirs_exist_ok=True)
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "import stoker.cli; print(stoker.cli.__file__)"],
        env={**os.environ, "PYTHONPATH": str(directory)},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert found.stdout.startswith(str(directory)), found.stdout
    return directory
