"""A traversal that was superseded, timed out or failed starts nothing more (I1), at any moment."""

import threading
import typing
from collections.abc import Callable
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
    traversal_of,
)
from stoker.db import events, stacks, traversals
from stoker.db.engine import Database
from stoker.db.events import EventQuery
from stoker.db.ids import TaskId, TraversalNumber, WaitsOn
from stoker.db.rows import FailureCause, Task
from stoker.db.schema import tables
from stoker.db.stack_states import ForbiddenTransition
from stoker.db.stacks import DueStack
from stoker.db.states import Status, TaskKind, TaskState, TraversalState
from stoker.db.work import cancel as cancel_requests
from stoker.db.work import (
    carry_over,
    commit,
    due_tasks,
    endings,
    losses,
    member_claims,
    stack_transitions,
    tasks,
)
from stoker.db.work.cancel import cancel_unstarted
from stoker.db.work.claim import Claim
from stoker.engine import cancel

pytestmark = pytest.mark.usefixtures("bystander")

STOPPED = {TaskState.CANCELLED, TaskState.FAILED}


def supersede(conn: sa.Connection, graph: Graph) -> list[Task]:
    """Stop it as the start of a new traversal does, and return the tasks that still run."""
    stack = stacks.lock(conn, graph.stack.id)
    assert stack_transitions.begin(conn, stack, new_id(), action="DELETE")
    cancel_unstarted(conn, stack.id, stack.traversal, now=NOW)
    return tasks.running_of_stack(conn, stack.id)


def time_out(conn: sa.Connection, graph: Graph) -> bool:
    due = DueStack(graph.stack.id, graph.stack.shard, graph.traversal, NOW)
    return bool(cancel.time_out_all(conn, [due], by="a", now=NOW, grace=30.0).stacks)


def park(database: Database, held: Claim) -> None:
    step(database, [outcome(held, TaskState.PARKED, due_at=NOW + 9)], slots=0)


def give_back(database: Database, held: Claim) -> None:
    database.write(lambda conn: member_claims.release(conn, [(held.task.id, held.task.attempt)], now=NOW))


PUT_BACK = pytest.mark.parametrize("put_back", [park, give_back])
PutBack = Callable[[Database, Claim], None]


def test_a_superseded_traversal_gives_nothing_to_claim(database: Database) -> None:
    graph = store_graph(database, {"run": [], "ready": [], "wait": ["run"], "park": [], "hold": []})
    set_task(database, graph.tasks["park"], state=TaskState.PARKED)
    set_task(database, graph.tasks["hold"], state=TaskState.HELD)
    [held] = claim_all(database, [graph.tasks["run"]])
    running = database.write(lambda conn: supersede(conn, graph))
    assert [item.id for item in running] == [held.task.id]
    assert claim_all(database, graph.ids) == []
    # Its result is recorded on the resource, for it is true; but it starts nothing and ends nothing.
    done = step(database, [outcome(held, changes={"physical_id": "p"})], graph.ids)
    assert (done.refused, done.claims, done.ready, done.ended) == ([], [], {}, [])
    assert resource(database, graph.resources["run"]).physical_id == "p"
    assert stack_of(database, graph.stack.id).status == Status.IN_PROGRESS


@on("sqlite")
def test_no_action_of_a_deleted_stack_begins(database: Database) -> None:
    graph = store_graph(database, {}, stack=a_stack(action="DELETE", status=Status.COMPLETE))

    def begin(conn: sa.Connection) -> None:
        stack_transitions.begin(conn, stacks.lock(conn, graph.stack.id), new_id(), action="UPDATE")

    with pytest.raises(ForbiddenTransition):
        database.write(begin)


@PUT_BACK
def test_a_superseded_task_that_is_requeued_is_cancelled_and_its_successor_continues(
    database: Database, put_back: PutBack
) -> None:
    graph = store_graph(database, {"run": []})
    [held] = claim_all(database, graph.ids)
    database.write(lambda conn: supersede(conn, graph))
    newer = replace(held.task, id=TaskId(10**9), traversal=stack_of(database, graph.stack.id).traversal)
    database.write(lambda conn: tasks.insert_many(conn, [waiting(newer)]))
    database.write(lambda conn: tasks.set_successors(conn, held.task.id, [newer.id]))
    put_back(database, held)
    assert task(database, held.task.id).state == TaskState.CANCELLED
    current = resource(database, graph.resources["run"])
    assert (current.status, current.reason) == (Status.FAILED, "CREATE aborted")
    assert task(database, newer.id).state == TaskState.READY


