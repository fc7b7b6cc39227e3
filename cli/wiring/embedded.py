"""Everything in one process, for one host and no other server: SQLite, an in-memory broker, a file group."""

import functools
import os
import pathlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..daemon import threading_backend  # noqa: F401  - first: it decides how oslo works

from oslo_log import log  # isort: skip

from ...api.request_log import RequestLog
from ...conductor.service import Conductor
from ...db.engine import Database
from ...db.errors import WrongRevision
from ...db.schema import upgrade
from ...observe.metrics import API
from ...sealing.sealer import Sealer
from ..config import options
from ..config.options import WrongConfiguration
from ..daemon.version import VERSION
from ..http.serving import HttpServer
from .api import make_api, make_http, requests
from .conductor import make_conductor, start_conductor
from .connections import CONNECTION
from .metrics import recorder_of_api, start_reports
from .parts import Parts, open_parts

PROGRAM = "stoker"
# One process pauses for no other one: a conductor is known to be gone sooner than on a network.
CONFIG = """\
[DEFAULT]
transport_url = local:

[database]
connection = sqlite:///{data}/stoker.sqlite

[coordination]
backend_url = file://{data}/coordination
heartbeat = 0.5
timeout = 2
poll = 0.5

[secrets]
key = {key}
"""


@dataclass(frozen=True)
class EmbeddedSettings:
    """:ivar data_dir: keeps the database, the group and the configuration; made if missing.
    :ivar conductors: how many; they are called conductor-1 and so on.
    :ivar config: files that say more than, or other than, the one in the data directory.
    """

    data_dir: pathlib.Path
    host: str = "127.0.0.1"
    port: int = 8004
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

    def start(self) -> None:
        """Begin to serve.

        :raises OSError: the data directory cannot be used, or the port is in use.
        :raises WrongConfiguration: the database is of a newer release, or an option is wrong.
        """
        settings = self._settings
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        conf = options.load([], program=PROGRAM, files=[config_file(settings.data_dir), *settings.config])
        log.setup(conf, "stoker", VERSION)
        conf.set_default("public_url", f"http://{settings.host}:{settings.port}", "api")
        conf.set_default("auth_strategy", "none", "api")
        _bring_up_to_date(Database(conf.database.connection))
        self._parts = parts = open_parts(conf, recorder_of_api(conf, API))
        for number in range(1, settings.conductors + 1):
            conductor = make_conductor(parts, f"conductor-{number}")
            self.conductors.append(conductor)
            start_conductor(parts, conductor)
        self._watch = RequestLog(parts.recorder)
        app = make_api(parts, version=VERSION, watch=self._watch)
        http = make_http(app, conf, settings.host, settings.port)
        self.url = f"http://{settings.host}:{http.start()}"
        self._http = http
        for conductor in self.conductors:
            conductor.wait_ready(10)

    def start_reports(self) -> Callable[[], None]:
        """Return what asks for a report as of the daemons, with sections for each conductor.

        To be called once it has started.
        """
        assert self._parts is not None
        assert self._watch is not None
        sections: dict[str, Callable[[], str]] = {"Requests": functools.partial(requests, self._watch)}
        for conductor in self.conductors:
            found = conductor.monitor.sections()
            sections |= {f"{title} of {conductor.host}": found[title] for title in found}
        return start_reports(self._parts.conf, PROGRAM, sections)

    def stop(self) -> bool:
        """Stop all together: a request that is accepted meanwhile is a row; whether all steps in progress
        ended."""
        stopping: list[Callable[[], object]] = [conductor.stop for conductor in self.conductors]
        if self._http is not None:
            stopping.append(self._http.stop)
        finished = together(stopping)
        if self._parts is not None:
            self._parts.close()
        return all(ended is not False for ended in finished)


def _bring_up_to_date(database: Database) -> None:
    """Nothing older works on it: there is this one process."""
    try:
        upgrade.sync(database)
    except WrongRevision as error:
        raise WrongConfiguration(f"{CONNECTION}: {error}") from error
    finally:
        database.close()


def together(jobs: Sequence[Callable[[], object]]) -> list[object]:
    """Run the jobs side by side; what each returned, False for one that broke.

    Not in a pool of futurist's, whose end waits up to a second for each idle thread.
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
        except RuntimeError:  # There can be no more threads: one after the other, then.
            run(index)
    for thread in started:
        thread.join()
    return results


def config_file(data_dir: pathlib.Path) -> pathlib.Path:
    """The configuration of a data directory, with a sealing key of its own; made at the first start, and
    readable by its owner only.  ``stoker-manage --config-file`` takes it too."""
    path = data_dir / "stoker.conf"
    if not path.exists():
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(CONFIG.format(data=data_dir, key=Sealer.generate_key()))
    return path
