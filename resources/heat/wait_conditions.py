"""Wait conditions: complete when enough signals reached their handle, or fail after a time.

The property `handle` is the reference of the handle, a URL whose path ends in
``/STACK_ID/resources/NAME/signal`` or ``/STACK_ID/resources/NAME/signal/ROW``; NAME is the handle's name in
the same stack.  That of an imported handle is its physical id.
"""

import json
import typing
import urllib.parse
from collections.abc import Mapping

from ...shapes import Json, JsonMap
from ...template.constraints import Range
from ..contract import (
    Attribute,
    Done,
    Park,
    PermanentError,
    PolledAlike,
    Property,
    ResourceView,
    Sibling,
    Step,
    StepContext,
    SupportStatus,
)
from .received import FAILURE, SUCCESS, Received, received

HANDLE_TEXT = "Reference of the handle that takes the signals, by get_resource."
TIMEOUT_TEXT = "Timeout for the signals, in seconds."
COUNT_TEXT = "Number of success signals to wait for."
DATA_TEXT = "Data of the signals, as JSON text: a map by signal id."
DESCRIPTION = (
    "A wait condition: it completes when enough success signals have come from outside.\n\n"
    "It completes when its handle has enough signals of success. It fails at the first signal of failure, or "
    "when it times out."
)
TIMEOUT_RANGE = (Range(minimum=1, maximum=43200),)
HEAT_ARN = "arn:openstack:heat:"
"""Beginning of the name of a resource in the signed addresses of Heat."""
LONGEST_REASONS = 4096
"""Characters."""
AT_LEAST_1 = (Range(minimum=1),)


class WaitCondition(PolledAlike):
    """Heat's condition.  It parks on its handle; a signal wakes it, and so does its timeout.

    Signals are read before the clock: a condition that was met in time does not fail because the poll was
    late.  `data` has all signals of the handle, also later ones.
    """

    type_name = "OS::Heat::WaitCondition"
    follows_signals = True

    names: typing.ClassVar[Mapping[str, str]] = {
        "handle": "handle",
        "timeout": "timeout",
        "count": "count",
        "data": "data",
    }
    description = DESCRIPTION
    support_status = SupportStatus(version="2014.2")
    properties_schema = {
        "handle": Property("string", HANDLE_TEXT, required=True),
        "timeout": Property("number", TIMEOUT_TEXT, required=True, constraints=TIMEOUT_RANGE),
        "count": Property("integer", COUNT_TEXT, default=1, update_allowed=True, constraints=AT_LEAST_1),
    }
    attributes_schema = {"data": Attribute(DATA_TEXT, "string")}

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Start to wait.

        :raises PermanentError: the stack has no such handle.
        """
        until = context.now() + target.properties[self.names["timeout"]]
        return self.poll(target, {"until": until}, context)

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Wait again, for the whole time; earlier signals count."""
        return self.handle_create(target, context)

    def poll(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Count the signals.

        :raises PermanentError: there is a signal of failure, or the wait timed out.
        """
        handle = self._handle(target, context)
        signals = received(handle.metadata)
        count = target.properties[self.names["count"]]
        if any(signal.status == FAILURE for signal in signals):
            raise PermanentError(_reasons(signals, FAILURE), kind="WaitConditionFailure")
        if len(signals) >= count:
            return Done(data=_data(signals))
        seconds = progress["until"] - context.now()
        if seconds <= 0:
            reasons = f" - {_reasons(signals, SUCCESS)}" if signals else ""
            raise PermanentError(f"{len(signals)} of {count} received{reasons}", kind="WaitConditionTimeout")
        return Park(progress, waits_on=f"resource:{handle.id}", seen=handle.generation, after=seconds)

    def handle_adopt(self, target: ResourceView, context: StepContext) -> Step:
        """Return Done: there is no thing that could be missing; the signals reached another stack."""
        return Done()

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the data of all signals by id, as JSON text."""
        return {self.names["data"]: target.data.get("signals", "{}")}

    def refresh(self, target: ResourceView, context: StepContext) -> JsonMap:
        """Return the data of all signals so far, as Heat shows them."""
        return _data(received(self._handle(target, context).metadata))

    def _handle(self, target: ResourceView, context: StepContext) -> Sibling:
        """Return the handle.

        :raises PermanentError: the stack has no such handle.
        """
        reference = target.properties[self.names["handle"]]
        imported = None if "/" in reference else context.referenced(reference)
        name = _handle_name(reference, target.stack.id) if imported is None else imported.name
        return context.sibling(name)


class AwsWaitCondition(WaitCondition):
    """The condition of CloudFormation templates: other names, the same behaviour."""

    type_name = "AWS::CloudFormation::WaitCondition"
    names = {"handle": "Handle", "timeout": "Timeout", "count": "Count", "data": "Data"}
    support_status = SupportStatus(version="2014.1")
    properties_schema = {
        "Handle": Property("string", HANDLE_TEXT, required=True),
        "Timeout": Property("integer", TIMEOUT_TEXT, required=True, constraints=TIMEOUT_RANGE),
        "Count": Property("integer", COUNT_TEXT, default=1, update_allowed=True, constraints=AT_LEAST_1),
    }
    attributes_schema = {"Data": Attribute(DATA_TEXT, "string")}


def _data(signals: list[Received]) -> JsonMap:
    """Return the data that the condition keeps."""
    return {"signals": json.dumps({signal.id: signal.data for signal in signals})}


def _reasons(signals: list[Received], status: str) -> str:
    """Return the reasons of all signals with a status, bounded in length."""
    text = ";".join(signal.reason for signal in signals if signal.status == status)
    return text if len(text) <= LONGEST_REASONS else f"{text[:LONGEST_REASONS]}…"


def _handle_name(reference: str, stack_id: str) -> str:
    """Return the name of the handle that a reference names.

    :raises PermanentError: the reference is no signal URL of this stack.
    """
    parts = [urllib.parse.unquote(part) for part in urllib.parse.urlsplit(reference).path.split("/")]
    match parts:
        case [*_, stack, "resources", name, "signal"] if stack == stack_id:
            return name
        case [*_, stack, "resources", name, "signal", _] if stack == stack_id:
            return name
        case [*_, arn, _, stack, "resources", name] if stack == stack_id and arn.startswith(HEAT_ARN):
            return name
    raise PermanentError(f"{reference} is not a valid wait condition handle.", kind="ValueError")
