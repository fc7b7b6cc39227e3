"""Nested templates that the client sends under other names: the address of a template is no difference."""

import json
import pathlib
import typing
from dataclasses import dataclass, field

import pytest
from simulation.helpers import rows, status
from simulation.nested import created, hot, server, settled
from simulation.world import World
from stoker.db.rows import Stack
from stoker.engine.planning.requests import Goal, UpdateRequest
from stoker.engine.snapshots import take_snapshot
from stoker.engine.updates import restore_stack
from stoker.features.preview.plan import ChangeKind, ResourceChange
from stoker.features.preview.updates import preview_changes

Json = typing.Any
BOX = json.dumps(hot({"s": server()}, outputs={"value": {"value": {"get_attr": ["s", "address"]}}}))
KEPT = {ChangeKind.UNCHANGED, ChangeKind.UPDATED}


@dataclass(frozen=True)
class Sent:
    """A client's request: the type that the template names, the registry, and the files."""

    type: str
    registry: Json = field(default_factory=dict)
    names: tuple[str, ...] = ()

    def goal(self, template: Json) -> Json:
        """The fields of a request."""
        files = dict.fromkeys(self.names or [self.type], BOX)
        return {"template": template, "environment": {"resource_registry": self.registry}, "files": files}


def alias(path: str) -> Sent:
    return Sent("My::Box", {"My::Box": path}, (path,))


MOVES = {
    "direct, relative": (Sent("lib/box.yaml"), Sent("lib2/box.yaml")),
    "direct, file": (Sent("file:///home/a/box.yaml"), Sent("file:///home/b/box.yaml")),
    "direct, http": (Sent("http://a.test/box.template"), Sent("http://b.test/box.yaml")),
    "registry, relative": (alias("lib/box.yaml"), alias("lib2/box.yaml")),
    "registry, file": (alias("file:///home/a/box.yaml"), alias("file:///home/b/box.yaml")),
    "registry, the old file is still sent": (
        alias("lib/box.yaml"),
        Sent("My::Box", {"My::Box": "lib2/box.yaml"}, ("lib/box.yaml", "lib2/box.yaml")),
    ),
    "direct to registry": (Sent("lib/box.yaml"), alias("lib/box.yaml")),
    "registry to direct": (alias("file:///a/box.yaml"), Sent("file:///b/box.yaml")),
    "a type that the registry maps": (
        Sent("OS::Heat::RandomString", {"OS::Heat::RandomString": "n.yaml"}, ("n.yaml",)),
        Sent("OS::Heat::RandomString", {"OS::Heat::RandomString": "new/n.yaml"}, ("new/n.yaml",)),
    ),
    "a wildcard": (
        Sent("My::Box", {"My::*": "a/box.yaml"}, ("a/box.yaml",)),
        Sent("My::Box", {"My::*": "b/box.yaml"}, ("b/box.yaml",)),
    ),
    "for one resource": (
        Sent("My::Box", {"resources": {"*": {"My::Box": "a.yaml"}}, "My::Box": "a.yaml"}, ("a.yaml",)),
        Sent("My::Box", {"resources": {"*": {"My::Box": "b.yaml"}}, "My::Box": "b.yaml"}, ("b.yaml",)),
    ),
}


def all_forms(box: str, **more: Json) -> Json:
    """A stack with each kind of resource that may be, or have, a nested template."""
    member = {"type": box}
    count = {"count": 1, "resource_def": member}
    scaling = {"min_size": 1, "max_size": 1, "resource": member}
    chain = {"resources": [box]}
    rolling = {"rolling_update": {"max_batch_size": 1, "pause_time": 30}}
    two = {"count": 2, "resource_def": member}
    return hot(
        {
            "provider": {"type": box},
            "group": {"type": "OS::Heat::ResourceGroup", "properties": count},
            "rolling": {"type": "OS::Heat::ResourceGroup", "properties": two, "update_policy": rolling},
            "scaling": {"type": "OS::Heat::AutoScalingGroup", "properties": scaling},
            "chain": {"type": "OS::Heat::ResourceChain", "properties": chain},
            **more,
        },
        outputs={"id": {"value": {"get_resource": "provider"}}},
    )


def begin(world: World, sent: Sent, **more: Json) -> Stack:
    stack = created(world, **sent.goal(all_forms(sent.type, **more)))
    assert status(world, stack) == "CREATE_COMPLETE", world.stack(stack.id).reason
    return stack


