"""Events: in the order they happened, filtered, paged."""

import typing

import pytest
from services.db.rows import NOW, a_stack, new_id, raised, store, together
from stoker.db import events
from stoker.db.engine import Database
from stoker.db.errors import NotFound
from stoker.db.events import EventQuery
from stoker.db.ids import StackId
from stoker.db.rows import Event, Stack


def an_event(stack_id: StackId, name: str, **fields: typing.Any) -> Event:
    plain = {"resource_type": "T", "physical_id": None, "action": "CREATE", "status": "COMPLETE", "at": NOW}
    return Event(stack_id=stack_id, resource_name=name, reason="", **{**plain, **fields})


def add(database: Database, *rows: Event) -> None:
    database.write(lambda conn: events.add_many(conn, rows))


def listed(database: Database, stack_id: StackId, **query: typing.Any) -> list[str]:
    selection = EventQuery(stack_id, **query)
    return [
        event.resource_name for event, _ in database.read(lambda conn: events.list_events(conn, selection))
    ]


def test_events_keep_their_order_though_their_times_are_equal(database: Database) -> None:
    stack = store(database, a_stack())
    other_stack = store(database, a_stack())
    expected = [f"r{number}" for number in range(25)]
    for start in range(0, 25, 5):
        batch = expected[start : start + 5]
        add(database, *(an_event(stack.id, name) for name in batch), an_event(other_stack.id, "other"))
    assert listed(database, stack.id) == expected
    assert listed(database, stack.id, descending=True) == expected[::-1]
    assert listed(database, stack.id, limit=0) == []


def test_an_event_that_arrives_again_is_stored_once(database: Database) -> None:
    stack = store(database, a_stack())
    first, second, third = (an_event(stack.id, f"r{number}") for number in range(3))
    add(database, first, second)
    add(database, second, third)
    assert listed(database, stack.id) == ["r0", "r1", "r2"]


@pytest.mark.parametrize("descending", [False, True])
def test_pages_join_without_gap_or_double_while_events_are_added(
    database: Database, descending: bool
) -> None:
    stack = store(database, a_stack())
    add(database, *(an_event(stack.id, f"r{number}") for number in range(10)))
    marker = None
    names = []
    while True:
        query = EventQuery(stack.id, limit=3, marker=marker, descending=descending)
        page = database.read(lambda conn: events.list_events(conn, query))  # noqa: B023
        if not page:
            break
        names += [event.resource_name for event, _ in page]
        marker = page[-1][0].uuid
        if len(names) == 3:
            add(database, an_event(stack.id, "late"))
    expected = [f"r{number}" for number in range(10)]
    assert names == (expected[::-1] if descending else [*expected, "late"])


def test_many_writers_at_once_lose_no_event(database: Database) -> None:
    stack = store(database, a_stack())
    names = [f"{writer}-{number}" for writer in range(6) for number in range(5)]

    def write(writer: int) -> None:
        for number in range(5):
            add(database, an_event(stack.id, f"{writer}-{number}"))

    assert raised(together(*(lambda n=n: write(n) for n in range(6)))) == []  # type: ignore[misc]
    assert sorted(listed(database, stack.id)) == sorted(names)


def test_filters_match_one_of_the_values_of_every_column(database: Database) -> None:
    stack = store(database, a_stack())
    add(
        database,
        an_event(stack.id, "a", action="CREATE", status="FAILED"),
        an_event(stack.id, "b", action="DELETE", status="FAILED"),
        an_event(stack.id, "b", action="DELETE", status="COMPLETE", resource_type="U"),
    )
    assert listed(database, stack.id, resource_name="b") == ["b", "b"]
    assert listed(database, stack.id, filters={"status": ["FAILED"], "action": ["DELETE"]}) == ["b"]
    assert listed(database, stack.id, filters={"resource_type": ["T", "U"]}) == ["a", "b", "b"]
    assert listed(database, stack.id, filters={"status": []}) == []


def test_events_of_a_tree_are_those_below_the_stack_and_no_cousins(database: Database) -> None:
    root = store(database, a_stack(name="root"))

    def nested(name: str, parent: Stack) -> Stack:
        fields = {"live_name": None, "root_id": root.id, "parent_id": parent.id, "depth": parent.depth + 1}
        return store(database, a_stack(name=name, **fields))

    left_stack = nested("left", root)
    right_stack = nested("right", root)
    deep = nested("deep", left_stack)
    other_stack = nested("other", right_stack)
    add(
        database,
        *(an_event(stack.id, stack.name) for stack in (root, left_stack, right_stack, deep, other_stack)),
    )
    assert listed(database, root.id) == ["root"]
    assert listed(database, root.id, nested_depth=1) == ["root", "left", "right"]
    assert listed(database, root.id, nested_depth=-1) == ["root", "left", "right", "deep", "other"]
    assert listed(database, left_stack.id, nested_depth=-1) == ["left", "deep"]
    assert listed(database, right_stack.id, nested_depth=1) == ["right", "other"]
    query = EventQuery(left_stack.id, nested_depth=-1)
    page = database.read(lambda conn: events.list_events(conn, query))
    assert [name for _, name in page] == ["left", "deep"]
    with pytest.raises(NotFound, match="Stack"):
        listed(database, new_id(), nested_depth=1)


def test_an_event_is_read_as_it_was_stored(database: Database) -> None:
    stack = store(database, a_stack())
    event = an_event(
        stack.id, "a", physical_id="p", conductor="host", properties={"x": [1, None]}, at=NOW + 0.25
    )
    add(database, event)
    stored = database.read(lambda conn: events.get(conn, event.uuid))
    assert stored.id is not None
    assert {**vars(stored), "id": None} == vars(event)
    with pytest.raises(NotFound, match="Event"):
        database.read(lambda conn: events.get(conn, new_id()))
    with pytest.raises(NotFound, match="Event"):
        listed(database, stack.id, marker=new_id())
