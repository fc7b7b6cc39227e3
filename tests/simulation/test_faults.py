"""Conductors die, messages vanish, the database is unavailable: case by case, on a fake clock."""

import pathlib
import typing

import pytest
from simulation.world import SELF_STOP, TIMEOUT, World
from stoker.db import events, traversals
from stoker.db.events import EventQuery
from stoker.db.rows import Event, Stack
from stoker.db.states import Status, TaskState
from stoker.db.work import tasks
from stoker.engine.stacks import delete_stack
from stoker.resources.contract.errors import OverQuota
from stoker.resources.contract.views import ResourceView
from stoker.resources.openstack.service import QUOTA_PAUSE

Json = typing.Any


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=3, threads=4)


def template(count: int, **properties: Json) -> Json:
    resources = {f"r{i}": {"type": "Sim::Server", "properties": properties} for i in range(count)}
    return {"heat_template_version": "2018-08-31", "resources": resources}


def ended(world: World, *stacks: Stack) -> bool:
    return all(world.stack(stack.id).status != Status.IN_PROGRESS for stack in stacks)


def own_events(world: World, stack: Stack) -> list[Event]:
    entries = world.database.read(lambda conn: events.list_events(conn, EventQuery(stack.id)))
    return [event for event, _ in entries if event.resource_name == stack.name]


def states(world: World, stack: Stack) -> list[TaskState]:
    stored_tasks = world.database.read(lambda conn: tasks.of_traversal(conn, stack.traversal))
    return [task.state for task in stored_tasks if task.resource_id is not None]


def all_duties(world: World) -> None:
    for conductor in world.awake():
        conductor.run_duties()


def test_lost_hints_are_sent_again_by_the_owner_alone(world: World) -> None:
    stack = world.create("s", template(10))
    world.bus.hints.clear()
    world.pass_time(30)
    before = world.bus.sent
    all_duties(world)
    assert world.bus.sent == before + 1, "one message with all ten, from one conductor"
    assert world.settle(lambda: ended(world, stack), within=10)


def test_a_step_that_met_a_short_silence_is_done_a_little_later(world: World) -> None:
    """Its conductor could not be sure of its name, and was again before it had given anything up."""
    stack = world.create("s", template(1))
    world.deliver(0, "host0")
    conductor = world.conductors["host0"]
    conductor.run_once()
    conductor.ring.confirmed = world.clock.now - SELF_STOP
    assert conductor.ring.member() is None
    conductor.run_step()
    conductor.ring.confirmed = world.clock.now
    conductor.run_once()
    assert states(world, stack) == [TaskState.RUNNING]
    assert world.cloud.objects == {}
    assert world.settle(lambda: ended(world, stack), within=10)
    assert world.stack(stack.id).status == Status.COMPLETE


def test_hints_that_nobody_takes_are_repeated_more_and_more_rarely(world: World) -> None:
    world.create("s", template(1), timeout_mins=1000)
    sent = []
    for _ in range(400):
        world.bus.hints.clear()
        world.pass_time(5)
        before = world.bus.sent
        for conductor in world.awake():
            conductor.run_duty("TaskDue")
        sent.append(world.bus.sent - before)
    assert sum(sent[:40]) > sum(sent[-40:]) > 0
    assert sum(sent) < 60


def test_a_dead_conductors_work_goes_to_the_others_after_the_membership_timeout(world: World) -> None:
    stack = world.create("s", template(30, after=20, looks=3))
    world.calm()
    lost = world.conductors["host1"].loop.in_progress
    assert lost > 0
    world.kill("host1")
    world.pass_time(TIMEOUT - 0.1)
    world.look_all()
    all_duties(world)
    assert sum(c.loop.in_progress for c in world.awake()) == 30 - lost, "it may still be alive"
    world.pass_time(0.2)
    world.look_all()
    all_duties(world)
    world.calm()
    assert sum(c.loop.in_progress for c in world.awake()) == 30
    assert world.settle(lambda: ended(world, stack), within=90)
    assert len(world.cloud.physical_ids) == 30, "nothing was made twice"


def test_hints_that_a_dead_conductor_has_taken_along_are_repeated_at_once(tmp_path: pathlib.Path) -> None:
    world = World(tmp_path, hosts=2, threads=4)
    world.create("s", template(30, after=20, looks=3))
    while world.bus.hints:
        world.deliver(0, "host1")
    world.conductors["host1"].run_once()
    claimed = world.conductors["host1"].loop.in_progress
    assert 0 < claimed < 30
    world.kill("host1")
    world.pass_time(1)
    world.start("host1")  # Its predecessor is dead at once.
    world.look_all()
    for _ in range(2):
        all_duties(world)
    assert len({task_id for _, ids in world.bus.hints for task_id in ids}) == 30


def test_a_restarted_conductors_predecessor_is_dead_at_once(world: World) -> None:
    stack = world.create("s", template(30, after=20, looks=3))
    world.calm()
    world.kill("host1")
    world.start("host1")
    world.look_all()
    all_duties(world)
    world.calm()
    assert sum(c.loop.in_progress for c in world.awake()) == 30
    assert world.settle(lambda: ended(world, stack), within=90)


