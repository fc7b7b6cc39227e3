"""The duties over the slice: what one round does to a row in each state, and tells others."""

import functools
import logging
import typing
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import sqlalchemy as sa
from harness.duties import duty_context
from services.db.rows import (
    NOW,
    A,
    B,
    Graph,
    a_stack,
    claim_all,
    new_id,
    set_task,
    set_traversal,
    stack_of,
    store,
    store_graph,
    store_graphs,
    task,
)
from stoker.conductor.duties.context import DutyContext, DutySettings
from stoker.conductor.duties.orphans import Orphans
from stoker.conductor.duties.registry import DUTIES, make_duties
from stoker.conductor.duties.rollbacks import Rollbacks
from stoker.conductor.duties.stack_purge import StackPurge
from stoker.conductor.duties.stack_timeouts import DEPUTY_AFTER, StackTimeouts
from stoker.conductor.duties.task_counts import TaskCounts
from stoker.conductor.duties.task_due import TaskDue
from stoker.conductor.duties.traversal_purge import TraversalPurge
from stoker.conductor.scheduler import Duty
from stoker.db import content, events
from stoker.db.engine import Database
from stoker.db.ids import MemberId, TaskId, TraversalId
from stoker.db.rows import Event, FailureCause, OrphanedCreate, Stack
from stoker.db.schema import tables
from stoker.db.states import REDELIVER_AFTER, Status, TaskKind, TaskState, TraversalState
from stoker.db.work import losses, orphans
from stoker.observe import metrics
from stoker.observe.metrics import Metric
from stoker.observe.recorder import SILENT

Json = typing.Any
LATE = NOW + 100
GRACE = 30.0
OURS = 7
"""The one shard of our slice."""


