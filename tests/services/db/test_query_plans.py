"""The cost of a duty follows what is due, never how many stacks there are: each scan goes by an index."""

import json
import typing
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from services.db.rows import (
    NOW,
    A,
    a_resource,
    a_snapshot,
    a_stack,
    claim_all,
    claim_now,
    on,
    outcome,
    store_graph,
)
from stoker.db import content, events, resources, snapshots, stacks, traversals
from stoker.db.connections import DatabaseLimits
from stoker.db.engine import LIMITS, Database
from stoker.db.ids import (
    ContentId,
    MemberId,
    ResourceId,
    StackId,
    TaskId,
    TraversalId,
    TraversalNumber,
    WaitsOn,
)
from stoker.db.queries import due_soon, overview
from stoker.db.rows import Task, Traversal
from stoker.db.schema import tables
from stoker.db.states import Status, TaskKind, TaskState
from stoker.db.work import (
    breakpoints,
    cancel,
    clear_breakpoints,
    countdown,
    due_tasks,
    endings,
    member_claims,
    orphans,
    stack_transitions,
    tasks,
)
from stoker.db.work.breakpoint_rules import BreakpointHit
from stoker.db.work.claim import Claim, Claimant
from stoker.db.work.commit import exchange
from stoker.db.work.due_tasks import DueTask
from stoker.db.work.endings import stack_event

COUNT = 2000
BIG = ("stack", "traversal", "task", "resource", "event", "content", "content_use", "stack_tag", "snapshot")
STACK = StackId("00000000-0000-0000-0000-000000000007")
TRAVERSAL = TraversalId("10000000-0000-0000-0000-000000000007")
DUE = [DueTask(TaskId(1), TRAVERSAL, STACK, 1, TaskState.READY, TaskKind.CREATE, 1, 0, NOW, None, None, None)]
HELD = Task(
    TaskId(9),
    TRAVERSAL,
    STACK,
    TaskKind.CREATE,
    TaskState.HELD,
    0,
    1,
    resource_id=ResourceId(9),
    finish_id=TraversalNumber(8),
    hook="pre-create",
    hooks={"pre-create": {"timeout": 1}},
    due_at=NOW - 1,
)
PURGED = Traversal(TraversalNumber(10**9), TRAVERSAL, STACK, 1, 0, due_at=NOW)
WHO = Claimant(MemberId("a/1"), "a")

DUTIES: dict[str, typing.Callable[[sa.Connection], object]] = {
    "what is due soon": lambda conn: list(due_soon.due_before(conn, NOW, limit=200)),
    "tasks due": lambda conn: due_tasks.due(conn, NOW, limit=500),
    "traversals due": lambda conn: traversals.due(conn, NOW, limit=500),
    "traversals due, next page": lambda conn: traversals.due(conn, NOW, limit=500, after=(NOW - 1, 5)),
    "present traversal of a stack": lambda conn: traversals.get_running(conn, STACK),
    "count down": lambda conn: traversals.count_down(conn, TraversalNumber(8), 1),
    "purge of a traversal later": lambda conn: traversals.keep(conn, PURGED),
    "tasks due, next page": lambda conn: due_tasks.due(conn, NOW, limit=500, after=(NOW - 1, 5)),
    "stack deadlines": lambda conn: stacks.due(conn, NOW, limit=500),
    "stack deadlines, next page": lambda conn: stacks.due(conn, NOW, limit=500, after=(NOW - 1, STACK)),
    "tasks by state": lambda conn: overview.task_states(conn, after=TaskId(5), limit=500),
    "members that claim": tasks.claiming_members,
    "claims of a member": lambda conn: tasks.claimed_by(conn, MemberId("gone/1")),
    "give back": lambda conn: member_claims.release(conn, [(TaskId(3), 1)], now=NOW),
    "repeat hints": lambda conn: due_tasks.repeat_hints(conn, DUE, now=NOW),
    "wake parked": lambda conn: due_tasks.wake_due(conn, DUE, now=NOW),
    "wake": lambda conn: due_tasks.wake(conn, WaitsOn.parse("resource:1"), now=NOW),
    "wake parents": lambda conn: countdown.wake_parents(conn, [STACK, StackId("other")], now=NOW),
    "wake without a step": lambda conn: orphans.without_step(conn, [(TaskId(3), 1), (TaskId(4), 1)], now=NOW),
    "claim": lambda conn: claim_now(conn, [TaskId(4)]),
    "end of a stack": lambda conn: endings.end_stacks(
        conn, [endings.StackEnd(STACK, TRAVERSAL, stack_transitions.Failure("why"))], by=None, now=NOW
    ),
    "supersede": lambda conn: cancel.cancel_unstarted(conn, STACK, TRAVERSAL, now=NOW),
    "running of a stack": lambda conn: tasks.running_of_stack(conn, STACK),
    "purge of a traversal": lambda conn: due_tasks.purge_traversal(conn, TRAVERSAL),
    "deleted stacks": lambda conn: stacks.deleted_before(conn, NOW, limit=500),
    "purge of stacks": lambda conn: stacks.purge(conn, [STACK]),
    "changes of resources": lambda conn: resources.store_changes(
        conn, [{"id": ResourceId(number), "reason": "x"} for number in (3, 7)], now=NOW
    ),
    "snapshots' copies": lambda conn: resources.copies(conn, STACK),
    "end of a snapshot": lambda conn: snapshots.end(conn, [TRAVERSAL], reason="", failed=False),
    "what is held": lambda conn: breakpoints.held_of(conn, TRAVERSAL),
    "hold": lambda conn: breakpoints.hold(conn, [BreakpointHit(HELD, "pre-create")], by=None, now=NOW),
    "go on": lambda conn: clear_breakpoints.clear(conn, [TaskId(9)], stepping=True, by=None, now=NOW),
    "end of a breakpoint's time": lambda conn: clear_breakpoints.expire(conn, [TaskId(9)], by=None, now=NOW),
    "clock stands": lambda conn: countdown.pause_deadline(conn, TraversalNumber(8), now=NOW),
    "clock goes on": lambda conn: countdown.resume_deadline(conn, STACK, TRAVERSAL, now=NOW),
    "sweep of contents": lambda conn: content.purge_unused(conn, NOW, limit=10, after=ContentId("5")),
}


