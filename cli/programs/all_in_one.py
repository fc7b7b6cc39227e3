"""``stoker``: everything in one process, for one host and with no other server.

It works on SQLite, an in-memory broker and a group in files.
"""

import argparse
import functools
import pathlib
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ...observe.terminal import write_lines
from ..daemon import threading_backend  # noqa: F401  - first: it decides how oslo works

from oslo_log import log  # isort: skip

from ...api.app import RequestLog
from ...conductor.service import Conductor
from ..config import options
from ..config.sections import Settings
from ..daemon.main_loop import OperatorSignal, SignalQueue
from ..daemon.main_thread import run
from ..daemon.version import VERSION
from ..http.limits import ServerSettings
from ..http.server import HttpServer
from ..wiring.api import make_api, requests
from ..wiring.conductor import make_conductor, start_conductor
from ..wiring.data_dir import config_files, migrate
from ..wiring.database import needed_at_start
from ..wiring.http import make_http
from ..wiring.metrics import recorder_of_api, text_of
from ..wiring.parts import Parts, open_parts
from ..wiring.reports import start_reports

_WITHIN = ("stoker.ring=WARN", "stoker.conductor.ownership=WARN")
"""Loggers of a ring of one process, whose news would bury the address that users wait for."""

PROGRAM = "stoker"
TENANT = "demo"


@dataclass(frozen=True)
class EmbeddedSettings:
    """The settings of the all-in-one.

    :ivar data_dir: keeps the database, the group and the configuration; made if missing.
    :ivar conductors: how many; they are called conductor-1 and so on.
    :ivar config: files that say more than, or other than, the one in the data directory; none: the one that
        the environment names.
    """

    data_dir: pathlib.Path
    host: str = ServerSettings.host
    port: int = ServerSettings.port
    conductors: int = 3
    config: list[pathlib.Path] = field(default_factory=list)


class Embedded:
    """The all-in-one.  All is called by the main thread."""

    def __init__(self, settings: EmbeddedSettings) -> None:
        self._settings = settings
        self.conductors: list[Conductor] = []
        self._parts: Parts | None = None
        self._watch: RequestLog | None = None
        self._http: HttpServer | None = None
        self.url = ""

    @needed_at_start()
    def start(self) -> None:
        """Begin to serve.

        :raises OSError: the data directory cannot be used, or the port is in use.
        :raises WrongConfiguration: the database is of a newer release, or an option is wrong.
        """
        settings = self._settings
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        conf = options.load([], program=PROGRAM, files=config_files(settings.data_dir, settings.config))
        if not conf.debug:
            conf.set_default("default_log_levels", [*options.QUIET, *_WITHIN])
        log.setup(conf, "stoker", VERSION)
        conf.set_default("public_url", f"http://{settings.host}:{settings.port}", "api")
        conf.set_default("auth_strategy", "none", "api")
        migrate(conf)
        self._parts = parts = open_parts(conf, recorder_of_api(conf))
        for number in range(1, settings.conductors + 1):
            conductor = make_conductor(parts, f"conductor-{number}")
            self.conductors.append(conductor)
            start_conductor(parts, conductor)
        self._watch = RequestLog(parts.recorder)
        app = make_api(parts, version=VERSION, log=self._watch, metrics_text=text_of(parts.recorder))
        http = make_http(app, conf, settings.host, settings.port)
        self.url = f"http://{settings.host}:{http.start()}"
        self._http = http
        for conductor in self.conductors:
            conductor.wait_ready(10)

    @property
    def has_console(self) -> bool:
        """Return whether the API serves the console; once it has started."""
        return self._parts is not None and Settings(self._parts.conf).api.console

    def start_reports(self) -> Callable[[], None]:
        """Return a function that requests a report like the daemons', with sections for each conductor.

        To be called once it has started.
        """
        assert self._parts is not None
        assert self._watch is not None
        sections: dict[str, Callable[[], str]] = {"Requests": functools.partial(requests, self._watch)}
        for conductor in self.conductors:
            texts = conductor.monitor.sections()
            sections |= {f"{title} of {conductor.host}": texts[title] for title in texts}
        return start_reports(self._parts.conf, PROGRAM, sections)

    def stop(self) -> bool:
        """Stop all parts side by side; return whether all steps in progress have ended.

        A request that is accepted meanwhile is stored.
        """
        stopping: list[Callable[[], object]] = [conductor.stop for conductor in self.conductors]
        if self._http is not None:
            stopping.append(self._http.stop)
        finished = run_all(stopping)
        if self._parts is not None:
            self._parts.close()
        return all(ended is not False for ended in finished)


