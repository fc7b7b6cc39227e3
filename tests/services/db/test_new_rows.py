"""Rows under ids that processes make: where two make the same, each transaction has its own in the end."""

import typing
from collections.abc import Callable

import pytest
import sqlalchemy as sa
from oslo_db.exception import DBDuplicateEntry
from services.db.rows import NOW, a_resource, a_stack, on, raised, store, store_graph, together
from services.db.servers import SERVERS
from stoker.db import bulk, creations, resources, stacks, traversals
from stoker.db.engine import Database, Trouble
from stoker.db.errors import NameTaken, Unavailable
from stoker.db.id_source import EPOCH, TIME_BITS, IdSource
from stoker.db.ids import ResourceId, StackId, TaskId, TraversalNumber
from stoker.db.rows import Stack, Task, Traversal
from stoker.db.schema import tables
from stoker.db.states import Status, TaskKind, TaskState
from stoker.db.work import endings, tasks

Json = typing.Any
T = typing.TypeVar("T")
LARGEST = 2**63 - 1
TABLES: Json = {ResourceId: tables.resource, TaskId: tables.task, TraversalNumber: tables.traversal}


class Process:
    """A process that makes the same ids as every other one: no position is random.

    :ivar again: how often it has run a transaction again.
    """

    def __init__(self, url: str, tries: int = 100) -> None:
        self.ids = IdSource(lambda: EPOCH + 1.0, randbits=lambda bits: 0)
        self.again = 0
        self.database = Database(url, ids=self.ids, tries=tries, troubled=self._count)

    def _count(self, trouble: Trouble) -> None:
        self.again += trouble == Trouble.AGAIN

    def store(self, stack_id: StackId, count: int) -> list[ResourceId]:
        """Store resources, each with a task, and a traversal; the ids of the resources."""

        def insert(conn: sa.Connection) -> list[ResourceId]:
            stack = stacks.get(conn, stack_id)
            rows = [a_resource(stack_id, self.ids.new(ResourceId), f"r{n}") for n in range(count)]
            resources.insert_many(conn, rows)
            common = {"traversal": stack.traversal, "stack_id": stack_id, "shard": 0}
            number = self.ids.new(TraversalNumber)
            new_tasks = [a_task(self.ids.new(TaskId), row.id, number, **common) for row in rows]
            tasks.insert_many(conn, new_tasks)
            traversals.insert(conn, Traversal(id=number, open_tasks=count, action="CREATE", **common))
            return [row.id for row in rows]

        return self.database.write(insert)


def a_task(task_id: TaskId, row: ResourceId, number: TraversalNumber, **common: object) -> Task:
    fields = {"kind": TaskKind.CREATE, "state": TaskState.READY, "pending": 0, "due_at": NOW, **common}
    return Task(id=task_id, resource_id=row, finish_id=number, **fields)  # type: ignore[arg-type]


@on(*SERVERS)
def test_processes_that_make_the_same_ids_store_each_row_once(database: Database) -> None:
    stack = store(database, a_stack())
    processes = [Process(database.url) for _ in range(4)]
    results = together(
        *(lambda process=process: [process.store(stack.id, 3) for _ in range(3)] for process in processes)  # type: ignore[misc]
    )
    for process in processes:
        process.database.close()
    assert raised(results) == []
    ids = [row_id for batches in results for part in batches for row_id in part]  # type: ignore[union-attr]
    assert len(set(ids)) == len(ids) == 4 * 3 * 3
    stored = database.read(lambda conn: resources.of_stack(conn, stack.id))
    assert {row.id for row in stored} == set(ids)
    named = database.read(lambda conn: conn.execute(sa.select(tables.task.c.resource_id)).scalars().all())
    assert sorted(named) == sorted(ids)
    assert sum(process.again for process in processes) >= 3


class Stuck(IdSource):
    """Makes one id of a kind over and over."""

    def __init__(self, kind: object, value: int) -> None:
        super().__init__(lambda: EPOCH + 2.0)
        self._kind = kind
        self._value = value

    def new(self, kind: Callable[[int], T]) -> T:
        return kind(self._value) if kind is self._kind else super().new(kind)


@pytest.mark.parametrize("kind", TABLES)
def test_a_transaction_whose_ids_are_taken_again_and_again_fails(database: Database, kind: Json) -> None:
    stack = store(database, a_stack())
    first = Process(database.url)
    second = Process(database.url, tries=3)
    first.store(stack.id, 1)
    row_id = database.read(lambda conn: conn.execute(sa.select(TABLES[kind].c.id)).scalar_one())
    second.ids = Stuck(kind, row_id)
    with pytest.raises(Unavailable, match="unavailable in 3 tries"):
        second.store(stack.id, 1)
    assert second.again == 2
    assert len(database.read(lambda conn: resources.of_stack(conn, stack.id))) == 1
    first.database.close()
    second.database.close()


