"""Holding, continuing and the clock, on each server, also when several do it at the same moment."""

import pytest
import sqlalchemy as sa
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
    set_traversal,
    stack_of,
    step,
    store_graph,
    task,
    together,
    traversal_of,
)
from services.db.servers import SERVERS
from stoker.db import events, resources
from stoker.db.engine import Database
from stoker.db.events import EventQuery
from stoker.db.ids import TaskId
from stoker.db.rows import Event, ReadyTasks
from stoker.db.schema import tables
from stoker.db.states import Standing, Status, TaskState
from stoker.db.work import breakpoints, cancel, clear_breakpoints, due_tasks, member_claims
from stoker.db.work.clear_breakpoints import Cleared
from stoker.features.diagnosis import inspections

pytestmark = pytest.mark.usefixtures("bystander")

NEEDS: dict[str, list[str]] = {"a": [], "b": ["a"], "c": ["b"], "d": []}


def graph_of(database: Database, **fields: object) -> Graph:
    """A graph whose `b` has a breakpoint, and whose deadline is in 100 seconds."""
    graph = store_graph(database, NEEDS, stack=a_stack(deadline_at=NOW + 100, **fields))
    set_task(database, graph.tasks["b"], hooks={"pre-create": {}})
    return graph


def finish(database: Database, graph: Graph, *names: str, now: float = NOW) -> None:
    claims = claim_all(database, [graph.tasks[name] for name in names], now=now)
    step(database, [outcome(claim) for claim in claims], now=now, slots=0)


def clear(
    database: Database, graph: Graph, *names: str, stepping: bool | None = None, now: float = NOW
) -> Cleared | None:
    ids = [graph.tasks[name] for name in names]
    return database.write(lambda conn: clear_breakpoints.clear(conn, ids, stepping=stepping, by="x", now=now))


def states(database: Database, graph: Graph) -> dict[str, TaskState]:
    return {name: task(database, task_id).state for name, task_id in graph.tasks.items()}


def clock(database: Database, graph: Graph) -> tuple[float | None, float | None]:
    stack = stack_of(database, graph.stack.id)
    return stack.deadline_at, stack.remaining


def test_the_clock_pauses_from_the_end_of_the_last_active_task_until_something_continues(
    database: Database,
) -> None:
    graph = graph_of(database)
    finish(database, graph, "a", now=NOW + 10)
    assert states(database, graph)["b"] == TaskState.HELD
    assert clock(database, graph) == (NOW + 100, None), "d is ready"
    finish(database, graph, "d", now=NOW + 30)
    assert clock(database, graph) == (None, 70)
    assert stack_of(database, graph.stack.id).reason == "CREATE paused at breakpoint: pre-create on b"
    waiting = database.read(lambda conn: inspections.waiting(conn, graph.stack.id, present=(), limit=20))
    since = {task.resource: task.held_since for task in waiting.tasks}
    assert since == {"b": NOW + 10}, "when its breakpoint was reached"
    done = clear(database, graph, "b", now=NOW + 5000)
    assert done is not None
    assert done.ready == {graph.traversal: [graph.tasks["b"]]}
    assert clock(database, graph) == (NOW + 5070, None)
    assert stack_of(database, graph.stack.id).reason == "Stack CREATE started"
    finish(database, graph, "b", "c")
    finish(database, graph, "c")
    assert stack_of(database, graph.stack.id).status == Status.COMPLETE
    assert clock(database, graph) == (None, None)


@on("sqlite")
def test_a_stepped_task_is_held_before_it_begins(database: Database) -> None:
    graph = store_graph(database, {"a": [], "b": ["a"]})
    set_task(database, graph.tasks["b"], stepped=True)
    finish(database, graph, "a")
    assert states(database, graph)["b"] == TaskState.HELD


def test_a_held_task_is_never_claimed(database: Database) -> None:
    graph = graph_of(database)
    [a] = claim_all(database, [graph.tasks["a"]])
    done = step(database, [outcome(a)], slots=9)
    assert (list(done.claims), dict(done.ready)) == ([], {})
    assert claim_all(database, graph.ids) != []
    assert states(database, graph)["b"] == TaskState.HELD
    due = database.read(lambda conn: due_tasks.due(conn, NOW + 1e9, limit=99))
    assert graph.tasks["b"] not in [due_task.id for due_task in due], "it costs no duty anything"


