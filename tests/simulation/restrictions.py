"""Helpers for tests of restricted updates."""

import typing

from simulation.helpers import ended
from simulation.world import World
from stoker.db.rows import Stack
from stoker.engine.planning.requests import Goal, UpdateRequest
from stoker.engine.updates import update_stack

Json = typing.Any


def server(**properties: Json) -> Json:
    return {"type": "Sim::Server", "properties": {"after": 0, **properties}}


def volume(policy: Json = None, **properties: Json) -> Json:
    definition = {"type": "Sim::Volume", "properties": {"after": 0, **properties}}
    return definition if policy is None else {**definition, "update_policy": policy}


def template(**definitions: Json) -> Json:
    return {"heat_template_version": "2018-08-31", "resources": definitions}


def restricted(**actions: Json) -> Json:
    entries = {name: {"restricted_actions": words} for name, words in actions.items()}
    return {"resource_registry": {"resources": entries}}


def update(world: World, stack: Stack, document: Json, environment: Json = None, **fields: Json) -> Stack:
    request = UpdateRequest(Goal(document, environment=environment or {}), **fields)
    update_stack(world.context, world.stack(stack.id), request)
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.cloud.wrong == []
    return world.stack(stack.id)


def state(stack: Stack) -> tuple[str, str]:
    return stack.action, str(stack.status)
