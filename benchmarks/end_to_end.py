"""How fast stacks run, from the request to CREATE_COMPLETE, beside the floor that the drivers set.

Usage:
    python benchmarks/end_to_end.py         start RabbitMQ, PostgreSQL, etcd, stoker-api and two conductors
    python benchmarks/end_to_end.py URL     measure a running Stoker, e.g. http://127.0.0.1:8004
    options: --flat 100,500,2000,10000   --chain 100   --repeat 3   --json FILE

Each case is run `--repeat` times, and the fastest one counts: everything else that the machine does can only
slow a run down.  The ratios compare with the floor of the same run (floor.py), and with Heat 27's rate on
such a machine: 7 resources a second, 65 ms for each link of a chain.  CPU is that of the conductors, SQL
statements and messages those that the servers counted, while the stack ran.
"""

import argparse
import contextlib
import json
import pathlib
import sys
import tempfile
import time
import typing
from collections.abc import Callable, Iterable, Iterator

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))

import floor
import processes
from harness import templates
from harness.deployment import Deployment, call
from harness.etcd import Etcd
from harness.postgresql import PostgreSQL
from harness.processes import Process
from harness.rabbitmq import RabbitMQ

HEAT_RATE = 7.0
Json = typing.Any


class Usage(typing.NamedTuple):
    """The use up to a moment: CPU seconds of all conductors, SQL statements, messages."""

    cpu: float
    statements: int
    messages: int


class Result(typing.NamedTuple):
    """:ivar seconds: the seconds from the request to the final status.
    :ivar request: the seconds of the request alone.
    """

    case: str
    resources: int
    seconds: float
    request: float
    used: Usage | None

    @property
    def rate(self) -> float:
        return self.resources / self.seconds


class Floors(typing.NamedTuple):
    """The bare loops of a flat stack and of a chain; each gets a number of resources."""

    flat: Callable[[int], floor.Floor]
    chain: Callable[[int], floor.Floor]


class Bench:
    """Runs cases against a Stoker.

    :param usage: a function that returns the use up to this moment; None: the use is unknown.
    :param pause: seconds between two looks at a stack.
    """

    def __init__(
        self, url: str, repeat: int, usage: Callable[[], Usage] | None, *, pause: float = 0.01
    ) -> None:
        self._url = url
        self._repeat = repeat
        self._usage = usage
        self._pause = pause
        self._number = int(time.time())

    def case(self, name: str, make: Callable[[], Json], stacks: int = 1) -> Result:
        """The fastest of several runs."""
        fastest = min((self._run(name, make(), stacks) for _ in range(self._repeat)), key=lambda r: r.seconds)
        print(describe(fastest), flush=True)
        return fastest

    def _run(self, name: str, template: Json, stacks: int) -> Result:
        before = self._usage() if self._usage else None
        began = time.monotonic()
        paths = [self._create(template) for _ in range(stacks)]
        request = time.monotonic() - began
        for path in paths:
            self._wait(path, "CREATE_COMPLETE")
        seconds = time.monotonic() - began
        used = None
        if self._usage and before:
            used = Usage(*(b - a for a, b in zip(before, self._usage(), strict=True)))
        for path in paths:
            call(self._url, "DELETE", path)
        for path in paths:
            self._wait(path, "DELETE_COMPLETE")
        return Result(name, stacks * len(template["resources"]), seconds, request, used)

    def _create(self, template: Json) -> str:
        self._number += 1
        name = f"bench-{self._number}"
        status, answer = call(
            self._url, "POST", "/v1/bench/stacks", {"stack_name": name, "template": template}
        )
        if status != 201:
            raise SystemExit(f"the stack was refused: {answer}")
        return f"/v1/bench/stacks/{name}/{answer['stack']['id']}"

    def _wait(self, path: str, wanted: str) -> None:
        while True:
            status, answer = call(self._url, "GET", f"{path}?resolve_outputs=false")
            if status == 404 and wanted == "DELETE_COMPLETE":
                return
            reached = answer["stack"]["stack_status"]
            if reached == wanted:
                return
            if reached.endswith("FAILED"):
                raise SystemExit(f"the stack failed: {answer['stack']['stack_status_reason']}")
            time.sleep(self._pause)


def describe(result: Result) -> str:
    """One line of the table."""
    line = f"{result.case:<16}{result.resources:>7}{result.seconds:>9.2f}{result.request:>9.2f}"
    line += f"{result.rate:>9.0f}"
    if result.used is None:
        return line
    each = [result.used.statements / result.resources, result.used.messages / result.resources]
    return f"{line}{1000 * result.used.cpu / result.resources:>9.2f}{each[0]:>9.2f}{each[1]:>9.3f}"


HEADER = f"{'case':<16}{'res.':>7}{'s':>9}{'request':>9}{'res./s':>9}{'CPU ms/r':>9}{'SQL/r':>9}{'msg/r':>9}"