def test_nothing_is_cleared_where_one_of_them_is_not_held(database: Database) -> None:
    graph = graph_of(database)
    finish(database, graph, "a")
    before = {name: task(database, task_id) for name, task_id in graph.tasks.items()}
    assert clear(database, graph, "b", "d") is None
    assert {name: task(database, task_id) for name, task_id in graph.tasks.items()} == before


@on(*SERVERS)
def test_of_many_who_clear_at_once_one_succeeds(database: Database) -> None:
    graph = graph_of(database)
    finish(database, graph, "a", "d")
    results = together(*[lambda: clear(database, graph, "b")] * 6)
    assert raised(results) == []
    assert [result is not None for result in results].count(True) == 1
    stored_events = database.read(lambda conn: events.list_events(conn, EventQuery(graph.stack.id)))
    assert [event.reason for event, _ in stored_events].count("Hook pre-create is cleared") == 1


@on(*SERVERS)
def test_of_two_that_end_the_last_active_tasks_at_once_one_stops_the_clock(database: Database) -> None:
    for _ in range(5):
        graph = graph_of(database)
        [a] = claim_all(database, [graph.tasks["a"]])
        [d] = claim_all(database, [graph.tasks["d"]], B)
        results = together(
            lambda: step(database, [outcome(a)], slots=0),  # noqa: B023
            lambda: step(database, [outcome(d)], who=B, slots=0),  # noqa: B023
        )
        assert raised(results) == []
        assert clock(database, graph) == (None, 100)


@on("sqlite", "postgresql")
def test_steps_mark_all_that_waits(database: Database) -> None:
    graph = graph_of(database)
    finish(database, graph, "a", "d")
    clear(database, graph, "b", stepping=True)
    finish(database, graph, "b")
    assert states(database, graph)["c"] == TaskState.HELD
    assert task(database, graph.tasks["c"]).hook == "pre-create"


def test_a_deletion_that_is_held_behind_its_end_keeps_the_row_until_it_continues(database: Database) -> None:
    graph = store_graph(database, {"a": [], "b": ["a"]})
    set_task(database, graph.tasks["a"], kind="delete", hooks={"post-delete": {}})
    [a] = claim_all(database, [graph.tasks["a"]])
    ending = {"action": "DELETE", "status": Status.COMPLETE, "reason": "gone"}
    result = outcome(a, TaskState.HELD, hook="post-delete", remove=True, changes=ending)
    step(database, [result], slots=0)
    row = resource(database, graph.resources["a"])
    assert (row.action, row.status, row.reason) == ("DELETE", Status.COMPLETE, "gone")
    assert states(database, graph) == {"a": TaskState.HELD, "b": TaskState.WAITING}
    done = clear(database, graph, "a")
    assert done is not None
    assert done.ready == {graph.traversal: [graph.tasks["b"]]}
    with pytest.raises(Exception, match="could not be found"):
        resource(database, graph.resources["a"])
    assert states(database, graph) == {"a": TaskState.DONE, "b": TaskState.READY}


def test_a_superseded_deletion_that_was_held_behind_its_end_leaves_no_row(database: Database) -> None:
    graph = store_graph(database, {"a": []})
    set_task(database, graph.tasks["a"], kind="delete")
    [a] = claim_all(database, [graph.tasks["a"]])
    ending = {"action": "DELETE", "status": Status.COMPLETE, "reason": "gone"}
    step(database, [outcome(a, TaskState.HELD, hook="post-delete", remove=True, changes=ending)], slots=0)
    database.write(lambda conn: cancel.cancel_unstarted(conn, graph.stack.id, graph.traversal, now=NOW))
    with pytest.raises(Exception, match="could not be found"):
        resource(database, graph.resources["a"])


def test_a_breakpoint_may_end_the_action(database: Database) -> None:
    graph = graph_of(database, disable_rollback=False)
    set_task(database, graph.tasks["b"], hooks={"pre-create": {"abort": True}})
    [d] = claim_all(database, [graph.tasks["d"]])
    finish(database, graph, "a")
    assert states(database, graph) == {
        "a": TaskState.DONE,
        "b": TaskState.CANCELLED,
        "c": TaskState.CANCELLED,
        "d": TaskState.RUNNING,
    }
    assert stack_of(database, graph.stack.id).status == Status.IN_PROGRESS
    step(database, [outcome(d)], slots=0)
    stack = stack_of(database, graph.stack.id)
    assert (stack.status, stack.reason, stack.rollback_at) == (
        Status.FAILED,
        "CREATE aborted due to breakpoint on resource b",
        None,
    )


