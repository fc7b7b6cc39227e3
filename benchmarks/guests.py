"""Measure the cost of many servers' guests that ask for their metadata every half minute.

Usage:
    python benchmarks/guests.py             start PostgreSQL, RabbitMQ, etcd, one conductor and stoker-api
    options: --guests 5000   --every 30   --seconds 120   --changed 250

Each guest has a server of its own and asks with a connection of its own, as os-collect-config does: first
all by POLL_TEMP_URL, by a conditional request to a presigned address; then all by POLL_SERVER_CFN, by a
signed request.  The polls are spread evenly.  A poll's time runs from the moment at which it is due.  In the
middle of each part `--changed` servers get a deployment; a guest that has read it is `updated`.
"""

import argparse
import collections
import heapq
import http.client
import json
import pathlib
import sys
import threading
import time
import typing
import urllib.parse
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from xml.etree import ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))

from harness.deployment import Deployment
from harness.postgresql import PostgreSQL
from idle import deployment, statements, tree_cpu
from keystoneclient.contrib.ec2.utils import Ec2Signer

Json = typing.Any
THREADS = 16
EACH = 500
"""Servers of a stack."""


class Guest:
    """The agent of one server."""

    def __init__(self, server_id: str, config: Json) -> None:
        self.server_id = server_id
        self._config = config
        self._tag: str | None = None
        self.deployments = 0

    def poll(self) -> int:
        """Ask once; return the status of the answer."""
        url, headers = self._request()
        parts = urllib.parse.urlsplit(url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
        try:
            connection.request("GET", f"{parts.path}?{parts.query}", headers=headers)
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        self._tag = answer.headers["ETag"] or self._tag
        if answer.status == 200:
            self.deployments = len(self._metadata(body)["deployments"])
        return answer.status

    def _request(self) -> tuple[str, Mapping[str, str]]:
        if "request" in self._config:
            headers = {"If-None-Match": self._tag} if self._tag else {}
            return self._config["request"]["metadata_url"], headers
        keys = self._config["cfn"]
        params = {
            "Action": "DescribeStackResource",
            "StackName": keys["stack_name"],
            "LogicalResourceId": keys["path"].partition(".")[0],
            "AWSAccessKeyId": keys["access_key_id"],
            "SignatureVersion": "2",
        }
        url = urllib.parse.urlsplit(keys["metadata_url"])
        signed = {"params": params, "verb": "GET", "host": url.netloc, "path": url.path}
        params["Signature"] = Ec2Signer(keys["secret_access_key"]).generate(signed)
        return f"{keys['metadata_url']}?{urllib.parse.urlencode(params)}", {}

    def _metadata(self, body: bytes) -> Json:
        if "request" in self._config:
            return json.loads(body)
        [metadata] = ElementTree.fromstring(body).iter("Metadata")
        return json.loads(metadata.text or "")


class Polls:
    """Polls of all guests, each at its time.  The threads share it."""

    def __init__(self, guests: Sequence[Guest], every: float, until: float) -> None:
        began = time.monotonic()
        self._due = [(began + every * n / len(guests), n) for n in range(len(guests))]
        self._guests = guests
        self._every = every
        self._until = until
        self._lock = threading.Lock()
        self.times: list[float] = []
        self.statuses: collections.Counter[int] = collections.Counter()

    def run(self) -> None:
        """Poll until the time is over."""
        while True:
            with self._lock:
                due, number = heapq.heappop(self._due)
                heapq.heappush(self._due, (due + self._every, number))
            if due >= self._until:
                return
            time.sleep(max(0.0, due - time.monotonic()))
            status = self._guests[number].poll()
            with self._lock:
                self.times.append(time.monotonic() - due)
                self.statuses[status] += 1


def template(transport: str, count: int) -> Json:
    """Return a template of servers, with the data for their agents as one output."""
    names = [f"server{n}" for n in range(count)]
    server = {"type": "OS::Heat::DeployedServer", "properties": {"software_config_transport": transport}}
    pairs = [[{"get_resource": name}, {"get_attr": [name, "os_collect_config"]}] for name in names]
    return {
        "heat_template_version": "2018-08-31",
        "resources": dict.fromkeys(names, server),
        "outputs": {"guests": {"value": pairs}},
    }


def make_guests(installation: Deployment, transport: str, count: int) -> list[Guest]:
    """Create so many servers."""
    guests: list[Guest] = []
    while len(guests) < count:
        name = f"{transport.lower().replace('_', '-')}-{len(guests)}"
        path = installation.create(name, template(transport, min(EACH, count - len(guests))))
        installation.wait_final(path, 120)
        _, view = installation.call("GET", path)
        [output] = view["stack"]["outputs"]
        guests += [Guest(*pair) for pair in output["output_value"]]
    return guests


def deploy(installation: Deployment, guests: Sequence[Guest]) -> None:
    """Deploy a config to each of the servers, by the API."""
    body = {"name": "c", "config": "#!/bin/sh\n", "group": "script"}
    _, config = installation.call("POST", "/v1/t/software_configs", body)
    given = {"config_id": config["software_config"]["id"], "action": "CREATE", "status": "IN_PROGRESS"}
    for guest in guests:
        status, answer = installation.call(
            "POST", "/v1/t/software_deployments", {**given, "server_id": guest.server_id}
        )
        assert status == 200, answer


def measure(
    installation: Deployment, postgres: PostgreSQL, transport: str, options: argparse.Namespace
) -> bool:
    """Print one line of the table; return whether all polls were answered."""
    guests = make_guests(installation, transport, options.guests)
    for guest in guests:
        guest.poll()  # The first answer of each is made then; the cost is that of the others.
    before = usage(installation, postgres)
    began = time.monotonic()
    polls = Polls(guests, options.every, began + options.seconds)
    with ThreadPoolExecutor(THREADS) as pool:
        running = [pool.submit(polls.run) for _ in range(THREADS)]
        time.sleep(options.seconds / 2)
        changed = guests[:: max(1, len(guests) // options.changed)][: options.changed]
        deploy(installation, changed)
        for each in running:
            each.result()
    used = [
        (b - a) / (time.monotonic() - began)
        for a, b in zip(before, usage(installation, postgres), strict=True)
    ]
    times = sorted(polls.times)
    late = [times[int(share * len(times))] for share in (0.5, 0.99, 0.999)]
    updated = sum(guest.deployments > 0 for guest in changed)
    statuses = ", ".join(f"{number} x {status}" for status, number in sorted(polls.statuses.items()))
    cells = (
        *(f"{1000 * moment:.0f}" for moment in (*late, times[-1])),
        *(f"{100 * share:.0f}" for share in used[:2]),
        f"{used[2] / (len(times) / options.seconds):.2f}",
        f"{updated} of {len(changed)}",
        statuses,
    )
    print(" | ".join((transport, f"{len(times) / options.seconds:.0f}", *cells)), flush=True)
    return set(polls.statuses) <= {200, 304}


def usage(installation: Deployment, postgres: PostgreSQL) -> tuple[float, float, float]:
    """CPU seconds of stoker-api and of PostgreSQL, and statements, so far."""
    assert installation.api is not None
    return tree_cpu(installation.api.pid), tree_cpu(postgres.process.pid), statements(postgres)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--guests", type=int, default=5000)
    parser.add_argument("--every", type=float, default=30.0)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--changed", type=int, default=250)
    options = parser.parse_args()
    print(
        "transport | polls/s | median, ms | 99 % | 99.9 % | longest | CPU % of the API | of PostgreSQL | "
        "statements each | updated | answers"
    )
    with deployment() as (installation, postgres):
        installation.start_api()
        installation.start_conductors("one")
        answered = [
            measure(installation, postgres, name, options) for name in ("POLL_TEMP_URL", "POLL_SERVER_CFN")
        ]
    return 0 if all(answered) else 1


if __name__ == "__main__":
    sys.exit(main())
