"""Helpers for tests of the simulation: goals of servers, and what became of them."""

import typing

import sqlalchemy as sa
from simulation.world import GRACE, SimConductor, World
from stoker.db import events, resources
from stoker.db.events import EventQuery
from stoker.db.rows import Resource, Stack
from stoker.db.schema import tables
from stoker.db.states import Status
from stoker.planning.requests import Goal, UpdateRequest

Json = typing.Any


def template(**found: Json) -> Json:
    made = {
        name: {"type": "Sim::Server", "properties": {"after": 0, **given}} for name, given in found.items()
    }
    return {"heat_template_version": "2018-08-31", "resources": made}


def on(*names: str) -> Json:
    return [{"get_resource": name} for name in names]


def ended(world: World, stack: Stack) -> bool:
    return world.stack(stack.id).status != Status.IN_PROGRESS


def rows(world: World, stack: Stack) -> dict[str, Resource]:
    found = world.database.read(lambda conn: resources.of_stack(conn, stack.id))
    return {row.name: row for row in found if row.replaced_by is None}


def all_rows(world: World, stack: Stack) -> int:
    return len(world.database.read(lambda conn: resources.of_stack(conn, stack.id)))


def told(world: World, stack: Stack, since: int = 0) -> list[tuple[str, str, str]]:
    found = world.database.read(lambda conn: events.list_events(conn, EventQuery(stack.id)))
    return [(e.resource_name, e.action, str(e.status)) for e, _ in found][since:]


def created(world: World, made: Json) -> Stack:
    stack = world.create("s", made)
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.stack(stack.id).status == Status.COMPLETE, world.stack(stack.id).reason
    return stack


def updated(world: World, stack: Stack, made: Json) -> Stack:
    world.update(stack, made)
    assert world.settle(lambda: ended(world, stack), within=60)
    found = world.stack(stack.id)
    assert (found.action, found.status) == ("UPDATE", Status.COMPLETE), found.reason
    assert world.cloud.wrong == []
    return found


def cancel(world: World, stack: Stack, *, rollback: bool = False, by: str | None = "alice") -> Stack:
    world.updates.cancel(world.stack(stack.id), rollback=rollback, by=by)
    return world.stack(stack.id)


def hanging(world: World) -> list[SimConductor]:
    return [conductor for conductor in world.awake() if conductor.hanging]


def pass_grace(world: World) -> None:
    world.calm()
    world.pass_time(GRACE + 0.1)
    world.calm()


def hooks(**found: Json) -> Json:
    return {"resource_registry": {"resources": {name: {"hooks": given} for name, given in found.items()}}}


def rest(world: World) -> None:
    """Let everything happen that happens by itself."""
    world.settle(lambda: False, within=25)


def status(world: World, stack: Stack) -> str:
    found = world.stack(stack.id)
    return f"{found.action}_{found.status}"


def foretold(
    world: World, stack: Stack, made: Json, environment: Json = None, **fields: Json
) -> dict[str, tuple[str, str]]:
    request = UpdateRequest(Goal(made, environment=environment or {}), **fields)
    found = world.previews.preview(world.stack(stack.id), request)
    return {item.name: (item.effect.value, item.reason) for item in found}


def stored(world: World) -> str:
    """All that stands in the tables."""

    def read(conn: sa.Connection) -> str:
        names = [name for name in tables.metadata.tables if name != "setting"]
        return "\n".join(
            str(row) for name in names for row in conn.execute(sa.select(tables.metadata.tables[name])).all()
        )

    return world.database.read(read)


def template_of(**found: Json) -> Json:
    return {
        "heat_template_version": "2018-08-31",
        "resources": {name: {"type": "Sim::Server", "properties": given} for name, given in found.items()},
    }


def chain(length: int) -> Json:
    needs = {f"r{i}": {"needs": [{"get_resource": f"r{i - 1}"}] if i else []} for i in range(length)}
    return template_of(**{name: {**given, "after": 0} for name, given in needs.items()})
