"""The metadata that read what another resource shows, brought up to date outside of their own actions.

A signal may change what a resource shows while no action of the stack runs.  The guests of the others poll
their metadata, as cfn-hup does, and would see the old values until the next update.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection

from ...db import resources
from ...db.rows import Resource
from ...db.work.claim import Claim
from ...engine.planning.plan import TaskDefinition
from ...resources.registry import ResourceRegistry
from ...sealing.stored import SealedRowLookup
from ...shapes import Json, JsonMap
from ...template.budget import Budget
from ...template.errors import TemplateError
from ...template.residual import references
from .claimed_writes import StepDatabase
from .stored_values import keeps_signals, metadata_refreshed

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class MetadataOfOthers:
    """Computes the metadata of a stack's other resources again.  Thread-safe."""

    database: StepDatabase
    registry: ResourceRegistry
    clock: Callable[[], float]

    def refresh(self, claim: Claim, changes: JsonMap) -> None:
        """Store the metadata that read attributes of the claim's resource and differ now.

        The transaction holds the lock of the claim, so no action of the stack has begun meanwhile.  What a
        signal changes at the same moment wins: its generation is newer.

        :param changes: columns that the step is about to store of its own resource.
        :raises Cancelled: the claim is not ours any more.
        """
        own = replace(claim.resource, attributes=changes.get("attributes", claim.resource.attributes))

        def store(conn: Connection) -> None:
            of_stack = resources.of_stack(conn, claim.task.stack_id)
            rows = {row.name: row for row in of_stack if row.replaced_by is None} | {own.name: own}
            for row, metadata in self._changed(own, rows):
                resources.set_metadata(
                    conn, row.id, generation=row.generation, metadata=metadata, now=self.clock()
                )

        step_writes = self.database.writes_of(claim)
        step_writes.write(store)

    def _changed(self, own: Resource, rows: Mapping[str, Resource]) -> list[tuple[Resource, Json]]:
        """Return the rows whose metadata differ now, each with the new ones."""
        lookup = SealedRowLookup(rows)
        budget = Budget()  # One for all: the metadata that are left when it is used up stay old.
        changed = []
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
                changed += [(row, metadata)] if metadata != row.metadata else []
        return changed
