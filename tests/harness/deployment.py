"""Stoker's own processes, as an operator runs them."""

import configparser
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import typing
import urllib.error
import urllib.request
import uuid
from collections.abc import Mapping, Sequence

from harness.etcd import Etcd
from harness.ports import free_port
from harness.postgresql import PostgreSQL
from harness.processes import Process, ProcessEnded
from harness.programs import BIN, Program, run
from harness.rabbitmq import RabbitMQ
from harness.third_party import with_plugins
from harness.waiting import wait_for

PROGRAM = "import sys; from {} import main; sys.exit(main())"


class Deployment:
    """stoker-api and several stoker-conductor on given servers.

    :param database_url: address of an empty database.
    :param env: added to the environment of the processes.
    :param code: folder of another version of Stoker, as in PYTHONPATH, that sets up the database.
    :param kind: start of this version's daemons, by the fork server or as programs.
    :param workers: processes of the API.
    """

    def __init__(
        self,
        directory: pathlib.Path,
        *,
        database_url: str,
        transport_url: str,
        backend_url: str,
        options: str = "",
        env: dict[str, str] | None = None,
        code: pathlib.Path | None = None,
        kind: type[Process] = Program,
        workers: int = 1,
    ) -> None:
        self._kind = kind
        self.env = {"PYTHONWARNINGS": "ignore", **(env or {})}
        self.directory = directory
        self.database_url = database_url
        self.port = free_port()
        self.api: Process | None = None
        self.conductors: dict[str, Process] = {}
        self.config = directory / "stoker.conf"
        key = self._run("stoker-manage", "key", "generate").strip()
        self.config.write_text(
            f"[DEFAULT]\ntransport_url = {transport_url}\n"
            f"[database]\nconnection = {database_url}\n"
            f"[coordination]\nbackend_url = {backend_url}\nheartbeat = 0.5\ntimeout = 2\npoll = 0.5\n"
            "[stacks]\nmax_stacks_per_project = 0\nmax_resources_per_project = 0\nmax_goals_of_project = 0\n"
            f"[api]\nbind_port = {self.port}\npublic_url = {self.url}\nauth_strategy = none\n"
            f"workers = {workers}\n[secrets]\nkey = {key}\n{options}"
        )
        self.manage("db", "sync", code=code)

    @property
    def url(self) -> str:
        """The API's root."""
        return f"http://127.0.0.1:{self.port}"

    def start_api(self, code: pathlib.Path | None = None) -> None:
        """Start stoker-api and wait until it answers.

        :param code: see launch_conductor.
        """
        self.api = self._launch("stoker-api", name="api", code=code)
        self.api.wait_for_port(self.port)
        wait_for(self._healthy, 60, lambda: "the API does not answer")

    def _healthy(self) -> bool:
        try:
            return self.call("GET", "/healthcheck")[0] == 200
        except OSError:
            return False

    def launch_conductor(self, host: str, *arguments: str, code: pathlib.Path | None = None) -> Process:
        """Start a conductor; does not wait.

        :param code: folder of another version of Stoker, as in PYTHONPATH; None: the tested one.
        """
        launched = self._launch("stoker-conductor", "--host", host, *arguments, name=host, code=code)
        self.conductors[host] = launched
        return launched

    def _launch(self, program: str, *arguments: str, name: str, code: pathlib.Path | None) -> Process:
        command = [*_command(program, code), "--config-file", self.config, *arguments]
        kind = self._kind if code is None else Process
        return kind(command, log=self.directory / f"{name}.log", env=self.env | _path(code, self.env))

    def start_conductors(self, *hosts: str) -> None:
        """Start conductors and wait until all are in the ring."""
        for daemon in [self.launch_conductor(host) for host in hosts]:
            daemon.wait_for_text("is in the ring and serves")

    def stop(self) -> None:
        """End everything at once."""
        for daemon in [*self.conductors.values(), *([self.api] if self.api else [])]:
            daemon.kill()

    def manage(self, *arguments: str, code: pathlib.Path | None = None) -> str:
        """Run stoker-manage; its output.

        :param code: see launch_conductor.
        """
        return self._run("stoker-manage", "--config-file", str(self.config), *arguments, code=code)

    def _run(self, name: str, *arguments: str, code: pathlib.Path | None = None) -> str:
        done = (
            run([BIN / name, *arguments], within=120) if code is None else _run_older(name, arguments, code)
        )
        if done.returncode != 0:
            raise ProcessEnded(f"{name} {' '.join(arguments)} ended with {done.returncode}:\n{done.stderr}")
        return done.stdout

    def call(self, method: str, path: str, body: typing.Any = None) -> tuple[int, typing.Any]:
        """One request; status and parsed body."""
        return call(self.url, method, path, body)

    def create(self, name: str, template: typing.Any, **fields: typing.Any) -> str:
        """Create a stack of the project ``t``; return its path below the API's root."""
        body = {"stack_name": name, "template": template, **fields}
        status, answer = self.call("POST", "/v1/t/stacks", body)
        assert status == 201, answer
        return f"/v1/t/stacks/{name}/{answer['stack']['id']}"

    def show(self, path: str) -> typing.Any:
        """The stack at the path."""
        status, answer = self.call("GET", f"{path}?resolve_outputs=false")
        assert status == 200, answer
        return answer["stack"]

    def wait_final(self, path: str, seconds: float = 120.0) -> typing.Any:
        """Wait until the stack is no longer IN_PROGRESS; the stack."""
        wait_for(
            lambda: not self.show(path)["stack_status"].endswith("IN_PROGRESS"),
            seconds,
            lambda: f"{self.show(path)}\n" + "\n".join(d.text()[-1500:] for d in self.conductors.values()),
        )
        return self.show(path)


