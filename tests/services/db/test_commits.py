"""Committing results: fenced, counted down once, ended once."""

import collections
import re
from collections.abc import Callable, Iterable, Set
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from harness.waiting import wait_for
from services.db.rows import (
    NOW,
    A,
    B,
    Graph,
    a_resource,
    a_stack,
    claim_all,
    on,
    outcome,
    raised,
    resource,
    set_task,
    set_traversal,
    stack_of,
    step,
    store_graph,
    task,
    together,
    traversal_of,
)
from stoker.db import events, resources
from stoker.db.engine import Database
from stoker.db.errors import NotFound
from stoker.db.events import EventQuery
from stoker.db.ids import ResourceId, WaitsOn
from stoker.db.queries import stack_list
from stoker.db.resources import ClaimedRows
from stoker.db.rows import FailureCause, OrphanedCreate, Outcome
from stoker.db.schema import tables
from stoker.db.states import Standing, Status, TaskKind, TaskState, TraversalState
from stoker.db.work import member_claims, tasks
from stoker.shapes import Json

pytestmark = pytest.mark.usefixtures("bystander")

WIDE = 12


def stack_events(database: Database, graph: Graph) -> list[str]:
    query = EventQuery(graph.stack.id, resource_name=graph.stack.name)
    return [event.status for event, _ in database.read(lambda conn: events.list_events(conn, query))]


@pytest.mark.parametrize("state", [TaskState.DONE, TaskState.FAILED])
def test_the_result_of_a_superseded_attempt_is_refused_and_nothing_of_it_stored(
    database: Database, state: TaskState
) -> None:
    graph = store_graph(database, {"one": []})
    [late] = claim_all(database, graph.ids, A)
    database.write(lambda conn: member_claims.release(conn, [(late.task.id, late.task.attempt)], now=NOW))
    [current] = claim_all(database, graph.ids, B)
    changes = {"physical_id": "late", "status": Status.COMPLETE}
    assert len(step(database, [outcome(late, state, changes=changes)], who=A).refused) == 1
    # The right attempt in the wrong name, and the right name with the wrong attempt.
    assert len(step(database, [outcome(current, state, changes=changes)], who=A).refused) == 1
    assert len(step(database, [outcome(late, state, changes=changes)], who=B).refused) == 1
    assert resource(database, graph.resources["one"]).physical_id is None
    assert task(database, graph.tasks["one"]).state == TaskState.RUNNING
    accepted = step(database, [outcome(current, changes={"physical_id": "right"})], who=B)
    assert (accepted.refused, accepted.ended) == ([], [(graph.stack.id, Status.COMPLETE)])
    assert resource(database, graph.resources["one"]).physical_id == "right"


def test_a_result_is_stored_once_however_often_it_is_sent(database: Database) -> None:
    graph = store_graph(database, {"a": [], "b": ["a"], "c": ["b"]})
    [held] = claim_all(database, graph.ids)
    step(database, [outcome(held)], slots=0)
    again = step(database, [outcome(held)], slots=0)
    assert len(again.refused) == 1
    assert traversal_of(database, graph.number).open_tasks == 2


def test_commits_at_once_make_the_common_successor_ready_exactly_once(database: Database) -> None:
    names = [f"r{number}" for number in range(WIDE)]
    graph = store_graph(database, {**{name: [] for name in names}, "last": names})
    held = claim_all(database, graph.ids)
    results = together(*(lambda claim=claim: step(database, [outcome(claim)], slots=0) for claim in held))  # type: ignore[misc]
    assert raised(results) == []
    made_ready = [ids for done in results for ids in done.ready.values()]  # type: ignore[union-attr]
    assert made_ready == [[graph.tasks["last"]]]
    last = task(database, graph.tasks["last"])
    assert (last.state, last.pending, last.attempt) == (TaskState.READY, 0, 0)


