"""OS::Heat::ScalingPolicy: a signal to it scales a group."""

from collections.abc import Mapping

from ...template.constraints import AllowedValues, Range
from ..context import Json, ResourceView, StepContext
from ..errors import PropertyError
from ..plugin import ResourceType, check_named
from ..schema import Attribute, Property, SupportStatus
from ..signals import Adjustment, Signal
from ..steps import Done, Step
from .scaling import ADJUSTMENTS, PERCENT


class ScalingPolicy(ResourceType):
    """Defines by how much a signal scales; the group defines the bounds."""

    description = (
        "Takes signals, for example from an alarm, each of which makes a scaling group larger or smaller."
    )
    support_status = SupportStatus(version="2014.1")
    properties_schema = {
        "auto_scaling_group_id": Property("string", "Reference of the group.", required=True),
        "scaling_adjustment": Property("number", "By how much.", required=True, update_allowed=True),
        "adjustment_type": Property(
            "string",
            "Whether the adjustment is added, is the new size, or is a percentage that is added.",
            required=True,
            constraints=(AllowedValues(values=ADJUSTMENTS),),
            update_allowed=True,
        ),
        "cooldown": Property(
            "number",
            "Seconds after the change in which no signal makes another one; the group's own if not given.",
            update_allowed=True,
        ),
        "min_adjustment_step": Property(
            "integer",
            "Members that a percentage adds or removes at least.",
            constraints=(Range(minimum=0),),
            update_allowed=True,
        ),
    }
    attributes_schema = {
        "alarm_url": Attribute(
            "Where an alarm posts its signal; signed, so that it needs no token.", "string", sensitive=True
        ),
        "signal_url": Attribute(
            "Where a signal is posted, with a token of Keystone's.",
            "string",
            support_status=SupportStatus(version="5.0.0"),
        ),
    }

    def validate(self, properties: Mapping[str, Json]) -> None:
        """Check that a minimum step is given with a percentage only.

        :raises PropertyError: it is not.
        """
        kind = properties.get("adjustment_type", PERCENT)
        if properties.get("min_adjustment_step") is not None and kind != PERCENT:
            raise PropertyError(f"is valid only where adjustment_type is {PERCENT}", ("min_adjustment_step",))

    def handle_create(self, target: ResourceView, work: StepContext) -> Step:
        """Store the URLs."""
        return Done(physical_id=target.physical_name, data=_addresses(target, work))

    def handle_adopt(self, target: ResourceView, work: StepContext) -> Step:
        """Store new URLs: they name the stack, so those of another stack are invalid."""
        check_named(target)
        return Done(data=_addresses(target, work))

    def attribute_values(self, target: ResourceView) -> Mapping[str, Json]:
        """Return the URLs."""
        return {name: target.data.get(name) for name in self.attributes_schema}

    def handle_signal(self, target: ResourceView, details: Json) -> Signal:
        """Request the scaling of the group, whatever the details are."""
        given = target.properties
        return Signal(
            metadata=target.metadata,
            reason=_reason(details),
            adjustment=Adjustment(
                group=given["auto_scaling_group_id"],
                kind=given["adjustment_type"],
                by=given["scaling_adjustment"],
                least_step=given["min_adjustment_step"],
                cooldown=given["cooldown"],
            ),
        )


def _addresses(target: ResourceView, work: StepContext) -> Mapping[str, Json]:
    return {"alarm_url": work.presigned().url, "signal_url": work.signal_url(target.name)}


def _reason(details: Json) -> str:
    """Return the reason for the event, as Heat words it."""
    if not details:
        return "No signal details provided"
    if isinstance(details, Mapping) and {"previous", "current", "reason"} <= set(details):
        return "alarm state changed from {previous} to {current} ({reason})".format(**details)
    return "Unknown"