def test_the_id_of_a_replacement_that_is_taken_is_an_error_at_once(database: Database) -> None:
    """It was made with the task: the transaction would meet the same row again."""
    graph = store_graph(database, {"a": []})
    other_graph = store_graph(database, {"b": []})
    new = a_resource(graph.stack.id, other_graph.resources["b"], "a", replaces=graph.resources["a"])
    runs: list[None] = []

    def replace_row(conn: sa.Connection) -> None:
        runs.append(None)
        resources.replace_by(conn, graph.resources["a"], new)

    with pytest.raises(DBDuplicateEntry):
        database.write(replace_row)
    assert len(runs) == 1
    stored = database.read(lambda conn: resources.of_stack(conn, graph.stack.id))
    assert [(row.id, row.replaced_by) for row in stored] == [(graph.resources["a"], None)]


def test_the_last_ids_fit_into_every_column(database: Database) -> None:
    last = IdSource(lambda: EPOCH + (2**TIME_BITS - 1) / 1000, randbits=lambda bits: 2**bits - 1).new(
        ResourceId
    )
    assert last == LARGEST
    stack = store(database, a_stack(parent_resource_id=last))
    row = a_resource(stack.id, last, replaces=last, replaced_by=last, requires=[last])
    common = {"traversal": stack.traversal, "stack_id": stack.id, "shard": 0, "inputs": {"a": last}}
    number = TraversalNumber(last)
    task = a_task(TaskId(last), last, number, spare_id=last, successors=[TaskId(last)], **common)

    def insert(conn: sa.Connection) -> None:
        resources.insert_many(conn, [row])
        tasks.insert_many(conn, [task])

    database.write(insert)
    assert database.read(lambda conn: resources.get(conn, last)) == row
    stored = database.read(lambda conn: tasks.get(conn, TaskId(last)))
    assert stored is not None
    assert {getattr(stored, name) for name in ("id", "resource_id", "spare_id", "finish_id")} == {last}
    assert (stored.inputs, list(stored.successors)) == ({"a": last}, [last])
    assert database.read(lambda conn: stacks.get(conn, stack.id)).parent_resource_id == last


def _created(database: Database, stack: Stack, *, tasks_of: int = 1) -> tuple[TaskId, TraversalNumber]:
    """Store a stack with its first traversal, under ids of the database's source; one task's, and its."""

    def insert(conn: sa.Connection) -> tuple[TaskId, TraversalNumber]:
        ids = database.ids
        number = ids.new(TraversalNumber)
        common = {"traversal": stack.traversal, "stack_id": stack.id, "shard": 0}
        rows = [a_resource(stack.id, ids.new(ResourceId), f"r{n}") for n in range(tasks_of)]
        new_tasks = [a_task(ids.new(TaskId), row.id, number, **common) for row in rows]
        traversal = Traversal(id=number, open_tasks=tasks_of, action="CREATE", **common)
        event = endings.stack_event(stack, Status.IN_PROGRESS, "", by=None, now=NOW)
        new = traversals.new_rows(traversal, rows, tasks.new_rows(new_tasks))
        creations.insert(conn, stack, event, new)
        return new_tasks[0].id, number

    return database.write(insert)


@on(*SERVERS)
@pytest.mark.parametrize("count", [1, bulk.FEW, bulk.INSERTED_TOGETHER + 1])
def test_a_new_stack_is_stored_with_all_rows_of_its_first_traversal(database: Database, count: int) -> None:
    stack = a_stack(name=f"of {count}", tags=("b", "a"))
    task_id, number = _created(database, stack, tasks_of=count)
    with database.engine.connect() as conn:
        of_tables = [
            conn.execute(sa.select(sa.func.count()).where(column == stack.id)).scalar()
            for column in (tables.resource.c.stack_id, tables.task.c.stack_id, tables.event.c.stack_id)
        ]
        assert of_tables == [count, count, 1]
        assert stacks.get(conn, stack.id) == stack
        stored_task = tasks.get(conn, task_id)
        assert stored_task is not None
        assert (stored_task.due_at, stored_task.finish_id) == (NOW, number)
        assert traversals.get(conn, number).open_tasks == count  # type: ignore[union-attr]
        used = conn.execute(
            sa.select(tables.content_use.c.content_id).where(tables.content_use.c.holder_id == stack.id)
        ).scalars()
        assert set(used) == {stack.template_id, stack.environment_id, stack.files_id}


@on(*SERVERS)
def test_a_creation_under_taken_ids_of_rows_is_run_again_and_one_of_a_taken_stack_is_not(
    database: Database,
) -> None:
    same = Process(database.url)
    other = Process(database.url)
    first, second = a_stack(name="live_name"), a_stack(name="live_names")
    taken = _created(same.database, first)
    assert _created(other.database, second) != taken
    assert other.again == 1
    for clash in (a_stack(name=first.name), a_stack(name="another", id=first.id)):
        with pytest.raises(NameTaken):
            _created(other.database, clash)
    assert other.again == 1, "a nested stack has the same id each time"
    same.database.close()
    other.database.close()


def test_one_of_many_new_stacks_that_exists_already_is_an_error_whichever_it_is(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "FEW", 1)
    monkeypatch.setattr(bulk, "INSERTED_TOGETHER", 1)
    first = a_stack(name="first")
    database.write(lambda conn: stacks.insert_many(conn, [first]))
    for new in ([a_stack(name="second"), first], [first, a_stack(name="second")]):
        with pytest.raises(DBDuplicateEntry):
            database.write(lambda conn: stacks.insert_many(conn, new))  # noqa: B023