def test_the_end_of_a_breakpoints_time_is_seen_by_the_duty(database: Database) -> None:
    graph = graph_of(database)
    set_task(database, graph.tasks["b"], hooks={"pre-create": {"timeout": 50}})
    finish(database, graph, "a")
    due = database.read(lambda conn: due_tasks.due(conn, NOW + 50, limit=99))
    assert [due_task.id for due_task in due if due_task.state == TaskState.HELD] == [graph.tasks["b"]]

    def lapse(now: float) -> Cleared:
        ids: list[TaskId] = [graph.tasks["b"]]
        return database.write(lambda conn: clear_breakpoints.expire(conn, ids, by="x", now=now))

    assert lapse(NOW + 49).ready == {}
    assert lapse(NOW + 50).ready == {graph.traversal: [graph.tasks["b"]]}
    assert lapse(NOW + 50).ready == {}


def test_a_stacks_reason_names_ten_breakpoints_and_counts_the_others(database: Database) -> None:
    needs: dict[str, list[str]] = {"first": [], **{f"r{n:02}": ["first"] for n in range(13)}}
    graph = store_graph(database, needs)
    for name in needs:
        if name != "first":
            set_task(database, graph.tasks[name], hooks={"pre-create": {}})
    finish(database, graph, "first")
    reason = stack_of(database, graph.stack.id).reason
    assert reason.startswith("CREATE paused at breakpoints: pre-create on r00, pre-create on r01, ")
    assert reason.endswith("pre-create on r09, and 3 more")
    held = database.read(lambda conn: breakpoints.held_of(conn, graph.traversal))
    assert [item.resource_name for item in held] == [f"r{n:02}" for n in range(13)]


def test_a_clock_that_counts_on_does_not_pause(database: Database) -> None:
    graph = graph_of(database)
    set_traversal(database, graph.number, deadline_policy="counts")
    finish(database, graph, "a", "d")
    assert clock(database, graph) == (NOW + 100, None)


def test_a_deadline_that_has_passed_is_not_taken_away(database: Database) -> None:
    graph = graph_of(database)
    finish(database, graph, "a", "d", now=NOW + 100)
    assert clock(database, graph) == (NOW + 100, None)


def test_a_failure_beside_it_cancels_what_is_held(database: Database) -> None:
    graph = graph_of(database)
    [d] = claim_all(database, [graph.tasks["d"]])
    finish(database, graph, "a")
    step(database, [outcome(d, TaskState.FAILED, reason="why")], slots=0)
    assert states(database, graph)["b"] == TaskState.CANCELLED
    stack = stack_of(database, graph.stack.id)
    assert (stack.status, stack.reason, stack.remaining) == (Status.FAILED, "why", None)
    assert traversal_of(database, graph.number).held_tasks == 0


def test_of_many_held_tasks_the_first_are_read(database: Database) -> None:
    graph = store_graph(database, {"a": [], "b": [], "c": [], "d": []})
    for name in ("a", "b", "c"):
        set_task(database, graph.tasks[name], state=TaskState.HELD, hook="pre-create")

    def names(limit: int | None) -> list[str]:
        held = database.read(lambda conn: breakpoints.held_of(conn, graph.traversal, limit=limit))
        return [item.resource_name for item in held]

    assert names(None) == ["a", "b", "c"]
    assert names(2) == ["a", "b"]


def test_breakpoints_of_a_tree_are_listed_from_the_top_with_their_paths(database: Database) -> None:
    """Whatever the order of their ids is."""
    root = store_graph(database, {"x": [], "y": []}, stack=a_stack(id=f"8{new_id()[1:]}"))
    fields = {"live_name": None, "parent_id": root.stack.id, "root_id": root.stack.id, "depth": 1}
    nested = {
        name: store_graph(
            database,
            {"a": []},
            stack=a_stack(id=f"{digit}{new_id()[1:]}", parent_resource_id=root.resources[name], **fields),
        )
        for name, digit in (("x", "f"), ("y", "0"))
    }
    for task_id in (root.tasks["x"], *(graph.tasks["a"] for graph in nested.values())):
        set_task(database, task_id, state=TaskState.HELD, hook="pre-create")
    held, traversals = database.read(lambda conn: breakpoints.held_in_tree(conn, root.stack.id))
    assert [item.path for item in held] == ["x", "x/a", "y/a"]
    graphs = [root, *nested.values()]
    assert list(traversals.items()) == [(graph.traversal, graph.stack.id) for graph in graphs]