@on("sqlite")
def test_a_superseded_task_that_is_parked_in_a_batch_is_cancelled(database: Database) -> None:
    graph = store_graph(database, {"ends": [], "parks": []})
    ends, parks = claim_all(database, graph.ids)
    database.write(lambda conn: supersede(conn, graph))
    step(database, [outcome(ends), outcome(parks, TaskState.PARKED, due_at=NOW + 9)], slots=0)
    assert [task(database, task_id).state for task_id in graph.ids] == [TaskState.DONE, TaskState.CANCELLED]


@on("sqlite")
def test_a_superseded_task_that_would_wait_for_a_paused_stack_pauses_nothing(database: Database) -> None:
    graph = store_graph(database, {"waits": []})
    nested = store_graph(database, {"held": []}, stack=a_stack(remaining=50.0, parent_id=graph.stack.id))
    [held] = claim_all(database, graph.ids)
    database.write(lambda conn: supersede(conn, graph))
    step(database, [outcome(held, TaskState.PARKED, waits_on=WaitsOn.stack(nested.stack.id))], slots=0)
    assert task(database, held.task.id).state == TaskState.CANCELLED
    assert not traversal_of(database, graph.number).waits_for_paused_children


def waiting(of: Task) -> Task:
    return replace(of, state=TaskState.WAITING, pending=1, attempt=0, member=None, finish_id=None)


@PUT_BACK
def test_a_task_requeued_while_its_traversal_is_superseded_never_starts_again(
    database: Database, put_back: PutBack
) -> None:
    for _ in range(8):
        graph = store_graph(database, {f"r{number}": [] for number in range(4)})
        held = claim_all(database, graph.ids)
        results = together(
            lambda graph=graph: database.write(lambda conn: supersede(conn, graph)),  # type: ignore[misc]
            *(lambda claim=claim: put_back(database, claim) for claim in held),  # type: ignore[misc]
        )
        assert raised(results) == []
        assert {task(database, task_id).state for task_id in graph.ids} == {TaskState.CANCELLED}


@on("postgresql", "mariadb")
@PUT_BACK
def test_who_supersedes_waits_for_a_task_that_is_just_being_requeued(
    database: Database, put_back: PutBack
) -> None:
    """The schedule at which a check on one side alone would miss the other."""
    graph = store_graph(database, {"run": []})
    [held] = claim_all(database, graph.ids)
    stored = threading.Event()
    threads = []

    def put_back_and_supersede(conn: sa.Connection) -> None:
        if put_back is park:
            parked = outcome(held, TaskState.PARKED, due_at=NOW + 9)
            commit.exchange(conn, [parked], [], who=A, now=NOW, slots=0)
        else:
            member_claims.release(conn, [(held.task.id, 1)], now=NOW)
        threads.append(
            threading.Thread(target=lambda: database.write(lambda second_conn: supersede(second_conn, graph)))
        )
        threads[-1].start()
        stored.wait(0.3)  # the other has begun, and waits for this one's row

    database.write(put_back_and_supersede)
    threads[-1].join(120)
    assert task(database, held.task.id).state == TaskState.CANCELLED


@PUT_BACK
def test_a_task_requeued_after_the_stack_timed_out_is_cancelled(
    database: Database, put_back: PutBack
) -> None:
    graph = store_graph(database, {"run": [], "next": ["run"]})
    database.write(lambda conn: set_deadline(conn, graph))
    [held] = claim_all(database, graph.ids)
    assert database.write(lambda conn: time_out(conn, graph))
    put_back(database, held)
    assert {task(database, task_id).state for task_id in graph.ids} == {TaskState.CANCELLED}
    assert stack_of(database, graph.stack.id).reason == "Create timed out"


def set_deadline(conn: sa.Connection, graph: Graph) -> None:
    s = tables.stack
    conn.execute(sa.update(s).where(s.c.id == graph.stack.id).values(deadline_at=NOW))


