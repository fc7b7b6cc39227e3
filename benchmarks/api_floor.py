"""The floor of the API: as many bare HTTP requests, and as many rows written and read by psycopg alone.

The HTTP server is Stoker's, in as many processes as the API has.  It answers with the bytes that the API has
sent, and nothing is parsed or checked.  Twice as many processes write rows, so that the cores need not wait:
copies of those of a stack that Stoker has made, into tables with the same columns and indexes.  One
transaction writes the rows of a stack, and two read the stack.
"""

import multiprocessing
import socket
import time
import typing
import uuid
from collections.abc import Sequence

import idle
import psycopg
from psycopg.types.json import Jsonb
from stoker.cli.http.limits import ConnectionLimits
from stoker.cli.http.server import HttpServer, listen

THREADS = 16
NEW = {
    "stack": ("id", "live_name"),
    "content_use": ("holder_id",),
    "traversal": ("id",),
    "resource": ("id",),
    "task": ("id",),
    "event": ("id", "uuid"),
}
"""Table -> columns in which each copy differs from the others."""
Row = tuple[typing.Any, ...]


class Table(typing.NamedTuple):
    """A table to write to, and the rows of one stack in it."""

    name: str
    columns: Sequence[str]
    rows: Sequence[Row]


class HttpFloor:
    """Processes that answer each request with the same bytes.

    :param created: the body of the answer to a POST, and `shown` that to a GET.
    """

    def __init__(self, workers: int, created: bytes, shown: bytes) -> None:
        listener = listen("127.0.0.1", 0)
        self.port: int = listener.getsockname()[1]
        context = multiprocessing.get_context("spawn")
        self._processes = [
            context.Process(target=_serve, args=(listener, created, shown), daemon=True)
            for _ in range(workers)
        ]
        for process in self._processes:
            process.start()
        listener.close()

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.join()


def _serve(listener: socket.socket, created: bytes, shown: bytes) -> None:
    def app(environ: typing.Any, start_response: typing.Any) -> list[bytes]:
        is_post = environ["REQUEST_METHOD"] == "POST"
        body = created if is_post else shown
        fields = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
        start_response("201 Created" if is_post else "200 OK", fields)
        return [body]

    limits = ConnectionLimits(total=2000, per_address=0)
    server = HttpServer(app, host="127.0.0.1", port=0, threads=THREADS, connections=limits)
    server.start(listener)
    time.sleep(3600)


def sql_seconds(dsn: str, stack_id: str, stacks: int, workers: int) -> float:
    """Return the seconds for writing the rows of so many stacks, and reading each stack twice.

    :param stack_id: the stack that is copied.
    """
    with psycopg.connect(dsn) as conn:
        tables = [_copied(conn, name, stack_id) for name in NEW]
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(workers + 1)
    processes = [
        context.Process(target=_write, args=(dsn, tables, stacks // workers, barrier)) for _ in range(workers)
    ]
    for process in processes:
        process.start()
    barrier.wait()
    began = time.monotonic()
    for process in processes:
        process.join()
        if process.exitcode:
            raise RuntimeError("the bare loop failed")
    return (time.monotonic() - began) * stacks / (stacks // workers * workers)


def _copied(conn: psycopg.Connection, name: str, stack_id: str) -> Table:
    key = {"stack": "id", "content_use": "holder_id"}.get(name, "stack_id")
    conn.execute(f"DROP TABLE IF EXISTS floor_{name}".encode())
    conn.execute(f"CREATE TABLE floor_{name} (LIKE {name} INCLUDING ALL)".encode())
    columns = [str(column) for (column,) in conn.execute(idle.WRITTEN.format(table=name).encode())]
    listed = ", ".join(columns)
    rows = conn.execute(f"SELECT {listed} FROM {name} WHERE {key} = %s".encode(), (stack_id,)).fetchall()
    return Table(name, columns, rows)


def _write(dsn: str, tables: Sequence[Table], stacks: int, barrier: typing.Any) -> None:
    with psycopg.connect(dsn) as conn:
        conn.execute("SELECT 1")
        conn.commit()
        barrier.wait()
        for _ in range(stacks):
            stack_id = str(uuid.uuid4())
            for table in tables:
                _insert(conn, table, stack_id)
            conn.commit()
            for _ in range(2):
                conn.execute("SELECT * FROM floor_stack WHERE id = %s", (stack_id,)).fetchall()
                conn.commit()


def _insert(conn: psycopg.Connection, table: Table, stack_id: str) -> None:
    values = ", ".join(["%s"] * len(table.columns))
    statement = f"INSERT INTO floor_{table.name} ({', '.join(table.columns)}) VALUES ({values})"
    for row in table.rows:
        new = {name: stack_id if name != "id" else _new_id(table, stack_id) for name in NEW[table.name]}
        new |= {"uuid": str(uuid.uuid4())} if "uuid" in new else {}
        conn.execute(
            statement.encode(),
            [_adapted(new.get(name, value)) for name, value in zip(table.columns, row, strict=True)],
        )


def _new_id(table: Table, stack_id: str) -> str | int:
    return stack_id if table.name == "stack" else uuid.uuid4().int >> 66


def _adapted(value: typing.Any) -> typing.Any:
    return Jsonb(value) if isinstance(value, dict | list) else value
