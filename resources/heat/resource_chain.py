"""OS::Heat::ResourceChain: resources of several types with the same properties, one after the other."""

from collections.abc import Mapping, Sequence

from ...shapes import Json, JsonMap
from ...template.language import ResourceDefinition
from ...template.residual import is_node
from ..contract import ANY_NAME, Attribute, ChildGoal, GroupMember, Property, ResourceView, SupportStatus
from ..nested.groups import Batch, GroupResource
from ..nested.members import Definition, RequestedAttribute, check_members, group_goal, values_of

MAPS = "attributes"


class ResourceChain(GroupResource):
    """A chain of members that are named 0, 1, 2 … in the order of the types."""

    type_name = "OS::Heat::ResourceChain"
    description = (
        "A chain of resources: one of each type of a list, all with the same properties.\n\n"
        "Each is made after the one before it, or all at once if the chain is concurrent. They are the "
        "resources of a stack of their own."
    )
    support_status = SupportStatus(version="6.0.0")
    own_attributes = frozenset({"refs", "show"})
    path_attributes = frozenset({MAPS})
    properties_schema = {
        "resources": Property(
            "list",
            "Resource types of the members, in order.",
            required=True,
            update_allowed=True,
        ),
        "concurrent": Property(
            "boolean",
            "Concurrency: true creates all members at once, not one after the other.",
            default=False,
        ),
        "resource_properties": Property("map", "Properties of every member."),
    }
    attributes_schema = {
        ANY_NAME: Attribute("Attribute of every member, or of one as resource.NAME.", "list"),
        "refs": Attribute("References of the members.", "list"),
        MAPS: Attribute(
            "Map from the members' names to their values of the attribute named in the path.", "map"
        ),
    }

    def static_goal(self, values: JsonMap, definition: ResourceDefinition) -> ChildGoal | None:
        """Return a goal with all members, None while the types are unknown."""
        types = values.get("resources")
        residual = definition.properties.get("resource_properties")
        if types is None:
            return None
        properties = residual if isinstance(residual, Mapping) and not is_node(residual) else None
        if residual is not None and properties is None:
            return None
        return _goal(types, properties or {}, definition.requested_attributes, concurrent=True)

    def step_goal(
        self, target: ResourceView, step: Batch | None, members: Sequence[GroupMember]
    ) -> ChildGoal:
        properties = target.properties
        check_members(
            len(properties["resources"]), properties["resource_properties"] or {}, target.requested_attributes
        )
        return _goal(
            properties["resources"],
            properties["resource_properties"] or {},
            target.requested_attributes,
            concurrent=bool(properties["concurrent"]),
        )

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the requested attributes, with the references in the order of the types."""
        values = dict(super().attribute_values(target))
        references = values.pop("refs_map")
        return {**values, "refs": [references[name] for name in sorted(references, key=int)]}


def _goal(
    types: Sequence[Json],
    properties: JsonMap,
    requested: Sequence[RequestedAttribute],
    *,
    concurrent: bool,
) -> ChildGoal:
    members: dict[str, Definition] = {}
    for index, kind in enumerate(types):
        body: dict[str, Json] = {"type": kind}
        if properties:
            body["properties"] = properties
        if index and not concurrent:
            body["depends_on"] = [str(index - 1)]
        members[str(index)] = body
    return group_goal(members, values_of(list(members), requested, MAPS))
