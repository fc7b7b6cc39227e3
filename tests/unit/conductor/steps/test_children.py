"""The nested stack of a resource, as its step reads it and names it in requests."""

import types
import typing
from dataclasses import replace

import pytest
from stoker.conductor.steps.children import StepChildren
from stoker.db.ids import ResourceId, StackId
from stoker.db.rows import Resource
from stoker.engine.parent_resource import ParentResource
from stoker.sealing.secrets import Secrets
from unit.conductor.steps.claims import STACK, a_claim, a_row, a_task

Json = typing.Any
ROW = a_row(physical_id="p")


class Nested:
    """The operations on nested stacks: one that is a stack, or none.

    :ivar parents: the resources whose nested stacks were changed.
    """

    def __init__(self, *rows: Resource) -> None:
        self.child = types.SimpleNamespace(id="child") if rows else None
        self.stored = rows
        self.parents: list[ParentResource] = []

    def find(self, stack_id: StackId, resource_id: ResourceId) -> Json:
        assert (stack_id, resource_id) == (STACK, ROW.id)
        return self.child

    def rows(self, key: str) -> list[Resource]:
        assert key == "child"
        return list(self.stored)

    def bodies(self, child: object, unseal: object) -> dict[str, Json]:
        return {}

    def inputs(self, stack_id: StackId, resource: tuple[str, str], unseal: object) -> Json:
        return stack_id, resource

    def delete(self, parent: ParentResource) -> None:
        self.parents.append(parent)
        self.child = None


def children_of(nested: Nested, **definition: Json) -> StepChildren:
    writes = types.SimpleNamespace(check=lambda conn: None)
    database: Json = types.SimpleNamespace(writes_of=lambda claim: writes)
    secrets = Secrets(typing.cast(typing.Any, None))
    claim = a_claim(a_task(definition=definition), ROW)
    return StepChildren(claim, database, typing.cast(typing.Any, nested), secrets)


def test_a_resource_that_was_replaced_is_no_member() -> None:
    rows = [replace(ROW, name=name, id=ResourceId(number)) for number, name in enumerate("aab", 10)]
    nested = Nested(replace(rows[0], replaced_by=rows[1].id), *rows[1:])
    children = children_of(nested)
    assert [member.name for member in children.members()] == ["a", "b"]
    children.delete()
    assert list(children.members()) == [], "what was read before is forgotten"


def test_where_there_is_no_nested_stack_nothing_is_read_of_it() -> None:
    children = children_of(Nested())
    assert children.state() is None
    assert (children.outputs(), children.output_errors(), children.inner_values([["resource.a"]])) == (
        {},
        {},
        {},
    )
    assert list(children.members()) == []


@pytest.mark.parametrize(("definition", "name"), [({}, "A::B"), ({"type": "C::D"}, "C::D")])
def test_a_request_names_the_type_of_the_goal(definition: Json, name: str) -> None:
    nested = Nested(ROW)
    children_of(nested, **definition).delete()
    assert [parent.resource_type for parent in nested.parents] == [name]


def test_the_inputs_of_a_nested_stack_are_those_of_its_resource() -> None:
    assert children_of(Nested()).inputs() == (STACK, ("r", "A::B"))