def test_only_a_stack_in_progress_names_its_breakpoints(database: Database) -> None:
    graph = store_graph(database, {"a": [], "b": ["a"]})
    set_task(database, graph.tasks["a"], state=TaskState.HELD, hook="pre-create")
    s = tables.stack
    ended = sa.update(s).where(s.c.id == graph.stack.id).values(status=Status.COMPLETE, reason="ended")
    database.write(lambda conn: conn.execute(ended))
    database.write(lambda conn: breakpoints.show_on_stack(conn, graph.stack.id, graph.traversal))
    assert stack_of(database, graph.stack.id).reason == "ended"


@on("sqlite")
@pytest.mark.parametrize(
    ("hooks", "pending"),
    [({"pre-create": {}}, 1), (None, 2)],
    ids=["its successor comes to a breakpoint", "its successor waits for what is held"],
)
def test_the_clock_pauses_when_a_lost_step_of_an_older_traversal_has_ended(
    database: Database, hooks: object, pending: int
) -> None:
    graph = store_graph(
        database, {"old": [], "held": [], "next": ["old"]}, stack=a_stack(deadline_at=NOW + 100)
    )
    set_task(database, graph.tasks["held"], state=TaskState.HELD, hook="pre-create")
    set_task(database, graph.tasks["next"], hooks=hooks, pending=pending)
    set_traversal(database, graph.number, held_tasks=1)
    release_of_older(database, graph, now=NOW + 10)
    assert clock(database, graph) == (None, 90)


@on("sqlite")
def test_the_clock_pauses_when_a_step_of_an_older_traversal_has_ended_among_others(
    database: Database,
) -> None:
    graph = store_graph(
        database, {"old": [], "held": [], "next": ["old"]}, stack=a_stack(deadline_at=NOW + 100)
    )
    set_task(database, graph.tasks["held"], state=TaskState.HELD, hook="pre-create")
    set_task(database, graph.tasks["next"], pending=2)
    set_traversal(database, graph.number, held_tasks=1)
    other = store_graph(database, {"one": []})
    claims = claim_all(database, [graph.tasks["old"], *other.ids])
    older = {"traversal": "older", "standing": Standing.SUPERSEDED, "finish_id": None}
    set_task(database, graph.tasks["old"], **older)
    step(database, [outcome(claim) for claim in claims], now=NOW + 10, slots=0)
    assert clock(database, graph) == (None, 90)


def release_of_older(database: Database, graph: Graph, *, now: float) -> ReadyTasks:
    """Release the claim of `old`, which began for an older traversal of the stack."""
    [old] = claim_all(database, [graph.tasks["old"]])
    older = {"traversal": "older", "standing": Standing.SUPERSEDED, "finish_id": None}
    set_task(database, old.task.id, **older)
    claims = [(old.task.id, old.task.attempt)]
    return database.write(lambda conn: member_claims.release(conn, claims, now=now))


@on("sqlite")
def test_the_successor_of_a_lost_step_of_an_older_traversal_is_ready(database: Database) -> None:
    graph = store_graph(database, {"old": [], "next": ["old"]})
    assert release_of_older(database, graph, now=NOW) == {graph.traversal: [graph.tasks["next"]]}


@on("sqlite")
def test_nothing_is_ready_in_a_traversal_that_a_breakpoint_has_aborted(database: Database) -> None:
    graph = store_graph(database, {"old": [], "ends": ["old"], "free": ["old"]})
    set_task(database, graph.tasks["ends"], hooks={"pre-create": {"abort": True}})
    assert release_of_older(database, graph, now=NOW) == {}


@on("sqlite")
def test_the_first_of_several_breakpoints_aborts_the_action_once(database: Database) -> None:
    graph = store_graph(database, {"a": [], "b": ["a"], "c": ["a"], "free": ["a"], "d": []})
    for name in ("b", "c"):
        set_task(database, graph.tasks[name], hooks={"pre-create": {"abort": True}})
    [a, _] = claim_all(database, [graph.tasks["a"], graph.tasks["d"]])
    done = step(database, [outcome(a)], slots=9)
    assert (list(done.claims), dict(done.ready)) == ([], {})
    traversal = traversal_of(database, graph.number)
    assert (traversal.open_tasks, traversal.held_tasks) == (1, 0), "d still runs"
    stored_events = database.read(lambda conn: events.list_events(conn, EventQuery(graph.stack.id)))
    assert not any("paused until" in event.reason for event, _ in stored_events)


