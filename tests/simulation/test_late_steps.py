"""Steps of software that come late: their conductors were paused while others worked."""

import pathlib
import typing

import pytest
import sqlalchemy as sa
from simulation.helpers import cancel, ended, hanging, pass_grace, rest, rows, template, updated
from simulation.threads import hang
from simulation.world import World
from stoker.conductor.steps.software import StepSoftware
from stoker.db import software
from stoker.db.rows import Stack
from stoker.db.schema import tables
from stoker.engine.exports import abandon_stack
from stoker.engine.planning.requests import AdoptedResource, CreateRequest, Goal
from stoker.engine.stacks import create_stack, delete_stack
from stoker.resources.contract.software import DeploymentSpec
from stoker.sealing.software import opened

Json = typing.Any


class LateDeploys:
    """Stops the next deployment before it writes.

    :ivar stops: the next one.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stops = False
        deploy = StepSoftware.deploy

        def slow(step: StepSoftware, deployment_id: str, spec: DeploymentSpec) -> None:
            if self.stops:
                self.stops = False
                hang()
            deploy(step, deployment_id, spec)

        monkeypatch.setattr(StepSoftware, "deploy", slow)


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4)


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> LateDeploys:
    return LateDeploys(monkeypatch)


def deployed(text: str) -> Json:
    properties = {"config": {"get_resource": "config"}, "server": "web", "signal_transport": "NO_SIGNAL"}
    document = template()
    document["resources"] = {
        "config": {"type": "OS::Heat::SoftwareConfig", "properties": {"config": text}},
        "deployment": {"type": "OS::Heat::SoftwareDeployment", "properties": properties},
    }
    return document


def updated_late(world: World, late: LateDeploys) -> tuple[Stack, str]:
    """A stack that others have updated after a conductor was paused in the update's step; and its host."""
    stack = world.create("s", deployed("one"))
    rest(world)
    late.stops = True
    world.update(stack, deployed("two"))
    world.calm()
    [conductor] = hanging(world)
    world.pause(conductor.host)
    rest(world)
    assert deployed_texts(world) == ["two"]
    return stack, conductor.host


def deployed_texts(world: World) -> list[str]:
    """The configs that the server's guest reads."""
    configs = world.database.read(lambda conn: software.deployed_configs(conn, "tenant", "web"))
    return [opened(world.sealer.of_software("tenant"), config.body).value["config"] for config in configs]


def wake(world: World, host: str, stack: Stack) -> None:
    rest(world)
    world.resume(host)
    world.conductors[host].go_on()
    rest(world)
    assert ended(world, stack)


def test_a_late_step_undoes_no_deletion(world: World, late: LateDeploys) -> None:
    stack, host = updated_late(world, late)
    delete_stack(world.context, world.stack(stack.id))
    wake(world, host, stack)
    for table in (tables.software_deployment, tables.software_config):
        assert world.database.read(lambda conn, rows=table: conn.execute(sa.select(rows)).all()) == []


def test_a_late_step_undoes_no_newer_update(world: World, late: LateDeploys) -> None:
    stack, host = updated_late(world, late)
    updated(world, stack, deployed("three"))
    wake(world, host, stack)
    assert deployed_texts(world) == ["three"]


@pytest.mark.parametrize("method", ["create_config", "deploy", "adopt_config", "adopt_deployment"])
@pytest.mark.parametrize("ends", ["killed", "detached"])
def test_a_step_whose_result_is_lost_leaves_nothing_behind(
    world: World, monkeypatch: pytest.MonkeyPatch, method: str, ends: str
) -> None:
    left = world.create("first", deployed("one"))
    rest(world)
    ids = {name: row.physical_id for name, row in rows(world, left).items()}
    abandon_stack(world.context, world.stack(left.id))
    rest(world)
    make = getattr(StepSoftware, method)

    def stop(*arguments: Json, **more: Json) -> None:
        make(*arguments, **more)
        hang()

    monkeypatch.setattr(StepSoftware, method, stop)
    adopted = {name: AdoptedResource(key) for name, key in ids.items()} if "adopt" in method else None
    stack = create_stack(world.context, CreateRequest("tenant", "s", Goal(deployed("one")), adopted=adopted))
    world.calm()
    [conductor] = hanging(world)
    if ends == "killed":
        world.kill(conductor.host)
    else:
        cancel(world, stack)
        pass_grace(world)
        conductor.go_on()
    monkeypatch.setattr(StepSoftware, method, make)
    rest(world)
    delete_stack(world.context, world.stack(stack.id))
    rest(world)
    assert ended(world, stack)
    for table in (tables.software_deployment, tables.software_config):
        of_stack = sa.select(table.c.id).where(table.c.stack_id == stack.id)
        assert world.database.read(lambda conn, query=of_stack: conn.execute(query).all()) == []
