"""Objects of steps that did not stop: which rows keep them, and whose they are by the time the step ends."""

import typing
from dataclasses import replace

import pytest
import sqlalchemy as sa
from services.db.rows import (
    NOW,
    A,
    B,
    Graph,
    a_stack,
    claim_all,
    outcome,
    resource,
    rows_in_their_order,
    set_task,
    stack_of,
    step,
    store_graph,
    task,
    traversal_of,
)
from stoker.db import events, resources
from stoker.db.engine import Database
from stoker.db.ids import MemberId, ResourceId, TaskId
from stoker.db.rows import Event, OrphanedCreate, ReadyTasks
from stoker.db.schema import tables
from stoker.db.states import Status, TaskState
from stoker.db.work import member_claims, orphans

pytestmark = pytest.mark.usefixtures("bystander")


def orphan_of(database: Database, graph: Graph) -> OrphanedCreate:
    """The create of a graph's one resource, whose step runs on although its task was cancelled."""
    [held] = claim_all(database, graph.ids)
    set_task(database, held.task.id, state=TaskState.CANCELLED, due_at=None)
    return OrphanedCreate(held.task, held.resource)


def keepers(database: Database, graph: Graph) -> list[TaskId]:
    """The deletions that wait for steps of the graph."""
    s = tables.stack
    t = tables.task
    query = sa.select(t.c.id).join(s, s.c.id == t.c.stack_id).where(s.c.parent_id == graph.stack.id)
    return [TaskId(i) for i in database.read(lambda conn: conn.execute(query).scalars().all())]


def resolve(database: Database, orphan: OrphanedCreate, physical_id: str | None) -> ReadyTasks:
    return database.write(lambda conn: orphans.resolve(conn, orphan, physical_id, now=NOW))


def test_what_a_step_makes_is_deleted_by_the_task_that_waits_for_that_step(database: Database) -> None:
    graph = store_graph(database, {"one": []})
    other_graph = store_graph(database, {"one": []})
    orphan = orphan_of(database, graph)
    other = orphan_of(database, other_graph)
    for each in (other, orphan):
        database.write(lambda conn, each=each: orphans.record(conn, each, now=NOW))  # type: ignore[misc]
    [keeper] = keepers(database, graph)
    [other_keeper] = keepers(database, other_graph)
    assert list(resolve(database, orphan, "p").values()) == [[keeper]]
    assert task(database, keeper).state == TaskState.READY
    assert resource(database, task(database, keeper).resource_id).physical_id == "p"
    waiting = task(database, other_keeper)
    assert waiting.state == TaskState.PARKED
    assert resource(database, waiting.resource_id).physical_id is None
    assert resource(database, graph.resources["one"]).physical_id is None


def test_a_recorded_create_follows_its_conductor_to_another_name(database: Database) -> None:
    graph = store_graph(database, {"one": []})
    orphan = orphan_of(database, graph)
    database.write(lambda conn: orphans.record_detached(conn, orphan, now=NOW))
    [keeper] = keepers(database, graph)
    renamed = OrphanedCreate(replace(orphan.task, member=B.member), orphan.resource)
    database.write(lambda conn: orphans.record_detached(conn, renamed, now=NOW))
    assert keepers(database, graph) == [keeper], "it is not recorded again"
    assert task(database, keeper).member == B.member


@pytest.mark.parametrize("runs", [False, True])
def test_a_conductor_that_runs_no_step_says_that_nothing_is_to_wait_for(
    database: Database, runs: bool
) -> None:
    graph = store_graph(database, {"one": []})
    orphan = orphan_of(database, graph)
    database.write(lambda conn: orphans.record(conn, orphan, now=NOW))
    claims = [(orphan.task.id, orphan.task.attempt)]
    over = [] if runs else claims
    woken = database.write(
        lambda conn: member_claims.answer(conn, A.member, requested=claims, over=over, lost=(), now=NOW)
    )
    assert list(woken.values()) == ([] if runs else [keepers(database, graph)])
    assert task(database, orphan.task.id).member is None


LONG = "".join(map(str, range(100, 200)))


