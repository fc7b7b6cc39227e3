"""Runs the commands of the page that says how to leave Heat, on a Heat and a Stoker behind one HAProxy."""

import contextlib
import pathlib
import re
import shlex
import shutil
import subprocess
import typing
from collections.abc import Callable, Iterator, Sequence

import requests
from client.serving import Service
from harness.cloud.project import Project
from harness.haproxy import HAProxy
from harness.heat.server import RealHeat
from harness.ports import HOST, free_port
from harness.sources import ROOT

Json = typing.Any
COMMAND = re.compile(r"^ {7}((?:stoker-manage|systemctl|echo) .*)$", re.MULTILINE)
CONFIG = ROOT / "etc/haproxy/leave_heat.cfg"
STOKER = "127.0.0.1:28004"
"""The address of Stoker in that configuration."""


def commands(title: str) -> Sequence[str]:
    """The commands of a section of the page, in their order."""
    page = (ROOT / "doc/leave_heat.md").read_text()
    section = page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return COMMAND.findall(section)


class Evening:
    """The services of both, started and stopped by the page's commands.

    :param folder: the folder of Stoker's files, in which the commands run.
    :param manage: runs a command of ``stoker-manage``, and returns its report.
    :param start_stoker: starts Stoker.
    :ivar stoker: the Stoker that runs; None: none does.
    :ivar answers: statuses of the answers to a request that reads and one that writes, by words of the map.
    """

    def __init__(
        self,
        folder: pathlib.Path,
        heat: RealHeat,
        project: Project,
        manage: Callable[[Sequence[str]], Json],
        start_stoker: Callable[[], contextlib.AbstractContextManager[Service]],
    ) -> None:
        self.stoker: Service | None = None
        self.answers: dict[str, tuple[int, int]] = {}
        self._folder = folder
        self._heat = heat
        self._project = project
        self._manage = manage
        self._start_stoker = start_stoker
        self._running = contextlib.ExitStack()
        self._map = folder / "moves.map"
        (folder / "heat.url").write_text(heat.database)
        shutil.copy(heat.config, folder / "heat.conf")
        replacements = {
            "127.0.0.1:8004": "FRONTEND",
            "127.0.0.1:8000": f"{HOST}:{free_port()}",
            "127.0.0.1:18004": heat.api.removeprefix("http://").removesuffix("/v1"),
            "127.0.0.1:18000": heat.cfn.removeprefix("http://"),
            "/etc/haproxy/moves.map": str(self._map),
        }
        self._proxy = HAProxy(CONFIG, replacements)

    def __enter__(self) -> typing.Self:
        self._map.write_text("all heat\n")
        self._proxy.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()
        self._proxy.close()

    def run(self, lines: Sequence[str]) -> Json:
        """Run commands; the report of the last one that has one."""
        report: Json = None
        for line in lines:
            if line.startswith("stoker-manage"):
                with contextlib.chdir(self._folder):
                    report = self._manage(shlex.split(line)[1:])
            elif line.startswith("echo"):
                command = line.replace("/etc/haproxy/moves.map", str(self._map))
                subprocess.run(["bash", "-c", command], check=True)
            else:
                for action, service in _actions(line):
                    self._control(action, service)
        return report

    def _control(self, action: str, service: str) -> None:
        match action, service:
            case "reload", "haproxy":
                self._proxy.restart()
                self.answers[self._map.read_text().split()[1]] = self._ask()
            case "stop", "heat-api" | "heat-api-cfn" | "heat-engine":
                self._heat.stop()
            case "start", "heat-engine":
                self._heat.resume()
            case "start", "stoker-api":
                self.stoker = self._running.enter_context(self._start_stoker())
                config = self._proxy.directory / "haproxy.cfg"
                config.write_text(config.read_text().replace(STOKER, self.stoker.url.removeprefix("http://")))
            case "stop", "stoker-api":
                self._running.close()

    def _ask(self) -> tuple[int, int]:
        url = f"{self._proxy.url}/v1/{self._project.id}/stacks"
        headers = {"X-Auth-Token": self._project.token}
        return (
            requests.get(url, headers=headers, timeout=60).status_code,
            requests.post(url, headers=headers, json={}, timeout=60).status_code,
        )


def _actions(line: str) -> Iterator[tuple[str, str]]:
    """Yield the action and the service for each service that ``systemctl`` is to control."""
    _, action, *services = line.split()
    yield from ((action, service) for service in services)
