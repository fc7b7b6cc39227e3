"""A step that kills or freezes its conductors fails after some of them; one that was only near continues."""

import functools
import pathlib
import typing

import pytest
import sqlalchemy as sa
from simulation.helpers import ended, rows, template
from simulation.world import TIMEOUT, SimConductor, World
from stoker.db import conductors
from stoker.db.conductors import DRAINING, STOPPED, ConductorRecord
from stoker.db.ids import TaskId
from stoker.db.rows import Stack
from stoker.db.schema import tables
from stoker.db.states import Status, TaskState
from stoker.db.work import losses, tasks
from stoker.engine.stacks import delete_stack
from stoker.features.diagnosis.rescue import Rescue

Json = typing.Any


class Never(set[typing.Any]):
    """Forgets each call that hung, so that it hangs again."""

    def add(self, function: typing.Any) -> None:
        """Leave it out."""


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    simulated = World(tmp_path, hosts=5, threads=4)
    simulated.cloud.hung = Never()
    return simulated


def hanging(world: World) -> list[SimConductor]:
    return [conductor for conductor in world.awake() if conductor.hanging]


def wait_hanging(world: World) -> SimConductor:
    assert world.settle(lambda: bool(hanging(world)), within=100)
    return hanging(world)[0]


def lost_with(world: World, stack: Stack, name: str) -> list[str]:
    """The hosts that are stored as lost with the resource's task."""
    stored_tasks = world.database.read(lambda conn: tasks.of_traversal(conn, world.stack(stack.id).traversal))
    [task] = [task for task in stored_tasks if task.resource_id == rows(world, stack)[name].id]
    return list(losses.hosts(task))


def lose(world: World, conductor: SimConductor, how: str = "killed") -> None:
    """The conductor dies, or freezes, and the others take over."""
    if how == "killed":
        world.kill(conductor.host)
    else:
        world.pause(conductor.host)
    for _ in range(2):
        world.pass_time(2 * TIMEOUT + 1)
        world.look_all()
        for other in world.awake():
            other.run_due_duties(world.clock.now)


@pytest.mark.parametrize("how", ["killed", "frozen"])
def test_a_step_that_costs_three_conductors_fails_and_the_fourth_is_spared(world: World, how: str) -> None:
    stack = world.create("s", template(a={"hangs": ["create"]}))
    felled = []
    for _ in range(3):
        conductor = wait_hanging(world)
        felled.append(conductor.host)
        assert lost_with(world, stack, "a") == felled[:-1]
        lose(world, conductor, how)
    assert world.settle(lambda: ended(world, stack), within=100)
    current = world.stack(stack.id)
    reason = f"CREATE was running on 3 conductors that died or went silent ({', '.join(felled)})"
    assert current.status == Status.FAILED
    assert f"{reason}; it is not tried again" in current.reason
    assert hanging(world) == []
    assert rows(world, stack)["a"].status == Status.FAILED


def test_a_new_update_begins_at_zero(world: World) -> None:
    stack = world.create("s", template(a={"hangs": ["create"]}))
    for _ in range(3):
        lose(world, wait_hanging(world))
    assert world.settle(lambda: ended(world, stack), within=100)
    for host in ("host0", "host1", "host2", "host3", "host4"):
        if host not in world.conductors:
            world.start(host)
    world.update(stack, template(a={"hangs": ["create"]}))
    wait_hanging(world).go_on()
    assert world.settle(lambda: ended(world, stack), within=100)
    assert world.stack(stack.id).status == Status.COMPLETE


def test_in_quarantine_one_task_runs_at_a_time_so_that_the_innocent_one_ends_well(
    world: World,
) -> None:
    """The innocent one's call is slow: twice it is in it when the other one fells their conductor."""
    stack = world.create("s", template(bad={"hangs": ["create"]}, slow={"hangs": ["create"]}))
    for index in range(2):
        target = sorted(world.conductors)[index]
        both_run_on(world, stack, target)
        lose(world, world.conductors[target])
    assert {name: len(lost_with(world, stack, name)) for name in ("bad", "slow")} == {"bad": 2, "slow": 2}
    target = sorted(world.conductors)[0]
    claim_both(world, stack, target)
    conductor = world.conductors[target]
    assert len(conductor.hanging) == 1
    if running_alone(world, stack) == "slow":
        conductor.go_on()
        conductor.run_once()
        world.pass_time(1.1)
        conductor.run_once()
        while conductor.steps:
            conductor.run_step()
    assert running_alone(world, stack) == "bad"
    lose(world, conductor)
    assert world.settle(lambda: len(hanging(world)) == 1 or ended(world, stack), within=100)
    for other in hanging(world):
        other.go_on()
    assert world.settle(lambda: ended(world, stack), within=100)
    assert {name: row.status for name, row in rows(world, stack).items()} == {
        "bad": Status.FAILED,
        "slow": Status.COMPLETE,
    }


