"""The operator's commands for stacks that are stuck.

Each helps, changes nothing that works, and may come at any moment.
"""

import contextlib
import pathlib
import random
import typing

import pytest
import sqlalchemy as sa
from simulation.helpers import ended, rows, template
from simulation.world import GRACE, World
from stoker.db.ids import MemberId, StackId
from stoker.db.rows import Stack
from stoker.db.schema import tables
from stoker.db.states import Status, TaskState, TraversalState
from stoker.db.work import tasks
from stoker.engine.exports import abandon_stack
from stoker.engine.stacks import delete_stack
from stoker.engine.updates import cancel_action
from stoker.features.diagnosis.rescue import NothingToDo, Rescue, Retried

Json = typing.Any


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4)


def rescue(world: World) -> Rescue:
    """The operator's, who takes for gone what is not in the group."""

    def works(member: MemberId) -> bool:
        host, _, incarnation = member.partition("/")
        return world.group.get(host, ("", 0.0))[0] == incarnation and not world.conductors[host].paused

    return Rescue(database=world.database, hints=world.bus, clock=world.clock, reports=works, grace=GRACE)


def retry(world: World, stack: Stack, resource: str | None = None) -> dict[str, str]:
    return kinds_of(rescue(world).retry(world.stack(stack.id), resource))


def kinds_of(done: Retried) -> dict[str, str]:
    assert not done.untouched
    return {item.path: item.result for item in done.treated}


def attempts(world: World, stack: Stack) -> list[tuple[str, int]]:
    stored_tasks = world.database.read(lambda conn: tasks.of_traversal(conn, stack.traversal))
    return [(task.state, task.attempt) for task in stored_tasks if task.resource_id is not None]


def nested(**properties: Json) -> Json:
    inner = {"heat_template_version": "2018-08-31", "resources": {"s": server(**properties)}}
    child = {"web": {"type": "child.yaml"}, "other": server()}
    return {"heat_template_version": "2018-08-31", "resources": child}, {"child.yaml": as_text(inner)}


def server(**properties: Json) -> Json:
    return {"type": "Sim::Server", "properties": properties}


def as_text(document: Json) -> str:
    return str(document).replace("'", '"')


def complete(world: World, stack: Stack, within: float = 30) -> bool:
    return world.settle(lambda: ended(world, stack), within=within) and (
        world.stack(stack.id).status == Status.COMPLETE
    )


def test_what_is_taken_up_at_this_moment_is_left_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    stack = world.create("s", template(a={}))
    treat = Rescue._treat

    def meanwhile(*arguments: Json) -> Json:
        world.calm_once()
        return treat(*arguments)

    monkeypatch.setattr(Rescue, "_treat", meanwhile)
    done = rescue(world).retry(world.stack(stack.id))
    assert (done.treated, [(item.path, item.result) for item in done.untouched]) == (
        [],
        [("a", "another conductor has claimed it meanwhile")],
    )
    assert complete(world, stack)


def test_a_hint_that_was_lost_is_sent_again_at_once_though_its_repetition_is_far_away(world: World) -> None:
    stack = world.create("s", template(a={}, b={}), timeout_mins=100)
    for _ in range(40):
        world.bus.hints.clear()
        world.pass_time(10)
        for conductor in world.awake():
            conductor.run_duty("TaskDue")
    world.bus.hints.clear()
    assert set(retry(world, stack).values()) == {"its hint is sent again"}
    world.calm()
    assert len(world.cloud.objects) == 2, "no time has passed"
    assert complete(world, stack)


def test_what_a_conductor_holds_that_is_gone_is_done_by_others_before_its_membership_ends(
    world: World,
) -> None:
    stack = world.create("s", template(a={"looks": 3, "after": 1}))
    world.calm()
    [holder] = [host for host, c in world.conductors.items() if c.loop.in_progress]
    world.pause(holder)
    assert retry(world, stack) == {"a": f"taken away from {holder}, and requeued"}
    assert attempts(world, stack) == [(TaskState.READY, 1)]
    world.deliver(0, next(host for host in world.conductors if host != holder))
    world.calm()
    assert attempts(world, stack) == [(TaskState.RUNNING, 2)]
    assert complete(world, stack)
    world.resume(holder)
    world.look_all()
    world.calm()
    assert len(world.cloud.physical_ids) == 1


def test_a_step_that_hangs_is_taken_away_only_when_it_is_named(world: World) -> None:
    stack = world.create("s", template(a={"hangs": ["create"]}, b={"looks": 10, "after": 10}))
    world.calm()
    [holder] = [c for c in world.awake() if c.hanging]
    done = rescue(world).retry(stack)
    assert not done.treated
    assert {item.path for item in done.untouched} == {"a", "b"}
    assert "--resource a requeues it" in {item.path: item.result for item in done.untouched}["a"]
    assert retry(world, stack, "a") == {"a": f"taken away from {holder.host}, and requeued"}
    world.deliver(0, next(host for host in world.conductors if host != holder.host))
    world.calm()
    assert len(world.cloud.objects) == 2, "another attempt has made it"
    world.pass_time(GRACE + 0.1)
    world.calm()
    assert len(holder.detached) == 1, "the thread that hangs is replaced"
    holder.go_on()
    assert complete(world, stack, 200)
    assert len(world.cloud.objects) == len(world.cloud.physical_ids) == 2
    assert {row.status for row in rows(world, stack).values()} == {Status.COMPLETE}


