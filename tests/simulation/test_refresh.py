"""Outputs of resources that change while others are made: they are read again at the end."""

import logging
import pathlib
import typing
from collections.abc import Mapping

import pytest
import yaml
from simulation.helpers import created, ended, hanging, history, on, rows, status, template, updated
from simulation.world import World
from stoker.conductor.steps.context import RunningStepContext
from stoker.conductor.steps.endpoints import Endpoints
from stoker.db.rows import Stack
from stoker.db.states import Status
from stoker.engine.exports import abandon_stack
from stoker.resources.contract.context import StepContext
from stoker.resources.contract.errors import PermanentError, RetryableError
from stoker.resources.contract.plugin import ResourceType
from stoker.resources.contract.schema import Attribute
from stoker.resources.contract.steps import Done, Step
from stoker.resources.contract.views import ResourceView

Json = typing.Any


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4)


def asking(*names: str, **resources: Json) -> Json:
    """A template whose outputs show who uses these resources."""
    outputs = {name: {"value": {"get_attr": [name, "users"]}} for name in names}
    return {**template(**resources), "outputs": outputs}


def users(world: World, stack: Stack, name: str) -> Json:
    return (rows(world, stack)[name].attributes or {}).get("users")


def refreshed(world: World) -> list[str]:
    return [line for line in world.cloud.calls if line.startswith("refresh")]


def test_an_output_shows_a_resource_as_it_is_when_all_others_are_made(world: World) -> None:
    stack = created(world, asking("a", a={}, b={"needs": on("a"), "looks": 3, "after": 5}, c={"after": 9}))
    assert users(world, stack, "a") == ["b"]
    assert refreshed(world) == ["refresh a"]
    assert [event for event in history(world, stack) if event[0] == "a"] == [
        ("a", "CREATE", "IN_PROGRESS"),
        ("a", "CREATE", "COMPLETE"),
    ]


@pytest.mark.parametrize(
    "value", [{"get_attr": ["a"]}, {"get_attr": ["a", "show"]}, {"get_attr": ["a", "users", 0]}]
)
def test_whoever_may_ask_for_it_gets_it(world: World, value: Json) -> None:
    document = {**template(a={}, b={"needs": on("a")}), "outputs": {"o": {"value": value}}}
    assert users(world, created(world, document), "a") == ["b"]


def test_nothing_is_read_that_no_output_asks_for(world: World) -> None:
    document = template(a={}, b={"needs": on("a"), "value": {"get_attr": ["a", "address"]}})
    outputs = {"o": {"value": [{"get_attr": ["a", "address"]}, {"get_resource": "a"}]}}
    stack = created(world, {**document, "outputs": outputs})
    assert refreshed(world) == []
    assert users(world, stack, "a") is None


def test_many_are_read_behind_all_others(world: World) -> None:
    names = [f"r{n}" for n in range(6)]
    others: Json = {f"u{n}": {"needs": on(*names), "after": 3, "looks": 2} for n in range(4)}
    stack = created(world, asking(*names, **{name: {} for name in names}, **others))
    assert [users(world, stack, name) for name in names] == [sorted(others)] * 6
    assert sorted(refreshed(world)) == [f"refresh {name}" for name in names]


def test_an_update_reads_what_it_has_replaced_and_what_it_has_not_touched(world: World) -> None:
    stack = created(world, asking("a", "z", a={}, z={}, b={"needs": on("a", "z")}))
    first = rows(world, stack)["a"].id
    document = asking("a", "z", a={"size": 2}, z={}, b={"needs": on("a", "z")}, c={"needs": on("a", "z")})
    updated(world, stack, document)
    assert rows(world, stack)["a"].id != first
    assert [users(world, stack, name) for name in ("a", "z")] == [["b", "c"]] * 2
    updated(world, stack, asking("a", a={"size": 2}))
    assert users(world, stack, "a") == []


def test_an_update_that_only_asks_reads_it(world: World) -> None:
    stack = created(world, template(a={}, b={"needs": on("a")}))
    assert users(world, stack, "a") is None
    updated(world, stack, asking("a", a={}, b={"needs": on("a")}))
    assert users(world, stack, "a") == ["b"]


