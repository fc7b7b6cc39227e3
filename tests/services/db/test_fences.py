"""Each statement changes or reads the rows that meet all of its conditions, and none that fails one."""

import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import pytest
import sqlalchemy as sa
from services.db.rows import (
    NOW,
    A,
    B,
    Graph,
    a_snapshot,
    a_stack,
    resource,
    set_task,
    set_traversal,
    stack_of,
    store_graph,
    task,
    traversal_of,
)
from stoker.db import snapshots
from stoker.db.engine import Database
from stoker.db.ids import StackId, TaskId, TraversalId, TraversalNumber
from stoker.db.rows import FailureCause, Task
from stoker.db.schema import tables
from stoker.db.states import REDELIVER_AFTER, Standing, Status, TaskKind, TaskState
from stoker.db.work import (
    cancel,
    carry_over,
    countdown,
    due_tasks,
    losses,
    member_claims,
    orphans,
    tasks,
)
from stoker.db.work.carry_over import RequeueRequest
from stoker.db.work.countdown import FinishedTask

pytestmark = pytest.mark.usefixtures("bystander")

Columns = Mapping[str, typing.Any]
RUNS: Columns = {"state": TaskState.RUNNING, "member": A.member, "attempt": 1, "stop_by": None}
"""A claim of the member A."""
CANCELLED: Columns = {**RUNS, "state": TaskState.CANCELLED}
ANOTHER: Columns = {"attempt": 2}
OF_ANOTHER: Columns = {"member": B.member}
PARKED: Columns = {"state": TaskState.PARKED}
SHORT = 0.2


def claims(ids: Sequence[TaskId]) -> list[tuple[TaskId, int]]:
    return [(task_id, 1) for task_id in ids]


def rows(conn: sa.Connection, ids: Sequence[TaskId]) -> list[Task]:
    stored = [tasks.get(conn, task_id) for task_id in ids]
    return [row for row in stored if row is not None]


def announce(conn: sa.Connection, ids: Sequence[TaskId]) -> None:
    for row in rows(conn, ids):
        losses.announce(conn, replace(row, attempt=1), A.member)


@dataclass(frozen=True)
class Fence:
    """A statement.

    :ivar run: executes it for the tasks that are named.
    :ivar meets: columns of a task that meets all conditions.
    :ivar fails: columns of tasks of which each fails one of them, though it is named, too.
    :ivar changes: what becomes of the first one.
    """

    run: Callable[[sa.Connection, Sequence[TaskId]], object]
    meets: Columns
    fails: Sequence[Columns]
    changes: Columns


def count_down(conn: sa.Connection, ids: Sequence[TaskId]) -> None:
    ended = FinishedTask(replace(rows(conn, ids)[0], successors=ids, finish_id=None))
    assert countdown.count_successors(conn, [ended], now=NOW) == []


