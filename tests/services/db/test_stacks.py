"""Rows of stacks: names, compare-and-swap, deadlines, purge; and the rows that belong to them."""

import typing
from dataclasses import replace

import pytest
import sqlalchemy as sa
from services.db.rows import (
    NOW,
    a_resource,
    a_snapshot,
    a_stack,
    delete_stack,
    new_id,
    on,
    raised,
    stack_of,
    store,
    store_graph,
    together,
)
from services.db.servers import SERVERS
from stoker.db import events, resources, snapshots, stacks
from stoker.db.engine import Database
from stoker.db.errors import NameTaken, NotFound
from stoker.db.ids import ContentId, ResourceId, StackId, TraversalId
from stoker.db.queries import stack_list
from stoker.db.rows import Event, FailureCause, Stack
from stoker.db.schema import tables
from stoker.db.states import Status
from stoker.db.work import stack_transitions, tasks
from stoker.db.work.stack_transitions import Failure


@on(*SERVERS)
def test_of_two_creations_of_one_name_exactly_one_wins(database: Database) -> None:
    for turn in range(5):
        rivals = [a_stack(name=f"web{turn}") for _ in range(3)]
        results = together(*(lambda stack=stack: store(database, stack) for stack in rivals))  # type: ignore[misc]
        errors = raised(results)
        assert [type(error) for error in errors] == [NameTaken] * 2
        assert str(errors[0]) == f"The Stack (web{turn}) already exists."
        [won] = [result for result in results if isinstance(result, Stack)]
        assert database.read(lambda conn: stack_list.find_by_name(conn, "tenant", won.name)).id == won.id  # noqa: B023


def test_a_name_is_taken_within_a_project_among_living_top_level_stacks_only(database: Database) -> None:
    first = store(database, a_stack(name="web"))
    store(database, a_stack(name="web", project_id="other"))
    store(database, a_stack(name="Web"))
    nested = a_stack(name="web", live_name=None, parent_id=first.id, root_id=first.id, depth=1)
    store(database, nested, a_stack(name="web", live_name=None))
    database.write(lambda conn: delete_stack(conn, nested, NOW + 9))
    with pytest.raises(NameTaken):
        store(database, a_stack(name="web"))
    database.write(lambda conn: delete_stack(conn, first, NOW + 9))
    with pytest.raises(NotFound, match=r"The Stack \(web\) could not be found"):
        database.read(lambda conn: stack_list.find_by_name(conn, "tenant", "web"))
    deleted = stack_of(database, first.id)
    assert (deleted.name, deleted.status, deleted.deleted_at) == ("web", Status.COMPLETE, NOW + 9)
    store(database, a_stack(name="web"))


def test_a_nested_stack_is_found_by_its_name_behind_a_top_level_one(database: Database) -> None:
    def id_named(name: str, project_id: str = "tenant") -> StackId:
        return database.read(lambda conn: stack_list.find_by_name(conn, project_id, name)).id

    root = store(database, a_stack(name="web"))
    foreign_parent = store(database, a_stack(name="other", project_id="other"))
    fields = {"live_name": None, "parent_id": root.id, "root_id": root.id, "depth": 1}
    foreign = a_stack(
        name="web-a", project_id="other", created_at=NOW - 2, **{**fields, "parent_id": foreign_parent.id}
    )
    younger = a_stack(name="web-a", created_at=NOW + 1, **fields)
    older = a_stack(name="web-a", created_at=NOW, **fields)
    deleted = a_stack(name="web-a", created_at=NOW - 1, deleted_at=NOW, **fields)
    store(database, foreign, younger, older, deleted)
    assert id_named("web-a") == older.id
    assert id_named("web-a", "other") == foreign.id
    namesake = store(database, a_stack(name="web-a", created_at=NOW + 2))
    assert id_named("web-a") == namesake.id
    with pytest.raises(NotFound):
        id_named("web-a", "third")


