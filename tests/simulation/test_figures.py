"""The metrics count each event once."""

import collections
import pathlib
import typing

import pytest
from harness.counting import Counting
from simulation.world import GRACE, TIMEOUT, World
from stoker.conductor.duties.task_counts import TaskCounts
from stoker.db.ids import StackId
from stoker.db.rows import Stack
from stoker.db.states import Status
from stoker.engine.stacks import delete_stack
from stoker.observe import metrics

Json = typing.Any


@pytest.fixture
def counting() -> Counting:
    return Counting()


@pytest.fixture
def world(tmp_path: pathlib.Path, counting: Counting) -> World:
    return World(tmp_path, hosts=2, recorder=counting)


def template(count: int, **properties: Json) -> Json:
    resources = {f"r{i}": {"type": "Sim::Server", "properties": properties} for i in range(count)}
    return {"heat_template_version": "2018-08-31", "resources": resources}


def run_duties(world: World) -> None:
    for conductor in world.awake():
        conductor.run_duties()


def ended(world: World, stack_id: StackId) -> bool:
    return world.stack(stack_id).status != Status.IN_PROGRESS


def settled(world: World, stack: Stack, within: float = 120) -> str:
    assert world.settle(lambda: ended(world, stack.id), within=within)
    return world.stack(stack.id).status


def test_work_without_faults_is_counted_and_nothing_else_is(world: World, counting: Counting) -> None:
    stack = world.create("s", template(7, after=0))
    assert settled(world, stack) == Status.COMPLETE
    assert counting.of(metrics.RESULTS, "create", "done") == 7
    assert len(counting.observed(metrics.CLAIM_WAIT)) == 7
    assert max(counting.observed(metrics.CLAIM_WAIT)) < 1
    assert counting.observed(metrics.COMMIT)
    trouble = (metrics.REFUSED, metrics.HINTS_REPEATED, metrics.TAKEOVERS, metrics.CANCELS_ASKED)
    assert [counting.of(metric) for metric in trouble] == [0, 0, 0, 0]


def test_a_task_that_waits_for_its_claim_has_waited_since_it_was_ready(
    world: World, counting: Counting
) -> None:
    world.create("s", template(1))
    world.bus.hints.clear()
    world.pass_time(7)
    run_duties(world)
    assert counting.of(metrics.HINTS_REPEATED) == 1
    assert counting.observed(metrics.DUE_LAG, "ready") == [2.0], "five seconds after it was ready it was due"
    world.pass_time(3)
    world.calm()
    assert counting.observed(metrics.CLAIM_WAIT) == [10.0]


def test_a_stack_timeout_is_counted_once_with_its_lateness(world: World, counting: Counting) -> None:
    world.create("s", template(2, looks=1000, after=1000))
    world.calm()
    world.pass_time(301)
    for _ in range(3):
        world.look_all()
        run_duties(world)
        world.calm()
    assert counting.of(metrics.TIMEOUTS, "stack") == 1
    assert counting.observed(metrics.DUE_LAG, "stack") == [1.0]
    assert counting.of(metrics.TIMEOUTS, "resource") == 0
    assert counting.of(metrics.CANCELS_ASKED) == 2
    assert counting.of(metrics.CANCELS_ANSWERED, "stopped") == 2


def test_a_resource_timeout_is_counted_once_for_each_try(world: World, counting: Counting) -> None:
    limits = {"resource_registry": {"resources": {"r0": {"timeout": 10, "retries": 1}}}}
    stack = world.create("s", template(1, looks=1000, after=1000), environment=limits)
    assert settled(world, stack) == Status.FAILED
    assert counting.of(metrics.TIMEOUTS, "resource") == 2


def test_a_step_that_hangs_is_detached_and_its_result_refused(world: World, counting: Counting) -> None:
    stack = world.create("s", template(1, hangs=["create"]))
    world.calm()
    delete_stack(world.context, world.stack(stack.id))
    world.calm()
    world.pass_time(GRACE + 1)
    world.look_all()
    world.calm()
    assert counting.of(metrics.CANCELS_ASKED) == 1
    assert counting.of(metrics.CANCELS_ANSWERED, "given_up") == 1
    assert counting.of(metrics.REFUSED) == 0, "it still hangs"
    [conductor] = [conductor for conductor in world.awake() if conductor.hanging]
    conductor.go_on()
    world.calm()
    assert counting.of(metrics.REFUSED) == 1


def test_what_a_dead_conductor_leaves_is_taken_over_once(world: World, counting: Counting) -> None:
    world.create("s", template(30, looks=3, after=20))
    world.calm()
    run_duties(world)  # Who was never seen may be one that has just come.
    lost = world.conductors["host1"].loop.in_progress
    assert lost > 0
    world.kill("host1")
    world.pass_time(TIMEOUT + 0.1)
    for _ in range(3):
        world.look_all()
        run_duties(world)
        world.calm()
    assert counting.of(metrics.TAKEOVERS) == lost


def test_tasks_are_counted_by_their_owner_a_page_at_a_time(world: World) -> None:
    for number in range(3):
        world.create(f"s{number}", template(5))
    world.look_all()
    counts: collections.Counter[str] = collections.Counter()
    for conductor in world.awake():
        census = TaskCounts(conductor.duty_context(), page=6)
        rounds = 0
        while not census.counts and rounds < 10:
            census.run()
            rounds += 1
        assert rounds == 3, "15 tasks, and a page that is not full"
        counts.update(census.counts)
    assert counts == {"ready": 15}, "a traversal has a row of its own, and is no task"
