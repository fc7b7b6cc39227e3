"""The deletions that a stack's deletion has still to make, and whether anything keeps a thing."""

import typing

import pytest
import sqlalchemy as sa
from services.db.rows import Graph, a_stack, new_id, store_graph
from stoker.db.engine import Database
from stoker.db.ids import TraversalId
from stoker.db.queries.deletions import OpenDeletion, open_deletions
from stoker.db.schema import tables
from stoker.db.states import TaskKind, TaskState

pytestmark = pytest.mark.usefixtures("bystander")

Json = typing.Any
NEEDS: dict[str, tuple[str, ...]] = {"member": (), "pool": ("member",), "net": ("pool",)}


def a_graph(database: Database, action: str = "DELETE", **fields: Json) -> Graph:
    return store_graph(database, NEEDS, stack=a_stack(action=action), **{"kind": TaskKind.DELETE, **fields})


def deletions(database: Database, traversal: TraversalId) -> list[OpenDeletion]:
    return database.read(lambda conn: open_deletions(conn, traversal))


def change(database: Database, table: sa.Table, row_id: int, **values: Json) -> None:
    database.write(lambda conn: conn.execute(sa.update(table).where(table.c.id == row_id).values(**values)))


def test_unfinished_deletions_say_what_waits_for_them_and_what_keeps_a_thing(database: Database) -> None:
    graph = a_graph(database)
    plugin = "OS::Heat::TestResource"
    change(database, tables.resource, graph.resources["member"], physical_id="m")
    member, pool, net = (graph.tasks[name] for name in ("member", "pool", "net"))
    assert deletions(database, graph.traversal) == [
        OpenDeletion(member, plugin, "m", [pool], True),
        OpenDeletion(pool, plugin, None, [net], True),
        OpenDeletion(net, plugin, None, [], True),
    ]
    change(database, tables.task, member, state=TaskState.DONE)
    change(database, tables.task, pool, definition={"retain": True})
    change(database, tables.task, net, hooks={"pre-delete": {}})
    rows = deletions(database, graph.traversal)
    assert [(row.task_id, row.is_certain) for row in rows] == [(pool, False), (net, False)]
    change(database, tables.task, net, hooks=None, stepped=True)
    assert not deletions(database, graph.traversal)[1].is_certain


def test_only_the_deletion_of_a_whole_stack_counts(database: Database) -> None:
    assert deletions(database, a_graph(database, "UPDATE").traversal) == []
    assert deletions(database, a_graph(database, kind=TaskKind.CREATE).traversal) == []
    superseded = a_graph(database)
    stack = tables.stack
    database.write(
        lambda conn: conn.execute(
            sa.update(stack).where(stack.c.id == superseded.stack.id).values(traversal=new_id())
        )
    )
    assert deletions(database, superseded.traversal) == []