@pytest.mark.parametrize(
    "errors",
    [
        [PermanentError("it is gone")],
        [RetryableError("busy"), RetryableError("busy")],
        [RuntimeError("a bug")],
    ],
    ids=["permanent", "retryable too often", "a bug"],
)
def test_what_cannot_be_read_stays_and_fails_nothing(
    world: World, errors: list[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    stack = created(world, asking("a", a={}, b={"needs": on("a")}))
    count = len(history(world, stack))
    before = rows(world, stack)["a"]
    world.cloud.unread["a"] = list(errors)
    with caplog.at_level(logging.WARNING):
        updated(world, stack, asking("a", a={}, b={"needs": on("a")}, c={"needs": on("a")}))
    assert world.cloud.unread["a"] == []
    after = rows(world, stack)["a"]
    assert (after.status, after.reason, after.action) == (before.status, before.reason, before.action)
    assert users(world, stack, "a") == ["b"]
    assert [event[0] for event in history(world, stack)[count:] if event[0] == "a"] == []
    assert f"{stack.id}/a: its refresh failed: " in caplog.text
    assert str(errors[0]) in caplog.text


def test_a_service_that_was_busy_is_called_once_more(world: World) -> None:
    world.cloud.unread["a"] = [RetryableError("busy")]
    stack = created(world, asking("a", a={}, b={"needs": on("a")}))
    assert users(world, stack, "a") == ["b"]
    assert rows(world, stack)["a"].reason == "state changed"


def test_a_failed_stack_is_not_read(world: World) -> None:
    stack = world.create("s", asking("a", a={}, b={"needs": on("a"), "fail": True}))
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.stack(stack.id).status == Status.FAILED
    assert refreshed(world) == []


def test_it_is_read_although_its_conductor_dies(world: World) -> None:
    stack = world.create("s", asking("a", a={"hangs": ["refresh"]}, b={"needs": on("a")}))
    assert world.settle(lambda: bool(hanging(world)), within=60)
    [conductor] = hanging(world)
    world.kill(conductor.host)
    assert world.settle(lambda: ended(world, stack), within=120)
    assert world.stack(stack.id).status == Status.COMPLETE
    assert users(world, stack, "a") == ["b"]


def test_a_service_that_hangs_fails_nothing_and_holds_the_stack_up_for_a_minute(world: World) -> None:
    """An update after a failed one stayed in progress for minutes, although its resources had ended."""
    stack = world.create("s", asking("a", a={"hangs": ["refresh"]}, b={"needs": on("a"), "fail": True}))
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.stack(stack.id).status == Status.FAILED
    world.update(stack, asking("a", a={"hangs": ["refresh"]}, b={"needs": on("a")}), timeout_mins=60)
    assert world.settle(lambda: ended(world, stack), within=100)
    assert status(world, stack) == "UPDATE_COMPLETE"
    assert rows(world, stack)["a"].status == Status.COMPLETE


class Remote(ResourceType):
    """Asks a service when it is made, and when it is read again."""

    attributes_schema = {"state": Attribute("As the service says.", volatile=True)}  # noqa: RUF012

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        context.adapter("compute", "2.1")
        return Done(physical_id="x")

    def refresh(self, target: ResourceView, context: StepContext) -> Mapping[str, Json]:
        context.adapter("compute", "2.1")
        return {}


def test_only_what_is_read_again_is_read_in_a_hurry(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hurries: list[bool] = []

    def adapter(self: Endpoints, *service: Json, is_hurried: bool) -> None:
        hurries.append(is_hurried)

    monkeypatch.setattr(RunningStepContext, "session", lambda self: None)
    monkeypatch.setattr(Endpoints, "adapter", adapter)
    resources = {"a": {"type": "Sim::Remote"}}
    outputs = {"o": {"value": {"get_attr": ["a", "state"]}}}
    created(
        World(tmp_path, types={"Sim::Remote": Remote}),
        {"heat_template_version": "2018-08-31", "resources": resources, "outputs": outputs},
    )
    assert hurries == [False, True]


def test_an_update_need_not_wait_for_it(world: World) -> None:
    stack = world.create("s", asking("a", a={"hangs": ["refresh"]}, b={"needs": on("a")}), timeout_mins=60)
    assert world.settle(lambda: bool(hanging(world)), within=60)
    world.update(stack, asking("a", a={"size": 2}, b={"needs": on("a")}, c={"needs": on("a")}))
    assert world.settle(lambda: ended(world, stack), within=120)
    assert world.stack(stack.id).action == "UPDATE"
    assert world.stack(stack.id).status == Status.COMPLETE
    assert users(world, stack, "a") == ["b", "c"]


def test_a_nested_stack_shows_its_parent_what_it_was_in_the_end(world: World) -> None:
    inner = asking("a", a={}, b={"needs": on("a")})
    parent = {
        "heat_template_version": "2018-08-31",
        "resources": {"n": {"type": "inner.yaml"}},
        "outputs": {"o": {"value": {"get_attr": ["n", "a"]}}},
    }
    stack = world.create("s", parent, files={"inner.yaml": yaml.safe_dump(inner)})
    assert world.settle(lambda: ended(world, stack), within=60)
    assert (rows(world, stack)["n"].attributes or {})["a"] == ["b"]


def test_what_is_adopted_is_read_too(world: World) -> None:
    stack = created(world, asking("a", a={}, b={"needs": on("a")}))
    exported = world.export(world.stack(stack.id))
    abandon_stack(world.context, world.stack(stack.id))
    exported["resources"]["a"]["resource_data"] = {}
    again = world.adopt("t", exported)
    assert world.settle(lambda: ended(world, again), within=60)
    assert world.stack(again.id).status == Status.COMPLETE
    assert users(world, again, "a") == ["b"]
