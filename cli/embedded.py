"""Everything in one process, for one host and no other server: SQLite, an in-memory broker, a file group."""

import os
import pathlib
from dataclasses import dataclass, field

from oslo_log import log

from ..conductor.service import Conductor
from ..db import schema
from ..db.engine import Database
from ..db.sealing import Sealer
from . import options
from .serving import HttpServer
from .version import VERSION
from .wiring import Parts, make_api, make_conductor, open_parts, start_conductor

MEMORY_BROKER = "kombu+memory://"


@dataclass(frozen=True)
class EmbeddedSettings:
    """:ivar data_dir: keeps the database, the sealing key and the group; made if missing.
    :ivar conductors: how many; they are called conductor-1 and so on.
    """

    data_dir: pathlib.Path
    host: str = "127.0.0.1"
    port: int = 8004
    conductors: int = 3
    config: list[pathlib.Path] = field(default_factory=list)


class Embedded:
    """The all-in-one.  `start` and `stop` are called by the main thread."""

    def __init__(self, settings: EmbeddedSettings) -> None:
        self._settings = settings
        self.conductors: list[Conductor] = []
        self._parts: Parts | None = None
        self._http: HttpServer | None = None
        self.url = ""

    def start(self) -> None:
        """Begin to serve.

        :raises OSError: the data directory cannot be used, or the port is in use.
        """
        settings = self._settings
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        conf = options.load([], program="stoker", files=settings.config)
        log.setup(conf, "stoker", VERSION)
        conf.set_default("connection", f"sqlite:///{settings.data_dir / 'stoker.sqlite'}", "database")
        conf.set_default("backend_url", f"file://{settings.data_dir / 'coordination'}", "coordination")
        conf.set_default("key", [_sealing_key(settings.data_dir)], "secrets")
        conf.set_default("heartbeat", 0.5, "coordination")
        conf.set_default("timeout", 2.0, "coordination")
        conf.set_default("poll", 0.5, "coordination")
        conf.set_default("public_url", f"http://{settings.host}:{settings.port}", "api")
        database = Database(conf.database.connection)
        schema.upgrade(database)
        database.close()
        self._parts = parts = open_parts(conf, transport_url=MEMORY_BROKER)
        for number in range(1, settings.conductors + 1):
            conductor = make_conductor(parts, f"conductor-{number}")
            self.conductors.append(conductor)
            start_conductor(parts, conductor)
        app = make_api(parts, version=VERSION)
        http = HttpServer(app, host=settings.host, port=settings.port, threads=conf.api.threads)
        self.url = f"http://{settings.host}:{http.start()}"
        self._http = http
        for conductor in self.conductors:
            conductor.wait_ready(10)

    def stop(self) -> bool:
        """Stop in order: no new requests, then the conductors; whether all steps in progress ended."""
        if self._http is not None:
            self._http.stop()
        finished = all(conductor.stop() for conductor in self.conductors)
        if self._parts is not None:
            self._parts.close()
        return finished


def _sealing_key(data_dir: pathlib.Path) -> str:
    """The key of this data directory, made at the first start; readable by its owner only."""
    path = data_dir / "sealing.key"
    if not path.exists():
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(Sealer.generate_key() + "\n")
    return path.read_text().strip()