class Installation:
    """A conductor among others, whose slice is one shard: its ring, its hints and its metrics.

    :ivar owned: the shards of our slice.
    :ivar substituted: the shards whose owners we substitute for.
    :ivar members: all members of the group.
    :ivar ready, stopped: the tasks that hints name, by what they ask for.
    :ivar counts: what was added to each counter.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.now = LATE
        self.owned = frozenset({OURS})
        self.substituted: frozenset[int] = frozenset()
        self.members = frozenset({A.member})
        self.ready: list[TaskId] = []
        self.stopped: list[tuple[MemberId, TaskId, int]] = []
        self.counts: Counter[Metric] = Counter()

    def context(self, *, keep_events: int = 0, **collaborators: Json) -> DutyContext:
        """Return what the duties get."""
        settings = DutySettings("a", cancel_grace=GRACE, keep_deleted=50.0, keep_events=keep_events)
        own = {"hints": self, "clock": lambda: self.now, "recorder": self, **collaborators}
        return duty_context(self.database, self, settings=settings, **own)

    def rows(self, table: sa.Table) -> int:
        """Return how many rows a table has."""
        query = sa.select(sa.func.count()).select_from(table)
        return int(self.database.read(lambda conn: conn.execute(query).scalar_one()))

    def owns(self, shard: int) -> bool:
        return shard in self.owned

    def is_deputy(self, shard: int) -> bool:
        return shard in self.substituted

    def cancel(self, traversal: TraversalId, spared: Sequence[TaskId] = ()) -> None:
        pass

    def present(self) -> frozenset[MemberId]:
        return self.members

    def run_tasks(self, traversal: TraversalId, task_ids: Sequence[TaskId]) -> None:
        self.ready += task_ids

    def stop_tasks(self, member: MemberId, claims: Sequence[tuple[TaskId, int]]) -> None:
        self.stopped += [(member, task_id, attempt) for task_id, attempt in claims]

    def add(self, metric: Metric, *labels: str, amount: float = 1) -> None:
        self.counts[metric] += int(amount)

    def observe(self, metric: Metric, *labels: str, value: float) -> None:
        pass


@pytest.fixture
def installation(database: Database) -> Installation:
    return Installation(database)


def graph_of(installation: Installation, *names: str, **fields: Json) -> Graph:
    """A stack with a task for each name."""
    return store_graph(installation.database, {name: [] for name in names}, stack=a_stack(**fields))


def damage(installation: Installation, task_id: TaskId) -> None:
    """Make the row of a task one that nobody can read."""
    statement = sa.text("UPDATE task SET successors = '{' WHERE id = :id")
    installation.database.write(lambda conn: conn.execute(statement, {"id": task_id}))


def hinted(installation: Installation, graph: Graph) -> str:
    """The names of the tasks that others were told to run."""
    return " ".join(name for name, task_id in graph.tasks.items() if task_id in installation.ready)


def moments(installation: Installation, graph: Graph) -> dict[str, tuple[str, float | None, float | None]]:
    """For each task its state, and the seconds until it is due, and until its step has to be stopped."""
    rows = {name: task(installation.database, task_id) for name, task_id in graph.tasks.items()}

    def until(moment: float | None) -> float | None:
        return None if moment is None else round(moment - installation.now, 3)

    return {name: (row.state, until(row.due_at), until(row.stop_by)) for name, row in rows.items()}


# -- due tasks -----------------------------------------------------------------------------------------


def test_a_due_task_is_treated_as_its_state_asks_for(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    claimed = {"state": TaskState.RUNNING, "member": A.member, "attempt": 2}
    cancelled = {**claimed, "state": TaskState.CANCELLED, "stop_by": LATE - 9}
    columns: dict[str, dict[str, Json]] = {
        "ready": {"attempt": 1},
        "parked": {"state": TaskState.PARKED, "attempt": 1},
        "expired": claimed,
        "stopping": {**claimed, "stop_by": LATE + 5},
        "nearly": {**claimed, "stop_by": LATE - 0.4},
        "gone": {**claimed, "stop_by": LATE + 5, "member": B.member},
        "silent": {**claimed, "stop_by": LATE - 0.5},
        "cancelled": cancelled,
        "dead": {**cancelled, "member": B.member},
    }
    graph = graph_of(installation, *columns)
    for name, values in columns.items():
        set_task(installation.database, graph.tasks[name], **values)
    TaskDue(installation.context()).run()
    states = moments(installation, graph)
    _, again, _ = states.pop("ready")
    assert again is not None
    assert again > 0
    assert states == {
        "parked": (TaskState.READY, REDELIVER_AFTER, None),
        "expired": (TaskState.RUNNING, GRACE + 0.5, GRACE),
        "stopping": (TaskState.RUNNING, 1.0, 5.0),
        "nearly": (TaskState.RUNNING, 0.1, -0.4),
        "gone": (TaskState.RUNNING, 1.0, 5.0),
        "silent": (TaskState.READY, REDELIVER_AFTER, None),
        "cancelled": (TaskState.CANCELLED, 10.0, -9.0),
        "dead": (TaskState.CANCELLED, None, -9.0),
    }
    assert hinted(installation, graph) == "ready parked silent"
    assert sorted(installation.stopped) == sorted(
        (member, graph.tasks[name], 2)
        for name, member in (("stopping", A.member), ("nearly", A.member), ("gone", B.member),
                             ("cancelled", A.member))
    )  # fmt: skip
    assert installation.counts[metrics.TAKEN_AWAY] == installation.counts[metrics.HINTS_REPEATED] == 1
    stack = f"of stack {graph.stack.name} ({graph.stack.id})"
    assert [message for message in caplog.messages if " stack " in message] == [
        f"Task {graph.tasks['expired']} {stack} reached its resource timeout",
        f"Task {graph.tasks['silent']} {stack} was not stopped in time, and was released from its conductor",
    ]


def test_a_due_task_of_another_slice_is_left_alone(installation: Installation) -> None:
    graph = graph_of(installation, "a", shard=OURS + 1)
    before = moments(installation, graph)
    TaskDue(installation.context()).run()
    assert (moments(installation, graph), installation.ready) == (before, [])


@pytest.mark.parametrize(
    ("stop_by", "stopped", "taken_away", "logged"),
    [
        (None, [], 0, "reached its resource timeout"),
        (LATE + 5, ["b"], 0, None),
        (LATE - 5, [], 1, "was not stopped in time, and was released from its conductor"),
    ],
)
def test_what_has_ended_since_the_page_was_read_is_left_alone_and_not_logged(
    installation: Installation,
    caplog: pytest.LogCaptureFixture,
    stop_by: float | None,
    stopped: list[str],
    taken_away: int,
    logged: str | None,
) -> None:
    caplog.set_level(logging.INFO)
    graph = graph_of(installation, "a", "b")
    for task_id in graph.ids:
        claimed = {"state": TaskState.RUNNING, "member": A.member, "stop_by": stop_by}
        set_task(installation.database, task_id, **claimed)

    class Ending(Installation):
        def owns(self, shard: int) -> bool:
            set_task(self.database, graph.tasks["a"], state=TaskState.DONE, member=None)
            return super().owns(shard)

    ending = Ending(installation.database)
    TaskDue(ending.context()).run()
    assert ending.stopped == [(A.member, graph.tasks[name], 0) for name in stopped]
    assert ending.counts[metrics.TAKEN_AWAY] == taken_away
    text = f"Task {graph.tasks['b']} of stack {graph.stack.name} ({graph.stack.id}) {logged}"
    assert [message for message in caplog.messages if " stack " in message] == ([text] if logged else [])


def test_a_breakpoint_in_each_of_two_stacks_expires(installation: Installation) -> None:
    graphs = store_graphs(installation.database, {"a": [], "b": []}, [a_stack(), a_stack()])
    for graph in graphs:
        set_traversal(installation.database, graph.number, held_tasks=1)
        held = {"state": TaskState.HELD, "hook": "pre-create", "hooks": {"pre-create": {}}}
        set_task(installation.database, graph.tasks["a"], **held)
        set_task(installation.database, graph.tasks["b"], due_at=None)
    TaskDue(installation.context()).run()
    assert sorted(installation.ready) == sorted(graph.tasks["a"] for graph in graphs)


@pytest.mark.parametrize("make", [TaskDue, Orphans])
def test_a_row_that_cannot_be_read_delays_no_other_task_of_its_attempt(
    installation: Installation, make: Callable[[DutyContext], Duty]
) -> None:
    graph = graph_of(installation, "damaged", "b", "c")
    over = {"state": TaskState.RUNNING, "member": B.member, "stop_by": NOW, "due_at": NOW}
    set_task(installation.database, graph.tasks["damaged"], **over)
    damage(installation, graph.tasks["damaged"])
    installation.members |= {MemberId("b/2")}
    duty = make(installation.context())
    duty.run()
    for name in "bc":
        set_task(installation.database, graph.tasks[name], **over)
        duty.run()
        assert task(installation.database, graph.tasks[name]).state == TaskState.READY


def test_what_is_left_out_is_neither_counted_nor_logged_as_released(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    graph = graph_of(installation, "damaged", "b")
    over = {"state": TaskState.RUNNING, "member": B.member, "stop_by": NOW}
    for task_id in graph.ids:
        set_task(installation.database, task_id, **over)
    damage(installation, graph.tasks["damaged"])
    duty = TaskDue(installation.context())
    for _ in range(3):
        duty.run()
    assert installation.counts[metrics.TAKEN_AWAY] == 1
    levels = [record.levelno for record in caplog.records]
    assert levels == [logging.ERROR, logging.WARNING], "one line for each task, in three rounds"


# -- conductors that are gone --------------------------------------------------------------------------


def claimed_by_b(installation: Installation, **fields: Json) -> Graph:
    """A stack whose one task B holds."""
    graph = graph_of(installation, "a", **fields)
    set_task(installation.database, graph.tasks["a"], state=TaskState.RUNNING, member=B.member, attempt=1)
    return graph


def losses_of(installation: Installation, graph: Graph) -> Sequence[str]:
    return losses.hosts(task(installation.database, graph.tasks["a"]))


def test_the_claims_of_a_conductor_that_is_gone_are_released_by_the_owners_of_their_shards(
    installation: Installation,
) -> None:
    graph = claimed_by_b(installation)
    other = claimed_by_b(installation, shard=OURS + 1)
    for orphaned in (graph_of(installation, "a"), graph_of(installation, "a", shard=OURS + 1)):
        [claim] = claim_all(installation.database, orphaned.ids, B)
        orphan = OrphanedCreate(claim.task, claim.resource)
        record = functools.partial(orphans.record, orphan=orphan, now=NOW)
        installation.database.write(record)
        set_task(installation.database, claim.task.id, state=TaskState.CANCELLED, member=None)
    duty = Orphans(installation.context())
    installation.members = frozenset({A.member, B.member})
    duty.run()
    assert installation.ready == []
    installation.members = frozenset({A.member})
    duty.run()
    assert task(installation.database, graph.tasks["a"]).state == TaskState.READY
    assert (losses_of(installation, graph), losses_of(installation, other)) == (("b",), ())
    assert task(installation.database, other.tasks["a"]).state == TaskState.RUNNING
    t = tables.task.c
    deletions = sa.select(t.shard).where(t.kind == TaskKind.DELETE, t.state == TaskState.PARKED)
    assert installation.database.read(lambda conn: conn.execute(deletions).all()) == [(OURS + 1,)]
    assert len(installation.ready) == 2
    assert graph.tasks["a"] in installation.ready
    assert installation.counts[metrics.TAKEOVERS] == 1


def test_hints_that_a_dead_conductor_may_have_had_are_repeated_at_once(installation: Installation) -> None:
    graph = graph_of(installation, "a", "b")
    set_task(installation.database, graph.tasks["a"], state=TaskState.RUNNING, member=B.member, attempt=1)
    set_task(installation.database, graph.tasks["b"], due_at=LATE + 60)
    installation.members |= {MemberId("b/2")}
    Orphans(installation.context()).run()
    assert moments(installation, graph)["b"] == (TaskState.READY, 0.0, None)


def test_a_loss_is_taken_back_once_where_the_process_returns(installation: Installation) -> None:
    graph = claimed_by_b(installation)
    duty = Orphans(installation.context())
    for members, lost_with in (({A, B}, ()), ({A}, ("b",)), ({A}, ("b",)), ({A, B}, ())):
        installation.members = frozenset(one.member for one in members)
        duty.run()
        assert losses_of(installation, graph) == lost_with
    set_task(installation.database, graph.tasks["a"], losses={"hosts": ["b"]})
    duty.run()
    assert losses_of(installation, graph) == ("b",), "a later one is another one"


def test_the_oldest_of_many_losses_is_not_taken_back(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stoker.conductor.duties.orphans.MOST_COUNTED", 1)
    everybody = frozenset({A.member, B.member, MemberId("c/1")})
    graphs = [claimed_by_b(installation), claimed_by_b(installation)]
    set_task(installation.database, graphs[1].tasks["a"], member="c/1")
    duty = Orphans(installation.context())
    for members in (everybody, everybody - {B.member}, {A.member}, everybody):
        installation.members = frozenset(members)
        duty.run()
    assert [losses_of(installation, graph) for graph in graphs] == [("b",), ()]


# -- purges --------------------------------------------------------------------------------------------


def test_finished_traversals_of_the_slice_are_purged_past_those_of_others(installation: Installation) -> None:
    shards = (OURS, OURS + 1, OURS + 1, OURS)
    graphs = store_graphs(installation.database, {"a": []}, [a_stack(shard=shard) for shard in shards])
    for position, graph in enumerate(graphs):
        set_task(installation.database, graph.tasks["a"], state=TaskState.DONE, due_at=None)
        over = {"state": TraversalState.DONE, "due_at": NOW + position}
        set_traversal(installation.database, graph.number, **over)
    TraversalPurge(installation.context(), page=2).run()
    remaining = sa.select(tables.traversal.c.shard)
    assert installation.database.read(lambda conn: conn.execute(remaining).all()) == [(OURS + 1,)] * 2


def test_both_traversals_of_a_page_are_purged(installation: Installation) -> None:
    for graph in store_graphs(installation.database, {"a": []}, [a_stack(), a_stack()]):
        set_task(installation.database, graph.tasks["a"], state=TaskState.DONE, due_at=None)
        set_traversal(installation.database, graph.number, state=TraversalState.DONE, due_at=NOW)
    TraversalPurge(installation.context()).run()
    assert installation.rows(tables.traversal) == installation.rows(tables.task) == 0


def purge(installation: Installation, *owned: int, **settings: Json) -> None:
    """A round of the purge by the owner of some shards."""
    installation.owned = frozenset(owned)
    StackPurge(installation.context(**settings)).run()


def test_deleted_stacks_are_purged_until_a_page_has_none_of_the_slice(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("stoker.conductor.duties.stack_purge.PAGE", 2)
    caplog.set_level(logging.INFO)
    for position, shard in enumerate((7, 7, 8, 7, 8, 8, 7)):
        values = {"action": "DELETE", "status": Status.COMPLETE, "deadline_at": None}
        store(installation.database, a_stack(shard=shard, deleted_at=NOW + position, **values))
    purge(installation, 7)
    s = tables.stack.c
    remaining = sa.select(s.shard).order_by(s.deleted_at)
    assert installation.database.read(lambda conn: list(conn.execute(remaining).scalars())) == [8, 8, 8, 7]
    assert caplog.messages == ["Purged 2 deleted stacks", "Purged 1 deleted stacks"]


def test_old_events_are_removed_from_stacks_of_the_slice_that_had_some_lately(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    ages = {"recent": (OURS, 119.0), "old": (OURS, 121.0), "foreign": (OURS + 1, 1.0)}
    for name, (shard, age) in ages.items():
        stack = store(installation.database, a_stack(name=name, shard=shard))
        fields = {"physical_id": None, "action": "CHECK", "status": "COMPLETE", "reason": ""}
        entry = Event(stack.id, "r", "t", at=LATE - age, **fields)
        entries = [replace(entry, uuid=new_id()) for _ in range(3)]
        add = functools.partial(events.add_many, events=entries)
        installation.database.write(add)
    purge(installation, OURS, keep_events=2)
    s = tables.stack.c
    e = tables.event.c
    query = sa.select(s.name, sa.func.count()).join(tables.event, e.stack_id == s.id).group_by(s.name)
    counts = installation.database.read(lambda conn: dict(map(tuple, conn.execute(query).all())))
    assert counts == {"recent": 2, "old": 3, "foreign": 3}
    assert [message.partition(" (")[0] for message in caplog.messages] == [
        "Removed 1 old events of stack recent"
    ]


@pytest.mark.parametrize("owned", [0, OURS])
def test_what_belongs_to_no_stack_is_purged_by_the_owner_of_the_first_shard(
    installation: Installation, caplog: pytest.LogCaptureFixture, owned: int
) -> None:
    caplog.set_level(logging.INFO)
    long_ago = LATE - content.KEEP_UNUSED - 1
    installation.database.write(lambda conn: content.put(conn, {"n": 1}, long_ago))
    unused_at = {"old": LATE - 86400.5, "recent": LATE - 86399.5, "used": None}
    rows = [
        {"server_id": name, "project_id": "p", "changed_at": NOW, "unused_at": at}
        for name, at in unused_at.items()
    ]
    installation.database.write(lambda conn: conn.execute(sa.insert(tables.software_server), rows))
    purge(installation, owned)
    remaining = (installation.rows(tables.content), installation.rows(tables.software_server))
    assert remaining == ((0, 2) if owned == 0 else (1, 3))
    assert caplog.messages == (
        [
            "Removed 1 templates that no stack uses",
            "Removed 1 servers that have no software deployment any more",
        ]
        if owned == 0
        else []
    )
    caplog.clear()
    purge(installation, owned)
    assert caplog.messages == []


# -- stacks that failed --------------------------------------------------------------------------------


def test_a_timeout_is_logged(installation: Installation, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    graph = graph_of(installation, "a", deadline_at=NOW)
    for _ in range(2):
        StackTimeouts(installation.context()).run()
    assert caplog.messages == [f"Stack {graph.stack.name} ({graph.stack.id}) timed out"]


def test_a_deputy_leaves_the_owner_two_rounds_to_end_a_stack(installation: Installation) -> None:
    graph = graph_of(installation, "a", deadline_at=NOW, shard=OURS + 1)
    installation.substituted = frozenset({OURS + 1})
    deputy = StackTimeouts(installation.context())
    installation.now = NOW + 2 * StackTimeouts.interval - 0.01
    for status in (Status.IN_PROGRESS, Status.FAILED):
        deputy.run()
        assert stack_of(installation.database, graph.stack.id).status == status
        installation.now = NOW + DEPUTY_AFTER


def test_a_stack_that_cannot_be_read_is_not_rolled_back_and_logged_once(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    stack = store(installation.database, a_stack(status=Status.FAILED, rollback_at=NOW))
    duty = Rollbacks(installation.context())
    duty.run()
    duty.run()
    assert [message.partition(",")[0] for message in caplog.messages] == [
        f"Stack {stack.id} is not rolled back"
    ]


@pytest.mark.parametrize("begins", [True, False])
def test_a_rollback_that_begins_is_logged(
    installation: Installation, caplog: pytest.LogCaptureFixture, begins: bool
) -> None:
    caplog.set_level(logging.INFO)
    failure = {"status": Status.FAILED, "failure_cause": FailureCause("no", "X", "r"), "rollback_at": NOW}
    stack = store(installation.database, a_stack(**failure))
    store(installation.database, a_stack(**failure, shard=OURS + 1))
    rolled_back: list[str] = []

    def roll_back(row: Stack) -> bool:
        rolled_back.append(row.id)
        return begins

    Rollbacks(installation.context(roll_back=roll_back)).run()
    assert rolled_back == [stack.id]
    assert caplog.messages == ([f"Rolling back stack {stack.name} ({stack.id})"] if begins else [])


# -- all of them ---------------------------------------------------------------------------------------


def test_tasks_are_counted_where_metrics_are_collected(installation: Installation) -> None:
    graph_of(installation, "a", "b")
    graph_of(installation, "c", shard=OURS + 1)
    duties = make_duties(installation.context())
    assert duties.keys() == DUTIES.keys()
    counts = duties["Census"]
    assert isinstance(counts, TaskCounts)
    counts.run()
    assert {sample.labels: sample.value for sample in counts.samples()} == {
        (state,): 2 if state == TaskState.READY else 0 for state in TaskState
    }
    assert DUTIES.keys() - make_duties(installation.context(recorder=SILENT)).keys() == {"Census"}
