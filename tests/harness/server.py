"""The common part of the launchers of all servers."""

import abc
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import typing
from collections.abc import Sequence

from harness import permitted
from harness.guard import GUARD
from harness.permitted import MissingServer
from harness.ports import free_port
from harness.processes import TAIL, Process, ProcessEnded, as_user
from harness.small_disk import SmallDisk
from harness.waiting import over, slowness

SEARCHED = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


def find_program(name: str, package: str, *patterns: str) -> pathlib.Path:
    """A program by name, or by patterns below / where it is outside of the usual folders.

    The last match of a pattern counts: the newest version.

    :param package: the Debian package that brings it.
    :raises NotOfThisTier: `make test` runs, and does not install the package.
    :raises MissingServer: there is none.
    """
    path = os.environ.get("PATH", "")
    if permitted.is_restricted():
        permitted.check_package(name, package)
    else:
        path = os.pathsep.join([path, *SEARCHED])
    if program := shutil.which(name, path=path):
        return pathlib.Path(program)
    for pattern in patterns:
        if matches := sorted(pathlib.Path("/").glob(pattern)):
            return matches[-1]
    raise MissingServer(name, package)


class Server(abc.ABC):
    """A server of our own on private loopback ports, with its data in a private directory.

    It has nothing to do with an instance that the system may run.  Ports and data stay over `stop`, `restart`
    and `kill`; `close` removes them.  As a context manager it is started, and closed at the end.  For one
    thread.

    :cvar name: what messages call it.
    :cvar account: where root must not, or need not, run it: the account for it.
    """

    name: typing.ClassVar[str]
    account: typing.ClassVar[str | None] = None
    stop_signal: typing.ClassVar[signal.Signals] = signal.SIGTERM
    start_within: typing.ClassVar[float] = 120.0
    stop_within: typing.ClassVar[float] = 60.0

    def __init__(self) -> None:
        self._directory: pathlib.Path | None = None
        self._port: int | None = None
        self._process: Process | None = None
        self._disk: SmallDisk | None = None
        self._is_lent = False

    def __enter__(self) -> typing.Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, typing.Any]:
        """Another process uses the server where it is; it can neither start, stop nor close it."""
        return {**self.__dict__, "_process": None, "_is_lent": True}

    def _check_owned(self) -> None:
        """Refuse to change a server that others use, too.

        :raises AssertionError: another process has started it.
        """
        assert not self._is_lent, f"all tests use this {self.name}: who changes one starts one of their own"

    @property
    @abc.abstractmethod
    def url(self) -> str:
        """Where it is, in the form of those who use it."""

    @property
    def port(self) -> int:
        """The port for clients; the same for the whole life of this object."""
        if self._port is None:
            self._port = free_port()
        return self._port

    @property
    def directory(self) -> pathlib.Path:
        """Everything it writes is below."""
        if self._directory is None:
            self._directory = pathlib.Path(tempfile.mkdtemp(prefix=f"stoker-{self.name.lower()}-"))
            GUARD.directory(self._directory)
            self._hand_over(self._directory)
        return self._directory

    @property
    def process(self) -> Process:
        """The server's main process; an error before the first start."""
        assert self._process is not None, f"{self.name} was not started"
        return self._process

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.is_running

    def start(self) -> None:
        """Start it and wait until it answers.

        :raises MissingServer: the server is not installed.
        :raises ProcessEnded: the server ended at once; the text holds its output.
        :raises TimeoutError: the server does not answer.
        """
        self._check_owned()
        if self.is_running:
            return
        self._launch()
        self.wait_ready()
        self._started()

    def _launch(self) -> None:
        """Start it without waiting."""
        if self._process is None or self._directory is None:
            self._prepare()
        self._process = Process(
            self._command(),
            log=self.directory / "log",
            env=self._environment(),
            directory=self.directory,
            user=self._user(),
        )

    def wait_ready(self) -> None:
        """Wait until it answers."""
        began = time.monotonic()
        while not self._answers():
            if not self.process.is_running:
                raise ProcessEnded(f"{self.name} ended with {self.process.exit_code}:\n{self.process.tail()}")
            if over(began, self.start_within):
                waited = f"{time.monotonic() - began:.1f} s"
                raise TimeoutError(f"{self.name} does not answer after {waited}:\n{self.process.tail()}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop it in good order; nothing if it does not run."""
        self._check_owned()
        if self.is_running:
            self.process.resume()
            self.process.stop(self.stop_within, self.stop_signal)

    def restart(self) -> None:
        """Stop and start it with the same port and data."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """SIGSTOP: connections stay open, and nothing answers."""
        self._check_owned()
        self.process.pause()

    def resume(self) -> None:
        """SIGCONT after `pause`."""
        self._check_owned()
        self.process.resume()

    def kill(self) -> None:
        """SIGKILL to all its processes at once."""
        self._check_owned()
        if self.is_running:
            self.process.kill()

    def lose_data(self) -> None:
        """Kill it if it runs, and remove its data; its port stays.  For servers that need no preparation."""
        self._check_owned()
        self.kill()
        for path in self.directory.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def use_small_disk(self) -> bool:
        """Keep its folder ``data`` on a disk that can be full; return whether there is such a disk.

        Called before the first start.
        """
        self._check_owned()
        if not SmallDisk.can_be_mounted():
            return False
        self._disk = SmallDisk(self.directory / "data")
        self._hand_over(self.directory / "data")
        return self._disk.is_mounted

    def fill_disk(self) -> None:
        """Leave no space on its disk."""
        assert self._disk is not None
        self._disk.fill()

    def free_disk(self) -> None:
        """Give the space back, and start the server where it has ended for want of it."""
        assert self._disk is not None
        self._disk.free()
        self.start()

    def close(self) -> None:
        """Kill it if it runs, and remove its data.  Then it can be started afresh, at another port."""
        self._check_owned()
        self.kill()
        if self._disk is not None:
            self._disk.close()
            self._disk = None
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            GUARD.directory_removed(self._directory)
        self._directory = self._port = None

    # What each server fills in.

    def _prepare(self) -> None:  # noqa: B027 - most need nothing
        """Once, before the first start: make the data directory."""

    @abc.abstractmethod
    def _command(self) -> Sequence[str | os.PathLike[str]]:
        """How to start it, in the foreground."""

    def _environment(self) -> dict[str, str]:
        return {}

    @abc.abstractmethod
    def _answers(self) -> bool:
        """Return whether it answers now, in its own protocol."""

    def _started(self) -> None:  # noqa: B027 - most need nothing
        """After each start, once it answers."""

    # Helpers for them.

    def _user(self) -> str | None:
        return self.account if os.geteuid() == 0 else None

    def _hand_over(self, path: pathlib.Path) -> None:
        """Give a file or directory to the server's account."""
        if (user := self._user()) is not None:
            try:
                entry = pwd.getpwnam(user)
            except KeyError:
                raise MissingServer(f"the account {user}", self.name.lower()) from None
            os.chown(path, entry.pw_uid, entry.pw_gid)

    def _run(self, *command: str | os.PathLike[str], env: dict[str, str] | None = None) -> str:
        """Run a program of the server's to its end, under its account; what it printed.

        :raises ProcessEnded: the command failed; the text ends with what the server itself printed last.
        """
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.directory,
            env={**os.environ, **(env or {})},
            timeout=120 * slowness(),
            **as_user(self._user()),
        )
        text = str(done.stdout, errors="replace")
        if done.returncode:
            raise ProcessEnded(f"{command[0]} ended with {done.returncode}:\n{text}\n{self._last_words()}")
        return text

    def _last_words(self) -> str:
        log = self.directory / "log"
        return f"{log} ends with:\n{log.read_text(errors='replace')[-TAIL:]}" if log.exists() else ""