def test_a_stack_is_read_as_it_was_stored(database: Database) -> None:
    stack = a_stack(
        tags=("b", "a", "c"),
        owner="demo",
        deadline_at=NOW + 0.123456,
        timeout_mins=5,
        parameters={"size": 3},
        previous={"template": "x", "parameters": {"a": None}},
        parameter_view={"size": "3"},
        outputs={"o": {"value": [1, 2.5, True, None], "description": ""}},
        disable_rollback=False,
        updated_at=NOW + 1,
    )
    store(database, stack)
    assert stack_of(database, stack.id) == stack
    assert database.write(lambda conn: stacks.lock(conn, stack.id)) == stack
    with pytest.raises(NotFound):
        stack_of(database, new_id())


@on(*SERVERS)
def test_only_one_of_many_that_saw_the_same_traversal_begins_the_next(database: Database) -> None:
    stack = store(database, a_stack())

    def begin() -> bool:
        return database.write(
            lambda conn: stack_transitions.begin(conn, stack, new_id(), action="UPDATE", deadline_at=NOW)
        )

    results = together(*(begin for _ in range(5)))
    assert sorted(results, key=str) == [False] * 4 + [True]
    assert stack_of(database, stack.id).action == "UPDATE"


def test_only_the_current_traversal_ends_and_only_once(database: Database) -> None:
    stack = store(database, a_stack(deadline_at=NOW))

    def end(traversal: TraversalId) -> int:
        return database.write(
            lambda conn: stack_transitions.fail(conn, {stack.id: traversal}, Failure("why"), NOW + 1)
        )

    assert not end(new_id())
    assert end(stack.traversal)
    assert not end(stack.traversal)
    assert not database.write(lambda conn: stack_transitions.complete_deletions(conn, [stack], NOW))
    stored = stack_of(database, stack.id)
    assert (stored.status, stored.reason, stored.deadline_at) == (Status.FAILED, "why", None)
    assert stored.updated_at is None, "a stack that was only created has no updated_time"
    database.write(lambda conn: stack_transitions.begin(conn, stored, stack.traversal, action="UPDATE"))
    assert end(stack.traversal)
    assert stack_of(database, stack.id).updated_at == NOW + 1


def test_the_contents_of_an_action_are_counted_for_its_own_stack(database: Database) -> None:
    stack = store(database, a_stack(), a_stack())
    columns = {"template_id": "t2", "environment_id": "e2", "files_id": "f2"}
    begun = database.write(
        lambda conn: stack_transitions.begin(conn, stack, new_id(), action="UPDATE", **columns)
    )
    assert begun
    assert stack_of(database, stack.id).template_id == "t2"


def test_a_deletion_ends_as_one_and_another_action_as_none(database: Database) -> None:
    stacks_of_action = {action: store(database, a_stack(action=action)) for action in ("UPDATE", "DELETE")}
    for action, stack in stacks_of_action.items():
        current = {stack.id: stack.traversal}
        ended = database.write(
            lambda conn, current=current: stack_transitions.complete(conn, current, "well", NOW)  # type: ignore[misc]
        )
        assert ended == (1 if action == "UPDATE" else 0)
    updated = replace(stacks_of_action["UPDATE"], traversal=new_id())
    database.write(
        lambda conn: conn.execute(
            sa.update(tables.stack)
            .where(tables.stack.c.id == updated.id)
            .values(status=Status.IN_PROGRESS, traversal=updated.traversal)
        )
    )
    assert not database.write(lambda conn: stack_transitions.complete_deletions(conn, [updated], NOW))
    assert stack_of(database, updated.id).deleted_at is None


@pytest.mark.parametrize(
    ("action", "disable_rollback", "failure", "is_marked"),
    [
        ("CREATE", False, Failure("why"), True),
        ("UPDATE", False, Failure("why"), True),
        ("CREATE", True, Failure("why"), False),
        ("CREATE", False, Failure("why", rolled_back=False), False),
        ("DELETE", False, Failure("why"), False),
        ("CHECK", False, Failure("why"), False),
    ],
)
def test_a_failure_is_marked_for_rollback_where_the_user_requested_it(
    database: Database, action: str, disable_rollback: bool, failure: Failure, is_marked: bool
) -> None:
    stack = store(database, a_stack(action=action, disable_rollback=disable_rollback))
    current = {stack.id: stack.traversal}
    assert database.write(lambda conn: stack_transitions.fail(conn, current, failure, NOW))
    assert stack_of(database, stack.id).rollback_at == (NOW if is_marked else None)


