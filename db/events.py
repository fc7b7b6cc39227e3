"""Rows of events, in Heat's shape."""

import typing
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from . import bulk, event_sinks, statements
from .bulk import Writes
from .errors import NotFound
from .ids import StackId
from .rows import Event
from .schema import tables

_STORED = [name for name in Event.__dataclass_fields__ if name not in ("id", "has_sinks")]


def add_many(conn: Connection, events: Sequence[Event], writes: Writes | None = None) -> None:
    """Store events in the order given, and skip those that exist.

    A caller that got no answer to a commit stores the same events once more.  In the same transaction they
    are put down for delivery to the event sinks that there may be.

    :param writes: where the events are put off; None: they are stored at once.
    """
    if events:
        rows = new_rows(events)[tables.event]
        write = bulk.insertion(conn, tables.event, rows, unless_taken="uuid")
        if writes is None:
            conn.execute(*write)
        else:
            writes.append(write)
        put_down(conn, events)


def new_rows(events: Iterable[Event]) -> dict[sa.Table, list[bulk.Row]]:
    """Return the rows of new events, by their table; who stores them calls `put_down`, too."""
    return {tables.event: [{name: getattr(event, name) for name in _STORED} for event in events]}


def put_down(conn: Connection, events: Sequence[Event]) -> None:
    """Put events down for delivery to the event sinks that there may be; the stacks' rows are stored."""
    if any(event.has_sinks for event in events):
        event_sinks.put_down(conn, [event for event in events if event.has_sinks])


@dataclass(frozen=True)
class EventQuery:
    """A selection of the events of a stack, or of its tree down to a depth.

    :ivar nested_depth: levels below the stack; 0: its own events only; -1: the whole tree.
    :ivar filters: column name -> values, one of which must match.
    :ivar marker: uuid of the last event already seen.
    :ivar by_type: whether events are sorted by the type of the resource, and only within a type by time.
    """

    stack_id: StackId
    nested_depth: int = 0
    resource_name: str | None = None
    filters: Mapping[str, Sequence[str]] | None = None
    limit: int | None = None
    marker: str | None = None
    descending: bool = False
    by_type: bool = False


def list_events(conn: Connection, query: EventQuery) -> list[tuple[Event, str]]:
    """Return the events in the order of the query, without their properties, each with its stack's name.

    :raises NotFound: the marker is not an event.
    """
    e = tables.event
    s = tables.stack
    columns = [column for column in e.c if column.name != "properties"]
    statement = sa.select(*columns, s.c.name.label("stack_name")).join(s, s.c.id == e.c.stack_id)
    statement = statement.where(_of_stacks(conn, query))
    if query.resource_name is not None:
        statement = statement.where(e.c.resource_name == query.resource_name)
    for column, values in (query.filters or {}).items():
        statement = statement.where(e.c[column].in_(list(values)))
    order = [e.c.resource_type, e.c.id] if query.by_type else [e.c.id]
    if query.marker is not None:
        statement = statement.where(_after_marker(conn, order, query))
    # Those of a tree are sorted: in the order of the table, all newer ones of other stacks would be read.
    keys = [bulk.Unindexed(column) for column in order] if query.nested_depth else order
    statement = statement.order_by(*(key.desc() if query.descending else key.asc() for key in keys))
    if query.limit is not None:
        statement = statement.limit(query.limit)
    rows = [dict(row) for row in conn.execute(statement).mappings()]
    return [(Event(**{k: v for k, v in row.items() if k != "stack_name"}), row["stack_name"]) for row in rows]


def _of_stacks(conn: Connection, query: EventQuery) -> sa.ColumnElement[bool]:
    e = tables.event
    s = tables.stack
    if query.nested_depth == 0:
        return e.c.stack_id == query.stack_id
    depth = conn.execute(sa.select(s.c.depth).where(s.c.id == query.stack_id)).scalar()
    if depth is None:
        raise NotFound("Stack", query.stack_id)
    deepest = None if query.nested_depth < 0 else depth + query.nested_depth
    return e.c.stack_id.in_(statements.below(query.stack_id, deepest))


