"""Rows for the tests, and threads that act at the same moment."""

import contextlib
import threading
import typing
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from stoker.db import bulk, resources, stacks, traversals
from stoker.db.bulk import Writes
from stoker.db.engine import Database
from stoker.db.ids import ContentId, MemberId, ResourceId, StackId, TaskId, TraversalId, TraversalNumber
from stoker.db.rows import Outcome, Resource, Snapshot, Stack, Task, Traversal
from stoker.db.schema import tables
from stoker.db.states import Status, TaskKind, TaskState
from stoker.db.work import stack_transitions, tasks
from stoker.db.work.claim import Claim, Claimant, Claimed, claim
from stoker.db.work.commit import Exchange, exchange

NOW = 1_800_000_000.0
A, B = (Claimant(MemberId(f"{host}/1"), host) for host in ("a", "b"))
T = typing.TypeVar("T")


def on(*servers: str) -> pytest.MarkDecorator:
    """Run a test on some of the servers only."""
    return pytest.mark.parametrize("upgraded", servers, indirect=True, scope="module")


def new_id() -> typing.Any:
    """A fresh uuid, for whatever kind of id."""
    return str(uuid.uuid4())


def a_stack(**fields: typing.Any) -> Stack:
    """A stack whose creation runs."""
    name = fields.get("name", f"stack-{uuid.uuid4().hex[:8]}")
    stack_id = fields.get("id", new_id())
    plain: dict[str, typing.Any] = {
        "id": stack_id,
        "project_id": "tenant",
        "name": name,
        "live_name": name,
        "root_id": stack_id,
        "action": "CREATE",
        "status": Status.IN_PROGRESS,
        "traversal": new_id(),
        "shard": 7,
        "template_id": ContentId("t"),
        "environment_id": ContentId("e"),
        "files_id": ContentId("f"),
        "created_at": NOW,
    }
    return Stack(**{**plain, **fields})


def delete_stack(conn: sa.Connection, stack: Stack, now: float) -> None:
    """Begin the deletion of a stack, and end it."""
    deleting = replace(stack, action="DELETE", traversal=new_id())
    assert stack_transitions.begin(conn, stack, deleting.traversal, action="DELETE")
    assert stack_transitions.complete_deletions(conn, [deleting], now)


def a_snapshot(stack: Stack, **fields: typing.Any) -> Snapshot:
    """A snapshot that is complete."""
    plain: dict[str, typing.Any] = {
        "id": new_id(),
        "stack_id": stack.id,
        "name": "kept",
        "action": "CREATE",
        "status": Status.COMPLETE,
        "reason": "",
        "traversal": new_id(),
        "goal": {"template": "t1", "environment": "e1", "files": "f1", "parameters": {}},
        "tags": [],
        "created_at": NOW,
    }
    return Snapshot(**{**plain, **fields})


def store(database: Database, *rows: Stack) -> Stack:
    """Store stacks; the first of them."""
    database.write(lambda conn: [stacks.insert(conn, stack) for stack in rows])
    return rows[0]


def a_resource(stack_id: StackId, resource_id: int, name: str = "server", **fields: typing.Any) -> Resource:
    """A resource that nothing was done to."""
    plain: dict[str, typing.Any] = {
        "type": "OS::Heat::TestResource",
        "plugin": "OS::Heat::TestResource",
        "action": "INIT",
        "status": Status.COMPLETE,
        "reason": "",
        "created_at": NOW,
        "updated_at": NOW,
        "requires": [],
    }
    return Resource(id=ResourceId(resource_id), stack_id=stack_id, name=name, **{**plain, **fields})


@dataclass(frozen=True)
class Graph:
    """A stored traversal."""

    stack: Stack
    traversal: TraversalId
    tasks: Mapping[str, TaskId]
    resources: Mapping[str, ResourceId]
    number: TraversalNumber

    @property
    def ids(self) -> list[TaskId]:
        """Ids of all tasks that can be claimed one day."""
        return list(self.tasks.values())


def store_graph(
    database: Database,
    needs: Mapping[str, Sequence[str]],
    *,
    stack: Stack | None = None,
    **fields: typing.Any,
) -> Graph:
    """Store a stack with a task for each name; `needs` says which others each one comes after.

    :param fields: of every task.
    """
    [graph] = store_graphs(database, needs, [a_stack() if stack is None else stack], **fields)
    return graph


def store_graphs(
    database: Database,
    needs: Mapping[str, Sequence[str]],
    stored: Sequence[Stack],
    **fields: typing.Any,
) -> list[Graph]:
    """Store several stacks as `store_graph` does, in one transaction."""
    graphs = [_graph(database, stack, needs) for stack in stored]

    def insert(conn: sa.Connection) -> None:
        for graph in graphs:
            stacks.insert(conn, graph.stack)
        resources.insert_many(
            conn,
            [a_resource(graph.stack.id, graph.resources[name], name) for graph in graphs for name in needs],
        )
        tasks.insert_many(conn, [task for graph in graphs for task in _tasks(graph, needs, **fields)])
        for graph in graphs:
            counted = {"open_tasks": len(needs), "action": graph.stack.action, **_common(graph)}
            traversals.insert(conn, Traversal(id=graph.number, **counted))

    database.write(insert)
    return graphs