def test_the_last_of_many_commits_at_once_ends_the_stack_exactly_once(database: Database) -> None:
    graph = store_graph(database, {f"r{number}": [] for number in range(WIDE)})
    held = claim_all(database, graph.ids)
    results = together(*(lambda claim=claim: step(database, [outcome(claim)]) for claim in held))  # type: ignore[misc]
    assert raised(results) == []
    ended = [end for done in results for end in done.ended]  # type: ignore[union-attr]
    assert ended == [(graph.stack.id, Status.COMPLETE)]
    assert stack_events(database, graph) == ["COMPLETE"]
    assert traversal_of(database, graph.number).open_tasks == 0


def test_several_failures_at_once_end_the_stack_once_with_one_first_cause(database: Database) -> None:
    names = [f"r{number}" for number in range(WIDE)]
    graph = store_graph(database, {**{name: [] for name in names}, **{f"after {n}": [n] for n in names}})
    held = claim_all(database, graph.ids)
    results = together(
        *(
            lambda claim=claim: step(  # type: ignore[misc]
                database, [outcome(claim, TaskState.FAILED, reason=f"because {claim.resource.name}")]
            )
            for claim in held
        )
    )
    assert raised(results) == []
    ended = [end for done in results for end in done.ended]  # type: ignore[union-attr]
    assert ended == [(graph.stack.id, Status.FAILED)]
    stored = database.read(lambda conn: tasks.of_traversal(conn, graph.traversal))
    counted = collections.Counter(item.state for item in stored)
    assert counted == {TaskState.FAILED: WIDE, TaskState.CANCELLED: WIDE}
    assert stack_of(database, graph.stack.id).reason.startswith("because r")


def test_a_diamond_runs_in_order(database: Database) -> None:
    graph = store_graph(database, {"top": [], "left": ["top"], "right": ["top"], "bottom": ["left", "right"]})
    assert [held.resource.name for held in claim_all(database, graph.ids)] == ["top"]

    done = step(database, [outcome_of(database, graph, "top")], slots=0)
    order: list[list[str]] = []
    for _ in range(2):
        ids = [task_id for part in done.ready.values() for task_id in part]
        held = [*done.claims, *claim_all(database, ids)]
        order.append(sorted(claim.resource.name for claim in held))
        done = step(database, [outcome(claim) for claim in held])
    assert order == [["left", "right"], ["bottom"]]
    assert done.ended == [(graph.stack.id, Status.COMPLETE)]


def outcome_of(database: Database, graph: Graph, name: str) -> Outcome:
    held = task(database, graph.tasks[name])
    return Outcome(held.id, held.attempt, TaskState.DONE, graph.resources[name])


def test_a_failure_cancels_what_has_not_started_and_lets_the_running_end(database: Database) -> None:
    graph = store_graph(database, {"bad": [], "busy": [], "idle": [], "behind": ["bad"], "far": ["behind"]})
    bad, busy = claim_all(database, [graph.tasks["bad"], graph.tasks["busy"]])
    assert step(database, [outcome(bad, TaskState.FAILED, reason="no quota")]).ended == []
    states = {name: task(database, task_id).state for name, task_id in graph.tasks.items()}
    assert states == {
        "bad": TaskState.FAILED,
        "busy": TaskState.RUNNING,
        "idle": TaskState.CANCELLED,
        "behind": TaskState.CANCELLED,
        "far": TaskState.CANCELLED,
    }
    assert step(database, [outcome(busy)]).ended == [(graph.stack.id, Status.FAILED)]
    assert stack_of(database, graph.stack.id).reason == "no quota"


def test_a_failure_without_a_reason_is_one(database: Database) -> None:
    graph = store_graph(database, {"one": []})
    [one] = claim_all(database, graph.ids)
    assert step(database, [outcome(one, TaskState.FAILED)]).ended == [(graph.stack.id, Status.FAILED)]
    stack = stack_of(database, graph.stack.id)
    assert (stack.reason, stack.failure_cause) == ("unknown", FailureCause("unknown"))


