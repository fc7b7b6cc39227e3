"""Ends what a test run started when the run itself was killed and could not.

A watcher process reads lines from a pipe that the run holds open.  When the pipe closes without the
entries having been taken back, it kills the processes and removes the directories that are left.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import typing

from harness import proctree

TESTS = pathlib.Path(__file__).parents[1]


class Guard:
    """The run's side.  Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: dict[int, int] = {}
        self._watcher: subprocess.Popen[bytes] | None = None

    def process(self, pid: int) -> None:
        """Kill this process with its descendants and its group, should the run die."""
        if (proc := proctree.read(pid)) is not None:
            self._started[pid] = proc.started
            self._tell(f"+ process {pid} {proc.started}")

    def process_ended(self, pid: int) -> None:
        if (started := self._started.pop(pid, None)) is not None:
            self._tell(f"- process {pid} {started}")

    def directory(self, path: pathlib.Path) -> None:
        """Remove this directory, should the run die."""
        self._tell(f"+ directory {path}")

    def directory_removed(self, path: pathlib.Path) -> None:
        self._tell(f"- directory {path}")

    def mount(self, path: pathlib.Path) -> None:
        """Unmount what is mounted here, should the run die."""
        self._tell(f"+ mount {path}")

    def unmounted(self, path: pathlib.Path) -> None:
        self._tell(f"- mount {path}")

    def _tell(self, line: str) -> None:
        with self._lock:
            if self._watcher is None:
                self._watcher = subprocess.Popen(
                    [sys.executable, "-m", "harness.guard"],
                    stdin=subprocess.PIPE,
                    cwd=TESTS,
                    start_new_session=True,  # Ctrl-C is for the run, not for its guard.
                )
            assert self._watcher.stdin is not None
            self._watcher.stdin.write(line.encode() + b"\n")
            self._watcher.stdin.flush()


GUARD = Guard()


def clean_up(entries: list[str]) -> None:
    """Kill and remove what the entries name."""
    for entry in entries:
        kind, _, value = entry.partition(" ")
        if kind == "process":
            pid, started = map(int, value.split())
            first = proctree.read(pid)
            if first is not None and first.started != started:
                continue  # A stranger, of another run perhaps, that was given the pid of one that has ended.
            procs = proctree.tree(pid)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            proctree.send(procs, signal.SIGKILL)
            proctree.wait_gone(procs, 5.0)
    for entry in entries:
        kind, _, value = entry.partition(" ")
        if kind == "mount":
            subprocess.run(["umount", value], check=False)
    for entry in entries:
        kind, _, value = entry.partition(" ")
        if kind == "directory":
            shutil.rmtree(value, ignore_errors=True)


def watch(lines: typing.Iterable[str]) -> None:
    """The watcher's side: read until the run ends, then clean up."""
    entries: dict[str, None] = {}
    for line in lines:
        sign, _, entry = line.rstrip("\n").partition(" ")
        if sign == "+":
            entries[entry] = None
        else:
            entries.pop(entry, None)
    clean_up(list(entries))


if __name__ == "__main__":
    watch(sys.stdin)
