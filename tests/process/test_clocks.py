"""Hosts whose clocks are hours wrong, and are set while their daemons work: the database's time counts."""

import json
import pathlib
import time
import typing
from collections.abc import Iterator

import pytest
from harness import clock, templates
from harness.deployment import Servers
from harness.processes import Process
from harness.waiting import wait_for

Json = typing.Any
HOURS = 7200.0
TIMEOUT = 12.0
COUNT = 30


class Hosts:
    """An API and three conductors, each with a clock of its own."""

    def __init__(self, directory: pathlib.Path, servers: Servers) -> None:
        self._directory = directory
        options = f"[stacks]\ntimeout = {TIMEOUT}\ncancel_grace = 1\n"
        self.deployment = servers.deployment(directory, options, kind=Process)
        plain = dict(self.deployment.env)
        for host, ahead in (("api", HOURS), ("one", HOURS), ("two", -HOURS), ("three", 0.0)):
            self.set(host, ahead)
            path = ":".join(filter(None, [str(clock.FOLDER), plain.get("PYTHONPATH")]))
            self.deployment.env = {**plain, "CLOCK_AHEAD": str(self._file(host)), "PYTHONPATH": path}
            if host == "api":
                self.deployment.start_api()
            else:
                self.deployment.start_conductors(host)

    def _file(self, host: str) -> pathlib.Path:
        return self._directory / f"{host}.ahead"

    def set(self, host: str, ahead: float) -> None:
        """Set the clock of a host."""
        self._file(host).write_text(str(ahead))


@pytest.fixture
def hosts(tmp_path: pathlib.Path, servers: Servers) -> Iterator[Hosts]:
    started = Hosts(tmp_path, servers)
    yield started
    started.deployment.stop()


def clocks(hosts: Hosts) -> dict[str, float]:
    rows = json.loads(hosts.deployment.manage("service", "list", "-f", "json"))
    return {row["Host"]: row["Clock ahead"] for row in rows}


def test_no_timeout_is_early_or_late_and_stacks_complete(hosts: Hosts) -> None:
    deployment = hosts.deployment
    began: dict[str, float] = {}
    for number in range(COUNT):
        now = time.monotonic()
        began[deployment.create(f"s{number}", templates.flat(1, wait_secs=600))] = now
    wait_for(
        lambda: clocks(hosts) == {"one": HOURS, "two": -HOURS, "three": 0.0},
        60,
        lambda: str(clocks(hosts)),
    )
    for host, ahead in (("api", -HOURS), ("one", -HOURS), ("two", HOURS), ("three", HOURS)):
        hosts.set(host, ahead)
    ended: dict[str, float] = {}

    def look() -> bool:
        for path in began.keys() - ended.keys():
            if deployment.show(path)["stack_status"] == "CREATE_FAILED":
                ended[path] = time.monotonic()
        return len(ended) == COUNT

    wait_for(look, 120, lambda: f"{len(ended)} of {COUNT} have timed out")
    early = {path: ended[path] - began[path] for path in began if ended[path] - began[path] < TIMEOUT}
    assert not early
    final = deployment.wait_final(deployment.create("polled", templates.flat(20, wait_secs=1)))
    assert final["stack_status"] == "CREATE_COMPLETE"
    warning = "This host's clock differs from the database's by"
    for host in ("one", "two", "three"):
        deployment.conductors[host].wait_for_text(warning)
