"""OS::Heat::InstanceGroup and AWS::AutoScaling::AutoScalingGroup: servers of a launch configuration."""

import re
from collections.abc import Mapping
from dataclasses import replace

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedPattern, Range
from ....template.errors import TemplateError
from ....template.language import ResourceDefinition
from ....template.residual import ARGS, FN, is_deferred, is_node
from ...contract import (
    Attribute,
    ChildGoal,
    GoalContext,
    Property,
    PropertyError,
    ResourceView,
    Step,
    StepContext,
    physical_name,
)
from ...heat.autoscaling_group import RollingPolicy, ScalingGroup, SizedGroup, SizeRules, check_sizes
from ...heat.scaling_policy import Bounds
from ...nested.members import Definition, group_goal
from ..translated import pairs
from .launch_configuration import LAUNCH, instance, launch_of, properties_of_server
from .launch_schema import LAUNCH_CONFIGURATION, OLD, SERVER

LIST = "InstanceList"
ADDRESS = "PublicIp"
CONFIGURATION = "LaunchConfigurationName"
LONGEST_PAUSE = 3600
"""Seconds between two batches, as in Heat."""
_DURATION = r"PT(\d{1,6}H)?(\d{1,6}M)?(\d{1,6}S)?"
_SECONDS = {"H": 3600, "M": 60, "S": 1}
_ROLLING = {
    "MinInstancesInService": Property(
        "integer",
        "Minimum number of servers in service during a rolling update.",
        default=0,
        constraints=(Range(minimum=0),),
    ),
    "MaxBatchSize": Property(
        "integer",
        "Maximum number of servers that are changed at once.",
        default=1,
        constraints=(Range(minimum=1),),
    ),
    "PauseTime": Property(
        "string",
        "Pause between two batches, as ISO 8601 duration, at most one hour.",
        default="PT0S",
        constraints=(
            AllowedPattern(
                description="Only ISO 8601 duration format of the form PT#H#M#S is supported.",
                pattern=_DURATION,
            ),
        ),
    ),
}
_COMMON = {
    "AvailabilityZones": Property("list", "Availability zones; without effect, as in Heat.", required=True),
    "LoadBalancerNames": Property(
        "list", "Load balancers; refused unless the list is empty, because no load balancer follows a group."
    ),
    "Tags": pairs("Metadata of each server, beside the name of the group."),
}


def _policy(name: str) -> Mapping[str, Property]:
    text = "Rolling update of the servers to a new launch configuration; if omitted, they keep the old one."
    return {name: Property("map", text, schema=_ROLLING)}


