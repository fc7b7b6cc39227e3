"""The moments at which duties have something to do in the next seconds, by one statement for all of them.

The kinds of rows of the kernel are here; a duty of a feature brings its own.

Each part of it reads the first rows of one index, so its cost follows what is due, never what is stored.
"""

import enum
import typing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..event_sinks import LINGER
from ..ids import MemberId
from ..schema import tables
from ..schema.column_types import Instant

ANY_SHARD = -1
"""Shard of a row that concerns every conductor."""


class Due(enum.StrEnum):
    """The kinds of rows that a duty attends to at some moment."""

    TASK = "task"
    STACK = "stack"  #: its deadline passes
    ROLLBACK = "rollback"  #: waits since that moment
    TRAVERSAL = "traversal"  #: may be purged
    DELIVERY = "delivery"  #: some event waits for its sink; the moment is 0
    SINK = "sink"  #: is closed, and may be deleted
    CREDENTIAL = "credential"  #: may be revoked
    CLAIM = "claim"  #: some task is claimed by the member; the moment is 0


@dataclass(frozen=True)
class DueSoon:
    """A row that is due soon, or was due before.

    :ivar kind: a Due, or that of the rows of a feature.
    :ivar at: the moment, in seconds since the epoch.
    :ivar shard: the shard of its stack; ANY_SHARD: of many stacks, or of none.
    :ivar member: the member that holds claims; None for other kinds.
    """

    kind: str
    at: float
    shard: int
    member: MemberId | None


@dataclass(frozen=True)
class DueRows:
    """Rows of one table to which a duty attends.

    :ivar kind: a name that no other rows have.
    :ivar at: the column of the moments; an index begins with it.
    :ivar shard: the column of the shards.
    """

    kind: str
    at: sa.ColumnElement[float]
    shard: sa.ColumnElement[int]

    def until(self) -> sa.Select[typing.Any]:
        """Return the query for the first ones that are due."""
        return _part(self.kind, self.at, self.shard).where(self.at <= _UNTIL).order_by(self.at).limit(_MOST)


_UNTIL: sa.BindParameter[float] = sa.bindparam("until", type_=Instant)
_MOST: sa.BindParameter[int] = sa.bindparam("most")
_NOBODY: sa.ColumnElement[str] = sa.literal_column("''")
_ZERO: sa.ColumnElement[float] = sa.literal_column("0e0")
_ALL_SHARDS: sa.ColumnElement[int] = sa.literal_column(str(ANY_SHARD))


def _part(
    kind: str,
    at: sa.ColumnElement[float],
    shard: sa.ColumnElement[int],
    member: sa.ColumnElement[str] = _NOBODY,
) -> sa.Select[typing.Any]:
    label: sa.ColumnElement[str] = sa.literal_column(f"'{kind}'")
    columns: dict[str, sa.ColumnElement[typing.Any]] = {
        "kind": label,
        "at": at,
        "shard": shard,
        "member": member,
    }
    return sa.select(*(column.label(name) for name, column in columns.items()))


def statement_for(of_features: Iterable[DueRows] = ()) -> sa.CompoundSelect[typing.Any]:
    """Return the statement for all rows of the kernel, and some of features."""
    task = tables.task.c
    stack = tables.stack.c
    traversal = tables.traversal.c
    sink = tables.event_sink.c
    closed = _part(Due.SINK, sink.closed_at + LINGER, sink.shard)
    claiming = _part(Due.CLAIM, _ZERO, _ALL_SHARDS, task.member)
    of_kernel = [
        DueRows(Due.TASK, task.due_at, task.shard),
        DueRows(Due.STACK, stack.deadline_at, stack.shard),
        DueRows(Due.ROLLBACK, stack.rollback_at, stack.shard),
        DueRows(Due.TRAVERSAL, traversal.due_at, traversal.shard),
        DueRows(Due.CREDENTIAL, tables.credential.c.unused_at, _ALL_SHARDS),
    ]
    parts = [
        *(rows.until() for rows in (*of_kernel, *of_features)),
        closed.where(sink.closed_at <= _UNTIL - LINGER).order_by(sink.closed_at).limit(_MOST),
        _part(Due.DELIVERY, _ZERO, _ALL_SHARDS).select_from(tables.event_delivery).limit(1),
        claiming.where(task.member > "").distinct(),  # As db.work.tasks: not IS NOT NULL.
    ]
    # SQLite allows no ORDER BY in a part of a UNION, but in a query inside of it.
    return sa.union_all(*(sa.select(part.subquery(f"part{n}")) for n, part in enumerate(parts)))


KERNEL = statement_for()


def due_before(
    conn: Connection, until: float, *, limit: int, statement: sa.Executable = KERNEL
) -> Iterator[DueSoon]:
    """Return what is due by then, of each kind the first `limit` rows, the oldest first."""
    for kind, at, shard, member in conn.execute(statement, {"until": until, "most": limit}):
        yield DueSoon(str(kind), float(at), int(shard), MemberId(member) if member else None)
