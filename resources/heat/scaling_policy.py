"""OS::Heat::ScalingPolicy and AWS::AutoScaling::ScalingPolicy: a signal to them scales a group."""

import math
import typing
from collections.abc import Mapping
from dataclasses import dataclass

from ...shapes import Json, JsonMap
from ...template.constraints import AllowedValues, Range
from ..contract import (
    Adjustment,
    Attribute,
    Done,
    Property,
    PropertyError,
    ResourceType,
    ResourceView,
    Signal,
    Step,
    StepContext,
    SupportStatus,
    check_named,
)

CHANGE = "change_in_capacity"
EXACT = "exact_capacity"
PERCENT = "percent_change_in_capacity"
ADJUSTMENTS = (CHANGE, EXACT, PERCENT)
GROUP_TEXT = "Reference of the scaling group."
BY_TEXT = "Amount of the adjustment: members or percent."
KIND_TEXT = "Adjustment type: a change of the size, a new size, or a change in percent."
COOLDOWN_TEXT = (
    "Cooldown after a change, in seconds: signals meanwhile have no effect; if omitted, the group's."
)
STEP_TEXT = "Minimum number of members to add or remove, for an adjustment in percent."
URL_TEXT = "Signed URL for the signals of alarms; no token is needed."
AT_LEAST_0 = (Range(minimum=0),)
AWS_ADJUSTMENTS = {"ChangeInCapacity": CHANGE, "ExactCapacity": EXACT, "PercentChangeInCapacity": PERCENT}


@dataclass(frozen=True)
class Bounds:
    """Bounds of a group's size, both inclusive."""

    least: int
    most: int

    def keep(self, size: float) -> int:
        """Return the size, or the bound that it exceeds."""
        return int(max(self.least, min(self.most, size)))


def new_size(current: int, kind: str, adjustment: float, *, least_step: int | None, bounds: Bounds) -> int:
    """Return the size after an adjustment, as Heat computes it.

    A percentage is rounded towards zero, but to one member where it is less than that.

    :param kind: one of ADJUSTMENTS.
    :param least_step: how many members a percentage adds or removes at least; None or 0: one.
    """
    if kind == EXACT:
        return bounds.keep(adjustment)
    if kind == PERCENT:
        share = current * adjustment / 100.0
        whole = math.trunc(share) if abs(share) >= 1.0 else (share > 0) - (share < 0)
        if least_step and least_step > abs(whole):
            whole = least_step if whole > 0 else -least_step
        adjustment = whole
    return bounds.keep(current + adjustment)


class ScalingPolicy(ResourceType):
    """Defines by how much a signal scales; the group defines the bounds."""

    type_name = "OS::Heat::ScalingPolicy"
    description = (
        "A scaling policy: each signal, such as that of an alarm, changes the size of a scaling group."
    )
    support_status = SupportStatus(version="2014.1")
    stored_here = True
    #: Names of the properties; those of CloudFormation differ.
    names: typing.ClassVar[Mapping[str, str]] = {
        "group": "auto_scaling_group_id",
        "by": "scaling_adjustment",
        "kind": "adjustment_type",
        "cooldown": "cooldown",
        "least_step": "min_adjustment_step",
    }
    #: Words for the kinds of adjustments.
    kinds: typing.ClassVar[Mapping[str, str]] = {kind: kind for kind in ADJUSTMENTS}
    properties_schema = {
        "auto_scaling_group_id": Property("string", GROUP_TEXT, required=True),
        "scaling_adjustment": Property("number", BY_TEXT, required=True, update_allowed=True),
        "adjustment_type": Property(
            "string",
            KIND_TEXT,
            required=True,
            constraints=(AllowedValues(values=ADJUSTMENTS),),
            update_allowed=True,
        ),
        "cooldown": Property("number", COOLDOWN_TEXT, update_allowed=True),
        "min_adjustment_step": Property("integer", STEP_TEXT, constraints=AT_LEAST_0, update_allowed=True),
    }
    attributes_schema = {
        "alarm_url": Attribute(URL_TEXT, "string", sensitive=True),
        "signal_url": Attribute(
            "URL for signals with a Keystone token.",
            "string",
            support_status=SupportStatus(version="5.0.0"),
        ),
    }

    def validate(self, properties: JsonMap) -> None:
        """Check that a minimum step is given with a percentage only.

        :raises PropertyError: the kind is another one.
        """
        kind = self.names["kind"]
        step = self.names["least_step"]
        percent = next(word for word, meaning in self.kinds.items() if meaning == PERCENT)
        if properties.get(step) is not None and properties.get(kind, percent) != percent:
            raise PropertyError(f"is valid only where {kind} is {percent}", (step,))

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        return Done(physical_id=target.physical_name, data=_addresses(target, context))

    def handle_adopt(self, target: ResourceView, context: StepContext) -> Step:
        """Store new URLs: they name the stack, so those of another stack are invalid."""
        check_named(target)
        return Done(data=_addresses(target, context))

    def attribute_values(self, target: ResourceView) -> JsonMap:
        return {name: target.data.get(name) for name in self.attributes_schema}

    def handle_signal(self, target: ResourceView, details: Json) -> Signal:
        """Request the scaling of the group; the details do not matter."""
        adjustment = {part: target.properties[name] for part, name in self.names.items()}
        adjustment["kind"] = self.kinds[adjustment["kind"]]
        return Signal(metadata=target.metadata, reason=_reason(details), adjustment=Adjustment(**adjustment))


class AwsScalingPolicy(ScalingPolicy):
    """The policy of CloudFormation templates: other names, the same behaviour."""

    type_name = "AWS::AutoScaling::ScalingPolicy"
    names = {
        "group": "AutoScalingGroupName",
        "by": "ScalingAdjustment",
        "kind": "AdjustmentType",
        "cooldown": "Cooldown",
        "least_step": "MinAdjustmentStep",
    }
    kinds = AWS_ADJUSTMENTS
    properties_schema = {
        "AutoScalingGroupName": Property("string", GROUP_TEXT, required=True),
        "ScalingAdjustment": Property("integer", BY_TEXT, required=True, update_allowed=True),
        "AdjustmentType": Property(
            "string",
            KIND_TEXT,
            required=True,
            constraints=(AllowedValues(values=tuple(AWS_ADJUSTMENTS)),),
            update_allowed=True,
        ),
        "Cooldown": Property("integer", COOLDOWN_TEXT, update_allowed=True),
        "MinAdjustmentStep": Property("integer", STEP_TEXT, constraints=AT_LEAST_0, update_allowed=True),
    }
    attributes_schema = {"AlarmUrl": Attribute(URL_TEXT, "string", sensitive=True)}

    def reference_id(self, target: ResourceView) -> Json:
        """Return the URL with its signature: a secret."""
        return target.data.get("alarm_url", target.name)

    def attribute_values(self, target: ResourceView) -> JsonMap:
        return {"AlarmUrl": target.data.get("alarm_url")}


def _addresses(target: ResourceView, context: StepContext) -> JsonMap:
    return {"alarm_url": context.presigned().url, "signal_url": context.signal_url(target.name)}


def _reason(details: Json) -> str:
    """Return the reason for the event, as Heat words it."""
    if not details:
        return "No signal details provided"
    if isinstance(details, Mapping) and {"previous", "current", "reason"} <= set(details):
        return "alarm state changed from {previous} to {current} ({reason})".format(**details)
    return "Unknown"
