"""The goals of groups: with the members that they have in Heat.

Members keep the definition that Heat has for them where it says something else than the group's.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ....db.rows import Resource
from ....db.states import Status
from ....engine.context import Compiled
from ....resources.contract.children import ChildGoal, GroupMember, in_order
from ....resources.contract.views import ResourceView
from ....resources.nested.base import NestedType
from ....resources.nested.groups import Batch, GroupResource
from ....resources.nested.members import member_bodies
from ....shapes import Json, JsonMap
from ....template.language import ResourceDefinition
from ..heat.rows import HeatStack, HeatTemplate
from .built import Resizing

SCALED = "OS::Heat::ScaledResource"
"""The type that Heat gives to servers of a group, in the place of their own."""


@dataclass(frozen=True)
class NestedResource:
    """A resource that is a nested stack, for its goal.

    :ivar parent: the goal of the stack around it.
    :ivar rows: resources of that stack which are built already, by name.
    :ivar properties: its properties as they are stored.
    :ivar stack: the nested stack in Heat.
    """

    definition: ResourceDefinition
    plugin: NestedType
    target: ResourceView
    parent: Compiled
    rows: Mapping[str, Resource]
    properties: Json
    stack: HeatStack

    @property
    def named(self) -> tuple[str, str]:
        """Return its name, and its type as declared."""
        return self.definition.name, self.definition.declared_type


def group_goal_of(nested: NestedResource, template: HeatTemplate | None) -> ChildGoal | None:
    """Return the goal of a group with the members that it has in Heat; None: the resource is no group.

    :param template: Heat's template of the group.
    """
    plugin = nested.plugin
    if not isinstance(plugin, GroupResource):
        return None
    members = _members(nested, plugin, template)
    whole = plugin.step_goal(nested.target, None, members)
    if member_bodies(whole) == {member.name: member.definition for member in members}:
        return whole  # An update would have it in the same order.
    return plugin.step_goal(nested.target, Batch(len(members), 0), members)


def resizing_of(nested: NestedResource, template: HeatTemplate | None) -> Resizing:
    """Return what an update with the same template would change in a group; nothing in other resources."""
    plugin = nested.plugin
    if not isinstance(plugin, GroupResource):
        return Resizing()
    members = _members(nested, plugin, template)
    failed = {row.name for row in nested.stack.resources if row.status == Status.FAILED}
    before = {member.name: member.definition for member in members}
    members = in_order(replace(member, is_failed=member.name in failed) for member in members)
    *_, last = plugin.steps_ahead(nested.target, frozenset(), members)
    final = member_bodies(last)
    return Resizing(
        deleted=sorted(before.keys() - final.keys()),
        created=sorted(final.keys() - before.keys()),
        changed=sorted(name for name in before.keys() & final.keys() if before[name] != final[name]),
    )


def _members(
    nested: NestedResource, plugin: GroupResource, template: HeatTemplate | None
) -> list[GroupMember]:
    """Return the members that a group has in Heat, the oldest first."""
    expected = member_bodies(plugin.step_goal(nested.target, None, ()))
    pattern = next(iter(expected.values()), {})
    bodies = {} if template is None else _heat_bodies(template)
    members = []
    for row in nested.stack.resources:
        body = bodies.get(row.name)
        if row.replaced_by is not None or body is None:
            continue
        usual = expected.get(row.name, pattern if _has_equal_members(expected) else body)
        if body.get("type") == SCALED:
            body = {**body, "type": usual["type"]}
        definition = usual if _same(usual, body) else body
        members.append(
            GroupMember(row.name, definition, created_at=row.created_at, physical_id=row.physical_id)
        )
    return sorted(members, key=lambda member: member.place)


def _heat_bodies(template: HeatTemplate) -> dict[str, JsonMap]:
    """Return the members' definitions in Heat's template of a group, in the form of Stoker's."""
    resources = template.template.get("resources") or template.template.get("Resources") or {}
    return {name: _lower(body) for name, body in resources.items()}


def _lower(body: JsonMap) -> dict[str, Json]:
    words = {"Type": "type", "Properties": "properties", "Metadata": "metadata", "DependsOn": "depends_on"}
    return {words.get(key, key): value for key, value in body.items()}


def _has_equal_members(bodies: Mapping[str, JsonMap]) -> bool:
    first = next(iter(bodies.values()), None)
    return first is not None and all(body == first for body in bodies.values())


def _same(first: JsonMap, second: JsonMap) -> bool:
    """Return whether two definitions of a member say the same; nulls and the order of starts do not count."""
    keys = ("type", "properties", "metadata")
    return all(_plain(first.get(key)) == _plain(second.get(key)) for key in keys)


def _plain(value: Json) -> Json:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items() if item is not None} or None
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value
