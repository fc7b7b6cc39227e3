"""Lists of stacks: filters, tags, order and pages, the same on every database."""

import itertools
import tracemalloc
import typing

import pytest
from services.db.rows import NOW, a_resource, a_stack, new_id, store
from sqlalchemy.engine import Connection
from stoker.db import events, resources, stacks
from stoker.db.engine import Database
from stoker.db.errors import NotFound
from stoker.db.events import EventQuery
from stoker.db.ids import StackId
from stoker.db.queries.stack_list import SORT_KEYS, StackQuery, count_stacks, get_many, list_stacks
from stoker.db.rows import DetailedStack, Event, ListedStack

TAGS = {"none": (), "x": ("x",), "y": ("y",), "xy": ("x", "y"), "xyz": ("x", "y", "z")}


def query_stacks(database: Database, **query: typing.Any) -> list[ListedStack]:
    request = StackQuery(**{"project_id": "tenant", **query})
    listed = database.read(lambda conn: list_stacks(conn, request, ListedStack))
    if request.limit is None and request.marker is None:
        assert database.read(lambda conn: count_stacks(conn, request)) == len(listed)
    return listed


def names(database: Database, **query: typing.Any) -> set[str]:
    return {stack.name for stack in query_stacks(database, **query)}


def test_a_project_sees_its_own_living_top_level_stacks(database: Database) -> None:
    own_stack = store(database, a_stack(name="mine"))
    nested = a_stack(name="nested", live_name=None, parent_id=own_stack.id, root_id=own_stack.id)
    deleted = a_stack(name="gone", live_name=None, deleted_at=NOW)
    store(database, nested, deleted, a_stack(name="foreign", project_id="other"))
    assert names(database) == {"mine"}
    assert names(database, show_nested=True) == {"mine", "nested"}
    assert names(database, show_deleted=True) == {"mine", "gone"}
    assert names(database, project_id=None) == {"mine", "foreign"}
    assert names(database, project_id="nobody") == set()


def test_filters_match_one_of_the_values_of_every_column(database: Database) -> None:
    for name, action, status in (
        ("a", "CREATE", "FAILED"),
        ("b", "CREATE", "COMPLETE"),
        ("c", "UPDATE", "FAILED"),
    ):
        store(database, a_stack(name=name, action=action, status=status))
    assert names(database, filters={"name": ["a", "c", "d"]}) == {"a", "c"}
    assert names(database, filters={"action": ["CREATE"], "status": ["FAILED"]}) == {"a"}
    assert names(database, filters={"name": ["A"]}) == set()
    assert names(database, filters={"name": []}) == set()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"tags": ["x", "y"]}, {"xy", "xyz"}),
        ({"tags_any": ["x", "z"]}, {"x", "xy", "xyz"}),
        ({"not_tags": ["x", "y"]}, {"none", "x", "y"}),
        ({"not_tags_any": ["x", "z"]}, {"none", "y"}),
        ({"tags": ["y"], "not_tags_any": ["z"]}, {"y", "xy"}),
        ({"tags": ["X"]}, set()),
    ],
)
def test_tags_select_as_in_heat(database: Database, query: dict[str, typing.Any], expected: set[str]) -> None:
    store(database, *(a_stack(name=name, tags=tags) for name, tags in TAGS.items()))
    assert names(database, **query) == expected
    assert {stack.name: stack.tags for stack in query_stacks(database)} == TAGS


def many(database: Database) -> list[ListedStack]:
    """Stacks with equal values in every column, NULLs among them."""
    moments = itertools.product((NOW, NOW + 1), (None, NOW, NOW + 2), ("COMPLETE", "FAILED"))
    stacks = [
        a_stack(name=f"s{index % 5}", live_name=None, created_at=created, updated_at=updated, status=status)
        for index, (created, updated, status) in enumerate(moments)
    ]
    store(database, *stacks)
    return stacks


def expected_order(stacks: list[ListedStack], sort: list[tuple[str, bool]]) -> list[str]:
    """The dumb twin: stable sorts from the last key to the first; None is the smallest."""
    ordered = sorted(stacks, key=lambda stack: stack.id, reverse=sort[-1][1])
    for column, descending in reversed(sort):
        values = {stack.id: getattr(stack, column) for stack in stacks}
        key = {i: (value is not None, value if value is not None else 0) for i, value in values.items()}
        ordered.sort(key=lambda stack: key[stack.id], reverse=descending)  # noqa: B023
    return [stack.id for stack in ordered]


SORTS = [
    *([(column, descending)] for column in sorted(set(SORT_KEYS.values())) for descending in (False, True)),
    [("status", True), ("updated_at", False)],
    [("updated_at", True), ("name", False)],
    [("name", False), ("updated_at", True)],
]


