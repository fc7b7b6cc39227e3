"""Duties over stacks: timeouts, and the purge of deleted ones."""

import logging
from collections.abc import Callable

from ...db import stacks
from ...db.engine import Database
from ...db.stacks import DueStack
from ...traversal import ending
from ...traversal.hints import Hints
from ..slice import Ring

LOG = logging.getLogger(__name__)
PAGE = 500


class StackTimeouts:
    """Ends each stack of the slice whose deadline has passed; the deadline is a column, so it outlives every
    conductor, and the compare-and-swap on the traversal lets it strike once."""

    interval = 0.5

    def __init__(
        self, *, database: Database, ring: Ring, hints: Hints, clock: Callable[[], float], host: str
    ) -> None:
        self._database = database
        self._ring = ring
        self._hints = hints
        self._clock = clock
        self._host = host

    def run(self) -> None:
        """One round over all deadlines that have passed."""
        now, after = self._clock(), (0.0, "")
        while True:
            page = self._read(now, after)
            for stack in page:
                if self._ring.owns(stack.shard):
                    self._time_out(stack, now)
            if len(page) < PAGE:
                return
            after = (page[-1].deadline_at, page[-1].id)

    def _read(self, now: float, after: tuple[float, str]) -> list[DueStack]:
        return self._database.read(lambda conn: stacks.due(conn, now, limit=PAGE, after=after))

    def _time_out(self, stack: DueStack, now: float) -> None:
        ended = self._database.write(lambda conn: ending.time_out(conn, stack, by=self._host, now=now))
        if ended:
            LOG.info("Stack %s timed out", stack.id)
            self._hints.cancel(stack.traversal)


class StackPurge:
    """Forgets stacks that were deleted long ago, their events, and contents nobody uses.

    :param keep: seconds a deleted stack stays visible with ``--deleted``.
    """

    interval = 60.0

    def __init__(self, *, database: Database, ring: Ring, clock: Callable[[], float], keep: float) -> None:
        self._database = database
        self._ring = ring
        self._clock = clock
        self._keep = keep

    def run(self) -> None:
        """One batch."""
        before = self._clock() - self._keep
        old = self._database.read(lambda conn: stacks.deleted_before(conn, before, limit=PAGE))
        mine = [stack_id for stack_id, shard in old if self._ring.owns(shard)]
        if mine:
            self._database.write(lambda conn: stacks.purge(conn, mine))
            LOG.info("%d deleted stacks were purged", len(mine))