def an_id(kind: int, number: int) -> str:
    return f"{kind}0000000-0000-0000-0000-{number:012d}"


@pytest.fixture(scope="module")
def filled(upgraded: Database) -> Database:
    """Many stacks with few tasks due, as the planner sees it in a large installation."""
    common = {"template_id": "t", "environment_id": "e", "files_id": "f"}
    some = [
        a_stack(
            id=an_id(0, number),
            name=f"s{number}",
            traversal=an_id(1, number),
            deadline_at=NOW + number if number % 100 == 0 else None,
            deleted_at=NOW + number if number % 100 == 1 else None,
            **common,
        )
        for number in range(COUNT)
    ]
    new_tasks = [
        Task(
            id=TaskId(number),
            traversal=TraversalId(an_id(1, number)),
            stack_id=StackId(an_id(0, number)),
            resource_id=ResourceId(number),
            kind=TaskKind.CREATE,
            state=TaskState.WAITING,
            pending=1,
            shard=1,
            member=MemberId("a/1") if number % 200 == 0 else None,
            due_at=NOW - 5 + number if number % 100 == 0 else None,
        )
        for number in range(1, COUNT)
        if number not in (8, 9)
    ]
    new_tasks.append(HELD)
    attempts = [
        Traversal(
            id=TraversalNumber(number if number == 8 else COUNT + number),
            traversal=TraversalId(an_id(1, number - (number == 8))),
            stack_id=StackId(an_id(0, number - (number == 8))),
            shard=1,
            open_tasks=1,
            held_tasks=int(number == 8),
            due_at=NOW - 5 + number if number % 100 == 0 else None,
        )
        for number in range(1, COUNT)
        if number != 7
    ]

    def fill(conn: sa.Connection) -> None:
        rows = [{**vars(stack), "tags": None} for stack in some]
        conn.execute(sa.insert(tables.stack), [{k: v for k, v in row.items() if k != "tags"} for row in rows])
        tasks.insert_many(conn, new_tasks)
        conn.execute(sa.insert(tables.traversal), [vars(attempt) for attempt in attempts])
        numbers = range(COUNT)
        conn.execute(
            sa.insert(tables.content), [{"id": f"{n:064d}", "body": n, "created_at": NOW} for n in numbers]
        )
        uses = [{"holder_id": an_id(0, n), "content_id": f"{n:064d}"} for n in numbers]
        conn.execute(sa.insert(tables.content_use), uses)
        owner = {"project_id": "tenant", "created_at": NOW}
        tags = [{"stack_id": an_id(0, n), "tag": "t", "position": 0, **owner} for n in numbers]
        conn.execute(sa.insert(tables.stack_tag), tags)
        stored_snapshots = [
            a_snapshot(stack, id=an_id(2, n), traversal=stack.traversal) for n, stack in enumerate(some)
        ]
        conn.execute(sa.insert(tables.snapshot), [vars(snapshot) for snapshot in stored_snapshots])
        resources.insert_many(conn, [a_resource(StackId(an_id(0, n)), n) for n in numbers])
        events.add_many(conn, [stack_event(stack, Status.COMPLETE, "", by=None, now=NOW) for stack in some])

    upgraded.write(fill)
    with upgraded.engine.connect() as conn, conn.begin():
        conn.exec_driver_sql("ANALYZE")
    return upgraded


