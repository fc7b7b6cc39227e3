"""The service outside: a process that keeps items by idempotency key, and a journal of all its effects.

``python -m chaos.ledger FILE PORT`` serves it.  The file is SQLite; what was answered survives a kill.

* ``PUT /keys/KEY`` makes the item of a key, or finds the one that the key has made.
* ``GET /keys/KEY`` finds it.
* ``DELETE /keys/KEY`` removes it.  A later PUT of the key is refused, so that a late one leaves nothing.
* ``GET /items/ID`` shows a item, and says whether it is ready.
* ``PUT /items/ID`` changes its value, its inputs or its state.
* ``DELETE /items/ID`` removes it.
* ``PUT /copies/KEY`` makes a copy of the item in the body, or finds the one that the key has made.
* ``DELETE /copies/KEY`` removes it.  A later PUT of the key is refused.
"""

import contextlib
import dataclasses
import http.server
import json
import pathlib
import sqlite3
import sys
import threading
import time
import typing
from collections.abc import Iterator, Sequence

from harness.fault_proxy import BusyServer
from harness.ports import HOST

Json = typing.Any
SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = OFF;
CREATE TABLE IF NOT EXISTS item (
    id TEXT PRIMARY KEY, key TEXT UNIQUE NOT NULL, body TEXT NOT NULL, ready_at REAL NOT NULL,
    is_ready INTEGER NOT NULL DEFAULT 0, is_removed INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS copy (id TEXT PRIMARY KEY, is_removed INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS spent (key TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS entry (
    number INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, effect TEXT NOT NULL,
    item TEXT NOT NULL, body TEXT NOT NULL);
"""
FOREVER = 1e12
"""The instant at which a item is ready that never becomes so."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """An effect that the ledger has had.

    :ivar effect: make, ready, change or remove an item; copy or drop a copy of one.
    :ivar item: the id of the item, or of the copy.
    :ivar body: for make and change: `row` (the resource's number), `key`, `label`, `value`, `inputs`; for
        copy: `item`.
    """

    number: int
    at: float
    effect: str
    item: str
    body: Json


class Reply(typing.NamedTuple):
    """An answer: its status and its body."""

    status: int
    body: Json = None


class Ledger:
    """The items and the journal.  Any thread may call it; each call is one transaction.

    :param path: the file.
    :param clock: seconds; the service's own clock, which no fault touches.
    """

    def __init__(self, path: pathlib.Path, clock: typing.Callable[[], float] = time.time) -> None:
        self._lock = threading.Lock()
        self._clock = clock
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._db.executescript(SCHEMA)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def answer(self, method: str, path: str, body: Json) -> Reply:
        """Carry a request out; return the answer."""
        _, collection, name = path.split("/")
        act = {
            ("PUT", "keys"): self._make,
            ("GET", "keys"): self._find,
            ("DELETE", "keys"): self._spend,
            ("GET", "items"): self._show,
            ("PUT", "items"): self._change,
            ("DELETE", "items"): self._remove,
            ("PUT", "copies"): self._copy,
            ("DELETE", "copies"): self._drop,
        }[method, collection]
        with self._transaction():
            return act(name, body)

    def _make(self, key: str, body: Json) -> Reply:
        if self._db.execute("SELECT 1 FROM spent WHERE key = ?", (key,)).fetchone():
            return Reply(409, {"error": "the key is spent"})
        item = f"item-{key}"
        seconds = body.pop("seconds")
        ready_at = self._clock() + seconds if seconds >= 0 else FOREVER
        values = (item, key, json.dumps(body), ready_at)
        row = "INSERT INTO item (id, key, body, ready_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
        if self._db.execute(row, values).rowcount:
            self._write("make", item, {**body, "key": key})
        return self._show(item, None)

    def _find(self, key: str, _: Json) -> Reply:
        return self._show(f"item-{key}", None)

    def _spend(self, key: str, _: Json) -> Reply:
        self._db.execute("INSERT INTO spent VALUES (?) ON CONFLICT DO NOTHING", (key,))
        self._remove(f"item-{key}", None)
        return Reply(204)

    def _show(self, item: str, _: Json) -> Reply:
        query = "SELECT body, ready_at, is_ready FROM item WHERE id = ? AND NOT is_removed"
        row = self._db.execute(query, (item,)).fetchone()
        if row is None:
            return Reply(404, {"error": f"there is no {item}"})
        body, ready_at, is_ready = row
        if not is_ready and self._clock() >= ready_at:
            is_ready = self._db.execute("UPDATE item SET is_ready = 1 WHERE id = ?", (item,)).rowcount
            self._write("ready", item, None)
        return Reply(200, {"id": item, "ready": bool(is_ready), **json.loads(body)})

    def _change(self, item: str, body: Json) -> Reply:
        reply = self._show(item, None)
        if reply.status != 200:
            return reply
        before = {name: value for name, value in reply.body.items() if name not in ("id", "ready")}
        after = {**before, **body}
        if after != before:
            self._db.execute("UPDATE item SET body = ? WHERE id = ?", (json.dumps(after), item))
            self._write("change", item, after)
        return self._show(item, None)

    def _remove(self, item: str, _: Json) -> Reply:
        query = "UPDATE item SET is_removed = 1 WHERE id = ? AND NOT is_removed"
        if self._db.execute(query, (item,)).rowcount:
            self._write("remove", item, None)
        return Reply(204)

    def _copy(self, key: str, body: Json) -> Reply:
        copy = copy_of(key)
        if self._db.execute("SELECT 1 FROM spent WHERE key = ?", (copy,)).fetchone():
            return Reply(409, {"error": "the key is spent"})
        item = self._show(body["item"], None)
        if item.status != 200:
            return item
        if self._db.execute("INSERT INTO copy (id) VALUES (?) ON CONFLICT DO NOTHING", (copy,)).rowcount:
            self._write("copy", copy, {"item": body["item"]})
        return Reply(200, {"id": copy})

    def _drop(self, key: str, _: Json) -> Reply:
        copy = copy_of(key)
        self._db.execute("INSERT INTO spent VALUES (?) ON CONFLICT DO NOTHING", (copy,))
        query = "UPDATE copy SET is_removed = 1 WHERE id = ? AND NOT is_removed"
        if self._db.execute(query, (copy,)).rowcount:
            self._write("drop", copy, None)
        return Reply(204)

    def _write(self, effect: str, item: str, body: Json) -> None:
        self._db.execute(
            "INSERT INTO entry (at, effect, item, body) VALUES (?, ?, ?, ?)",
            (self._clock(), effect, item, json.dumps(body)),
        )


def copy_of(key: str) -> str:
    """Return the id of the copy that a key makes."""
    return f"copy-{key}"


def journal(path: pathlib.Path) -> Sequence[Entry]:
    """Return all effects of a ledger, in their order."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT number, at, effect, item, body FROM entry ORDER BY number").fetchall()
    return [Entry(number, at, effect, item, json.loads(body)) for number, at, effect, item, body in rows]


def serve(path: pathlib.Path, port: int) -> None:
    """Serve a ledger until the process ends."""
    ledger = Ledger(path)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            text = self.rfile.read(length)
            reply = ledger.answer(self.command, self.path, json.loads(text) if text else None)
            body = b"" if reply.body is None else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_DELETE = answer  # noqa: N815

        def handle(self) -> None:
            with contextlib.suppress(OSError):
                super().handle()

        def log_message(self, *args: typing.Any) -> None:
            """Log no requests."""

    BusyServer((HOST, port), Handler).serve_forever()


if __name__ == "__main__":
    serve(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