def test_the_conductor_that_hangs_in_a_step_may_claim_it_again_itself(tmp_path: pathlib.Path) -> None:
    world = World(tmp_path, hosts=1, threads=4)
    stack = world.create("s", template(a={"hangs": ["create"]}))
    world.calm()
    [alone] = world.awake()
    retry(world, stack, "a")
    world.bus.stops.clear()  # This message is lost; what it said is found out from the new claim.
    world.calm()
    assert complete(world, stack)
    world.pass_time(GRACE + 0.1)
    world.calm()
    assert len(alone.detached) == 1
    alone.go_on()
    world.calm()
    assert len(world.cloud.objects) == 1


def test_what_waits_for_its_next_try_is_tried_now(world: World) -> None:
    stack = world.create("s", template(a={"flaky": 1}))
    world.calm()
    assert attempts(world, stack) == [(TaskState.PARKED, 1)]
    assert retry(world, stack) == {"a": "woken"}
    world.calm()
    assert attempts(world, stack) == [(TaskState.DONE, 2)]


def test_what_hangs_in_a_nested_stack_is_named_by_its_path(world: World) -> None:
    goal, files = nested(hangs=["create"])
    stack = world.create("s", goal, files=files)
    world.calm()
    done = rescue(world).retry(stack)
    assert not done.treated
    assert sorted(item.path for item in done.untouched) == ["other", "web", "web/s"]
    done = rescue(world).retry(stack, "web/s")
    assert [item.path for item in done.treated] == ["web/s"]
    assert complete(world, stack)


def test_a_stack_that_is_failed_can_be_updated_and_what_hung_leaves_nothing_behind(world: World) -> None:
    goal, files = nested(hangs=["create"])
    stack = world.create("s", goal, files=files)
    world.calm()
    [holder] = [c for c in world.awake() if c.hanging]
    done = rescue(world).fail(stack, "told to")
    assert (done.stack.action, done.stack.status, done.stack.reason) == ("CREATE", "FAILED", "told to")
    world.calm()
    world.pass_time(GRACE + 0.1)
    world.calm()
    world.update(stack, template(other={}))
    assert complete(world, stack, 100)
    holder.go_on()
    assert world.settle(lambda: len(world.cloud.objects) == 1, within=60), world.cloud.objects


def test_a_stack_is_failed_while_no_conductor_runs(world: World) -> None:
    stack = world.create("s", template(a={"looks": 100, "after": 10}))
    world.calm()
    for host in ("host0", "host1"):
        world.kill(host)
    assert rescue(world).fail(stack, "told to").stack.status == Status.FAILED
    delete_stack(world.context, world.stack(stack.id))
    assert world.stack(stack.id).status == Status.IN_PROGRESS
    world.start("host0")
    world.look_all()
    assert complete(world, stack, 60)
    assert not world.cloud.objects


def test_a_rollback_that_has_not_begun_is_ended(world: World) -> None:
    stack = world.create("s", template(a={"fail": True}), disable_rollback=False)
    world.calm()
    assert world.stack(stack.id).rollback_at is not None
    failed = rescue(world).fail(stack, "told to").stack
    assert (failed.status, failed.rollback_at) == (Status.FAILED, None)
    assert failed.reason.endswith("it cannot be rolled back: the operator has ended it")


def test_what_has_ended_is_shown(world: World) -> None:
    stack = world.create("s", template(a={}))
    assert complete(world, stack)
    world.pass_time(100)
    for conductor in world.awake():
        conductor.run_duty("TaskDue")
    with pytest.raises(NothingToDo, match="stack s is CREATE_COMPLETE: it does nothing"):
        rescue(world).fail(world.stack(stack.id), "told to")
    with pytest.raises(NothingToDo, match="stack s is CREATE_COMPLETE: nothing of it is unfinished"):
        rescue(world).retry(world.stack(stack.id))


def test_a_resource_that_is_not_unfinished_is_refused_with_those_that_are(world: World) -> None:
    stack = world.create("s", template(a={"looks": 10, "after": 10}))
    world.calm()
    with pytest.raises(NothingToDo, match="stack s has no unfinished resource b; unfinished are: a"):
        rescue(world).retry(world.stack(stack.id), "b")


