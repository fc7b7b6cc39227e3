"""The backends of coordination, each with what can happen to it."""

import contextlib
import fcntl
import pathlib
import shutil
import tempfile
import typing
import uuid

from harness.etcd import Etcd
from harness.memcached import Memcached
from harness.redis import Redis
from harness.server import Server
from harness.waiting import wait_for
from harness.zookeeper import ZooKeeper

TIMING = (0.25, 1.25, 0.25)
HELD = 2.0
"""Seconds for which a member that runs never holds the lock of the file driver."""
EXPIRY = 2
"""Seconds after which the backend forgets a silent member: some tests are to outlast it."""


class Backend(typing.Protocol):
    """A place where members meet."""

    name: str
    url: str
    timing: tuple[float, float, float]
    paused_for: float
    """Seconds that are longer than the membership's timeout and the backend's own."""

    def start(self) -> None: ...
    def restart(self) -> None: ...
    def kill(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def close(self) -> None: ...
    def is_usable(self) -> bool: ...


class Daemon:
    """A backend with a server."""

    timing = TIMING
    paused_for = EXPIRY + 1.0

    def __init__(self, server: Server, option: str) -> None:
        self.server = server
        self.name = server.name
        self._option = option
        self.start = server.start
        self.restart = server.restart
        self.close = server.close
        self.kill = server.kill
        self.pause = server.pause
        self.resume = server.resume

    def is_usable(self) -> bool:
        """Return whether no member keeps the others waiting."""
        return True

    @property
    def url(self) -> str:
        return f"{self.server.url}?{self._option}={EXPIRY}"  # type: ignore[attr-defined]


class SlowWriter(Daemon):
    """memcached: tooz waits a second when two members write at once; see its compare-and-swap loop."""

    timing = (0.5, 3.0, 0.25)
    paused_for = 3.5


class Directory:
    """tooz's file driver: no server, but a directory and a lock."""

    name = "file"
    timing = TIMING
    paused_for = EXPIRY + 1.0

    def __init__(self) -> None:
        self._above = pathlib.Path(tempfile.mkdtemp(prefix="stoker-file-"))
        self._path = self._above / "ring"
        self._lock: typing.Any = None
        self.url = f"file://{self._path}?timeout={EXPIRY}"

    def start(self) -> None:
        """Make it usable again."""
        if self._path.is_file():
            self._path.unlink()

    def restart(self) -> None:
        """Empty it under the members' feet."""
        aside = self._above / uuid.uuid4().hex
        self._path.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)

    def kill(self) -> None:
        """Every access fails: a file is where the directory was."""
        while not self._path.is_file():
            self.restart()
            with contextlib.suppress(FileExistsError):  # A member made the directory again.
                self._path.open("x").close()

    def pause(self) -> None:
        """Every access hangs."""
        self._lock = open(self._path / ".driver_lock", "a")  # noqa: SIM115 - held until resume
        fcntl.lockf(self._lock, fcntl.LOCK_EX)

    def resume(self) -> None:
        self._lock.close()

    def is_usable(self) -> bool:
        """Return whether no member keeps the others waiting: one that is paused may hold tooz's lock."""
        with open(self._path / ".driver_lock", "a") as lock:
            try:
                wait_for(lambda: _is_locked_by_us(lock), HELD)
            except TimeoutError:
                return False
        return True

    def close(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._above)


def _is_locked_by_us(lock: typing.IO[str]) -> bool:
    with contextlib.suppress(BlockingIOError):
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


MAKERS: dict[str, typing.Callable[[], Backend]] = {
    "file": Directory,
    "etcd": lambda: Daemon(Etcd(), "membership_timeout"),
    "zookeeper": lambda: Daemon(ZooKeeper(), "timeout"),
    "redis": lambda: Daemon(Redis(), "membership_timeout"),
    "memcached": lambda: SlowWriter(Memcached(), "membership_timeout"),
}