def test_a_conductor_that_is_cut_off_stops_before_the_others_take_over(world: World) -> None:
    world.create("s", template(30, after=1, looks=1000))
    world.calm()
    world.cut_off("host1")
    lonely = world.conductors["host1"]
    world.pass_time(SELF_STOP)
    assert world.group["host1"], "the others still count it in"
    assert lonely.ring.member() is None
    assert not any(lonely.ring.owns(shard) for shard in range(64))
    lonely.run_once()
    assert lonely.loop.in_progress == 0
    assert lonely.steps == []


def test_a_step_that_waited_in_a_paused_process_is_not_begun_when_others_have_taken_over(
    world: World,
) -> None:
    stack = world.create("s", template(1))
    world.deliver(0, "host1")
    paused = world.conductors["host1"]
    paused.run_once()
    assert len(paused.steps) == 1
    world.pause("host1")
    assert world.settle(lambda: ended(world, stack), within=30)
    delete_stack(world.context, world.stack(stack.id))
    assert world.settle(lambda: ended(world, stack), within=30)
    world.resume("host1")
    paused.run_step()
    paused.run_once()
    assert world.cloud.objects == {}
    assert world.cloud.wrong == []


def test_what_a_lost_attempt_made_is_found_and_not_made_again(world: World) -> None:
    stack = world.create("s", template(1, after=0))
    world.deliver(0, "host1")
    world.conductors["host1"].run_once()
    world.conductors["host1"].run_step()
    assert len(world.cloud.objects) == 1
    world.kill("host1")
    assert world.settle(lambda: ended(world, stack), within=30)
    assert len(world.cloud.objects) == 1


def test_what_a_lost_attempt_made_is_deleted_with_the_stack(world: World) -> None:
    stack = world.create("s", template(1))
    world.deliver(0, "host1")
    world.conductors["host1"].run_once()
    world.conductors["host1"].run_step()
    world.kill("host1")
    delete_stack(world.context, world.stack(stack.id))
    assert world.settle(lambda: ended(world, stack), within=30)
    assert world.cloud.objects == {}
    assert world.stack(stack.id).status == Status.COMPLETE


def test_results_wait_while_the_database_is_unavailable(world: World) -> None:
    stack = world.create("s", template(12, after=0))
    world.database.before = 1.0
    for _ in range(20):
        world.calm_once()
        world.pass_time(0.5)
    assert not ended(world, stack)
    world.database.before = 0.0
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.stack(stack.id).status == Status.COMPLETE
    assert len(world.cloud.physical_ids) == 12


def test_claims_whose_answer_was_lost_are_requeued(world: World) -> None:
    stack = world.create("s", template(4, after=0))
    world.deliver(0, "host1")
    world.database.after = 1.0
    assert world.conductors["host1"].run_once() is not None
    assert states(world, stack) == [TaskState.RUNNING] * 4
    assert world.conductors["host1"].steps == []
    world.database.after = 0.0
    world.conductors["host1"].run_once()
    assert world.settle(lambda: ended(world, stack), within=30)
    assert world.stack(stack.id).status == Status.COMPLETE


def test_progress_that_arrives_twice_because_the_answer_was_lost_fails_nothing(world: World) -> None:
    """An update finds only in its step that it begins something: it reports so together with its progress."""
    stack = world.create("s", template(1, after=0))
    assert world.settle(lambda: ended(world, stack), within=30)
    world.update(stack, template(1, after=0, value="new"))
    world.deliver(0, "host1")
    one = world.conductors["host1"]
    one.run_once()
    one.run_step()
    world.database.after = 1.0
    one.run_once()
    world.database.after = 0.0
    assert world.settle(lambda: ended(world, stack), within=30)
    assert world.broken == []
    assert world.stack(stack.id).reason == "Stack UPDATE completed successfully"


def test_a_result_that_was_stored_is_not_stored_again_because_what_follows_fails(world: World) -> None:
    first = world.create("first", template(1, after=0, looks=100))
    one = world.conductors["host1"]
    world.deliver(0, "host1")
    one.run_once()
    one.run_step()
    world.create("second", template(1, after=0))
    world.deliver(0, "host1")
    world.database.planned += ["after"]
    one.run_once()
    assert states(world, first) == [TaskState.RUNNING]
    world.database.planned += ["", "before"]
    one.run_once()
    for _ in range(3):
        one.run_once()
        assert len(one.steps) <= 1, "the claim that nobody knew of was given back, the other has one step"