def test_a_rollback_begins_for_a_stack_that_has_failed_and_is_marked(database: Database) -> None:
    failed = {"status": Status.FAILED, "failure_cause": FailureCause("why")}
    marked = {**failed, "rollback_at": NOW}
    stored = [
        a_stack(**marked),
        a_stack(**marked),
        a_stack(**failed),
        a_stack(rollback_at=NOW),
    ]
    store(database, *stored)
    for stack in (stored[0], *stored[2:]):
        database.write(
            lambda conn, stack=stack: stack_transitions.begin_rollback(  # type: ignore[misc]
                conn, stack.id, new_id(), "back", deadline_at=NOW + 9
            )
        )
    assert [stack_of(database, stack.id).action for stack in stored] == ["ROLLBACK", *["CREATE"] * 3]


LISTS: dict[str, tuple[str, typing.Any, int]] = {
    "deadlines that have passed": ("deadline_at", lambda conn, **page: stacks.due(conn, NOW + 10, **page), 6),
    "deletions before": ("deleted_at", lambda conn, **page: stacks.deleted_before(conn, NOW + 10, **page), 5),
    "rollbacks to plan": ("rollback_at", stacks.to_roll_back, 7),
}
"""Names of lists -> the column that orders each, its function, and how many of the stacks it has."""


@pytest.mark.parametrize("name", LISTS)
def test_lists_for_duties_come_in_order_page_by_page(database: Database, name: str) -> None:
    column, function, count = LISTS[name]
    moments = [1.0, 2.0, 2.0, 2.0, 3.0, 10.0, 99.0, None]
    # The older, the greater is the id: so no page is in order by chance.
    stored = [
        a_stack(id=f"{9 - number}{new_id()[1:]}", **{column: None if moment is None else NOW + moment})
        for number, moment in enumerate(moments)
    ]
    store(database, *stored)
    listed: list[tuple[float, str]] = []
    after = (0.0, "")
    for _ in stored:
        page = database.read(lambda conn: function(conn, limit=2, after=after))  # noqa: B023
        assert len(page) <= 2
        listed += [(getattr(row, column), row.id) for row in page]
        after = listed[-1]
    assert listed == sorted((getattr(stack, column), stack.id) for stack in stored[:count])


@on("sqlite")
def test_only_those_of_the_stacks_are_locked_as_late_whose_deadline_has_passed(database: Database) -> None:
    listed = [a_stack(deadline_at=moment) for moment in (NOW - 1, NOW, NOW + 1, None)]
    store(database, *listed, a_stack(deadline_at=NOW))
    late = database.write(lambda conn: stacks.lock_due(conn, [stack.id for stack in listed], NOW))
    assert {stack.id for stack in late} == {stack.id for stack in listed[:2]}


@on("sqlite")
def test_the_nested_stacks_in_progress_are_locked_on_all_levels(database: Database) -> None:
    root, stranger = a_stack(), a_stack()
    fields = {"live_name": None, "root_id": root.id, "parent_resource_id": 1}
    complete = a_stack(parent_id=root.id, status=Status.COMPLETE, **fields)
    failed = a_stack(parent_id=root.id, status=Status.FAILED, **fields)
    deep = [a_stack(parent_id=stack.id, **fields) for stack in (complete, failed)]
    store(database, root, stranger, complete, failed, *deep)
    locked = database.write(lambda conn: stacks.lock_inside(conn, [root.id]))
    assert {stack.id for stack in locked} == {stack.id for stack in deep}


