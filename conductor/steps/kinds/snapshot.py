"""Steps of snapshots: a snapshot keeps a copy of the resource's row, with data that its type adds."""

from dataclasses import replace

from ....db.states import Status
from ....resources.contract.steps import Done, Step
from ....shapes import Json
from ..results import StepResult
from ..returned import kept_data
from .base import TaskStep

COPIED = ("type", "plugin", "physical_id", "properties", "metadata")
"""Columns that are the resource's when its snapshot is complete."""


class SnapshotStep(TaskStep):
    """A step of a snapshot."""

    action = "snapshot"

    def finish(self, step: Step) -> StepResult:
        """Store the data that the type has returned in the copy, and leave the resource as it is."""
        copy = self._copy_columns(step)
        result = self.store(replace(step, data=None), {})
        if result.outcome is None or not copy:
            return result
        return replace(result, outcome=replace(result.outcome, copy=copy))

    def _copy_columns(self, step: Step) -> dict[str, Json]:
        """Return the columns of the copy to set; its id as ``row_id``.

        :raises PermanentError: the type returned a value that cannot be stored.
        """
        columns: dict[str, Json] = {}
        if step.data is not None:
            merged = replace(step, data={**self.target.data, **step.data})
            columns["data"] = kept_data(self.plugin, merged, self.target, self.secrets)["data"]
        if isinstance(step, Done):
            columns |= {name: getattr(self.claim.resource, name) for name in COPIED}
            columns |= {"status": Status.COMPLETE, "reason": "state changed"}
        return {**columns, "id": self.claim.task.spare_id} if columns else {}
