"""The daemon's side of a fork server: start it, ask it for helpers, notice that it died."""

import contextlib
import dataclasses
import json
import logging
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import threading
import typing
from collections.abc import Mapping
from dataclasses import dataclass

from ...shapes import Json
from .channel import CONTROL
from .errors import HelperUnavailable
from .limits import HelperLimits

LOG = logging.getLogger(__name__)
STARTS_WITHIN = 60.0
"""Seconds until Python has loaded YAQL, on a host that has much else to do."""
ANSWERS_WITHIN = 10.0


@dataclass(eq=False)
class Helper:
    """A helper process, and the connection to it."""

    pid: int
    sock: socket.socket


class ForkServerProcess:
    """Starts the fork server process when it is first needed, and again when it died.  Thread-safe."""

    def __init__(self, limits: HelperLimits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._ready = False
        self._unfiltered: str | None = None

    @property
    def pid(self) -> int | None:
        """The process's id, None while there is none."""
        return None if self._process is None else self._process.pid

    def unfiltered(self) -> str | None:
        """Return why the system does not filter the calls of helpers; "": it does; None: not known yet.

        The process says it when it is first needed.
        """
        return self._unfiltered

    def start(self) -> None:
        """Start the process unless it runs, and wait until it has loaded YAQL.

        :raises HelperUnavailable: the host cannot start it.
        """
        if self._ready:
            return
        with self._locked():
            self._start()
            assert self._control is not None
            with contextlib.suppress(OSError, ValueError):  # It died: `helper` starts it again.
                self._greet(self._control)

    def helper(self) -> Helper:
        """Return a new helper.

        :raises HelperUnavailable: there is none to be had.
        """
        parent_end, child_end = socket.socketpair()
        with child_end:
            try:
                answer = self._ask({"start": True}, [child_end.fileno()])
            except BaseException:
                parent_end.close()
                raise
        return Helper(answer["pid"], parent_end)

    def end(self, helper: Helper) -> int:
        """Kill a helper, if it is still there, and return its status as of waitpid; 0 if it is not known."""
        helper.sock.close()
        with contextlib.suppress(HelperUnavailable):
            return int(self._ask({"end": helper.pid}, [])["status"])
        return 0

    def close(self) -> None:
        """End the process with all helpers; a later call starts it again."""
        with self._locked():
            self._end()

    def forget(self) -> None:
        """Drop the fork server of the parent process; called in a process that was just forked."""
        self._lock = threading.Lock()
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.returncode = 0  # It is no child of this process.
        self._control = None
        self._process = None
        self._ready = False
        self._unfiltered = None

    @contextlib.contextmanager
    def _locked(self) -> typing.Iterator[None]:
        if not self._lock.acquire(timeout=STARTS_WITHIN):
            raise HelperUnavailable("the helper processes do not start")
        try:
            yield
        finally:
            self._lock.release()

    def _ask(self, message: Mapping[str, int], handles: list[int]) -> dict[str, Json]:
        with self._locked():
            for last in (False, True):
                if self._process is None and "start" not in message:
                    raise HelperUnavailable("the process whose helper this was is gone")
                self._start()
                try:
                    answer = self._exchange(message, handles)
                    break
                except (OSError, ValueError) as error:
                    self._end()
                    LOG.warning("The fork server of helper processes died; it is started again: %s", error)
                    if last or "start" not in message:
                        raise HelperUnavailable(f"the helper processes died: {error}") from error
        if "error" in answer:
            raise HelperUnavailable(f"no helper process can be started: {answer['error']}")
        return answer

    def _start(self) -> None:
        if self._process is not None:
            return
        parent_end, child_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with child_end:
            try:
                self._process = _spawn(child_end)
            except OSError as error:
                parent_end.close()
                raise HelperUnavailable(f"no helper process can be started: {error}") from error
        self._control = parent_end
        self._ready = False
        with contextlib.suppress(OSError):  # Where it died at once the next exchange says so.
            parent_end.send(json.dumps(dataclasses.asdict(self._limits)).encode())

    def _exchange(self, message: Mapping[str, int], handles: list[int]) -> dict[str, Json]:
        assert self._control is not None
        self._greet(self._control)
        self._control.settimeout(ANSWERS_WITHIN)
        socket.send_fds(self._control, [json.dumps(message).encode()], handles)
        answer: dict[str, Json] = json.loads(self._control.recv(CONTROL))
        return answer

    def _greet(self, control: socket.socket) -> None:
        """Read the first message of a process that has started, unless that is done."""
        if self._ready:
            return
        control.settimeout(STARTS_WITHIN)
        started = json.loads(control.recv(CONTROL))
        self._ready = True
        self._unfiltered = str(started.get("unfiltered", ""))
        _log_filter(self._unfiltered)

    def _end(self) -> None:
        process = self._process
        self._process = None
        if self._control is not None:
            self._control.close()
            self._control = None
        if process is None:
            return
        try:
            process.wait(ANSWERS_WITHIN if self._ready else 0.1)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _log_filter(problem: str) -> None:
    if problem:
        LOG.warning("The system calls of helper processes are not filtered: %s", problem)
    else:
        LOG.info("The system calls of helper processes are filtered: they open nothing and start nothing")


def _spawn(control: socket.socket) -> subprocess.Popen[bytes]:
    """Execute a new Python, which has no memory, descriptor or secret of this process."""
    handle = control.fileno()
    paths = os.pathsep.join(path for path in sys.path if os.path.isabs(path))
    return subprocess.Popen(
        [_interpreter(), "-P", "-m", f"{__package__}.fork_server", str(handle)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[handle],
        # The order of a YAQL set is the same in each helper of each conductor, or updates would see changes.
        env={"PYTHONPATH": paths, "PYTHONHASHSEED": "0", "LANG": "C.UTF-8", "PATH": os.defpath},
        cwd="/",
        start_new_session=True,  # A terminal's ^C is for the daemon, which ends the fork server itself.
    )


def _interpreter() -> str:
    """Return the path of Python: in an embedding server, like uWSGI, sys.executable is the server."""
    candidates = [pathlib.Path(sys.executable or "-"), *pathlib.Path(sys.prefix, "bin").glob("python3")]
    for path in candidates:
        if path.name.startswith("python") and os.access(path, os.X_OK):
            return str(path)
    return shutil.which("python3") or "python3"
