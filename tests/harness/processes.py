"""Stoker's own processes, as an operator runs them."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import typing
import urllib.error
import urllib.request
from collections.abc import Sequence

from .server import ServerError, free_port, wait_for

BIN = pathlib.Path(sys.executable).parent


class Daemon:
    """One process of Stoker's, with its log in a file.

    :param command: program's name and arguments.
    """

    def __init__(self, name: str, command: Sequence[str], directory: pathlib.Path) -> None:
        self.name = name
        self.log = directory / f"{name}.log"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [str(BIN / command[0]), *command[1:]],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, "PYTHONWARNINGS": "ignore"},
            )

    def wait_for_line(self, text: str, seconds: float = 30.0) -> None:
        """Wait until the log says it."""

        def said() -> bool:
            if text in self.text():
                return True
            if self.process.poll() is not None:
                raise ServerError(f"{self.name} ended with {self.process.returncode}:\n{self.text()[-3000:]}")
            return False

        wait_for(said, seconds, lambda: f'{self.name} does not say "{text}":\n{self.text()[-3000:]}')

    def text(self) -> str:
        """The log so far."""
        return self.log.read_text(errors="replace")

    def send(self, number: int) -> None:
        """Signal it."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """As kill -9 does."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)

    def stop(self, seconds: float = 60.0) -> int:
        """As systemctl stop does; the exit code."""
        self.process.terminate()
        return self.process.wait(seconds)


class Deployment:
    """stoker-api and several stoker-conductor on given servers.

    :param database_url: of an empty database.
    """

    def __init__(
        self,
        directory: pathlib.Path,
        *,
        database_url: str,
        transport_url: str,
        backend_url: str,
        options: str = "",
    ) -> None:
        self.directory = directory
        self.port = free_port()
        self.api: Daemon | None = None
        self.conductors: dict[str, Daemon] = {}
        self.config = directory / "stoker.conf"
        key = self._run("stoker-manage", "key", "generate").strip()
        self.config.write_text(
            f"[DEFAULT]\ntransport_url = {transport_url}\n"
            f"[database]\nconnection = {database_url}\n"
            f"[coordination]\nbackend_url = {backend_url}\nheartbeat = 0.5\ntimeout = 2\npoll = 0.5\n"
            f"[api]\nbind_port = {self.port}\npublic_url = http://127.0.0.1:{self.port}\n"
            f"[secrets]\nkey = {key}\n{options}"
        )
        self.manage("db", "sync")

    @property
    def url(self) -> str:
        """The API's root."""
        return f"http://127.0.0.1:{self.port}"

    def start_api(self) -> None:
        """Start stoker-api and wait until it answers."""
        self.api = Daemon("api", ["stoker-api", "--config-file", str(self.config)], self.directory)
        wait_for(self._healthy, 30, lambda: f"the API does not answer:\n{self.api.text()[-3000:]}")

    def _healthy(self) -> bool:
        try:
            return self.call("GET", "/healthcheck")[0] == 200
        except OSError:
            return False

    def launch_conductor(self, host: str) -> Daemon:
        """Start a conductor; does not wait."""
        command = ["stoker-conductor", "--config-file", str(self.config), "--host", host]
        daemon = self.conductors[host] = Daemon(host, command, self.directory)
        return daemon

    def start_conductors(self, *hosts: str) -> None:
        """Start conductors and wait until all are in the ring."""
        for daemon in [self.launch_conductor(host) for host in hosts]:
            daemon.wait_for_line("is in the ring and serves")

    def stop(self) -> None:
        """End everything at once."""
        for daemon in [*self.conductors.values(), *([self.api] if self.api else [])]:
            daemon.kill()

    def manage(self, *arguments: str) -> str:
        """Run stoker-manage; its output."""
        return self._run("stoker-manage", "--config-file", str(self.config), *arguments)

    def _run(self, name: str, *arguments: str) -> str:
        done = subprocess.run(
            [str(BIN / name), *arguments], capture_output=True, text=True, timeout=120, check=False
        )
        if done.returncode != 0:
            raise ServerError(f"{name} {' '.join(arguments)} ended with {done.returncode}:\n{done.stderr}")
        return done.stdout

    def call(self, method: str, path: str, body: typing.Any = None) -> tuple[int, typing.Any]:
        """One request; status and parsed body."""
        return call(self.url, method, path, body)

    def create(self, name: str, template: typing.Any, **fields: typing.Any) -> str:
        """Create a stack of the tenant ``t``; its path below the API's root."""
        body = {"stack_name": name, "template": template, **fields}
        status, answer = self.call("POST", "/v1/t/stacks", body)
        assert status == 201, answer
        return f"/v1/t/stacks/{name}/{answer['stack']['id']}"

    def show(self, path: str) -> typing.Any:
        """The stack at the path."""
        status, answer = self.call("GET", f"{path}?resolve_outputs=false")
        assert status == 200, answer
        return answer["stack"]

    def wait_final(self, path: str, seconds: float = 60.0) -> typing.Any:
        """Wait until the stack is no longer IN_PROGRESS; the stack."""
        wait_for(
            lambda: not self.show(path)["stack_status"].endswith("IN_PROGRESS"),
            seconds,
            lambda: f"{self.show(path)}\n" + "\n".join(d.text()[-1500:] for d in self.conductors.values()),
        )
        return self.show(path)


def call(url: str, method: str, path: str, body: typing.Any = None) -> tuple[int, typing.Any]:
    """One request with a JSON body; redirects are not followed."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        url + path, data=data, method=method, headers={"Content-Type": "application/json"}
    )
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=60) as answer:
            return answer.status, _parsed(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, _parsed(error.read())


def _parsed(raw: bytes) -> typing.Any:
    return json.loads(raw) if raw else None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: typing.Any, **kwargs: typing.Any) -> None:
        return None
