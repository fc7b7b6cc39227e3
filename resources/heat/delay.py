"""OS::Heat::Delay: a pause at a chosen place of the graph."""

import random

from ...template.constraints import AllowedValues, Range
from ..context import Json, ResourceView, StepContext
from ..plugin import ResourceType
from ..schema import Property, SupportStatus
from ..steps import Done, Poll, Step

ACTIONS = ("CREATE", "DELETE", "SUSPEND", "RESUME")
AT_LEAST_0 = (Range(minimum=0),)


class Delay(ResourceType):
    """Waits without a thread; the random part is drawn once for each action, when it starts."""

    description = (
        "Pauses at the place in the graph that its dependencies give it.\n\n"
        "The pause is min_wait and a random part: at most max_jitter times jitter_multiplier, any part of it "
        "equally likely. So the members of a large group need not all start at once."
    )
    support_status = SupportStatus(version="11.0.0")
    properties_schema = {
        "min_wait": Property(
            "number",
            "Seconds the pause lasts at least.",
            default=0,
            update_allowed=True,
            constraints=AT_LEAST_0,
        ),
        "max_jitter": Property(
            "number",
            "The largest random part, in units of jitter_multiplier.",
            default=0,
            update_allowed=True,
            constraints=AT_LEAST_0,
        ),
        "jitter_multiplier": Property(
            "number",
            "Seconds in one unit of max_jitter.",
            default=1.0,
            update_allowed=True,
            constraints=AT_LEAST_0,
        ),
        "actions": Property(
            "list",
            "The actions that pause.",
            default=["CREATE"],
            update_allowed=True,
            constraints=(AllowedValues(values=ACTIONS),),
        ),
    }

    def handle_create(self, target: ResourceView, work: StepContext) -> Step:
        """Start the pause."""
        return _start("CREATE", target, work)

    def check_create_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Poll whether the pause is over."""
        return _poll(progress, work)

    def handle_adopt(self, target: ResourceView, work: StepContext) -> Step:
        """Return Done: there is no thing that could be missing."""
        return Done()

    def handle_delete(self, target: ResourceView, work: StepContext) -> Step:
        """Start the pause."""
        return _start("DELETE", target, work)

    def check_delete_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Poll whether the pause is over."""
        return _poll(progress, work)

    def handle_suspend(self, target: ResourceView, work: StepContext) -> Step:
        """Start the pause."""
        return _start("SUSPEND", target, work)

    def check_suspend_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Poll whether the pause is over."""
        return _poll(progress, work)

    def handle_resume(self, target: ResourceView, work: StepContext) -> Step:
        """Start the pause."""
        return _start("RESUME", target, work)

    def check_resume_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Poll whether the pause is over."""
        return _poll(progress, work)


def _start(action: str, target: ResourceView, work: StepContext) -> Step:
    properties = target.properties
    if action not in properties["actions"]:
        return Done()
    jitter = properties["max_jitter"] * properties["jitter_multiplier"] * random.random()
    return _poll({"until": work.now() + properties["min_wait"] + jitter}, work)


def _poll(progress: Json, work: StepContext) -> Step:
    left = progress["until"] - work.now()
    return Poll(progress, after=left) if left > 0 else Done()