def test_tags_keep_their_order_lose_doubles_and_tell_case_and_spaces_apart(database: Database) -> None:
    stack, neighbour = a_stack(tags=("x", "b", "x", "X", "x ", "ä")), a_stack(tags=("x",))
    store(database, stack, neighbour)
    assert stack_of(database, stack.id).tags == ("x", "b", "X", "x ", "ä")
    database.write(lambda conn: stacks.set_tags(conn, stack, ["only"]))
    assert stack_of(database, stack.id).tags == ("only",)
    assert stack_of(database, neighbour.id).tags == ("x",)


def test_a_purge_leaves_nothing_of_a_deleted_stack_and_everything_of_others(database: Database) -> None:
    purged, remaining = (store_graph(database, {"one": []}, stack=a_stack(tags=("t",))) for _ in range(2))
    for graph in (purged, remaining):
        event = Event(
            stack_id=graph.stack.id,
            resource_name="one",
            resource_type="T",
            physical_id=None,
            action="CREATE",
            status="COMPLETE",
            reason="",
            at=NOW,
        )
        database.write(lambda conn: events.add_many(conn, [event]))  # noqa: B023
        kept_too = a_snapshot(graph.stack)
        database.write(lambda conn: snapshots.insert(conn, graph.stack, kept_too))  # noqa: B023
        owner = {"stack_id": graph.stack.id, "resource_id": graph.resources["one"]}
        key = {"id": new_id(), "key": "access key", **owner}
        database.write(lambda conn: conn.execute(sa.insert(tables.imported_key), [key]))  # noqa: B023
        outcome = {
            "stack_id": graph.stack.id,
            "root_id": graph.stack.id,
            "traversal": graph.traversal,
            "state": "DRIFTED",
            "since": NOW,
        }
        database.write(lambda conn: conn.execute(sa.insert(tables.drift_stack), [outcome]))  # noqa: B023
        difference = {
            "resource_id": graph.resources["one"],
            "stack_id": graph.stack.id,
            "kind": "GONE",
            "since": NOW,
            "properties": {},
        }
        database.write(lambda conn: conn.execute(sa.insert(tables.drift_resource), [difference]))  # noqa: B023
    database.write(lambda conn: delete_stack(conn, purged.stack, NOW))
    assert database.read(lambda conn: stacks.deleted_before(conn, NOW, limit=9)) == []
    old = database.read(lambda conn: stacks.deleted_before(conn, NOW + 1, limit=9))
    assert [(stack.id, stack.shard) for stack in old] == [(purged.stack.id, purged.stack.shard)]
    before = counts(database)
    database.write(lambda conn: stacks.purge(conn, [stack.id for stack in old]))
    assert counts(database) == {name: count // 2 for name, count in before.items()}
    assert stack_of(database, remaining.stack.id).tags == ("t",)


def counts(database: Database) -> dict[str, int]:
    """Rows of all tables that hold something of stacks."""
    counted = {}
    for name, table in tables.metadata.tables.items():
        # A credential outlives its stack until it is returned, and messages for event sinks until they are
        # sent: see the duties of these names.  Software configs and deployments are deleted by the steps of
        # their resources, or by their users.
        shared_tables = (
            "project",
            "drift_project",
            "content",
            "setting",
            "conductor",
            "credential",
            "event_sink",
            "event_delivery",
        )
        if name not in shared_tables and not name.startswith("software_"):
            query = sa.select(sa.func.count()).select_from(table)
            counted[name] = database.read(lambda conn: conn.execute(query).scalar_one())  # noqa: B023
    assert all(counted.values())
    return counted


def test_the_current_resource_of_a_name_is_the_one_that_was_not_replaced(database: Database) -> None:
    stack = store(database, a_stack())
    old = a_resource(stack.id, 1, replaced_by=2)
    new = a_resource(stack.id, 2, replaces=1)
    database.write(lambda conn: resources.insert_many(conn, [old, new]))
    assert database.read(lambda conn: resources.by_name(conn, stack.id, "server")) == new
    assert database.read(lambda conn: resources.of_stack(conn, stack.id)) == [old, new]
    with pytest.raises(NotFound, match=r"The Resource \(Server\)"):
        database.read(lambda conn: resources.by_name(conn, stack.id, "Server"))
    with pytest.raises(NotFound, match=r"The Resource \(3\)"):
        database.read(lambda conn: resources.get(conn, 3))  # type: ignore[arg-type]
    database.write(
        lambda conn: resources.set_status(
            conn, new.id, action="CHECK", status=Status.FAILED, reason="sick", now=NOW + 1
        )
    )
    current = database.read(lambda conn: resources.get(conn, new.id))
    assert (current.action, current.status, current.reason, current.updated_at) == (
        "CHECK",
        "FAILED",
        "sick",
        NOW + 1,
    )
    database.write(lambda conn: resources.delete_many(conn, [old.id]))
    assert database.read(lambda conn: resources.by_ids(conn, [old.id, new.id])).keys() == {new.id}


def test_resources_of_a_tree_are_those_below_the_stack_and_no_cousins(database: Database) -> None:
    root = store(database, a_stack(name="root"))

    def nested(name: str, parent: Stack) -> Stack:
        fields = {"live_name": None, "root_id": root.id, "parent_id": parent.id, "depth": parent.depth + 1}
        return store(database, a_stack(name=name, **fields))

    left_stack = nested("left", root)
    right_stack = nested("right", root)
    deep = nested("deep", left_stack)
    other_stack = nested("other", right_stack)
    everything = [root, left_stack, right_stack, deep, other_stack]
    rows = [a_resource(stack.id, index + 1, stack.name) for index, stack in enumerate(everything)]
    database.write(lambda conn: resources.insert_many(conn, rows))

    def names(stack: Stack, depth: int) -> list[str]:
        rows = database.read(lambda conn: resources.of_tree(conn, stack, depth))
        assert [row.name for row in rows] == [row.stack_name for row in rows]
        return [row.name for row in rows]

    assert names(root, 0) == ["root"]
    assert names(root, 1) == ["root", "left", "right"]
    assert names(root, 9) == ["root", "left", "right", "deep", "other"]
    assert names(left_stack, 9) == ["left", "deep"]


def test_a_traversal_without_tasks_can_be_requested(database: Database) -> None:
    assert database.read(lambda conn: tasks.of_traversal(conn, new_id())) == []
    assert database.read(lambda conn: tasks.get(conn, 10**15)) is None  # type: ignore[arg-type]


def test_stacks_that_are_moved_here_are_stored_together(database: Database) -> None:
    moved = [
        a_stack(name="first", tags=("a", "b")),
        a_stack(name="second", status=Status.FAILED, failure_cause=FailureCause("why"), tags=("c",)),
    ]
    database.write(lambda conn: stacks.insert_many(conn, moved))
    database.write(lambda conn: stacks.insert_many(conn, []))
    assert [stack_of(database, stack.id) for stack in moved] == moved
    query = sa.select(tables.content_use.c.holder_id).distinct()
    holders = database.read(lambda conn: conn.execute(query).scalars().all())
    assert sorted(holders) == sorted(stack.id for stack in moved)


def test_the_tags_of_more_stacks_than_a_query_reads_are_those_of_each(database: Database) -> None:
    stored = [a_stack(tags=(f"t{number}",)) for number in range(502)]
    database.write(lambda conn: stacks.insert_many(conn, stored))
    untagged = [replace(stack, tags=()) for stack in stored]
    tagged = database.read(lambda conn: stacks.tagged(conn, untagged))
    assert [stack.tags for stack in tagged] == [stack.tags for stack in stored]


def test_a_content_is_replaced_wherever_its_stack_names_it(database: Database) -> None:
    previous = {"template": "t1", "environment": "old", "files": "f1", "parameters": {}}
    stack = store(database, a_stack(template_id="old", previous=previous), a_stack(template_id="old"))
    assert database.write(
        lambda conn: stacks.rename_content(conn, stack.id, ContentId("old"), ContentId("new"))
    )
    stored = stack_of(database, stack.id)
    assert (stored.template_id, stored.environment_id, stored.files_id) == ("new", "e", "f")
    assert stored.previous == {**previous, "environment": "new"}
    assert stacks.contents_of(vars(stored)) == {"new", "e", "f", "t1", "f1"}
    u = tables.content_use.c
    query = sa.select(u.content_id).where(u.holder_id == stack.id)
    used = database.read(lambda conn: conn.execute(query).scalars().all())
    assert sorted(used) == ["e", "f", "f1", "new", "t1"]
    assert not database.write(
        lambda conn: stacks.rename_content(conn, new_id(), ContentId("a"), ContentId("b"))
    )


def test_the_mark_for_rollback_is_taken_off_one_stack(database: Database) -> None:
    marked = [a_stack(rollback_at=NOW), a_stack(rollback_at=NOW)]
    store(database, *marked)
    database.write(lambda conn: stacks.skip_rollback(conn, marked[0].id))
    assert [stack_of(database, stack.id).rollback_at for stack in marked] == [None, NOW]


def test_stacks_in_progress_are_counted_by_shard(database: Database) -> None:
    deadlines = [(7, NOW), (7, NOW), (7, None), (8, NOW), (9, None)]
    store(database, *(a_stack(shard=shard, deadline_at=deadline) for shard, deadline in deadlines))
    assert database.read(stacks.in_progress_by_shard) == {7: 2, 8: 1}


@pytest.mark.parametrize(
    ("project_id", "name", "taken"), [("p", "web", True), ("q", "web", False), ("p", "x", False)]
)
def test_whether_a_name_is_taken_is_known(
    database: Database, project_id: str, name: str, taken: bool
) -> None:
    store(database, a_stack(project_id="p", name="web"))
    assert database.read(lambda conn: stacks.is_taken(conn, project_id, name)) is taken


def test_a_stack_that_is_deleted_is_no_undeleted_one(database: Database) -> None:
    stack = store(database, a_stack(tags=("a",)))
    assert database.read(lambda conn: stacks.find_undeleted(conn, stack.id)) == stack
    database.write(lambda conn: delete_stack(conn, stack, NOW))
    assert database.read(lambda conn: stacks.find_undeleted(conn, stack.id)) is None
    assert database.read(lambda conn: stacks.find_undeleted(conn, new_id())) is None


def test_the_nested_stack_of_a_resource_is_found_by_both_of_their_ids(database: Database) -> None:
    root = store(database, a_stack())
    fields = {"live_name": None, "root_id": root.id, "depth": 1}
    own = a_stack(parent_id=root.id, parent_resource_id=5, tags=("a",), **fields)
    others = [
        a_stack(parent_id=root.id, parent_resource_id=6, **fields),
        a_stack(parent_id=new_id(), parent_resource_id=5, **fields),
        a_stack(parent_id=root.id, parent_resource_id=5, deleted_at=NOW, **fields),
    ]
    store(database, *others, own)

    def nested(resource_id: int) -> Stack | None:
        return database.read(lambda conn: stacks.of_resource(conn, root.id, ResourceId(resource_id)))

    assert (nested(5), nested(7)) == (own, None)
    assert database.read(lambda conn: stacks.ids_inside(conn, [root.id])) == sorted(
        [own.id, others[0].id, others[2].id]
    )


def test_all_stacks_of_a_tree_have_event_sinks_with_its_root(database: Database) -> None:
    root = store(database, a_stack())
    nested = a_stack(live_name=None, root_id=root.id, parent_id=root.id, depth=1)
    stranger = a_stack()
    store(database, nested, stranger)

    def with_sinks(stack: Stack, *names: str) -> list[bool]:
        sinks = [(name, 60) for name in names]
        database.write(lambda conn: stacks.set_event_sinks(conn, stack, sinks, NOW))
        return [stack_of(database, each.id).has_sinks for each in (root, nested, stranger)]

    assert with_sinks(root, "a") == [False, True, False], "the caller sets it in the root"
    assert with_sinks(nested) == [False, True, False], "those of a nested stack are its root's"
    assert with_sinks(root) == [False, False, False]