ASKED = {"stop_by": NOW + 60, "due_at": NOW + cancel.ASK_AGAIN}
FENCES = {
    "ask to stop": Fence(
        lambda conn, ids: cancel.ask_to_stop(conn, ids, now=NOW, stop_by=NOW + 60),
        RUNS,
        [PARKED, CANCELLED, {"stop_by": NOW - 1}],
        ASKED,
    ),
    "ask to stop at once": Fence(
        lambda conn, ids: cancel.ask_to_stop(conn, ids, now=NOW, stop_by=NOW + SHORT),
        RUNS,
        [],
        {"stop_by": NOW + SHORT, "due_at": NOW + SHORT + cancel.MARGIN},
    ),
    "expire": Fence(
        lambda conn, ids: cancel.expire(conn, claims(ids), now=NOW, grace=30.0),
        RUNS,
        [ANOTHER, CANCELLED, {"stop_by": NOW}],
        {"stop_by": NOW + 30, "due_at": NOW + 30 + cancel.MARGIN},
    ),
    "ask again": Fence(
        lambda conn, ids: cancel.postpone(conn, claims(ids), now=NOW),
        {**RUNS, "stop_by": NOW + 60},
        [ANOTHER, {"member": None}, PARKED],
        {"due_at": NOW + cancel.ASK_AGAIN},
    ),
    "ask once more before the end": Fence(
        lambda conn, ids: cancel.postpone(conn, claims(ids), now=NOW),
        {**RUNS, "stop_by": NOW + SHORT},
        [],
        {"due_at": NOW + SHORT + cancel.MARGIN},
    ),
    "ask again, for the end is as near": Fence(
        lambda conn, ids: cancel.postpone(conn, claims(ids), now=NOW),
        {**RUNS, "stop_by": NOW + cancel.ASK_AGAIN},
        [],
        {"due_at": NOW + cancel.ASK_AGAIN},
    ),
    "ask for what is cancelled": Fence(
        lambda conn, ids: cancel.postpone(conn, claims(ids), now=NOW),
        {**CANCELLED, "stop_by": NOW},
        [],
        {"due_at": NOW + cancel.ASK_RARELY},
    ),
    "answered": Fence(
        lambda conn, ids: cancel.answered(conn, claims(ids), A.member),
        CANCELLED,
        [ANOTHER, OF_ANOTHER, RUNS],
        {"member": None, "due_at": None},
    ),
    "announce a step": Fence(
        announce, RUNS, [ANOTHER, OF_ANOTHER, PARKED], {"losses": {"hosts": [], "step": 1}}
    ),
    "count a loss": Fence(
        lambda conn, ids: losses.count(conn, rows(conn, ids), losses.Loss("a", 3)),
        {"losses": {"hosts": ["b"]}},
        [{"losses": {"hosts": ["b", "b"]}}],
        {"losses": {"hosts": ["b", "a"]}},
    ),
    "count the last loss, of an announced step": Fence(
        lambda conn, ids: losses.count(conn, rows(conn, ids), losses.Loss("a", 3)),
        {"attempt": 1, "losses": {"hosts": ["b", "b"], "step": 1}},
        [ANOTHER, {"losses": {"hosts": ["b", "b", "b"], "step": 1}}],
        {"losses": {"hosts": ["b", "b", "a"]}},
    ),
    "forgive one loss of several": Fence(
        lambda conn, ids: losses.forgive(conn, ids, "a"),
        {"losses": {"hosts": ["a", "a"], "step": 1}},
        [],
        {"losses": {"hosts": ["a"], "step": 1}},
    ),
    "forgive the only loss": Fence(
        lambda conn, ids: losses.forgive(conn, ids, "a"), {"losses": {"hosts": ["a"]}}, [], {"losses": None}
    ),
    "forgive a loss": Fence(
        lambda conn, ids: losses.forgive(conn, ids, "a"),
        {"losses": {"hosts": ["a", "b"]}},
        [{"losses": None}, {"losses": {"hosts": ["b"]}}],
        {"losses": {"hosts": ["b"]}},
    ),
    "forget the losses of a member": Fence(
        lambda conn, ids: losses.forget(conn, ids, A.member),
        {**RUNS, "losses": {"hosts": ["a"]}},
        [OF_ANOTHER],
        {"losses": None},
    ),
    "hint again": Fence(
        lambda conn, ids: due_tasks.restart_hints(conn, ids, now=NOW),
        {"state": TaskState.READY, "redelivered": 3, "due_at": NOW + 99},
        [{"state": TaskState.RUNNING}, PARKED],
        {"redelivered": 0, "due_at": NOW + REDELIVER_AFTER},
    ),
    "count down": Fence(
        count_down,
        {"state": TaskState.WAITING, "pending": 3},
        [RUNS, {"state": TaskState.HELD}],
        {"pending": 2},
    ),
    "supersede": Fence(
        lambda conn, ids: tasks.supersede(conn, rows(conn, ids), spared=()),
        RUNS,
        [],
        {"standing": Standing.SUPERSEDED},
    ),
    "spare": Fence(
        lambda conn, ids: tasks.supersede(conn, rows(conn, ids), spared=ids),
        RUNS,
        [],
        {"standing": Standing.CARRIED_OVER},
    ),
    "inherit": Fence(
        lambda conn, ids: tasks.inherit(conn, ids, TraversalNumber(9)),
        RUNS,
        [],
        {"standing": Standing.CARRIED_OVER, "finish_id": 9},
    ),
}


def stored(database: Database, meets: Columns, fails: Sequence[Columns]) -> Graph:
    """Store a task that meets the conditions, one more that is not named, and those that fail them."""
    names = ["meets", "unnamed", *(f"fails {number}" for number in range(len(fails)))]
    graph = store_graph(database, dict.fromkeys(names, ()))
    for name, columns in zip(names, [{}, {}, *fails], strict=True):
        set_task(database, graph.tasks[name], **{**meets, **columns})
    return graph


