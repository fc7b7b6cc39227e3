"""Finds the resources that detached and late steps have made, or may still make; see db/work/orphans.py.

No step calls this: the claim is lost, and the resource row of the object may be another one's by now.
"""

import logging
from dataclasses import replace

from sqlalchemy.engine import Connection

from ..db.engine import Database
from ..db.errors import NotFound
from ..db.ids import MemberId
from ..db.rows import ReadyTasks, Task
from ..db.work import claim as claims
from ..db.work import orphans
from ..db.work.claim import Claim
from .steps.orphaned_create import orphaned_create
from .steps.results import StepResult

LOG = logging.getLogger(__name__)


def resolve_late(database: Database, claim: Claim, result: StepResult | None, *, now: float) -> ReadyTasks:
    """Delete the resource of a step whose claim is not ours any more; return the tasks made ready by that.

    :param result: of the step; None: it ended without one.
    """
    LOG.info("A late result of task %s, attempt %s, is refused", claim.task.id, claim.task.attempt)
    outcome = None if result is None else result.outcome
    physical_id = None if outcome is None else outcome.changes.get("physical_id")
    if physical_id is not None:  # The result of a poll has the claim as it would be after it.
        claim = replace(claim, resource=replace(claim.resource, physical_id=None))
    orphan = orphaned_create(claim)
    if orphan is None:
        return ReadyTasks()
    try:
        return database.write(lambda conn: orphans.resolve(conn, orphan, physical_id, now=now), brief=True)
    except NotFound:
        text = "Task %s made %s (%s, resource %s), and its stack was purged meanwhile: remove it by hand"
        LOG.error(text, claim.task.id, physical_id, claim.resource.type, claim.resource.name)
        return ReadyTasks()


def record_hung(database: Database, claim: Claim, member: MemberId, *, now: float) -> None:
    """Store which resource a detached step may still make whose claim is not ours any more.

    :param member: runs the step still.
    """
    orphan = orphaned_create(claim)
    if orphan is None:
        return
    orphan_here = replace(orphan, task=replace(orphan.task, member=member))
    database.write(lambda conn: orphans.record_detached(conn, orphan_here, now=now), brief=True)


def record_expired(conn: Connection, task: Task, *, now: float) -> None:
    """Store which resource the step of a task may still make whose claim was revoked."""
    claim = claims.read(conn, task)
    orphan = None if claim is None else orphaned_create(claim)
    if orphan is not None:
        orphans.record(conn, orphan, now=now)
