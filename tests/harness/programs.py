"""Stoker's programs and other Python scripts of the tests, started by the fork server."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import typing
from collections.abc import Mapping, Sequence

from harness.forkserver import Child, ForkServer, Path
from harness.guard import GUARD
from harness.processes import Process

BIN = pathlib.Path(sys.executable).parent
_SERVER = ForkServer()


def _start(
    command: Sequence[Path], out: int, err: int, env: Mapping[str, str] | None, directory: pathlib.Path | None
) -> Child:
    first = _SERVER.pid is None
    child = _SERVER.start(command, out=out, err=err, env={**os.environ, **(env or {})}, directory=directory)
    if first and _SERVER.pid is not None:
        GUARD.process(_SERVER.pid)
    return child


class Program(Process):
    """A `Process` of a Python script, with which `command` begins."""

    def _launch(
        self,
        command: Sequence[Path],
        out: typing.IO[bytes],
        env: dict[str, str],
        directory: pathlib.Path | None,
        user: str | None,
    ) -> Child:
        assert user is None, "it has the account of the run"
        return _start(command, out.fileno(), out.fileno(), env, directory)


def run(
    command: Sequence[Path], *, env: Mapping[str, str] | None = None, within: float = 120.0
) -> subprocess.CompletedProcess[str]:
    """Run a Python script to its end, as ``subprocess.run`` does.

    :param env: added to the run's own environment.
    :raises subprocess.TimeoutExpired: it runs for longer than that many seconds; it is killed.
    """
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = _start(command, out.fileno(), err.fileno(), env, None)
        try:
            code = child.wait(within)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.wait(120.0)
            raise
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(command, code, out.read(), err.read())