@dataclasses.dataclass(frozen=True)
class Servers:
    """The servers of a usual installation."""

    rabbitmq: RabbitMQ
    postgresql: PostgreSQL
    etcd: Etcd

    def deployment(
        self,
        directory: pathlib.Path,
        options: str = "",
        *,
        plugins: bool = False,
        kind: type[Process] = Program,
    ) -> Deployment:
        """A deployment with a vhost, a database and a group of its own.

        :param plugins: the deployment has the resource types of `harness.plugins`.
        """
        return Deployment(
            directory,
            database_url=self.postgresql.create_database(),
            transport_url=self.rabbitmq.create_vhost(),
            backend_url=self.etcd.url,
            options=f"[coordination]\ngroup = {uuid.uuid4()}\n{options}",
            env=with_plugins(directory / "plugins") if plugins else None,
            kind=kind,
        )


def _run_older(
    program: str, arguments: Sequence[str], code: pathlib.Path
) -> subprocess.CompletedProcess[str]:
    command = [*_command(program, code), *arguments]
    env = os.environ | _path(code, {})
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=env)


def _command(program: str, code: pathlib.Path | None) -> list[str]:
    if code is None:
        return [str(BIN / program)]
    setup = configparser.ConfigParser(interpolation=None)
    setup.read(code / "stoker" / "setup.cfg")
    scripts = dict(
        line.replace(" ", "").split("=")
        for line in setup["options.entry_points"]["console_scripts"].strip().splitlines()
    )
    return [sys.executable, "-W", "ignore", "-c", PROGRAM.format(scripts[program].split(":")[0])]


def _path(code: pathlib.Path | None, env: Mapping[str, str]) -> dict[str, str]:
    """The older code comes before whatever else is found there."""
    more = [env["PYTHONPATH"]] if "PYTHONPATH" in env else []
    return {} if code is None else {"PYTHONPATH": os.pathsep.join([str(code), *more])}


def call(url: str, method: str, path: str, body: typing.Any = None) -> tuple[int, typing.Any]:
    """One request with a JSON body; redirects are not followed."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        url + path, data=data, method=method, headers={"Content-Type": "application/json"}
    )
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=120) as answer:
            return answer.status, _parsed(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, _parsed(error.read())


def _parsed(raw: bytes) -> typing.Any:
    return json.loads(raw) if raw else None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: typing.Any, **kwargs: typing.Any) -> None:
        return None
