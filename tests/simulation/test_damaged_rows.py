"""Rows that this release cannot read: the one stack fails, and says why, and the others continue."""

import pathlib
import typing

import pytest
import sqlalchemy as sa
from simulation.helpers import ended, template
from simulation.nested import INNER, child, hot, inner, settled
from simulation.world import World
from stoker.conductor.duties.slice_scan import SliceScan
from stoker.db import resources
from stoker.db.errors import DamagedRow
from stoker.db.schema import tables
from stoker.db.states import FINAL, Status, TaskState
from stoker.engine.cancel import announce_timed_out, fail_unreadable

Json = typing.Any


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=1, threads=4)


def damage(world: World, table: str, column: str, value: str, condition: str) -> int:
    """Set a column as no release does; return the number of rows."""
    change = sa.text(f"UPDATE {table} SET {column} = :value WHERE {condition}")
    return int(world.database.write(lambda conn: conn.execute(change, {"value": value}).rowcount))


@pytest.mark.parametrize(
    ("table", "column", "value", "reason"),
    [
        ("task", "kind", "transmute", "'transmute' is not a valid TaskKind"),
        ("task", "definition", "[]", "A stored value is a list where a dict is needed"),
        ("task", "successors", "{", "A stored value is not JSON"),
        ("resource", "requires", "1", "A stored value is a int where a list is needed"),
    ],
)
def test_a_task_that_cannot_be_read_fails_its_stack_alone(
    world: World, table: str, column: str, value: str, reason: str
) -> None:
    stack = world.create("damaged", template(a={}, b={}))
    others = [world.create(f"whole{number}", template(c={}, d={})) for number in range(3)]
    assert damage(world, table, column, value, f"stack_id = '{stack.id}'") == 2
    assert world.settle(lambda: all(ended(world, each) for each in (stack, *others)), within=120)
    current = world.stack(stack.id)
    assert current.status == Status.FAILED
    assert reason in current.reason
    assert {world.stack(each.id).status for each in others} == {Status.COMPLETE}
    assert not world.broken
    t = tables.task
    left = sa.select(t.c.id).where(t.c.stack_id == stack.id, t.c.state.not_in(sorted(FINAL)))
    assert not world.database.read(lambda conn: conn.execute(left).all())


def test_a_nested_stack_with_a_task_that_cannot_be_read_fails_its_parent_and_its_running_tasks(
    world: World,
) -> None:
    stack = world.create("s", hot({"inside": child()}), files={INNER: inner(after=10**6)})
    t = tables.task.c
    inside = sa.select(t.id).where(t.stack_id != stack.id, t.state == TaskState.RUNNING)
    assert world.settle(lambda: bool(world.database.read(lambda conn: conn.execute(inside).all())), within=30)
    [task_id] = world.database.read(lambda conn: conn.execute(inside).scalars().all())
    ended_stacks = world.database.write(
        lambda conn: fail_unreadable(conn, task_id, "no JSON", by="host0", now=world.clock.now, grace=1.0)
    )
    assert (len(ended_stacks.stacks), len(ended_stacks.running)) == (1, 1)
    announce_timed_out(world.context.hints, ended_stacks)
    assert settled(world, stack, within=5).status == Status.FAILED
    assert f"Task {task_id} cannot be read: no JSON" in world.stack(stack.id).reason


def test_a_due_task_of_an_unknown_kind_does_not_stop_the_duty_of_others(world: World) -> None:
    stack = world.create("damaged", template(a={}))
    world.bus.hints.clear()
    other = world.create("whole", template(b={}))
    world.bus.hints.clear()  # Only the duty finds them now.
    assert damage(world, "task", "kind", "transmute", f"stack_id = '{stack.id}'") == 1
    assert world.settle(lambda: ended(world, other) and ended(world, stack), within=120)
    assert world.stack(other.id).status == Status.COMPLETE
    assert world.stack(stack.id).status == Status.FAILED


def test_a_scan_goes_past_an_object_that_cannot_be_read(world: World) -> None:
    [conductor] = world.conductors.values()
    scan = SliceScan(conductor.duty_context(), "Number")

    def write(conn: sa.Connection, part: typing.Sequence[int]) -> list[int]:
        if 2 in part:
            raise DamagedRow("A stored value is not JSON")
        return list(part)

    assert list(scan.run([1, 2, 3], write, key=lambda number: number)) == [[1], [3]]
    assert list(scan.run([4, 2], write, key=lambda number: number)) == [[4]]


def test_the_error_names_what_is_wrong(world: World) -> None:
    stack = world.create("damaged", template(a={}))
    assert damage(world, "resource", "metadata", "nonsense", f"stack_id = '{stack.id}'") == 1
    with pytest.raises(DamagedRow, match="A stored value is not JSON: Expecting value"):
        world.database.read(lambda conn: resources.of_stack(conn, stack.id))


def test_a_stack_that_cannot_be_read_does_not_stop_the_rollbacks_of_others(world: World) -> None:
    names = ("damaged", "other")
    damaged, other = (
        world.create(name, template(a={"after": 10**6}), disable_rollback=False) for name in names
    )
    assert not world.settle(lambda: ended(world, damaged) or ended(world, other), within=60)
    assert damage(world, "stack", "outputs", "[", f"id = '{damaged.id}'") == 1
    assert world.settle(
        lambda: world.stack(other.id).action == "ROLLBACK" and ended(world, other), within=900
    )
    assert world.stack(other.id).status == Status.COMPLETE
