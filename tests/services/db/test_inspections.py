"""Reading why a stack is not finished: on each database, in few statements."""

import time
import typing
from dataclasses import replace

import pytest
import sqlalchemy as sa
from services.db.rows import (
    NOW,
    A,
    B,
    Graph,
    a_resource,
    a_stack,
    claim_all,
    on,
    set_task,
    store,
    store_graph,
    task,
)
from services.db.servers import SERVERS
from stoker.db import resources
from stoker.db.connections import server_time
from stoker.db.engine import Database
from stoker.db.ids import ResourceId, StackId
from stoker.db.rows import Stack
from stoker.db.states import Status, TaskState
from stoker.features.diagnosis import inspections
from stoker.features.diagnosis.inspections import Unfinished, Waiting


def look(database: Database, stack_id: StackId, *, limit: int = 20, present: tuple[str, ...] = ()) -> Waiting:
    return database.read(lambda conn: inspections.waiting(conn, stack_id, present=present, limit=limit))


def a_child(parent: Stack, resource: ResourceId, name: str) -> Stack:
    return a_stack(
        name=name,
        live_name=None,
        parent_id=parent.id,
        parent_resource_id=resource,
        root_id=parent.root_id,
        depth=1,
    )


def a_tree(database: Database) -> tuple[Graph, Graph]:
    """A stack whose resource `web` is a stack, in which `server` runs."""
    outer = store_graph(database, {"web": [], "after": ["web"]})
    inner = store_graph(
        database, {"server": []}, stack=a_child(outer.stack, outer.resources["web"], "shop-web")
    )
    [claim] = claim_all(database, [outer.tasks["web"]])
    set_task(
        database, outer.tasks["web"], state=TaskState.PARKED, member=None, waits_on=f"stack:{inner.stack.id}"
    )
    assert claim.task.claimed_at == NOW
    return outer, inner


def test_tasks_of_all_levels_are_named_by_their_paths(database: Database) -> None:
    outer, inner = a_tree(database)
    claim_all(database, [inner.tasks["server"]], B)
    waiting = look(database, outer.stack.id)
    assert [(item.path, item.state) for item in waiting.tasks] == [
        ("web/server", TaskState.RUNNING),
        ("web", TaskState.PARKED),
    ]
    assert waiting.counts == {TaskState.RUNNING: 1, TaskState.PARKED: 1, TaskState.WAITING: 1}
    child = waiting.children[inner.stack.id]
    assert (child.name, child.action, child.status, child.is_paused) == (
        "shop-web",
        "CREATE",
        Status.IN_PROGRESS,
        False,
    )
    first = waiting.tasks[0]
    assert (first.member, first.attempt, first.claimed_at, first.begun) == (B.member, 1, NOW, False)
    assert [item.path for item in look(database, inner.stack.id).tasks] == ["server"]
    assert [item.path for item in look(database, outer.stack.id, limit=1).tasks] == ["web/server"]


def test_what_tells_most_comes_first(database: Database) -> None:
    names = ["ready", "ours", "held", "timer", "asked", "gone"]
    graph = store_graph(database, {name: [] for name in names})
    ids = graph.tasks
    claim_all(database, [ids["ours"], ids["asked"]], A)
    claim_all(database, [ids["gone"]], B)
    set_task(database, ids["asked"], stop_by=NOW + 3)
    set_task(database, ids["held"], state=TaskState.HELD, hook="pre-create", due_at=None)
    set_task(database, ids["timer"], state=TaskState.PARKED, due_at=NOW + 60)
    waiting = look(database, graph.stack.id, present=(A.member,))
    assert [item.resource for item in waiting.tasks] == ["gone", "asked", "held", "timer", "ready", "ours"]


def test_what_a_conductor_has_not_answered_for_is_shown_though_it_is_over(database: Database) -> None:
    graph = store_graph(database, {"a": [], "b": []})
    claim_all(database, graph.ids)
    set_task(database, graph.tasks["a"], state=TaskState.CANCELLED)
    set_task(database, graph.tasks["b"], state=TaskState.CANCELLED, member=None)
    assert [item.resource for item in look(database, graph.stack.id).tasks] == ["a"]


def test_progress_of_the_task_itself_says_that_it_has_begun(database: Database) -> None:
    graph = store_graph(database, {"a": [], "b": []})
    claims = {claim.resource.name: claim for claim in claim_all(database, graph.ids)}
    progress = {
        graph.resources["a"]: {"progress": {"task": claims["a"].task.id, "token": 1}},
        graph.resources["b"]: {"progress": {"task": 1, "token": 1}},
    }
    database.write(lambda conn: resources.change_many(conn, progress))
    begun = {item.resource: item.begun for item in look(database, graph.stack.id).tasks}
    assert begun == {"a": True, "b": False}


