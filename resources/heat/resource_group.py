"""OS::Heat::ResourceGroup: a number of resources of one definition, named by their numbers."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

from ...shapes import Json, JsonMap
from ...template.constraints import AllowedValues, Length, Range
from ...template.language import ResourceDefinition
from ...template.residual import is_node
from ..contract import (
    ANY_NAME,
    Attribute,
    ChildGoal,
    GroupMember,
    Property,
    ResourceView,
    SupportStatus,
)
from ..nested.groups import Batch, GroupResource, Rollout, batch_schema, batches
from ..nested.members import (
    Definition,
    RequestedAttribute,
    check_members,
    group_goal,
    next_members,
    values_of,
    with_index,
)

MAPS = "attributes"
_BATCH = batch_schema("members")
_DEFINITION = {
    "type": Property("string", "Resource type of the members.", required=True),
    "properties": Property("map", "Properties of every member."),
    "metadata": Property("map", "Metadata of every member.", support_status=SupportStatus(version="5.0.0")),
}
_REMOVAL = {
    "resource_list": Property(
        "list",
        "Names or references of the members to remove, even if the count stays. A removed name is not used "
        "again.",
        default=[],
    )
}


class ResourceGroup(GroupResource):
    """A group of members that are named 0, 1, 2 …, without those that were removed on purpose."""

    type_name = "OS::Heat::ResourceGroup"
    description = (
        "A group of resources of one definition.\n\n"
        "They are the resources of a stack of their own. In the texts of their properties the index variable "
        "stands for the name of the member. An attribute of the group is the list of what its members have "
        "for it; one of a single member is resource.NAME.ATTRIBUTE."
    )
    support_status = SupportStatus(version="2014.1")
    remembered = ("removed",)
    own_attributes = frozenset({"refs", "refs_map", "removed_rsrc_list", "show"})
    path_attributes = frozenset({MAPS})
    properties_schema = {
        "count": Property(
            "integer", "Number of members.", default=1, constraints=(Range(minimum=0),), update_allowed=True
        ),
        "index_var": Property(
            "string",
            "Index variable: placeholder for the member's name in its properties.",
            default="%index%",
            constraints=(Length(minimum=3),),
            support_status=SupportStatus(version="2014.2"),
        ),
        "resource_def": Property(
            "map",
            "Resource definition of the members.",
            schema=_DEFINITION,
            required=True,
            update_allowed=True,
        ),
        "removal_policies": Property(
            "list",
            "Removal policies: members that an update removes first.",
            schema=Property("map", "Removal policy.", schema=_REMOVAL),
            update_allowed=True,
            default=[],
            support_status=SupportStatus(version="2015.1"),
        ),
        "removal_policies_mode": Property(
            "string",
            "Removal mode: append adds to the names removed before, update replaces them.",
            default="append",
            constraints=(AllowedValues(values=("append", "update")),),
            update_allowed=True,
            support_status=SupportStatus(version="10.0.0"),
        ),
    }
    update_policy_schema = {
        "rolling_update": Property(
            "map",
            "Rolling update of the members to a new definition.",
            schema={
                "min_in_service": Property(
                    "integer",
                    "Minimum number of members in service during a rolling update.",
                    default=0,
                    constraints=(Range(minimum=0),),
                ),
                **_BATCH,
            },
            support_status=SupportStatus(version="5.0.0"),
        ),
        "batch_create": Property(
            "map",
            "Batches of the creation.",
            schema=_BATCH,
            support_status=SupportStatus(version="5.0.0"),
        ),
    }
    attributes_schema = {
        ANY_NAME: Attribute("Attribute of every member, or of one as resource.NAME.", "list"),
        "refs": Attribute("References of the members.", "list"),
        "refs_map": Attribute(
            "References of the members, by name.", "map", support_status=SupportStatus(version="7.0.0")
        ),
        MAPS: Attribute(
            "Map from the members' names to their values of the attribute named in the path.",
            "map",
            support_status=SupportStatus(version="2014.2"),
        ),
        "removed_rsrc_list": Attribute(
            "Names of the members that removal policies have removed.",
            "list",
            support_status=SupportStatus(version="7.0.0"),
        ),
    }

    def static_goal(self, values: JsonMap, definition: ResourceDefinition) -> ChildGoal | None:
        """Return a goal with the first member that stays; None for a group without members."""
        count = values.get("count", 1)
        member = definition.properties.get("resource_def")
        if not count or not isinstance(member, Mapping) or is_node(member) or is_node(member.get("type")):
            return None
        variable = values.get("index_var") or "%index%"
        first = next(_names(_unwanted(values)))
        return _goal({first: _body(member, variable, first)}, definition.requested_attributes, copies=count)

    def with_past(self, values: JsonMap, data: Callable[[], JsonMap]) -> JsonMap:
        """Add the members that earlier updates have removed, unless the policies forget them."""
        if values.get("removal_policies_mode") == "update":
            return values
        removed = data().get("removed")
        policies = values.get("removal_policies") or []
        if not removed or not isinstance(policies, list):
            return values
        return {**values, "removal_policies": [*policies, {"resource_list": list(removed)}]}

    def expanded(self, goal: ChildGoal, values: JsonMap, definition: ResourceDefinition) -> ChildGoal:
        """Return the goal with a member for each number, but those that removal policies name."""
        member = definition.properties["resource_def"]
        variable = values.get("index_var") or "%index%"
        names = itertools.islice(_names(_unwanted(values)), goal.copies)
        return _goal({name: _body(member, variable, name) for name in names}, definition.requested_attributes)

    def create_rollout(self, target: ResourceView) -> Rollout:
        """Return batches if the policy has them."""
        data = {"removed": _removed(target, None)}
        policy = target.update_policy.get("batch_create")
        count = target.properties["count"]
        check_members(count, target.properties["resource_def"], target.requested_attributes)
        if not policy or not count:
            return Rollout(data=data)
        steps = batches(count, 0, most=policy["max_batch_size"], in_service=0, surplus_counts=False)
        return Rollout([*steps[:-1], None], policy["pause_time"], data)

    def update_rollout(
        self, target: ResourceView, changed: frozenset[str], members: Sequence[GroupMember]
    ) -> Rollout:
        """Return batches if the definition of the members changes and the policy has them."""
        check_members(
            target.properties["count"], target.properties["resource_def"], target.requested_attributes
        )
        removed = _removed(target, members)
        policy = target.update_policy.get("rolling_update")
        if not policy or "resource_def" not in changed:
            return Rollout(data={"removed": removed})
        body = target.properties["resource_def"]
        index_var = target.properties["index_var"]
        remaining = [member for member in members if member.definition and member.name not in removed]
        if all(member.has(_body(body, index_var, member.name)) for member in remaining):
            return Rollout(data={"removed": removed})
        current = len(remaining)
        steps = batches(
            target.properties["count"],
            current,
            most=policy["max_batch_size"],
            in_service=policy["min_in_service"],
            surplus_counts=False,
        )
        return Rollout([*steps[:-1], None], policy["pause_time"], {"removed": removed})

    def step_goal(
        self, target: ResourceView, step: Batch | None, members: Sequence[GroupMember]
    ) -> ChildGoal:
        count = target.properties["count"]
        removed = set(target.data.get("removed") or [])
        body = target.properties["resource_def"]
        index_var = target.properties["index_var"]
        check_members(count, body, target.requested_attributes)
        names = list(itertools.islice(_names(removed), count if step is None else step.size))
        if step is None:
            return _goal({name: _body(body, index_var, name) for name in names}, target.requested_attributes)
        order = {name: index for index, name in enumerate(names)}

        def order_of(member: GroupMember) -> int:
            """Return the member's place in the order of changes.

            Members beyond the group are first, then those with the highest numbers.  Extra members,
            which exist only while others are changed, are last.
            """
            index = order.get(member.name)
            if index is None:
                return 0
            return count - index if index < count else step.size

        old = [
            member
            for member in members
            if member.definition and member.name not in removed and not member.is_failed
        ]
        existing = {member.name for member in old}
        definitions = next_members(
            sorted(old, key=order_of),
            lambda name: _body(body, index_var, name),
            (name for name in _names(removed) if name not in existing),
            size=step.size,
            updates=step.updates,
        )
        return _goal(definitions, target.requested_attributes)

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the requested attributes, and the names that were removed."""
        values = dict(super().attribute_values(target))
        references = values["refs_map"]
        numbered = sorted(references, key=lambda name: int(name))
        values["refs"] = [references[name] for name in numbered]
        return {**values, "removed_rsrc_list": target.data.get("removed") or []}