@on("sqlite")
def test_a_stack_that_has_failed_names_the_cause(database: Database) -> None:
    graph = store_graph(database, {"one": []})
    [one] = claim_all(database, graph.ids)
    cause = FailureCause("no quota", "Conflict", "resources.one")
    step(database, [outcome(one, TaskState.FAILED, reason="why", cause=cause)])
    stack = stack_of(database, graph.stack.id)
    assert (stack.reason, stack.failure_cause) == ("why", cause)


def test_a_batch_stores_every_result_of_it(database: Database) -> None:
    names = [f"r{number}" for number in range(30)]
    graph = store_graph(database, {name: [] for name in names})
    held = claim_all(database, graph.ids)
    results = []
    for index, claim in enumerate(held):
        more = {"data": {"n": index}} if index % 2 else {}
        results.append(outcome(claim, changes={"physical_id": f"p{index}", "status": "COMPLETE", **more}))
    assert step(database, results).ended == [(graph.stack.id, Status.COMPLETE)]
    rows = database.read(lambda conn: resources.of_stack(conn, graph.stack.id))
    assert [row.physical_id for row in rows] == [f"p{index}" for index in range(30)]
    assert [row.data for row in rows] == [{"n": index} if index % 2 else None for index in range(30)]


def test_progress_keeps_the_claim_and_its_due_time(database: Database) -> None:
    graph = store_graph(database, {"one": []}, timeout=60.0)
    [held] = claim_all(database, graph.ids)
    step(database, [outcome(held, TaskState.RUNNING, changes={"physical_id": "p"})])
    stored = task(database, held.task.id)
    assert (stored.state, stored.member, stored.due_at) == (TaskState.RUNNING, A.member, NOW + 60)
    assert resource(database, graph.resources["one"]).physical_id == "p"


def test_a_deletion_that_ended_well_removes_the_row(database: Database) -> None:
    graph = store_graph(database, {"one": []}, stack=a_stack(action="DELETE"))
    [held] = claim_all(database, graph.ids)
    step(database, [outcome(held, remove=True)])
    with pytest.raises(NotFound):
        resource(database, graph.resources["one"])
    deleted = stack_of(database, graph.stack.id)
    assert (deleted.status, deleted.live_name, deleted.deleted_at) == (Status.COMPLETE, None, NOW)
    with pytest.raises(NotFound):
        database.read(lambda conn: stack_list.find_by_name(conn, "tenant", graph.stack.name))


def test_a_retry_costs_one_and_starts_the_timeout_afresh(database: Database) -> None:
    graph = store_graph(database, {"one": []}, timeout=60.0, retries_left=3)
    [held] = claim_all(database, graph.ids)
    step(database, [outcome(held, TaskState.PARKED, due_at=NOW + 50, retries_left=2)])
    stored = task(database, held.task.id)
    assert (stored.state, stored.due_at, stored.retries_left) == (TaskState.PARKED, NOW + 50, 2)
    assert (stored.expires_at, stored.member) == (None, None)


def test_an_outcome_that_no_running_task_can_come_to_is_refused_when_it_is_made(database: Database) -> None:
    graph = store_graph(database, {"one": []})
    [held] = claim_all(database, graph.ids)
    for state in (TaskState.WAITING,):
        with pytest.raises(ValueError, match=f"never becomes {state}"):
            outcome(held, state)


def statements_of(database: Database, transaction: Callable[[], object]) -> list[str]:
    """The statements of a transaction, by the first words of their parts, without BEGIN and COMMIT."""
    texts: list[str] = []

    def record(conn: Json, cursor: Json, statement: str, *_: Json) -> None:
        if "clock_timestamp" not in statement:  # Any transaction measures it every few seconds.
            texts.append(statement)

    sa.event.listen(database.engine, "before_cursor_execute", record)
    try:
        transaction()
    finally:
        sa.event.remove(database.engine, "before_cursor_execute", record)
    parts = (_FIRST_WORDS.findall(text) for text in texts)
    return [", ".join(f"{verb} {table}" for verb, table in words) for words in parts if words]


