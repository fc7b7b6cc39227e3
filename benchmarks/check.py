"""Compares what things cost with what they cost when `ratios.json` was stored.

Usage:
    python benchmarks/check.py             exit code 1 where something became dearer by more than its bound
    python benchmarks/check.py --store     store the present costs

On RabbitMQ, PostgreSQL and etcd, with an API of two processes and two conductors:

    processor     processor time of the conductors for a resource of a stack, of the conductors in an idle
                  second, or of the API for a request; each a ratio to that of the bare loop of floor.py for
                  a resource
    statements    SQL statements of a resource, or of an idle second
    messages      messages of a resource
    memory        that of a conductor (RSS) or of the API (PSS), fresh and after the stacks; a ratio to that
                  of an interpreter which has imported the libraries of both

The least of several rounds counts.  Whatever else a machine does takes processor time from Stoker and from
the bare loop, now more and now less, and makes batches smaller, so there are more rounds as long as something
seems to be too dear.  Memory is read once.
"""

import argparse
import collections
import http.client
import json
import pathlib
import subprocess
import sys
import time
import typing
from collections.abc import Callable, Iterable, Mapping

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))

import end_to_end
import processes
from end_to_end import Bench, Floors, Usage
from harness import proctree, templates
from harness.deployment import Deployment

STORED = pathlib.Path(__file__).with_name("ratios.json")
ROUNDS = 3
"""Rounds that are enough where nothing is too dear in them."""
MOST_ROUNDS = 12
IDLE_SECONDS = 10.0
BARE = """
import falcon, oslo_messaging, psycopg, sqlalchemy.dialects.postgresql
print(open("/proc/self/smaps_rollup").read())
"""
"""A program that has loaded the libraries of the API and of conductors."""
REQUESTS = 100
"""Requests of each kind in a round."""
BOUNDS = {"statements": 1.15, "messages": 1.15, "processor": 1.3, "memory": 1.1}
"""Times the stored cost that is too dear."""
Json = typing.Any
Costs = Mapping[str, Mapping[str, float]]
CASES: Mapping[str, Callable[[], Json]] = {
    "flat 1000": lambda: templates.flat(1000),
    "chain 100": lambda: templates.chain(100),
    "layers 10 x 20": lambda: templates.layered(10, 20),
}
RESOURCES = {"flat 1000": 1000, "chain 100": 100, "layers 10 x 20": 200}
SLACK: Costs = {
    **{case: {"statements": 75 / count, "messages": 5 / count} for case, count in RESOURCES.items()},
    "idle second": {"statements": 1.0},
}
"""Costs beyond the bound that a slow machine may add: looks of the benchmark, and duties."""