def _graph(database: Database, stack: Stack, needs: Mapping[str, Sequence[str]]) -> Graph:
    return Graph(
        stack,
        stack.traversal,
        resources={name: database.ids.new(ResourceId) for name in needs},
        tasks={name: database.ids.new(TaskId) for name in needs},
        number=database.ids.new(TraversalNumber),
    )


def _common(graph: Graph) -> dict[str, typing.Any]:
    return {"traversal": graph.traversal, "stack_id": graph.stack.id, "shard": graph.stack.shard}


def _tasks(graph: Graph, needs: Mapping[str, Sequence[str]], **fields: typing.Any) -> list[Task]:
    return [
        Task(
            id=graph.tasks[name],
            resource_id=graph.resources[name],
            state=TaskState.WAITING if needed else TaskState.READY,
            pending=len(needed),
            due_at=None if needed else NOW + 5,
            finish_id=graph.number,
            inputs={needed_name: graph.resources[needed_name] for needed_name in needed},
            successors=[graph.tasks[successor] for successor in needs if name in needs[successor]],
            **{"kind": TaskKind.CREATE, **_common(graph), **fields},
        )
        for name, needed in needs.items()
    ]


def step(
    database: Database,
    outcomes: Sequence[Outcome] = (),
    hinted: Sequence[TaskId] = (),
    *,
    who: Claimant = A,
    now: float = NOW,
    slots: int = 100,
) -> Exchange:
    """One transaction of the work loop."""
    return database.write(lambda conn: exchange(conn, outcomes, hinted, who=who, now=now, slots=slots))


def claim_all(database: Database, ids: Sequence[TaskId], who: Claimant = A, now: float = NOW) -> list[Claim]:
    """Claim what can be claimed."""
    return list(step(database, (), ids, who=who, now=now, slots=len(ids)).claims)


def claim_now(conn: Connection, ids: Sequence[TaskId], waiting: Sequence[Task] = ()) -> Claimed:
    """Claim tasks in a transaction that does nothing else."""
    writes = Writes()
    claimed = claim(conn, ids, who=A, now=NOW, writes=writes, waiting=waiting)
    bulk.run(conn, writes)
    return claimed


def outcome(claim: Claim, state: TaskState = TaskState.DONE, **fields: typing.Any) -> Outcome:
    """Return the outcome of the claimed task."""
    task = claim.task
    fields = {"successors": task.successors, **fields}
    return Outcome(task.id, task.attempt, state, claim.resource.id, **fields)


def task(database: Database, task_id: TaskId) -> Task:
    """The task as it is stored."""
    row = database.read(lambda conn: tasks.get(conn, task_id))
    assert row is not None
    return row


def traversal_of(database: Database, number: TraversalNumber) -> Traversal:
    """The traversal as it is stored, in whatever form."""
    traversal = database.read(lambda conn: traversals.get(conn, number))
    assert traversal is not None
    return traversal


def set_traversal(database: Database, number: TraversalNumber, **values: typing.Any) -> None:
    """Change columns of a traversal by force."""
    t = tables.traversal
    database.write(lambda conn: conn.execute(sa.update(t).where(t.c.id == number).values(**values)))


def stack_of(database: Database, stack_id: StackId) -> Stack:
    """The stack as it is stored."""
    return database.read(lambda conn: stacks.get(conn, stack_id))


def resource(database: Database, resource_id: ResourceId) -> Resource:
    """The resource as it is stored."""
    return database.read(lambda conn: resources.get(conn, resource_id))


def set_task(database: Database, task_id: TaskId, **values: typing.Any) -> None:
    """Change columns of a task by force."""
    t = tables.task
    database.write(lambda conn: conn.execute(sa.update(t).where(t.c.id == task_id).values(**values)))


def together(*jobs: Callable[[], T]) -> list[T | Exception]:
    """Run the jobs in threads that start at the same moment; what each returned or raised."""
    start = threading.Barrier(len(jobs))

    def run(job: Callable[[], T]) -> T | Exception:
        start.wait()
        try:
            return job()
        except Exception as error:  # noqa: BLE001 - it is the result
            return error

    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(run, jobs))


def raised(results: Sequence[object]) -> list[Exception]:
    """The errors among the results of `together`."""
    return [result for result in results if isinstance(result, Exception)]


@contextlib.contextmanager
def rows_in_their_order(conn: sa.Connection) -> Iterator[None]:
    """SQLite returns rows from the first to the last where a query does not say their order."""
    is_sqlite = conn.dialect.name == "sqlite"
    if is_sqlite:
        conn.exec_driver_sql("PRAGMA reverse_unordered_selects = OFF")
    yield
    if is_sqlite:
        conn.exec_driver_sql("PRAGMA reverse_unordered_selects = ON")