@pytest.mark.parametrize("seed", range(12))
def test_an_operator_who_retries_at_any_moment_does_no_harm(tmp_path: pathlib.Path, seed: int) -> None:
    dice = random.Random(seed)
    world = World(tmp_path, hosts=2, threads=2, seed=seed)
    resources = {
        f"r{i}": {"looks": dice.randint(1, 3), "flaky": dice.randint(0, 1), "hangs": ["made"] * (i == 0)}
        for i in range(6)
    }
    stack = world.create("s", template(**resources), timeout_mins=100)
    for _ in range(120):
        choice = dice.randrange(6)
        for conductor in world.awake():
            conductor.run_once()
            if conductor.steps and dice.random() < 0.5:
                conductor.run_step()
        if world.bus.hints and choice == 0:
            world.deliver(0, dice.choice(list(world.conductors)))
        if world.bus.stops and choice == 1:
            world.deliver_stop(0)
        if choice == 2:
            world.pass_time(dice.choice([0.5, 5, 20]))
            world.look_all()
        if choice >= 4 and not ended(world, stack):
            named = dice.choice([None, f"r{dice.randrange(6)}"])
            with contextlib.suppress(NothingToDo):
                rescue(world).retry(world.stack(stack.id), named)
    if not complete(world, stack, 250):
        retry(world, stack, "r0")  # The last attempt was the first whose call was begun.
    assert complete(world, stack, 250), world.stack(stack.id)
    for conductor in world.awake():
        while conductor.hanging:
            conductor.go_on()
    world.calm()
    assert not world.broken, world.broken
    assert not world.cloud.wrong, world.cloud.wrong
    assert len(world.cloud.objects) == 6


def test_a_parent_that_nobody_has_woken_is_woken(world: World) -> None:
    """A fault that must not be: a nested stack has ended, and its parent's task waits on."""
    goal, files = nested()
    stack = world.create("s", goal, files=files)
    assert complete(world, stack)
    t = tables.task
    asleep = {"state": TaskState.PARKED, "waits_on": f"stack:{child_of(world, stack)}", "due_at": None}
    again = {"status": Status.IN_PROGRESS, "reason": ""}
    web = rows(world, stack)["web"]

    def put_to_sleep(conn: sa.Connection) -> None:
        conn.execute(sa.update(t).where(t.c.resource_id == web.id).values(**asleep))
        attempt = sa.update(tables.traversal).where(tables.traversal.c.stack_id == stack.id)
        conn.execute(attempt.values(state=TraversalState.RUNNING, open_tasks=1))
        conn.execute(sa.update(tables.stack).where(tables.stack.c.id == stack.id).values(**again))

    world.database.write(put_to_sleep)
    assert not world.settle(lambda: ended(world, stack), within=30)
    assert retry(world, stack) == {"web": "woken"}
    assert complete(world, stack)


def child_of(world: World, stack: Stack) -> str:
    query = sa.select(tables.stack.c.id).where(tables.stack.c.parent_id == stack.id)
    return str(world.database.read(lambda conn: conn.execute(query).scalar_one()))


def test_what_another_attempt_has_made_too_is_kept_when_the_stack_was_abandoned(world: World) -> None:
    """The late call finds by its key what the other attempt has made: the user has that now."""
    stack = world.create("s", template(a={"hangs": ["create"]}))
    world.calm()
    [holder] = [c for c in world.awake() if c.hanging]
    retry(world, stack, "a")
    assert complete(world, stack)
    [name] = world.cloud.objects
    abandon_stack(world.context, world.stack(stack.id))
    assert world.settle(lambda: ended(world, stack), within=60)
    holder.go_on()
    assert not world.settle(lambda: name not in world.cloud.objects, within=60)


def test_what_waits_for_a_step_under_its_conductors_new_name_is_left_alone(world: World) -> None:
    """It gets that name between the check of the operator's command and its change."""
    stack = world.create("s", template(a={"hangs": ["create"]}))
    world.calm()
    cancel_action(world.context, world.stack(stack.id), rollback=False, by=None)
    world.calm()
    world.pass_time(GRACE + 0.1)
    world.calm()
    t = tables.task
    waiting = t.c.waits_on.like("step:%")

    def renamed(member: MemberId) -> bool:
        rename = sa.update(t).where(waiting).values(member="host0/new")
        world.database.write(lambda conn: conn.execute(rename))
        return False

    repairs = Rescue(
        database=world.database, hints=world.bus, clock=world.clock, reports=renamed, grace=GRACE
    )
    done = repairs.retry(world.stack(StackId(child_of(world, stack))))
    assert [item.result for item in done.untouched] == ["another conductor has claimed it meanwhile"]
    state = world.database.read(lambda conn: conn.execute(sa.select(t.c.state).where(waiting)).scalar_one())
    assert state == TaskState.PARKED


def test_what_the_late_call_made_a_second_time_is_removed(world: World) -> None:
    """The resource's type does not find by its key the object that a lost attempt has made."""
    stack = world.create("s", template(a={"hangs": ["create"]}))
    world.calm()
    [holder] = [c for c in world.awake() if c.hanging]
    retry(world, stack, "a")
    assert complete(world, stack)
    [name] = world.cloud.objects
    world.cloud.physical_ids.clear()
    holder.go_on()
    world.calm()
    assert set(world.cloud.physical_ids.values()) - {name}, "it has made another one"
    assert world.settle(lambda: list(world.cloud.objects) == [name], within=60), world.cloud.objects
    assert rows(world, stack)["a"].physical_id == name