class Measurement:
    """The least costs of one deployment.

    :ivar costs: by case and kind; processor time is in seconds here.
    :ivar floor: seconds of the processor for a resource of the bare loop.
    """

    def __init__(self, installation: Deployment, usage: Callable[[], Usage], floors: Floors) -> None:
        self.costs: dict[str, dict[str, float]] = collections.defaultdict(dict)
        self.floor = float("inf")
        self._installation = installation
        self._usage = usage
        self._floors = floors
        self._bench = Bench(installation.url, 1, usage, pause=0.25)
        assert installation.api is not None
        self._api = installation.api.pid
        bare = subprocess.check_output([sys.executable, "-W", "ignore", "-c", BARE], text=True)
        self._bare_memory = processes.megabytes(bare)["Rss"]

    def begin(self, is_enough: Callable[[Costs], bool]) -> None:
        """Measure what is fresh and idle, then run a small stack, so that all is loaded."""
        self._memory("conductor, fresh", [self._installation.conductors["one"].pid], "Rss")
        self._memory("API, fresh", [proc.pid for proc in proctree.tree(self._api)], "Pss")
        for number in range(1, MOST_ROUNDS + 1):
            self._idle()
            if number >= ROUNDS and is_enough(self.ratios()):
                break
        print(end_to_end.HEADER)
        self._bench.case("warm-up", lambda: templates.flat(100))

    def go_round(self) -> None:
        """Run all cases once, with the bare loop between them."""
        for name, make in CASES.items():
            self._measure_floor()
            result = self._bench.case(name, make)
            assert result.used is not None
            used = {
                "statements": result.used.statements,
                "messages": result.used.messages,
                "processor": result.used.cpu,
            }
            for kind, total in used.items():
                self._least(name, kind, total / result.resources)
        self._requests()

    def end(self) -> None:
        """Measure the memory that is kept after the stacks."""
        self._memory("API, used", [proc.pid for proc in proctree.tree(self._api)], "Pss")

    def ratios(self) -> Costs:
        """Return the costs up to now."""
        return {
            case: {kind: cost / self.floor if kind == "processor" else cost for kind, cost in kinds.items()}
            for case, kinds in self.costs.items()
        }

    # -- inside ------------------------------------------------------------------------------------

    def _least(self, case: str, kind: str, cost: float) -> None:
        kinds = self.costs[case]
        kinds[kind] = min(cost, kinds.get(kind, cost))

    def _memory(self, case: str, pids: Iterable[int], kind: str) -> None:
        self._least(case, "memory", sum(processes.memory(pid)[kind] for pid in pids) / self._bare_memory)

    def _measure_floor(self) -> None:
        self.floor = min(self.floor, self._floors.flat(1000).cpu)

    def _idle(self) -> None:
        pids = [conductor.pid for conductor in self._installation.conductors.values()]
        statements = self._usage().statements
        seconds = sum(map(processes.seconds, pids))
        began = time.monotonic()
        time.sleep(IDLE_SECONDS)
        elapsed = time.monotonic() - began
        self._least("idle second", "processor", (sum(map(processes.seconds, pids)) - seconds) / elapsed)
        self._least("idle second", "statements", (self._usage().statements - statements) / elapsed)
        self._measure_floor()

    def _requests(self) -> None:
        """Create stacks of one template, show them, and delete them, on one connection."""
        connection = http.client.HTTPConnection("127.0.0.1", self._installation.port, timeout=60)
        template = templates.flat(1)
        names = [f"request{number}" for number in range(REQUESTS)]
        creates = [
            ("POST", "/v1/t/stacks", {"stack_name": name, "template": template}, 201) for name in names
        ]
        self._timed(connection, "create request", creates)
        status, listed = self._call(connection, "GET", "/v1/t/stacks", None)
        assert status == 200, listed
        paths = [f"/v1/t/stacks/{stack['stack_name']}/{stack['id']}" for stack in listed["stacks"]]
        self._timed(connection, "show request", [("GET", path, None, 200) for path in paths])
        for path in paths:
            self._call(connection, "DELETE", path, None)
        while self._call(connection, "GET", "/v1/t/stacks", None)[1]["stacks"]:
            time.sleep(0.25)
        connection.close()

    def _timed(
        self,
        connection: http.client.HTTPConnection,
        case: str,
        requests: list[tuple[str, str, Json, int]],
    ) -> None:
        before = processes.seconds_of_tree(self._api)
        for method, path, body, expected in requests:
            status, answer = self._call(connection, method, path, body)
            assert status == expected, answer
        self._least(case, "processor", (processes.seconds_of_tree(self._api) - before) / len(requests))

    def _call(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: Json
    ) -> tuple[int, Json]:
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {"Content-Type": "application/json"})
        response = connection.getresponse()
        raw = response.read()
        return response.status, json.loads(raw) if raw else None


def measure(is_enough: Callable[[Costs], bool]) -> Costs:
    """Return the costs, by case and kind of cost.

    :param is_enough: tells whether there need be no further round, from the costs up to now.
    """
    with end_to_end.own_deployment() as (installation, usage, floors):
        measurement = Measurement(installation, usage, floors)
        measurement.begin(is_enough)
        for number in range(1, MOST_ROUNDS + 1):
            measurement.go_round()
            if number >= ROUNDS and is_enough(measurement.ratios()):
                break
        measurement.end()
        return measurement.ratios()


def compare(stored: Costs, measured: Costs) -> list[str]:
    """Return a line for each measured cost that is above its bound."""
    return [
        f"{case}: {kind} {measured[case][kind]:.2f}, stored {cost:.2f}, at most {most:.2f}"
        for case, costs in stored.items()
        for kind, cost in costs.items()
        if kind in measured.get(case, ())
        for most in (cost * BOUNDS[kind] + SLACK.get(case, {}).get(kind, 0.0),)
        if measured[case][kind] > most
    ]


def main() -> int:
    """Measure, as the text of the module describes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", action="store_true")
    options = parser.parse_args()
    if options.store:
        costs = measure(lambda costs: False)
        rounded = {
            case: {kind: round(cost, 3) for kind, cost in kinds.items()} for case, kinds in costs.items()
        }
        STORED.write_text(json.dumps(rounded, indent=4) + "\n")
        return 0
    stored = json.loads(STORED.read_text())
    repeated = {case: kinds for case, kinds in stored.items() if "memory" not in kinds}
    measured = measure(lambda costs: not compare(repeated, costs))
    missing = [f"{case}: not measured" for case in stored if case not in measured]
    dearer = compare(stored, measured) + missing
    print("\n".join(dearer) or "nothing became dearer")
    return 1 if dearer else 0


if __name__ == "__main__":
    sys.exit(main())
