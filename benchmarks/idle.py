"""The cost of an idle installation with few and with many stored stacks, and of an idle all-in-one.

Usage:
    python benchmarks/idle.py              start servers, the API and two conductors, twice
    options: --stacks 1000000   --few 100   --seconds 60   --timeouts 10   --only daemons|serve

Both databases hold finished stacks with one resource and four events each, copies of one that Stoker made.
Printed are the statements and transactions that the server counted, and the CPU of both conductors, of the
API and of the server, for each second; and the ratios.  Then some stacks are armed whose timeouts are so far
apart that the conductors rest before each: printed is how late they strike.

The all-in-one is `stoker serve` with three conductors, which creates one stack before it is left alone.
"""

import argparse
import contextlib
import pathlib
import statistics
import sys
import tempfile
import time
import typing
from collections.abc import Iterator

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(pathlib.Path(__file__).parent))

import timeouts
from harness import proctree, templates
from harness.deployment import Deployment, call
from harness.etcd import Etcd
from harness.ports import free_port
from harness.postgresql import PostgreSQL
from harness.programs import BIN, Program
from harness.rabbitmq import RabbitMQ
from harness.waiting import wait_for
from stoker.conductor.lookout import ACTIVE_FOR
from stoker.db.engine import Database

HOSTS = ("one", "two")
SETTLE = 25.0
"""Seconds between the start of the conductors and the measurement: they are active at first."""
PURGED_AFTER = 90.0
"""Seconds after a stack's end when its traversal is purged, and all rest again."""
APART = 2 * ACTIVE_FOR
"""Seconds between two timeouts: the conductors rest before each."""
MOST_CPU = 0.008
MOST_COMMITS = 1.0
MOST_LATE = 1.0
"""Targets: of two conductors together, of the all-in-one, and of timeouts."""
TICKS = 100.0
USUAL = "[coordination]\nheartbeat = 1.5\ntimeout = 5\npoll = 1.5\n"
"""The defaults, in place of the short intervals of tests."""
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
_COPY = """
INSERT INTO {table} ({columns})
SELECT {columns} FROM (
    SELECT made.* FROM {table} stored, generate_series(1, {count}) n,
        LATERAL jsonb_populate_record(stored, jsonb_build_object({changed})) made
) copied
"""
WRITTEN = """
SELECT quote_ident(column_name) FROM information_schema.columns
WHERE table_schema = current_schema() AND table_name = '{table}' AND is_generated = 'NEVER'
ORDER BY ordinal_position
"""
"""The columns of a table that a statement may write."""


class Usage(typing.NamedTuple):
    """Totals up to a moment, or for each second: statements, transactions, CPU seconds.

    :ivar conductor: CPU seconds of the measured conductor, or of both.
    :ivar api: CPU seconds of the API; 0 where there is none.
    """

    statements: float
    transactions: float
    conductor: float
    server: float
    api: float = 0.0


def measure(count: int, options: argparse.Namespace) -> tuple[Usage, list[float]]:
    """Measure the use of an idle installation in a second with so many stored stacks.

    :returns: the use, and by how many seconds each timeout was late.
    """
    with deployment() as (installation, postgres):
        name = installation.database_url.rpartition("/")[2]
        fill(installation, postgres, name, count)
        installation.start_api()
        installation.start_conductors(*HOSTS)
        time.sleep(SETTLE)
        before = usage(installation, postgres, name, *HOSTS)
        began = time.monotonic()
        time.sleep(options.seconds)
        after = usage(installation, postgres, name, *HOSTS)
        elapsed = time.monotonic() - began
        used = Usage(*((b - a) / elapsed for a, b in zip(before, after, strict=True)))
        return used, lateness(installation, options.timeouts)


def lateness(installation: Deployment, count: int) -> list[float]:
    """Let some stacks time out, far apart; return by how many seconds each was late."""
    if not count:
        return []
    database = Database(installation.database_url)
    deadlines = timeouts.arm(database, count, APART * count, lead=APART)
    timeouts.sleep_until(max(deadlines.values()) + ACTIVE_FOR)
    result = timeouts.read_back("idle", database, deadlines, cpu=0.0)
    database.close()
    assert not result.missing, f"{result.missing} stacks did not time out"
    return result.late