_FIRST_WORDS = re.compile(r"(?:^|AS \n?\(|\)\n |UNION ALL )(SELECT|INSERT INTO|UPDATE|DELETE FROM)\W+(\w+)")


@on("postgresql")
def test_a_batch_of_any_size_takes_as_many_statements_and_its_traversal_ends_it(database: Database) -> None:
    """All conductors in the stack wait as long as the row of the traversal is locked."""
    for count in (3, 90):
        graph = store_graph(database, {f"r{number}": [] for number in range(2 * count + 1)})
        claims = claim_all(database, graph.ids[:count])
        outcomes = [outcome(claim, changes={"status": "COMPLETE"}) for claim in claims]
        hinted = graph.ids[count : 2 * count]
        texts = statements_of(database, lambda: step(database, outcomes, hinted, slots=count))  # noqa: B023
        assert texts == [
            "UPDATE task, UPDATE resource, SELECT ended",  # the fence, and the ends
            "SELECT task",  # the claims
            "SELECT claimed, SELECT resource",  # in one, and locked once
            "UPDATE task, UPDATE resource, INSERT INTO event, UPDATE traversal",
        ], "the tests have no sealed or nested resources, whose statements come on top"


@on("postgresql")
def test_a_link_of_a_chain_takes_three_statements(database: Database) -> None:
    graph = store_graph(database, {"a": [], "b": ["a"], "c": ["b"]})
    [claim] = claim_all(database, graph.ids[:1])
    ended = [outcome(claim, changes={"status": "COMPLETE"})]
    claimed: list[str] = []
    texts = statements_of(
        database, lambda: claimed.extend(claim.resource.name for claim in step(database, ended).claims)
    )
    assert texts == [
        # The fence, the end, and the successor, which is claimed without being announced.
        "UPDATE task, UPDATE resource, SELECT ended, SELECT successors",
        "SELECT claimed, SELECT resource",
        "UPDATE task, UPDATE resource, INSERT INTO event, UPDATE traversal",
    ]
    assert claimed == ["b"]


@on("postgresql")
def test_a_failure_is_stored_before_its_traversal_is_locked(database: Database) -> None:
    graph = store_graph(database, {"a": [], "b": ["a"]})
    [claim] = claim_all(database, graph.ids[:1])
    failed = [outcome(claim, TaskState.FAILED, reason="why", changes={"status": Status.FAILED})]
    texts = statements_of(database, lambda: step(database, failed))
    assert texts[:4] == [
        "SELECT task",  # the fence
        "UPDATE task",
        "UPDATE resource",
        "SELECT task",  # what does not start any more; the traversal comes behind it
    ]


@on("sqlite")
@pytest.mark.parametrize("next_needs", [["gone"], ["failed"], []])
def test_a_resource_is_removed_before_any_other_task_is_locked(
    database: Database, next_needs: list[str]
) -> None:
    """The order of locks: own tasks, resources, successors; another server puts off more than removals."""
    graph = store_graph(database, {"gone": [], "failed": [], "next": next_needs}, kind=TaskKind.DELETE)
    gone, failed = claim_all(database, graph.ids[:2])
    ended = [outcome(gone, remove=True)]
    if next_needs == ["failed"]:
        ended.append(outcome(failed, TaskState.FAILED, reason="why"))
    texts = statements_of(database, lambda: step(database, ended, graph.ids[2:]))
    assert "SELECT task" in texts[texts.index("DELETE FROM resource") :]
    assert "SELECT task" not in texts[texts.index("UPDATE task") : texts.index("DELETE FROM resource")]


@on("sqlite")
def test_a_resource_is_removed_before_the_project_of_a_leftover_is_locked(database: Database) -> None:
    graph = store_graph(database, {"gone": [], "left": []})
    gone, left = claim_all(database, graph.ids)
    leftover = OrphanedCreate(left.task, left.resource)
    ended = [outcome(gone, remove=True), outcome(left, TaskState.CANCELLED, leftover=leftover)]
    texts = statements_of(database, lambda: step(database, ended))
    assert texts.index("DELETE FROM resource") < texts.index("INSERT INTO stack")


