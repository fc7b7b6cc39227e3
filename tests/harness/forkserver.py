"""Starts Stoker's programs without importing them again each time, which takes most of a start.

A process that has imported them waits for orders, and forks a child for each one.  The child then is like a
process of its own: it has the session, directory, files, environment, arguments and path that were ordered,
runs the program's own script, and can be signalled, paused and killed by its pid.  Three things differ from
a real start.  The children of one server hash strings alike, and /proc gives all of them the server's command
line.  A child does not take its modules apart at its end, which takes half of a short command's time.  Some
tests of each program start it for real (`Process`).

Run as a program this module is the server; the tests have `ForkServer`.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pathlib
import runpy
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import typing
import warnings
from collections.abc import Mapping, Sequence

import cliff.app
import cliff.command
import stevedore

Path = str | os.PathLike[str]
BESIDE = pathlib.Path(__file__).resolve().parent
MOST = 1 << 17
"""Bytes of an order."""
PRELOADED = (
    "stoker.cli.programs.api",
    "stoker.cli.programs.conductor",
    "stoker.cli.commands.config",
    "stoker.cli.programs.all_in_one",
    "stoker.cli.programs.manage",
    "stoker.cli.commands.database",
    "stoker.cli.commands.secrets",
    "stoker.cli.commands.stacks",
    "stoker.cli.programs.status",
    "stoker.resources.registry",
    "etcd3gw",
    "kombu.transport.memory",
    "kombu.transport.pyamqp",
    "oslo_messaging._drivers.impl_rabbit",
    "oslo_messaging.notify.messaging",
    "psycopg",
    "pymysql",
    "sqlalchemy.dialects.mysql.pymysql",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite",
    "tooz.drivers.etcd3gw",
    "tooz.drivers.file",
    "tooz.drivers.memcached",
    "tooz.drivers.redis",
    "tooz.drivers.zookeeper",
)
"""The programs, and what they load by name."""


# -- the tests' side -------------------------------------------------------------------------------


class Child:
    """A process that the server has forked; has what `Process` needs of subprocess.Popen."""

    def __init__(self, pid: int, status: socket.socket) -> None:
        self.pid = pid
        self._status = status
        self._code: int | None = None

    def poll(self) -> int | None:
        """The exit code; None while it runs; negative: ended by that signal."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self._code

    def wait(self, timeout: float) -> int:
        """Wait for its end; the exit code.

        :raises subprocess.TimeoutExpired: it still runs after that many seconds.
        """
        if self._code is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a forked program", timeout)
            with self._status:
                self._code = int(self._status.recv(16))
        return self._code

    def send_signal(self, number: signal.Signals) -> None:
        """Nothing if it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


class ForkServer:
    """The one server of a test run, started with its first child.  Any thread may call it.

    :ivar pid: None before.
    """

    def __init__(self) -> None:
        self.pid: int | None = None
        self._lock = threading.Lock()
        self._control: socket.socket | None = None

    def start(
        self,
        command: Sequence[Path],
        *,
        out: int,
        err: int,
        env: Mapping[str, str],
        directory: pathlib.Path | None = None,
    ) -> Child:
        """Run a Python script in a session of its own.

        :param command: the script and its arguments.
        :param env: all of its environment.
        """
        local, remote = socket.socketpair()
        order = {
            "command": [os.fspath(part) for part in command],
            "env": dict(env),
            "directory": os.fspath(directory or pathlib.Path.cwd()),
        }
        with self._lock, remote:
            control = self._control or self._begin()
            socket.send_fds(control, [json.dumps(order).encode()], [out, err, remote.fileno()])
            pid = int(control.recv(16))
        return Child(pid, local)

    def _begin(self) -> socket.socket:
        local, remote = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with remote:
            # -P: what is beside this file must not hide packages of the same names.
            command = [sys.executable, "-P", __file__, str(remote.fileno())]
            server = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[remote.fileno()],
                start_new_session=True,
            )
        self.pid = server.pid
        self._control = local
        return local


# -- the server's side -----------------------------------------------------------------------------


class Order(typing.NamedTuple):
    """Description of a child."""

    command: list[str]
    env: dict[str, str]
    directory: str
    files: list[int]


def serve(control: socket.socket) -> Order:
    """Fork a child for each order.  Returns in the child; the server itself ends with the tests."""
    statuses: dict[int, tuple[int, int]] = {}
    with selectors.DefaultSelector() as ready, control:
        ready.register(control, selectors.EVENT_READ)
        while True:
            for key, _ in ready.select():
                if key.fd in statuses:
                    ready.unregister(key.fd)
                    _tell_end(key.fd, *statuses.pop(key.fd))
                    continue
                message, files, _, _ = socket.recv_fds(control, MOST, 3)
                if not message:
                    sys.exit(0)
                if (pid := os.fork()) == 0:
                    return Order(**json.loads(message), files=files)
                *outputs, status = files
                for file in outputs:
                    os.close(file)
                ended = os.pidfd_open(pid)
                statuses[ended] = (pid, status)
                ready.register(ended, selectors.EVENT_READ)
                control.send(str(pid).encode())


def _tell_end(ended: int, pid: int, status: int) -> None:
    _, code = os.waitpid(pid, 0)
    with contextlib.suppress(BrokenPipeError):  # Nobody wants to know.
        os.write(status, str(os.waitstatus_to_exitcode(code)).encode())
    os.close(status)
    os.close(ended)


def become(order: Order) -> typing.NoReturn:
    """Be the program, and end with it."""
    os.setsid()
    os.chdir(order.directory)
    out, err, _ = order.files
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    script = order.command[0]
    _find_packages(os.path.dirname(script), order.env)
    os.environ.clear()
    os.environ.update(order.env)
    sys.argv[:] = order.command
    cliff.app.App.NAME = pathlib.Path(script).stem  # It read our name when it was imported.
    if order.env.get("PYTHONWARNINGS") == "ignore":
        warnings.simplefilter("ignore")
    if order.env.get("STOKER_TESTS_WATCH_STATEMENTS"):  # As owned_statements.py names it.
        runpy.run_path(str(BESIDE / "owned_statements.py"))["watch_program"]()
    _end(_exit_code(script))


def _exit_code(script: str) -> int:
    """Run it; the exit code is as Python's own."""
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print(ended.code, file=sys.stderr)
        return 1
    except BaseException as error:  # noqa: BLE001 - printed, as Python does
        sys.excepthook(type(error), error, error.__traceback__)
        if isinstance(error, KeyboardInterrupt):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        return 1
    return 0


