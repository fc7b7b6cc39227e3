"""The API while strangers send it the heaviest requests that it has to refuse: others are answered."""

import dataclasses
import http.client
import json
import threading
import time
import typing
from collections.abc import Iterator

import pytest
import requests
from client.serving import Service
from harness import attacks, pace
from harness.waiting import wait_for

BODY = 8 * 1024 * 1024
"""Bytes of a request, at the most: the service's own limit."""
CLIENTS = 16
SECONDS = 8.0
INTERVAL = 0.1
HEADERS = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    running = Service(tmp_path_factory.mktemp("heavy"), conductors=1)
    try:
        yield running
    finally:
        running.stop()


def heavy() -> list[bytes]:
    """Return the bodies of the attacks that a request can carry."""
    bodies = (json.dumps({"stack_name": "heavy", **body}).encode() for body in attacks.requests())
    return [body for body in bodies if len(body) < BODY]


@dataclasses.dataclass
class Client:
    """Answers of one address to one client.

    :ivar answers: the status and the seconds of each.
    """

    path: str
    answers: list[tuple[int, float]] = dataclasses.field(default_factory=list)

    def ask(self, url: str, ends: threading.Event) -> None:
        """Ask again and again."""
        while not ends.wait(INTERVAL):
            began = time.monotonic()
            status = requests.get(url + self.path, timeout=120).status_code
            self.answers.append((status, time.monotonic() - began))

    @property
    def slowest(self) -> float:
        """Seconds."""
        return max(seconds for _, seconds in self.answers)


@dataclasses.dataclass
class Attack:
    """Clients that send the bodies in turn.

    :ivar answers: the status of each.
    """

    host: str
    bodies: list[bytes]
    answers: list[int] = dataclasses.field(default_factory=list)

    def send(self, first: int, ends: threading.Event) -> None:
        """Send one after the other, from the first on."""
        connection = http.client.HTTPConnection(self.host, timeout=120)
        number = first
        while not ends.is_set():
            body = self.bodies[number % len(self.bodies)]
            connection.request("POST", "/v1/t/stacks", body, HEADERS)
            with connection.getresponse() as answer:
                answer.read()
                self.answers.append(answer.status)
            number += 1
        connection.close()


def carry_out(targets: list[typing.Any], attack: Attack, ends: threading.Event) -> float:
    """Run all for a while, until a client has sent a second time.

    :returns: how slow the host is without them, before or after.
    """
    threads = [threading.Thread(target=target) for target in targets]
    before = pace.measure()
    for thread in threads:
        thread.start()
    time.sleep(SECONDS)
    try:
        wait_for(lambda: len(attack.answers) > CLIENTS, 120)
    finally:
        ends.set()
    for thread in threads:
        thread.join()
    return before.worse(pace.measure()).wall


@pytest.mark.alone
def test_health_is_answered_within_a_second_and_others_are_answered(service: Service) -> None:
    path = service.created("other", "s", {"heat_template_version": "2018-08-31", "resources": {}})
    attack = Attack(service.url.removeprefix("http://"), heavy())
    assert len(attack.bodies) > 30
    health = Client("/healthcheck")
    stack_client = Client(path)
    ends = threading.Event()
    senders = [lambda first=first: attack.send(first * 2, ends) for first in range(CLIENTS)]
    askers = [lambda client=client: client.ask(service.url, ends) for client in (health, stack_client)]
    slower = carry_out([*senders, *askers], attack, ends)
    assert len(attack.answers) > CLIENTS
    assert set(attack.answers) <= {201, 400, 409}
    assert {status for status, _ in [*health.answers, *stack_client.answers]} == {200}
    assert health.slowest < slower
    assert len(health.answers) >= SECONDS / 2 / slower