class LaunchedGroup(SizedGroup):
    """Base of the groups whose members are servers of a launch configuration."""

    service = "compute"
    support_status = OLD
    uses_credentials = True
    works_without_cloud = True
    has_rules_in_stack = True
    identity = "its nested stack"
    own_attributes = frozenset({"show"})
    attributes_schema = {
        LIST: Attribute("IP addresses of the servers, separated by commas.", "string"),
    }

    def validate(self, properties: JsonMap) -> None:
        """Refuse load balancers.

        :raises PropertyError: the group names load balancers.
        """
        if properties.get("LoadBalancerNames"):
            text = "is not supported: no load balancer follows a group; leave it out"
            raise PropertyError(text, ("LoadBalancerNames",))

    def validate_in_stack(
        self, definition: ResourceDefinition, others: Mapping[str, ResourceDefinition]
    ) -> None:
        """Check the reference to the launch configuration, and the pause between batches."""
        for name in self.update_policy_schema:
            _check_pause(definition, name)
        if not is_node(definition.properties):
            _check_configuration(definition.properties.get(CONFIGURATION), others)

    def launch(self, target: ResourceView, context: GoalContext) -> JsonMap:
        """Return the definition of a server."""
        return launch_of(target.properties[CONFIGURATION], context)

    def foresees(self, target: ResourceView, changed: frozenset[str]) -> bool:
        """Return whether the servers are launched as before: otherwise only a step can read how."""
        return (
            LAUNCH in target.data and CONFIGURATION not in changed and not target.properties.get("InstanceId")
        )

    def tags(self, target: ResourceView) -> list[Json]:
        """Return the tags of each server; one of the group's own names it to metering services."""
        tags = [dict(tag) for tag in target.properties["Tags"] or ()]
        if any(tag["Key"].startswith("metering.") for tag in tags):
            return tags
        return [*tags, {"Key": "metering.groupname", "Value": _name(target)}]

    def reference_id(self, target: ResourceView) -> Json:
        """Return the name that the servers' tags have, too."""
        return target.name if target.physical_id is None else _name(target)

    def member_body(self, target: ResourceView) -> Definition:
        """Return the definition of a server, with the tags of the group."""
        launch: JsonMap = target.data[LAUNCH]
        return {**launch, "properties": {**launch["properties"], "Tags": self.tags(target)}}

    def rolling_policy(self, target: ResourceView, changed: frozenset[str]) -> RollingPolicy | None:
        """Return how servers change, if there is another launch configuration and a policy for it."""
        policy = next((target.update_policy.get(name) for name in self.update_policy_schema), None)
        if CONFIGURATION not in changed or not policy:
            return None
        pause = seconds(policy["PauseTime"])
        return RollingPolicy(policy["MaxBatchSize"], policy["MinInstancesInService"], pause)

    def members_goal(self, members: Mapping[str, Definition], target: ResourceView) -> ChildGoal:
        """Return the goal of a child with these servers; it has their addresses if somebody asks for them."""
        is_asked = any(parts[0] == LIST for parts in target.requested_attributes)
        addresses = {name: {"get_attr": [name, ADDRESS]} for name in members}
        return group_goal(members, {LIST: addresses} if is_asked else {})

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Read the launch configuration, and create the child."""
        return super().handle_create(self._launched(target, context), context)

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Read the launch configuration, and decide on the steps."""
        return super().handle_update(self._launched(target, context), changed, context)

    def handle_adopt(self, target: ResourceView, context: StepContext) -> Step:
        """Read the launch configuration, and adopt the servers."""
        return super().handle_adopt(self._launched(target, context), context)

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the addresses of the servers, the oldest first."""
        addresses = (target.data.get("outputs") or {}).get(LIST) or {}
        names = [addresses[name] for name in target.data.get("names") or () if addresses.get(name)]
        return {LIST: ",".join(map(str, names)) or None}

    def _launched(self, target: ResourceView, context: StepContext) -> ResourceView:
        """Return the group with the definition of its servers, which all further steps use."""
        return replace(target, data={**target.data, LAUNCH: self.launch(target, context)})


class InstanceGroup(LaunchedGroup):
    """A number of servers."""

    type_name = "OS::Heat::InstanceGroup"
    description = (
        "A group of servers of one launch configuration.\n\nThey are the resources of a stack of their own."
    )
    properties_schema = {
        CONFIGURATION: Property(
            "string", "Reference of the launch configuration.", required=True, update_allowed=True
        ),
        "Size": Property("integer", "Number of servers.", required=True, update_allowed=True),
        **_COMMON,
    }
    update_policy_schema = _policy("RollingUpdate")

    def validate(self, properties: JsonMap) -> None:
        """Check the size."""
        super().validate(properties)
        if (properties.get("Size") or 0) < 0:
            raise PropertyError("can not be less than zero", ("Size",))

    def size_rules(self, properties: JsonMap) -> SizeRules:
        """Return the one size that the group may have."""
        size = properties["Size"]
        return SizeRules(size, Bounds(size, size))


class AwsAutoScalingGroup(LaunchedGroup, ScalingGroup):
    """A number of servers that signals change."""

    type_name = "AWS::AutoScaling::AutoScalingGroup"
    description = (
        "An auto-scaling group: servers of one launch configuration.\n\n"
        "A ScalingPolicy that gets a signal makes more or fewer of them, within the bounds; the oldest "
        "go first."
    )
    properties_schema = {
        CONFIGURATION: Property("string", "Reference of the launch configuration.", update_allowed=True),
        "InstanceId": Property(
            "string",
            "Name or id of an existing server as the model of all; alternative to the launch configuration.",
            constraints=(SERVER,),
        ),
        "MaxSize": Property("integer", "Maximum number of servers.", required=True, update_allowed=True),
        "MinSize": Property("integer", "Minimum number of servers.", required=True, update_allowed=True),
        "Cooldown": Property(
            "integer",
            "Cooldown after a change, in seconds: signals meanwhile have no effect.",
            update_allowed=True,
        ),
        "DesiredCapacity": Property("integer", "Initial number of servers.", update_allowed=True),
        "VPCZoneIdentifier": Property(
            "list",
            "Subnet of the servers; exactly one.",
            schema=Property("string", "Name or id of the subnet.", names="neutron.subnet"),
        ),
        **_COMMON,
    }
    update_policy_schema = _policy("AutoScalingRollingUpdate")

    def validate(self, properties: JsonMap) -> None:
        """Check the sizes, the subnet, and that there is one source of servers."""
        super().validate(properties)
        if (properties.get("MinSize") or 0) < 0:
            raise PropertyError("The size of AutoScalingGroup can not be less than zero", ("MinSize",))
        check_sizes(properties, least="MinSize", most="MaxSize", capacity="DesiredCapacity")
        if len(properties.get("VPCZoneIdentifier") or "1") != 1:
            text = "Anything other than one VPCZoneIdentifier is not supported"
            raise PropertyError(text, ("VPCZoneIdentifier",))
        sources = [bool(properties.get(name, "unknown")) for name in ("InstanceId", CONFIGURATION)]
        is_known = "InstanceId" in properties or CONFIGURATION in properties
        if is_known and sources[0] == sources[1]:
            raise PropertyError("Either 'InstanceId' or 'LaunchConfigurationName' must be provided.")

    def size_rules(self, properties: JsonMap) -> SizeRules:
        bounds = Bounds(properties["MinSize"], properties["MaxSize"])
        return SizeRules(properties["DesiredCapacity"], bounds, properties["Cooldown"] or 0)

    def launch(self, target: ResourceView, context: GoalContext) -> JsonMap:
        """Return the definition of a server, on the group's subnet."""
        like = target.properties["InstanceId"]
        subnets = target.properties["VPCZoneIdentifier"]
        definition = (
            instance(properties_of_server(like, context), {}) if like else super().launch(target, context)
        )
        if not subnets:
            return definition
        return {**definition, "properties": {**definition["properties"], "SubnetId": subnets[0]}}

    def tags(self, target: ResourceView) -> list[Json]:
        """Return the tags of each server, with the name of the group in the metering services' older form."""
        name = {"Key": "metering.AutoScalingGroupName", "Value": _name(target)}
        return [*super().tags(target), name]


