"""The attributes that signals change, and the metadata that read them, stored outside of updates.

A signal may change what a resource shows while no action gives the others new properties.  The guests of the
others poll their metadata, as cfn-hup does, and would see the old values until the next update.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection

from ...db import resources
from ...db.rows import Resource
from ...db.states import ACTING, SIGNALLED, Status, TaskKind, TaskState
from ...engine.planning.plan import TaskDefinition
from ...engine.stored_resource import keeps_signals, metadata_refreshed
from ...resources.contract.errors import RetryableError
from ...resources.registry import ResourceRegistry
from ...sealing.stored import SealedRowLookup
from ...shapes import Json, JsonMap
from ...template.budget import Budget, new_budget
from ...template.errors import TemplateError
from ...template.residual import references
from .claimed_writes import StepDatabase
from .results import StepResult

LOG = logging.getLogger(__name__)
ENDED_BY_SIGNALS = SIGNALLED | ACTING
"""Kinds of tasks that may end by a signal, and that give no resource new properties.

Actions do so on deployments only, whose outputs are signals.
"""
SHOWN = ("data", "attributes", "reference_id")
"""Columns of what a resource shows others."""


@dataclass(frozen=True)
class SignalledValues:
    """Stores what a signal has changed.  Thread-safe."""

    database: StepDatabase
    registry: ResourceRegistry
    clock: Callable[[], float]

    def store(self, result: StepResult) -> StepResult:
        """Store what follows from a step's result; return the result as it is to be stored.

        The transaction holds the lock of the claim, so a step that has lost its claim stores nothing.  What a
        signal changes at the same moment wins: its generation is newer.  An action on another resource that
        begins at this moment may give it the attributes of before; the next signal, or update, corrects that.

        :raises Cancelled: the claim is not ours any more.
        :raises RetryableError: another signal has changed the resource since it was claimed.
        """
        claim = result.claim
        outcome = result.outcome
        if outcome is None or outcome.state != TaskState.DONE:
            return result
        if claim.task.kind in ACTING and not self.registry.is_deployment(claim.resource.plugin):
            return result
        is_request = claim.task.kind == TaskKind.SIGNAL
        changes = {name: outcome.changes[name] for name in SHOWN if name in outcome.changes}
        own = replace(claim.resource, **changes)
        if is_request:  # An action on the resource may be in progress, and has the row.
            result = replace(result, outcome=replace(outcome, changes={}))
        if own == claim.resource:
            return result

        def write(conn: Connection) -> None:
            if is_request and not _store_own(conn, claim.resource, changes):
                return
            of_stack = resources.of_stack(conn, claim.task.stack_id)
            rows = {row.name: row for row in of_stack if row.replaced_by is None} | {own.name: own}
            for row, metadata in self._changed(own, rows):
                resources.set_metadata(
                    conn, row.id, generation=row.generation, metadata=metadata, now=self.clock()
                )

        step_writes = self.database.writes_of(claim)
        step_writes.write(write)
        return result

    def _changed(self, own: Resource, rows: Mapping[str, Resource]) -> list[tuple[Resource, Json]]:
        """Return the rows whose metadata differ now, each with the new ones."""
        # One budget for all: the metadata that are left when it is used up stay old.
        with new_budget() as budget:
            return list(self._refreshed(own, rows, budget))

    def _refreshed(
        self, own: Resource, rows: Mapping[str, Resource], budget: Budget
    ) -> Iterator[tuple[Resource, Json]]:
        lookup = SealedRowLookup(rows)
        for row in rows.values():
            if row.metadata is None or row.id == own.id:
                continue
            template = TaskDefinition.from_json(row.definition).metadata
            sources = {reference.resource for reference in references(template)}
            if own.name not in sources or not sources <= rows.keys():
                continue
            if keeps_signals(self.registry.get(row.plugin)):
                continue
            try:
                metadata = metadata_refreshed(row.metadata, template, lookup, budget)
            except TemplateError:
                LOG.warning("Resource %s/%s: its metadata cannot be computed", row.stack_id, row.name)
            else:
                if metadata != row.metadata:
                    yield row, metadata


def _store_own(conn: Connection, claimed: Resource, changes: JsonMap) -> bool:
    """Store what the claimed resource shows; return False if its own action is about to do that.

    The row is locked first.  Of two signals at once the later one to commit is read again: its step may have
    read less than the other one has stored.

    :raises RetryableError: another step has changed the row since it was claimed.
    """
    resources.advance_generation(conn, claimed.id)
    row = resources.by_ids(conn, [claimed.id]).get(claimed.id)
    if row is None or row.replaced_by is not None or row.status == Status.IN_PROGRESS:
        return False
    if any(getattr(row, name) != getattr(claimed, name) for name in (*SHOWN, "properties", "physical_id")):
        raise RetryableError("another signal has changed the resource meanwhile")
    resources.change_many(conn, {claimed.id: changes})
    return True
