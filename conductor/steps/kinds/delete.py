"""Steps that end with the row of a resource, or of its copy, removed."""

from dataclasses import replace

from ....resources.contract.steps import Done, Step
from ....shapes import JsonMap
from ..results import StepResult
from ..target import NeverMade
from .base import TaskStep

COPY = "copy"
"""Key of a deletion's progress while the copy is made that stays."""


class DeleteStep(TaskStep):
    """A step of a deletion, before which a copy is made where the template says so."""

    action = "delete"

    def run(self) -> StepResult:
        """Run the step; remove only the row, where nothing was ever made."""
        try:
            return super().run()
        except NeverMade:
            return self.outcomes.deleted()

    def settle(self) -> StepResult | None:
        """Remove only the row, where the template retains the thing."""
        return self.outcomes.deleted() if self.definition.retain else None

    def prepare(self) -> StepResult | None:
        """Find the resource that a lost creation has made: it has to be deleted, too."""
        if self.progress is None:
            self.find_created()
        return None

    def start(self) -> Step:
        """Start the deletion, or the copy that comes before it."""
        if self.definition.deletion_policy != "Snapshot" or self.target.physical_id is None:
            return super().start()
        return self._after_copy(self.plugin.handle_snapshot_delete(self.target, self.context))

    def poll(self) -> Step:
        """Poll the deletion, or the copy that comes before it."""
        if COPY not in self.progress:
            return super().poll()
        progress = self.progress[COPY]
        return self._after_copy(
            self.plugin.check_snapshot_delete_complete(self.target, progress, self.context)
        )

    def complete(self, changes: JsonMap) -> StepResult:
        """Remove the row."""
        return self.outcomes.deleted()

    def _after_copy(self, step: Step) -> Step:
        """Return the next step of the copy, or the first one of the deletion once the copy is there."""
        if isinstance(step, Done):
            return super().start()
        return replace(step, progress={COPY: step.progress}, data=None)


class CleanupStep(DeleteStep):
    """A step of the deletion of a resource that an update has replaced."""

    def settle(self) -> StepResult | None:
        """Leave a resource that was not replaced, after all; hold at a breakpoint."""
        if self.claim.resource.replaced_by is None:
            return self.outcomes.nothing_to_do({})
        return self.outcomes.held() or super().settle()


class DeleteSnapshotStep(TaskStep):
    """A step of the deletion of the copy that a snapshot keeps of a resource."""

    action = "delete_snapshot"

    def complete(self, changes: JsonMap) -> StepResult:
        """Remove the copy's row."""
        return self.outcomes.deleted()
