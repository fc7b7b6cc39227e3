"""What an idle conductor costs with few and with many stored stacks.

Usage:
    python benchmarks/idle.py               start PostgreSQL, RabbitMQ, etcd and one conductor, twice
    options: --stacks 1000000   --few 100   --seconds 60

Both databases hold finished stacks with one resource, two events and their contents each, made by
INSERT … SELECT.  Printed are the statements and transactions that the server counted, and the CPU of the
conductor and of the server, for each second; and the ratios.
"""

import argparse
import contextlib
import pathlib
import sys
import tempfile
import time
import typing
from collections.abc import Iterator

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))

from harness import proctree
from harness.deployment import Deployment
from harness.etcd import Etcd
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ

SETTLE = 10.0
"""Seconds between the start of the conductor and the measurement."""
TICKS = 100.0
ID = "lpad(n::text, 8, '0') || '-0000-4000-8000-000000000000'"
FILL = f"""
INSERT INTO content (id, body, created_at)
    SELECT 'content' || n, '{{}}', extract(epoch FROM now()) FROM generate_series(1, 3) n;
INSERT INTO stack (id, tenant, name, live_name, root_id, depth, action, status, reason, traversal, shard,
                   template_id, environment_id, files_id, parameters, parameter_view, outputs, description,
                   disable_rollback, created_at)
    SELECT {ID}, 'tenant' || n % 1000, 'stack' || n, 'stack' || n, {ID}, 0, 'CREATE', 'COMPLETE', '', {ID},
           n % 4096, 'content1', 'content2', 'content3', '{{}}', '{{}}', '{{}}', '', true,
           extract(epoch FROM now()) - n
    FROM generate_series(1, $count) n;
INSERT INTO content_use (content_id, holder_id)
    SELECT 'content' || k, {ID} FROM generate_series(1, $count) n, generate_series(1, 3) k;
INSERT INTO resource (id, stack_id, name, type, plugin, action, status, reason, requires, generation,
                      created_at, updated_at)
    SELECT n, {ID}, 'r', 'OS::Heat::TestResource', 'OS::Heat::TestResource', 'CREATE', 'COMPLETE', '', '[]',
           0, extract(epoch FROM now()) - n, extract(epoch FROM now()) - n
    FROM generate_series(1, $count) n;
INSERT INTO event (uuid, stack_id, resource_name, resource_type, action, status, reason, at)
    SELECT lpad(n::text, 8, '0') || '-0000-4000-8000-00000000000' || k, {ID}, 'r', 'OS::Heat::TestResource',
           'CREATE', 'COMPLETE', '', extract(epoch FROM now()) - 3600 - n
    FROM generate_series(1, $count) n, generate_series(1, 2) k;
ANALYZE;
"""


class Usage(typing.NamedTuple):
    """Totals up to a moment, or for each second: statements, transactions, CPU seconds."""

    statements: float
    transactions: float
    conductor: float
    server: float


def measure(count: int, seconds: float) -> Usage:
    """What one conductor uses in a second with so many stacks stored."""
    with deployment() as (made, postgres):
        name = made.database_url.rpartition("/")[2]
        for statement in FILL.replace("$count", str(count)).split(";"):
            if statement.strip():
                postgres.execute(statement, name)
        postgres.execute("VACUUM ANALYZE", name)
        made.start_conductors("one")
        time.sleep(SETTLE)
        before, began = usage(made, postgres, name), time.monotonic()
        time.sleep(seconds)
        after, elapsed = usage(made, postgres, name), time.monotonic() - began
        return Usage(*((b - a) / elapsed for a, b in zip(before, after, strict=True)))


def usage(made: Deployment, postgres: PostgreSQL, name: str) -> Usage:
    statements = "SELECT sum(calls) FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat%'"
    [(calls,)] = postgres.execute(statements)
    done = f"SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = '{name}'"
    [(transactions,)] = postgres.execute(done)
    server = sum(cpu(proc.pid) for proc in proctree.tree(postgres.process.pid))
    return Usage(float(str(calls)), float(str(transactions)), cpu(made.conductors["one"].pid), server)


def cpu(pid: int) -> float:
    """Seconds that a process has used, its ended children included."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS


@contextlib.contextmanager
def deployment() -> Iterator[tuple[Deployment, PostgreSQL]]:
    """A deployment without conductors, as long as the context."""
    settings = {"shared_preload_libraries": "pg_stat_statements", "autovacuum": "off"}
    with (
        PostgreSQL(settings) as postgres,
        RabbitMQ() as rabbit,
        Etcd() as etcd,
        tempfile.TemporaryDirectory(prefix="stoker-bench-") as folder,
    ):
        postgres.execute("CREATE EXTENSION pg_stat_statements")
        made = Deployment(
            pathlib.Path(folder),
            database_url=postgres.create_database(),
            transport_url=rabbit.create_vhost(),
            backend_url=etcd.url,
        )
        try:
            yield made, postgres
        finally:
            made.stop()


HEADER = f"{'stacks':>10}{'statements/s':>14}{'transactions/s':>16}{'CPU %':>8}{'server CPU %':>14}"


def describe(name: str, used: Usage, scale: float = 100.0, digits: int = 2) -> str:
    """One line of the table."""
    counts = f"{used.statements:>14.2f}{used.transactions:>16.2f}"
    return f"{name:>10}{counts}{scale * used.conductor:>8.{digits}f}{scale * used.server:>14.{digits}f}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stacks", type=int, default=1_000_000)
    parser.add_argument("--few", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60.0)
    wanted = parser.parse_args()
    print(HEADER, flush=True)
    found = []
    for count in (wanted.few, wanted.stacks):
        found.append(measure(count, wanted.seconds))
        print(describe(str(count), found[-1]), flush=True)
    few, many = found
    ratio = Usage(*(b / a if a else float("nan") for a, b in zip(few, many, strict=True)))
    print(describe("ratio", ratio, scale=1.0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
