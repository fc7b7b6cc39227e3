"""Going through all JSON that is stored, in batches, to seal anew what an older key has sealed.

What is found is changed under a lock of its row, by what the row holds then: whoever else changes it does so
before or after, and nothing of it is lost.
"""

import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from . import snapshots, stacks, tables
from .engine import Database
from .ids import ContentId, SnapshotId, StackId, TaskId
from .states import TaskState

Json = typing.Any
MARK = '%"$fn":"sealed"%'
"""What the text of each value has in it that holds a token; most rows have not, and are not sent."""

TABLES: Mapping[str, sa.Table] = {
    table.name: table
    for table in tables.metadata.sorted_tables
    if any(isinstance(column.type, tables.JsonText) for column in table.c)
}


@dataclass(frozen=True)
class Row:
    """The JSON values of one row, by column.

    :ivar key: value of the primary key.
    """

    key: Json
    values: Mapping[str, Json]


def scan(database: Database, table: sa.Table, *, batch: int) -> Iterator[list[Row]]:
    """The rows of a table that may hold tokens, in batches in the order of their keys; a transaction each.

    What is written behind the place where it is looking is not seen.
    """
    key, last = _key(table), None
    while True:
        behind = sa.true() if last is None else key > last
        query = _columns(table).where(behind, _may_hold(table)).order_by(key).limit(batch)
        rows = database.read(lambda conn, query=query: _rows(conn, query))  # type: ignore[misc]
        if rows:
            yield rows
            last = rows[-1].key
        if len(rows) < batch:
            return


def rewrite(
    conn: Connection, table: sa.Table, keys: Sequence[Json], change: Callable[[Json], Json]
) -> list[Row]:
    """Put `change` of them in the place of the rows' values; those that have changed, as they are now."""
    key, changed = _key(table), []
    query = _columns(table).where(key.in_(keys)).order_by(key).with_for_update()
    for row in _rows(conn, query):
        new = {name: change(value) for name, value in row.values.items()}
        other = {name: value for name, value in new.items() if value != row.values[name]}
        if other:
            conn.execute(sa.update(table).where(key == row.key).values(**other))
            changed.append(Row(row.key, new))
    return changed


def holders(conn: Connection, key: ContentId) -> list[str]:
    """The ids of the stacks and snapshots that hold on to a content."""
    u = tables.content_use
    found = conn.execute(sa.select(u.c.holder_id).where(u.c.content_id == key).order_by(u.c.holder_id))
    return list(found.scalars())


def rename_content(conn: Connection, holder: str, old: ContentId, new: ContentId) -> None:
    """Let a stack or a snapshot refer to one content in the place of another; one that is gone does not."""
    if not stacks.rename_content(conn, StackId(holder), old, new):
        snapshots.rename_content(conn, SnapshotId(holder), old, new)


def running(conn: Connection) -> set[tuple[TaskId, int]]:
    """The attempts that run now, as (task, attempt): what they have read, they may store again."""
    t = tables.task
    rows = conn.execute(sa.select(t.c.id, t.c.attempt).where(t.c.state == TaskState.RUNNING))
    return {(TaskId(task_id), attempt) for task_id, attempt in rows}


def _key(table: sa.Table) -> sa.Column[Json]:
    [key] = table.primary_key
    return key


def _json_columns(table: sa.Table) -> list[sa.Column[Json]]:
    return [column for column in table.c if isinstance(column.type, tables.JsonText)]


def _columns(table: sa.Table) -> sa.Select[Json]:
    return sa.select(_key(table), *_json_columns(table))


def _may_hold(table: sa.Table) -> sa.ColumnElement[bool]:
    texts = (sa.type_coerce(column, tables.LongText) for column in _json_columns(table))
    return sa.or_(*(text.like(MARK) for text in texts))


def _rows(conn: Connection, query: sa.Select[Json]) -> list[Row]:
    found = conn.execute(query)
    names = list(found.keys())[1:]
    return [Row(row[0], dict(zip(names, row[1:], strict=True))) for row in found]
