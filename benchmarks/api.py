"""How many requests the API answers, beside a floor of bare HTTP and bare SQL, and how late its reads are.

Usage:
    python benchmarks/api.py                start PostgreSQL, RabbitMQ, etcd and stoker-api
    options: --clients 16,1000   --requests 6000   --stacks 1000000   --resources 10000   --reads 100
             --spread 0
    python benchmarks/api.py --memory       only the memory of the API: fresh, and after large stacks

A client creates a stack of one resource and shows it twice, again and again, on one connection; no conductor
runs.  With --spread the clients begin one after the other within so many seconds; without it all create a
stack at the same moment, and the last of them waits for all others.  The floor comes from the same run: as
many requests that Stoker's HTTP server answers with constants, and the rows of as many stacks that a bare
loop writes and reads (api_floor.py), one after the other.  Then the database gets more stacks, copies of one,
and reads are measured while four clients create stacks.
"""

import argparse
import asyncio
import bisect
import contextlib
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time
import typing
from collections.abc import Iterator, Sequence

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))

import api_floor
import idle
import processes
from harness import proctree, templates
from harness.deployment import Deployment
from harness.etcd import Etcd
from harness.postgresql import PostgreSQL
from harness.processes import Process
from harness.rabbitmq import RabbitMQ

Json = typing.Any
PROJECTS = 20
"""Projects that share the clients: no project may have all threads."""
CREATORS = 4
ALONE = 10
"""Reads of each kind before the creators begin."""
TARGETS = {"stack show": 0.05, "stack list": 0.1, "resource list": 0.5}
"""Seconds of the 99th percentile, by kind of read."""
OPTIONS = "[api]\nmax_connections = 1200\nmax_connections_per_address = 0\n[stacks]\nmax_template = 0\n"


HEADER = f"{'clients':>8}{'requests/s':>12}{'median s':>10}{'99 % s':>8}{'turns':>8}"
HEADER += f"{'API ms':>8}{'SQL ms':>8}{'SQL':>6}"
"""CPU of the API and of the server, and statements, are those of one request; for `turns` see Load.turns."""