@pytest.mark.parametrize(
    ("stack_name", "resource_name"), [("web", "one"), (LONG[:255], "one"), ("web", LONG[:250])]
)
def test_what_keeps_an_orphan_is_a_deletion_below_its_stack(
    database: Database, stack_name: str, resource_name: str
) -> None:
    stack = a_stack(name=stack_name, depth=2, own_resources=7, tags=("a",))
    graph = store_graph(database, {resource_name: []}, stack=stack)
    orphan = orphan_of(database, graph)
    created = replace(
        orphan.resource, cancelled=True, reinstated=True, unhealthy=True, replaced_by=ResourceId(5)
    )
    number = database.write(lambda conn: orphans.record(conn, replace(orphan, resource=created), now=NOW))
    deletion = task(database, number)
    assert (deletion.pending, deletion.retries_left, deletion.definition) == (
        0,
        5,
        {"retries_permanent": True},
    )
    assert deletion.finish_id is not None
    assert traversal_of(database, deletion.finish_id).open_tasks == 1
    row = resource(database, deletion.resource_id)
    assert (row.cancelled, row.reinstated, row.unhealthy, row.replaced_by) == (False, False, False, None)
    keeper = stack_of(database, deletion.stack_id)
    tail = f"-{resource_name}-{orphan.task.id}"
    assert keeper.name == (f"{stack_name[: 255 - len(tail)]}{tail}" if len(tail) < 255 else tail[-255:])
    assert (keeper.parent_id, keeper.depth, keeper.own_resources, keeper.tags) == (stack.id, 3, 0, ())
    assert (keeper.action, keeper.status) == ("DELETE", Status.IN_PROGRESS)


@pytest.mark.parametrize(
    ("state", "row", "is_recorded"),
    [
        (TaskState.CANCELLED, {}, True),
        (TaskState.FAILED, {}, True),
        (TaskState.CANCELLED, None, True),
        (TaskState.CANCELLED, {"physical_id": "p"}, False),
        (TaskState.DONE, {}, False),
        (TaskState.RUNNING, {}, False),
    ],
)
def test_a_detached_create_is_recorded_where_no_attempt_finds_its_product(
    database: Database, state: TaskState, row: dict[str, typing.Any] | None, is_recorded: bool
) -> None:
    graph = store_graph(database, {"one": []})
    orphan = orphan_of(database, graph)
    set_task(database, orphan.task.id, state=state)

    def change(conn: sa.Connection) -> None:
        if row is None:
            resources.delete_many(conn, [orphan.resource.id])
        elif row:
            resources.store_changes(conn, [{"id": orphan.resource.id, **row}], now=NOW)
        orphans.record_detached(conn, orphan, now=NOW)

    database.write(change)
    assert len(keepers(database, graph)) == is_recorded


@pytest.mark.parametrize(("state", "is_recorded"), [(TaskState.FAILED, True), (TaskState.RUNNING, False)])
def test_what_a_failed_step_may_still_make_is_recorded(
    database: Database, state: TaskState, is_recorded: bool
) -> None:
    graph = store_graph(database, {"one": []})
    [one] = claim_all(database, graph.ids)
    step(database, [outcome(one, state, leftover=OrphanedCreate(one.task, one.resource))], slots=0)
    assert len(keepers(database, graph)) == is_recorded


def test_a_step_that_has_made_nothing_leaves_nothing_to_delete(database: Database) -> None:
    graph = store_graph(database, {"one": []})
    orphan = orphan_of(database, graph)
    assert resolve(database, orphan, None) == {}
    assert keepers(database, graph) == []


def test_an_object_whose_task_was_purged_is_nobodys(database: Database) -> None:
    graph = store_graph(database, {"one": []})
    orphan = orphan_of(database, graph)
    database.write(
        lambda conn: conn.execute(sa.delete(tables.task).where(tables.task.c.id == orphan.task.id))
    )
    assert list(resolve(database, orphan, "p").values()) == [keepers(database, graph)]