def test_a_stack_timeout_fires_once_with_many_conductors_trying(database: Database) -> None:
    graph = store_graph(database, {"run": [], "next": ["run"]})
    database.write(lambda conn: set_deadline(conn, graph))
    assert [due.id for due in database.read(lambda conn: stacks.due(conn, NOW, limit=9))] == [graph.stack.id]
    results = together(*(lambda: database.write(lambda conn: time_out(conn, graph)) for _ in range(6)))
    assert sorted(results, key=str) == [False] * 5 + [True]
    query = EventQuery(graph.stack.id, resource_name=graph.stack.name)
    entries = database.read(lambda conn: events.list_events(conn, query))
    assert [(event.status, event.reason) for event, _ in entries] == [("FAILED", "Create timed out")]
    assert database.read(lambda conn: stacks.due(conn, NOW + 999, limit=9)) == []


def test_a_stack_that_has_ended_does_not_end_again(database: Database) -> None:
    graph = store_graph(database, {"run": []})

    def end(conn: sa.Connection) -> endings.Ended:
        ending = endings.StackEnd(graph.stack.id, graph.traversal, stack_transitions.Failure("why"))
        return endings.end_stacks(conn, [ending], by=None, now=NOW)

    assert database.write(end) == endings.Ended({graph.stack.id: Status.FAILED}, traversals={graph.traversal})
    assert database.write(end) == endings.Ended()


def test_a_timeout_and_the_last_task_at_once_end_the_stack_once(database: Database) -> None:
    for _ in range(2):
        graph = store_graph(database, {"run": []})
        database.write(lambda conn, graph=graph: set_deadline(conn, graph))  # type: ignore[misc]
        [held] = claim_all(database, graph.ids)
        results = together(
            lambda graph=graph: database.write(lambda conn: time_out(conn, graph)),  # type: ignore[misc]
            lambda held=held: bool(step(database, [outcome(held)]).ended),  # type: ignore[misc]
        )
        assert sorted(results, key=str) == [False, True]


def test_a_task_parked_behind_a_failure_is_cancelled_and_the_stack_ends(database: Database) -> None:
    graph = store_graph(database, {"bad": [], "busy": []})
    bad, busy = claim_all(database, graph.ids)
    step(database, [outcome(bad, TaskState.FAILED, reason="no quota")])
    done = step(database, [outcome(busy, TaskState.PARKED, due_at=NOW + 3600)])
    assert done.ended == [(graph.stack.id, Status.FAILED)]
    assert resource(database, graph.resources["busy"]).status == Status.FAILED


def test_a_task_parked_at_the_moment_of_a_failure_does_not_keep_the_stack_from_ending(
    database: Database,
) -> None:
    for _ in range(8):
        graph = store_graph(database, {"bad": [], "busy": []})
        bad, busy = claim_all(database, graph.ids)
        failed = outcome(bad, TaskState.FAILED, reason="no quota")
        parked = outcome(busy, TaskState.PARKED, due_at=NOW + 3600)
        results = together(
            lambda failed=failed: step(database, [failed]).ended,  # type: ignore[misc]
            lambda parked=parked: step(database, [parked]).ended,  # type: ignore[misc]
        )
        assert raised(results) == []
        assert sorted(results, key=len) == [[], [(graph.stack.id, Status.FAILED)]]  # type: ignore[arg-type]


def test_a_failure_and_a_parking_in_one_batch_end_the_stack(database: Database) -> None:
    graph = store_graph(database, {"bad": [], "busy": []})
    bad, busy = claim_all(database, graph.ids)
    both = [outcome(busy, TaskState.PARKED, due_at=NOW + 3600), outcome(bad, TaskState.FAILED, reason="no")]
    assert step(database, both).ended == [(graph.stack.id, Status.FAILED)]


