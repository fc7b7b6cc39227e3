"""OS::Heat::Delay: a pause at a chosen place of the graph."""

import random

from ...template.constraints import AllowedValues, Range
from ..contract import Done, Json, Poll, ResourceType, Step, Target, Work
from ..schema import Property, SupportStatus

ACTIONS = ("CREATE", "DELETE", "SUSPEND", "RESUME")
AT_LEAST_0 = (Range(minimum=0),)


class Delay(ResourceType):
    """Waits without a thread; the random part is drawn once for each action, when it begins."""

    description = (
        "A resource that pauses for a configurable delay.\n\n"
        "By the dependencies between resources of the template a delay can be put at any point, for example "
        "of creation or deletion. If a maximum jitter is given, a random time between 0 and the product of "
        "the maximum jitter and the jitter multiplier is added to the minimum."
    )
    support_status = SupportStatus(version="11.0.0")
    properties_schema = {
        "min_wait": Property(
            "number",
            "Minimum time in seconds to wait during the specified actions.",
            default=0,
            update_allowed=True,
            constraints=AT_LEAST_0,
        ),
        "max_jitter": Property(
            "number",
            "Maximum jitter to add to the minimum wait time.",
            default=0,
            update_allowed=True,
            constraints=AT_LEAST_0,
        ),
        "jitter_multiplier": Property(
            "number",
            "Number of seconds to multiply the maximum jitter value by.",
            default=1.0,
            update_allowed=True,
            constraints=AT_LEAST_0,
        ),
        "actions": Property(
            "list",
            "Actions during which the delay will occur.",
            default=["CREATE"],
            update_allowed=True,
            constraints=(AllowedValues(values=ACTIONS),),
        ),
    }

    def handle_create(self, target: Target, work: Work) -> Step:
        """Begin to wait."""
        return _begin("CREATE", target, work)

    def check_create_complete(self, target: Target, progress: Json, work: Work) -> Step:
        """See whether the time is over."""
        return _look(progress, work)

    def handle_delete(self, target: Target, work: Work) -> Step:
        """Begin to wait."""
        return _begin("DELETE", target, work)

    def check_delete_complete(self, target: Target, progress: Json, work: Work) -> Step:
        """See whether the time is over."""
        return _look(progress, work)

    def handle_suspend(self, target: Target, work: Work) -> Step:
        """Begin to wait."""
        return _begin("SUSPEND", target, work)

    def check_suspend_complete(self, target: Target, progress: Json, work: Work) -> Step:
        """See whether the time is over."""
        return _look(progress, work)

    def handle_resume(self, target: Target, work: Work) -> Step:
        """Begin to wait."""
        return _begin("RESUME", target, work)

    def check_resume_complete(self, target: Target, progress: Json, work: Work) -> Step:
        """See whether the time is over."""
        return _look(progress, work)


def _begin(action: str, target: Target, work: Work) -> Step:
    properties = target.properties
    if action not in properties["actions"]:
        return Done()
    jitter = properties["max_jitter"] * properties["jitter_multiplier"] * random.random()
    return _look({"until": work.now() + properties["min_wait"] + jitter}, work)


def _look(progress: Json, work: Work) -> Step:
    left = progress["until"] - work.now()
    return Poll(progress, after=left) if left > 0 else Done()
