"""How long a cancel takes: from the request until the last of 200 steps has ended, over three conductors.

Usage:
    python benchmarks/cancel.py             start RabbitMQ, PostgreSQL, etcd and three conductors
    options: --steps 200   --runs 50   --blocked 20   --grace 2

Each run creates a stack whose steps work for a minute and yield (they sleep in `work.pause`), waits until
all of them run, and cancels it without rollback.  The time ends when the last step has ended, as its event
tells.  Then one run with steps that hang in a call: from the request until the last of them is detached.  At
the end the transactions per second of idle conductors, and of conductors that hold steps which could be
cancelled at any moment: a worker that polled the database for cancels would show here.
"""

import argparse
import pathlib
import statistics
import sys
import time
import typing

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))

import sqlalchemy as sa
from harness.deployment import Deployment
from harness.waiting import wait_for
from own_installation import own_installation

HOSTS = ("one", "two", "three")
IDLE = 30.0
"""Seconds over which transactions are counted."""
SETTLED = 25.0
"""Seconds after which the work that follows a start is over, and the conductors rest."""
Json = typing.Any


def value_of(deployment: Deployment, sql: str, **values: Json) -> Json:
    """The one value of a query."""
    engine = sa.create_engine(deployment.database_url, poolclass=sa.NullPool)
    with engine.connect() as conn:
        return conn.execute(sa.text(sql), values).scalar()


def running(deployment: Deployment) -> int:
    """Tasks that are claimed."""
    return int(value_of(deployment, "SELECT count(*) FROM task WHERE state = 'running'"))


def begin(deployment: Deployment, name: str, count: int, kind: str, properties: Json) -> str:
    """A stack all of whose steps run; its path."""
    resources = {f"r{i}": {"type": kind, "properties": properties} for i in range(count)}
    path = deployment.create(name, {"heat_template_version": "2018-08-31", "resources": resources})
    wait_for(lambda: running(deployment) == count, 120)
    return path


def cancelled(deployment: Deployment, path: str) -> float:
    """Cancel; seconds until the last step had ended."""
    began = time.time()
    assert deployment.call("POST", f"{path}/actions", {"cancel_without_rollback": None})[0] == 200
    wait_for(lambda: running(deployment) == 0, 120)
    last = value_of(
        deployment,
        "SELECT max(at) FROM event WHERE stack_id = :stack AND reason LIKE 'CREATE aborted%'",
        stack=path.rsplit("/", 1)[1],
    )
    return float(last) - began


def transactions(deployment: Deployment) -> float:
    """Transactions per second that all conductors and the API do."""
    sql = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
    time.sleep(SETTLED)
    before = int(value_of(deployment, sql))
    began = time.monotonic()
    time.sleep(IDLE)
    return (int(value_of(deployment, sql)) - before) / (time.monotonic() - began)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--blocked", type=int, default=20)
    parser.add_argument("--grace", type=float, default=2.0)
    options = parser.parse_args()
    settings = f"[stacks]\ncancel_grace = {options.grace}\n"
    settings += f"[conductor]\nthreads = {options.steps // 2}\nmost_written_off = 0\n"
    with own_installation(*HOSTS, options=settings, has_plugins=True) as deployment:
        took = []
        for number in range(options.runs):
            slow = {"seconds": 60, "slice": 0.05}
            path = begin(deployment, f"yield-{number}", options.steps, "Test::Cooperative", slow)
            took.append(cancelled(deployment, path))
        took.sort()
        p99 = took[min(len(took) - 1, round(0.99 * len(took)))]
        print(
            f"{options.steps} steps that yield, {options.runs} runs: median {statistics.median(took):.2f} s, "
            f"p99 {p99:.2f} s, worst {took[-1]:.2f} s"
        )
        path = begin(deployment, "blocked", options.blocked, "Test::Blocking", {"seconds": 30})
        seconds = cancelled(deployment, path)
        print(f"{options.blocked} steps that hang, grace {options.grace} s: {seconds:.2f} s")
        idle = transactions(deployment)
        begin(deployment, "held", options.steps, "Test::Cooperative", {"seconds": 600, "slice": 0.05})
        held = transactions(deployment)
        print(
            f"transactions/s: {idle:.1f} idle, {held:.1f} with {options.steps} steps that could be cancelled"
        )


if __name__ == "__main__":
    main()
