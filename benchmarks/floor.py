"""The floor: the time that the drivers alone need for the casts, claims and row writes of so many resources.

Two processes, as two conductors would, share the resources.  Each batch is one cast through oslo.messaging,
one transaction that claims the tasks and marks the resources in progress (with its events), and one that
stores the results (task, resource, event, count of the unfinished).  Those are the rows that Stoker writes
for a flat stack, by psycopg alone, with nothing computed, validated or checked.

The links of a chain come one after the other, so there one process stores a result, and claims the next task,
in one transaction for each link.
"""

import json
import multiprocessing
import time
import typing
import uuid

import psycopg
import sqlalchemy as sa
from stoker.cli.config import options
from stoker.rpc.bus import open_transport
from stoker.rpc.client import OsloSender

Json = typing.Any
BATCH = 32
WORKERS = 2
DEFINITION = json.dumps({"properties": {"value": "x" * 40}, "type": "OS::Heat::TestResource"})
VALUES = json.dumps({"output": "x" * 40, "show": {"value": "x" * 40}})
TABLES = """
CREATE TABLE floor_task (id bigint PRIMARY KEY, state varchar(16), attempt int, member varchar(80),
    pending int, due_at float, shard int, definition jsonb);
CREATE INDEX ON floor_task (due_at);
CREATE INDEX ON floor_task (member);
CREATE TABLE floor_resource (id bigint PRIMARY KEY, stack varchar(36), name varchar(255), action varchar(16),
    status varchar(16), reason text, physical varchar(255), properties jsonb, attributes jsonb,
    updated_at float);
CREATE INDEX ON floor_resource (stack, name);
CREATE TABLE floor_event (id varchar(36) PRIMARY KEY, number bigserial, stack varchar(36), name varchar(255),
    status varchar(16), reason text, at float);
CREATE INDEX ON floor_event (stack, number);
"""


class Floor(typing.NamedTuple):
    """:ivar rate: resources per second of the bare loop.
    :ivar cpu: seconds of processor time of its processes for each resource.
    """

    rate: float
    cpu: float


def measure(database_url: str, transport_url: str, count: int) -> Floor:
    """Run the bare loop, the rows of tasks and resources being there already."""
    dsn = _dsn(database_url)
    _fill(dsn, count)
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(WORKERS + 1)
    share = count // WORKERS
    cpu = context.Array("d", WORKERS)
    procs = [
        context.Process(target=_work, args=(dsn, transport_url, n, share, barrier, cpu))
        for n in range(WORKERS)
    ]
    for proc in procs:
        proc.start()
    barrier.wait()
    began = time.monotonic()
    for proc in procs:
        proc.join()
        if proc.exitcode:
            raise RuntimeError("the bare loop failed")
    seconds = time.monotonic() - began
    return Floor(share * WORKERS / seconds, sum(cpu) / (share * WORKERS))


def measure_chain(database_url: str, count: int) -> Floor:
    """Run the bare loop of a chain of so many resources."""
    dsn = _dsn(database_url)
    _fill(dsn, count + 1)
    with psycopg.connect(dsn) as conn:
        conn.execute("SELECT 1")
        conn.commit()
        began = time.monotonic()
        cpu = time.process_time()
        for index in range(count):
            _lock_task(conn, [index])
            _write_results(conn, [index], time.time())
            _lock_task(conn, [index + 1])
            _mark_claimed(conn, [index + 1], time.time())
            _events(conn, [index], "COMPLETE", time.time())
            _events(conn, [index + 1], "IN_PROGRESS", time.time())
            _count_down(conn, 1, row=count + 1)
            conn.commit()
        return Floor(count / (time.monotonic() - began), (time.process_time() - cpu) / count)


def _fill(dsn: str, count: int) -> None:
    with psycopg.connect(dsn) as conn:
        conn.execute("DROP TABLE IF EXISTS floor_task, floor_resource, floor_event")
        conn.execute(TABLES.encode())
        with conn.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO floor_task VALUES (%s, 'ready', 0, NULL, 0, 0, 7, %s)",
                [(index, DEFINITION) for index in range(count + 1)],
            )
            cursor.executemany(
                "INSERT INTO floor_resource VALUES (%s, 's', %s, 'INIT', 'COMPLETE', '', NULL, %s, NULL, 0)",
                [(index, f"r{index}", DEFINITION) for index in range(count)],
            )


def _dsn(url: str) -> str:
    parsed = sa.make_url(url).set(drivername="postgresql")
    return parsed.render_as_string(hide_password=False)


def _work(dsn: str, transport_url: str, worker: int, count: int, barrier: Json, cpu: Json) -> None:
    transport = open_transport(options.load([], program="floor", files=[]), transport_url)
    sender = OsloSender(transport)
    with psycopg.connect(dsn) as conn:
        conn.execute("SELECT 1")
        conn.commit()
        first = worker * count
        barrier.wait()
        began = time.process_time()
        for start in range(first, first + count, BATCH):
            ids = list(range(start, min(start + BATCH, first + count)))
            sender.run_tasks("floor", ids)  # type: ignore[arg-type]
            _claim(conn, ids)
            _store(conn, ids)
        cpu[worker] = time.process_time() - began
    transport.cleanup()


def _claim(conn: psycopg.Connection, ids: list[int]) -> None:
    now = time.time()
    _lock_task(conn, ids)
    _mark_claimed(conn, ids, now)
    _events(conn, ids, "IN_PROGRESS", now)
    conn.commit()


def _store(conn: psycopg.Connection, ids: list[int]) -> None:
    now = time.time()
    _lock_task(conn, ids)
    _write_results(conn, ids, now)
    _events(conn, ids, "COMPLETE", now)
    _count_down(conn, len(ids), row=-1)
    conn.commit()


def _lock_task(conn: psycopg.Connection, ids: list[int]) -> None:
    conn.execute("SELECT * FROM floor_task WHERE id = ANY(%s) ORDER BY id FOR UPDATE", (ids,)).fetchall()


def _mark_claimed(conn: psycopg.Connection, ids: list[int], now: float) -> None:
    conn.execute(
        "UPDATE floor_task SET state='running', member='m', attempt=attempt+1, due_at=%s WHERE id = ANY(%s)",
        (now, ids),
    )
    conn.execute("SELECT * FROM floor_resource WHERE id = ANY(%s)", (ids,)).fetchall()
    conn.execute(
        "UPDATE floor_resource SET action='CREATE', status='IN_PROGRESS', updated_at=%s WHERE id = ANY(%s)",
        (now, ids),
    )


def _write_results(conn: psycopg.Connection, ids: list[int], now: float) -> None:
    conn.execute("UPDATE floor_task SET state='done', member=NULL, due_at=NULL WHERE id = ANY(%s)", (ids,))
    with conn.cursor() as cursor:
        cursor.executemany(
            "UPDATE floor_resource SET status='COMPLETE', reason='state changed', physical=%s, properties=%s,"
            " attributes=%s, updated_at=%s WHERE id=%s",
            [(f"stack-r-{i}", DEFINITION, VALUES, now, i) for i in ids],
        )


def _count_down(conn: psycopg.Connection, tasks: int, *, row: int) -> None:
    conn.execute("UPDATE floor_task SET pending=pending-%s WHERE id=%s", (tasks, row))


def _events(conn: psycopg.Connection, ids: list[int], status: str, now: float) -> None:
    with conn.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO floor_event (id, stack, name, status, reason, at) VALUES (%s, 's', %s, %s, %s, %s)",
            [(str(uuid.uuid4()), f"r{i}", status, "state changed", now) for i in ids],
        )
