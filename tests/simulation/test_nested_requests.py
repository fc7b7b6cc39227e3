"""The requests of steps for nested stacks, one by one: what they answer, and what they refuse."""

import pathlib
import types
import typing
from dataclasses import replace

import pytest
import sqlalchemy as sa
from simulation.helpers import rows
from simulation.nested import INNER, child, children, created, hot, inner, server, settled
from simulation.world import World
from stoker.db.rows import Stack
from stoker.db.schema import tables
from stoker.db.states import TaskKind
from stoker.engine.nested_stacks import NestedStacks
from stoker.engine.parent_resource import ParentResource, child_id
from stoker.engine.quotas import QuotaName, Quotas
from stoker.resources.contract.children import ChildGoal
from stoker.resources.contract.errors import ChildGone, PermanentError
from stoker.template.compile import Limits

Json = typing.Any
OTHER = "file:///other.yaml"
GOAL = ChildGoal(inner(), {"value": "v"})


class Lost(Exception):
    """The step may not act any more."""


def lost(conn: object) -> None:
    raise Lost


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=1)


def resource_of(world: World, stack: Stack, name: str, **fields: Json) -> ParentResource:
    """The resource of a stack as its steps name it, with a key of its own."""
    row = rows(world, stack)[name]
    identity: Json = {"stack_id": stack.id, "resource_id": row.id, "resource_name": name}
    rest: Json = {"resource_type": INNER, "child_name": f"s-{name}", "key": "key", "facade": {}}
    return ParentResource(**{**identity, **rest, "guard": lambda conn: None, **fields})


@pytest.mark.parametrize(
    ("deadline_at", "timeout", "deadline"),
    [
        (None, None, 1000.0 + 5 * 60),
        (1200.0, None, 1200.0),
        (1200.0, 100.0, 1100.0),
        (1200.0, 300.0, 1200.0),
        (None, 10.0, 1010.0),
    ],
)
def test_a_child_ends_with_its_parent_or_by_a_time_of_its_own(
    deadline_at: float | None, timeout: float | None, deadline: float
) -> None:
    context: Json = types.SimpleNamespace(timeout=lambda minutes: minutes * 60.0)
    parent: Json = types.SimpleNamespace(deadline_at=deadline_at, timeout_mins=5)
    goal = ChildGoal({}, timeout=timeout)
    assert NestedStacks(context).deadline(parent, 1000.0, goal) == deadline
    if timeout is None:
        assert NestedStacks(context).deadline(parent, 1000.0) == deadline


def test_each_request_for_a_child_answers_with_its_id(world: World) -> None:
    stack = created(world, hot({"n": child()}))
    nest = resource_of(world, stack, "n")
    nested_id = children(world, stack)["n"].id
    assert world.nesting.create(nest, GOAL) == nested_id
    assert world.nesting.update(nest, GOAL) == nested_id
    settled(world, world.stack(nested_id))
    assert world.nesting.act(nest, TaskKind.CHECK) == nested_id
    with pytest.raises(PermanentError, match="Stack s-n.* already has an action"):
        world.nesting.snapshot(nest)
    settled(world, world.stack(nested_id))
    assert world.nesting.snapshot(nest) == nested_id
    assert world.nesting.snapshot(nest) == nested_id, "an earlier attempt has begun it"


def test_a_step_that_may_not_act_changes_nothing(world: World) -> None:
    stack = created(world, hot({"n": child(), "one": server()}))
    nest = resource_of(world, stack, "n", guard=lost)
    before = world.stack(children(world, stack)["n"].id)
    requests: list[typing.Callable[[], object]] = [
        lambda: world.nesting.update(nest, GOAL),
        lambda: world.nesting.act(nest, TaskKind.CHECK),
        lambda: world.nesting.snapshot(nest),
        lambda: world.nesting.delete(nest),
        lambda: world.nesting.create(resource_of(world, stack, "one", guard=lost), GOAL),
    ]
    for request in requests:
        with pytest.raises(Lost):
            request()
    assert world.stack(before.id) == before
    assert list(children(world, stack)) == ["n"]


def test_stacks_are_nested_as_deep_as_they_may_be_and_no_deeper(tmp_path: pathlib.Path) -> None:
    world = World(tmp_path, hosts=1, limits=Limits(depth=1))
    stack = created(world, hot({"one": server()}))
    nested_id = world.nesting.create(resource_of(world, stack, "one"), GOAL)
    inside = settled(world, world.stack(nested_id))
    assert (inside.id, inside.status, inside.depth) == (child_id("key"), "COMPLETE", 1)
    with pytest.raises(PermanentError, match="nested 1 levels deep") as refused:
        world.nesting.create(resource_of(world, inside, "s", key="other"), GOAL)
    assert refused.value.kind == "StackValidationFailed"


