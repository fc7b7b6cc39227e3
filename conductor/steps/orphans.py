"""What steps may leave behind that were given up; see db/work/orphans.py."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy.engine import Connection

from ...db.engine import Database
from ...db.errors import NotFound
from ...db.ids import MemberId, TaskId, TraversalId
from ...db.rows import Task
from ...db.states import TaskKind
from ...db.work import claim as claims
from ...db.work import orphans
from ...db.work.claim import Claim
from ...db.work.orphans import OrphanedCreate
from ...planning.task_definition import TaskDefinition
from ...resources.errors import PermanentError
from ...template.errors import TemplateError
from ...template.residual import partial
from .lookup import SealedLookup
from .outcomes import StepResult

LOG = logging.getLogger(__name__)


def leftover_of(claim: Claim) -> OrphanedCreate | None:
    """What the claim's step may still make; None: nothing, for it creates nothing, cannot have begun to, or
    has told already what it made."""
    resource = claim.resource
    if claim.task.kind != TaskKind.CREATE or resource.physical_id is not None:
        return None
    if TaskDefinition.from_json(claim.task.definition).external_id is not None:
        return None
    if resource.properties is None:
        wanted = TaskDefinition.from_json(claim.task.definition).properties
        try:
            kept = partial(wanted, SealedLookup(claim))
        except (PermanentError, TemplateError):
            return None
        resource = replace(resource, properties=kept)
    return OrphanedCreate(claim.task, resource)


def late_result(
    database: Database, claim: Claim, result: StepResult | None, *, now: float
) -> Mapping[TraversalId, Sequence[TaskId]]:
    """A step that was given up has ended; the tasks made ready by it."""
    LOG.info("A late result of task %s, attempt %s, is refused", claim.task.id, claim.task.attempt)
    outcome = None if result is None else result.outcome
    physical_id = None if outcome is None else outcome.changes.get("physical_id")
    if physical_id is not None:  # The result of a look is told with the claim as it would be after it.
        claim = replace(claim, resource=replace(claim.resource, physical_id=None))
    left = leftover_of(claim)
    if left is None:
        return {}
    try:
        return database.write(lambda conn: orphans.resolve(conn, left, physical_id, now=now), brief=True)
    except NotFound:
        told = "Task %s made %s (%s, resource %s), and its stack was purged meanwhile: remove it by hand"
        LOG.error(told, claim.task.id, physical_id, claim.resource.type, claim.resource.name)
        return {}


def keep_stray(database: Database, claim: Claim, member: MemberId, *, now: float) -> None:
    """A step was given up whose task had been taken away before; `member` is who runs it still."""
    left = leftover_of(claim)
    if left is None:
        return
    own = replace(left, task=replace(left.task, member=member))
    database.write(lambda conn: orphans.keep_stray(conn, own, now=now), brief=True)


def keep_leftover(conn: Connection, task: Task, *, now: float) -> None:
    """Of a task that was taken away from its conductor."""
    claim = claims.read(conn, task)
    left = None if claim is None else leftover_of(claim)
    if left is not None:
        orphans.record(conn, left, now=now)
