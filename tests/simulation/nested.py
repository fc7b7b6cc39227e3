"""Helpers for tests of nested stacks and of groups."""

import json
import typing

import sqlalchemy as sa
from simulation.helpers import ended
from simulation.world import World
from stoker.db.rows import Stack
from stoker.db.schema import tables
from stoker.db.states import Status

Json = typing.Any


INNER = "file:///inner.yaml"


def hot(resources: Json, **sections: Json) -> Json:
    return {"heat_template_version": "2018-08-31", "resources": resources, **sections}


def server(**properties: Json) -> Json:
    return {"type": "Sim::Server", "properties": {"after": 0, **properties}}


def inner(**properties: Json) -> str:
    """A template with a server, whose value is a parameter, and with its address as an output."""
    return json.dumps(
        hot(
            {"s": server(value={"get_param": "value"}, **properties)},
            parameters={"value": {"type": "string", "default": "d"}},
            outputs={"address": {"value": {"get_attr": ["s", "address"]}}},
        )
    )


def child(**properties: Json) -> Json:
    return {"type": INNER, "properties": properties}


def settled(world: World, stack: Stack, within: float = 60) -> Stack:
    assert world.settle(lambda: ended(world, stack), within=within), world.stack(stack.id)
    return world.stack(stack.id)


def created(world: World, template: Json, **fields: Json) -> Stack:
    files = fields.pop("files", {INNER: inner()})
    return settled(world, world.create("s", template, files=files, **fields))


def children(world: World, stack: Stack) -> dict[str, Json]:
    """Rows of the children that live, by the name of their resource."""
    s = tables.stack.c
    r = tables.resource.c
    query = (
        sa.select(r.name.label("resource"), tables.stack)
        .join(tables.resource, r.id == s.parent_resource_id)
        .where(s.parent_id == stack.id, s.deleted_at.is_(None))
    )
    return {row.resource: row for row in world.database.read(lambda conn: conn.execute(query).all())}


def group(count: Json, policy: Json = None, *, member: Json = None, **properties: Json) -> Json:
    """A group of servers; `member` is what their properties say."""
    definition = {"type": "Sim::Server", "properties": {"after": 0, **(member or {})}}
    body = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": count, "resource_def": definition, **properties},
    }
    return {**body, "update_policy": policy} if policy else body


def values(world: World) -> dict[str, str]:
    """Return the content of the members' objects, by the members' names."""
    return {item.resource: item.value for item in world.cloud.objects.values()}


def updated(world: World, stack: Stack, template: Json, **fields: Json) -> Stack:
    world.update(stack, template, **fields)
    outcome = settled(world, stack, within=120)
    assert (outcome.status, world.cloud.wrong) == (Status.COMPLETE, []), outcome.reason
    return outcome


def at_work(world: World, stack: Stack) -> int:
    """How many members are being worked on."""
    r = tables.resource.c
    s = tables.stack.c
    query = sa.select(sa.func.count()).where(
        r.stack_id.in_(sa.select(s.id).where(s.parent_id == stack.id)), r.status == "IN_PROGRESS"
    )
    return world.database.read(lambda conn: conn.execute(query).scalar_one())


def busiest(world: World, stack: Stack) -> int:
    """Runs the stack to its end; how many members were worked on at the same moment."""
    most = 0

    def look() -> bool:
        nonlocal most
        most = max(most, at_work(world, stack))
        return world.stack(stack.id).status != Status.IN_PROGRESS

    assert world.settle(look, within=200), world.stack(stack.id)
    return most


def autoscaling_group(least: int = 1, most: int = 5, *, values: Json = None, **properties: Json) -> Json:
    """A scaling autoscaling_group of servers; `values` is what their properties say."""
    member = {"type": "Sim::Server", "properties": {"after": 0, **(values or {})}}
    body = {"min_size": least, "max_size": most, "resource": member, **properties}
    return {"type": "OS::Heat::AutoScalingGroup", "properties": body}
