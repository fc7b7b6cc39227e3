"""Software configs and deployments belong to the resource that their own row names, and to nobody else."""

import pathlib
import typing

import pytest
import sqlalchemy as sa
from simulation.helpers import rest, rows, status, updated
from simulation.world import World
from stoker.db import projects, software
from stoker.db.rows import Stack
from stoker.db.schema import tables
from stoker.db.states import TaskKind
from stoker.engine.exports import abandon_stack
from stoker.engine.planning.requests import AdoptedResource, CreateRequest, Goal
from stoker.engine.signals import send_signal
from stoker.engine.stacks import act_on_stack, create_stack, delete_stack
from stoker.template.residual import sealed

Json = typing.Any
SERVER = "web"
NOBODYS = "5ca1ab1e-0000-4000-8000-000000000001"
"""An id that nothing has."""


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=1, threads=4)


def software_of(text: str, **properties: Json) -> Json:
    """A goal with a config and a deployment, which its server also applies when the stack is suspended."""
    fields = {"config": {"get_resource": "config"}, "server": SERVER, "signal_transport": "NO_SIGNAL"}
    fields["actions"] = ["CREATE", "UPDATE", "SUSPEND"]
    return {
        "heat_template_version": "2018-08-31",
        "resources": {
            "config": {"type": "OS::Heat::SoftwareConfig", "properties": {"config": text}},
            "deployment": {
                "type": "OS::Heat::SoftwareDeployment",
                "properties": {**fields, **properties},
            },
        },
    }


def victims(world: World, project: str, **properties: Json) -> Stack:
    stack = create_stack(world.context, CreateRequest(project, "v", Goal(software_of("right", **properties))))
    rest(world)
    return stack


def adopted(world: World, ids: dict[str, str | None], name: str = "t") -> Stack:
    """A stack that adopts a config and a deployment by these ids."""
    resources = {resource: AdoptedResource(key) for resource, key in ids.items()}
    request = CreateRequest("tenant", name, Goal(software_of("evil")), adopted=resources)
    stack = create_stack(world.context, request)
    rest(world)
    return stack


def ids_of(world: World, stack: Stack) -> dict[str, str | None]:
    return {name: row.physical_id for name, row in rows(world, stack).items()}


def stored(world: World) -> Json:
    """All configs and deployments."""

    def read(conn: sa.Connection) -> Json:
        both = (tables.software_config, tables.software_deployment)
        return [sorted(conn.execute(sa.select(table)).all()) for table in both]

    return world.database.read(read)


@pytest.mark.parametrize("project", ["other", "tenant"], ids=["of another project", "of another stack"])
def test_what_is_anothers_is_neither_adopted_nor_changed_nor_deleted(world: World, project: str) -> None:
    theirs = ids_of(world, victims(world, project))
    before = stored(world)
    stack = adopted(world, theirs)
    assert status(world, stack) == "ADOPT_FAILED"
    reasons = {name: row.reason for name, row in rows(world, stack).items()}
    assert (
        reasons["config"]
        == f"NotFound: resources.config: Software config with id {theirs['config']} not found"
    )
    assert ids_of(world, stack) == {"config": None, "deployment": None}
    act_on_stack(world.context, world.stack(stack.id), TaskKind.SUSPEND)
    rest(world)
    delete_stack(world.context, world.stack(stack.id))
    rest(world)
    assert status(world, stack) == "DELETE_COMPLETE"
    assert stored(world) == before


def test_an_id_of_others_is_refused_in_the_words_of_one_that_nobody_has(world: World) -> None:
    theirs = ids_of(world, victims(world, "other"))
    texts = []
    for key in (theirs["deployment"], NOBODYS):
        document = software_of("evil")
        del document["resources"]["config"]
        document["resources"]["deployment"]["properties"]["config"] = ""
        request = CreateRequest(
            "tenant", f"t{len(texts)}", Goal(document), adopted={"deployment": AdoptedResource(key)}
        )
        stack = create_stack(world.context, request)
        rest(world)
        texts.append(rows(world, stack)["deployment"].reason.replace(str(key), "ID"))
    assert texts == ["NotFound: resources.deployment: Deployment with id ID not found"] * 2


