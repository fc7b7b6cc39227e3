"""Steps of actions on a resource that stays as it was defined."""

from collections.abc import Callable

from ....resources.contract.signals import Scaling
from ....resources.contract.steps import Done, Step
from ....resources.update_decision import checkable
from ..results import StepResult
from ..returned import kept_data, kept_values, live_changes
from .base import TaskStep


class SuspendStep(TaskStep):
    """A step of a suspension."""

    action = "suspend"


class ResumeStep(TaskStep):
    """A step of a resumption."""

    action = "resume"


class CheckStep(TaskStep):
    """A step of a check that the user asked for."""

    action = "check"

    def prepare(self) -> StepResult | None:
        """Choose the reason, which says where the type cannot check anything."""
        if not checkable(self.plugin):
            self.reason = f"CHECK not supported for {self.claim.resource.type}"
        return None


class ObserveStep(TaskStep):
    """A step of a check before an update: changes outside are the update's business."""

    action = "check"

    def finish(self, step: Step) -> StepResult:
        """Store properties that have changed outside, so that the update sees the difference."""
        if not isinstance(step, Done):
            return super().finish(step)
        self.take(step)
        changes = live_changes(self.claim, self.plugin, self.target, self.context, self.secrets)
        return self.outcomes.nothing_to_do({**changes, "progress": None})


class RefreshStep(TaskStep):
    """A step that reads a resource's attributes again, behind all other tasks of the stack's action."""

    action = "check"

    def start(self) -> Step:
        """Read the thing once; only its data changes."""
        return Done(data=self.plugin.refresh(self.target, self.context))

    def finish(self, step: Step) -> StepResult:
        """Store the data and the attributes, without an event or a status."""
        self.take(step)
        data = kept_data(self.plugin, step, self.target, self.secrets)
        values = kept_values(self.plugin, self.target, self.context, self.secrets)
        return self.outcomes.nothing_to_do({**data, **values})


class ScaleStep(TaskStep):
    """A step of the scaling of a group by a signal."""

    action = "scale"

    def start(self) -> Step:
        """Start the scaling; the task's properties say by how much."""
        start: Callable[..., Step] = getattr(self.plugin, f"handle_{self.action}")
        return start(self.target, Scaling(**self.definition.properties), self.context)


class SignalStep(TaskStep):
    """A step that carries out the request of a signal, and reads the attributes that this has changed."""

    action = "signal"

    def start(self) -> Step:
        """Carry out the request; the task's properties have it, as the signal's sender wrote it.

        Without one the signal reached another resource, whose signals the attributes follow.
        """
        if self.definition.properties:
            self.plugin.carry_out(self.target, self.definition.properties, self.context)
        return Done(data=self.plugin.refresh(self.target, self.context))

    def finish(self, step: Step) -> StepResult:
        """Return the data and the attributes.

        The runner stores them, because an action on the resource may be in progress.
        """
        self.take(step)
        data = kept_data(self.plugin, step, self.target, self.secrets)
        values = kept_values(self.plugin, self.target, self.context, self.secrets)
        return self.outcomes.nothing_to_do({**data, **values})
