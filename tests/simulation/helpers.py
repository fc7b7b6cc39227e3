"""Helpers for tests of the simulation: goals of servers, and what became of them."""

import typing

import sqlalchemy as sa
from simulation.world import GRACE, SimConductor, World
from stoker.db import events, resources
from stoker.db.events import EventQuery
from stoker.db.rows import Resource, Stack
from stoker.db.schema import tables
from stoker.db.states import Status
from stoker.engine.planning.requests import Goal, UpdateRequest
from stoker.engine.updates import cancel_action
from stoker.features.preview.updates import preview_changes

Json = typing.Any


def template(**definitions: Json) -> Json:
    document = {
        name: {"type": "Sim::Server", "properties": {"after": 0, **properties}}
        for name, properties in definitions.items()
    }
    return {"heat_template_version": "2018-08-31", "resources": document}


def on(*names: str) -> Json:
    return [{"get_resource": name} for name in names]


def ended(world: World, stack: Stack) -> bool:
    return world.stack(stack.id).status != Status.IN_PROGRESS


def rows(world: World, stack: Stack) -> dict[str, Resource]:
    rows = world.database.read(lambda conn: resources.of_stack(conn, stack.id))
    return {row.name: row for row in rows if row.replaced_by is None}


def all_rows(world: World, stack: Stack) -> int:
    return len(world.database.read(lambda conn: resources.of_stack(conn, stack.id)))


def history(world: World, stack: Stack, since: int = 0) -> list[tuple[str, str, str]]:
    entries = world.database.read(lambda conn: events.list_events(conn, EventQuery(stack.id)))
    return [(e.resource_name, e.action, str(e.status)) for e, _ in entries][since:]


def created(world: World, document: Json) -> Stack:
    stack = world.create("s", document)
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.stack(stack.id).status == Status.COMPLETE, world.stack(stack.id).reason
    return stack


def updated(world: World, stack: Stack, document: Json) -> Stack:
    world.update(stack, document)
    assert world.settle(lambda: ended(world, stack), within=60)
    current = world.stack(stack.id)
    assert (current.action, current.status) == ("UPDATE", Status.COMPLETE), current.reason
    assert world.cloud.wrong == []
    return current


def cancel(world: World, stack: Stack, *, rollback: bool = False, by: str | None = "alice") -> Stack:
    cancel_action(world.context, world.stack(stack.id), rollback=rollback, by=by)
    return world.stack(stack.id)


def hanging(world: World) -> list[SimConductor]:
    return [conductor for conductor in world.awake() if conductor.hanging]


def pass_grace(world: World) -> None:
    world.calm()
    world.pass_time(GRACE + 0.1)
    world.calm()


def hooks(**points: Json) -> Json:
    return {"resource_registry": {"resources": {name: {"hooks": hook} for name, hook in points.items()}}}


def rest(world: World) -> None:
    """Let everything happen that happens by itself."""
    world.settle(lambda: False, within=25)


def status(world: World, stack: Stack) -> str:
    current = world.stack(stack.id)
    return f"{current.action}_{current.status}"


def previewed(
    world: World, stack: Stack, document: Json, environment: Json = None, **fields: Json
) -> dict[str, tuple[str, str]]:
    request = UpdateRequest(Goal(document, environment=environment or {}), **fields)
    changes = preview_changes(world.context, world.stack(stack.id), request)
    return {item.name: (item.effect.value, item.reason) for item in changes}


def stored(world: World) -> str:
    """All rows of the tables."""

    def read(conn: sa.Connection) -> str:
        names = [name for name in tables.metadata.tables if name != "setting"]
        return "\n".join(
            str(row) for name in names for row in conn.execute(sa.select(tables.metadata.tables[name])).all()
        )

    return world.database.read(read)


def template_of(**properties_of: Json) -> Json:
    return {
        "heat_template_version": "2018-08-31",
        "resources": {
            name: {"type": "Sim::Server", "properties": properties}
            for name, properties in properties_of.items()
        },
    }


def chain(length: int) -> Json:
    needs = {f"r{i}": {"needs": [{"get_resource": f"r{i - 1}"}] if i else []} for i in range(length)}
    return template_of(**{name: {**properties, "after": 0} for name, properties in needs.items()})
