"""Parked tasks: woken by what they wait for or by their moment, and never forgotten."""

import functools
from collections.abc import Mapping

import pytest
import sqlalchemy as sa
from services.db.bystander import MEMBER
from services.db.rows import (
    NOW,
    B,
    Graph,
    a_stack,
    claim_all,
    new_id,
    on,
    outcome,
    raised,
    resource,
    set_task,
    stack_of,
    step,
    store_graph,
    task,
    together,
)
from stoker.db import resources
from stoker.db.engine import Database
from stoker.db.ids import MemberId, ResourceId, TaskId, TraversalId, WaitsOn
from stoker.db.rows import Outcome
from stoker.db.states import REPEATED_TOGETHER, Status, TaskKind, TaskState, redelivery_delay
from stoker.db.work import due_tasks, member_claims, tasks
from stoker.db.work.claim import Claim

pytestmark = pytest.mark.usefixtures("bystander")


def parked_on_resource(held: Claim, waits_for: ResourceId, generation: int) -> Outcome:
    return outcome(
        held, TaskState.PARKED, due_at=NOW + 3600, waits_on=WaitsOn.resource(waits_for), seen=generation
    )


def signal(database: Database, resource_id: ResourceId, generation: int) -> list[TaskId]:
    def change(conn: sa.Connection) -> Mapping[TraversalId, list[TaskId]]:
        assert resources.set_metadata(
            conn, resource_id, generation=generation, metadata={"n": generation + 1}, now=NOW
        )
        return due_tasks.wake(conn, WaitsOn.resource(resource_id), now=NOW)

    return [task_id for ids in database.write(change).values() for task_id in ids]


def test_a_signal_wakes_what_waits_for_it_and_nothing_else(database: Database) -> None:
    graph = store_graph(database, {"handle": [], "wait": [], "other": []})
    held = claim_all(database, graph.ids)
    by_name = {claim.resource.name: claim for claim in held}
    waits_for = graph.resources["handle"]
    step(
        database,
        [
            parked_on_resource(by_name["wait"], waits_for, 0),
            parked_on_resource(by_name["other"], graph.resources["other"], 0),
        ],
    )
    assert signal(database, waits_for, 0) == [graph.tasks["wait"]]
    assert (task(database, graph.tasks["wait"]).state, task(database, graph.tasks["wait"]).waits_on) == (
        TaskState.READY,
        None,
    )
    assert task(database, graph.tasks["other"]).state == TaskState.PARKED


def test_a_signal_before_the_parking_makes_the_task_ready_again_at_once(database: Database) -> None:
    graph = store_graph(database, {"handle": [], "wait": []})
    held = {claim.resource.name: claim for claim in claim_all(database, graph.ids)}
    assert signal(database, graph.resources["handle"], 0) == []
    done = step(database, [parked_on_resource(held["wait"], graph.resources["handle"], 0)])
    assert [(claim.task.id, claim.task.attempt) for claim in done.claims] == [(graph.tasks["wait"], 2)]


def test_a_signal_at_the_moment_of_the_parking_is_never_lost(database: Database) -> None:
    for _ in range(10):
        graph = store_graph(database, {"handle": [], "wait": []})
        held = {claim.resource.name: claim for claim in claim_all(database, graph.ids)}
        parked = parked_on_resource(held["wait"], graph.resources["handle"], 0)
        results = together(
            lambda graph=graph: signal(database, graph.resources["handle"], 0),  # type: ignore[misc]
            lambda parked=parked: step(database, [parked], slots=0),  # type: ignore[misc]
        )
        assert raised(results) == []
        assert task(database, graph.tasks["wait"]).state == TaskState.READY


@on("sqlite")
@pytest.mark.parametrize("awaited", [WaitsOn.resource(ResourceId(10**9)), WaitsOn.stack(new_id())])
def test_what_waits_for_something_that_is_gone_is_ready_at_once(database: Database, awaited: WaitsOn) -> None:
    graph = store_graph(database, {"wait": []})
    [held] = claim_all(database, graph.ids)
    parked = outcome(held, TaskState.PARKED, due_at=NOW + 3600, waits_on=awaited)
    assert step(database, [parked], slots=0).ready == {graph.traversal: graph.ids}
    stored = task(database, held.task.id)
    assert (stored.state, stored.due_at) == (TaskState.READY, NOW + 5)


