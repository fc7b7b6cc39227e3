"""The cost of many stacks that are held at breakpoints, and whether they survive the death of all conductors.

Usage:
    python benchmarks/breakpoints.py        start PostgreSQL, RabbitMQ, etcd, the API and conductors
    options: --stacks 10000   --seconds 30   --conductors 2

A conductor is measured twice, first with no stack and then with all of them held: busy threads, statements
and transactions that the server counted, and CPU, for each second.  Then all conductors are killed with -9,
started again, and every stack is released.
"""

import argparse
import concurrent.futures
import contextlib
import pathlib
import sys
import tempfile
import time
from collections.abc import Iterator

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(pathlib.Path(__file__).parent))

import idle
from harness.deployment import Deployment
from harness.etcd import Etcd
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ

TEST = "OS::Heat::TestResource"
TEMPLATE = {
    "heat_template_version": "2018-08-31",
    "resources": {"a": {"type": TEST}, "b": {"type": TEST, "depends_on": "a"}},
}
HOOKS = {"resource_registry": {"resources": {"b": {"hooks": "pre-create"}}}}
CLIENTS = 16
TOLD = 130.0
"""Seconds in which all that the creation had to be followed up by, such as old events, has been looked at."""
PATIENCE = 600.0
"""Seconds after which a state that was waited for counts as missed."""


@contextlib.contextmanager
def deployment() -> Iterator[tuple[Deployment, PostgreSQL]]:
    """A deployment without conductors, as long as the context."""
    settings = {"shared_preload_libraries": "pg_stat_statements"}
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


def used(installation: Deployment, postgres: PostgreSQL, seconds: float) -> idle.Usage:
    """Measure the use of the conductor "one" and the server in a second."""
    name = installation.database_url.rpartition("/")[2]
    time.sleep(idle.SETTLE)
    before = idle.usage(installation, postgres, name)
    began = time.monotonic()
    time.sleep(seconds)
    after = idle.usage(installation, postgres, name)
    elapsed = time.monotonic() - began
    return idle.Usage(*((b - a) / elapsed for a, b in zip(before, after, strict=True)))


def threads(installation: Deployment, postgres: PostgreSQL) -> str:
    """Return the number of busy threads of all conductors, as they last reported it."""
    name = installation.database_url.rpartition("/")[2]
    [(busy,)] = postgres.execute("SELECT coalesce(sum(threads_busy), 0) FROM conductor", name)
    return str(busy)


def wait_count(postgres: PostgreSQL, name: str, where: str, count: int) -> float:
    """Wait until so many stacks are like that; seconds it took."""
    began = time.monotonic()
    while time.monotonic() - began < PATIENCE:
        [(found,)] = postgres.execute(f"SELECT count(*) FROM stack WHERE {where}", name)
        if int(str(found)) == count:
            return time.monotonic() - began
        time.sleep(0.5)
    raise SystemExit(f"only {found} of {count} stacks: {where}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stacks", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--conductors", type=int, default=2)
    options = parser.parse_args()
    hosts = ["one", *(f"host{number}" for number in range(2, options.conductors + 1))]
    with deployment() as (installation, postgres):
        name = installation.database_url.rpartition("/")[2]
        installation.start_api()
        installation.start_conductors(*hosts)
        print(f"{'':>6}{'busy':>8}{idle.HEADER}", flush=True)
        few = used(installation, postgres, options.seconds)
        print(f"{'none':>6}{threads(installation, postgres):>8}{idle.describe('0', few)}", flush=True)
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
            paths = list(
                clients.map(
                    lambda number: installation.create(f"s{number}", TEMPLATE, environment=HOOKS),
                    range(options.stacks),
                )
            )
        wait_count(postgres, name, "remaining IS NOT NULL", options.stacks)
        time.sleep(TOLD)
        many = used(installation, postgres, options.seconds)
        print(
            f"{'held':>6}{threads(installation, postgres):>8}{idle.describe(str(options.stacks), many)}",
            flush=True,
        )
        for host in hosts:
            installation.conductors[host].kill()
        installation.start_conductors(*hosts)
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
            answers = list(
                clients.map(
                    lambda path: installation.call("POST", f"{path}/actions", {"continue": None})[0], paths
                )
            )
        assert answers == [200] * options.stacks
        wait_count(postgres, name, "status = 'COMPLETE'", options.stacks)
        print(f"killed, started, cleared: all complete after {time.monotonic() - began:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