def test_a_signal_that_is_waited_for_is_named_by_its_handle(database: Database) -> None:
    graph = store_graph(database, {"wait": []})
    database.write(lambda conn: resources.insert_many(conn, [a_resource(graph.stack.id, 77, "handle")]))
    set_task(database, graph.tasks["wait"], state=TaskState.PARKED, waits_on="resource:77")
    assert look(database, graph.stack.id).handles == {"77": "handle"}


def test_pages_hold_each_task_once(database: Database) -> None:
    graph = store_graph(database, {f"r{i}": [] for i in range(7)})
    listed: list[Unfinished] = []
    while True:
        after = listed[-1].id if listed else 0
        page = database.read(lambda conn, a=after: inspections.page(conn, graph.stack.id, after=a, limit=3))
        listed += page
        if len(page) < 3:
            break
    assert [item.id for item in listed] == graph.ids


def test_a_stack_is_found_by_its_id_and_by_its_name(database: Database) -> None:
    stack = a_stack(name="shop")
    foreign = a_stack(name="shop", project_id="other")
    child = a_child(stack, ResourceId(1), "shop-web")
    deleted = replace(a_stack(name="old"), live_name=None)
    store(database, stack, foreign, child, replace(deleted, deleted_at=NOW))

    def find(text: str, project_id: str | None = None) -> list[StackId]:
        return [s.id for s in database.read(lambda conn: inspections.find(conn, text, project_id))]

    assert find(stack.id) == [stack.id]
    assert sorted(find("shop")) == sorted([stack.id, foreign.id])
    assert find("shop", "other") == [foreign.id]
    assert find("shop-web") == [child.id]
    assert find(stack.id, "other") == find("nothing") == find("old") == []
    assert find(deleted.id) == [deleted.id], "what was deleted is shown until it is purged"


def test_the_first_cause_comes_first(database: Database) -> None:
    outer, inner = a_tree(database)
    changes: dict[ResourceId, dict[str, typing.Any]] = {
        outer.resources["web"]: {"status": Status.FAILED, "reason": "the child failed"},
        inner.resources["server"]: {"status": Status.FAILED, "reason": "no host"},
    }
    database.write(lambda conn: resources.change_many(conn, changes))
    failures = database.read(lambda conn: inspections.failed_resources(conn, outer.stack.id, limit=5))
    assert [(item.path, item.reason) for item in failures] == [
        ("web/server", "no host"),
        ("web", "the child failed"),
    ]


def test_the_longest_call_is_found(database: Database) -> None:
    graph = store_graph(database, {"a": [], "b": [], "c": []})
    for number, (name, who) in enumerate((("b", A), ("a", A), ("c", B))):
        claim_all(database, [graph.tasks[name]], who, NOW + number)
    steps = database.read(lambda conn: inspections.longest_steps(conn, [A.member], limit=5))
    assert [(step.resource, step.member, step.claimed_at) for step in steps] == [
        ("b", A.member, NOW),
        ("a", A.member, NOW + 1),
    ]
    assert task(database, graph.tasks["b"]).claimed_at == NOW


@on(*SERVERS)
def test_the_databases_own_clock_is_read(database: Database) -> None:
    server_seconds = database.read(server_time)
    if database.dialect == "sqlite":
        assert server_seconds is None
    else:
        assert server_seconds is not None
        assert abs(server_seconds - time.time()) < 300, "it runs on this host"


@on("sqlite")
@pytest.mark.parametrize("size", [10, 1000])
def test_the_cost_does_not_grow_with_the_stack(database: Database, size: int) -> None:
    graph = store_graph(database, {f"r{i}": [] for i in range(size)})
    counted: list[str] = []

    def count(conn: object, cursor: object, statement: str, *_: object) -> None:
        counted.append(statement)

    sa.event.listen(database.engine, "before_cursor_execute", count)
    try:
        waiting = look(database, graph.stack.id)
    finally:
        sa.event.remove(database.engine, "before_cursor_execute", count)
    assert len(waiting.tasks) == min(size, 20)
    assert waiting.counts == {TaskState.READY: size}
    assert len([text for text in counted if text.startswith(("SELECT", "WITH"))]) <= 4