def child_of(database: Database, parent: Graph) -> Graph:
    nested = a_stack(live_name=None, parent_id=parent.stack.id, root_id=parent.stack.id, depth=1)
    return store_graph(database, {"inner": []}, stack=nested)


def test_the_end_of_a_child_wakes_its_parent_in_the_same_transaction(database: Database) -> None:
    parent = store_graph(database, {"child": []}, timeout=7200.0)
    [held] = claim_all(database, parent.ids)
    child = child_of(database, parent)
    parked = outcome(held, TaskState.PARKED, due_at=NOW + 3600, waits_on=WaitsOn.stack(child.stack.id))
    step(database, [parked])
    stored = task(database, held.task.id)
    assert (stored.due_at, stored.expires_at) == (NOW + 3600, NOW + 7200), "the child's clock runs"
    [inner] = claim_all(database, child.ids, B)
    done = step(database, [outcome(inner)], who=B, slots=0)
    assert done.ended == [(child.stack.id, Status.COMPLETE)]
    assert done.woken == {parent.traversal: [held.task.id]}


def test_the_end_of_a_child_at_the_moment_of_the_parking_is_never_lost(database: Database) -> None:
    for _ in range(10):
        parent = store_graph(database, {"child": []})
        [held] = claim_all(database, parent.ids)
        child = child_of(database, parent)
        [inner] = claim_all(database, child.ids, B)
        parked = outcome(held, TaskState.PARKED, due_at=NOW + 3600, waits_on=WaitsOn.stack(child.stack.id))
        results = together(
            lambda parked=parked: step(database, [parked], slots=0),  # type: ignore[misc]
            lambda inner=inner: step(database, [outcome(inner)], who=B, slots=0),  # type: ignore[misc]
        )
        assert raised(results) == []
        assert task(database, held.task.id).state == TaskState.READY
        assert stack_of(database, child.stack.id).status == Status.COMPLETE


def test_what_is_due_comes_in_order_page_by_page_whatever_its_state(database: Database) -> None:
    graph = store_graph(database, {f"r{number}": [] for number in range(7)})
    moments = [3, 2, 2, 2, 1, 99, None]
    for task_id, moment in zip(graph.ids, moments, strict=True):
        set_task(database, task_id, due_at=None if moment is None else NOW + moment)
    listed = []
    after = (0.0, 0)
    while True:
        page = database.read(lambda conn: due_tasks.due(conn, NOW + 10, limit=2, after=after))  # noqa: B023
        listed += [item.id for item in page]
        assert len(page) <= 2
        if len(page) < 2:
            break
        after = (page[-1].due_at, page[-1].id)
    assert listed == [graph.ids[index] for index in (4, 1, 2, 3, 0)]


def test_a_hint_is_repeated_by_one_of_many_and_ever_more_rarely(database: Database) -> None:
    graph = store_graph(database, {"one": [], "two": []})
    due = database.read(lambda conn: due_tasks.due(conn, NOW + 5, limit=9))
    claim_all(database, [graph.tasks["two"]])
    results = together(
        *(
            lambda: database.write(lambda conn: due_tasks.repeat_hints(conn, due, now=NOW + 5))
            for _ in range(4)
        )
    )
    assert sorted(results, key=str) == [[graph.tasks["one"]], [], [], []]
    stored = task(database, graph.tasks["one"])
    assert (stored.redelivered, stored.due_at) == (1, NOW + 5 + 10)
    assert [redelivery_delay(count) for count in (0, 1, 2, 3, 4, 99)] == [5, 10, 20, 40, 60, 60]


@on("sqlite")
def test_a_due_task_of_a_newer_release_counts_as_a_ready_one(database: Database) -> None:
    graph = store_graph(database, {"known": [], "kind": [], "state": []}, kind=TaskKind.UPDATE)
    set_task(database, graph.tasks["known"], state=TaskState.PARKED)
    set_task(database, graph.tasks["kind"], kind="dance")
    set_task(database, graph.tasks["state"], state="asleep")
    due = database.read(lambda conn: due_tasks.due(conn, NOW + 5, limit=9))
    assert [(one.state, one.kind) for one in due] == [
        (TaskState.PARKED, TaskKind.UPDATE),
        (TaskState.READY, TaskKind.CHECK),
        (TaskState.READY, TaskKind.UPDATE),
    ]


