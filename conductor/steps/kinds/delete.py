"""Steps that end with the row of a resource, or of its copy, removed."""

from collections.abc import Mapping

from ....resources.context import Json
from ..results import StepResult
from ..target import never_made
from .base import TaskStep


class DeleteStep(TaskStep):
    """A step of a deletion."""

    action = "delete"

    def settle(self) -> StepResult | None:
        """Remove only the row, where the template retains the thing, or nothing was ever made."""
        if self.definition.retain or never_made(self.claim, self.plugin, self.secrets):
            return self.outcomes.deleted()
        return None

    def prepare(self) -> StepResult | None:
        """Find what a lost creation has made: it has to be deleted, too."""
        if self.progress is None:
            self.find_created()
        return None

    def complete(self, changes: Mapping[str, Json]) -> StepResult:
        """Remove the row."""
        return self.outcomes.deleted()


class CleanupStep(DeleteStep):
    """A step of the deletion of what an update has replaced."""

    def settle(self) -> StepResult | None:
        """Leave a resource that was not replaced, after all; hold at a breakpoint."""
        if self.claim.resource.replaced_by is None:
            return self.outcomes.nothing_to_do({})
        return self.outcomes.held() or super().settle()


class DeleteSnapshotStep(TaskStep):
    """A step of the deletion of what a snapshot keeps of a resource."""

    action = "delete_snapshot"

    def complete(self, changes: Mapping[str, Json]) -> StepResult:
        """Remove the copy's row."""
        return self.outcomes.deleted()
