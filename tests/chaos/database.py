"""Reads of the rows behind the API, for the checker: with nothing in between, and not by Stoker's code."""

import contextlib
import logging
import threading
import time
import typing
from collections.abc import Sequence

import sqlalchemy as sa
from chaos.history import Event, FinalCopy, FinalResource, FinalStack, History, Sample
from chaos.ledger import copy_of

EVERY = 1.0
"""Seconds between two samples of the ownership."""
EVENTS = "SELECT stack_id, physical_id, resource_name, action, status, reason, at FROM event ORDER BY id"
STACKS = "SELECT id, name, root_id, action, status, reason, deleted_at, parent_id FROM stack"
RESOURCES = """
SELECT resource.stack_id, resource.name, resource.id, resource.physical_id
FROM resource JOIN stack ON stack.id = resource.stack_id
WHERE resource.plugin = 'Chaos::Item' AND resource.snapshot_id IS NULL AND stack.deleted_at IS NULL
"""
COPIES = """
SELECT resource.stack_id, resource.name, resource.snapshot_id, resource.status, resource.{key}
FROM resource JOIN stack ON stack.id = resource.stack_id
WHERE resource.plugin = 'Chaos::Item' AND resource.snapshot_id IS NOT NULL AND stack.deleted_at IS NULL
"""
OPEN_TASKS = """
SELECT id, stack_id, kind, state, member, attempt, due_at, waits_on FROM task
WHERE state NOT IN ('done', 'failed', 'cancelled')
"""
MEMBERS = "SELECT host, shards_owned FROM conductor WHERE state = 'active'"

logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)  # A connection that breaks is no news here.


class Rows:
    """The rows of an installation."""

    def __init__(self, url: str) -> None:
        self._engine = sa.create_engine(url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")

    def query(self, sql: str) -> Sequence[typing.Any]:
        """Return the rows of a query."""
        with self._engine.connect() as conn:
            return conn.execute(sa.text(sql)).all()

    def events(self) -> list[Event]:
        """Return all events, in their order."""
        return [
            Event(row.stack_id, row.stack_id == row.physical_id, row.resource_name, *row[3:6], float(row.at))
            for row in self.query(EVENTS)
        ]

    def stacks(self) -> list[FinalStack]:
        """Return all stacks, nested and deleted ones, too."""
        return [FinalStack(*row[:6], is_deleted=row.deleted_at is not None) for row in self.query(STACKS)]

    def resources(self) -> list[FinalResource]:
        """Return the items of the ledger that living stacks have."""
        return [FinalResource(*row) for row in self.query(RESOURCES)]

    def copies(self) -> list[FinalCopy]:
        """Return the copies that the snapshots of living stacks have."""
        quote = self._engine.dialect.identifier_preparer.quote_identifier
        return [
            FinalCopy(row.stack_id, row.name, row.snapshot_id, row.status, copy_of(row[4]))
            for row in self.query(COPIES.format(key=quote("key")))
        ]

    def open_tasks(self) -> Sequence[typing.Any]:
        """Return the tasks that are left to do."""
        return self.query(OPEN_TASKS)

    def sample(self, history: History, stop: threading.Event) -> None:
        """Record the ownership again and again until it is to stop."""
        while not stop.wait(EVERY):
            shards: dict[str, int] = {}
            with contextlib.suppress(sa.exc.SQLAlchemyError):
                shards = {row.host: int(row.shards_owned) for row in self.query(MEMBERS)}
            history.add(Sample(time.time(), shards))
