"""Starts the parts of a cloud as children of this process, and waits until they serve."""

import os
import pathlib
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import amqp
import requests
from harness.cloud.database import CloudDatabase
from harness.cloud.layout import BIN, HOME, PASSWORD, REGION, Layout
from harness.cloud.services import ALL, OPTIONAL, SERVICES, Daemon, Service
from harness.ports import HOST, free_port
from harness.processes import Process, ProcessEnded
from harness.rabbitmq import RabbitMQ
from harness.server import MissingServer, Server
from harness.waiting import over

Headers = Mapping[str, str]
START_WITHIN = 600.0
"""Seconds for all services together, on a machine that has much else to do."""
COMMAND_WITHIN = 600
"""Seconds for one command that ends, such as one that makes a schema."""
ASKED_FIRST = ("keystone", "placement")
"""Services that daemons ask while they start; they end where one does not answer."""
SEEN = (
    "UPDATE nova_cell1.services SET last_seen_up = UTC_TIMESTAMP(), updated_at = UTC_TIMESTAMP()",
    "UPDATE cinder.services SET updated_at = UTC_TIMESTAMP()",
)
"""Daemons of an earlier run count as alive: each is waited for, and reports ten seconds later only."""


class Running:
    """A cloud while it runs.  For one thread.

    :param directory: folder of the files that the services write.
    :param prepared: the archives of a cloud that was made before; None: it begins empty.
    """

    def __init__(self, directory: pathlib.Path, prepared: pathlib.Path | None) -> None:
        if not (BIN / "nova-manage").exists():
            raise MissingServer(f"OpenStack in {HOME}", "none: it comes from PyPI")
        self._kept = prepared
        self._directory = directory
        self.database = CloudDatabase(prepared / "database.tar.gz" if prepared else None)
        self.broker = RabbitMQ()
        self._processes: dict[str, Process] = {}
        ports = {name: free_port() for service in ALL for name in (service.name, *service.ports)}
        self.layout = Layout(directory, ports, self.database.url, self.broker.url)

    def start_servers(self) -> None:
        """Start the database and the broker, and write the services' configuration."""
        if self._kept:
            subprocess.run(["tar", "-xzf", self._kept / "state.tar.gz", "-C", self._directory], check=True)
        (self._directory / "logs").mkdir()
        for service in ALL:
            service.configure(self.layout)
        servers: Sequence[Server] = (self.database, self.broker)
        with ThreadPoolExecutor(len(servers)) as pool:
            for _ in pool.map(lambda server: server.start(), servers):
                pass
        if self._kept:
            for statement in (*SEEN, *_endpoints(self.layout)):
                self.database.execute(statement, "keystone")

    def start(self, services: Sequence[Service] = SERVICES) -> None:
        """Start services that do not run yet, and wait until they serve."""
        began = time.monotonic()
        new = [service for service in services if service.name not in self._processes]
        for service in new:
            self._launch(service.name, service.command(self.layout), service.environment(self.layout))
        self._wait(began, [name for name in ASKED_FIRST if name in self._processes], self._answers)
        self._start_daemons(began, new)
        headers = self._admin()
        self._ask(new, headers)
        offers = {path: service.name for service in new for path in service.offers}
        self._wait(began, list(offers), lambda path: bool(self._list(offers[path], path, headers)))
        for service in new:
            if service in OPTIONAL:
                self._enter(service, headers)

    def start_optional(self, service: Service) -> None:
        """Start an optional service that does not run yet, after those that it asks."""
        for other in OPTIONAL:
            if other.name in service.after:
                self.start([other])
        self.start([service])

    def ended(self) -> str | None:
        """The story of a part that has ended; None while all run."""
        servers = {"MariaDB": self.database.process, "RabbitMQ": self.broker.process}
        for name, process in {**servers, **self._processes}.items():
            if not process.is_running:
                return f"{name} ended with {process.exit_code}:\n{self._story(name)}"
        return None

    def stop_services(self) -> None:
        """Kill all services, and leave the servers."""
        for process in self._processes.values():
            process.kill()

    def close(self) -> None:
        """Kill everything, and remove what the servers have written."""
        self.stop_services()
        self.broker.close()
        self.database.close()

    def _start_daemons(self, began: float, services: Sequence[Service]) -> None:
        """Start the daemons of services, and wait until both serve."""
        readers = {daemon.name: daemon for service in services for daemon in service.daemons if daemon.queue}
        for service in services:
            for daemon in service.daemons:
                self._launch(daemon.name, daemon.command(service.path(self.layout), self.layout))
                if daemon.is_asked:
                    self._wait(began, [daemon.name], lambda name: self._reads(readers[name]))
        self._wait(began, [service.name for service in services], self._answers)
        self._wait(began, list(readers), lambda name: self._reads(readers[name]))
        self._wait(began, [port for service in services for port in service.ports], self._listens)
        for service in services:
            for program, *arguments in service.settings(self.layout):
                run(self.layout, program, "--config-file", service.path(self.layout), *arguments)

    def _launch(self, name: str, command: Sequence[str], variables: Mapping[str, str] | None = None) -> None:
        log = self.layout.log(name).with_suffix(".out")
        env = {**self.layout.environment(), **(variables or {})}
        self._processes[name] = Process(command, log=log, env=env, directory=self._directory)

    def _wait(self, began: float, names: Sequence[str], serves: Callable[[str], bool]) -> None:
        for name in names:
            while not serves(name):
                if (message := self.ended()) is not None:
                    raise ProcessEnded(message)
                if over(began, START_WITHIN):
                    waited = time.monotonic() - began
                    raise TimeoutError(f"{name} does not serve after {waited:.1f} s:\n{self._story(name)}")
                time.sleep(0.05)

    def _answers(self, name: str) -> bool:
        try:
            return requests.get(self.layout.url(name), timeout=30).status_code < 500
        except (requests.ConnectionError, requests.Timeout):
            return False

    def _listens(self, name: str) -> bool:
        """Return whether a daemon listens on its port."""
        with socket.socket() as connection:
            return connection.connect_ex((HOST, self.layout.ports[name])) == 0

    def _admin(self) -> Headers:
        """The headers of an admin's requests."""
        password = {"user": {"name": "admin", "domain": {"id": "default"}, "password": PASSWORD}}
        scope = {"project": {"name": "admin", "domain": {"id": "default"}}}
        body = {"auth": {"identity": {"methods": ["password"], "password": password}, "scope": scope}}
        answer = requests.post(f"{self.layout.auth_url}/auth/tokens", json=body, timeout=120)
        return {"X-Auth-Token": answer.headers["X-Subject-Token"]}

    def _enter(self, service: Service, headers: Headers) -> None:
        """Enter a service into the service catalog."""

        def add(kind: str, **fields: str) -> str:
            url = f"{self.layout.auth_url}/{kind}s"
            answer = requests.post(url, headers=headers, json={kind: fields}, timeout=120)
            if answer.status_code != 201:
                raise ProcessEnded(f"{url}: {answer.status_code} {answer.text}")
            return str(answer.json()[kind]["id"])

        for service_type, path in service.endpoints:
            entry = add("service", type=service_type, name=service.name)
            url = f"{self.layout.url(service.name)}{path}"
            add("endpoint", service_id=entry, interface="public", region_id=REGION, url=url)

    def _ask(self, services: Sequence[Service], headers: Headers) -> None:
        """Ask each service for a list.

        Services read their policy with their first request, and refuse what comes at the same time.
        """
        for service in services:
            if service.probe:
                self._list(service.name, service.probe, headers)

    def _list(self, name: str, path: str, headers: Headers) -> Sequence[object]:
        url = f"{self.layout.url(name)}{path}"
        answer = requests.get(url, headers=headers, timeout=120)
        if answer.status_code != 200:
            raise ProcessEnded(f"{url}: {answer.status_code} {answer.text}")
        body = answer.json()
        return body if isinstance(body, list) else next(filter(_is_list, body.values()))

    def _reads(self, daemon: Daemon) -> bool:
        """True if the daemon reads its queue."""
        with amqp.Connection(f"{HOST}:{self.broker.port}", connect_timeout=60, read_timeout=60) as connection:
            try:
                queue = connection.channel().queue_declare(daemon.queue, passive=True)
            except amqp.NotFound:
                return False
            return bool(queue.consumer_count)

    def _story(self, name: str) -> str:
        logs = [self.layout.log(name).with_suffix(".out"), self.layout.log(name)]
        return "\n".join(log.read_text(errors="replace")[-3000:] for log in logs if log.exists())


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _endpoints(layout: Layout) -> Sequence[str]:
    """Statements that write to Keystone's service catalog where the services listen now."""
    return [
        f"UPDATE endpoint SET url = '{layout.url(service.name)}{path}'"
        f" WHERE service_id IN (SELECT id FROM service WHERE type = '{kind}')"
        for service in SERVICES
        for kind, path in service.endpoints
    ]


def run(layout: Layout, program: str, *arguments: str) -> None:
    """Run a program of the cloud's to its end.

    :raises ProcessEnded: it failed.
    """
    env = {**os.environ, **layout.environment()}
    command = [BIN / program, *arguments]
    done = subprocess.run(
        command,
        env=env,
        capture_output=True,
        text=True,
        timeout=COMMAND_WITHIN,
        cwd=layout.directory,
        check=False,
    )
    if done.returncode:
        raise ProcessEnded(
            f"{program} {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        )