def serve(seconds: float) -> float:
    """Measure the CPU seconds that an idle all-in-one uses in a second."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="stoker-bench-") as folder:
        directory = pathlib.Path(folder)
        command = [BIN / "stoker", "serve", "--data-dir", directory / "data", "--port", str(port)]
        program = Program(command, log=directory / "serve.log", env={"PYTHONWARNINGS": "ignore"})
        try:
            program.wait_for_port(port)
            url = f"http://127.0.0.1:{port}"
            body = {"stack_name": "s", "template": templates.flat(1)}
            status, answer = call(url, "POST", "/v1/demo/stacks", body)
            assert status == 201, answer
            path = f"/v1/demo/stacks/s/{answer['stack']['id']}"
            wait_for(
                lambda: call(url, "GET", path)[1]["stack"]["stack_status"] == "CREATE_COMPLETE",
                60,
                lambda: "the stack is not complete",
            )
            time.sleep(PURGED_AFTER)
            before = cpu(program.pid)
            time.sleep(seconds)
            return (cpu(program.pid) - before) / seconds
        finally:
            program.stop()


def fill(installation: Deployment, postgres: PostgreSQL, name: str, count: int) -> None:
    """Let Stoker create a stack, and copy its rows so many times: they change with the schema."""
    installation.start_api()
    installation.start_conductors("one")
    installation.wait_final(installation.create("stack0", templates.flat(1)))
    installation.stop()
    postgres.execute("DELETE FROM task", name)
    postgres.execute("DELETE FROM traversal", name)  # Its purge would be activity within the measurement.
    for table, changed in CHANGED.items():
        copy_rows(postgres, name, table, count, changed)
    postgres.execute("VACUUM ANALYZE", name)


def copy_rows(postgres: PostgreSQL, database: str, table: str, count: int, changed: str) -> None:
    """Copy each row of a table so many times.

    :param changed: the columns that differ, as in CHANGED.
    """
    columns = ", ".join(str(column) for (column,) in postgres.execute(WRITTEN.format(table=table), database))
    postgres.execute(_COPY.format(table=table, columns=columns, count=count, changed=changed), database)


def usage(installation: Deployment, postgres: PostgreSQL, name: str, *hosts: str) -> Usage:
    """Return the totals of a database, its server and some conductors, by default the one named ``one``."""
    done = f"SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = '{name}'"
    [(transactions,)] = postgres.execute(done)
    conductor = sum(cpu(installation.conductors[host].pid) for host in hosts or HOSTS[:1])
    server = tree_cpu(postgres.process.pid)
    api = cpu(installation.api.pid) if installation.api is not None and installation.api.is_running else 0.0
    return Usage(statements(postgres), float(str(transactions)), conductor, server, api)


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
            options=USUAL,
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


def measure_daemons(options: argparse.Namespace) -> bool:
    """Measure and print all about an installation of daemons; return whether the targets are met."""
    print(f"{HEADER}{'API CPU %':>11}{'timeouts late, median and longest':>36}", flush=True)
    figures = []
    late = [0.0]
    for count in (options.few, options.stacks):
        used, part = measure(count, options)
        figures.append(used)
        late += part
        times = f"{statistics.median(part):>24.2f} s{max(part):>8.2f} s" if part else ""
        print(f"{describe(str(count), used)}{100 * used.api:>11.2f}{times}", flush=True)
    few, many = figures
    ratio = Usage(*(b / a if a else float("nan") for a, b in zip(few, many, strict=True)))
    print(describe("ratio", ratio, scale=1.0))
    return (
        all(used.conductor <= MOST_CPU and used.transactions <= MOST_COMMITS for used in figures)
        and max(late) <= MOST_LATE
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stacks", type=int, default=1_000_000)
    parser.add_argument("--few", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--timeouts", type=int, default=10)
    parser.add_argument("--only", choices=["daemons", "serve"])
    options = parser.parse_args()
    met = True
    if options.only != "serve":
        met = measure_daemons(options)
    if options.only != "daemons":
        embedded = serve(options.seconds)
        print(f"stoker serve, three conductors: {100 * embedded:.2f} % of a core")
        met = met and embedded <= MOST_CPU
    print(
        f"target: two conductors together, and the all-in-one, {100 * MOST_CPU:g} % of a core; "
        f"{MOST_COMMITS:g} transactions/s; timeouts {MOST_LATE:g} s late: {'met' if met else 'MISSED'}"
    )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