@pytest.mark.parametrize("fence", FENCES.values(), ids=FENCES)
def test_a_statement_changes_what_meets_all_of_its_conditions(database: Database, fence: Fence) -> None:
    graph = stored(database, fence.meets, fence.fails)
    before = {name: task(database, task_id) for name, task_id in graph.tasks.items()}
    named = [task_id for name, task_id in graph.tasks.items() if name != "unnamed"]
    database.write(lambda conn: fence.run(conn, named))
    changed = {
        name: {key: value for key, value in task(database, task_id).to_row().items() if value != was[key]}
        for name, task_id in graph.tasks.items()
        if (was := before[name].to_row())
    }
    assert changed == {**dict.fromkeys(graph.tasks, {}), "meets": fence.changes}


@dataclass(frozen=True)
class Query:
    """A query for the tasks of a stack.

    :ivar run: returns the tasks, or their number.
    :ivar meets: columns of two tasks that it finds.
    :ivar fails: columns of tasks of which each fails one of its conditions.
    """

    run: Callable[[sa.Connection, Graph], object]
    meets: Columns
    fails: Sequence[Columns]


def ids(found: typing.Any) -> list[TaskId]:
    return [row.id for row in found]


def purged(conn: sa.Connection, graph: Graph) -> list[TaskId]:
    due_tasks.purge_traversal(conn, graph.traversal)
    remaining = {row.id for row in tasks.of_traversal(conn, graph.traversal)}
    return [task_id for task_id in graph.ids if task_id not in remaining]


def cancelled_behind_failure(conn: sa.Connection, graph: Graph) -> list[TaskId]:
    count = cancel.cancel_behind_failure(conn, graph.traversal, now=NOW)
    cancelled = [row.id for row in rows(conn, graph.ids) if row.state == TaskState.CANCELLED]
    assert count == len(cancelled)
    return cancelled