@on("postgresql")
def test_a_result_is_stored_before_the_successor_is_locked_and_counts_it_as_it_is_then(
    database: Database,
) -> None:
    graph = store_graph(database, {"a": [], "b": [], "c": ["a", "b"]})
    [claim, _] = claim_all(database, graph.ids[:2])
    ended = outcome(claim, changes={"status": Status.COMPLETE, "reason": "stored"})
    counted = sa.update(tables.task).where(tables.task.c.id == graph.tasks["c"]).values(pending=1)
    of_result = sa.select(tables.resource.c.id).where(tables.resource.c.id == claim.resource.id)
    # Not pg_stat_activity: within a transaction it stays as it was first read, without newer connections.
    waits = "SELECT count(*) FROM pg_locks WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))"
    threads = ThreadPoolExecutor(1)
    try:
        with database.engine.connect() as other:
            other.execute(counted)
            done = threads.submit(step, database, [ended])
            wait_for(lambda: other.exec_driver_sql(waits).scalar(), 60, lambda: str(done))
            assert other.execute(of_result.with_for_update(skip_locked=True)).all() == []
            other.commit()
        assert [claim.resource.name for claim in done.result().claims] == ["c"]
    finally:
        threads.shutdown()
    assert resource(database, claim.resource.id).reason == "stored"


@on("postgresql")
@pytest.mark.parametrize(
    ("state", "waits_on"), [(TaskState.READY, None), (TaskState.PARKED, WaitsOn.resource(ResourceId(0)))]
)
def test_a_task_that_runs_again_at_once_gets_what_its_step_before_has_stored(
    database: Database, state: TaskState, waits_on: WaitsOn | None
) -> None:
    """Other servers put off no changes of resources.  The row that one waits for is gone already."""
    graph = store_graph(database, {"one": []})
    [one] = claim_all(database, graph.ids)
    again = outcome(one, state, due_at=NOW + 9, waits_on=waits_on, changes={"reason": "new"})
    assert [claim.resource.reason for claim in step(database, [again]).claims] == ["new"]