def test_the_row_of_a_resource_that_names_anothers_deployment_gives_no_right_to_it(world: World) -> None:
    """An adoption of before stored any id; so a row may still have one."""
    theirs = victims(world, "other", signal_transport="CFN_SIGNAL")
    stack = create_stack(world.context, CreateRequest("tenant", "t", Goal(software_of("evil"))))
    rest(world)
    r = tables.resource
    for name, key in ids_of(world, theirs).items():
        is_row = sa.and_(r.c.stack_id == stack.id, r.c.name == name)
        claimed = sa.update(r).where(is_row).values(physical_id=key)
        world.database.write(lambda conn, claimed=claimed: conn.execute(claimed))
    before = foreign(world)
    send_signal(world.context, world.stack(stack.id), "deployment", {"deploy_stdout": "forged"})
    act_on_stack(world.context, world.stack(stack.id), TaskKind.SUSPEND)
    rest(world)
    assert status(world, stack) == "SUSPEND_FAILED"
    assert foreign(world) == before
    delete_stack(world.context, world.stack(stack.id))
    rest(world)
    assert status(world, stack) == "DELETE_COMPLETE"
    assert foreign(world) == before == stored(world)


def foreign(world: World) -> Json:
    """The configs and deployments of the other project."""
    return [[row for row in table if row.project_id == "other"] for table in stored(world)]


def test_what_an_abandoned_stack_has_left_is_adopted_and_then_belongs_to_the_adopter(world: World) -> None:
    first = victims(world, "tenant")
    left = ids_of(world, first)
    abandon_stack(world.context, world.stack(first.id))
    rest(world)
    stack = adopted(world, left)
    assert status(world, stack) == "ADOPT_COMPLETE"
    assert ids_of(world, stack) == left
    second = adopted(world, left, "second")
    assert status(world, second) == "ADOPT_FAILED"
    act_on_stack(world.context, world.stack(stack.id), TaskKind.SUSPEND)
    rest(world)
    configs = world.database.read(lambda conn: software.deployed_configs(conn, "tenant", SERVER))
    assert len(configs) == 1
    delete_stack(world.context, world.stack(stack.id))
    rest(world)
    assert stored(world) == [[], []]


def test_an_update_adopts_what_an_adoption_did_not_reach(world: World) -> None:
    first = victims(world, "tenant")
    left = ids_of(world, first)
    abandon_stack(world.context, world.stack(first.id))
    rest(world)
    goal = software_of("evil")
    goal["resources"]["first"] = {"type": "Sim::Server", "properties": {"after": 0}}
    goal["resources"]["config"]["depends_on"] = "first"
    resources = {name: AdoptedResource(key) for name, key in {**left, "first": "gone"}.items()}
    stack = create_stack(world.context, CreateRequest("tenant", "t", Goal(goal), adopted=resources))
    rest(world)
    assert (status(world, stack), ids_of(world, stack)["config"]) == ("ADOPT_FAILED", None)
    updated(world, stack, goal)
    assert {name: ids_of(world, stack)[name] for name in left} == left
    assert world.database.read(lambda conn: projects.get(conn, "tenant")).usage["software_configs"] == 2


def test_a_deployment_whose_config_a_lost_key_has_sealed_can_be_deleted(world: World) -> None:
    stack = victims(world, "tenant", actions=["CREATE", "DELETE"])
    lost = sealed("0123456789abcdef.lost")
    world.database.write(lambda conn: conn.execute(sa.update(tables.software_config).values(body=lost)))
    delete_stack(world.context, world.stack(stack.id))
    rest(world)
    assert status(world, stack) == "DELETE_COMPLETE"
    assert stored(world) == [[], []]