def full_scans(conn: sa.Connection, statement: str, parameters: typing.Any) -> list[str]:
    """Return the big tables that the plan of a statement reads from the first row to the last."""
    if conn.dialect.name == "sqlite":
        plan = conn.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
        return [row[3] for row in plan if row[3].startswith("SCAN") and row[3].split()[1] in BIG]
    if conn.dialect.name == "postgresql":
        conn.exec_driver_sql("SET LOCAL enable_seqscan = on")  # As the statistics say, see db/connections.py.
    [answer] = conn.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", parameters).scalars()
    root = (json.loads(answer) if isinstance(answer, str) else answer)[0]["Plan"]
    return [f"{node['Node Type']} on {node['Relation Name']}" for node in nodes(root) if is_full(node)]


def nodes(plan: dict[str, typing.Any]) -> Iterator[dict[str, typing.Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def is_full(node: dict[str, typing.Any]) -> bool:
    if node.get("Relation Name") not in BIG or "Scan" not in node["Node Type"]:
        return False
    return node["Node Type"] == "Seq Scan" or ("Index" in node["Node Type"] and "Index Cond" not in node)


def statements_of(
    database: Database, operation: typing.Callable[[sa.Connection], object]
) -> list[tuple[str, object]]:
    """Return the statements that a function executes; none of its changes stays."""
    executed: list[tuple[str, object]] = []

    def note(
        conn: sa.Connection, cursor: object, statement: str, parameters: object, *unused: object
    ) -> None:
        executed.append((statement, parameters))

    with database.engine.connect() as conn:
        sa.event.listen(conn, "before_cursor_execute", note)
        operation(conn)
        sa.event.remove(conn, "before_cursor_execute", note)
        conn.rollback()
    return [
        (text, parameters) for text, parameters in executed if text.startswith(("SELECT", "UPDATE", "DELETE"))
    ]


@on("sqlite", "postgresql")
@pytest.mark.parametrize("duty", DUTIES)
def test_a_duty_reads_no_table_from_its_first_row_to_its_last(filled: Database, duty: str) -> None:
    statements = statements_of(filled, DUTIES[duty])
    assert statements
    for statement, parameters in statements:
        with filled.engine.connect() as conn:
            assert full_scans(conn, statement, parameters) == [], statement
            conn.rollback()


@on("sqlite", "postgresql")
def test_a_full_scan_would_be_seen(filled: Database) -> None:
    query = sa.select(tables.task.c.id).where(tables.task.c.hook == "x")
    everything = sa.select(tables.stack.c.id)
    for statement, name in ((query, "task"), (everything, "stack")):
        [(text, parameters)] = statements_of(filled, lambda conn: conn.execute(statement).all())  # noqa: B023
        with filled.engine.connect() as conn:
            [scan] = full_scans(conn, text, parameters)
        assert name in scan


@on("postgresql")
def test_links_of_a_chain_go_by_indexes_however_small_the_tables_are(database: Database) -> None:
    graph = store_graph(database, {str(number): [str(number - 1)] if number else [] for number in range(8)})
    [claim] = claim_all(database, [graph.tasks["0"]])

    scans = sa.text("SELECT sum(seq_scan) FROM pg_stat_xact_user_tables")

    def next_link(conn: sa.Connection) -> Claim:
        before = conn.execute(scans).scalar_one()
        ended = outcome(claim, changes={"reason": "x"})
        [following] = exchange(conn, [ended], [], who=A, now=NOW, slots=1).claims
        assert conn.execute(scans).scalar_one() == before
        return following

    for _ in range(7):  # The server keeps a plan from the sixth execution on.
        claim = database.write(next_link)


@on("postgresql")
def test_postgresql_expects_as_much_of_each_list_and_so_plans_a_statement_once(filled: Database) -> None:
    costs = set()
    for count in (2, 60):
        ids = [ResourceId(number) for number in range(count)]
        [(text, values)] = statements_of(filled, lambda conn: resources.by_ids(conn, ids))  # noqa: B023
        with filled.engine.connect() as conn:
            [answer] = conn.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {text}", values).scalars()  # type: ignore[call-overload]
        costs.add(answer[0]["Plan"]["Total Cost"])
    assert len(costs) == 1


@on("postgresql")
@pytest.mark.parametrize(("limits", "value"), [(LIMITS, "off"), (LIMITS.for_long_work(), "on")])
def test_daemons_go_by_indexes_and_commands_as_the_statistics_say(
    database: Database, limits: DatabaseLimits, value: str
) -> None:
    client = Database(database.url, limits=limits)
    settings = sa.text("SELECT setting FROM pg_settings WHERE name IN ('enable_seqscan', 'jit')")
    assert client.read(lambda conn: conn.execute(settings).scalars().all()) == [value, value]
    client.close()