NESTED_STACKS = [StackId("1"), StackId("2")]
CHECK = {"kind": TaskKind.CHECK}
DONE = {"state": TaskState.DONE}
QUERIES = {
    "running of a stack": Query(
        lambda conn, graph: ids(tasks.running_of_stack(conn, graph.stack.id)), RUNS, [PARKED, DONE]
    ),
    "running of a stack, without a lock": Query(
        lambda conn, graph: ids(tasks.running_of_stack(conn, graph.stack.id, lock=False)), RUNS, [PARKED]
    ),
    "running of an action": Query(
        lambda conn, graph: ids(tasks.lock_running(conn, [graph.stack.id])),
        RUNS,
        [PARKED, {"kind": TaskKind.SIGNAL}],
    ),
    "begun of a traversal": Query(
        lambda conn, graph: ids(tasks.begun_of_traversal(conn, graph.traversal)),
        {**PARKED, "attempt": 1},
        [{"attempt": 0}, RUNS, {"traversal": "another"}, {"due_at": None, "waits_on": "stack:another"}],
    ),
    "begun of a traversal, ready": Query(
        lambda conn, graph: ids(tasks.begun_of_traversal(conn, graph.traversal)),
        {"state": TaskState.READY, "attempt": 1, "due_at": None},
        [],
    ),
    "of a traversal": Query(
        lambda conn, graph: ids(tasks.of_traversal(conn, graph.traversal)), DONE, [{"traversal": "another"}]
    ),
    "claims of a member": Query(
        lambda conn, graph: sorted(task_id for task_id, *_ in tasks.claimed_by(conn, A.member)),
        RUNS,
        [OF_ANOTHER, {"state": TaskState.CANCELLED}],
    ),
    "claims that hold": Query(
        lambda conn, graph: [task_id for task_id, _ in member_claims.still_claimed(conn, claims(graph.ids))],
        RUNS,
        [ANOTHER, PARKED],
    ),
    "not answered for": Query(
        lambda conn, graph: [graph.tasks[each.resource] for each in cancel.unanswered(conn, graph.stack.id)],
        {**RUNS, "stop_by": NOW},
        [{"stop_by": None}, {"member": None}],
    ),
    "not started": Query(
        lambda conn, graph: ids(cancel.lock_unstarted(conn, [graph.traversal])),
        PARKED,
        [RUNS, DONE, {"traversal": "another"}],
    ),
    "cancelled behind a failure": Query(cancelled_behind_failure, PARKED, [{"waits_on": "stack:1"}, RUNS]),
    "cancelled behind a failure, though a signal may come": Query(
        cancelled_behind_failure, {**PARKED, "waits_on": "resource:1"}, []
    ),
    "begun, and waits for a nested stack that runs": Query(
        lambda conn, graph: ids(tasks.begun_of_traversal(conn, graph.traversal)),
        {**PARKED, "attempt": 1, "waits_on": "stack:another"},
        [],
    ),
    "woken because they are due": Query(
        lambda conn, graph: due_tasks.wake_due(conn, due_tasks.due(conn, NOW, limit=99), now=NOW),
        {**PARKED, "due_at": NOW - 1},
        [{"state": TaskState.READY}, RUNS, {"due_at": NOW + 1}],
    ),
    "woken by a person": Query(
        lambda conn, graph: due_tasks.wake_parked(conn, graph.ids, now=NOW)[graph.traversal],
        {**PARKED, "due_at": NOW + 99},
        [{"state": TaskState.READY}, RUNS, {"state": TaskState.HELD}],
    ),
    "woken for nested stacks": Query(
        lambda conn, graph: due_tasks.wake_for_stacks(conn, NESTED_STACKS, now=NOW)[graph.traversal],
        {**PARKED, "waits_on": "stack:2"},
        [{"waits_on": "stack:3"}, {"waits_on": "resource:2"}, {"waits_on": None}],
    ),
    "of a member's detached steps": Query(
        lambda conn, graph: sorted(task_id for task_id, _ in orphans.of_member(conn, A.member)),
        {**PARKED, "member": A.member},
        [OF_ANOTHER, RUNS],
    ),
    "without a step": Query(
        lambda conn, graph: orphans.without_step(conn, [(TaskId(7), 2)], now=NOW)[graph.traversal],
        {**PARKED, "waits_on": "step:7:2"},
        [{"waits_on": "step:7:1"}, {"waits_on": None}],
    ),
    "purged": Query(
        lambda conn, graph: purged(conn, graph),
        {**DONE, "member": None},
        [{"state": TaskState.READY}, PARKED, {"state": TaskState.HELD}, {**CANCELLED, "member": A.member}],
    ),
    "not started, and others": Query(
        lambda conn, graph: ids(cancel.lock_unstarted(conn, [], graph.ids[:2])), RUNS, [RUNS]
    ),
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_query_finds_what_meets_all_of_its_conditions(database: Database, query: Query) -> None:
    graph = stored(database, query.meets, query.fails)
    assert database.write(lambda conn: query.run(conn, graph)) == graph.ids[:2]


@pytest.mark.parametrize(
    ("columns", "unfinished", "unclaimed"),
    [
        ({"state": TaskState.READY}, 1, True),
        (PARKED, 1, True),
        (RUNS, 1, False),
        (DONE, 0, False),
        ({"state": TaskState.READY, **CHECK}, 0, False),
        ({"state": TaskState.READY, "resource_id": 1}, 0, False),
    ],
)
def test_the_tasks_of_a_resource_are_those_of_its_kind(
    database: Database, columns: Columns, unfinished: int, unclaimed: bool
) -> None:
    graph = store_graph(database, {"own": [], "other": []})
    own = graph.stack.id, graph.resources["own"], TaskKind.CREATE
    set_task(database, graph.tasks["own"], **columns)
    assert database.read(lambda conn: tasks.unfinished_of(conn, *own)) == unfinished
    assert database.read(lambda conn: tasks.is_unclaimed(conn, *own)) is unclaimed


@pytest.mark.parametrize(
    ("columns", "is_there"), [(RUNS, True), (DONE, False), ({"state": TaskState.READY}, True)]
)
def test_a_task_that_has_not_ended_is_found(database: Database, columns: Columns, is_there: bool) -> None:
    graph = store_graph(database, {"one": [], "two": []})
    second = graph.tasks["two"]
    set_task(database, second, **columns)
    found = database.read(lambda conn: tasks.find_unfinished(conn, second))
    assert (found is not None and found.id) == (second if is_there else False)


def test_hints_are_hastened_of_what_is_ready_and_not_due(database: Database) -> None:
    later = {"due_at": NOW + 9}
    graph = stored(database, {"state": TaskState.READY, **later}, [RUNS, PARKED, {"due_at": NOW - 1}])
    assert database.write(lambda conn: due_tasks.hasten_hints(conn, [graph.traversal], now=NOW)) == 2
    moments = [task(database, task_id).due_at for task_id in graph.ids]
    assert moments == [NOW, NOW, NOW + 9, NOW + 9, NOW - 1]


def test_a_task_that_is_carried_over_moves_and_the_others_are_cancelled(database: Database) -> None:
    begun = {**PARKED, "attempt": 1, "losses": {"hosts": ["a"]}}
    graph = stored(database, begun, [{"state": TaskState.WAITING}])
    newer = cancel.CarryOver(TraversalId("newer"), [graph.ids[0], graph.ids[2]])
    carried = database.write(
        lambda conn: cancel.cancel_unstarted(conn, graph.stack.id, graph.traversal, now=NOW, carry_over=newer)
    )
    rows = [task(database, task_id) for task_id in graph.ids]
    assert carried == graph.ids[:1], "what has not begun is planned anew"
    assert (rows[0].traversal, rows[0].state, rows[0].losses) == ("newer", TaskState.PARKED, None)
    assert {(row.traversal, row.state) for row in rows[1:]} == {(graph.traversal, TaskState.CANCELLED)}


@pytest.mark.parametrize(
    ("status", "is_over"), [(Status.IN_PROGRESS, False), (Status.COMPLETE, True), (Status.FAILED, True)]
)
def test_a_deletion_of_a_snapshot_continues_until_it_ends(
    database: Database, status: Status, is_over: bool
) -> None:
    graph = store_graph(database, {"one": []}, kind=TaskKind.DELETE_SNAPSHOT)
    stack = graph.stack
    snapshot = a_snapshot(stack, action="DELETE", status=status)
    database.write(lambda conn: snapshots.insert(conn, stack, snapshot))
    set_task(database, graph.ids[0], **RUNS, traversal=snapshot.traversal)
    own = stack.id, snapshot.traversal
    assert database.read(lambda conn: cancel.stopped(conn, [own])) == ({own} if is_over else set())
    over = database.write(lambda conn: carry_over.superseded_tasks(conn, rows(conn, graph.ids)))
    assert over == (set(graph.ids) if is_over else set())


def test_newer_traversals_are_those_whose_tasks_wait_for_superseded_ones(database: Database) -> None:
    older, newer, _ = (store_graph(database, {"one": []}) for _ in range(3))
    [row] = [replace(task(database, older.ids[0]), successors=newer.ids)]
    left = replace(row, standing=Standing.SUPERSEDED)
    assert database.read(lambda conn: countdown.newer_traversals(conn, [left])) == {newer.number}
    assert database.read(lambda conn: countdown.newer_traversals(conn, [row])) == set()


@dataclass(frozen=True)
class Beside:
    """A task beside one that is held: whether the stack's deadline pauses."""

    columns: Columns
    pauses: bool


BESIDE = {
    "ready": Beside({"state": TaskState.READY}, False),
    "running": Beside(RUNS, False),
    "parked until later": Beside({**PARKED, "due_at": NOW + 9}, False),
    "parked for a resource": Beside({**PARKED, "waits_on": "resource:1"}, False),
    "parked for a nested stack that is gone": Beside({**PARKED, "waits_on": "stack:gone"}, True),
    "done": Beside(DONE, True),
    "running for an older traversal": Beside({**RUNS, "traversal": "older"}, False),
    "ended in an older traversal": Beside({**DONE, "traversal": "older"}, True),
    "a signal": Beside({**RUNS, "traversal": "s", "kind": TaskKind.SIGNAL}, True),
    "a group that scales": Beside({**RUNS, "traversal": "s", "kind": TaskKind.SCALE}, False),
    "the deletion of a snapshot": Beside({**RUNS, "traversal": "s", "kind": TaskKind.DELETE_SNAPSHOT}, True),
    "the deletion of a snapshot that the stack's own took over": Beside(
        {
            **RUNS,
            "traversal": "s",
            "kind": TaskKind.DELETE_SNAPSHOT,
            "standing": Standing.CARRIED_OVER,
        },
        False,
    ),
}


@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE)
def test_a_deadline_pauses_where_nothing_runs_that_the_stack_waits_for(
    database: Database, beside: Beside
) -> None:
    graph = store_graph(database, {"held": [], "beside": []}, stack=a_stack(deadline_at=NOW + 100))
    set_task(database, graph.tasks["held"], state=TaskState.HELD, hook="pre-create")
    set_task(database, graph.tasks["beside"], **beside.columns)
    set_traversal(database, graph.number, held_tasks=1)
    database.write(lambda conn: countdown.pause_deadline(conn, graph.number, now=NOW + 10))
    stack = stack_of(database, graph.stack.id)
    assert (stack.deadline_at, stack.remaining) == ((None, 90) if beside.pauses else (NOW + 100, None))


