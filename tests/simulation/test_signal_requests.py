"""Requests of signals, which a conductor carries out: each one once, whatever the stack does meanwhile."""

import pathlib
import typing
from dataclasses import replace

import pytest
import sqlalchemy as sa
from simulation.helpers import ended, history, hooks, rows
from simulation.nested import created, hot, settled
from simulation.world import World
from stoker.db.rows import Stack
from stoker.db.schema import tables
from stoker.db.states import FINAL, Status, TaskKind, TaskState
from stoker.engine.signals import send_signal
from stoker.engine.stacks import delete_stack
from stoker.engine.updates import cancel_action
from stoker.resources.contract.context import StepContext
from stoker.resources.contract.errors import PermanentError, RetryableError, StepError
from stoker.resources.contract.plugin import ResourceType
from stoker.resources.contract.schema import Property
from stoker.resources.contract.signals import Signal
from stoker.resources.contract.steps import Done, Poll, Step
from stoker.resources.contract.views import ResourceView
from stoker.template.errors import LimitExceeded

Json = typing.Any


class Tower:
    """The bells outside.

    :ivar rung: what each request has said, by its key.
    :ivar errors: what the next requests meet.
    :ivar meanwhile: what happens while a bell rings.
    """

    def __init__(self) -> None:
        self.rung: dict[str, Json] = {}
        self.errors: list[StepError] = []
        self.meanwhile: list[typing.Callable[[], None]] = []

    def bell(self) -> type[ResourceType]:
        """The type of a bell."""
        tower = self

        class Bell(ResourceType):
            """Rings with each signal; its updates take as long as its property says."""

            properties_schema = {"seconds": Property("number", default=0, update_allowed=True)}

            def handle_create(self, target: ResourceView, context: StepContext) -> Step:
                return Done(physical_id=target.key, data={"made": True})

            def handle_update(
                self, target: ResourceView, changed: frozenset[str], context: StepContext
            ) -> Step:
                return Poll({"until": context.now() + target.properties["seconds"]}, after=1.0)

            def check_update_complete(
                self, target: ResourceView, progress: Json, context: StepContext
            ) -> Step:
                over = context.now() >= progress["until"]
                return Done(data={"made": "again"}) if over else Poll(progress, after=1.0)

            def handle_signal(self, target: ResourceView, details: Json) -> Signal:
                return Signal(metadata=target.metadata, reason="rings", request={"said": details})

            def carry_out(self, target: ResourceView, request: Json, context: StepContext) -> None:
                if tower.errors:
                    raise tower.errors.pop(0)
                while tower.meanwhile:
                    tower.meanwhile.pop(0)()
                tower.rung.setdefault(target.key, request["said"])

        return Bell


@pytest.fixture
def tower() -> Tower:
    return Tower()


@pytest.fixture
def world(tmp_path: pathlib.Path, tower: Tower) -> World:
    return World(tmp_path, hosts=3, threads=4, types={"Test::Bell": tower.bell()})


def bell(**properties: Json) -> Json:
    return hot({"bell": {"type": "Test::Bell", "properties": properties}})


def signal(world: World, stack: Stack, details: Json = None) -> None:
    send_signal(world.context, world.stack(stack.id), "bell", details)


def unfinished(world: World) -> int:
    return sum(state not in FINAL for state in states(world))


def states(world: World) -> list[TaskState]:
    query = sa.select(tables.task.c.state).where(tables.task.c.kind == TaskKind.SIGNAL)
    return world.database.read(lambda conn: list(conn.execute(query).scalars()))


def carried_out(world: World) -> bool:
    return world.settle(lambda: not unfinished(world), within=120)


def test_a_signal_is_carried_out_and_leaves_the_resource_as_it_is(world: World, tower: Tower) -> None:
    stack = created(world, bell())
    before = rows(world, stack)["bell"]
    signal(world, stack, {"$fn": "get_resource", "args": ["bell"]})
    signal(world, stack, "again")
    assert carried_out(world)
    assert list(tower.rung.values()) == [{"$fn": "get_resource", "args": ["bell"]}, "again"]
    assert rows(world, stack)["bell"] == before
    assert history(world, stack)[-2:] == [("bell", "SIGNAL", "COMPLETE")] * 2
    assert (world.stack(stack.id).action, world.stack(stack.id).status) == ("CREATE", Status.COMPLETE)


def test_it_is_carried_out_during_an_action(world: World, tower: Tower) -> None:
    stack = created(world, bell())
    world.update(stack, bell(seconds=100))
    assert world.settle(lambda: rows(world, stack)["bell"].progress is not None, within=10)
    signal(world, stack, "now")
    assert carried_out(world)
    assert (list(tower.rung.values()), ended(world, stack)) == (["now"], False)
    assert settled(world, stack, within=290).status == Status.COMPLETE
    assert rows(world, stack)["bell"].data == {"made": "again"}


