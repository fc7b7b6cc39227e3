"""Deletes finished traversals with their tasks."""

from collections.abc import Sequence

from sqlalchemy.engine import Connection

from ...db import traversals
from ...db.ids import TraversalId
from ...db.rows import Traversal
from ...db.work import due_tasks
from .context import DutyContext
from .slice_scan import SliceScan

PAGE = 500


class TraversalPurge:
    """Purges each traversal of the slice that ended a while ago, by the index on due_at."""

    interval = 1.0

    def __init__(self, context: DutyContext, *, page: int = PAGE) -> None:
        self._context = context
        self._page = page
        self._scan = SliceScan(context, "Finished traversal")

    def run(self) -> None:
        """Purge all traversals that are due now."""
        now = self._context.clock()

        def read(conn: Connection, after: tuple[float, int]) -> list[Traversal]:
            return traversals.due(conn, now, limit=self._page, after=after)

        pages = self._scan.pages(
            read, start=(0.0, 0), position=lambda due: (due.due_at or 0.0, int(due.id)), size=self._page
        )
        for page in pages:
            traversal_ids = [due.traversal for due in page if self._context.ring.owns(due.shard)]
            for _ in self._scan.run(traversal_ids, _purge, key=str, together=1):
                pass


def _purge(conn: Connection, chunk: Sequence[TraversalId]) -> int:
    return due_tasks.purge_traversal(conn, chunk[0])