def run_all(jobs: Sequence[Callable[[], object]]) -> list[object]:
    """Run jobs side by side; return the result of each, False for one that failed.

    A pool of futurist is no substitute: its end waits up to a second for each idle thread.
    """
    results: list[object] = [False] * len(jobs)

    def run(index: int) -> None:
        results[index] = jobs[index]()

    started = []
    for index in range(len(jobs)):
        thread = threading.Thread(target=run, args=(index,), name="stop")
        try:
            thread.start()
            started.append(thread)
        except RuntimeError:  # No more threads can be started: run them one after the other.
            run(index)
    for thread in started:
        thread.join()
    return results


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments."""
    parser = options.make_parser(PROGRAM)
    parser.add_argument("--version", action="version", version=VERSION)
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser(
        "serve", help="run the API and several conductors in this process, with no other server"
    )
    serve.add_argument("--data-dir", type=pathlib.Path, required=True, help="keeps the database and the keys")
    serve.add_argument(
        "--host", default=EmbeddedSettings.host, help="address to listen on (default: %(default)s)"
    )
    serve.add_argument(
        "--port", type=int, default=EmbeddedSettings.port, help="port to listen on (default: %(default)s)"
    )
    serve.add_argument(
        "--conductors",
        type=int,
        default=EmbeddedSettings.conductors,
        help="number of conductors (default: %(default)s)",
    )
    serve.add_argument(
        "--config-file", type=pathlib.Path, action="append", default=[], help="oslo.config file"
    )
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run the program.

    The exit code is 0 after SIGTERM or SIGINT, 1 if it could not start, 2 for wrong arguments.
    """
    parsed = make_parser().parse_args(arguments)
    if parsed.conductors < 1:
        write_lines(sys.stderr, f"stoker: --conductors must be 1 or more, not {parsed.conductors}")
        return 2
    settings = EmbeddedSettings(
        parsed.data_dir.resolve(), parsed.host, parsed.port, parsed.conductors, parsed.config_file
    )
    return run(PROGRAM, Serve(Embedded(settings)))


class Serve:
    """The all-in-one as a daemon."""

    def __init__(self, embedded: Embedded) -> None:
        self.signals = SignalQueue()
        self._embedded = embedded

    def start(self) -> None:
        """Start all parts, see Daemon."""
        self._embedded.start()
        self.signals.report = self._embedded.start_reports()

    def serve(self) -> int:
        """Serve until a stop is asked for, see Daemon."""
        url = self._embedded.url
        console = [f"or open {url}/console/ in a browser"] if self._embedded.has_console else []
        environment = f"export {client_environment(url)}"
        write_lines(sys.stdout, f"Stoker serves at {url}; use it with:", environment, *console)
        while self.signals.next() != OperatorSignal.STOP:
            write_lines(sys.stderr, "stoker: SIGHUP changes nothing here; restart it instead")
        return 0

    def stop(self) -> bool:
        """Stop all parts that have started, see Daemon."""
        return self._embedded.stop()


def client_environment(url: str, project_id: str = TENANT) -> str:
    """Return the variables for the OpenStack client, as a shell takes them."""
    return f"OS_AUTH_TYPE=none OS_ENDPOINT={url}/v1/{project_id}"