def set_row(database: Database, table: sa.Table, row_id: object, **values: object) -> None:
    database.write(lambda conn: conn.execute(sa.update(table).where(table.c.id == row_id).values(**values)))


@pytest.mark.parametrize(("columns", "holds"), [({}, True), (ANOTHER, False), (PARKED, False)])
def test_an_announced_step_begins_where_its_claim_holds(
    database: Database, columns: Columns, holds: bool
) -> None:
    graph = store_graph(database, {"one": []})
    set_task(database, graph.ids[0], **RUNS)
    claimed = task(database, graph.ids[0])
    set_task(database, graph.ids[0], **{**RUNS, **columns})
    assert database.write(lambda conn: losses.announce(conn, claimed, A.member)) is holds


@pytest.mark.parametrize(
    ("attempt", "status", "is_aborted"),
    [(1, Status.IN_PROGRESS, True), (0, Status.IN_PROGRESS, False), (1, Status.COMPLETE, False)],
)
def test_a_resource_is_shown_as_aborted_whose_action_has_begun(
    database: Database, attempt: int, status: Status, is_aborted: bool
) -> None:
    graph = store_graph(database, {"one": []})
    set_task(database, graph.ids[0], attempt=attempt)
    set_row(database, tables.resource, graph.resources["one"], action="CREATE", status=status)
    database.write(lambda conn: cancel.cancel_unstarted(conn, graph.stack.id, graph.traversal, now=NOW + 1))
    row = resource(database, graph.resources["one"])
    aborted = (Status.FAILED, "CREATE aborted", True, NOW + 1)
    is_shown = (row.status, row.reason, row.cancelled, row.updated_at) == aborted
    assert (task(database, graph.ids[0]).state, is_shown) == (TaskState.CANCELLED, is_aborted)


