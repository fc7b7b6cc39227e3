"""Cancel: a task between two polls ends at once, one that runs is asked, one that hangs is detached."""

import pathlib
import re
import typing

import pytest
import sqlalchemy as sa
from simulation.helpers import cancel, created, ended, hanging, history, pass_grace, rows, template, updated
from simulation.world import GRACE, SimConductor, World
from stoker.db import resources, snapshots, stacks
from stoker.db.queries import pauses
from stoker.db.rows import Stack
from stoker.db.schema import tables
from stoker.db.states import Status, TaskKind, TaskState
from stoker.db.work import cancel as stopping
from stoker.db.work import orphans
from stoker.engine.errors import NotUpdatable
from stoker.engine.snapshots import take_snapshot
from stoker.engine.stacks import act_on_stack, delete_stack
from stoker.engine.updates import restore_stack
from stoker.resources.contract.context import StepContext
from stoker.resources.contract.errors import PermanentError
from stoker.resources.contract.plugin import ResourceType
from stoker.resources.contract.steps import Poll, Step
from stoker.resources.contract.views import ResourceView

Json = typing.Any


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4)


def begun(world: World, document: Json, **fields: Json) -> Stack:
    """A stack that goes as far as it comes by itself."""
    stack = world.create("s", document, **fields)
    world.calm()
    return stack


def left_over(world: World) -> list[Json]:
    s = tables.stack
    query = sa.select(s).where(s.c.parent_id.is_not(None)).order_by(s.c.created_at)
    return list(world.database.read(lambda conn: conn.execute(query).all()))


def test_what_waits_between_two_looks_ends_at_once_and_its_type_is_history(world: World) -> None:
    stack = begun(world, template(a={"looks": 100, "after": 100}, b={"looks": 100, "after": 100}))
    cancelled = cancel(world, stack)
    assert (cancelled.action, cancelled.status, cancelled.reason) == (
        "CREATE",
        "FAILED",
        "CREATE cancelled by alice",
    )
    world.calm()
    assert sorted(world.cloud.cancelled) == ["a", "b"]
    assert {(row.status, row.reason) for row in rows(world, stack).values()} == {("FAILED", "CREATE aborted")}
    assert [c.loop.in_progress for c in world.awake()] == [0, 0]


def test_a_cancel_names_who_did_it_also_where_it_rolls_back(world: World) -> None:
    stack = created(world, template(a={}))
    world.update(stack, template(a={"value": "x", "looks": 100, "after": 100}))
    world.calm()
    cancelled = cancel(world, stack, rollback=True)
    assert (cancelled.action, cancelled.reason) == (
        "ROLLBACK",
        "Stack ROLLBACK started: UPDATE cancelled by alice",
    )
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.stack(stack.id).status == Status.COMPLETE


def test_a_creation_can_be_cancelled_and_rolled_back_to_nothing(world: World) -> None:
    stack = begun(world, template(a={}, b={"looks": 100, "after": 100}))
    cancel(world, stack, rollback=True)
    assert world.settle(lambda: ended(world, stack), within=60)
    current = world.stack(stack.id)
    assert (current.action, current.status, rows(world, stack)) == ("ROLLBACK", Status.COMPLETE, {})
    assert world.cloud.objects == {}


def test_what_cannot_be_rolled_back_is_cancelled_without(world: World) -> None:
    stack = created(world, template(a={"hangs": ["check"]}))
    act_on_stack(world.context, world.stack(stack.id), TaskKind.CHECK)
    world.calm()
    with pytest.raises(NotUpdatable, match="CHECK cannot be rolled back; cancel it without rollback"):
        cancel(world, stack, rollback=True)
    cancelled = cancel(world, stack)
    assert (cancelled.action, cancelled.status) == ("CHECK", Status.FAILED)
    with pytest.raises(NotUpdatable, match="Cancelling update when stack is CHECK_FAILED is not supported"):
        cancel(world, stack)


