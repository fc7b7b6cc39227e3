"""The base of types whose actions all end in the same manner."""

from ...shapes import Json
from .context import StepContext
from .plugin import ResourceType
from .steps import Step
from .views import ResourceView


class PolledAlike(ResourceType):
    """Base of types that poll each action on the resource itself by one method; snapshots are not meant.

    A type whose creation or deletion ends otherwise overrides that method as usual.
    """

    def poll(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll whether the action that has stored `progress` is complete."""
        raise NotImplementedError

    def check_create_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        return self.poll(target, progress, context)

    def check_update_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        return self.poll(target, progress, context)

    def check_delete_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        return self.poll(target, progress, context)

    def check_suspend_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        return self.poll(target, progress, context)

    def check_resume_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        return self.poll(target, progress, context)

    def check_check_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        return self.poll(target, progress, context)