FAILED: Columns = {"failure": "why", "failure_cause": asdict(FailureCause("why"))}
RUNNING: Columns = {"reason": "started"}
SUPERSEDED: Columns = {"traversal": "newer"}
ENDED: Columns = {"status": Status.COMPLETE}
NESTED = "nested"


@pytest.mark.parametrize(
    ("kind", "change", "is_over"),
    [
        (TaskKind.CREATE, RUNNING, False),
        (TaskKind.CREATE, FAILED, True),
        (NESTED, FAILED, False),
        (TaskKind.CHECK, FAILED, False),
        (TaskKind.CREATE, ENDED, True),
        (NESTED, ENDED, True),
        (TaskKind.CHECK, ENDED, True),
        (TaskKind.SCALE, ENDED, False),
        (TaskKind.SIGNAL, ENDED, False),
        (TaskKind.CREATE, SUPERSEDED, True),
        (TaskKind.SCALE, SUPERSEDED, True),
        (TaskKind.SIGNAL, SUPERSEDED, False),
    ],
)
def test_a_claimed_task_waits_again_unless_its_traversal_is_over(
    database: Database, kind: str, change: Columns, is_over: bool
) -> None:
    graph = store_graph(database, {"one": [], "beside": []})
    one, beside = graph.ids
    set_task(database, one, **RUNS, kind=TaskKind.CREATE if kind == NESTED else kind)
    set_task(database, beside, **RUNS, finish_id=None)
    if change is FAILED:
        set_traversal(database, graph.number, **change)
    else:
        set_row(database, tables.stack, graph.stack.id, **change)
    request = RequeueRequest(nested=[one] if kind == NESTED else ())
    over = database.write(lambda conn: carry_over.stopped_tasks(conn, rows(conn, graph.ids), request))
    assert (one in over) is is_over


BEGUN, DONE_NOW, OLDER = "begun", "done", "older"


@dataclass(frozen=True)
class Inherited:
    """A task that began in a superseded traversal, and what becomes of it where it is to wait again.

    :ivar words: OLDER: it is one of that traversal still; BEGUN: its resource has its progress; DONE_NOW,
        NESTED: what its outcome says.
    :ivar begins: what its outcome says about its progress.
    :ivar present: columns of the present traversal.
    """

    kind: TaskKind
    words: str
    ends: bool
    begins: bool | None = None
    present: Columns = field(default_factory=lambda: {"held_tasks": 0})