def claim_both(world: World, stack: Stack, host: str) -> None:
    """The conductor gets the hints of all that is ready, and runs what it may."""
    ready = world.database.read(lambda conn: tasks.of_traversal(conn, stack.traversal))
    ids = [task.id for task in ready if task.state == TaskState.READY]
    world.bus.hints.clear()
    conductor = world.conductors[host]
    conductor.loop.enqueue({stack.traversal: ids})
    conductor.run_once()
    while conductor.steps:
        conductor.run_step()
    conductor.run_once()


def both_run_on(world: World, stack: Stack, host: str) -> None:
    claim_both(world, stack, host)
    assert len(world.conductors[host].hanging) == 2


def running_alone(world: World, stack: Stack) -> str:
    """The resource whose step was announced."""
    t = tables.task
    r = tables.resource
    query = sa.select(r.c.name, t.c.losses, t.c.attempt).join(r, r.c.id == t.c.resource_id)
    query = query.where(t.c.stack_id == stack.id, t.c.state == TaskState.RUNNING)
    stored = world.database.read(lambda conn: conn.execute(query).all())
    [name] = [name for name, lost, attempt in stored if (lost or {}).get("step") == attempt]
    return str(name)


def test_what_polls_between_deaths_is_never_counted_up(world: World) -> None:
    stack = world.create("s", template(a={"looks": 1000, "after": 2}))
    for _ in range(4):
        assert world.settle(lambda: any(c.loop.in_progress for c in world.awake()), within=100)
        [holder] = [c for c in world.awake() if c.loop.in_progress]
        assert lost_with(world, stack, "a") == []
        lose(world, holder)
        assert len(lost_with(world, stack, "a")) == 1
    assert world.stack(stack.id).status == Status.IN_PROGRESS


@pytest.mark.parametrize(("state", "count"), [(STOPPED, 0), (DRAINING, 0), ("active", 1)])
def test_an_orderly_stop_does_not_count(world: World, state: str, count: int) -> None:
    stack = world.create("s", template(a={"hangs": ["create"]}))
    conductor = wait_hanging(world)
    member = conductor.ring.member()
    assert member is not None
    row = ConductorRecord(conductor.host, member, state, started_at=0.0, heartbeat_at=world.clock.now)
    world.database.write(lambda conn: conductors.report(conn, row))
    lose(world, conductor)
    assert len(lost_with(world, stack, "a")) == count


def test_a_retry_of_the_operators_begins_at_zero(world: World) -> None:
    stack = world.create("s", template(a={"hangs": ["create"]}))
    for _ in range(2):
        lose(world, wait_hanging(world))
    wait_hanging(world)
    assert len(lost_with(world, stack, "a")) == 2
    rescue = Rescue(
        database=world.database,
        hints=world.bus,
        clock=world.clock,
        reports=lambda member: True,
        grace=1.0,
    )
    rescue.retry(world.stack(stack.id), "a")
    assert lost_with(world, stack, "a") == []


def test_a_step_that_was_detached_lets_the_next_task_begin(world: World) -> None:
    stack = world.create("s", template(a={"hangs": ["create"]}, b={"hangs": ["create"]}))
    stored_tasks = world.database.read(lambda conn: tasks.of_traversal(conn, stack.traversal))
    ids = [task.id for task in stored_tasks if task.state == TaskState.READY]
    lose_twice(world, ids)
    claim_both(world, stack, "host0")
    conductor = world.conductors["host0"]
    first = running_alone(world, stack)
    assert len(conductor.hanging) == 1
    delete_stack(world.context, world.stack(stack.id))
    world.calm()
    world.pass_time(11)
    world.calm()
    assert len(conductor.detached) == 1
    assert conductor.loop._executor.quarantine._alone is None
    assert first in ("a", "b")


def lose_twice(world: World, ids: list[TaskId]) -> None:
    """Two conductors were lost with each of these tasks."""
    transaction = functools.partial(_lose_twice, ids=ids)
    world.database.write(transaction)


def _lose_twice(conn: sa.Connection, ids: list[TaskId]) -> None:
    t = tables.task
    conn.execute(sa.update(t).where(t.c.id.in_(ids)).values(losses={"hosts": ["x", "y"]}))


def test_the_loss_of_a_conductor_that_returns_is_forgiven(world: World) -> None:
    """A busy host's conductors are silent for a while, one after the other."""
    stack = world.create("s", template(a={"hangs": ["create"]}))
    for _ in range(5):
        conductor = wait_hanging(world)
        lose(world, conductor, "frozen")
        assert lost_with(world, stack, "a") == [conductor.host]
        world.resume(conductor.host)
        conductor.go_on()
        world.look_all()
        world.pass_time(2)
        for other in world.awake():
            other.run_due_duties(world.clock.now)
        assert lost_with(world, stack, "a") == []
    assert not ended(world, stack)


def test_a_new_incarnation_of_the_same_process_is_no_loss(world: World) -> None:
    stack = world.create("s", template(a={"hangs": ["create"]}))
    conductor = wait_hanging(world)
    world.group.pop(conductor.host)
    world.look_all()
    for other in world.awake():
        other.run_due_duties(world.clock.now)
    assert lost_with(world, stack, "a") == []
