"""Starts a program once for all processes of a test run; it ends with the run, however that ends."""

import contextlib
import fcntl
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from harness.processes import ProcessEnded

TESTS = pathlib.Path(__file__).parents[1]


def run_of(folder: pathlib.Path) -> tuple[pathlib.Path, int]:
    """Return the folder that all processes of this run share, and the pid of the process that ends last.

    :param folder: the base of pytest's temporary folders in this process.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        return folder.parent, os.getppid()
    return folder, os.getpid()


@contextlib.contextmanager
def locked(path: pathlib.Path) -> Iterator[None]:
    """Hold a file that only one process has at a time; it is made where there is none."""
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def start_once(
    lock: pathlib.Path, arguments: Sequence[str], *, ready: pathlib.Path, share: int, within: float
) -> None:
    """Start a module of the harness unless a process of this run has tried that before, and wait for it.

    :param lock: a file that is made here; the program prints into its neighbour with the suffix ``.log``.
    :param arguments: the module, and its own arguments.
    :param ready: the file that the program makes when it serves.
    :param share: share of the ports, so that simultaneous programs use different ones.
    :param within: seconds for the start.
    :raises ProcessEnded: the program could not be started, now or before.
    """
    log = lock.with_suffix(".log")
    with locked(lock):
        # A start that failed once is not tried again by each process.
        if not log.exists():
            _launch(arguments, log, ready, share=share, within=within)
    if not ready.exists():
        raise ProcessEnded(f"{arguments[0]} could not be started:\n{log.read_text()[-5000:]}")


def _launch(
    arguments: Sequence[str], log: pathlib.Path, ready: pathlib.Path, *, share: int, within: float
) -> None:
    with open(log, "wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=TESTS,
            env={**os.environ, "PYTEST_XDIST_WORKER": f"gw{share}"},
            start_new_session=True,
        )
    end = time.monotonic() + within
    while not ready.exists() and time.monotonic() < end:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
            return