@on("sqlite")
@pytest.mark.parametrize(
    ("returns_rows", "expected"),
    [
        (True, ["UPDATE task", "UPDATE traversal", "UPDATE traversal"]),
        (False, ["SELECT task", "UPDATE task", "UPDATE traversal", "SELECT traversal"]),
    ],
)
def test_rows_are_read_where_the_updates_of_the_database_return_none(
    database: Database, returns_rows: bool, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = store_graph(database, {"one": []})
    [one] = claim_all(database, graph.ids)
    monkeypatch.setattr(database.engine.dialect, "update_returning", returns_rows)
    ended: list[object] = []
    texts = statements_of(database, lambda: ended.extend(step(database, [outcome(one)]).ended))
    assert texts[: len(expected)] == expected
    assert ended == [(graph.stack.id, Status.COMPLETE)]


@on("sqlite")
@pytest.mark.parametrize(
    ("kind", "state", "hook", "ends", "shown"),
    [
        (
            TaskKind.CREATE,
            TaskState.PARKED,
            None,
            TaskState.CANCELLED,
            (Status.FAILED, "CREATE aborted", True),
        ),
        (
            TaskKind.UPDATE,
            TaskState.READY,
            None,
            TaskState.CANCELLED,
            (Status.FAILED, "UPDATE aborted", True),
        ),
        (TaskKind.OBSERVE, TaskState.PARKED, None, TaskState.CANCELLED, (Status.COMPLETE, "new", False)),
        (TaskKind.REFRESH, TaskState.PARKED, None, TaskState.CANCELLED, (Status.COMPLETE, "new", False)),
        (TaskKind.UPDATE, TaskState.HELD, "pre-update", TaskState.CANCELLED, (Status.COMPLETE, "new", False)),
        (TaskKind.UPDATE, TaskState.HELD, "post-update", TaskState.DONE, (Status.COMPLETE, "new", False)),
    ],
)
def test_what_would_wait_behind_a_failure_ends(
    database: Database,
    kind: TaskKind,
    state: TaskState,
    hook: str | None,
    ends: TaskState,
    shown: tuple[Status, str, bool],
) -> None:
    graph = store_graph(database, {"one": [], "fails": [], "runs": []}, kind=kind)
    one, fails, _ = claim_all(database, graph.ids)
    step(database, [outcome(fails, TaskState.FAILED, reason="why")], slots=0)
    changes = {"status": Status.COMPLETE, "reason": "new"}
    step(database, [outcome(one, state, hook=hook, due_at=NOW + 9, changes=changes)], slots=0)
    row = resource(database, graph.resources["one"])
    assert (task(database, one.task.id).state, (row.status, row.reason, row.cancelled)) == (ends, shown)
    assert traversal_of(database, graph.number).open_tasks == 1


@on("sqlite")
def test_a_replacement_is_not_made_behind_a_failure(database: Database) -> None:
    graph = store_graph(database, {"one": [], "fails": []}, kind=TaskKind.UPDATE)
    one, fails = claim_all(database, graph.ids)
    step(database, [outcome(fails, TaskState.FAILED, reason="why")], slots=0)
    step(database, [outcome(one, TaskState.READY, replacement=a_resource(graph.stack.id, 7))], slots=0)
    assert task(database, one.task.id).state == TaskState.CANCELLED
    assert resource(database, graph.resources["one"]).replaced_by is None


@on("sqlite")
@pytest.mark.parametrize("waits_for_nested", [False, True])
def test_behind_a_failure_a_task_waits_for_its_nested_stack_only(
    database: Database, waits_for_nested: bool
) -> None:
    graph = store_graph(database, {"one": [], "fails": []})
    nested = store_graph(database, {"inner": []}, stack=a_stack(parent_id=graph.stack.id))
    one, fails = claim_all(database, graph.ids)
    step(database, [outcome(fails, TaskState.FAILED, reason="why")], slots=0)
    resource_id = graph.resources["fails"]
    waits_on = WaitsOn.stack(nested.stack.id) if waits_for_nested else WaitsOn.resource(resource_id)
    step(database, [outcome(one, TaskState.PARKED, waits_on=waits_on)], slots=0)
    assert task(database, one.task.id).state == (
        TaskState.PARKED if waits_for_nested else TaskState.CANCELLED
    )


@on("sqlite")
@pytest.mark.parametrize(
    ("state", "hook", "expected"),
    [(TaskState.PARKED, None, TaskState.CANCELLED), (TaskState.HELD, "post-update", TaskState.HELD)],
)
def test_a_carried_over_update_is_held_after_its_end_but_begins_no_more(
    database: Database, state: TaskState, hook: str | None, expected: TaskState
) -> None:
    graph = store_graph(database, {"one": []}, kind=TaskKind.UPDATE)
    [one] = claim_all(database, graph.ids)
    set_task(database, one.task.id, standing=Standing.CARRIED_OVER)
    step(database, [outcome(one, state, hook=hook)], slots=0)
    assert task(database, one.task.id).state == expected


@on("sqlite")
@pytest.mark.parametrize("begins", [False, True])
def test_a_carried_over_creation_waits_once_it_has_begun(database: Database, begins: bool) -> None:
    graph = store_graph(database, {"one": []})
    [one] = claim_all(database, graph.ids)
    set_task(database, one.task.id, standing=Standing.CARRIED_OVER)
    progress = {"task": one.task.id} if begins else None
    step(database, [outcome(one, TaskState.PARKED, due_at=NOW + 9, changes={"progress": progress})], slots=0)
    assert task(database, one.task.id).state == (TaskState.PARKED if begins else TaskState.CANCELLED)


@on("sqlite")
def test_a_task_whose_resource_another_transaction_holds_stays_ready(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server skips the row; SQLite, which has one writer, holds none."""
    graph = store_graph(database, {"first": [], "next": ["first"], "beside": []})
    [first] = claim_all(database, [graph.tasks["first"]])
    lock_free = resources.lock_free

    def hold(conn: sa.Connection, ids: Iterable[ResourceId], claimed: Set[ResourceId]) -> ClaimedRows:
        rows = lock_free(conn, ids, claimed)
        rows.locked |= claimed
        return rows

    monkeypatch.setattr(resources, "lock_free", hold)
    done = step(database, [outcome(first)], [graph.tasks["beside"]])
    assert (list(done.claims), dict(done.ready)) == ([], {graph.traversal: [graph.tasks["next"]]})
    assert sorted(done.locked) == [graph.tasks["next"], graph.tasks["beside"]]
    states = [task(database, graph.tasks[name]).state for name in ("next", "beside")]
    assert states == [TaskState.READY, TaskState.READY]


@on("sqlite")
@pytest.mark.parametrize("state", [TaskState.DONE, TaskState.READY])
def test_an_outcome_for_an_older_goal_neither_plans_nor_replaces(
    database: Database, state: TaskState
) -> None:
    graph = store_graph(database, {"one": []}, kind=TaskKind.UPDATE)
    [one] = claim_all(database, graph.ids)
    set_task(database, one.task.id, standing=Standing.SUPERSEDED)
    new = a_resource(graph.stack.id, 7) if state == TaskState.READY else None
    changes = {"requires": [7], "physical_id": "p"}
    step(database, [outcome(one, state, changes=changes, replacement=new)], slots=0)
    row = resource(database, graph.resources["one"])
    is_done = state == TaskState.DONE
    assert task(database, one.task.id).state == (TaskState.DONE if is_done else TaskState.CANCELLED)
    assert (list(row.requires), row.replaced_by) == ([] if is_done else [7], None)
    assert row.physical_id == "p"


@on("sqlite")
def test_a_task_continues_with_the_creation_of_a_replacement(database: Database) -> None:
    graph = store_graph(database, {"one": [], "beside": []}, kind=TaskKind.UPDATE)
    one, beside = claim_all(database, graph.ids)
    set_task(database, one.task.id, spare_id=8)
    new = a_resource(graph.stack.id, 7)
    done = step(database, [outcome(one, TaskState.READY, due_at=NOW + 9, replacement=new)], slots=0)
    assert done.ready == {graph.traversal: [one.task.id]}
    stored = task(database, one.task.id)
    assert (stored.kind, stored.resource_id, stored.spare_id) == (TaskKind.CREATE, 7, None)
    assert (stored.state, stored.due_at) == (TaskState.READY, NOW + 9)
    assert resource(database, graph.resources["one"]).replaced_by == 7
    assert task(database, beside.task.id).kind == TaskKind.UPDATE


@on("sqlite")
@pytest.mark.parametrize("kind", [TaskKind.SNAPSHOT, TaskKind.CHECK])
def test_a_task_of_a_resource_that_is_gone_is_done_and_its_successor_continues(
    database: Database, kind: TaskKind
) -> None:
    graph = store_graph(database, {"gone": [], "plain": [], "next": ["gone", "plain"], "copy": []}, kind=kind)
    copy = graph.resources["copy"]
    set_task(database, graph.tasks["gone"], spare_id=copy)
    gone = [graph.resources["gone"], graph.resources["plain"]]
    database.write(lambda conn: resources.delete_many(conn, gone))
    done = step(database, [], [graph.tasks["gone"], graph.tasks["plain"]])
    assert (list(done.claims), done.ready) == ([], {graph.traversal: [graph.tasks["next"]]})
    assert [task(database, graph.tasks[name]).state for name in ("gone", "plain")] == [TaskState.DONE] * 2
    assert traversal_of(database, graph.number).open_tasks == 2
    rows = database.read(lambda conn: resources.by_ids(conn, [copy]))
    assert (copy in rows) is (kind == TaskKind.CHECK)


@on("sqlite")
@pytest.mark.parametrize("state", [TaskState.RUNNING, TaskState.READY])
def test_the_losses_of_a_task_are_forgotten_when_its_step_has_ended(
    database: Database, state: TaskState
) -> None:
    graph = store_graph(database, {"one": []})
    [one] = claim_all(database, graph.ids)
    set_task(database, one.task.id, losses={"hosts": ["b"]})
    step(database, [outcome(one, state, due_at=NOW + 9)], slots=0)
    assert task(database, one.task.id).losses is None


@on("sqlite")
def test_a_signal_that_fails_stops_nothing(database: Database) -> None:
    graph = store_graph(database, {"signal": [], "other": []})
    set_task(database, graph.tasks["signal"], kind=TaskKind.SIGNAL, finish_id=None)
    [signal] = claim_all(database, [graph.tasks["signal"]])
    step(database, [outcome(signal, TaskState.FAILED, reason="why")], slots=0)
    assert task(database, graph.tasks["other"]).state == TaskState.READY
    assert traversal_of(database, graph.number).open_tasks == 2


@on("sqlite")
def test_a_signal_and_the_last_task_of_a_traversal_end_together(database: Database) -> None:
    graph = store_graph(database, {"signal": [], "last": []})
    set_task(database, graph.tasks["signal"], kind=TaskKind.SIGNAL, finish_id=None)
    set_traversal(database, graph.number, open_tasks=1)
    ended = [outcome(claim) for claim in claim_all(database, graph.ids)]
    assert step(database, ended).ended == [(graph.stack.id, Status.COMPLETE)]


@on("sqlite")
def test_a_batch_of_different_attempts_is_stored(database: Database) -> None:
    graph = store_graph(database, {"first": [], "again": []})
    _, again = claim_all(database, graph.ids)
    database.write(lambda conn: member_claims.release(conn, [(again.task.id, 1)], now=NOW))
    claim_all(database, graph.ids)
    first, second = (task(database, task_id) for task_id in graph.ids)
    assert (first.attempt, second.attempt) == (1, 2)
    ended = [outcome_of(database, graph, name) for name in graph.tasks]
    assert step(database, ended).ended == [(graph.stack.id, Status.COMPLETE)]


@on("sqlite")
def test_a_traversal_that_was_cancelled_stays_so_when_its_last_task_has_ended(database: Database) -> None:
    graph = store_graph(database, {"one": []})
    [one] = claim_all(database, graph.ids)
    cancelled = {"state": TraversalState.CANCELLED, "due_at": NOW + 9}
    set_traversal(database, graph.number, **cancelled)
    assert step(database, [outcome(one)]).ended == []
    row = traversal_of(database, graph.number)
    assert {"state": row.state, "due_at": row.due_at} == cancelled


@on("sqlite")
def test_of_a_batch_the_traversal_fails_whose_task_has_failed(database: Database) -> None:
    well = store_graph(database, {"one": []})
    badly = store_graph(database, {"done": [], "fails": []})
    claims = claim_all(database, [*well.ids, *badly.ids])
    results = [
        outcome(claim, TaskState.FAILED if claim.resource.name == "fails" else TaskState.DONE)
        for claim in claims
    ]
    hinted = store_graph(database, {"next": []})
    ended = step(database, results, hinted.ids).ended
    assert task(database, hinted.tasks["next"]).state == TaskState.RUNNING
    assert dict(ended) == {well.stack.id: Status.COMPLETE, badly.stack.id: Status.FAILED}


@on("sqlite")
def test_a_successor_that_was_cancelled_is_not_claimed(database: Database) -> None:
    graph = store_graph(database, {"first": [], "next": ["first"]})
    [first] = claim_all(database, [graph.tasks["first"]])
    set_task(database, graph.tasks["next"], state=TaskState.CANCELLED, pending=0)
    done = step(database, [outcome(first)])
    assert (list(done.claims), dict(done.ready)) == ([], {})
