"""Decides which resource a detached or late step may still make; see late_steps.py."""

from dataclasses import replace

from ...db.rows import OrphanedCreate
from ...db.states import TaskKind
from ...db.work.claim import Claim
from ...engine.planning.plan import TaskDefinition
from ...resources.contract.errors import PermanentError
from ...template.errors import TemplateError
from ...template.residual import partial
from .inputs import SealedLookup


def orphaned_create(claim: Claim) -> OrphanedCreate | None:
    """Return the resource that the claim's step may still make.

    :return: None: nothing, for it creates nothing, cannot have started to, or its physical id is stored.
    """
    resource = claim.resource
    if claim.task.kind != TaskKind.CREATE or resource.physical_id is not None:
        return None
    if TaskDefinition.from_json(claim.task.definition).external_id is not None:
        return None
    if resource.properties is None:
        properties = TaskDefinition.from_json(claim.task.definition).properties
        try:
            sealed = partial(properties, SealedLookup(claim))
        except (PermanentError, TemplateError):
            return None
        resource = replace(resource, properties=sealed)
    return OrphanedCreate(claim.task, resource)