def _after_marker(
    conn: Connection, order: Sequence[sa.Column[typing.Any]], query: EventQuery
) -> sa.ColumnElement[bool]:
    """Return the condition for events after the query's marker.

    :raises NotFound: there is no such event.
    """
    marker = conn.execute(sa.select(*order).where(tables.event.c.uuid == query.marker)).one_or_none()
    if marker is None:
        raise NotFound("Event", query.marker)
    *types, last = [(column, value) for column, value in zip(order, marker, strict=True)]
    condition: sa.ColumnElement[bool]
    condition = last[0] < last[1] if query.descending else last[0] > last[1]
    for column, value in types:
        further = column < value if query.descending else column > value
        condition = sa.or_(further, sa.and_(column == value, condition))
    return condition


def get(conn: Connection, event_uuid: str, stack_id: StackId | None = None) -> Event:
    """Return an event.

    :param stack_id: id of the stack whose event it must be; None: the caller checks whose it is.
    :raises NotFound: no such event.
    """
    e = tables.event
    query = sa.select(e).where(e.c.uuid == event_uuid)
    if stack_id is not None:
        query = query.where(e.c.stack_id == stack_id)
    row = conn.execute(query).mappings().first()
    if row is None:
        raise NotFound("Event", event_uuid)
    return Event(**dict(row))


def stacks_since(conn: Connection, moment: float) -> list[tuple[StackId, int]]:
    """Return (id, shard) of the stacks with events since the moment, by the index on it."""
    e = tables.event
    s = tables.stack
    recent = sa.select(e.c.stack_id).where(e.c.at >= moment).distinct().subquery()
    rows = conn.execute(sa.select(s.c.id, s.c.shard).join(recent, recent.c.stack_id == s.c.id))
    return [(StackId(stack_id), shard) for stack_id, shard in rows]


def over_limit(conn: Connection, most: int, *, limit: int, after: StackId | None = None) -> list[StackId]:
    """Return the stacks that have more events than `most`, in the order of their ids.

    :param after: id of the last stack of the page before.
    """
    e = tables.event
    statement = _over_limit(most).where(e.c.stack_id > (after or "")).order_by(e.c.stack_id).limit(limit)
    return [StackId(stack_id) for stack_id in conn.execute(statement).scalars()]


def over_limit_among(conn: Connection, stack_ids: Sequence[StackId], most: int) -> list[StackId]:
    """Return those of the stacks that have more events than `most`."""
    statement = _over_limit(most).where(tables.event.c.stack_id.in_(sorted(stack_ids)))
    return [StackId(stack_id) for stack_id in conn.execute(statement).scalars()]


def _over_limit(most: int) -> sa.Select[typing.Any]:
    e = tables.event
    return sa.select(e.c.stack_id).group_by(e.c.stack_id).having(sa.func.count() > most)


def keep_newest(conn: Connection, stack_id: StackId, most: int) -> int:
    """Delete a stack's events except the newest `most`; return how many."""
    e = tables.event
    newest = sa.select(e.c.id).where(e.c.stack_id == stack_id).order_by(e.c.id.desc())
    last = conn.execute(newest.offset(most).limit(1)).scalar()
    if last is None:
        return 0
    return conn.execute(sa.delete(e).where(e.c.stack_id == stack_id, e.c.id <= last)).rowcount


def latest(
    conn: Connection, stack_ids: Collection[str], reasons: Collection[str]
) -> dict[tuple[str, str, str], float]:
    """Return when each was recorded last: (stack's id, resource's name, reason) -> the instant."""
    e = tables.event
    if not stack_ids or not reasons:
        return {}
    rows = conn.execute(
        sa.select(e.c.stack_id, e.c.resource_name, e.c.reason, sa.func.max(e.c.at).label("at"))
        .where(e.c.stack_id.in_(sorted(stack_ids)), e.c.reason.in_(sorted(reasons)))
        .group_by(e.c.stack_id, e.c.resource_name, e.c.reason)
    )
    return {(row.stack_id, row.resource_name, row.reason): row.at for row in rows}
