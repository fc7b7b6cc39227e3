"""Event sinks of stacks, and the messages that are still to be sent to them.

A message is stored in the transaction that records its event, and deleted once the sink has it.  So none is
lost when a process dies, and one may be sent twice: its id is the event's.  Messages are found by themselves,
and not by a position in the list of events, for transactions do not commit in the order of their events' ids.
"""

import datetime
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..shapes import Json
from .bulk import OneOf
from .ids import StackId
from .rows import Event, Stack
from .schema import tables
from .schema.column_types import Instant, JsonText

VERSION = "0.1"
"""Heat's, of the message and of its payload."""
LONGEST = 8000
"""Characters of a text in a message: Zaqar takes 256 KiB at once, and JSON may need six bytes for one."""
LINGER = 60.0
"""Seconds that a closed sink stays: a transaction that has begun before may still store a message for it."""


@dataclass(frozen=True)
class SinkRow:
    """An event sink as stored.

    :ivar shard: shard of the root stack.
    :ivar ttl: seconds that a message stays in the queue; an event that is older is not sent any more.
    :ivar failures: times in a row that sending has failed.
    :ivar closed_at: the instant since which it gets no more events; None: it is open.
    """

    id: str
    root_id: StackId
    shard: int
    target: str
    ttl: int
    due_at: float
    failures: int
    closed_at: float | None


@dataclass(frozen=True)
class Delivery:
    """A message that is still to be sent, and when its event was recorded."""

    id: int
    at: float
    body: Json


def replace(conn: Connection, root: Stack, sinks: Iterable[tuple[str, int]], now: float) -> None:
    """Make these the event sinks of a root stack; see stacks.set_event_sinks.

    A sink that the stack keeps is left as it is, with its messages.  One that it does not name any more is
    closed: events that were recorded before are still sent.
    """
    k = tables.event_sink
    rows = conn.execute(sa.select(k.c.id, k.c.target, k.c.ttl).where(_open(root.id))).all()
    ids = {(row.target, row.ttl): row.id for row in rows}
    names = list(dict.fromkeys(sinks))
    removed = [sink_id for name, sink_id in ids.items() if name not in names]
    if removed:
        conn.execute(sa.update(k).where(k.c.id.in_(removed)).values(closed_at=now))
    new = [
        {"id": str(uuid.uuid4()), "root_id": root.id, "shard": root.shard, "target": target, "ttl": ttl}
        for target, ttl in names
        if (target, ttl) not in ids
    ]
    if new:
        conn.execute(sa.insert(k), [{**row, "due_at": now, "failures": 0} for row in new])


def close(conn: Connection, root_id: StackId, now: float) -> None:
    """Close all sinks of a root stack, in the transaction that deletes it."""
    conn.execute(sa.update(tables.event_sink).where(_open(root_id)).values(closed_at=now))


def _open(root_id: StackId) -> sa.ColumnElement[bool]:
    k = tables.event_sink
    return sa.and_(k.c.root_id == root_id, k.c.closed_at.is_(None))


def of_stacks(conn: Connection, stack_ids: Iterable[StackId]) -> set[StackId]:
    """Return those of the stacks whose roots have event sinks."""
    s = tables.stack
    query = sa.select(s.c.id).where(s.c.id.in_(sorted(stack_ids)), s.c.has_sinks.is_(True))
    return {StackId(stack_id) for stack_id in conn.execute(query).scalars()}


def _put() -> sa.Insert:
    k = tables.event_sink
    s = tables.stack
    d = tables.event_delivery
    values = [
        k.c.id,
        sa.cast(sa.bindparam("moment", type_=Instant), Instant),
        sa.bindparam("message", type_=JsonText()),
    ]
    query = sa.select(*values).join(s, s.c.root_id == k.c.root_id)
    query = query.where(s.c.id == sa.bindparam("stack"), k.c.closed_at.is_(None))
    return sa.insert(d).from_select(["sink_id", "at", "body"], query)


_PUT = _put()


def put_down(conn: Connection, events: Sequence[Event]) -> None:
    """Store the messages of events for the open sinks of their stacks' roots."""
    rows = [{"stack": e.stack_id, "moment": e.at, "message": message_of(e)} for e in events]
    conn.execute(_PUT, rows)