@pytest.mark.parametrize("member", [None, A.member])
def test_the_deletions_that_wait_for_a_dead_conductor_are_woken(
    database: Database, member: MemberId | None
) -> None:
    graph = store_graph(database, {"one": [], "two": []})
    claims = claim_all(database, graph.ids)
    for claim, conductor in zip(claims, (A, B), strict=True):
        orphan = OrphanedCreate(replace(claim.task, member=conductor.member), claim.resource)
        database.write(lambda conn, orphan=orphan: orphans.record(conn, orphan, now=NOW))  # type: ignore[misc]
    waiting = sorted(keepers(database, graph))
    woken = database.write(lambda conn: orphans.abandon(conn, waiting, now=NOW, member=member))
    expected = waiting if member is None else waiting[:1]
    assert sorted(task_id for ids in woken.values() for task_id in ids) == expected


LATER = {"state": TaskState.DONE, "attempt": 2}
FATES: dict[str, tuple[dict[str, typing.Any], dict[str, typing.Any], bool]] = {
    "cancelled, and nobody has it": ({"state": TaskState.CANCELLED}, {}, True),
    "its own result was stored": ({"state": TaskState.DONE}, {}, False),
    "a later attempt is at it": ({"state": TaskState.RUNNING, "attempt": 2}, {}, False),
    "a later attempt has the same object": (LATER, {"physical_id": "p"}, False),
    "a later attempt has another object": (LATER, {"physical_id": "q"}, True),
}
"""Names -> columns of the task and of its resource, and whether the object is to be deleted."""


@pytest.mark.parametrize("fate", FATES.values(), ids=FATES)
def test_an_object_that_no_task_waits_for_is_deleted_where_it_is_nobodys(
    database: Database, fate: tuple[dict[str, typing.Any], dict[str, typing.Any], bool]
) -> None:
    columns, of_resource, is_nobodys = fate
    graph = store_graph(database, {"one": []})
    orphan = orphan_of(database, graph)
    store_graph(database, {"a younger one": []})
    set_task(database, graph.ids[0], **columns)
    if of_resource:
        row = {"id": graph.resources["one"], **of_resource}
        database.write(lambda conn: resources.store_changes(conn, [row], now=NOW))
    woken = resolve(database, orphan, "p")
    assert list(woken.values()) == ([keepers(database, graph)] if is_nobodys else [])
    assert len(keepers(database, graph)) == is_nobodys
    for keeper in keepers(database, graph):
        assert resource(database, task(database, keeper).resource_id).physical_id == "p"


def event(graph: Graph, action: str, name: str, physical_id: str) -> Event:
    return Event(
        stack_id=graph.stack.id,
        resource_name=name,
        resource_type="T",
        physical_id=physical_id,
        action=action,
        status=Status.COMPLETE,
        reason="",
        at=NOW,
    )


CREATED = ("CREATE", "one", "p")
DELETED = ("DELETE", "one", "p")


@pytest.mark.parametrize(
    ("own", "foreign", "is_nobodys"),
    [
        ([], [], True),
        ([CREATED], [], False),
        ([CREATED, DELETED], [], True),
        ([DELETED, CREATED], [], False),
        ([("CREATE", "two", "p")], [], True),
        ([("CREATE", "one", "q")], [], True),
        ([], [CREATED], True),
        ([CREATED], [DELETED], False),
    ],
)
def test_an_object_of_a_resource_that_is_gone_is_the_users_where_its_stack_was_abandoned(
    database: Database,
    own: list[tuple[str, str, str]],
    foreign: list[tuple[str, str, str]],
    is_nobodys: bool,
) -> None:
    graph = store_graph(database, {"one": []})
    other = store_graph(database, {"one": []})
    orphan = orphan_of(database, graph)
    recorded = [*(event(graph, *each) for each in own), *(event(other, *each) for each in foreign)]

    def delete(conn: sa.Connection) -> None:
        events.add_many(conn, recorded)
        resources.delete_many(conn, [graph.resources["one"]])

    def resolve_in_order(conn: sa.Connection) -> None:
        with rows_in_their_order(conn):
            orphans.resolve(conn, orphan, "p", now=NOW)

    database.write(delete)
    database.write(resolve_in_order)
    assert len(keepers(database, graph)) == is_nobodys