def test_tasks_of_a_superseded_traversal_are_purged_but_not_while_one_runs(database: Database) -> None:
    graph = store_graph(database, {"run": [], "idle": []})
    [held] = claim_all(database, [graph.tasks["run"]])
    newest = database.write(lambda conn: supersede(conn, graph))[0].stack_id
    current = stack_of(database, newest).traversal
    stored = traversal_of(database, graph.number)
    newer = replace(stored, id=TraversalNumber(10**9), traversal=current, open_tasks=0)
    database.write(lambda conn: traversals.insert(conn, newer))
    end_of(database, newer.id)
    [old] = [
        item
        for item in database.read(lambda conn: traversals.due(conn, NOW + 60, limit=9))
        if item.id == graph.number
    ]
    assert old.state == TraversalState.CANCELLED
    assert database.write(lambda conn: due_tasks.purge_traversal(conn, graph.traversal)) == 1
    assert task(database, held.task.id).state == TaskState.RUNNING
    assert traversal_of(database, graph.number).due_at == NOW + 120
    step(database, [outcome(held)], who=A)
    assert database.write(lambda conn: due_tasks.purge_traversal(conn, graph.traversal)) == 2
    assert database.read(lambda conn: tasks.of_traversal(conn, graph.traversal)) == []


def end_of(database: Database, number: TraversalNumber) -> None:
    assert database.write(lambda conn: endings.finish(conn, {number: 0}, by=B.host, now=NOW)).stacks


@pytest.mark.parametrize(
    ("kind", "status", "is_replaced", "state"),
    [
        (TaskKind.UPDATE, Status.COMPLETE, False, ("UPDATE", Status.IN_PROGRESS)),
        (TaskKind.UPDATE, Status.FAILED, False, ("CREATE", Status.FAILED)),
        (TaskKind.CLEANUP, Status.COMPLETE, True, ("DELETE", Status.IN_PROGRESS)),
        (TaskKind.CLEANUP, Status.COMPLETE, False, ("CREATE", Status.COMPLETE)),
        (TaskKind.OBSERVE, Status.COMPLETE, False, ("CREATE", Status.COMPLETE)),
    ],
)
def test_a_lost_step_is_shown_where_it_may_have_changed_something(
    database: Database, kind: TaskKind, status: Status, is_replaced: bool, state: tuple[str, Status]
) -> None:
    graph = store_graph(database, {"one": []})
    set_task(database, graph.tasks["one"], kind=kind)
    [held] = claim_all(database, [graph.tasks["one"]])
    r = tables.resource
    values = {"action": "CREATE", "status": status, "replaced_by": held.resource.id if is_replaced else None}
    change = sa.update(r).where(r.c.id == held.resource.id).values(**values)
    database.write(lambda conn: conn.execute(change))
    claims = [(held.task.id, held.task.attempt)]
    database.write(lambda conn: member_claims.release(conn, claims, now=NOW))
    row = resource(database, held.resource.id)
    assert (row.action, row.status) == state


@on("sqlite")
def test_what_is_carried_over_moves_to_the_present_traversal_once_it_has_begun(database: Database) -> None:
    graph = store_graph(database, {"begun": [], "idle": []})
    claimed = [held.task for held in claim_all(database, graph.ids)]
    newer = new_id()
    number = TraversalNumber(10**9)

    def supersede_and_carry_over(conn: sa.Connection) -> None:
        stack = stacks.lock(conn, graph.stack.id)
        assert stack_transitions.begin(conn, stack, newer, action="UPDATE")
        tasks.supersede(conn, claimed, spared=graph.ids)
        stored = traversals.get(conn, graph.number)
        assert stored is not None
        traversals.insert(conn, replace(stored, id=number, traversal=newer, open_tasks=0))
        r = tables.resource
        progress = {"task": graph.tasks["begun"]}
        conn.execute(sa.update(r).where(r.c.id == graph.resources["begun"]).values(progress=progress))

    database.write(supersede_and_carry_over)
    running = [task(database, task_id) for task_id in graph.ids]
    over = database.write(lambda conn: carry_over.superseded_tasks(conn, running))
    assert over == {graph.tasks["idle"]}
    begun, idle = (task(database, task_id) for task_id in graph.ids)
    assert (begun.traversal, begun.finish_id) == (newer, number)
    assert (idle.traversal, idle.finish_id) == (graph.traversal, graph.number)
    assert traversal_of(database, number).open_tasks == 1


