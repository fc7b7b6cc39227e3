"""An id that another process has made too: the database refuses the second row, and nothing is harmed."""

import itertools
import pathlib
import typing
from collections.abc import Callable

import pytest
import sqlalchemy as sa
from simulation.helpers import cancel, ended, on, pass_grace, rows, template
from simulation.nested import INNER, autoscaling_group, child, hot, inner
from simulation.test_refresh import asking
from simulation.test_scaling import policy, unfinished
from simulation.world import World
from stoker.db import resources
from stoker.db.id_source import IdSource
from stoker.db.ids import ResourceId, TaskId, TraversalNumber
from stoker.db.rows import Resource, Stack
from stoker.db.schema import tables
from stoker.db.states import Status, TaskKind
from stoker.engine.exports import abandon_stack
from stoker.engine.signals import send_signal
from stoker.engine.snapshots import delete_snapshot, take_snapshot
from stoker.engine.stacks import act_on_stack, delete_stack

Json = typing.Any
T = typing.TypeVar("T")
TABLES: Json = {ResourceId: tables.resource, TaskId: tables.task, TraversalNumber: tables.traversal}


class Doubling(IdSource):
    """Makes one id that a row of that kind has, in the place of the one with that index.

    :ivar count: the number of ids that it has made.
    """

    def __init__(self, world: World, index: int) -> None:
        super().__init__(world.clock, randbits=world.dice.getrandbits)
        self.index = index
        self.count = 0
        self._existing = identity(world)

    def new(self, kind: Callable[[int], T]) -> T:
        self.count += 1
        return (
            kind(self._existing[TABLES[kind].name][0]) if self.count == self.index + 1 else super().new(kind)
        )


def identity(world: World) -> dict[str, tuple[int, str]]:
    """The id and the stack of the neighbour's row in each table."""
    s = tables.stack
    neighbour = {}
    for table in TABLES.values():
        query = sa.select(table.c.id, table.c.stack_id).join(s, s.c.id == table.c.stack_id)
        query = query.where(s.c.name == "neighbour")
        row = world.database.read(lambda conn: conn.execute(query).one())  # noqa: B023
        neighbour[table.name] = (row.id, row.stack_id)
    return neighbour


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    """A world with a neighbour: a stack whose creation does not end."""
    world = World(tmp_path, hosts=2, threads=4)
    world.create("neighbour", template(theirs={"endless": True, "after": 500}), timeout_mins=1000)
    world.calm()
    return world


def settled(world: World, stack: Stack) -> Stack:
    assert world.settle(lambda: ended(world, stack), within=120)
    return world.stack(stack.id)


BEFORE = template(a={}, b={"needs": on("a")}, c={})
AFTER = template(a={"value": "new"}, b={"needs": on("a")}, d={"needs": on("b")})
GROUP = hot({"g": autoscaling_group(desired_capacity=1), "up": policy(1)})


def snapshot_taken(world: World, stack: Stack) -> None:
    take_snapshot(world.context, world.stack(stack.id), "kept")


def snapshot_deleted(world: World, stack: Stack) -> None:
    snapshot = take_snapshot(world.context, world.stack(stack.id), "kept")
    assert settled(world, stack).status == Status.COMPLETE
    delete_snapshot(world.context, world.stack(stack.id), snapshot.id)
    world.calm()


def scale(world: World, stack: Stack) -> None:
    send_signal(world.context, world.stack(stack.id), "up", None)
    assert world.settle(lambda: not unfinished(world), within=60)
    assert rows(world, stack)["g"].attributes["current_size"] == 2


USE_CASES: dict[str, tuple[Json, Callable[[World, Stack], object]]] = {
    "update": (BEFORE, lambda world, stack: world.update(stack, AFTER)),
    "update that reads again": (
        asking("a", a={}, b={"needs": on("a")}),
        lambda world, stack: world.update(stack, asking("a", a={}, b={"needs": on("a"), "value": "new"})),
    ),
    "check": (
        BEFORE,
        lambda world, stack: act_on_stack(world.context, world.stack(stack.id), TaskKind.CHECK),
    ),
    "snapshot": (BEFORE, snapshot_taken),
    "deletion of a snapshot": (BEFORE, snapshot_deleted),
    "deletion": (BEFORE, lambda world, stack: delete_stack(world.context, world.stack(stack.id))),
    "abandonment": (BEFORE, lambda world, stack: abandon_stack(world.context, world.stack(stack.id))),
    "scaling": (GROUP, scale),
    "nested stack": (
        hot({"n": child()}),
        lambda world, stack: world.update(stack, hot({"n": child(value="x")}), files={INNER: inner()}),
    ),
}