class Connection:
    """One client's connection; requests follow each other on it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int) -> "Connection":
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def call(self, method: str, path: str, body: bytes = b"") -> bytes:
        """Send a request, and return the body of a successful answer."""
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        self._writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
        answer = await self._reader.readexactly(int(fields.get("content-length", 0)))
        if lines[0].split()[1] not in ("200", "201"):
            raise SystemExit(f"{method} {path}: {lines[0]}: {answer.decode()[:500]}")
        return answer

    async def timed(self, method: str, path: str, body: bytes = b"") -> tuple[float, bytes]:
        """Send a request, and return the seconds until its answer, too."""
        began = time.monotonic()
        answer = await self.call(method, path, body)
        return time.monotonic() - began, answer

    def close(self) -> None:
        self._writer.close()


class Load:
    """Clients that create stacks and show them.

    :param spread: seconds within which the clients begin.
    :ivar latencies: seconds of each request.
    :ivar answers: the last answers to a creation and to a view.
    """

    def __init__(self, port: int, spread: float = 0.0) -> None:
        self._port = port
        self._spread = spread
        self._ends: list[float] = []
        self._number = time.time_ns()
        self._remaining = 0.0
        self._clients = 0
        self.latencies: list[float] = []
        self.answers = (b"", b"")

    async def run(self, clients: int, stacks: float) -> float:
        """Create and show so many stacks; return the requests in a second."""
        self._remaining = stacks
        self.latencies = []
        self._ends = []
        self._clients = clients
        connections = [await Connection.open(self._port) for _ in range(clients)]
        began = time.monotonic()
        await asyncio.gather(*(self._client(*pair) for pair in enumerate(connections)))
        seconds = time.monotonic() - began
        for connection in connections:
            connection.close()
        return len(self.latencies) / seconds

    def stop(self) -> None:
        """Let each client end after its stack."""
        self._remaining = 0

    def turns(self) -> float:
        """Return the 99th percentile of the requests that were answered during one, for each client.

        It is 1 where all clients take turns, however fast the machine is.
        """
        ordered = sorted(self._ends)
        waits = [
            bisect.bisect(ordered, end) - bisect.bisect(ordered, end - seconds)
            for end, seconds in zip(self._ends, self.latencies, strict=True)
        ]
        return percentile(waits, 0.99) / self._clients

    async def _client(self, index: int, connection: Connection) -> None:
        await asyncio.sleep(self._spread * index / self._clients)
        while self._remaining > 0:
            self._remaining -= 1
            self._number += 1
            stacks = f"/v1/project{index % PROJECTS}/stacks"
            name = f"s{self._number}"
            body = json.dumps({"stack_name": name, "template": templates.flat(1)}).encode()
            created = await self._timed(connection, "POST", stacks, body)
            path = f"{stacks}/{name}/{json.loads(created)['stack']['id']}"
            await self._timed(connection, "GET", path)
            self.answers = (created, await self._timed(connection, "GET", path))

    async def _timed(self, connection: Connection, method: str, path: str, body: bytes = b"") -> bytes:
        seconds, answer = await connection.timed(method, path, body)
        self.latencies.append(seconds)
        self._ends.append(time.monotonic())
        return answer


class Usage(typing.NamedTuple):
    """The use up to a moment: CPU seconds of the API and of the server, SQL statements."""

    api: float
    server: float
    statements: float


class Bench:
    """One deployment, whose API has as many processes as there are cores."""

    def __init__(self, installation: Deployment, postgres: PostgreSQL, workers: int) -> None:
        self._installation = installation
        self._postgres = postgres
        self._workers = workers
        self._database = installation.database_url.rpartition("/")[2]

    def loads(self, clients: Sequence[int], requests: int, spread: float) -> None:
        """Print a line for each number of clients, and the floor."""
        load = Load(self._installation.port, spread)
        asyncio.run(load.run(16, 100))  # Compiles statements, and opens connections.
        print(HEADER)
        rates = {}
        for count in clients:
            before = self._usage()
            rates[count] = asyncio.run(load.run(count, requests // 3))
            used = [(b - a) / len(load.latencies) for a, b in zip(before, self._usage(), strict=True)]
            figures = f"{statistics.median(load.latencies):>10.3f}{percentile(load.latencies, 0.99):>8.3f}"
            figures += f"{load.turns():>8.2f}{1000 * used[0]:>8.2f}{1000 * used[1]:>8.2f}{used[2]:>6.1f}"
            print(f"{count:>8}{rates[count]:>12.0f}{figures}", flush=True)
        floor = self._floor(load.answers, clients[0], requests)
        print(f"{'floor':>8}{floor:>12.0f}")
        print(
            f"{clients[0]} clients: share of the floor: {100 * rates[clients[0]] / floor:.0f} %", flush=True
        )

    def _floor(self, answers: tuple[bytes, bytes], clients: int, requests: int) -> float:
        """Return the requests in a second that HTTP and SQL alone would allow."""
        server = api_floor.HttpFloor(self._workers, *answers)
        try:
            bare = Load(server.port)
            asyncio.run(_until_open(server.port))
            asyncio.run(bare.run(clients, 100))
            http_seconds = requests / asyncio.run(bare.run(clients, requests // 3))
        finally:
            server.close()
        dsn = self._installation.database_url.replace("+psycopg", "")
        stack_id = json.loads(answers[0])["stack"]["id"]
        sql_seconds = api_floor.sql_seconds(dsn, stack_id, requests // 3, 2 * self._workers)
        return requests / (http_seconds + sql_seconds)

    def fill(self, stacks: int) -> None:
        """Copy the rows of one stack so many times, a thousand for each project."""
        self._installation.create("stack0", templates.flat(1))
        projects = max(1, stacks // 1000)
        # Of the last stack only: the load has made others.
        self._postgres.execute("DELETE FROM stack WHERE name <> 'stack0'", self._database)
        for table in ("resource", "event", "task", "traversal"):
            keep = f"DELETE FROM {table} WHERE stack_id NOT IN (SELECT id FROM stack)"
            self._postgres.execute(keep, self._database)
        self._postgres.execute(
            "DELETE FROM content_use WHERE holder_id NOT IN (SELECT id FROM stack)", self._database
        )
        for table, changed in idle.CHANGED.items():
            changed_here = changed.replace("% 1000", f"% {projects}")
            idle.copy_rows(self._postgres, self._database, table, stacks, changed_here)
        # The copies have ids that the sequence has not given out.
        sequence = "SELECT setval(pg_get_serial_sequence('event', 'id'), (SELECT max(id) FROM event))"
        self._postgres.execute(sequence, self._database)
        self._postgres.execute("VACUUM ANALYZE", self._database)

    def reads(self, resources: int, count: int) -> None:
        """Print the latency of each kind of read, while stacks are created."""
        large = self._installation.create("large", templates.flat(resources))
        small = self._installation.create("small", templates.flat(10))
        paths = {
            "stack show": small,
            "stack list": "/v1/tenant0/stacks?limit=1000",
            "resource list": f"{large}/resources",
        }
        print(f"{'read':<16}{'entries':>8}{'SQL':>6}{'API ms':>8}{'median s':>10}{'99 % s':>8}{'target':>8}")
        for name, path in paths.items():
            statements, milliseconds = self._cost(path)
            latencies, answer = asyncio.run(self._measured(path, count))
            size = max(len(part) if isinstance(part, list) else 1 for part in json.loads(answer).values())
            figures = f"{statistics.median(latencies):>10.3f}{percentile(latencies, 0.99):>8.3f}"
            cost = f"{statements:>6.1f}{milliseconds:>8.1f}"
            print(f"{name:<16}{size:>8}{cost}{figures}{TARGETS[name]:>8}", flush=True)

    async def _measured(self, path: str, count: int) -> tuple[list[float], bytes]:
        load = Load(self._installation.port)
        creating = asyncio.create_task(load.run(CREATORS, float("inf")))
        connection = await Connection.open(self._installation.port)
        results = [await connection.timed("GET", path) for _ in range(count)]
        connection.close()
        load.stop()
        await creating
        return [seconds for seconds, _ in results], results[-1][1]

    def _cost(self, path: str) -> tuple[float, float]:
        """Return the statements of a read, and its CPU in the API in ms, while no stack is created."""
        before = self._usage()
        for _ in range(ALONE):
            self._installation.call("GET", path)
        after = self._usage()
        statements = (after.statements - before.statements) / ALONE
        return statements, 1000 * (after.api - before.api) / ALONE

    def _usage(self) -> Usage:
        server = idle.tree_cpu(self._postgres.process.pid)
        return Usage(idle.tree_cpu(self._api().pid), server, idle.statements(self._postgres))

    def start(self) -> None:
        """Start the API, and print the cost of that."""
        self._installation.start_api()
        print(
            f"start of {self._workers} processes: {idle.tree_cpu(self._api().pid):.2f} s of CPU", flush=True
        )

    def memory(self) -> str:
        """Return the memory of each process of the API, and its share of what processes have together."""
        sizes = [processes.memory(proc.pid) for proc in proctree.tree(self._api().pid)]
        return ", ".join(f"{size['Rss']:.0f} MB ({size['Pss']:.0f})" for size in sizes)

    def large_stacks(self, resources: int, rounds: int) -> None:
        """Print the memory of a fresh API, and after each large stack was created, read and deleted."""
        print(f"fresh: {self._together()}", flush=True)
        for number in range(1, rounds + 1):
            stack = self._installation.create(f"large{number}", templates.flat(resources))
            for path in (stack, f"{stack}/resources", f"{stack}/template"):
                self._installation.call("GET", path)
            self._installation.call("DELETE", stack)
            print(f"after {number} x {resources} resources: {self._together()}", flush=True)

    def _together(self) -> str:
        sizes = [processes.memory(proc.pid)["Pss"] for proc in proctree.tree(self._api().pid)]
        return f"{sum(sizes):.0f} MB (PSS): {self.memory()}"

    def _api(self) -> Process:
        assert self._installation.api is not None
        return self._installation.api


async def _until_open(port: int) -> None:
    while True:
        with contextlib.suppress(OSError):
            await Connection.open(port)
            return
        await asyncio.sleep(0.1)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values is."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


@contextlib.contextmanager
def deployment(workers: int) -> Iterator[tuple[Deployment, PostgreSQL]]:
    """A deployment, as programs, as long as the context."""
    with (
        PostgreSQL({"shared_preload_libraries": "pg_stat_statements"}) as postgres,
        RabbitMQ() as rabbit,
        Etcd() as etcd,
        tempfile.TemporaryDirectory(prefix="stoker-bench-") as folder,
    ):
        postgres.execute("CREATE EXTENSION pg_stat_statements")
        installation = Deployment(
            pathlib.Path(folder),
            database_url=postgres.create_database(),
            transport_url=rabbit.create_vhost(),
            backend_url=etcd.url,
            options=OPTIONS,
            kind=Process,
            workers=workers,
        )
        try:
            yield installation, postgres
        finally:
            installation.stop()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", default="16,1000")
    parser.add_argument("--requests", type=int, default=6000)
    parser.add_argument("--stacks", type=int, default=1_000_000)
    parser.add_argument("--resources", type=int, default=10_000)
    parser.add_argument("--reads", type=int, default=100)
    parser.add_argument("--spread", type=float, default=0.0)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    with deployment(options.workers) as (installation, postgres):
        bench = Bench(installation, postgres, options.workers)
        bench.start()
        if options.memory:
            bench.large_stacks(options.resources, rounds=3)
            return 0
        bench.loads([int(count) for count in options.clients.split(",")], options.requests, options.spread)
        print(f"memory after {options.requests} requests of each load: {bench.memory()}", flush=True)
        bench.fill(options.stacks)
        bench.reads(options.resources, options.reads)
        print(f"memory after the reads: {bench.memory()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
