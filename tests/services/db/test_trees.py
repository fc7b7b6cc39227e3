"""The size of a tree: who makes a nested stack counts all that others have stored before."""

import threading
import typing

import sqlalchemy as sa
from services.db.rows import a_resource, a_stack, delete_stack, on, raised, together
from services.db.servers import SERVERS
from stoker.db import resources, stacks, statements, trees
from stoker.db.engine import Database
from stoker.db.ids import ResourceId, StackId
from stoker.db.queries import nesting
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


def test_data_of_a_tree_are_named_by_their_paths(database: Database) -> None:
    """Rows that were replaced, and those of another tree, are left out."""
    group = {"plugin": "OS::Heat::ResourceGroup"}
    root = a_stack()
    other = a_stack(name="other")

    def store(conn: sa.Connection) -> None:
        for stack, first in ((root, 1), (other, 11)):
            stacks.insert(conn, stack)
            child = nested(conn, stack, first, 0, data={"removed": ["0"]}, **group)
            below = [
                a_resource(child.id, first + 1, "g", data={"removed": ["1"]}, replaced_by=first + 2, **group),
                a_resource(child.id, first + 2, "g", data={"removed": [str(first)]}, **group),
                a_resource(child.id, first + 3, "value", data={"removed": ["9"]}),
            ]
            resources.insert_many(conn, below)

    database.write(store)
    data = database.read(lambda conn: nesting.data_by_path(conn, root.id, [group["plugin"]]))
    assert data == {
        ("r1",): (group["plugin"], {"removed": ["0"]}),
        ("r1", "g"): (group["plugin"], {"removed": ["1"]}),
    }


def test_complete_resources_that_refer_to_another_one_are_found_by_type(database: Database) -> None:
    stack = a_stack()
    handle = a_resource(stack.id, 1, "handle")
    condition = {"plugin": "OS::Heat::WaitCondition"}
    rows = [
        handle,
        a_resource(stack.id, 2, "follows", requires=[1], **condition),
        a_resource(stack.id, 3, "follows too", requires=[7, 1], **condition),
        a_resource(stack.id, 4, "in progress", requires=[1], status="IN_PROGRESS", **condition),
        a_resource(stack.id, 5, "of another", requires=[7], **condition),
        a_resource(stack.id, 6, "of another type", requires=[1]),
        a_resource(stack.id, 8, "replaced", requires=[1], replaced_by=2, **condition),
    ]

    def store(conn: sa.Connection) -> None:
        stacks.insert(conn, stack)
        resources.insert_many(conn, rows)

    database.write(store)
    ids = database.read(lambda conn: resources.complete_requiring(conn, handle, [condition["plugin"]]))
    assert sorted(ids) == [2, 3]