def test_a_child_that_was_deleted_is_not_made_again_by_its_key(world: World) -> None:
    stack = created(world, hot({"one": server()}))
    nest = resource_of(world, stack, "one")
    nested_id = world.nesting.create(nest, GOAL)
    settled(world, world.stack(nested_id))
    world.nesting.delete(nest)
    world.calm()
    assert children(world, stack) == {}
    with pytest.raises(ChildGone):
        world.nesting.create(nest, GOAL)
    with pytest.raises(ChildGone):
        world.nesting.update(nest, GOAL)
    world.nesting.delete(nest)


@pytest.mark.parametrize(("entry", "taken"), [({"resource_id": "thing-7"}, "thing-7"), (None, None)])
def test_a_child_adopts_what_its_document_names(world: World, entry: Json, taken: str | None) -> None:
    stack = created(world, hot({"one": server()}))
    nested_id = world.nesting.create(resource_of(world, stack, "one"), GOAL, {"s": entry})
    assert rows(world, world.stack(nested_id))["s"].physical_id == taken
    assert world.stack(nested_id).action == "ADOPT"


def test_files_and_templates_that_do_not_exist_are_refused(world: World) -> None:
    stack = created(world, hot({"n": child()}))
    assert world.nesting.file(stack.id, INNER) == inner()
    inputs = world.nesting.inputs(stack.id, ("n", INNER), str)
    assert set(inputs.files) == {INNER}
    with pytest.raises(PermanentError, match="the file other is not among those of the stack") as refused:
        world.nesting.file(stack.id, "other")
    assert refused.value.kind == "StackValidationFailed"
    with pytest.raises(PermanentError, match="Could not fetch remote template 'https://x'"):
        NestedStacks(world.context).template("https://x")


def test_a_members_template_is_its_content_not_its_name(world: World) -> None:
    kind = "OS::Heat::ResourceGroup"
    group = {"type": kind, "properties": {"count": 1, "resource_def": {"type": INNER}}}
    files = {INNER: inner(), OTHER: inner(), "file:///third.yaml": inner(looks=2), "Sim::Volume": inner()}
    stack = created(world, hot({"g": group, "n": server()}), files=files)
    of_group = world.stack(children(world, stack)["g"].id)
    member = rows(world, of_group)["0"]

    def has(stack: Stack, row: Json, type_name: str) -> bool:
        return world.nesting.has_template(stack, row, ("g", kind), type_name, str)

    assert has(of_group, member, OTHER)
    assert not has(of_group, member, "file:///third.yaml")
    assert not has(of_group, member, "Sim::Server")
    assert not has(of_group, member, "Sim::Volume"), "a file with the name of a type is none"
    assert not has(stack, member, OTHER), "it has no stack around it"
    assert not has(of_group, rows(world, stack)["n"], OTHER), "it is no nested stack"


def generated(type_name: str) -> ChildGoal:
    return ChildGoal({"resources": {"0": {"type": type_name}, "1": {"type": INNER}}}, generated=True)


@pytest.mark.parametrize(
    ("goal", "keeps"),
    [
        (generated("file:///old.yaml"), True),
        (generated(OTHER), True),
        (generated(INNER), False),
        (generated("Sim::Server"), False),
        (replace(generated(OTHER), generated=False), False),
        (ChildGoal(inner(), generated=True), False),
    ],
)
def test_a_group_keeps_its_files_while_a_member_has_a_template_of_them(
    world: World, goal: ChildGoal, *, keeps: bool
) -> None:
    stack = created(world, hot({"n": child()}))
    group = settled(world, world.create("g", hot({}), files={OTHER: "old", INNER: "old"}))
    files = world.nesting._files_of_update(stack, group, goal)
    assert files == {INNER: inner(), **({OTHER: "old"} if keeps else {})}


@pytest.mark.parametrize(("passed", "left"), [(100, 200), (1000, 0)])
def test_a_child_is_deleted_in_the_time_of_its_parent_and_not_updated_then(
    world: World, passed: float, left: float
) -> None:
    stack = world.create("s", hot({"n": child()}), files={INNER: inner(after=500)})
    world.calm()
    nest = resource_of(world, stack, "n")
    world.clock.now += passed
    world.nesting.delete(nest)
    assert world.stack(children(world, stack)["n"].id).deadline_at == world.clock.now + left
    with pytest.raises(PermanentError) as refused:
        world.nesting.update(nest, GOAL)
    assert refused.value.kind == "NotSupported"


def test_a_tree_that_is_rolled_back_may_be_too_large_on_each_level(tmp_path: pathlib.Path) -> None:
    quotas = Quotas({**Quotas().defaults, QuotaName.RESOURCES: 2})
    world = World(tmp_path, hosts=1, limits=Limits(resources=2), quotas=quotas)
    stack = created(world, hot({"n": child()}))
    nest = resource_of(world, world.stack(children(world, stack)["n"].id), "s")
    with pytest.raises(PermanentError, match="would have 3 resources, above the limit of 2"):
        world.nesting.create(nest, GOAL)
    root = tables.stack.c.id == stack.id
    rollback = sa.update(tables.stack).where(root).values(action="ROLLBACK")
    world.database.write(lambda conn: conn.execute(rollback))
    assert world.stack(world.nesting.create(nest, GOAL)).depth == 2