@pytest.mark.parametrize(
    "inherited",
    [
        Inherited(TaskKind.CREATE, "older begun", ends=False),
        Inherited(TaskKind.CREATE, "older", ends=True),
        Inherited(TaskKind.CREATE, "older", begins=True, ends=False),
        Inherited(TaskKind.CREATE, "older begun", begins=False, ends=True),
        Inherited(TaskKind.CREATE, "begun", ends=False),
        Inherited(TaskKind.UPDATE, "older begun", ends=True),
        Inherited(TaskKind.UPDATE, "older done", ends=True),
        Inherited(TaskKind.UPDATE, "done", ends=False),
        Inherited(TaskKind.UPDATE, "", ends=True),
        Inherited(TaskKind.ADOPT, "older", ends=False),
        Inherited(TaskKind.ADOPT, "", ends=False),
        Inherited(TaskKind.CREATE, "older begun", present=FAILED, ends=True),
        Inherited(TaskKind.CREATE, "older begun nested", present=FAILED, ends=False),
        Inherited(TaskKind.CREATE, "older begun nested", present=SUPERSEDED, ends=True),
    ],
)
def test_an_inherited_task_moves_to_the_present_traversal_or_ends(
    database: Database, inherited: Inherited
) -> None:
    graph = store_graph(database, {"one": []})
    [one] = graph.ids
    is_older = OLDER in inherited.words
    began_in = "older" if is_older else graph.traversal
    columns = {**RUNS, "kind": inherited.kind, "standing": Standing.CARRIED_OVER, "losses": {"hosts": ["a"]}}
    set_task(database, one, **columns, traversal=began_in)
    progress = {"task": one if BEGUN in inherited.words else 0}
    set_row(database, tables.resource, graph.resources["one"], progress=progress)
    set_traversal(database, graph.number, **inherited.present)
    request = RequeueRequest(
        begun={} if inherited.begins is None else {one: inherited.begins},
        done=[one] if DONE_NOW in inherited.words else (),
        nested=[one] if NESTED in inherited.words else (),
    )
    over = database.write(lambda conn: carry_over.superseded_tasks(conn, rows(conn, graph.ids), request))
    stored_task = task(database, one)
    moves = is_older and not inherited.ends
    assert over == ({one} if inherited.ends else set())
    assert stored_task.traversal == (graph.traversal if moves else began_in)
    assert (stored_task.losses is None) is moves
    assert traversal_of(database, graph.number).open_tasks == 1 + moves


def test_an_inherited_task_does_not_end_by_the_failure_of_the_traversal_that_it_left(
    database: Database,
) -> None:
    older = store_graph(database, {"elsewhere": []})
    set_traversal(database, older.number, **FAILED)
    graph = store_graph(database, {"one": []})
    [one] = graph.ids
    columns = {**RUNS, "kind": TaskKind.CREATE, "standing": Standing.CARRIED_OVER}
    set_task(database, one, **columns, traversal="older", finish_id=older.number)
    set_row(database, tables.resource, graph.resources["one"], progress={"task": one})
    request = RequeueRequest()
    over = database.write(lambda conn: carry_over.stopped_tasks(conn, rows(conn, graph.ids), request))
    assert over == set()


@pytest.mark.parametrize(
    ("timeout", "due_after", "expires_after"),
    [(None, 300.0, None), (1000.0, 300.0, 1000.0), (100.0, 100.0, 100.0)],
)
def test_a_task_polls_a_nested_stack_again_whose_deadline_resumes(
    database: Database, timeout: float | None, due_after: float, expires_after: float | None
) -> None:
    child = store_graph(database, {}, stack=a_stack(remaining=7.0))
    parent = store_graph(database, {"one": []}, stack=a_stack(remaining=90.0), timeout=timeout)
    waits = {**PARKED, "waits_on": f"stack:{child.stack.id}", "due_at": None}
    set_task(database, parent.ids[0], **waits)
    later = NOW + 50
    database.write(lambda conn: countdown.resume_deadline(conn, child.stack.id, child.traversal, now=later))
    waiting = task(database, parent.ids[0])
    assert waiting.due_at == later + due_after
    assert waiting.expires_at == (None if expires_after is None else later + expires_after)
    deadlines = [stack_of(database, graph.stack.id).deadline_at for graph in (child, parent)]
    assert deadlines == [later + 7, later + 90]
