"""OS::Heat::Delay: a pause at a chosen place of the graph."""

import random

from ...shapes import Json
from ...template.constraints import AllowedValues, Range
from ..contract import Done, Poll, PolledAlike, Property, ResourceView, Step, StepContext, SupportStatus

ACTIONS = ("CREATE", "DELETE", "SUSPEND", "RESUME")
AT_LEAST_0 = (Range(minimum=0),)


class Delay(PolledAlike):
    """Waits without a thread; the random part is drawn once for each action, when it starts."""

    type_name = "OS::Heat::Delay"
    description = (
        "A delay between the resources before and after it in the graph.\n\n"
        "The pause is min_wait and a random part: at most max_jitter times jitter_multiplier, any part of it "
        "equally likely. So the members of a large group need not all start at once."
    )
    support_status = SupportStatus(version="11.0.0")
    properties_schema = {
        "min_wait": Property(
            "number",
            "Minimum wait, in seconds.",
            default=0,
            update_allowed=True,
            constraints=AT_LEAST_0,
        ),
        "max_jitter": Property(
            "number",
            "Maximum random addition to the wait, in units of jitter_multiplier.",
            default=0,
            update_allowed=True,
            constraints=AT_LEAST_0,
        ),
        "jitter_multiplier": Property(
            "number",
            "Unit of max_jitter, in seconds.",
            default=1.0,
            update_allowed=True,
            constraints=AT_LEAST_0,
        ),
        "actions": Property(
            "list",
            "Actions that wait.",
            default=["CREATE"],
            update_allowed=True,
            constraints=(AllowedValues(values=ACTIONS),),
        ),
    }

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        return _start("CREATE", target, context)

    def handle_adopt(self, target: ResourceView, context: StepContext) -> Step:
        """Return Done: there is no thing that could be missing."""
        return Done()

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        return _start("DELETE", target, context)

    def handle_suspend(self, target: ResourceView, context: StepContext) -> Step:
        return _start("SUSPEND", target, context)

    def handle_resume(self, target: ResourceView, context: StepContext) -> Step:
        return _start("RESUME", target, context)

    def poll(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        return _poll(progress, context)


def _start(action: str, target: ResourceView, context: StepContext) -> Step:
    properties = target.properties
    if action not in properties["actions"]:
        return Done()
    jitter = properties["max_jitter"] * properties["jitter_multiplier"] * random.random()
    return _poll({"until": context.now() + properties["min_wait"] + jitter}, context)


def _poll(progress: Json, context: StepContext) -> Step:
    seconds = progress["until"] - context.now()
    return Poll(progress, after=seconds) if seconds > 0 else Done()