@on("sqlite")
@pytest.mark.parametrize(
    ("change", "fails"),
    [({}, True), ({"traversal": "newer"}, False), ({"rollback_at": None}, False)],
    ids=["as expected", "superseded", "not to be rolled back"],
)
def test_a_rollback_that_cannot_be_planned_fails_where_the_stack_is_as_expected(
    database: Database, change: dict[str, typing.Any], fails: bool
) -> None:
    graph = store_graph(database, {"one": []}, stack=a_stack(disable_rollback=False))
    [one] = claim_all(database, graph.ids)
    step(database, [outcome(one, TaskState.FAILED, reason="why")], slots=0)
    waiting = stack_of(database, graph.stack.id)
    assert (waiting.action, waiting.status, waiting.rollback_at) == ("ROLLBACK", Status.IN_PROGRESS, NOW)
    assert (waiting.reason, waiting.deadline_at) == ("Stack ROLLBACK started: why", NOW + 3600)
    assert waiting.traversal != graph.traversal
    assert event_reasons(database, graph)[-1] == waiting.reason
    if change:
        s = tables.stack
        changed = sa.update(s).where(s.c.id == graph.stack.id).values(**change)
        database.write(lambda conn: conn.execute(changed))
    ended = database.write(
        lambda conn: endings.fail_rollback(conn, waiting, "no template", by="a", now=NOW + 1)
    )
    failed = "Stack ROLLBACK started: why; it cannot be rolled back: no template"
    assert ended.stacks == ({graph.stack.id: Status.FAILED} if fails else {})
    assert stack_of(database, graph.stack.id).reason == (failed if fails else waiting.reason)


def event_reasons(database: Database, graph: Graph) -> list[str]:
    query = EventQuery(graph.stack.id, resource_name=graph.stack.name)
    return [event.reason for event, _ in database.read(lambda conn: events.list_events(conn, query))]


@on("sqlite")
@pytest.mark.parametrize("is_superseded", [False, True])
def test_a_released_claim_of_a_superseded_traversal_is_recorded_and_loses_no_conductor(
    database: Database, is_superseded: bool
) -> None:
    graph = store_graph(database, {"one": []})
    [one] = claim_all(database, graph.ids)
    if is_superseded:
        database.write(lambda conn: supersede(conn, graph))
    taken: list[Task] = []
    database.write(
        lambda conn: member_claims.release(
            conn,
            [(one.task.id, one.task.attempt)],
            now=NOW,
            on_taken=lambda _, each: taken.append(each),
            loss=losses.Loss("a", 3),
        )
    )
    stored = task(database, one.task.id)
    assert [each.id for each in taken] == ([one.task.id] if is_superseded else [])
    assert stored.losses == (None if is_superseded else {"hosts": ["a"]})
    expected = (TaskState.CANCELLED, A.member, NOW + cancel_requests.ASK_AGAIN)
    assert ((stored.state, stored.member, stored.due_at) == expected) is is_superseded


@on("sqlite")
def test_a_step_that_was_not_lost_is_not_shown(database: Database) -> None:
    graph = store_graph(database, {"lost": [], "stopped": []}, kind=TaskKind.UPDATE)
    claims = [(held.task.id, held.task.attempt) for held in claim_all(database, graph.ids)]
    lost = [graph.tasks["lost"]]
    database.write(lambda conn: member_claims.release(conn, claims, now=NOW, lost=lost))
    actions = [resource(database, graph.resources[name]).action for name in ("lost", "stopped")]
    assert actions == ["UPDATE", "INIT"]


@on("sqlite")
def test_no_other_stack_that_waits_for_its_rollback_begins_it_again(database: Database) -> None:
    graph = store_graph(database, {"one": []}, stack=a_stack(disable_rollback=False))
    cause = FailureCause("before")
    waiting = a_stack(status=Status.FAILED, failure_cause=cause, rollback_at=NOW, disable_rollback=False)
    database.write(lambda conn: stacks.insert(conn, waiting))
    [one] = claim_all(database, graph.ids)
    step(database, [outcome(one, TaskState.FAILED, reason="why")], slots=0)
    assert stack_of(database, graph.stack.id).action == "ROLLBACK"
    assert stack_of(database, waiting.id) == waiting
