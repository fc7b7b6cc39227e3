"""Helpers for tests of running conductors: load on them, and what has become of it."""

import concurrent.futures
import contextlib
import threading
import time
import typing
from collections.abc import Callable, Sequence

import sqlalchemy as sa
from harness import templates
from harness.deployment import Deployment
from harness.waiting import wait_for

T = typing.TypeVar("T")


SHARDS = 4096


READY = "is in the ring and serves"


CLIENTS = 8


def restart(deployment: Deployment, host: str) -> float:
    """Start a conductor again on its host; the moment at which it was ready, by the monotonic clock."""
    before = deployment.conductors[host].text().count(READY)
    daemon = deployment.launch_conductor(host)
    wait_for(lambda: daemon.text().count(READY) > before, 120, daemon.tail)
    return time.monotonic()


def query(deployment: Deployment, sql: str, **values: typing.Any) -> Sequence[typing.Any]:
    engine = sa.create_engine(deployment.database_url, poolclass=sa.NullPool)
    with engine.begin() as conn:
        result = conn.execute(sa.text(sql), values)
        return result.all() if result.returns_rows else []


def create_many(deployment: Deployment, names: Sequence[str], template: typing.Any) -> None:
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(lambda name: deployment.create(name, template), names))


def unfinished(deployment: Deployment) -> int:
    [(count,)] = query(deployment, "SELECT count(*) FROM stack WHERE status = 'IN_PROGRESS'")
    return int(count)


def wait_all_final(deployment: Deployment, within: float) -> None:
    def why() -> str:
        rows = query(deployment, "SELECT stack_id, state, member, due_at FROM task WHERE state <> 'done'")
        return f"{unfinished(deployment)} stacks are in progress; {rows[:20]}"

    wait_for(lambda: unfinished(deployment) == 0, within, why)


def repeated(deployment: Deployment) -> Sequence[typing.Any]:
    """Events that are there more than once."""
    return query(
        deployment,
        "SELECT stack_id, resource_name, action, status, count(*) FROM event "
        "GROUP BY stack_id, resource_name, action, status HAVING count(*) > 1",
    )


def statuses(deployment: Deployment, table: str) -> dict[str, int]:
    """How many stacks, or resources, ended how."""
    rows = query(deployment, f"SELECT action, status, count(*) FROM {table} GROUP BY action, status")
    return {f"{action}_{status}": count for action, status, count in rows}


def seconds_of(job: Callable[[], T]) -> tuple[float, T]:
    began = time.monotonic()
    done = job()
    return time.monotonic() - began, done


class Load:
    """Creates stacks, one after the other, until it is left.  Waits for an API that is being restarted."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.count = 0

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        tried = 0
        while not self._stop.wait(0.1):
            tried += 1  # What an API that stops has not answered may be stored: the next has another name.
            with contextlib.suppress(OSError):
                self._deployment.create(f"s{tried}", templates.layered(2, 3, wait_secs=1))
                self.count += 1
