"""No thread, no memory: nothing that was claimed is lost, whatever breaks in the work loop."""

import pathlib
import typing
from collections.abc import Callable

import pytest
from simulation.helpers import ended, template
from simulation.world import GRACE, SimConductor, World
from stoker.conductor.worker import loop
from stoker.conductor.worker.claims import Claims, TimerQueue
from stoker.conductor.worker.executor import StepExecutor, WorkMetrics
from stoker.conductor.worker.faults import UnstorableResults
from stoker.conductor.worker.pool import NoThread
from stoker.db.rows import Stack
from stoker.db.states import Status
from stoker.db.work import tasks
from stoker.engine.stacks import delete_stack

Json = typing.Any
MANY: dict[str, Json] = {f"r{number}": {"looks": 3, "after": 2} for number in range(6)}
AFTER = {f"after{number}": {"needs": [{"get_resource": "first"}]} for number in range(3)}
FORKS: dict[str, Json] = {**MANY, "first": {"looks": 1, "after": 1}, **AFTER}
"""One end makes more tasks ready than its conductor claims at once."""
LIMITED: Json = {"resource_registry": {"resources": {"r0": {"timeout": 60}}}}
"""A timeout is watched that does not strike."""


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=1, threads=4)


def claimed(world: World) -> list[tuple[int, int]]:
    """(task, attempt) of all claims of the only conductor, as the database has them."""
    [conductor] = world.conductors.values()
    member = conductor.ring.member()
    assert member is not None
    stored_tasks = world.database.read(lambda conn: tasks.claimed_by(conn, member))
    return sorted((task_id, attempt) for task_id, attempt, _ in stored_tasks)


def held_claims(conductor: SimConductor) -> list[tuple[int, int]]:
    """The same, as they are in memory."""
    claims = conductor.loop.view().held
    return sorted((held.claim.task.id, held.claim.task.attempt) for held in claims)


def complete(world: World, stack: Stack) -> None:
    """It ends well, before any timeout, and nothing is left over of what was counted."""
    assert world.settle(lambda: ended(world, stack), within=100)
    assert world.stack(stack.id).status == Status.COMPLETE
    [conductor] = world.conductors.values()
    world.calm()  # The error may have come after the last result was stored: the next round recovers.
    assert (conductor.loop.busy, conductor.loop.in_progress) == (0, 0)


def test_a_step_for_which_no_thread_can_be_started_is_requeued(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = world.create("s", template(**MANY))
    [conductor] = world.conductors.values()
    with monkeypatch.context() as patch:
        patch.setattr(conductor, "submit", no_thread)
        world.calm()
        assert (claimed(world), held_claims(conductor), conductor.loop.busy) == ([], [], 0)
        world.pass_time(1)
        world.calm()
        assert claimed(world) == []
    complete(world, stack)


def test_a_poll_for_which_no_thread_can_be_started_is_requeued(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = world.create("s", template(**MANY))
    world.calm()
    [conductor] = world.conductors.values()
    assert len(claimed(world)) == 6
    with monkeypatch.context() as patch:
        patch.setattr(conductor, "submit", no_thread)
        world.pass_time(3)
        world.calm()
        assert (claimed(world), held_claims(conductor), conductor.loop.busy) == ([], [], 0)
    complete(world, stack)


def test_a_task_that_waits_for_a_thread_is_claimed_as_soon_as_there_may_be_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop wakes by itself: nobody else tells it that the time is over."""
    world.create("s", template(**MANY))
    [conductor] = world.conductors.values()
    with monkeypatch.context() as patch:
        patch.setattr(conductor, "submit", no_thread)
        world.calm()
        world.pass_time(loop.NO_THREAD_FOR - 0.1)
        world.calm()
        assert claimed(world) == []
        assert conductor.rest == pytest.approx(0.1, abs=0.001)
    world.pass_time(conductor.rest + 0.001)
    conductor.run_once()
    assert len(claimed(world)) > 0


def no_thread(*args: object) -> Json:
    raise NoThread("told so")


class Breaks:
    """Breaks the call number `at` of a function, before or after it was done; all others are done."""

    def __init__(self, real: Callable[..., Json], at: int, *, after: bool) -> None:
        self.real = real
        self.at = at
        self.after = after
        self.calls = 0

    def __call__(self, *args: Json, **fields: Json) -> Json:
        self.calls += 1
        if self.calls == self.at and not self.after:
            raise MemoryError("told so")
        done = self.real(*args, **fields)
        if self.calls == self.at:
            raise MemoryError("told so")
        return done

    def method(self) -> Callable[..., Json]:
        return lambda *args, **fields: self(*args, **fields)


PLACES: dict[str, tuple[Json, str]] = {
    "a batch is stored": (loop.commit, "exchange"),
    "a claim is taken into memory": (Claims, "add"),
    "a poll is put off": (Claims, "poll_later"),
    "a stored result is dropped": (Claims, "remove"),
    "a step begins": (StepExecutor, "start"),
    "a step is handed to the pool": (SimConductor, "submit"),
    "a claim's timeout is watched": (Claims, "watch"),
    "what has to stop is stopped": (Claims, "cancel_due"),
    "a result is counted": (WorkMetrics, "stored"),
    "a batch is watched": (UnstorableResults, "watch"),
    "hints are announced": (loop, "announce"),
}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("place", PLACES)
def test_an_error_anywhere_in_the_work_loop_loses_no_claim(
    world: World, monkeypatch: pytest.MonkeyPatch, place: str, after: bool
) -> None:
    """At each of its first calls, one after the other."""
    owner, name = PLACES[place]
    for at in range(1, 7):
        with monkeypatch.context() as patch:
            breaks = Breaks(getattr(owner, name), at, after=after)
            patch.setattr(owner, name, breaks.method())
            stack = world.create(f"s{at}", template(**FORKS), environment=LIMITED)
            complete(world, stack)
            assert not world.broken
    assert breaks.calls >= 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_step_that_breaks_without_a_result_is_requeued(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    [conductor] = world.conductors.values()
    breaks = Breaks(conductor.runner.run, 2, after=True)
    monkeypatch.setattr(conductor.runner, "run", breaks)
    stack = world.create("s", template(**MANY))
    complete(world, stack)
    assert breaks.calls > 2


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_step_for_which_memory_is_short_is_retried(
    world: World, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    [conductor] = world.conductors.values()
    breaks = Breaks(conductor.runner._step, 2, after=after)  # noqa: SLF001
    monkeypatch.setattr(conductor.runner, "_step", breaks)
    stack = world.create("s", template(**MANY))
    complete(world, stack)
    assert breaks.calls > 2


def test_a_hanging_step_is_detached_although_an_error_has_lost_its_grace_period(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = world.create("s", template(a={"hangs": ["create"]}))
    world.calm()
    [conductor] = world.conductors.values()
    assert len(conductor.hanging) == 1
    with monkeypatch.context() as patch:
        patch.setattr(TimerQueue, "add", Breaks(TimerQueue.add, 1, after=False).method())
        delete_stack(world.context, world.stack(stack.id))
        world.calm()
    world.pass_time(GRACE + 1)
    world.calm()
    assert len(conductor.detached) == 1
