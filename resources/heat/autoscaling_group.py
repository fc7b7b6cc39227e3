"""OS::Heat::AutoScalingGroup, and the base of groups of a number of members with generated names."""

import base64
import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...shapes import Json, JsonMap
from ...template.constraints import Range
from ...template.language import ResourceDefinition
from ...template.residual import is_node
from ..contract import (
    ANY_NAME,
    Adjustment,
    Attribute,
    ChildGoal,
    ChildState,
    GoalContext,
    GroupMember,
    NoAction,
    Property,
    PropertyError,
    ResourceView,
    Scaling,
    Step,
    StepContext,
    SupportStatus,
)
from ..nested.base import child_of
from ..nested.groups import Batch, GroupResource, Rollout, batch_schema, batches
from ..nested.members import (
    REFS_MAP,
    Definition,
    RequestedAttribute,
    check_members,
    group_goal,
    next_members,
    output_name,
    values_of,
)
from .scaling_policy import Bounds, new_size

MAPS = "outputs"
LISTS = "outputs_list"
_ROLLING = {
    "min_in_service": Property(
        "integer",
        "Minimum number of members in service during a rolling update.",
        default=0,
        constraints=(Range(minimum=0),),
    ),
    **batch_schema("members"),
}


@dataclass(frozen=True)
class SizeRules:
    """The rules for the number of members.

    :ivar requested: number of members; None: as many as there are, and in a new group the fewest.
    :ivar cooldown: seconds after a change in which no signal makes another one.
    """

    requested: int | None
    bounds: Bounds
    cooldown: float = 0.0


@dataclass(frozen=True)
class RollingPolicy:
    """How present members get a new definition.

    :ivar most: members changed at once.
    :ivar in_service: members that stay in service at any time.
    :ivar pause: seconds between two batches.
    """

    most: int
    in_service: int
    pause: float


class SizedGroup(GroupResource):
    """A group whose members have generated names; the oldest are changed and deleted first."""

    def size_rules(self, properties: JsonMap) -> SizeRules:
        """Return the rules for the number of members."""
        raise NotImplementedError

    def member_body(self, target: ResourceView) -> Definition:
        """Return the definition of a new member."""
        raise NotImplementedError

    def rolling_policy(self, target: ResourceView, changed: frozenset[str]) -> RollingPolicy | None:
        """Return how an update changes present members; None: they keep their definitions."""
        raise NotImplementedError

    def members_goal(self, members: Mapping[str, Definition], target: ResourceView) -> ChildGoal:
        """Return the goal of a child with these members."""
        raise NotImplementedError

    def update_rollout(
        self, target: ResourceView, changed: frozenset[str], members: Sequence[GroupMember]
    ) -> Rollout:
        """Return batches if the definition of the members changes, then a step to the requested size."""
        rules = self.size_rules(target.properties)
        policy = self.rolling_policy(target, changed)
        existing = sum(1 for member in members if member.definition)
        sound = sum(1 for member in members if not member.is_failed)
        steps = []
        body = self.member_body(target) if policy is not None else {}
        if policy is not None and not all(member.has(body) for member in members if member.definition):
            aim = existing if rules.requested is None else min(rules.requested, existing)
            steps = batches(aim, existing, most=policy.most, in_service=policy.in_service)
        size = rules.bounds.keep(sound if rules.requested is None else rules.requested)
        if not steps or steps[-1].size != size:
            steps.append(Batch(size, 0))
        return Rollout(steps, policy.pause if policy is not None else 0.0)

    def step_goal(
        self, target: ResourceView, step: Batch | None, members: Sequence[GroupMember]
    ) -> ChildGoal:
        body = self.member_body(target)
        rules = self.size_rules(target.properties)
        if step is None:
            size = rules.bounds.least if rules.requested is None else rules.requested
            step = Batch(size, size)
        check_members(step.size, body, target.requested_attributes)
        present = [member for member in members if member.definition]
        # Failed members are removed first, then those that have not got the new definition yet.
        present.sort(key=lambda member: (not member.is_failed, member.has(body)))
        definitions = next_members(
            present,
            lambda name: body,
            _names(target.key, {member.name for member in present}),
            size=step.size,
            updates=step.updates,
        )
        return self.members_goal(definitions, target)


