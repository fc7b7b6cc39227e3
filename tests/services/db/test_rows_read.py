"""No list and no check of a request reads more rows where a project, or its neighbours, have more."""

import json
import typing
from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa
from services.db.rows import NOW, a_snapshot, a_stack, new_id, on
from services.db.servers import SERVERS
from stoker.db import events, snapshots, software, stacks
from stoker.db.engine import Database
from stoker.db.events import EventQuery
from stoker.db.ids import StackId
from stoker.db.queries import stack_list
from stoker.db.queries.stack_list import StackQuery
from stoker.db.rows import Event, ListedStack
from stoker.db.schema import tables
from stoker.db.software import StoredConfig
from stoker.engine.quotas import QuotaName, Quotas
from stoker.features.drift import rows as drift

LARGE = 3000
SMALL = 60
LIMIT = 20
RARE = LARGE // 10
"""One in so many stacks has failed, and has the tag `rare`."""
MOST_ROWS = 10 * LIMIT
"""Rows that a statement may read on PostgreSQL and MariaDB, those of inner tables included."""
MOST_STEPS = 5_000
"""Instructions of SQLite's machine: a list takes up to 2,100, and to read a large project 15,000."""
DESCENDING = ("a later page", "a later page of configs")
"""Lists that MariaDB (10.11) reads from their beginning: it takes the index of an order that descends by the
project only, although it would begin at the marker where the order ascends.  Its cost is that of the pages
before, and does not grow with what comes later."""
Json = typing.Any
Read = Callable[[sa.Connection], object]


def stack_id(project: str, number: int) -> StackId:
    return StackId(f"{'large small'.index(project)}{number:07d}-0000-4000-8000-000000000000")


BUSY = stack_id("small", 1)
"""Has as many events as the large project has stacks."""


def listed(project: str, **query: Json) -> Read:
    selection = StackQuery(project, **{"limit": LIMIT, **query})
    return lambda conn: stack_list.list_stacks(conn, selection, ListedStack)


def of_busy(**query: Json) -> Read:
    return lambda conn: events.list_events(conn, EventQuery(BUSY, **{"limit": LIMIT, **query}))


