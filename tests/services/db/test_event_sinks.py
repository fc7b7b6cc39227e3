"""Event sinks and their messages, on each database."""

from dataclasses import replace

import sqlalchemy as sa
from services.db.rows import NOW, a_stack
from stoker.db import event_sinks, events, stacks
from stoker.db.engine import Database
from stoker.db.event_sinks import LINGER
from stoker.db.schema import tables
from stoker.db.states import Status
from stoker.db.work.endings import stack_event

MOST = 10_000


def test_messages_are_stored_with_events_sent_by_one_and_deleted(database: Database) -> None:
    root = a_stack(has_sinks=True)
    nested = a_stack(root_id=root.id, parent_id=root.id, live_name=None)
    other_stack = a_stack()

    def store(conn: sa.Connection) -> None:
        for stack in (root, nested, other_stack):
            stacks.insert(conn, stack)
        stacks.set_event_sinks(conn, root, [("a", 60), ("b", 600), ("a", 60)], NOW)

    database.write(store)
    assert database.read(lambda conn: stacks.get(conn, nested.id)).has_sinks is True
    assert database.read(lambda conn: event_sinks.of_stacks(conn, [root.id, nested.id, other_stack.id])) == {
        root.id,
        nested.id,
    }
    begun = [
        stack_event(replace(stack, has_sinks=True), Status.IN_PROGRESS, "é \U0001f600", by=None, now=NOW)
        for stack in (root, nested)
    ]
    unseen = stack_event(other_stack, Status.IN_PROGRESS, "", by=None, now=NOW)
    assert not unseen.has_sinks
    database.write(lambda conn: events.add_many(conn, [*begun, unseen]))

    ids = database.read(lambda conn: event_sinks.with_work(conn, NOW, limit=MOST))
    due = database.read(lambda conn: event_sinks.due(conn, ids, NOW))
    sinks_of_root = sorted((sink for sink in due if sink.root_id == root.id), key=lambda sink: sink.target)
    assert [(sink.target, sink.ttl, sink.shard, sink.failures) for sink in sinks_of_root] == [
        ("a", 60, 7, 0),
        ("b", 600, 7, 0),
    ]
    first = sinks_of_root[0]
    take = lambda conn: event_sinks.take(conn, first.id, NOW, NOW + 20)  # noqa: E731
    assert [database.write(take), database.write(take)] == [True, False]
    waiting = database.read(lambda conn: event_sinks.oldest(conn, first.id, limit=9))
    assert [(message.at, message.body) for message in waiting] == [
        (event.at, event_sinks.message_of(event)) for event in begun
    ]
    database.write(lambda conn: event_sinks.done(conn, first, waiting[:1], NOW + 20))
    remaining = database.read(lambda conn: event_sinks.oldest(conn, first.id, limit=9))
    assert [message.id for message in remaining] == [waiting[1].id]
    database.write(lambda conn: event_sinks.postpone(conn, first, 3, NOW + 30))
    assert first.id not in [s.id for s in database.read(lambda conn: event_sinks.due(conn, ids, NOW + 29))]
    [again] = database.read(lambda conn: event_sinks.due(conn, [first.id], NOW + 30))
    assert (again.failures, again.due_at) == (3, NOW + 30)


def test_a_closed_sink_gets_nothing_and_goes_when_nothing_waits_for_it(database: Database) -> None:
    root = a_stack(has_sinks=True)

    def store(conn: sa.Connection) -> None:
        stacks.insert(conn, root)
        stacks.set_event_sinks(conn, root, [("a", 60)], NOW)
        events.add_many(conn, [stack_event(root, Status.IN_PROGRESS, "", by=None, now=NOW)])
        event_sinks.close(conn, root.id, NOW)
        events.add_many(conn, [stack_event(root, Status.FAILED, "", by=None, now=NOW)])

    database.write(store)
    k = tables.event_sink
    key = database.read(
        lambda conn: conn.execute(sa.select(k.c.id).where(k.c.root_id == root.id)).scalar_one()
    )
    [sink] = database.read(lambda conn: event_sinks.due(conn, [key], NOW))
    waiting = database.read(lambda conn: event_sinks.oldest(conn, key, limit=9))
    assert [message.body["payload"]["resource_status"] for message in waiting] == ["IN_PROGRESS"]

    def has_work(now: float) -> bool:
        return key in database.read(lambda conn: event_sinks.with_work(conn, now, limit=MOST))

    database.write(lambda conn: event_sinks.release(conn, sink, NOW + LINGER))
    assert has_work(NOW), "a message waits"
    database.write(lambda conn: event_sinks.done(conn, sink, waiting, NOW))
    assert not has_work(NOW)
    assert has_work(NOW + LINGER), "it may go"
    database.write(lambda conn: event_sinks.release(conn, sink, NOW + LINGER))
    assert not has_work(NOW + LINGER)
    assert database.read(lambda conn: event_sinks.due(conn, [key], NOW + LINGER)) == []