class ScalingGroup(SizedGroup):
    """A group that signals scale, within bounds."""

    def members_deleted(self, former: JsonMap, wanted: JsonMap, data: JsonMap) -> int:
        members = len(data.get("names") or [])
        try:
            before, rules = self.size_rules(former), self.size_rules(wanted)
        except KeyError:
            return 0  # Some of them are not known before the update.
        former_size = before.bounds.least if before.requested is None else before.requested
        wanted_size = members if rules.requested is None else rules.requested
        # Who asks for another number themselves know what they do; a lower bound is no such number.
        if wanted_size not in (members, former_size) and rules.bounds.most >= before.bounds.most:
            return 0
        return max(0, members - rules.bounds.keep(wanted_size))

    def plan_scaling(self, target: ResourceView, adjustment: Adjustment, now: float) -> Scaling:
        """Return the new size, within the bounds and outside of a cooldown."""
        current = len(target.data.get("names") or [])
        rules = self.size_rules(target.properties)
        size = new_size(
            current, adjustment.kind, adjustment.by, least_step=adjustment.least_step, bounds=rules.bounds
        )
        if size == current:
            raise NoAction(f"the group {target.name} has {current} members already")
        until = target.data.get("cooldown_end") or 0.0
        if now < until:
            raise NoAction(f"the group {target.name} may not be scaled for {until - now:.0f} more seconds")
        cooldown = adjustment.cooldown if adjustment.cooldown is not None else rules.cooldown
        return Scaling(size, cooldown, current)

    def handle_scale(self, target: ResourceView, scaling: Scaling, context: StepContext) -> Step:
        """Start to scale the group, as an update does."""
        state = child_of(context)
        data = {"cooldown": scaling.cooldown}
        return self.start_rollout(target, state, Rollout([Batch(scaling.size, 0)], data=data), context)

    def check_scale_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Continue with the next step, if the last one is complete."""
        return self.check_update_complete(target, progress, context)

    def child_data(self, target: ResourceView, state: ChildState, context: GoalContext) -> JsonMap:
        """Add the end of the cooldown."""
        data = dict(super().child_data(target, state, context))
        cooldown = data.pop("cooldown", None)
        if cooldown is None:
            cooldown = self.size_rules(target.properties).cooldown
        ends = context.now() + max(0.0, cooldown)
        return {**data, "cooldown_end": max(ends, data.get("cooldown_end") or 0.0)}


class AutoScalingGroup(ScalingGroup):
    """A group whose members have generated names; the oldest are deleted first."""

    type_name = "OS::Heat::AutoScalingGroup"
    description = (
        "An auto-scaling group: resources of one definition, whose number follows signals.\n\n"
        "They are the resources of a stack of their own. A ScalingPolicy that gets a signal makes more or "
        "fewer of them, within the bounds; the oldest go first."
    )
    support_status = SupportStatus(version="2014.1")
    own_attributes = frozenset({"current_size", "refs", REFS_MAP, "show"})
    path_attributes = frozenset({MAPS, LISTS})
    properties_schema = {
        "resource": Property(
            "map", "Resource definition of the members, as in a template.", required=True, update_allowed=True
        ),
        "max_size": Property(
            "integer",
            "Maximum number of members.",
            required=True,
            update_allowed=True,
            constraints=(Range(minimum=0),),
        ),
        "min_size": Property(
            "integer",
            "Minimum number of members.",
            required=True,
            update_allowed=True,
            constraints=(Range(minimum=0),),
        ),
        "cooldown": Property(
            "integer",
            "Cooldown after a change, in seconds: signals meanwhile have no effect.",
            update_allowed=True,
        ),
        "desired_capacity": Property("integer", "Initial number of members.", update_allowed=True),
        "rolling_updates": Property(
            "map",
            "Rolling update of the members to a new definition.",
            schema=_ROLLING,
            default={"min_in_service": 0, "max_batch_size": 1, "pause_time": 0},
            update_allowed=True,
        ),
    }
    attributes_schema = {
        ANY_NAME: Attribute("Attribute of one member, as resource.NUMBER; the oldest member is 0."),
        MAPS: Attribute(
            "Map from the members' names to their values of the attribute named in the path.",
            "map",
            support_status=SupportStatus(version="2014.2"),
        ),
        LISTS: Attribute(
            "List of the members' values of the attribute named in the path, the oldest member first.",
            "list",
            support_status=SupportStatus(version="2014.2"),
        ),
        "current_size": Attribute(
            "Current number of members.", "integer", support_status=SupportStatus(version="2015.1")
        ),
        "refs": Attribute(
            "References of the members.", "list", support_status=SupportStatus(version="7.0.0")
        ),
        REFS_MAP: Attribute(
            "References of the members, by name.", "map", support_status=SupportStatus(version="7.0.0")
        ),
    }

    def validate(self, properties: JsonMap) -> None:
        """Check that the bounds and the capacity agree.

        :raises PropertyError: they contradict each other.
        """
        check_sizes(properties, least="min_size", most="max_size", capacity="desired_capacity")

    def static_goal(self, values: JsonMap, definition: ResourceDefinition) -> ChildGoal | None:
        """Return a goal with one member, also for a group that starts without any, as it may grow."""
        definition_of_member = definition.properties.get("resource")
        if not isinstance(definition_of_member, Mapping) or is_node(definition_of_member):
            return None
        copies = values.get("desired_capacity") or values.get("min_size") or 1
        return _goal({"member": definition_of_member}, definition.requested_attributes, copies=copies)

    def member_attribute(self, attribute: str, path: Sequence[str | int]) -> RequestedAttribute | None:
        names = {*self.own_attributes, *self.path_attributes}
        if attribute not in names and not attribute.startswith("resource."):
            raise LookupError(f"there are {', '.join(sorted(names))}, and resource.NUMBER")
        return super().member_attribute(attribute, path)

    def size_rules(self, properties: JsonMap) -> SizeRules:
        bounds = Bounds(properties["min_size"], properties["max_size"])
        return SizeRules(properties["desired_capacity"], bounds, properties["cooldown"] or 0)

    def member_body(self, target: ResourceView) -> Definition:
        body: Definition = target.properties["resource"]
        return body

    def rolling_policy(self, target: ResourceView, changed: frozenset[str]) -> RollingPolicy | None:
        """Return how present members change, if their definition does."""
        policy = target.properties["rolling_updates"]
        if "resource" not in changed:
            return None
        return RollingPolicy(policy["max_batch_size"], policy["min_in_service"], policy["pause_time"])

    def members_goal(self, members: Mapping[str, Definition], target: ResourceView) -> ChildGoal:
        return _goal(members, target.requested_attributes)

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the requested attributes, with the members in their order."""
        values = dict(super().attribute_values(target))
        names = list(target.data.get("names") or [])
        for parts in target.requested_attributes:
            attribute, path = _split(parts)
            if path:
                by_name = (target.data.get("outputs") or {}).get(output_name([MAPS, *path])) or {}
            else:
                by_name = values[REFS_MAP]
            present = [name for name in names if name in by_name]
            if attribute == MAPS:
                value: Json = {name: by_name[name] for name in present}
            elif attribute == LISTS:
                value = [by_name[name] for name in present]
            else:
                number = attribute.split(".")[1]
                is_there = number.isdigit() and int(number) < len(present)
                value = by_name[present[int(number)]] if is_there else None
            values[output_name(parts)] = value
        return {**values, "current_size": len(names)}


