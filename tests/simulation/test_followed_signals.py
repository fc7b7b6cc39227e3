"""Attributes that follow the signals to another resource, and metadata that read them."""

import json
import pathlib
import typing

import pytest
import sqlalchemy as sa
from simulation.helpers import rows
from simulation.nested import created, hot, server, settled
from simulation.world import World
from stoker.db.rows import Stack
from stoker.db.schema import tables
from stoker.db.states import FINAL, Status, TaskKind
from stoker.engine.signals import send_signal
from stoker.engine.stacks import act_on_stack
from stoker.resources.contract.context import StepContext
from stoker.resources.contract.views import ResourceView
from stoker.resources.heat.wait_conditions import WaitCondition
from stoker.sealing.stored import metadata_in_clear
from stoker.shapes import JsonMap

Json = typing.Any


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=3, threads=4)


def waiting(**others: Json) -> Json:
    """A template whose server's metadata have the data of a wait condition's signals."""
    handle = {"type": "OS::Heat::WaitConditionHandle"}
    properties = {"handle": {"get_resource": "handle"}, "timeout": 600}
    condition = {"type": "OS::Heat::WaitCondition", "properties": properties}
    reader = {**server(), "metadata": {"said": {"get_attr": ["wait", "data"]}, "port": 80}}
    return hot({"handle": handle, "wait": condition, "reader": reader, "other": server(), **others})


def signal(world: World, stack: Stack, signal_id: str, data: Json) -> None:
    send_signal(world.context, world.stack(stack.id), "handle", {"id": signal_id, "data": data})


def unfinished(world: World) -> int:
    t = tables.task.c
    query = sa.select(sa.func.count()).where(t.kind == TaskKind.SIGNAL, t.state.not_in(sorted(FINAL)))
    return world.database.read(lambda conn: conn.execute(query).scalar_one())


def complete(world: World, template: Json) -> Stack:
    """Create the stack; its condition has one signal."""
    stack = world.create("s", template)
    assert world.settle(lambda: rows(world, stack)["handle"].physical_id is not None, within=60)
    signal(world, stack, "first", 1)
    stack = settled(world, stack, within=60)
    assert stack.status == Status.COMPLETE, stack.reason
    return stack


def said(world: World, stack: Stack) -> tuple[Json, Json]:
    """Return the condition's attribute and the reader's metadata of it."""
    row = rows(world, stack)["reader"]
    metadata = metadata_in_clear(row, world.sealer.of_stack("p1", stack.id).open)
    return json.loads(rows(world, stack)["wait"].attributes["data"]), json.loads(metadata["said"])


def test_a_later_signal_changes_the_data_of_a_condition_and_the_metadata_that_read_them(world: World) -> None:
    stack = complete(world, waiting())
    assert unfinished(world) == 0  # While it waits, the condition reads its signals itself.
    before = rows(world, stack)
    signal(world, stack, "second", {"a": "b"})
    assert world.settle(lambda: not unfinished(world), within=60)
    both = {"first": 1, "second": {"a": "b"}}
    assert said(world, stack) == (both, both)
    after = rows(world, stack)
    assert after["reader"].generation == before["reader"].generation + 1
    assert (after["other"], after["wait"].status) == (before["other"], Status.COMPLETE)


def test_of_a_burst_of_signals_none_is_missing_although_conductors_die(world: World) -> None:
    stack = complete(world, waiting())
    for number in range(9):
        signal(world, stack, str(number), number)
    assert unfinished(world) == 1
    world.kill("host0")
    for number in range(9, 20):
        world.settle(lambda: unfinished(world) == 0, within=number / 100)
        signal(world, stack, str(number), number)
    assert world.settle(lambda: not unfinished(world), within=120)
    every = {"first": 1, **{str(number): number for number in range(20)}}
    assert said(world, stack) == (every, every)


def test_a_condition_in_an_action_is_left_to_it(world: World) -> None:
    stack = complete(world, waiting())
    template = waiting()
    template["resources"]["wait"]["properties"]["count"] = 2
    world.update(stack, template)
    assert world.settle(lambda: rows(world, stack)["wait"].status == Status.IN_PROGRESS, within=60)
    signal(world, stack, "second", 2)
    assert unfinished(world) == 0
    assert settled(world, stack, within=60).status == Status.COMPLETE
    assert said(world, stack) == ({"first": 1, "second": 2},) * 2


def test_what_another_signal_stored_meanwhile_is_read_again(tmp_path: pathlib.Path) -> None:
    """A step ends after that of a later signal, and has read less than it."""
    later: list[typing.Callable[[], None]] = []

    class Overtaken(WaitCondition):
        def refresh(self, target: ResourceView, context: StepContext) -> JsonMap:
            data = super().refresh(target, context)
            if later:
                later.pop()()
            return data

    world = World(tmp_path, hosts=3, threads=4, types={"OS::Heat::WaitCondition": Overtaken})
    stack = complete(world, waiting())

    def overtake() -> None:
        signal(world, stack, "third", 3)
        assert world.settle(lambda: unfinished(world) == 1, within=30)

    later.append(overtake)
    signal(world, stack, "second", 2)
    assert world.settle(lambda: not unfinished(world), within=120)
    assert said(world, stack) == ({"first": 1, "second": 2, "third": 3},) * 2


def test_outputs_of_a_deployment_at_a_suspension_change_metadata_that_read_them(world: World) -> None:
    config = {"type": "OS::Heat::SoftwareConfig", "properties": {"outputs": [{"name": "left"}]}}
    properties = {
        "config": {"get_resource": "config"},
        "server": {"get_resource": "machine"},
        "actions": ["SUSPEND"],
        "signal_transport": "HEAT_SIGNAL",
    }
    deployment = {"type": "OS::Heat::SoftwareDeployment", "properties": properties}
    reader = {**server(), "metadata": {"left": {"get_attr": ["deployment", "left"]}}}
    machine = {"type": "OS::Heat::DeployedServer"}
    template = hot({"config": config, "machine": machine, "deployment": deployment, "reader": reader})
    stack = created(world, template)
    assert stack.status == Status.COMPLETE, stack.reason
    act_on_stack(world.context, stack, TaskKind.SUSPEND)
    assert world.settle(lambda: rows(world, stack)["deployment"].progress is not None, within=60)
    send_signal(world.context, world.stack(stack.id), "deployment", {"left": 7})
    stack = settled(world, stack, within=60)
    assert stack.status == Status.COMPLETE, stack.reason
    metadata = metadata_in_clear(rows(world, stack)["reader"], world.sealer.of_stack("p1", stack.id).open)
    assert metadata == {"left": 7}