def send(world: World, stack: Stack, sent: Sent, **more: Json) -> None:
    world.update(stack, **sent.goal(all_forms(sent.type, **more)))
    settled(world, stack, within=200)


def everything(changes: typing.Iterable[ResourceChange]) -> list[ResourceChange]:
    """The changes of all levels."""
    inside = [change for item in changes for below in item.inside for change in everything(below.items or ())]
    return [*changes, *inside]


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4)


@pytest.mark.parametrize("name", MOVES)
def test_a_template_that_moved_is_kept_with_all_in_it(world: World, name: str) -> None:
    old, new = MOVES[name]
    stack = begin(world, old)
    objects = dict(world.cloud.objects)
    assert len(objects) == 6
    request = UpdateRequest(Goal(**new.goal(all_forms(new.type))))
    changes = everything(preview_changes(world.context, world.stack(stack.id), request, nested=True))
    assert {item.effect for item in changes} <= KEPT, {item.name: item.effect for item in changes}
    assert [item.cause for item in changes if item.cause] == []
    send(world, stack, new)
    assert (status(world, stack), world.cloud.objects) == ("UPDATE_COMPLETE", objects)
    assert rows(world, stack)["provider"].type == new.type
    send(world, stack, old)
    assert (status(world, stack), world.cloud.objects) == ("UPDATE_COMPLETE", objects)


HERE, THERE = Sent("file:///home/a/box.yaml"), Sent("file:///home/b/box.yaml")


def test_a_rollback_leads_back_to_the_template_where_it_was(world: World) -> None:
    stack = begin(world, HERE, s=server(value="x"))
    objects = dict(world.cloud.objects)
    broken = server(value="y", fail=True)
    goal = THERE.goal(all_forms(THERE.type, s=broken))
    world.update(stack, **goal, disable_rollback=False)
    assert world.settle(lambda: world.stack(stack.id).action == "ROLLBACK", within=200)
    settled(world, stack, within=200)
    assert status(world, stack) == "ROLLBACK_COMPLETE", world.stack(stack.id).reason
    inside = {key: item for key, item in objects.items() if item.stack != stack.id}
    assert {key: item for key, item in world.cloud.objects.items() if item.stack != stack.id} == inside
    assert rows(world, stack)["provider"].type == HERE.type


def test_a_snapshot_of_before_the_move_is_restored_in_place(world: World) -> None:
    stack = begin(world, HERE)
    objects = set(world.cloud.objects)
    snapshot = take_snapshot(world.context, world.stack(stack.id), None)
    settled(world, stack)
    send(world, stack, THERE)
    restore_stack(world.context, world.stack(stack.id), snapshot.id)
    settled(world, stack, within=200)
    assert (status(world, stack), set(world.cloud.objects)) == ("RESTORE_COMPLETE", objects)


def test_an_update_during_the_creation_continues_the_stack_that_is_being_made(world: World) -> None:
    stack = world.create("s", **HERE.goal(all_forms(HERE.type)))
    assert world.settle(lambda: rows(world, stack)["provider"].physical_id is not None, within=60)
    child = rows(world, stack)["provider"].physical_id
    send(world, stack, THERE)
    assert (status(world, stack), rows(world, stack)["provider"].physical_id) == ("UPDATE_COMPLETE", child)
    assert len(world.cloud.objects) == 6


@pytest.mark.parametrize("to_template", [True, False])
def test_a_type_that_becomes_a_template_is_another_one_as_in_heat(world: World, to_template: bool) -> None:
    plain, mapped = (
        Sent("OS::Heat::RandomString"),
        Sent("OS::Heat::RandomString", {"OS::*": "n.yaml"}, ("n.yaml",)),
    )
    old, new = (plain, mapped) if to_template else (mapped, plain)
    document = hot({"r": {"type": "OS::Heat::RandomString"}})
    stack = created(world, **old.goal(document))
    before = rows(world, stack)["r"].id
    request = UpdateRequest(Goal(**new.goal(document)))
    (change,) = preview_changes(world.context, world.stack(stack.id), request)
    assert change.effect == ChangeKind.REPLACED
    world.update(stack, **new.goal(document))
    assert settled(world, stack).action == "UPDATE"
    assert rows(world, stack)["r"].id != before
