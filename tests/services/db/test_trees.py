"""The size of a tree: who makes a nested stack counts all that others have stored before."""

import threading
import typing

import sqlalchemy as sa
from services.db.rows import a_resource, a_stack, delete_stack, on, raised, together
from services.db.servers import SERVERS
from stoker.db import resources, stacks, statements, trees
from stoker.db.engine import Database
from stoker.db.ids import ResourceId, StackId
from stoker.db.rows import Stack
from stoker.db.schema import tables
from stoker.db.work import breakpoints
from stoker.engine.context import EngineSettings
from stoker.engine.tree_limit import charge
from stoker.template.compile import Limits
from stoker.template.errors import LimitExceeded

RACERS = 4


def nested(conn: sa.Connection, root: Stack, owner: int, own: int, **fields: typing.Any) -> Stack:
    """Store a nested stack of a new resource of the root."""
    resources.insert_many(conn, [a_resource(root.id, owner, f"r{owner}", **fields)])
    child = a_stack(
        root_id=root.id,
        live_name=None,
        parent_id=root.id,
        parent_resource_id=ResourceId(owner),
        depth=1,
        own_resources=own,
    )
    stacks.insert(conn, child)
    return child


@on(*SERVERS)
def test_of_nested_stacks_that_each_take_the_last_room_one_is_committed(database: Database) -> None:
    # SQLite has one writer at a time: there the others would wait here for the first one's end.
    stored = threading.Barrier(1 if database.dialect == "sqlite" else RACERS)
    root = a_stack(own_resources=2, tree_resources=2)
    database.write(lambda conn: stacks.insert(conn, root))
    settings = EngineSettings(64, limits=Limits(resources=9))

    def create(owner: int) -> bool:
        def store(conn: sa.Connection) -> None:
            child = nested(conn, root, owner, 7)
            stored.wait(60)
            charge(conn, settings, child, is_limited=True)

        database.write(store)
        return True

    results = together(*(lambda owner=owner: create(owner) for owner in range(1, RACERS + 1)))
    errors = raised(results)
    assert [type(error) for error in errors] == [LimitExceeded] * (RACERS - 1), errors
    size = database.read(lambda conn: trees.size_of(conn, root.id))
    assert (size.resources, size.counted, size.excess) == (9, 2, 7)


def test_what_is_deleted_replaced_or_orphaned_does_not_count(database: Database) -> None:
    root = a_stack(own_resources=1, tree_resources=9)

    def store(conn: sa.Connection) -> None:
        stacks.insert(conn, root)
        nested(conn, root, 11, 2)
        nested(conn, root, 12, 30, replaced_by=ResourceId(5))
        stacks.insert(conn, a_stack(root_id=root.id, parent_id=root.id, live_name=None, own_resources=400))
        gone = nested(conn, root, 13, 5000)
        delete_stack(conn, gone, 9.0)
        stacks.insert(conn, a_stack(name="other", own_resources=60000))

    database.write(store)
    size = database.read(lambda conn: trees.size_of(conn, root.id))
    assert (size.resources, size.counted, size.grown) == (3, 9, 0)


@on(*SERVERS)
def test_a_circle_of_stacks_costs_each_of_them_once(database: Database) -> None:
    root = a_stack()
    inner = a_stack(
        root_id=root.id, live_name=None, parent_id=root.id, parent_resource_id=ResourceId(1), depth=1
    )
    circle = {"parent_id": inner.id, "parent_resource_id": ResourceId(2)}

    def damage(conn: sa.Connection) -> None:
        stacks.insert(conn, root)
        resources.insert_many(conn, [a_resource(root.id, 1, "r1"), a_resource(inner.id, 2, "r2")])
        stacks.insert(conn, inner)
        conn.execute(sa.update(tables.stack).where(tables.stack.c.id == root.id).values(circle))

    database.write(damage)
    both = sorted([root.id, inner.id])
    for query in (
        *(statements.below(root.id, deepest) for deepest in (None, 5)),
        *(statements.inside([one]) for one in both),
    ):
        assert sorted(database.read(lambda conn, query=query: conn.execute(query).scalars().all())) == both
    assert database.read(lambda conn: statements.paths(conn, root.id, both)) == {root.id: "", inner.id: "r1/"}
    elsewhere = database.read(lambda conn: statements.paths(conn, StackId("x"), both))
    assert {path.count("/") for path in elsewhere.values()} == {0, statements.LEVELS}
    held, traversals = database.read(lambda conn: breakpoints.held_in_tree(conn, root.id))
    assert (held, sorted(traversals.values())) == ([], both)
    assert len(database.read(lambda conn: resources.of_tree(conn, root, 9))) == 2
