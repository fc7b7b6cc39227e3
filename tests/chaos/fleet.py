"""Stoker's daemons in chaos, each with connections and a clock of its own."""

import dataclasses
import os
import pathlib
from collections.abc import Mapping, Sequence

from chaos.backends import DATABASE, BackendSet
from harness import clock
from harness.ports import HOST, free_port
from harness.processes import Process
from harness.programs import BIN, run
from harness.tcp_link import Link, Links
from harness.third_party import with_plugins
from stoker.sealing.sealer import Sealer

READY = "is in the ring and serves"
OPTIONS = """\
[coordination]
heartbeat = 0.5
timeout = 2
poll = 0.5
[stacks]
max_stacks_per_project = 0
max_resources_per_project = 0
max_goals_of_project = 0
max_events_per_stack = 0
task_losses = 1000
resource_retries = 30
cancel_grace = 2
[conductor]
drain = 2
"""
"""Conductors die by chance here, and services fail for long: neither may fail a stack."""


class Daemon:
    """A process that is started again and again.

    :param command: its program and arguments.
    :param env: added to the environment.
    """

    def __init__(
        self, name: str, command: Sequence[str | os.PathLike[str]], log: pathlib.Path, env: dict[str, str]
    ) -> None:
        self.name = name
        self._command = command
        self._log = log
        self._env = env
        self._process: Process | None = None

    def start(self) -> None:
        """Start it, unless it runs; does not wait."""
        if self._process is None or not self._process.is_running:
            self._process = Process(self._command, log=self._log, env=self._env)

    @property
    def process(self) -> Process:
        """The present process, or the last one."""
        assert self._process is not None, f"{self.name} was not started"
        return self._process

    def is_ready(self) -> bool:
        """Return whether it has said once that it is in the ring."""
        return READY in self.process.text()

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()

    def pause(self) -> None:
        """SIGSTOP."""
        self.process.pause()

    def resume(self) -> None:
        """SIGCONT."""
        self.process.resume()

    def stop(self) -> None:
        """SIGTERM, and SIGKILL should that take long."""
        try:
            self.process.stop(30)
        except TimeoutError:
            self.process.kill()


@dataclasses.dataclass(frozen=True)
class Host:
    """A daemon with its connections.

    :ivar links: its connections by the role of the back end.
    :ivar clock: the file with the seconds by which its clock is ahead; None: it has none of its own.
    """

    daemon: Daemon
    links: Mapping[str, Sequence[Link]]
    clock: pathlib.Path | None

    def set_clock(self, ahead: float) -> None:
        """Set the host's clock."""
        if self.clock is not None:
            self.clock.write_text(str(ahead))


class Fleet:
    """Daemons, whatever they are.

    :param folder: gets logs and configurations.
    :param ledger: the address of the ledger.
    :ivar urls: the roots of the API's processes by name.
    :ivar hosts: the daemons by name.
    :ivar database_url: the database's address, with nothing in between.
    """

    database_url: str

    def __init__(self, folder: pathlib.Path, ledger: str) -> None:
        self.folder = folder
        self.urls: dict[str, str] = {}
        self.hosts: dict[str, Host] = {}
        plugins = with_plugins(folder / "plugins", "chaos.ledger_types")["PYTHONPATH"]
        self.env = {
            "PYTHONWARNINGS": "ignore",
            "CHAOS_LEDGER": ledger,
            "PYTHONPATH": os.pathsep.join([str(clock.FOLDER), plugins]),
        }

    def start(self) -> None:
        """Start all daemons, and wait until they serve."""
        for host in self.hosts.values():
            host.daemon.start()
        for name, host in self.hosts.items():
            if name in self.urls:
                host.daemon.process.wait_for_port(int(self.urls[name].rpartition(":")[2]), 120)
            else:
                host.daemon.process.wait_for_text(READY, 120)

    def stop(self) -> None:
        """End all daemons at once."""
        for host in self.hosts.values():
            host.daemon.process.resume()
            host.daemon.kill()


class EmbeddedFleet(Fleet):
    """One process that is API and conductors, without servers."""

    def __init__(self, folder: pathlib.Path, *, ledger: str, conductors: int = 3) -> None:
        super().__init__(folder, ledger)
        port = free_port()
        data = folder / "data"
        config = folder / "more.conf"
        config.write_text(OPTIONS)
        self.database_url = f"sqlite:///{data}/stoker.sqlite"
        self.urls["stoker"] = f"http://{HOST}:{port}"
        command = [BIN / "stoker", "serve", "--data-dir", data, "--port", str(port)]
        command += ["--conductors", str(conductors), "--config-file", config]
        self.hosts["stoker"] = Host(Daemon("stoker", command, folder / "stoker.log", self.env), {}, None)


class ServedFleet(Fleet):
    """An API of some processes, and conductors, on a set of back ends."""

    def __init__(
        self,
        folder: pathlib.Path,
        backends: BackendSet,
        links: Links,
        *,
        ledger: str,
        apis: int = 2,
        conductors: int = 4,
    ) -> None:
        super().__init__(folder, ledger)
        self._backends = backends
        self._links = links
        self._key = Sealer.generate_key()
        self.database_url = backends.roles[DATABASE].direct_url
        self._sync()
        for number in range(1, apis + 1):
            self._add_api(f"api-{number}")
        for number in range(1, conductors + 1):
            self._add(f"conductor-{number}", "stoker-conductor", "--host", f"conductor-{number}")

    def _add_api(self, name: str) -> None:
        port = free_port()
        self.urls[name] = f"http://{HOST}:{port}"
        options = f"[api]\nbind_port = {port}\npublic_url = {self.urls[name]}\n"
        self._add(name, "stoker-api", options=options)

    def _add(self, name: str, program: str, *arguments: str, options: str = "") -> None:
        links = {
            role: [self._links.add(*targets) for targets in backend.addresses]
            for role, backend in self._backends.roles.items()
        }
        urls = {
            role: backend.url([link.port for link in links[role]])
            for role, backend in self._backends.roles.items()
        }
        config = self._write(name, urls, options)
        clock = self.folder / f"{name}.clock"
        daemon = Daemon(
            name,
            [BIN / program, "--config-file", config, *arguments],
            self.folder / f"{name}.log",
            {**self.env, "CLOCK_AHEAD": str(clock)},
        )
        self.hosts[name] = Host(daemon, links, clock)

    def _write(self, name: str, urls: Mapping[str, str], options: str) -> pathlib.Path:
        path = self.folder / f"{name}.conf"
        path.write_text(
            f"[DEFAULT]\ntransport_url = {urls['broker']}\n"
            f"[database]\nconnection = {urls['database']}\n"
            f"[coordination]\nbackend_url = {urls['group']}\n"
            f"[api]\nauth_strategy = none\nworkers = 1\n[secrets]\nkey = {self._key}\n"
            f"{OPTIONS}{self._backends.options}{options}"
        )
        return path

    def _sync(self) -> None:
        urls = {role: backend.direct_url for role, backend in self._backends.roles.items()}
        config = self._write("manage", urls, "")
        done = run([BIN / "stoker-manage", "--config-file", config, "db", "sync"], within=300)
        assert done.returncode == 0, done.stderr
