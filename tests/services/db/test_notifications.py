"""The facts that a transaction notifies: ends of stacks, breakpoints, and ends of scalings."""

import pytest
import sqlalchemy as sa
from services.db.rows import NOW, A, Graph, a_stack, claim_all, on, outcome, set_task, store_graph
from stoker.db import events, notifications
from stoker.db.engine import Database
from stoker.db.events import EventQuery
from stoker.db.notifications import Notification
from stoker.db.rows import Outcome
from stoker.db.states import Status, TaskKind, TaskState
from stoker.db.work import clear_breakpoints, endings, member_claims
from stoker.db.work.commit import exchange

pytestmark = [on("sqlite"), pytest.mark.usefixtures("bystander")]


def heard_of(database: Database, *results: Outcome) -> list[Notification]:
    """Store the results of steps; return what that transaction notifies."""

    def store(conn: sa.Connection) -> list[Notification]:
        heard = notifications.collect(conn)
        exchange(conn, results, [], who=A, now=NOW, slots=0)
        return heard

    return database.write(store)


def facts(graph: Graph, heard: list[Notification]) -> list[tuple[str, str, str, str]]:
    assert {one.stack_id for one in heard} <= {graph.stack.id}
    return [(one.kind, one.action, one.status, one.reason) for one in heard]


def test_a_breakpoint_is_notified_when_it_is_reached_and_when_it_is_cleared(database: Database) -> None:
    graph = store_graph(database, {"first": [], "held": ["first"]})
    set_task(database, graph.tasks["held"], hooks={"pre-create": {}})
    [first] = claim_all(database, graph.ids)
    state = ("CREATE", Status.IN_PROGRESS)
    [reached] = heard = heard_of(database, outcome(first))
    assert facts(graph, heard) == [("reached", *state, "CREATE paused until Hook pre-create is cleared")]
    assert reached.at is not None
    assert (reached.at.name, reached.at.hook) == ("held", "pre-create")

    def clear(conn: sa.Connection) -> list[Notification]:
        heard = notifications.collect(conn)
        clear_breakpoints.clear(conn, [graph.tasks["held"]], stepping=None, by="x", now=NOW)
        return heard

    cleared = database.write(clear)
    assert facts(graph, cleared) == [("cleared", *state, "Hook pre-create is cleared")]


@pytest.mark.parametrize(
    ("state", "reason", "expected"),
    [
        (TaskState.DONE, None, [("end", 3, "End resizing the group g")]),
        (TaskState.FAILED, "no quota", [("error", 0, "no quota")]),
        (TaskState.CANCELLED, None, []),
    ],
)
def test_a_scaling_is_notified_when_it_has_ended_by_itself(
    database: Database, state: TaskState, reason: str | None, expected: list[tuple[str, int, str]]
) -> None:
    definition = {
        "metadata": {"group": "g", "kind": "change_in_capacity", "by": 1},
        "properties": {"size": 3, "cooldown": 0},
    }
    graph = store_graph(database, {"group": []}, kind=TaskKind.SCALE, definition=definition)
    set_task(database, graph.tasks["group"], finish_id=None)
    [group] = claim_all(database, graph.ids)
    heard = heard_of(database, outcome(group, state, reason=reason))
    endings = [one.scaling for one in heard if one.scaling is not None]
    assert [(one.ending, one.capacity, one.message) for one in endings] == expected
    assert len(heard) == len(expected)


def test_a_scaling_that_fails_counts_the_members_that_are_left(database: Database) -> None:
    definition = {"metadata": {"group": "g", "kind": "change_in_capacity", "by": 1}}
    graph = store_graph(database, {"group": []}, kind=TaskKind.SCALE, definition=definition)
    group = a_stack(parent_id=graph.stack.id, parent_resource_id=graph.resources["group"], live_name=None)
    members = store_graph(database, {"0": [], "1": [], "2": []}, stack=group)
    scaled, gone = (claim_all(database, ids)[0] for ids in (graph.ids, members.ids[:1]))
    heard = heard_of(database, outcome(gone, remove=True), outcome(scaled, TaskState.FAILED, reason="why"))
    assert [one.scaling.capacity for one in heard if one.scaling is not None] == [2]


def test_a_stack_that_has_failed_is_notified_before_its_rollback(database: Database) -> None:
    graph = store_graph(database, {"one": []}, stack=a_stack(disable_rollback=False))
    [one] = claim_all(database, graph.ids)
    heard = heard_of(database, outcome(one, TaskState.FAILED, reason="why"))
    assert facts(graph, heard) == [
        ("stack", "CREATE", Status.FAILED, "why"),
        ("stack", "ROLLBACK", Status.IN_PROGRESS, "Stack ROLLBACK started: why"),
    ]


def test_a_scaling_that_is_cancelled_is_not_notified_as_ended(database: Database) -> None:
    graph = store_graph(database, {"group": []}, kind=TaskKind.SCALE)
    set_task(database, graph.tasks["group"], finish_id=None, traversal="older")
    [group] = claim_all(database, graph.ids)

    def release(conn: sa.Connection) -> list[Notification]:
        heard = notifications.collect(conn)
        member_claims.release(conn, [(group.task.id, group.task.attempt)], now=NOW)
        return heard

    assert database.write(release) == []


def test_the_start_of_an_action_is_notified(database: Database) -> None:
    graph = store_graph(database, {})

    def begin(conn: sa.Connection) -> list[Notification]:
        heard = notifications.collect(conn)
        endings.record_stack_events(conn, [graph.stack], Status.IN_PROGRESS, "begins", by="x", now=NOW)
        return heard

    assert facts(graph, database.write(begin)) == [("stack", "CREATE", Status.IN_PROGRESS, "")]
    stored_events = database.read(lambda conn: events.list_events(conn, EventQuery(graph.stack.id)))
    assert [event.reason for event, _ in stored_events] == ["begins"]