def _name(target: ResourceView) -> str:
    """Return the name of a group, which is known before its child is made."""
    return physical_name(target.stack.name, target.name, target.creation_key or target.key)


def seconds(duration: str) -> int:
    """Return the seconds of a duration ``PT#H#M#S`` (ISO 8601)."""
    parts = re.findall(r"(\d+)([HMS])", duration)
    return sum(int(number) * _SECONDS[unit] for number, unit in parts)


def _check_pause(definition: ResourceDefinition, name: str) -> None:
    """Check that the pause between batches is an hour at most.

    :raises TemplateError: the pause is longer.
    """
    policy = definition.update_policy
    rolling = policy.get(name) if isinstance(policy, Mapping) and not is_node(policy) else None
    pause = rolling.get("PauseTime") if isinstance(rolling, Mapping) and not is_node(rolling) else None
    if isinstance(pause, str) and re.fullmatch(_DURATION, pause) and seconds(pause) > LONGEST_PAUSE:
        path = ("resources", definition.name, "update_policy", name, "PauseTime")
        raise TemplateError("Maximum PauseTime is 1 hour.", path)


def _check_configuration(reference: Json, others: Mapping[str, ResourceDefinition]) -> None:
    """Check that a group refers to a launch configuration of its stack, as far as that is known.

    :raises PropertyError: the group refers to something else, or to nothing.
    """
    if not reference:
        return
    if is_node(reference) and reference[FN] == "get_resource":
        other = others.get(reference[ARGS][0])
        if other is None or other.type == LAUNCH_CONFIGURATION:
            return
        text = f"{other.name} is a resource of the type {other.type}, not {LAUNCH_CONFIGURATION}"
    elif is_deferred(reference):
        return
    elif isinstance(reference, str) and reference in others:
        text = f"({reference}) requires a reference to the configuration not just the name of the resource."
    else:
        text = f"({reference}) reference can not be found."
    raise PropertyError(f"{CONFIGURATION} {text}", (CONFIGURATION,))