def test_what_it_meets_during_an_action_is_not_the_resources(world: World, tower: Tower) -> None:
    stack = created(world, bell())
    world.update(stack, bell(seconds=100))
    assert world.settle(lambda: rows(world, stack)["bell"].progress is not None, within=10)
    before = rows(world, stack)["bell"]
    tower.errors = [RetryableError("busy"), PermanentError("it has no clapper")]
    signal(world, stack, "now")
    assert carried_out(world)
    assert (tower.errors, rows(world, stack)["bell"]) == ([], before)
    assert settled(world, stack, within=290).status == Status.COMPLETE


@pytest.mark.parametrize("action", ["update", "cancel", "delete"])
def test_no_action_asks_one_that_runs_to_stop(world: World, tower: Tower, action: str) -> None:
    stack = created(world, bell())
    world.update(stack, bell(seconds=100))
    assert world.settle(lambda: rows(world, stack)["bell"].progress is not None, within=10)
    seen: list[tuple[str, float | None]] = []

    def act() -> None:
        current = world.stack(stack.id)
        if action == "update":
            world.update(stack, bell(seconds=1))
        elif action == "cancel":
            cancel_action(world.context, current, rollback=False)
        else:
            delete_stack(world.context, current)
        seen.extend(world.database.read(asked_to_stop))

    tower.meanwhile = [act]
    signal(world, stack, "now")
    assert carried_out(world)
    assert (seen, list(tower.rung.values())) == ([(TaskState.RUNNING, None)], ["now"])
    assert settled(world, stack, within=290)


def asked_to_stop(conn: sa.Connection) -> list[tuple[str, float | None]]:
    t = tables.task.c
    rows = conn.execute(sa.select(t.state, t.stop_by).where(t.kind == TaskKind.SIGNAL)).all()
    return [(state, stop_by) for state, stop_by in rows]


@pytest.mark.parametrize("error", [RetryableError("busy"), None])
def test_no_action_of_the_stack_supersedes_it(
    world: World, tower: Tower, error: RetryableError | None
) -> None:
    stack = created(world, bell())
    tower.errors = [error] if error else []
    signal(world, stack, "now")
    if error:
        assert world.settle(lambda: not tower.errors, within=10)
    world.update(stack, bell(seconds=3))
    world.update(stack, bell(seconds=1))
    assert settled(world, stack, within=120).status == Status.COMPLETE
    assert carried_out(world)
    assert list(tower.rung.values()) == ["now"]
    assert rows(world, stack)["bell"].reason == "state changed"


def test_the_deletion_of_the_stack_ends_it(world: World, tower: Tower) -> None:
    stack = created(world, bell())
    tower.errors = [RetryableError("busy")]
    signal(world, stack, "now")
    assert world.settle(lambda: not tower.errors, within=10)
    delete_stack(world.context, world.stack(stack.id))
    assert settled(world, stack, within=120).status == Status.COMPLETE
    assert carried_out(world)
    assert tower.rung == {}


def test_the_clock_pauses_at_a_breakpoint_although_one_runs(world: World, tower: Tower) -> None:
    stack = created(world, bell())
    more = bell()
    more["resources"]["other"] = {"type": "Test::Bell"}
    more["resources"]["last"] = {"type": "Test::Bell", "depends_on": "other"}

    seen: list[tuple[int, int, float | None]] = []

    def stop_before_the_last() -> None:
        world.update(stack, more, environment=hooks(last="pre-create"), timeout_mins=1)
        world.settle(lambda: bool(world.held(world.stack(stack.id))), within=10)
        seen.append(
            (len(world.held(world.stack(stack.id))), unfinished(world), world.stack(stack.id).deadline_at)
        )

    tower.meanwhile = [stop_before_the_last]
    signal(world, stack)
    assert carried_out(world)
    assert seen == [(1, 1, None)]


def test_a_killed_conductor_loses_none(world: World, tower: Tower) -> None:
    stack = created(world, bell())
    for number in range(6):
        signal(world, stack, number)
    for host in ("host0", "host1"):
        world.kill(host)
    assert carried_out(world)
    assert sorted(tower.rung.values()) == list(range(6))


def test_one_that_fails_is_an_event(world: World, tower: Tower) -> None:
    stack = created(world, bell())
    tower.errors = [PermanentError("it has no clapper")]
    signal(world, stack)
    assert carried_out(world)
    assert history(world, stack)[-1] == ("bell", "SIGNAL", "FAILED")
    assert (world.stack(stack.id).status, rows(world, stack)["bell"].status) == (Status.COMPLETE,) * 2


def test_too_many_that_wait_are_refused(world: World) -> None:
    limits = replace(world.context.settings.signals, count=3)
    world.context = replace(world.context, settings=replace(world.context.settings, signals=limits))
    stack = created(world, bell())
    for _ in range(3):
        signal(world, stack)
    with pytest.raises(LimitExceeded, match="signals to the resource wait"):
        signal(world, stack)


def test_the_purge_takes_what_has_ended(world: World, tower: Tower) -> None:
    stack = created(world, bell())
    signal(world, stack)
    assert carried_out(world)
    assert states(world) == [TaskState.DONE]
    assert world.settle(lambda: not states(world), within=300)
