"""What a snapshot keeps of a resource: a copy of its row, with what its type's steps said should be kept."""

import typing
from collections.abc import Mapping
from dataclasses import replace

from ...db.states import Status
from ...db.work.claim import Claim
from ...resources.context import ResourceView
from ...resources.plugin import ResourceType
from ...resources.steps import Done, Step
from .results import StepResult
from .secrets import Secrets
from .target import kept_data

Json = typing.Any
AS_IT_IS = ("type", "plugin", "physical_id", "properties", "metadata")
"""Columns that are the resource's when its snapshot is complete."""


def copy_columns(
    claim: Claim, plugin: ResourceType, target: ResourceView, step: Step, secrets: Secrets
) -> dict[str, Json]:
    """Columns of the copy to set after a step of the resource's snapshot; its id as ``row_id``.

    :raises Final: the step returned what cannot be stored.
    """
    columns: dict[str, Json] = {}
    if step.data is not None:
        kept = replace(step, data={**target.data, **step.data})
        columns["data"] = kept_data(plugin, kept, target, secrets)["data"]
    if isinstance(step, Done):
        columns |= {name: getattr(claim.resource, name) for name in AS_IT_IS}
        columns |= {"status": Status.COMPLETE, "reason": "state changed"}
    return {**columns, "row_id": claim.task.spare_id} if columns else {}


def with_copy(result: StepResult, copy: Mapping[str, Json]) -> StepResult:
    """The result, with what is to be set of the copy."""
    if result.outcome is None or not copy:
        return result
    return replace(result, outcome=replace(result.outcome, copy=copy))
