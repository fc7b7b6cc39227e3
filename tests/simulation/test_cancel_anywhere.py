"""A cancel at each point of each kind of traversal: after every single event that happens without one.

``make simulate`` takes every point, the usual tests every fourth of each kind.
"""

import itertools
import pathlib
import typing
from collections.abc import Callable, Iterator

import pytest
from simulation.audit import Audit
from simulation.helpers import all_rows, ended, on, rows, template, updated
from simulation.world import World
from stoker.db.rows import Stack
from stoker.db.states import Status, TaskKind
from stoker.engine.errors import NotUpdatable
from stoker.engine.exports import abandon_stack
from stoker.engine.snapshots import take_snapshot
from stoker.engine.stacks import act_on_stack, delete_stack
from stoker.engine.updates import cancel_action, restore_stack

Json = typing.Any
OLD = template(a={"value": "old", "looks": 2}, b={"needs": on("a"), "size": 1}, c={"needs": on("b")})
NEW = template(a={"value": "new", "looks": 2}, b={"needs": on("a"), "size": 2}, d={"needs": on("b")})
"""One is changed, one replaced, one deleted, one added."""
POINTS = 200
"""More events than a traversal of these has."""


@pytest.fixture
def world(tmp_path: pathlib.Path) -> Iterator[World]:
    simulated = World(tmp_path, hosts=2, threads=2)
    audit = Audit(simulated.database, tmp_path / "sim.sqlite", simulated.cloud)
    simulated.database.observers = [audit.after_commit]
    yield simulated
    audit.close()
    assert simulated.cloud.wrong == []
    assert simulated.broken == []


def step(world: World) -> None:
    """The next event: one message, one step, one turn of a conductor, or time."""
    for conductor in world.awake():
        if world.bus.hints:
            return world.deliver(0, conductor.host)
        if world.bus.cancels:
            return world.deliver_cancel(0)
        if conductor.steps:
            return conductor.run_step()
        if conductor.run_once() == 0.0:
            return None
    world.pass_time(0.5)
    for conductor in world.awake():
        conductor.run_due_duties(world.clock.now)
    return None


@pytest.fixture
def stride(request: pytest.FixtureRequest) -> int:
    return 1 if request.config.getoption("--seeds") >= 100 else 4


def finished(world: World, stack: Stack) -> Stack:
    assert world.settle(lambda: ended(world, stack), within=100)
    return world.stack(stack.id)


def act(kind: TaskKind) -> Callable[[World, Stack], None]:
    return lambda world, stack: act_on_stack(world.context, world.stack(stack.id), kind)


def restore(world: World, stack: Stack) -> None:
    snapshot = take_snapshot(world.context, world.stack(stack.id), None)
    finished(world, stack)
    world.update(stack, NEW)
    finished(world, stack)
    restore_stack(world.context, world.stack(stack.id), snapshot.id)


def resume(world: World, stack: Stack) -> None:
    act(TaskKind.SUSPEND)(world, stack)
    finished(world, stack)
    act(TaskKind.RESUME)(world, stack)


def roll_back(world: World, stack: Stack) -> None:
    world.update(stack, NEW)
    for _ in range(10):
        step(world)
    cancel_action(world.context, world.stack(stack.id), rollback=True)


BEGIN: dict[str, Callable[[World, Stack], None]] = {
    "UPDATE": lambda world, stack: world.update(stack, NEW),
    "DELETE": lambda world, stack: delete_stack(world.context, world.stack(stack.id)),
    "CHECK": act(TaskKind.CHECK),
    "SUSPEND": act(TaskKind.SUSPEND),
    "RESUME": resume,
    "SNAPSHOT": lambda world, stack: void(take_snapshot(world.context, world.stack(stack.id), None)),
    "RESTORE": restore,
    "ROLLBACK": roll_back,
}


def void(_: object) -> None:
    """For what is called for its effect."""


def begun(world: World, action: str, name: str) -> Stack:
    """A stack that has just begun with the action."""
    if action == "CREATE":
        return world.create(name, OLD)
    if action == "ADOPT":
        old = world.create(f"{name}-before", OLD)
        finished(world, old)
        return world.adopt(name, abandon_stack(world.context, world.stack(old.id)))
    stack = world.create(name, OLD)
    finished(world, stack)
    BEGIN[action](world, stack)
    return stack


def check_ended(world: World, stack: Stack, action: str, *, rollback: bool) -> None:
    outcome = finished(world, stack)
    if rollback:
        assert (outcome.action, outcome.status) == ("ROLLBACK", Status.COMPLETE), outcome.reason
        assert set(rows(world, stack)) == (set() if action == "CREATE" else set(OLD["resources"]))
    else:
        assert (outcome.action, outcome.status) == (action, Status.FAILED), outcome.reason
        assert outcome.reason == "User cancelled operation"
    assert sum(conductor.loop.in_progress for conductor in world.awake()) == 0


def goes_on(world: World, stack: Stack, action: str) -> None:
    objects = set(world.cloud.objects)
    if action == "SUSPEND":
        act(TaskKind.RESUME)(world, stack)
        finished(world, stack)
    if action == "ADOPT":
        updated(world, stack, OLD)
        assert set(world.cloud.objects) == objects, "they were adopted"
    updated(world, stack, NEW)
    assert set(rows(world, stack)) == set(NEW["resources"])
    assert all_rows(world, stack) == len(world.cloud.objects) == len(NEW["resources"])


def delete(world: World, stack: Stack) -> None:
    delete_stack(world.context, world.stack(stack.id))
    finished(world, stack)
    assert world.cloud.objects == {}


@pytest.mark.parametrize("rollback", [False, True], ids=["without", "with-rollback"])
@pytest.mark.parametrize("action", ["CREATE", "ADOPT", *BEGIN])
def test_it_ends_there_and_the_next_update_continues(
    world: World, action: str, rollback: bool, stride: int
) -> None:
    refused = action == "DELETE" or (rollback and action not in ("CREATE", "UPDATE"))
    for point in itertools.count(0, stride):
        stack = begun(world, action, f"s{point}")
        for _ in range(point):
            step(world)
        if ended(world, stack):
            break
        assert point < POINTS
        if refused:
            with pytest.raises(NotUpdatable, match="is not supported"):
                cancel_action(world.context, world.stack(stack.id), rollback=rollback)
            outcome = finished(world, stack)
            assert (outcome.action, outcome.status) == (action, Status.COMPLETE), outcome.reason
        else:
            cancel_action(world.context, world.stack(stack.id), rollback=rollback)
            check_ended(world, stack, action, rollback=rollback)
            goes_on(world, stack, action)
        delete(world, stack)
    assert point >= 4, "there were points to cancel at"