def test_a_step_that_hangs_does_not_hold_the_next_update_longer_than_the_grace(world: World) -> None:
    stack = begun(world, template(a={"hangs": ["create"]}, b={}))
    cancel(world, stack)
    world.update(stack, template(a={"value": "new"}, b={}))
    world.calm()
    assert not ended(world, stack)
    [waiting] = world.database.read(lambda conn: stopping.unanswered(conn, stack.id))
    assert world.database.read(lambda conn: pauses.get(conn, stack.id)[1]) == (False, True)
    assert (waiting.resource, waiting.member.split("/")[0]) == ("a", hanging(world)[0].host)
    pass_grace(world)
    assert world.settle(lambda: ended(world, stack), within=5)
    assert world.stack(stack.id).status == Status.COMPLETE
    assert rows(world, stack)["a"].attributes["value"] == "new"
    assert len(world.conductors[hanging(world)[0].host].detached) == 1
    assert any("did not stop when it was asked to" in event.reason for event in told_events(world, stack))
    assert world.database.read(lambda conn: stopping.unanswered(conn, stack.id)) == []
    assert world.database.read(lambda conn: pauses.get(conn, stack.id)[1]) == (False, False)


def told_events(world: World, stack: Stack) -> list[Json]:
    e = tables.event
    query = sa.select(e).where(e.c.stack_id == stack.id)
    return list(world.database.read(lambda conn: conn.execute(query).all()))


def test_what_a_step_makes_after_it_was_detached_is_removed_and_changes_nothing(world: World) -> None:
    stack = begun(world, template(a={"hangs": ["create"]}))
    cancel(world, stack)
    pass_grace(world)
    delete_stack(world.context, world.stack(stack.id))
    assert world.settle(lambda: ended(world, stack), within=10)
    before = world.stack(stack.id)
    count = len(history(world, stack))
    [left] = left_over(world)
    assert re.fullmatch(r"s-a-\d+", left.name)
    assert (left.action, left.status) == ("DELETE", "IN_PROGRESS")
    assert world.cloud.objects == {}, "it is not made yet"
    hanging(world)[0].go_on()
    assert len(world.cloud.objects) == 1, "now it is"
    assert world.settle(lambda: left_over(world)[0].status == "COMPLETE", within=10)
    assert world.cloud.objects == {}
    assert (world.stack(stack.id), len(history(world, stack))) == (before, count)