LISTS: dict[str, dict[str, Json]] = {
    "the newest": {},
    "the oldest": {"sort": (("created_at", False),)},
    "by name": {"sort": (("name", False),)},
    "with nested ones": {"show_nested": True},
    "with deleted ones": {"show_deleted": True},
    "without hidden ones": {"hidden_tags": ["hidden"]},
    "of a status": {"filters": {"status": ["FAILED"]}},
    "of a status that none has": {"filters": {"status": ["IN_PROGRESS"]}},
    "of a name": {"filters": {"name": ["s30"]}},
    "of an id": {"filters": {"id": [stack_id("large", 30)]}},
    "with a tag that all have": {"tags": ["common"]},
    "with a rare tag": {"tags": ["rare"]},
    "with a tag that none has": {"tags_any": ["none"]},
}
READS: dict[str, Read] = {
    **{
        f"{project}, {name}": listed(project, **LISTS[name])
        for project in ("large", "small")
        for name in LISTS
    },
    "a later page": listed("large", marker=stack_id("large", LARGE // 2)),
    "a later page, the oldest first": listed(
        "large", marker=stack_id("large", LARGE // 2), sort=(("created_at", False),)
    ),
    "a later page with a tag": listed("large", marker=stack_id("large", LARGE // 2), tags=["common"]),
    "a name": lambda conn: stack_list.find_by_name(conn, "large", "s30"),
    "whether a name is taken": lambda conn: stacks.is_taken(conn, "large", "s30"),
    "drift of a page": lambda conn: drift.summaries(conn, [stack_id("large", n) for n in range(1, LIMIT)]),
    "quotas": lambda conn: Quotas(dict.fromkeys(QuotaName, 10**9)).check(conn, "large", *QuotaName),
    "events": of_busy(),
    "the newest events": of_busy(descending=True),
    "events of a resource": of_busy(resource_name="r7"),
    "the newest events of a resource": of_busy(resource_name="r7", descending=True),
    "events of no resource": of_busy(resource_name="none"),
    "snapshots": lambda conn: snapshots.list_page(conn, BUSY, limit=LIMIT, marker=None),
    "configs": lambda conn: software.list_configs(conn, "large", limit=LIMIT, marker=None),
    "a later page of configs": lambda conn: software.list_configs(
        conn, "large", limit=LIMIT, marker=f"{LARGE // 2:032d}"
    ),
}


def fill(conn: sa.Connection) -> None:
    for project, count in (("large", LARGE), ("small", SMALL)):
        numbers = range(1, count + 1)
        rows = [
            a_stack(
                id=stack_id(project, n),
                project_id=project,
                name=f"s{n}",
                status="FAILED" if n % RARE == 0 else "COMPLETE",
                created_at=NOW + n,
                tags=("common", "rare") if n % RARE == 0 else ("common",),
            )
            for n in numbers
        ]
        stacks.insert_many(conn, rows)
    many = range(LARGE)
    of_one: Json = {"stack_id": BUSY, "resource_type": "T", "physical_id": None, "reason": ""}
    of_one |= {"action": "CREATE", "status": "COMPLETE", "at": NOW}
    events.add_many(conn, [Event(resource_name=f"r{n % 500}", **of_one) for n in many])
    snapshots.insert_many(
        conn, rows[0], [a_snapshot(rows[0], id=new_id(), created_at=NOW + n) for n in range(SMALL)]
    )
    config: Json = {"name": "c", "tool": "t", "body": "b", "size": 1}
    configs = [StoredConfig(id=f"{n:032d}", project_id="large", created_at=NOW + n, **config) for n in many]
    software.insert_missing(conn, configs)


@pytest.fixture(scope="module")
def filled(upgraded: Database) -> Database:
    upgraded.write(fill)
    with upgraded.engine.connect() as conn, conn.begin():
        if upgraded.dialect == "postgresql":
            conn.exec_driver_sql("ANALYZE")
        elif upgraded.dialect == "mysql":
            conn.exec_driver_sql("ANALYZE TABLE stack, stack_tag, event, software_config").fetchall()
    return upgraded


def work(database: Database, read: Read) -> int:
    """Return the rows that a read costs; on SQLite the instructions, as it counts no rows."""
    with database.engine.connect() as conn:
        counted = {"sqlite": steps, "postgresql": explained, "mysql": handled}[database.dialect](conn, read)
        conn.rollback()
    return counted


def steps(conn: sa.Connection, read: Read) -> int:
    calls = []
    own: Json = conn.connection.driver_connection
    conn.execute(sa.select(sa.literal(1)))
    own.set_progress_handler(lambda: calls.append(1), 100)
    read(conn)
    own.set_progress_handler(None, 0)
    return 100 * len(calls)


def explained(conn: sa.Connection, read: Read) -> int:
    executed: list[tuple[str, object]] = []

    def note(unused: object, cursor: object, statement: str, parameters: object, *others: object) -> None:
        executed.append((statement, parameters))

    sa.event.listen(conn, "before_cursor_execute", note)
    read(conn)
    sa.event.remove(conn, "before_cursor_execute", note)
    selects = [(text, values) for text, values in executed if text.startswith("SELECT")]
    assert selects
    total = 0
    for text, values in selects:
        [answer] = conn.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}", values).scalars()
        [plan] = json.loads(answer) if isinstance(answer, str) else answer
        total = max(total, sum(map(rows_of, nodes(plan["Plan"]))))
    return total


def nodes(plan: Json) -> Iterator[Json]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def rows_of(node: Json) -> int:
    if "Scan" not in node["Node Type"]:
        return 0
    removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    return round((node["Actual Rows"] + removed) * node["Actual Loops"])


def handled(conn: sa.Connection, read: Read) -> int:
    def reads() -> int:
        shown = conn.exec_driver_sql("SHOW SESSION STATUS LIKE 'Handler_read%%'")
        return sum(int(value) for name, value in shown if name != "Handler_read_rnd_deleted")

    own = reads()
    before = reads()
    read(conn)
    return reads() - before - (before - own)


@on(*SERVERS)
@pytest.mark.parametrize("name", READS)
def test_a_request_reads_few_rows_however_many_there_are(filled: Database, name: str) -> None:
    if filled.dialect == "mysql" and name in DESCENDING:
        pytest.skip("MariaDB does not begin at the marker")
    assert work(filled, READS[name]) <= (MOST_STEPS if filled.dialect == "sqlite" else MOST_ROWS)


@on(*SERVERS)
def test_a_read_of_a_whole_project_would_be_seen(filled: Database) -> None:
    s = tables.stack.c
    unindexed = sa.select(s.id).where(s.project_id == "large", s.description == "x")
    most = MOST_STEPS if filled.dialect == "sqlite" else MOST_ROWS
    assert work(filled, lambda conn: conn.execute(unindexed).all()) > most
