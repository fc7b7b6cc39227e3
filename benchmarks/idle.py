"""The cost of an idle conductor with few and with many stored stacks.

Usage:
    python benchmarks/idle.py               start PostgreSQL, RabbitMQ, etcd and one conductor, twice
    options: --stacks 1000000   --few 100   --seconds 60

Both databases hold finished stacks with one resource and four events each, copies of one that Stoker made.
Printed are the statements and transactions that the server counted, and the CPU of the conductor and of the
server, for each second; and the ratios.
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

from harness import proctree, templates
from harness.deployment import Deployment
from harness.etcd import Etcd
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ

SETTLE = 10.0
"""Seconds between the start of the conductor and the measurement."""
TICKS = 100.0
ID = "lpad(n::text, 8, '0') || '-0000-4000-8000-000000000000'"
CHANGED = {
    "stack": f"""'id', {ID}, 'root_id', {ID}, 'traversal', {ID}, 'name', 'stack' || n,
                 'live_name', 'stack' || n, 'tenant', 'tenant' || n % 1000, 'shard', n % 4096,
                 'created_at', stored.created_at - n""",
    "resource": f"""'id', stored.id + 1000 * n, 'stack_id', {ID}, 'key', {ID},
                    'created_at', stored.created_at - n, 'updated_at', stored.updated_at - n""",
    "event": f"""'id', stored.id + 1000 * n, 'stack_id', {ID}, 'at', stored.at - 3600 - n,
                 'uuid', lpad(n::text, 8, '0') || '-0000-4000-8000-' || lpad(stored.id::text, 12, '0')""",
    "content_use": f"'holder_id', {ID}",
}
"""Table -> the columns that differ in the copy numbered n, as jsonb_build_object takes it."""
COPY = """
INSERT INTO {table} SELECT made.* FROM {table} stored, generate_series(1, {count}) n,
    LATERAL jsonb_populate_record(stored, jsonb_build_object({changed})) made
"""


class Usage(typing.NamedTuple):
    """Totals up to a moment, or for each second: statements, transactions, CPU seconds."""

    statements: float
    transactions: float
    conductor: float
    server: float


def measure(count: int, seconds: float) -> Usage:
    """Measure the use of one conductor in a second with so many stored stacks."""
    with deployment() as (installation, postgres):
        name = installation.database_url.rpartition("/")[2]
        fill(installation, postgres, name, count)
        installation.start_conductors("one")
        time.sleep(SETTLE)
        before = usage(installation, postgres, name)
        began = time.monotonic()
        time.sleep(seconds)
        after = usage(installation, postgres, name)
        elapsed = time.monotonic() - began
        return Usage(*((b - a) / elapsed for a, b in zip(before, after, strict=True)))


def fill(installation: Deployment, postgres: PostgreSQL, name: str, count: int) -> None:
    """Let Stoker create a stack, and copy its rows so many times: they change with the schema."""
    installation.start_api()
    installation.start_conductors("one")
    installation.wait_final(installation.create("stack0", templates.flat(1)))
    installation.stop()
    for table, changed in CHANGED.items():
        postgres.execute(COPY.format(table=table, count=count, changed=changed), name)
    postgres.execute("VACUUM ANALYZE", name)


def usage(installation: Deployment, postgres: PostgreSQL, name: str) -> Usage:
    done = f"SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = '{name}'"
    [(transactions,)] = postgres.execute(done)
    conductor = cpu(installation.conductors["one"].pid)
    server = tree_cpu(postgres.process.pid)
    return Usage(statements(postgres), float(str(transactions)), conductor, server)


def statements(postgres: PostgreSQL) -> float:
    """Return the statements that the server has counted."""
    counted = "SELECT sum(calls) FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat%'"
    [(calls,)] = postgres.execute(counted)
    return float(str(calls))


def tree_cpu(pid: int) -> float:
    """Return the seconds that a process and those below it have used."""
    return sum(cpu(proc.pid) for proc in proctree.tree(pid))


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
        installation = Deployment(
            pathlib.Path(folder),
            database_url=postgres.create_database(),
            transport_url=rabbit.create_vhost(),
            backend_url=etcd.url,
        )
        try:
            yield installation, postgres
        finally:
            installation.stop()


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
    options = parser.parse_args()
    print(HEADER, flush=True)
    figures = []
    for count in (options.few, options.stacks):
        figures.append(measure(count, options.seconds))
        print(describe(str(count), figures[-1]), flush=True)
    few, many = figures
    ratio = Usage(*(b / a if a else float("nan") for a, b in zip(few, many, strict=True)))
    print(describe("ratio", ratio, scale=1.0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