def try_all(world: World, run: Callable[[str, Callable[[], None]], Stack]) -> int:
    """Run a use case once for each id that it makes, with that one doubled; return how many they are.

    :param run: runs it on a stack of that name, and calls the function at the moment from which ids count.
    """
    neighbour = identity(world)
    for index in itertools.count():
        plain = world.database.ids
        doubling = Doubling(world, index)
        stack = run(f"s{index}", lambda: setattr(world.database, "ids", doubling))  # noqa: B023
        ended_stack = settled(world, stack)
        world.database.ids = plain
        assert ended_stack.status == Status.COMPLETE, (index, ended_stack.reason)
        assert world.broken == []
        assert world.cloud.wrong == []
        assert identity(world) == neighbour
        if doubling.count <= index:
            return index
    raise AssertionError("unreachable")


def test_a_creation_makes_new_ids(world: World) -> None:
    def run(name: str, arm: Callable[[], None]) -> Stack:
        arm()
        stack = world.create(name, asking("a", a={}, b={"needs": on("a")}))
        assert len(rows(world, stack)) == 2
        return stack

    assert try_all(world, run) == 2 * 2 + 1 + 1, "rows and tasks, a refresh, and the traversal"


@pytest.mark.parametrize(("before", "act"), USE_CASES.values(), ids=USE_CASES)
def test_a_use_case_makes_new_ids(world: World, before: Json, act: Callable[[World, Stack], object]) -> None:
    def run(name: str, arm: Callable[[], None]) -> Stack:
        stack = world.create(name, before, files={INNER: inner()})
        assert settled(world, stack).status == Status.COMPLETE
        arm()
        act(world, stack)
        return stack

    assert try_all(world, run) >= 1


def test_the_removal_of_what_a_detached_step_makes_gets_new_ids(world: World) -> None:
    def run(name: str, arm: Callable[[], None]) -> Stack:
        stack = world.create(name, template(a={"hangs": ["create"]}))
        world.calm()
        cancel(world, stack)
        arm()
        pass_grace(world)
        next(one for one in world.awake() if one.hanging).go_on()
        delete_stack(world.context, world.stack(stack.id))
        return stack

    assert try_all(world, run) >= 3
    assert len(world.cloud.objects) == 1, "that of the neighbour"


def replacement(world: World, stack: Stack) -> Resource | None:
    """The row that has replaced the stack's only resource."""
    rows_of_stack = world.database.read(lambda conn: resources.of_stack(conn, stack.id))
    return next((row for row in rows_of_stack if row.replaces is not None), None)


def test_a_replacement_whose_id_is_taken_fails_its_task_and_the_next_update_makes_it(world: World) -> None:
    neighbour = identity(world)
    stack = world.create("s", template(a={}))
    assert settled(world, stack).status == Status.COMPLETE
    plain = world.database.ids
    # The ids of an update are those of its task and of the replacement, which is stored much later.
    world.database.ids = Doubling(world, 1)
    world.update(stack, template(a={"size": 2}))
    failed = settled(world, stack)
    assert failed.status == Status.FAILED
    assert "cannot be stored" in failed.reason
    assert (world.cloud.wrong, identity(world)) == ([], neighbour)
    [broken] = world.broken
    assert "DBDuplicateEntry" in broken
    world.database.ids = plain
    world.update(stack, template(a={"size": 2}))
    assert settled(world, stack).status == Status.COMPLETE
    assert rows(world, stack)["a"].properties["size"] == 2


def test_a_resource_of_another_stack_is_not_taken_for_a_replacement(world: World) -> None:
    stack = world.create("s", asking("a", a={}, b={"needs": on("a")}))
    assert settled(world, stack).status == Status.COMPLETE
    neighbour = identity(world)
    world.database.ids = Doubling(world, 1)
    world.update(stack, asking("a", a={"value": "new"}, b={"needs": on("a")}, c={"needs": on("a")}))
    assert settled(world, stack).status == Status.COMPLETE
    assert [line for line in world.cloud.calls if line.startswith("refresh")] == ["refresh a"] * 2
    assert rows(world, stack)["a"].attributes["users"] == ["b", "c"]
    assert identity(world) == neighbour