@on("sqlite")
def test_the_end_of_an_action_is_recorded_before_the_breakpoint_that_it_leads_to(database: Database) -> None:
    graph = graph_of(database)
    [a] = claim_all(database, [graph.tasks["a"]])
    ended = Event.at_resource(a.resource, ("CREATE", Status.COMPLETE), "made", NOW)
    step(database, [outcome(a, event=ended)], slots=0)
    stored_events = database.read(lambda conn: events.list_events(conn, EventQuery(graph.stack.id)))
    reasons = [event.reason for event, _ in stored_events]
    assert reasons == ["state changed", "made", "CREATE paused until Hook pre-create is cleared"]


@on("sqlite")
def test_a_task_whose_resource_is_gone_is_not_held(database: Database) -> None:
    graph = graph_of(database)
    database.write(lambda conn: resources.delete_many(conn, [graph.resources["b"]]))
    finish(database, graph, "a")
    assert states(database, graph)["b"] == TaskState.READY


@on("sqlite")
@pytest.mark.parametrize(
    ("hook", "state", "is_there"),
    [
        ("pre-create", TaskState.CANCELLED, True),
        ("post-create", TaskState.DONE, True),
        ("post-delete", TaskState.DONE, False),
    ],
)
def test_a_breakpoint_that_fails_after_its_limit_cancels_the_others(
    database: Database, hook: str, state: TaskState, is_there: bool
) -> None:
    needs: dict[str, list[str]] = {"fails": [], "continues": [], "endless": [], "running": []}
    graph = store_graph(database, needs, stack=a_stack(disable_rollback=False))
    held = {"state": TaskState.HELD, "hook": "pre-create"}
    limits = {"fails": {"timeout": 5, "then": "fail"}, "continues": {"timeout": 5}, "endless": {}}
    for name, options in limits.items():
        due_at = NOW if options else None
        set_task(database, graph.tasks[name], **held, hooks={"pre-create": options}, due_at=due_at)
    set_task(database, graph.tasks["fails"], hook=hook, hooks={hook: limits["fails"]})
    set_traversal(database, graph.number, held_tasks=3)
    [running] = claim_all(database, [graph.tasks["running"]])
    done = database.write(lambda conn: clear_breakpoints.expire(conn, graph.ids, by="x", now=NOW))
    assert done.ready == {}
    ended = {"fails": state, "continues": TaskState.CANCELLED, "endless": TaskState.CANCELLED}
    assert states(database, graph) == {**ended, "running": TaskState.RUNNING}
    rows = database.read(lambda conn: resources.by_ids(conn, graph.resources.values()))
    assert (graph.resources["fails"] in rows, len(rows)) == (is_there, 3 + is_there)
    assert traversal_of(database, graph.number).open_tasks == 1
    step(database, [outcome(running)], slots=0)
    reason = f"{hook.partition('-')[2].upper()} aborted due to breakpoint on resource fails"
    assert stack_of(database, graph.stack.id).reason == reason


@on("sqlite")
def test_a_held_task_continues_although_its_resource_is_gone(database: Database) -> None:
    graph = store_graph(database, {"a": []})
    set_task(database, graph.tasks["a"], state=TaskState.HELD, hook="pre-create")
    set_traversal(database, graph.number, held_tasks=1)
    database.write(lambda conn: resources.delete_many(conn, [graph.resources["a"]]))
    done = clear(database, graph, "a")
    assert done is not None
    assert done.ready == {graph.traversal: graph.ids}
    assert traversal_of(database, graph.number).held_tasks == 0


@on("sqlite")
@pytest.mark.parametrize(
    ("hooks", "ahead"),
    [
        (None, None),
        ({"pre-create": {}}, None),
        ({"pre-create": {}, "post-create": {"timeout": 5}}, {"post-create": {"timeout": 5}}),
    ],
)
def test_a_task_that_continues_has_its_other_breakpoints_ahead(
    database: Database, hooks: object, ahead: object
) -> None:
    graph = store_graph(database, {"a": []})
    set_task(database, graph.tasks["a"], state=TaskState.HELD, hook="pre-create", hooks=hooks)
    assert clear(database, graph, "a") is not None
    stored = task(database, graph.tasks["a"])
    assert (stored.state, stored.hook, stored.hooks) == (TaskState.READY, None, ahead)