def _split(parts: RequestedAttribute) -> tuple[str, list[str | int]]:
    """Return the attribute, and the attribute of the members that it reads."""
    first, *path = parts
    if str(first).startswith("resource."):
        head, number, *rest = str(first).split(".", 2)
        return f"{head}.{number}", [*rest, *path]
    return str(first), path


def _goal(
    members: Mapping[str, Definition], requested: Sequence[RequestedAttribute], *, copies: int = 1
) -> ChildGoal:
    outputs = {output_name([MAPS, *path]): [MAPS, *path] for _, path in map(_split, requested) if path}
    return group_goal(members, values_of(list(members), outputs.values(), MAPS), copies=copies)


def check_sizes(properties: JsonMap, *, least: str, most: str, capacity: str) -> None:
    """Check that the bounds and the capacity of a group agree.

    :param least, most, capacity: names of the properties; those that are not known are absent.
    :raises PropertyError: they contradict each other.
    """
    low, high, capacity_value = (properties.get(name) for name in (least, most, capacity))
    if low is not None and high is not None and high < low:
        raise PropertyError(f"{least} can not be greater than {most}", (least,))
    if capacity_value is None:
        return
    if (low is not None and capacity_value < low) or (high is not None and capacity_value > high):
        raise PropertyError(f"{capacity} must be between {least} and {most}", (capacity,))


def _names(key: str, used: set[str]) -> Iterator[str]:
    """Yield names for new members in Heat's form, the same for each repetition of a step.

    :param key: the key of the step; "": there is none, so nobody knows the names: numbers replace them.
    """
    for number in itertools.count():
        digest = hashlib.sha256(f"{key}/{number}".encode()).digest()
        name = base64.b32encode(digest).decode().lower()[:12] if key else f"new-{number}"
        if name not in used:
            yield name