@contextlib.contextmanager
def own_deployment() -> Iterator[tuple[Deployment, Callable[[], Usage], Floors]]:
    """A deployment that lives as long as the context, its usage and its floor."""
    with (
        PostgreSQL(
            {"shared_preload_libraries": "pg_stat_statements", "synchronous_commit": "on"}
        ) as postgres,
        RabbitMQ() as rabbit,
        Etcd() as etcd,
        tempfile.TemporaryDirectory(prefix="stoker-bench-") as folder,
    ):
        url = postgres.create_database()
        transport = rabbit.create_vhost()
        postgres.execute("CREATE EXTENSION pg_stat_statements")
        installation = Deployment(
            pathlib.Path(folder),
            database_url=url,
            transport_url=transport,
            backend_url=etcd.url,
            options="[stacks]\nmax_template = 0\nmax_compile_seconds = 0\n",  # for stacks of 10,000 resources
            kind=Process,
        )
        installation.start_api()
        installation.start_conductors("one", "two")

        def usage() -> Usage:
            cpu = sum(processes.seconds(daemon.pid) for daemon in installation.conductors.values())
            query = "SELECT sum(calls) FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat%'"
            statements = int(str(postgres.execute(query)[0][0]))
            return Usage(cpu, statements, messages(rabbit))

        try:
            yield (
                installation,
                usage,
                Floors(
                    lambda count: floor.measure(url, rabbit.create_vhost(), count),
                    lambda count: floor.measure_chain(url, count),
                ),
            )
        finally:
            installation.stop()


def messages(rabbit: RabbitMQ) -> int:
    """Return the messages published to the broker since it started, replies and fan-outs included."""
    output = rabbit.control(
        "eval",
        "maps:get(messages_received_total, "
        "maps:get([{protocol, amqp091}], rabbit_global_counters:overview())).",
    )
    return int(output.strip())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("url", nargs="?")
    parser.add_argument("--flat", default="100,500,2000")
    parser.add_argument("--chain", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    if options.url:
        results = run(Bench(options.url.rstrip("/"), options.repeat, None), options)
        summary = summarise(results, options.chain)
    else:
        with own_deployment() as (installation, usage, floors):
            results = run(Bench(installation.url, options.repeat, usage), options)
            flat = _fastest(floors.flat(2000) for _ in range(options.repeat))
            link = _fastest(floors.chain(options.chain) for _ in range(options.repeat))
        summary = summarise(results, options.chain) | beside_floor(results, flat, link)
    print("\n".join(f"{name:<58}{value}" for name, value in summary.items()))
    if options.json:
        options.json.write_text(json.dumps({"results": [r._asdict() for r in results], "summary": summary}))
    return 0


def run(bench: Bench, options: argparse.Namespace) -> list[Result]:
    """All cases."""
    print(HEADER)
    bench.case("warm-up", lambda: templates.flat(100))
    results = [
        bench.case(f"flat {count}", lambda count=count: templates.flat(count))  # type: ignore[misc]
        for count in map(int, options.flat.split(","))
    ]
    results.append(bench.case(f"chain {options.chain}", lambda: templates.chain(options.chain)))
    results.append(bench.case("layers 10 x 50", lambda: templates.layered(10, 50)))
    results.append(bench.case("50 stacks of 10", lambda: templates.flat(10), stacks=50))
    return results


def summarise(results: list[Result], chain: int) -> dict[str, str]:
    """Return the measurements for which there are targets."""
    flat = _largest_flat(results)
    link = _chain(results).seconds / chain
    summary = {
        f"{flat.case}: times Heat's rate (target 50)": f"{flat.rate / HEAT_RATE:.0f}",
        "milliseconds for each link of a chain (target 2.5; Heat 65)": f"{1000 * link:.1f}",
    }
    for small in (result for result in results if result.case == "flat 2000" and result is not flat):
        summary[f"{flat.case}: seconds each, of flat 2000's (target 1.0)"] = f"{small.rate / flat.rate:.2f}"
    return summary


def beside_floor(results: list[Result], flat_floor: floor.Floor, chain_floor: floor.Floor) -> dict[str, str]:
    """Return the rates of the bare loops, and the shares of them that were reached."""
    flat = _largest_flat(results)
    chain = _chain(results)
    cpu = 0.0 if chain.used is None else chain.used.cpu / chain.resources
    return {
        "floor, resources/s": f"{flat_floor.rate:.0f}",
        f"{flat.case}: share of the floor (target 50 %)": f"{100 * flat.rate / flat_floor.rate:.0f} %",
        "floor, milliseconds for each link of a chain": f"{1000 / chain_floor.rate:.1f}",
        f"{chain.case}: times the floor's seconds": f"{chain_floor.rate / chain.rate:.1f}",
        f"{chain.case}: times the floor's processor time": f"{cpu / chain_floor.cpu:.1f}",
    }


def _fastest(floors: Iterable[floor.Floor]) -> floor.Floor:
    return max(floors, key=lambda one: one.rate)


def _largest_flat(results: list[Result]) -> Result:
    return max((r for r in results if r.case.startswith("flat")), key=lambda r: r.resources)


def _chain(results: list[Result]) -> Result:
    return next(r for r in results if r.case.startswith("chain"))


if __name__ == "__main__":
    sys.exit(main())