def test_a_stack_times_out_once_although_two_conductors_believe_they_own_it(world: World) -> None:
    stack = world.create("s", template(1, endless=True, after=3), timeout_mins=1)
    world.calm()
    world.pass_time(59.9)
    all_duties(world)
    assert not ended(world, stack), "never early"
    world.pass_time(0.2)
    for conductor in world.awake():
        conductor.ring.owns = lambda shard: True  # type: ignore[method-assign]
    all_duties(world)
    current = world.stack(stack.id)
    assert (current.action, current.status, current.reason) == ("CREATE", Status.FAILED, "Create timed out")
    assert [event.reason for event in own_events(world, stack)] == [
        "Stack CREATE started",
        "Create timed out",
    ]


def test_work_of_a_stack_that_timed_out_is_stopped(world: World) -> None:
    stack = world.create("s", template(3, endless=True, after=2), timeout_mins=1)
    world.calm()
    assert sum(c.loop.in_progress for c in world.awake()) == 3
    assert world.settle(lambda: ended(world, stack), within=70)
    world.settle(lambda: False, within=5)
    assert sum(c.loop.in_progress for c in world.awake()) == 0
    assert TaskState.RUNNING not in states(world, stack)


def test_a_deadline_is_not_moved_by_a_takeover(world: World) -> None:
    stack = world.create("s", template(2, endless=True, after=3), timeout_mins=1)
    began = world.clock.now
    for moment in (15, 30, 45):
        world.settle(lambda: False, within=began + moment - world.clock.now)
        host = next(iter(world.conductors))
        world.kill(host)
        world.start(f"{host}x")
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.clock.now - began == pytest.approx(60, abs=8.1)
    assert world.stack(stack.id).reason == "Create timed out"


def test_an_action_of_a_resource_times_out_and_is_tried_again(world: World) -> None:
    document = template(1, endless=True, after=2)
    environment = {"resource_registry": {"resources": {"r0": {"timeout": 10, "retries": 2}}}}
    stack = world.create("s", document, environment=environment)
    began = world.clock.now
    assert world.settle(lambda: ended(world, stack), within=200)
    current = world.stack(stack.id)
    assert current.status == Status.FAILED
    assert "timed out" in current.reason
    assert world.clock.now - began >= 30, "three tries of ten seconds"


def test_finished_traversals_leave_no_tasks_behind(world: World) -> None:
    stack = world.create("s", template(5))
    assert world.settle(lambda: ended(world, stack), within=10)
    assert world.database.read(lambda conn: traversals.due(conn, world.clock.now + 100, limit=9)) != []
    world.settle(lambda: False, within=100)
    assert states(world, stack) == []
    assert world.database.read(lambda conn: traversals.due(conn, world.clock.now + 100, limit=9)) == []


def test_deleted_stacks_are_forgotten_after_their_time(world: World) -> None:
    stack = world.create("s", template(2))
    assert world.settle(lambda: ended(world, stack), within=10)
    delete_stack(world.context, world.stack(stack.id))
    assert world.settle(lambda: ended(world, stack), within=10)
    world.pass_time(86400 - 60)
    all_duties(world)
    assert world.stack(stack.id).deleted_at is not None
    world.look_all()
    world.pass_time(120)
    all_duties(world)
    with pytest.raises(Exception, match="could not be found"):
        world.stack(stack.id)


@pytest.mark.parametrize("returned", ["data", "nan", "progress", "id", "waits_on"])
def test_a_type_that_returns_nonsense_fails_its_resource_and_no_other(world: World, returned: str) -> None:
    good = template(8, after=0)
    good["resources"]["bad"] = {"type": "Sim::Server", "properties": {"returns": returned}}
    stack = world.create("s", good)
    assert world.settle(lambda: ended(world, stack), within=30)
    current = world.stack(stack.id)
    assert current.status == Status.FAILED
    assert "resources.bad: " in current.reason
    assert "cannot be stored" in current.reason
    assert TaskState.RUNNING not in states(world, stack)
    assert states(world, stack).count(TaskState.FAILED) == 1


@pytest.mark.parametrize("free_after", [30.0, None], ids=["freed", "never freed"])
def test_a_quota_is_waited_for_and_the_events_say_so(
    world: World, monkeypatch: pytest.MonkeyPatch, free_after: float | None
) -> None:
    def check_quota(target: ResourceView) -> None:
        if free_after is None or world.clock.now < began + free_after:
            raise OverQuota("over the quota: compute 403: instances, 2 of 2", after=QUOTA_PAUSE)

    monkeypatch.setattr(world.cloud, "check_needs", check_quota)
    began = world.clock.now
    stack = world.create("s", template(1, after=0))
    assert world.settle(lambda: ended(world, stack), within=120)
    lasted = world.clock.now - began
    assert 2 * QUOTA_PAUSE <= lasted < (3 if free_after else 4) * QUOTA_PAUSE
    recorded = world.database.read(lambda conn: events.list_events(conn, EventQuery(stack.id)))
    told = [event.reason for event, _ in recorded if "will be tried again" in event.reason]
    assert told == [
        "will be tried again: over the quota: compute 403: instances, 2 of 2; next try in 20 s"
    ], "once for each reason"
    assert world.stack(stack.id).status == (Status.COMPLETE if free_after else Status.FAILED)