@pytest.mark.parametrize("sort", SORTS, ids=str)
def test_every_order_is_total_and_pages_join_without_gap_or_double(
    database: Database, sort: list[tuple[str, bool]]
) -> None:
    expected = expected_order(many(database), sort)
    assert [stack.id for stack in query_stacks(database, sort=sort)] == expected
    paged: list[StackId] = []
    while page := query_stacks(database, sort=sort, limit=5, marker=paged[-1] if paged else None):
        assert len(page) <= 5
        paged += [stack.id for stack in page]
    assert paged == expected


def test_stacks_that_come_or_go_between_two_pages_do_not_disturb_the_others(database: Database) -> None:
    old = [store(database, a_stack(created_at=NOW + number)) for number in range(6)]
    first = query_stacks(database, limit=2)
    store(database, a_stack(created_at=NOW + 99))
    second_page = query_stacks(database, marker=first[-1].id)
    assert [stack.id for stack in [*first, *second_page]] == [stack.id for stack in reversed(old)]


def test_a_marker_must_be_a_stack_of_the_project(database: Database) -> None:
    foreign = store(database, a_stack(project_id="other"))
    for marker in (new_id(), foreign.id):
        with pytest.raises(NotFound):
            query_stacks(database, marker=marker)
    assert query_stacks(database, project_id=None, marker=foreign.id) == []


def test_more_stacks_than_one_query_can_name_are_listed_with_their_tags(database: Database) -> None:
    stored = [a_stack(name=f"s{number}", tags=(f"t{number}",)) for number in range(600)]
    database.write(lambda conn: stacks.insert_many(conn, stored))
    listed = query_stacks(database)
    assert {stack.id: stack.tags for stack in listed} == {stack.id: stack.tags for stack in stored}


def test_many_tags_and_keys_are_one_expression(database: Database) -> None:
    for name, tags in TAGS.items():
        store(database, a_stack(name=name, tags=tags))
    many = [f"t{number}" for number in range(3000)]
    assert names(database, tags=["x", "x", "y"]) == {"xy", "xyz"}
    assert names(database, not_tags=["x", "x", "y"]) == {"none", "x", "y"}
    assert names(database, tags=[*many, "x"]) == set()
    assert names(database, tags_any=[*many, "x"]) == {"x", "xy", "xyz"}
    assert names(database, not_tags=[*many, "x"]) == set(TAGS)
    assert names(database, not_tags_any=[*many, "x"]) == {"none", "y"}
    often = [(column, False) for column in SORT_KEYS.values()] * 500
    first = query_stacks(database, sort=[("name", False)])[0]
    assert query_stacks(database, sort=[("name", False), *often])[0] == first
    assert len(query_stacks(database, sort=[("name", False), *often], marker=first.id)) == len(TAGS) - 1


LONG = "x" * 200_000
MANY = 60


def peak(read: typing.Callable[[], typing.Any]) -> int:
    """Bytes that are held at most at a time while something is read."""
    read()  # What is prepared at first stays.
    tracemalloc.start()
    try:
        read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_lists_read_only_what_they_show(database: Database) -> None:
    values = {"parameters": {"a": LONG}, "outputs": {"o": {"value": LONG}}, "previous": {"parameters": LONG}}
    root = a_stack(name="root", parameter_view={"a": "short"}, **values)
    fields = {"live_name": None, "parent_id": root.id, "root_id": root.id, "depth": 1}
    store(database, root, *(a_stack(name=f"n{number}", **fields, **values) for number in range(MANY)))
    texts = dict.fromkeys(("properties", "attributes", "metadata", "definition", "data"), {"a": LONG})
    rows = [a_resource(root.id, number, f"r{number}", **texts) for number in range(1, MANY)]
    happened = {"stack_id": root.id, "resource_name": "r1", "resource_type": "t", "physical_id": None}
    happened |= {"action": "CREATE", "status": "COMPLETE", "reason": "", "at": NOW, "properties": {"a": LONG}}
    database.write(lambda conn: resources.insert_many(conn, rows))
    database.write(lambda conn: events.add_many(conn, [Event(**happened) for _ in range(MANY)]))
    query = StackQuery("tenant", show_nested=True)
    ids = [stack.id for stack in query_stacks(database, show_nested=True)]
    lists: dict[str, typing.Callable[[Connection], typing.Sized]] = {
        "stacks": lambda conn: list_stacks(conn, query, ListedStack),
        "stacks with details": lambda conn: list_stacks(conn, query, DetailedStack),
        "stacks of events": lambda conn: get_many(conn, ids),
        "resources": lambda conn: resources.of_tree(conn, root, 1),
        "events": lambda conn: events.list_events(conn, EventQuery(root.id)),
    }
    for name, read in lists.items():
        assert len(database.read(read)) >= MANY - 1, name
        assert peak(lambda: database.read(read)) < 10 * len(LONG), name  # noqa: B023