def test_a_parked_task_is_woken_when_it_is_due_and_not_before(database: Database) -> None:
    graph = store_graph(database, {"one": []})
    [held] = claim_all(database, graph.ids)
    step(database, [outcome(held, TaskState.PARKED, due_at=NOW + 9)])
    assert database.read(lambda conn: due_tasks.due(conn, NOW + 8, limit=9)) == []
    due = database.read(lambda conn: due_tasks.due(conn, NOW + 9, limit=9))
    assert database.write(lambda conn: due_tasks.wake_due(conn, due, now=NOW + 8)) == []
    results = together(
        *(lambda: database.write(lambda conn: due_tasks.wake_due(conn, due, now=NOW + 9)) for _ in range(4))
    )
    assert sorted(results, key=str) == [[held.task.id], [], [], []]


def test_only_the_attempt_that_was_seen_is_requeued(database: Database) -> None:
    graph = store_graph(database, {"one": [], "two": []})
    claim_all(database, graph.ids)
    first, second = graph.ids
    freed = database.write(lambda conn: member_claims.release(conn, [(first, 1), (second, 9)], now=NOW))
    assert freed == {graph.traversal: [first]}
    assert (task(database, first).state, task(database, first).due_at) == (TaskState.READY, NOW + 5)
    assert task(database, second).state == TaskState.RUNNING
    assert database.write(lambda conn: member_claims.release(conn, [(first, 1)], now=NOW)) == {}


def test_who_claims_what_can_be_listed(database: Database) -> None:
    graph = store_graph(database, {"one": [], "two": [], "three": []})
    first, second, _ = graph.ids
    assert database.read(tasks.claiming_members) == [MEMBER]
    claim_all(database, [first])
    claim_all(database, [second], B)
    assert sorted(database.read(tasks.claiming_members)) == ["a/1", "b/1", MEMBER]
    assert database.read(lambda conn: tasks.claimed_by(conn, B.member)) == [(second, 1, graph.stack.shard)]
    assert database.read(lambda conn: tasks.claimed_by(conn, MemberId("c/1"))) == []


def test_metadata_changes_only_if_it_is_as_it_was_seen(database: Database) -> None:
    graph = store_graph(database, {"handle": []})
    handle = graph.resources["handle"]

    def add(name: str) -> bool:
        return database.write(
            lambda conn: resources.set_metadata(conn, handle, generation=0, metadata={name: 1}, now=NOW)
        )

    results = together(*(lambda name=name: add(name) for name in "abcd"))  # type: ignore[misc]
    assert sorted(results, key=str) == [False, False, False, True]
    assert resource(database, handle).generation == 1


def test_hints_of_a_backlog_are_repeated_one_after_another(database: Database) -> None:
    count = 2 * REPEATED_TOGETHER + 1
    graph = store_graph(database, {f"r{number}": [] for number in range(count)})
    first = [task(database, task_id).due_at for task_id in graph.ids]
    assert [first[0], first[REPEATED_TOGETHER], first[-1]] == [NOW + 5, NOW + 6, NOW + 7]
    due = database.read(lambda conn: due_tasks.due(conn, NOW + 7, limit=count))
    assert len(database.write(lambda conn: due_tasks.repeat_hints(conn, due, now=NOW + 7))) == count
    later = sorted({task(database, task_id).due_at or 0.0 for task_id in graph.ids})
    assert later == [NOW + 17, NOW + 18, NOW + 19]


def test_hints_that_a_dead_conductor_may_have_had_are_repeated_at_once(database: Database) -> None:
    graph = store_graph(database, {f"r{number}": [] for number in range(4)})
    other = store_graph(database, {"r": []})
    claim_all(database, graph.ids[:1])
    set_task(database, graph.ids[1], due_at=NOW + 1)
    hasten = functools.partial(due_tasks.hasten_hints, traversals=[graph.traversal], now=NOW + 1)
    assert database.write(hasten) == 2
    due = database.read(lambda conn: due_tasks.due(conn, NOW + 1, limit=9))
    assert [item.id for item in due] == graph.ids[1:]
    assert task(database, other.ids[0]).due_at == NOW + 5