def _end(code: int) -> typing.NoReturn:
    """End as Python does, but keep the modules: most of the memory is shared with the server until then."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:  # The code and the message are Python's own.
            code = 120
            with contextlib.suppress(OSError):
                print(f"Exception ignored in: {stream!r}\n{type(error).__name__}: {error}", file=sys.stderr)
    os._exit(code)


def _find_packages(folder: str, env: Mapping[str, str]) -> None:
    """Set the search path as Python does for a script in that folder."""
    before = (os.environ.get("PYTHONPATH") or os.pathsep).split(os.pathsep)
    remaining = [path for path in sys.path if path not in before]
    named = filter(None, env.get("PYTHONPATH", "").split(os.pathsep))
    sys.path[:] = [folder, *named, *remaining]


def main() -> None:
    """The server."""
    for name in PRELOADED:
        importlib.import_module(name)
    heat = importlib.import_module("stoker.resources.heat")
    importlib.import_module("stoker.resources.type_folders").types_in(heat)
    path = list(sys.path)
    _find_packages(os.path.dirname(sys.executable), os.environ)
    stevedore.ExtensionManager("any")  # It keeps what is installed on this path.
    sys.path[:] = path
    cliff.command._get_distributions_by_modules()  # A command's help names its package.
    assert len(os.listdir("/proc/self/task")) == 1, "a fork leaves other threads behind"
    gc.freeze()
    become(serve(socket.socket(fileno=int(sys.argv[1]))))


if __name__ == "__main__":
    main()
