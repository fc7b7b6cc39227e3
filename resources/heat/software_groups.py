"""Groups of software deployments: one config on many servers, each deployment a member of the group."""

import itertools
import typing
from collections.abc import Mapping, Sequence

from ...shapes import Json, JsonMap
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
from ..nested.groups import Batch, GroupResource, Rollout, batch_schema
from ..nested.members import REFS_MAP, Definition, RequestedAttribute, check_members, group_goal, output_name
from .software_deployments import (
    COMMON,
    STRUCTURED,
    check_transport,
    check_user_data_format,
)
from .software_io import STATUS_CODE, STDERR, STDOUT

PLURALS: Mapping[str, str] = {
    "deploy_stdouts": STDOUT,
    "deploy_stderrs": STDERR,
    "deploy_status_codes": STATUS_CODE,
}
"""Attributes of a group, each with the attribute of its members."""
_BATCH = batch_schema("deployments")
_POLICY = SupportStatus(version="7.0.0")


class SoftwareDeploymentGroup(GroupResource):
    """Deployments of one config to many servers."""

    type_name = "OS::Heat::SoftwareDeploymentGroup"
    member_type: typing.ClassVar[str] = "OS::Heat::SoftwareDeployment"
    description = (
        "The deployment of a software config to a group of servers.\n\n"
        "Each attribute of the deployments is a map of what they have for it, by the servers' names."
    )
    support_status = SupportStatus(version="5.0.0")
    own_attributes = frozenset({"show"})
    has_rules_in_stack = True
    properties_schema = {
        **COMMON,
        "servers": Property(
            "map",
            "Server ids by name; the names become those of the deployments.",
            required=True,
            update_allowed=True,
        ),
    }
    update_policy_schema = {
        "rolling_update": Property(
            "map", "Rolling update of the deployments.", schema=_BATCH, support_status=_POLICY
        ),
        "batch_create": Property("map", "Batches of the creation.", schema=_BATCH, support_status=_POLICY),
    }
    attributes_schema = {
        "deploy_stdouts": Attribute("Standard output of the config, by server.", "map"),
        "deploy_stderrs": Attribute("Standard error of the config, by server.", "map"),
        "deploy_status_codes": Attribute("Exit status code of the config, by server.", "map"),
        ANY_NAME: Attribute("Attribute of every deployment, by server.", "map"),
    }

    def validate(self, properties: JsonMap) -> None:
        """Check the transport of signals."""
        check_transport(properties)

    def validate_in_stack(
        self, definition: ResourceDefinition, others: Mapping[str, ResourceDefinition]
    ) -> None:
        """Check that servers of the same stack have agents that apply configs."""
        servers = None if is_node(definition.properties) else definition.properties.get("servers")
        if isinstance(servers, Mapping) and not is_node(servers):
            for name, server in servers.items():
                check_user_data_format(server, ("servers", name), others)

    def member_attribute(self, attribute: str, path: Sequence[str | int]) -> RequestedAttribute | None:
        """Return the attribute, with the path into the map of all members' values."""
        return None if attribute in self.own_attributes else [attribute, *path]

    def static_goal(self, values: JsonMap, definition: ResourceDefinition) -> ChildGoal | None:
        """Return a goal with one member, which is like all others; None: the servers are not known."""
        servers = None if is_node(definition.properties) else definition.properties.get("servers")
        if not isinstance(servers, Mapping) or is_node(servers) or not servers:
            return None
        name = next(iter(servers))
        body = self._body(definition.properties, servers, name)
        return _goal({name: body}, definition.requested_attributes, copies=len(servers))

    def expanded(self, goal: ChildGoal, values: JsonMap, definition: ResourceDefinition) -> ChildGoal:
        """Return the goal with a member for each server."""
        servers = definition.properties["servers"]
        members = {name: self._body(definition.properties, servers, name) for name in servers}
        return _goal(members, definition.requested_attributes)

    def create_rollout(self, target: ResourceView) -> Rollout:
        """Return batches, if the policy has them."""
        self._check(target)
        return self._rollout(target, "batch_create")

    def update_rollout(
        self, target: ResourceView, changed: frozenset[str], members: Sequence[GroupMember]
    ) -> Rollout:
        """Return batches, if the policy has them."""
        self._check(target)
        return self._rollout(target, "rolling_update")

    def step_goal(
        self, target: ResourceView, step: Batch | None, members: Sequence[GroupMember]
    ) -> ChildGoal:
        """Return the goal of the child for a step: so many deployments are new, the others as they are."""
        servers = target.properties["servers"]
        new = {name: self._body(target.properties, servers, name) for name in servers}
        if step is None:
            return _goal(new, target.requested_attributes)
        old = {item.name: item.definition for item in members if item.definition and item.name in servers}
        open_names = [name for name in new if old.get(name) != new[name]]
        chosen = set(itertools.islice(open_names, step.updates))
        bodies = {name: new[name] if name in chosen else old.get(name) for name in new}
        return _goal({name: body for name, body in bodies.items() if body}, target.requested_attributes)

    def attribute_values(self, target: ResourceView) -> JsonMap:
        values = super().attribute_values(target).items()
        return {name: value for name, value in values if name not in ("refs", REFS_MAP)}

    def _check(self, target: ResourceView) -> None:
        servers = target.properties["servers"]
        member = {name: value for name, value in target.properties.items() if name != "servers"}
        check_members(len(servers), {"properties": member}, target.requested_attributes)

    def _rollout(self, target: ResourceView, policy_name: str) -> Rollout:
        policy = target.update_policy.get(policy_name)
        count = len(target.properties["servers"])
        if not policy or not count:
            return Rollout()
        most = policy["max_batch_size"]
        steps = [Batch(size=count, updates=most) for _ in range((count - 1) // most)]
        return Rollout([*steps, None], policy["pause_time"])

    def _body(self, properties: JsonMap, servers: JsonMap, name: str) -> Definition:
        common = {key: value for key, value in properties.items() if key != "servers" and value is not None}
        return {"type": self.member_type, "properties": {**common, "server": servers[name]}}


class StructuredDeploymentGroup(SoftwareDeploymentGroup):
    """Deployments of one structured config to many servers."""

    type_name = "OS::Heat::StructuredDeploymentGroup"
    member_type = "OS::Heat::StructuredDeployment"
    description = (
        "The deployment of a structured config to a group of servers.\n\n"
        "Otherwise it is as OS::Heat::SoftwareDeploymentGroup."
    )
    properties_schema = {**SoftwareDeploymentGroup.properties_schema, **STRUCTURED}


def _renamed(name: str) -> SupportStatus:
    before = SupportStatus("DEPRECATED", version="2014.2")
    return SupportStatus("HIDDEN", version="7.0.0", message=f"Please use {name} instead.", previous=before)


class SoftwareDeployments(SoftwareDeploymentGroup):
    """SoftwareDeploymentGroup by its old name."""

    type_name = "OS::Heat::SoftwareDeployments"
    renamed_to = "OS::Heat::SoftwareDeploymentGroup"
    support_status = _renamed(renamed_to)


class StructuredDeployments(StructuredDeploymentGroup):
    """StructuredDeploymentGroup by its old name."""

    type_name = "OS::Heat::StructuredDeployments"
    renamed_to = "OS::Heat::StructuredDeploymentGroup"
    support_status = _renamed(renamed_to)


def _goal(
    members: Mapping[str, Definition], requested: Sequence[RequestedAttribute], *, copies: int = 1
) -> ChildGoal:
    values = {output_name(parts): _value(list(members), parts) for parts in requested}
    return group_goal(members, values, copies=copies)


def _value(names: Sequence[str], requested: RequestedAttribute) -> Json:
    """Return the map of an attribute of all members by their names, or a part of it."""
    first, *path = requested
    attribute = PLURALS.get(str(first), str(first))
    if not path:
        return {name: {"get_attr": [name, attribute]} for name in names}
    return {"get_attr": [path[0], attribute, *path[1:]]} if path[0] in names else None