def test_the_removal_of_what_is_orphaned_is_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody would see that it has failed."""
    stack = begun(world, template(a={"hangs": ["create"]}))
    cancel(world, stack)
    pass_grace(world)
    refusals = [PermanentError("it is in use"), PermanentError("still")]
    unmake = world.cloud.unmake

    def refuse(physical: str) -> None:
        if refusals:
            raise refusals.pop(0)
        unmake(physical)

    monkeypatch.setattr(world.cloud, "unmake", refuse)
    hanging(world)[0].go_on()
    assert world.settle(lambda: left_over(world)[0].status == "COMPLETE", within=60)
    assert (refusals, world.cloud.objects) == ([], {})


def test_no_check_makes_a_resource_sound_whose_deletion_was_detached(world: World) -> None:
    """It may take place yet."""
    stack = created(world, template(a={"hangs": ["delete"]}, b={}))
    world.update(stack, template(b={}))
    world.calm()
    cancel(world, stack)
    pass_grace(world)
    act_on_stack(world.context, world.stack(stack.id), TaskKind.CHECK)
    assert world.settle(lambda: ended(world, stack), within=10)
    states = {name: f"{row.action}_{row.status}" for name, row in rows(world, stack).items()}
    assert states == {"a": "DELETE_FAILED", "b": "CHECK_COMPLETE"}
    hanging(world)[0].go_on()
    updated(world, stack, template(a={}, b={}))
    assert set(world.cloud.objects) == {row.physical_id for row in rows(world, stack).values()}


@pytest.mark.parametrize("kind", [TaskKind.CHECK, TaskKind.SUSPEND, TaskKind.SNAPSHOT])
def test_an_action_leaves_alone_what_came_to_nothing_while_it_waited(world: World, kind: TaskKind) -> None:
    """The creation still ran when the action was planned; nothing makes it sound but an update."""
    stack = begun(world, template(a={"hangs": ["create"]}, b={}))
    cancel(world, stack)
    if kind == TaskKind.SNAPSHOT:
        take_snapshot(world.context, world.stack(stack.id), None)
    else:
        act_on_stack(world.context, world.stack(stack.id), kind)
    pass_grace(world)
    assert world.settle(lambda: ended(world, stack), within=10)
    assert (world.stack(stack.id).action, world.stack(stack.id).status) == (kind.upper(), Status.COMPLETE)
    states = {name: f"{row.action}_{row.status}" for name, row in rows(world, stack).items()}
    assert states == {"a": "CREATE_FAILED", "b": f"{kind.upper()}_COMPLETE"}
    assert ("a", kind.upper(), "IN_PROGRESS") not in history(world, stack)
    hanging(world)[0].go_on()
    if kind == TaskKind.SUSPEND:
        act_on_stack(world.context, world.stack(stack.id), TaskKind.RESUME)
        assert world.settle(lambda: ended(world, stack), within=10)
    if kind == TaskKind.SNAPSHOT:
        [copy] = world.database.read(lambda conn: resources.copies(conn, stack.id))
        assert (copy.name, copy.status) == ("b", "COMPLETE")
        [snapshot] = world.database.read(lambda conn: snapshots.of_stack(conn, stack.id))
        restore_stack(world.context, world.stack(stack.id), snapshot.id)
        world.calm()
        hanging(world)[0].go_on()
        assert world.settle(lambda: ended(world, stack), within=10)
        assert world.stack(stack.id).reason == "Stack RESTORE completed successfully"
    else:
        updated(world, stack, template(a={}, b={}))
    assert {row.physical_id for row in rows(world, stack).values()} == set(world.cloud.objects)


def test_what_hangs_in_a_conductor_that_dies_is_removed_when_it_is_gone(world: World) -> None:
    stack = begun(world, template(a={"hangs": ["made"]}))
    cancel(world, stack)
    pass_grace(world)
    [conductor] = hanging(world)
    assert len(world.cloud.objects) == 1
    world.kill(conductor.host)
    assert world.settle(lambda: left_over(world)[0].status == "COMPLETE", within=60)
    assert world.cloud.objects == {}


def test_a_lost_cancel_is_repeated_by_the_owner_until_it_is_answered(world: World) -> None:
    stack = begun(world, template(a={"looks": 1000, "after": 100}))
    cancel(world, stack)
    world.bus.cancels.clear()
    world.calm()
    assert sum(c.loop.in_progress for c in world.awake()) == 1, "nobody has heard of it"
    world.pass_time(stopping.ASK_AGAIN)
    run_duties(world)
    assert [len(claims) for _, claims in world.bus.stops] == [1]
    world.bus.stops.clear()
    world.pass_time(stopping.ASK_AGAIN)
    run_duties(world)
    world.calm()
    assert sum(c.loop.in_progress for c in world.awake()) == 0
    assert rows(world, stack)["a"].status == Status.FAILED


def run_duties(world: World) -> None:
    for conductor in world.awake():
        conductor.run_duties()


def test_a_conductor_that_is_cut_off_from_the_bus_learns_of_it_when_it_is_back(world: World) -> None:
    """Its claim is taken away after the grace period; its further work is stopped when it hears of it."""
    stack = begun(world, template(a={"looks": 1000, "after": 100}))
    cancel(world, stack)
    for _ in range(40):
        world.bus.cancels.clear()
        world.bus.stops.clear()
        world.pass_time(0.5)
        run_duties(world)
    assert sum(c.loop.in_progress for c in world.awake()) == 1
    t = tables.task.c
    states = sa.select(t.state, t.member).where(t.stack_id == stack.id, t.resource_id.is_not(None))
    [(state, member)] = world.database.read(lambda conn: conn.execute(states).all())
    assert state == TaskState.CANCELLED
    assert member, "it has not answered"
    assert world.settle(
        lambda: not world.database.read(lambda conn: conn.execute(states.where(t.member > "")).all()),
        within=40,
    )
    assert sum(c.loop.in_progress for c in world.awake()) == 0
    assert world.settle(lambda: not world.bus.stops, within=40)
    sent = len(world.bus.stops)
    world.pass_time(60)
    run_duties(world)
    assert len(world.bus.stops) == sent, "nobody is asked again"


def test_a_step_that_is_detached_after_its_task_was_taken_away_is_still_waited_for(world: World) -> None:
    """Its detachment is refused as an outcome; it is no end of the step."""
    stack = begun(world, template(a={"hangs": ["create"]}))
    [conductor] = hanging(world)
    cancel(world, stack)
    while not left_over(world):
        world.bus.cancels.clear()
        world.bus.stops.clear()
        world.pass_time(0.5)
        run_duties(world)
    assert conductor.loop.in_progress == 1
    assert world.settle(lambda: conductor.loop.in_progress == 0, within=60)
    world.pass_time(10)
    world.calm()
    assert [row.status for row in left_over(world)] == ["IN_PROGRESS"], "the step hangs on"
    conductor.go_on()
    world.kill(conductor.host)
    assert world.settle(lambda: not world.cloud.objects, within=60)
    assert [row.status for row in left_over(world)] == ["COMPLETE"]


def test_conductors_that_are_not_concerned_do_no_database_work_for_a_cancel(world: World) -> None:
    stack = begun(world, template(a={"looks": 1000, "after": 100}))
    cancel(world, stack)
    [idle] = [c for c in world.awake() if c.loop.in_progress == 0]
    written: list[object] = []
    write = world.database.write
    world.database.write = lambda transaction: written.append(transaction) or write(transaction)  # type: ignore[method-assign]
    for index, (host, *_) in reversed(list(enumerate(world.bus.cancels))):
        if host == idle.host:
            world.deliver_cancel(index)
    idle.run_once()
    assert written == []


def test_a_resource_timeout_strikes_a_step_that_hangs(world: World) -> None:
    limit = {"resource_registry": {"resources": {"a": {"timeout": 5, "retries": 0}}}}
    stack = begun(world, template(a={"hangs": ["create"]}), environment=limit)
    world.pass_time(5.1)
    world.calm()
    assert not ended(world, stack), "it may still end within the grace period"
    pass_grace(world)
    assert ended(world, stack)
    [row] = rows(world, stack).values()
    assert row.reason.startswith("Timeout: resources.a: CREATE timed out: the step on host")


class Endless(ResourceType):
    """Is never complete."""

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        return Poll(progress={}, after=1.0)

    def check_create_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        return Poll(progress=progress, after=1.0)


class Limited(Endless):
    default_timeout = 5.0


@pytest.mark.parametrize(("environment", "seconds"), [({}, 5.0), ({"timeout": 20}, 20.0)])
def test_a_types_own_timeout_counts_where_the_environment_sets_none(
    tmp_path: pathlib.Path, environment: Json, seconds: float
) -> None:
    world = World(tmp_path, hosts=2, threads=4, types={"Sim::Limited": Limited, "Sim::Endless": Endless})
    types = {"limited": {"type": "Sim::Limited"}, "endless": {"type": "Sim::Endless"}}
    settings = {"resources": {"limited": {"retries": 0, **environment}, "endless": {"retries": 0}}}
    document = {"heat_template_version": "2018-08-31", "resources": types}
    stack = begun(world, document, environment={"resource_registry": settings})
    world.pass_time(seconds - 0.1)
    world.calm()
    assert rows(world, stack)["limited"].status == Status.IN_PROGRESS
    world.pass_time(0.2)
    world.settle(lambda: False, within=10)
    limited, endless = (rows(world, stack)[name] for name in ("limited", "endless"))
    assert limited.reason.startswith("Timeout: resources.limited: CREATE timed out")
    assert endless.status == Status.IN_PROGRESS


def test_the_steps_of_a_stack_that_timed_out_are_stopped(world: World) -> None:
    stack = begun(world, template(a={"looks": 1000, "after": 100}), timeout_mins=1)
    world.pass_time(60)
    run_duties(world)
    world.calm()
    assert world.stack(stack.id).reason == "Create timed out"
    assert sum(c.loop.in_progress for c in world.awake()) == 0


def test_a_conductor_that_lost_its_name_gives_hanging_steps_up_too(world: World) -> None:
    """They must not count as busy forever."""
    begun(world, template(a={"hangs": ["create"]}))
    [conductor] = hanging(world)
    world.pause(conductor.host)
    world.pass_time(5)
    world.resume(conductor.host)
    world.look_all()
    conductor.run_once()
    assert (conductor.loop.in_progress, conductor.loop.busy) == (0, 1)
    world.pass_time(GRACE + 0.1)
    world.look_all()
    conductor.run_once()
    assert conductor.loop.busy == 0


def test_what_a_conductor_without_a_name_has_made_late_is_removed_by_the_others(world: World) -> None:
    """It may never be in the ring again."""
    stack = begun(world, template(a={"hangs": ["create"]}))
    [alone] = hanging(world)
    other = counts_as_gone(world, alone)
    cancel(world, stack)
    delete_stack(world.context, world.stack(stack.id))
    while not ended(world, stack):
        work_alone(world, other)
        while other.hanging:
            other.go_on()
    assert world.cloud.objects == {}
    alone.go_on()
    world.look(alone.host)
    alone.run_once()
    assert alone.ring.member() is None
    assert len(world.cloud.objects) == 1
    world.kill(alone.host)
    assert world.settle(lambda: not world.cloud.objects, within=60)


def test_a_step_that_is_detached_when_its_task_was_taken_away_leaves_nothing_behind(world: World) -> None:
    """Also where its conductor dies right after the call has returned."""
    stack = begun(world, template(a={"hangs": ["create"]}))
    [conductor] = hanging(world)
    cancel(world, stack)
    other = counts_as_gone(world, conductor)
    delete_stack(world.context, world.stack(stack.id))
    while not ended(world, stack):
        work_alone(world, other)
    world.resume(conductor.host)
    world.look_all()
    conductor.run_once()
    assert left_over(world) == []
    world.pass_time(GRACE + 0.1)
    for _ in range(2):
        conductor.run_once()
    [left] = left_over(world)
    assert (left.action, left.status) == ("DELETE", "IN_PROGRESS")
    conductor.go_on()
    assert len(world.cloud.objects) == 1
    world.kill(conductor.host)
    assert world.settle(lambda: not world.cloud.objects, within=60)
    assert world.settle(lambda: left_over(world)[0].status == "COMPLETE", within=60)


@pytest.mark.parametrize("first", ["others look first", "it is back first"])
def test_a_detached_step_of_a_conductor_that_has_another_name_leaves_nothing_behind(
    world: World, first: str
) -> None:
    """The old name counts as gone, and what others find is nothing yet."""
    stack = begun(world, template(a={"hangs": ["create"]}))
    [conductor] = hanging(world)
    cancel(world, stack)
    pass_grace(world)
    [left] = left_over(world)
    assert left.status == "IN_PROGRESS"
    old = conductor.ring.member()
    if first == "others look first":
        other = counts_as_gone(world, conductor)
        while left_over(world)[0].status != "COMPLETE":
            work_alone(world, other)
        world.resume(conductor.host)
    else:
        world.pause(conductor.host)
        world.pass_time(5)
        world.resume(conductor.host)
    world.look_all()
    for _ in range(2):
        conductor.run_once()
    new = conductor.ring.member()
    assert new not in (old, None)
    [(waiting, _)] = world.database.read(lambda conn: orphans.of_member(conn, new))
    found_before = world.database.write(
        lambda conn: orphans.abandon(conn, [waiting], now=world.clock.now, member=old)
    )
    assert found_before == {}, "who has found it under the old name may be late"
    world.pass_time(10)
    run_duties(world)
    world.calm()
    assert left_over(world)[-1].status == "IN_PROGRESS", "the step hangs on"
    conductor.go_on()
    assert len(world.cloud.objects) == 1
    world.kill(conductor.host)
    assert world.settle(lambda: not world.cloud.objects, within=60)
    assert world.settle(lambda: {row.status for row in left_over(world)} == {"COMPLETE"}, within=60)


def test_a_step_that_is_detached_while_another_attempt_is_at_it_is_left_to_that(world: World) -> None:
    """Who comes second finds by the key what the first one has made, and has it."""
    stack = begun(world, template(a={"hangs": ["create"]}))
    [conductor] = hanging(world)
    other = counts_as_gone(world, conductor)
    while not ended(world, stack):
        work_alone(world, other)
        world.clock.now += 1
        world.look(other.host)
    world.resume(conductor.host)
    world.look_all()
    world.pass_time(GRACE + 0.1)
    for _ in range(2):
        conductor.run_once()
    assert left_over(world) == []
    conductor.go_on()
    conductor.run_once()
    world.settle(lambda: False, within=60)
    assert {row.physical_id for row in rows(world, stack).values()} == set(world.cloud.objects)
    assert len(world.cloud.objects) == 1


def test_what_is_made_for_a_stack_that_was_purged_is_logged(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    stack = begun(world, template(a={"hangs": ["create"]}))
    [conductor] = hanging(world)
    counts_as_gone(world, conductor)
    delete_stack(world.context, world.stack(stack.id))
    world.database.write(lambda conn: stacks.purge(conn, [stack.id]))
    conductor.go_on()
    for _ in range(2):
        conductor.run_once()
    [item] = world.cloud.objects
    lines = [line for line in caplog.messages if "purged" in line]
    assert len(lines) == 1
    assert f"made {item} (Sim::Server, resource a)" in lines[0]


def work_alone(world: World, conductor: SimConductor) -> None:
    """It gets all hints, and does what it can do at once."""
    while world.bus.hints:
        world.deliver(0, conductor.host)
    conductor.run_once()
    while conductor.steps:
        conductor.run_step()


def counts_as_gone(world: World, conductor: SimConductor) -> SimConductor:
    """The other one has taken over what it had."""
    world.cut_off(conductor.host)
    world.pass_time(5)
    [other] = [each for each in world.awake() if each is not conductor]
    for _ in range(4):
        world.look(other.host)
        other.run_duties()
        world.pass_time(1.5)
    return other


def test_what_is_made_for_a_resource_that_is_held_behind_its_deletion_is_removed(world: World) -> None:
    """The row that is still shown polls nothing any more."""
    hooks = {"resource_registry": {"resources": {"a": {"hooks": "post-delete"}}}}
    stack = begun(world, template(a={"hangs": ["create"]}), environment=hooks)
    [conductor] = hanging(world)
    other = counts_as_gone(world, conductor)
    delete_stack(world.context, world.stack(stack.id))
    for _ in range(2):
        work_alone(world, other)
    assert (rows(world, stack)["a"].action, rows(world, stack)["a"].status) == ("DELETE", Status.COMPLETE)
    world.resume(conductor.host)
    world.look_all()
    conductor.go_on()
    assert len(world.cloud.objects) == 1
    conductor.run_once()
    assert world.settle(lambda: not world.cloud.objects, within=10)
    assert not ended(world, stack)


@pytest.mark.parametrize("held", [False, True], ids=["deleted", "held elsewhere"])
def test_what_a_step_makes_after_its_conductor_counted_as_gone_is_removed(
    world: World, *, held: bool
) -> None:
    """Its resource is deleted before it is made, and the conductor is back before the step is detached."""
    hooks = {"resource_registry": {"resources": {"b": {"hooks": "pre-create"}}}} if held else None
    document = template(a={"hangs": ["create"]}, b={}) if held else template(a={"hangs": ["create"]})
    stack = begun(world, document, environment=hooks)
    [conductor] = hanging(world)
    other = counts_as_gone(world, conductor)
    if held:
        world.update(stack, template(b={}), environment=hooks)
    else:
        delete_stack(world.context, world.stack(stack.id))
    for _ in range(2):
        work_alone(world, other)
    current = world.stack(stack.id)
    assert (held, ended(world, stack)) == (current.remaining is not None, not held), "a is deleted"
    world.resume(conductor.host)
    world.look_all()
    assert (len(conductor.hanging), conductor.detached) == (1, [])
    conductor.go_on()
    assert len(world.cloud.objects) == 1, "it is made only now"
    conductor.run_once()
    [left] = left_over(world)
    assert (left.status, left.remaining, left.deadline_at) == ("IN_PROGRESS", None, None)
    assert world.settle(lambda: not world.cloud.objects, within=10)
