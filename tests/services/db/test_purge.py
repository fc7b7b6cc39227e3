"""``stoker-manage db purge``: what is old goes in small transactions, and nothing else does."""

import sqlalchemy as sa
from services.db.rows import NOW, a_stack, store
from stoker.cli.commands.purge import Purged, purge
from stoker.db import content, events
from stoker.db.engine import Database
from stoker.db.ids import StackId
from stoker.db.rows import Event, Stack
from stoker.db.schema import tables
from stoker.db.states import Status


def deleted(name: str, at: float) -> Stack:
    fields = {"action": "DELETE", "status": Status.COMPLETE, "deleted_at": at, "live_name": None}
    return a_stack(name=name, **fields)


def with_events(database: Database, stack: Stack, count: int) -> Stack:
    store(database, stack)
    stack_events = [
        Event(
            stack_id=stack.id,
            resource_name=f"r{number}",
            resource_type="T",
            physical_id=None,
            action="CREATE",
            status=Status.COMPLETE,
            reason="",
            at=NOW + number,
        )
        for number in range(count)
    ]
    database.write(lambda conn: events.add_many(conn, stack_events))
    return stack


def run(database: Database, *, events_kept: int = 0, batch: int = 2) -> tuple[Purged, int]:
    """Return the removed rows, and the number of transactions."""
    done = Purged()
    steps = list(purge(database, done, before=NOW, events_kept=events_kept, batch=batch))
    return done, len(steps)


def names(database: Database) -> set[str]:
    query = sa.select(tables.stack.c.name)
    return set(database.read(lambda conn: conn.execute(query).scalars().all()))


def event_names(database: Database, stack_id: StackId) -> list[str]:
    e = tables.event
    query = sa.select(e.c.resource_name).where(e.c.stack_id == stack_id).order_by(e.c.id)
    return list(database.read(lambda conn: conn.execute(query).scalars().all()))


def test_what_was_deleted_long_ago_goes_in_batches_with_all_that_belongs_to_it(database: Database) -> None:
    old = [with_events(database, deleted(f"old{number}", NOW - 10), 2) for number in range(5)]
    store(database, deleted("young", NOW + 10), a_stack(name="lives"))
    done, transactions = run(database)
    assert (done.stacks, transactions) == (5, 4), "three batches of stacks, and one look at the templates"
    assert names(database) == {"young", "lives"}
    assert [event_names(database, stack.id) for stack in old] == [[]] * 5


def test_the_oldest_events_of_stacks_that_have_too_many_go(database: Database) -> None:
    crowded = [with_events(database, a_stack(), 5) for _ in range(3)]
    few = with_events(database, a_stack(), 2)
    done, _ = run(database, events_kept=2)
    assert done.events == 9
    assert [event_names(database, stack.id) for stack in crowded] == [["r3", "r4"]] * 3
    assert event_names(database, few.id) == ["r0", "r1"]
    assert run(database, events_kept=2)[0].events == 0
    assert run(database, events_kept=0)[0].events == 0


def test_crowded_stacks_are_found_page_by_page(database: Database) -> None:
    ids = sorted(with_events(database, a_stack(), 3).id for _ in range(5))
    with_events(database, a_stack(), 1)
    crowded: list[StackId] = []
    while page := database.read(
        lambda conn, after=(crowded or [None])[-1]: events.over_limit(conn, 2, limit=2, after=after)
    ):
        crowded += page
    assert crowded == ids


def test_templates_that_nobody_uses_go_and_those_in_use_stay(database: Database) -> None:
    stack = store(database, a_stack())
    used, unused = ({"name": name} for name in ("used", "unused"))
    keys = [database.write(lambda conn, body=body: content.put(conn, body, 0.0)) for body in (used, unused)]
    database.write(lambda conn: content.set_uses(conn, stack.id, keys[:1]))
    assert run(database)[0].contents == 1
    remaining = database.read(lambda conn: content.get_many(conn, keys))
    assert list(remaining.values()) == [used]
