"""The advice for failed stacks helps: each row of its table is carried out after a failure of its kind."""

import pathlib
import typing
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from simulation.helpers import created, ended, on, rows, template
from simulation.world import World
from stoker.db.rows import Stack
from stoker.db.states import Status, TaskKind
from stoker.engine.planning.requests import Goal, UpdateRequest
from stoker.engine.stacks import act_on_stack, delete_stack
from stoker.engine.updates import update_stack
from stoker.features.diagnosis.advice import ADVICE, Advice, advise
from stoker.resources.contract.errors import OverQuota, PermanentError
from stoker.resources.contract.views import ResourceView

Json = typing.Any
DOCUMENT = template(a={}, b={"needs": on("a")})


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4)


def settled(world: World, stack: Stack) -> Stack:
    assert world.settle(lambda: ended(world, stack), within=900)
    return world.stack(stack.id)


def refuse(world: World, error: Exception) -> Callable[[], None]:
    """Have the cloud refuse each creation; return the function that ends that."""

    def check(target: ResourceView) -> None:
        raise error

    usual = world.cloud.check_needs
    world.cloud.check_needs = check  # type: ignore[method-assign]

    def allow() -> None:
        world.cloud.check_needs = usual  # type: ignore[method-assign]

    return allow


def nothing() -> None:
    """Do nothing before the command."""


@dataclass
class Failure:
    """A stack that has failed, what has to be done first, and the template that a change needs."""

    stack: Stack
    prepare: Callable[[], None] = nothing
    document: Json = ""


def deleted_behind_the_back(world: World) -> Failure:
    stack = created(world, DOCUMENT)
    del world.cloud.objects[str(rows(world, stack)["a"].physical_id)]
    act_on_stack(world.context, world.stack(stack.id), TaskKind.CHECK)
    return Failure(settled(world, stack))


def beyond_a_quota(world: World) -> Failure:
    allow = refuse(world, OverQuota("over the quota: compute 403: instances, 2 of 2", after=20.0))
    return Failure(settled(world, world.create("s", DOCUMENT)), allow)


def referring_to_what_is_gone(world: World) -> Failure:
    stack = created(world, DOCUMENT)
    del world.cloud.objects[str(rows(world, stack)["a"].physical_id)]
    allow = refuse(world, PermanentError("network 404: no such thing", kind="NotFound"))
    world.update(stack, template(a={}, b={"needs": on("a"), "value": "x"}))
    failed = settled(world, stack)
    allow()
    return Failure(failed)


def with_a_wrong_goal(world: World) -> Failure:
    allow = refuse(world, PermanentError("compute 400: wrong", kind="BadRequest"))
    failed = settled(world, world.create("s", DOCUMENT))
    return Failure(failed, allow, template(a={"value": "right"}))


def unfinished(world: World) -> Failure:
    allow = refuse(world, PermanentError("told to fail"))
    failed = settled(world, world.create("s", DOCUMENT))
    return Failure(failed, allow)


def undeletable(world: World, why: str) -> Failure:
    stack = created(world, DOCUMENT)
    usual = world.cloud.call

    def call(name: str, target: ResourceView) -> bool:
        if name == "delete":
            raise PermanentError(why)
        return usual(name, target)

    world.cloud.call = call  # type: ignore[method-assign]
    delete_stack(world.context, world.stack(stack.id))
    failed = settled(world, stack)

    def release() -> None:
        world.cloud.call = usual  # type: ignore[method-assign]

    return Failure(failed, release)


FAILURES: dict[str, Callable[[World], Failure]] = {
    "checked": deleted_behind_the_back,
    "quota": beyond_a_quota,
    "gone": referring_to_what_is_gone,
    "goal": with_a_wrong_goal,
    "unfinished": unfinished,
    "in use": lambda world: undeletable(world, "still in use by a port"),
    "again": lambda world: undeletable(world, "told to fail"),
}


def carry_out(world: World, failure: Failure, advice: Advice) -> Stack:
    """Do what the command says, as the client would ask for it."""
    stack = failure.stack
    words = advice.command_for(stack).split()
    assert (words[:2], words[-1]) == (["openstack", "stack"], stack.id)
    if words[2] == "update":
        assert "--existing" in words
        document = failure.document if "--template" in words else ""
        request = UpdateRequest(Goal(document), existing=True, converge="--converge" in words)
        update_stack(world.context, world.stack(stack.id), request)
    elif words[2] == "delete":
        delete_stack(world.context, world.stack(stack.id))
    else:
        act_on_stack(world.context, world.stack(stack.id), TaskKind(words[2]))
    return settled(world, stack)


@pytest.mark.parametrize("advice", ADVICE, ids=lambda advice: advice.cause)
def test_each_advice_is_given_for_its_cause_and_helps(world: World, advice: Advice) -> None:
    failure = FAILURES[advice.cause](world)
    assert failure.stack.status == Status.FAILED, failure.stack.reason
    assert advise(failure.stack) == advice, failure.stack.reason
    failure.prepare()
    outcome = carry_out(world, failure, advice)
    assert outcome.status == Status.COMPLETE, outcome.reason
    assert world.cloud.wrong == []


def test_what_was_said_before_does_not_help_after_a_check(world: World) -> None:
    """The same check finds the same."""
    failure = deleted_behind_the_back(world)
    act_on_stack(world.context, world.stack(failure.stack.id), TaskKind.CHECK)
    assert settled(world, failure.stack).status == Status.FAILED
