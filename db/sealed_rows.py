"""Scans of all stored JSON that may hold secrets, so that a rotation of keys can seal it again.

Values are read and changed under a lock of their row: so another writer's change comes before or after, and
none is lost.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..shapes import Json, JsonMap
from . import snapshots, stacks
from .engine import Database
from .ids import ContentId, SnapshotId, StackId, TaskId
from .schema import tables
from .schema.column_types import LongText
from .states import TaskState

SealedTable = sa.Table
"""A table of `COLUMNS`."""
MARK = '%"$fn":"sealed"%'
"""Pattern of the text of each value that holds a token; most rows do not match, and are not read."""

COLUMNS: Mapping[sa.Table, Sequence[str]] = {
    tables.setting: ["value"],
    tables.content: ["body"],
    tables.stack: ["parameters", "previous", "outputs"],
    tables.credential: ["body"],
    tables.imported_key: ["secret"],
    tables.resource: ["reference_id", "definition", "properties", "attributes", "metadata", "data"],
    tables.snapshot: ["goal"],
    tables.task: ["definition"],
    tables.software_config: ["body"],
    tables.software_deployment: ["input_values", "output_values"],
}
"""Columns that store tokens; all other JSON is literal, even if it looks like a token."""


@dataclass(frozen=True)
class SealedTree:
    """The tree of stacks to which a value belongs: a root stack, and all that are nested in it.

    :ivar root_id: "": the value belongs to the project itself, and to no stack.
    """

    project_id: str
    root_id: str


@dataclass(frozen=True)
class Row:
    """The JSON values of one row, by column.

    :ivar key: value of the primary key.
    :ivar tree: the tree to which the row belongs; None: it belongs to no stack, or its stack is deleted.
    """

    key: Json
    values: JsonMap
    tree: SealedTree | None = None


def scan(database: Database, table: sa.Table, *, batch: int) -> Iterator[list[Row]]:
    """Yield the rows of a table that may hold tokens, in batches in the order of their keys.

    Each batch is a transaction.  Rows that are written meanwhile with a smaller key are not read.
    """
    key = _key(table)
    last = None
    while True:
        later = sa.true() if last is None else key > last
        query = _columns(table).where(later, _may_hold(table)).order_by(key).limit(batch)
        rows = database.read(lambda conn, query=query: _placed(conn, table, query))  # type: ignore[misc]
        if rows:
            yield rows
            last = rows[-1].key
        if len(rows) < batch:
            return


def count(conn: Connection, table: sa.Table) -> int:
    """Return the number of rows that `scan` yields if nothing changes meanwhile."""
    return int(
        conn.execute(sa.select(sa.func.count()).select_from(table).where(_may_hold(table))).scalar_one()
    )


def rewrite(conn: Connection, table: sa.Table, rows: Sequence[Row], change: Callable[[Row], JsonMap]) -> int:
    """Replace the rows' values by those that `change` returns; return how many rows have changed."""
    key = _key(table)
    trees = {row.key: row.tree for row in rows}
    changed = 0
    query = _columns(table).where(key.in_(list(trees))).order_by(key).with_for_update()
    for row in _rows(conn, query):
        new = change(Row(row.key, row.values, trees[row.key]))
        changes = {name: value for name, value in new.items() if value != row.values[name]}
        if changes:
            conn.execute(sa.update(table).where(key == row.key).values(**changes))
            changed += 1
    return changed


def holders(conn: Connection, key: ContentId) -> dict[str, SealedTree]:
    """Return the ids of the stacks and snapshots that use a content, with their trees."""
    u = tables.content_use.c
    s = tables.stack.c
    n = tables.snapshot.c
    of_stacks = sa.select(u.holder_id, s.project_id, s.root_id).join(tables.stack, s.id == u.holder_id)
    of_snapshots = (
        sa.select(u.holder_id, s.project_id, s.root_id)
        .join(tables.snapshot, n.id == u.holder_id)
        .join(tables.stack, s.id == n.stack_id)
    )
    both = (query.where(u.content_id == key) for query in (of_stacks, of_snapshots))
    keys = sorted(tuple(row) for query in both for row in conn.execute(query))
    return {holder: SealedTree(project, root) for holder, project, root in keys}


def rename_content(conn: Connection, holder: str, old: ContentId, new: ContentId) -> None:
    """Let a stack or a snapshot refer to the new content instead of the old one, if it still exists."""
    if not stacks.rename_content(conn, StackId(holder), old, new):
        snapshots.rename_content(conn, SnapshotId(holder), old, new)


def running(conn: Connection) -> set[tuple[TaskId, int]]:
    """Return the attempts that run, as (task, attempt): they may store values again that they have read."""
    t = tables.task
    rows = conn.execute(sa.select(t.c.id, t.c.attempt).where(t.c.state == TaskState.RUNNING))
    return {(TaskId(task_id), attempt) for task_id, attempt in rows}


def _key(table: sa.Table) -> sa.Column[Json]:
    [key] = table.primary_key
    return key


def _columns(table: sa.Table) -> sa.Select[Json]:
    return sa.select(_key(table), *(table.c[name] for name in COLUMNS[table]))


def _may_hold(table: sa.Table) -> sa.ColumnElement[bool]:
    texts = (sa.type_coerce(table.c[name], LongText) for name in COLUMNS[table])
    return sa.or_(*(text.like(MARK) for text in texts))


def _rows(conn: Connection, query: sa.Select[Json]) -> list[Row]:
    result = conn.execute(query)
    names = list(result.keys())[1:]
    return [Row(row[0], dict(zip(names, row[1:], strict=True))) for row in result]


def _placed(conn: Connection, table: sa.Table, query: sa.Select[Json]) -> list[Row]:
    rows = _rows(conn, query)
    s = tables.stack.c
    key = _key(table)
    if table in (tables.software_config, tables.software_deployment):
        trees = sa.select(key, table.c.project_id, sa.literal(""))
    elif table is tables.stack:
        trees = sa.select(s.id, s.project_id, s.root_id)
    elif "stack_id" in table.c:
        trees = sa.select(key, s.project_id, s.root_id).join(tables.stack, s.id == table.c.stack_id)
    else:
        return rows
    of_rows = trees.where(key.in_([row.key for row in rows]))
    trees_by_key = {row_key: SealedTree(project, root) for row_key, project, root in conn.execute(of_rows)}
    return [Row(row.key, row.values, trees_by_key.get(row.key)) for row in rows]