def message_of(event: Event) -> dict[str, Json]:
    """Return the message of an event, in the form of Heat's.

    >>> event = Event(StackId("s"), "web", "OS::Nova::Server", None, "CREATE", "COMPLETE", "", at=0.9)
    >>> message_of(event)["timestamp"], message_of(event)["payload"]["resource_status"]
    ('1970-01-01T00:00:00', 'COMPLETE')
    """
    moment = datetime.datetime.fromtimestamp(int(event.at), datetime.UTC).replace(tzinfo=None)
    return {
        "timestamp": moment.isoformat(),
        "version": VERSION,
        "type": "os.heat.event",
        "id": event.uuid,
        "payload": {
            "resource_name": event.resource_name,
            "physical_resource_id": None if event.physical_id is None else event.physical_id[:LONGEST],
            "stack_id": event.stack_id,
            "resource_action": event.action,
            "resource_status": event.status,
            "resource_status_reason": event.reason[:LONGEST],
            "resource_type": event.resource_type[:LONGEST],
            "resource_properties": event.properties or {},
            "version": VERSION,
        },
    }


_FIRST = tables.event_sink.c.closed_at <= sa.bindparam("then")
_AFTER: sa.BindParameter[str] = sa.bindparam("after")
_WITH_WORK = (
    sa.select(tables.event_delivery.c.sink_id.label("id"))
    .where(tables.event_delivery.c.sink_id > _AFTER)
    .union(sa.select(tables.event_sink.c.id).where(_FIRST, tables.event_sink.c.id > _AFTER))
    .order_by("id")
    .limit(sa.bindparam("most"))
)


def with_work(conn: Connection, now: float, *, limit: int, after: str = "") -> list[str]:
    """Return the ids of sinks with messages to send, and of closed ones that may go; in the order of ids."""
    values = {"then": now - LINGER, "after": after, "most": limit}
    return list(conn.execute(_WITH_WORK, values).scalars())


_DUE = (
    sa.select(*tables.event_sink.c)
    .where(OneOf(tables.event_sink.c.id), tables.event_sink.c.due_at <= sa.bindparam("now"))
    .order_by(tables.event_sink.c.id)
)


def due(conn: Connection, ids: Sequence[str], now: float) -> list[SinkRow]:
    """Return those of the sinks to which their owner may send now."""
    return [SinkRow(**row) for row in conn.execute(_DUE, {"ids": ids, "now": now}).mappings()]


def take(conn: Connection, sink_id: str, now: float, until: float) -> bool:
    """Take a sink to send to it; it is due again at `until` unless it is taken for longer.

    :returns: False: the sink is not due any more: another claim has taken it, or it is deleted.
    """
    k = tables.event_sink
    due_now = sa.update(k).where(k.c.id == sink_id, k.c.due_at <= now)
    return bool(conn.execute(due_now.values(due_at=until)).rowcount)


def oldest(conn: Connection, sink_id: str, *, limit: int) -> list[Delivery]:
    """Return messages to send to a sink, the oldest first."""
    d = tables.event_delivery
    query = sa.select(d.c.id, d.c.at, d.c.body).where(d.c.sink_id == sink_id).order_by(d.c.id).limit(limit)
    return [Delivery(**row) for row in conn.execute(query).mappings()]


def done(conn: Connection, sink: SinkRow, deliveries: Sequence[Delivery], until: float) -> None:
    """Delete messages that the sink has, or that are too old for it, and keep the sink taken until then."""
    d = tables.event_delivery
    k = tables.event_sink
    conn.execute(sa.delete(d).where(d.c.id.in_([delivery.id for delivery in deliveries])))
    conn.execute(sa.update(k).where(k.c.id == sink.id).values(due_at=until))


def release(conn: Connection, sink: SinkRow, now: float) -> None:
    """Make a sink due again at once; a closed one that nothing waits for is deleted.

    It stays while a transaction may still store a message for it.
    """
    k = tables.event_sink
    d = tables.event_delivery
    waits = sa.exists().where(d.c.sink_id == sink.id)
    if sink.closed_at is not None and sink.closed_at <= now - LINGER:
        conn.execute(sa.delete(k).where(k.c.id == sink.id, ~waits))
    conn.execute(sa.update(k).where(k.c.id == sink.id).values(due_at=now, failures=0))


def postpone(conn: Connection, sink: SinkRow, failures: int, until: float) -> None:
    """Store how often in a row sending has failed, and make the sink due again then."""
    k = tables.event_sink
    values = {"due_at": until, "failures": failures}
    conn.execute(sa.update(k).where(k.c.id == sink.id).values(**values))
