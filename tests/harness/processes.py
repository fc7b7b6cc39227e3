"""Processes that a test starts, with all they start themselves."""

import os
import pathlib
import pwd
import signal
import socket
import subprocess
import time
import typing
from collections.abc import Sequence

from harness import proctree
from harness.guard import GUARD
from harness.ports import HOST
from harness.waiting import over, slowness

TAIL = 3000


class ProcessEnded(Exception):
    """A process ended that should not have, or ended badly; the text holds what it printed."""


def as_user(user: str | None) -> dict[str, typing.Any]:
    """Arguments of subprocess that run a program under an account; None: the caller's own."""
    if user is None:
        return {}
    return {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}


class Running(typing.Protocol):
    """The part of subprocess.Popen that is needed."""

    pid: int

    def poll(self) -> int | None: ...
    def wait(self, timeout: float) -> int: ...
    def send_signal(self, number: signal.Signals) -> None: ...


class Process:
    """A process in a session of its own that writes to a log file.  It is killed should the test run die.

    :param log: appended to.
    :param env: added to the run's own environment.
    :param user: the account to run under; None: the caller's.
    """

    def __init__(
        self,
        command: Sequence[str | os.PathLike[str]],
        *,
        log: pathlib.Path,
        env: dict[str, str] | None = None,
        directory: pathlib.Path | None = None,
        user: str | None = None,
    ) -> None:
        self.log = log
        self.name = pathlib.Path(command[0]).name
        with open(log, "ab") as out:
            self._popen = self._launch(command, out, {**os.environ, **(env or {})}, directory, user)
        GUARD.process(self.pid)

    def _launch(
        self,
        command: Sequence[str | os.PathLike[str]],
        out: typing.IO[bytes],
        env: dict[str, str],
        directory: pathlib.Path | None,
        user: str | None,
    ) -> Running:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env=env,
            start_new_session=True,
            **as_user(user),
        )

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def is_running(self) -> bool:
        return self.exit_code is None

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative: ended by that signal."""
        return self._popen.poll()

    def text(self) -> str:
        """Return its output so far."""
        return self.log.read_text(errors="replace")

    def tail(self) -> str:
        """The last of it."""
        return self.text()[-TAIL:]

    def end_with_stacks(self) -> str:
        """Abort it; the last of what it printed, among that the stack of each of its threads."""
        self.send(signal.SIGABRT)
        self._popen.wait(120)
        return self.tail()

    def wait_for_text(self, text: str, within: float = 60.0) -> None:
        """Wait until it has printed this.

        :raises ProcessEnded: the process ended before.
        :raises TimeoutError: it did not print it in that many seconds; more on a machine that has more to do
            than cores.
        """
        self._wait(lambda: text in self.text(), within, f'print "{text}"')

    def wait_for_port(self, port: int, within: float = 60.0) -> None:
        """Wait until it listens on the port of the loopback interface; errors as above."""
        self._wait(lambda: _is_open(port), within, f"listen on port {port}")

    def _wait(self, condition: typing.Callable[[], bool], within: float, action: str) -> None:
        began = time.monotonic()
        while not condition():
            if not self.is_running:
                raise ProcessEnded(f"{self.name} ended with {self.exit_code}:\n{self.tail()}")
            if over(began, within):
                waited = time.monotonic() - began
                raise TimeoutError(f"{self.name} does not {action} after {waited:.1f} s:\n{self.tail()}")
            time.sleep(0.02)

    def send(self, number: signal.Signals) -> None:
        """Signal this process alone."""
        self._popen.send_signal(number)

    def pause(self) -> None:
        """SIGSTOP to it and its descendants."""
        proctree.send(self._tree(), signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT to it and its descendants."""
        proctree.send(self._tree(), signal.SIGCONT)

    def stop(self, within: float = 120.0, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end, and wait for it and its descendants.

        :param within: seconds; more on a machine that has more to do than cores.
        :returns: the exit code.
        :raises TimeoutError: it, or one of its descendants, still runs after that many seconds; it is killed.
        """
        procs = self._tree()
        within *= slowness()
        end = time.monotonic() + within
        self.send(number)
        try:
            code = self._popen.wait(within)
        except subprocess.TimeoutExpired:
            self.kill()
            raise TimeoutError(f"{self.name} did not stop in {within} s:\n{self.tail()}") from None
        if remaining := proctree.wait_gone(procs, max(0.0, end - time.monotonic())):
            proctree.send(remaining, signal.SIGKILL)
            raise TimeoutError(f"{self.name} left processes behind: {remaining}")
        GUARD.process_ended(self.pid)
        return code

    def kill(self) -> None:
        """SIGKILL to it and its descendants, at once."""
        procs = self._tree()
        proctree.send(procs, signal.SIGKILL)
        self._popen.wait(120)
        proctree.wait_gone(procs, 10.0)
        GUARD.process_ended(self.pid)

    def _tree(self) -> list[proctree.Proc]:
        """It and its descendants; none once it has ended, for its pid may be a stranger's by then."""
        return proctree.tree(self.pid) if self.is_running else []


def _is_open(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=1.0):
            return True
    except OSError:
        return False
