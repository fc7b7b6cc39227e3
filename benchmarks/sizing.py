"""The cost of a stack's life for each part of an installation, and that of so many lives a day.

Usage:
    python benchmarks/sizing.py             start RabbitMQ, PostgreSQL, etcd, stoker-api and two conductors
    options: --stacks 200   --clients 8

A life is that of a stack of ten resources in two layers.  A client creates it, reads it or its events ten
times, polls it until it is complete, updates two resources, lists the resources, deletes it, and polls it
until it is gone.  The types do nothing, so this is Stoker's own part; calls of a cloud's services are extra.

The second table assumes that a tenth of a day's stacks comes within the busiest ten minutes.
"""

import argparse
import concurrent.futures
import pathlib
import sys
import tempfile
import typing
from collections.abc import Callable, Mapping

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))

import end_to_end
import idle
import nested
from harness import templates
from harness.deployment import Deployment
from harness.etcd import Etcd
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ

Json = typing.Any
LAYERS = 2
WIDTH = 5
READS = 10
DAYS = (1_000, 10_000, 100_000, 1_000_000)
"""Lives of a day."""
BUSIEST = 0.1 / 600
"""Share of a day's lives that begin in one second of its busiest ten minutes."""
WITHIN = 600.0
PARTS = ("API", "conductors", "PostgreSQL", "RabbitMQ")


class Use(typing.NamedTuple):
    """The use up to a moment.

    :ivar cpu: seconds of processor time, by part of the installation.
    """

    cpu: Mapping[str, float]
    statements: float
    messages: int


def goal(value: str) -> Json:
    """Return the template of a life; another value changes two resources."""
    template = templates.layered(LAYERS, WIDTH)
    for index in range(2):
        template["resources"][f"l{LAYERS - 1}_{index}"]["properties"]["value"] = value
    return template


def live(installation: Deployment, name: str) -> None:
    """Let a stack live."""
    path = installation.create(name, goal("old"))
    for _ in range(READS // 2):
        installation.call("GET", path)
        installation.call("GET", f"{path}/events?limit=100")
    expect(installation, path, "CREATE_COMPLETE")
    status, _ = installation.call("PUT", path, {"template": goal("new")})
    assert status == 202, status
    expect(installation, path, "UPDATE_COMPLETE")
    installation.call("GET", f"{path}/resources")
    installation.call("DELETE", path)
    expect(installation, path, "DELETE_COMPLETE")


def expect(installation: Deployment, path: str, status: str) -> None:
    """Wait for the final status of a stack."""
    view = installation.wait_final(path, WITHIN)
    assert view["stack_status"] == status, view


def report(before: Use, after: Use, lives: int, kibibytes: float) -> None:
    """Print the cost of a life, and that of days."""
    cpu = {part: (after.cpu[part] - before.cpu[part]) / lives for part in PARTS}
    print("one life: " + ", ".join(f"{part} {1000 * seconds:.1f} ms" for part, seconds in cpu.items()))
    print(
        f"{(after.statements - before.statements) / lives:.0f} statements, "
        f"{(after.messages - before.messages) / lives:.1f} messages, "
        f"{kibibytes:.0f} KiB in the database until the purge"
    )
    print(
        f"{'lives a day':>12}{'a second':>10}"
        + "".join(f"{part:>13}" for part in PARTS)
        + f"{'GiB a day':>11}"
    )
    for count in DAYS:
        rate = count * BUSIEST
        cores = "".join(f"{rate * seconds:>13.3f}" for seconds in cpu.values())
        print(f"{count:>12,}{rate:>10.2f}{cores}{count * kibibytes / 1024**2:>11.2f}")
    print("Parts: cores in the busiest ten minutes.")


def main() -> int:
    """Run the benchmark; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stacks", type=int, default=200)
    parser.add_argument("--clients", type=int, default=8)
    options = parser.parse_args()
    with (
        PostgreSQL({"shared_preload_libraries": "pg_stat_statements"}) as postgresql,
        RabbitMQ() as broker,
        Etcd() as etcd,
        tempfile.TemporaryDirectory() as folder,
        concurrent.futures.ThreadPoolExecutor(options.clients) as clients,
    ):
        postgresql.execute("CREATE EXTENSION pg_stat_statements")
        installation = Deployment(
            pathlib.Path(folder),
            database_url=postgresql.create_database(),
            transport_url=broker.create_vhost(),
            backend_url=etcd.url,
        )
        installation.start_api()
        installation.start_conductors("one", "two")
        try:
            use = user(installation, postgresql, broker)
            list(clients.map(lambda number: live(installation, f"w{number}"), range(options.clients)))
            size = nested.size(installation)
            before = use()
            list(clients.map(lambda number: live(installation, f"s{number}"), range(options.stacks)))
            after = use()
            kibibytes = (nested.size(installation) - size) / options.stacks / 1024
        finally:
            installation.stop()
        report(before, after, options.stacks, kibibytes)
    return 0


def user(installation: Deployment, postgresql: PostgreSQL, broker: RabbitMQ) -> Callable[[], Use]:
    """Return a function that returns the use of all parts up to its call."""
    assert installation.api is not None
    pids = {
        "API": [installation.api.pid],
        "conductors": [daemon.pid for daemon in installation.conductors.values()],
        "PostgreSQL": [postgresql.process.pid],
        "RabbitMQ": [broker.process.pid],
    }

    def use() -> Use:
        cpu = {part: sum(map(idle.tree_cpu, members)) for part, members in pids.items()}
        return Use(cpu, idle.statements(postgresql), end_to_end.messages(broker))

    return use


if __name__ == "__main__":
    sys.exit(main())