def _unwanted(values: JsonMap) -> set[str]:
    """Return the names that the removal policies have, as far as a request knows them."""
    policies = values.get("removal_policies")
    lists = [
        policy.get("resource_list")
        for policy in (policies if isinstance(policies, list) else ())
        if isinstance(policy, Mapping)
    ]
    return {str(name) for names in lists if isinstance(names, list) for name in names}


def _names(removed: set[str]) -> Iterator[str]:
    return (name for name in map(str, itertools.count()) if name not in removed)


def _body(member: JsonMap, variable: str, name: str) -> Definition:
    """Return the definition of a member of this name, without properties that are null."""
    body: dict[str, Json] = {"type": member["type"]}
    properties = member.get("properties")
    if isinstance(properties, Mapping) and not is_node(properties):
        properties = {key: value for key, value in properties.items() if value is not None}
    if properties:
        body["properties"] = with_index(properties, variable, name)
    if member.get("metadata"):
        body["metadata"] = member["metadata"]
    return body


def _goal(
    members: Mapping[str, Definition], requested: Sequence[RequestedAttribute], *, copies: int = 1
) -> ChildGoal:
    return group_goal(members, values_of(list(members), requested, MAPS), copies=copies)


def _removed(target: ResourceView, members: Sequence[GroupMember] | None) -> list[str]:
    """Return the names that are not to be used.

    :param members: the group's members; None: there is no group yet, so each item names a future member.
    """
    before = set(target.data.get("removed") or [])
    names = {member.name for member in members or ()}
    # A member that is a nested stack has an id of its own beside the reference, its server's.
    by_id = {str(member.physical_id): member.name for member in members or ()}
    by_id |= {str(member.reference): member.name for member in members or ()}
    removed = set() if target.properties["removal_policies_mode"] == "update" else set(before)
    for policy in target.properties["removal_policies"] or []:
        for item in policy["resource_list"] or []:
            if members is None or str(item) in before or str(item) in names:
                removed.add(str(item))
            elif isinstance(item, str) and item in by_id:
                removed.add(by_id[item])
    return sorted(removed)
