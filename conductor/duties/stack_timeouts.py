"""Fails stacks whose deadline has passed."""

import logging
from collections.abc import Iterable, Sequence

from sqlalchemy.engine import Connection

from ...db import stacks
from ...db.stacks import DueStack
from ...db.work.claim import stack_names
from ...engine import cancel
from ...observe import metrics
from ...observe.logs import about, named
from .context import DutyContext
from .slice_scan import SliceScan

LOG = logging.getLogger(__name__)
PAGE = 500
DEPUTY_AFTER = 0.5
"""Seconds of lateness after which the deputy acts: longer than a living owner takes (interval: 0.25 s)."""


class StackTimeouts:
    """Fails each stack of the slice whose deadline has passed.

    The deadline is a column, so it outlives every conductor.  A compare-and-swap on the traversal makes it
    strike once.

    The deputy of a shard, which owns the shard as soon as its owner is gone, fails a stack that the owner has
    left for DEPUTY_AFTER seconds.  So a death hardly delays timeouts, however long the membership takes to
    notice it.
    """

    interval = 0.25

    def __init__(self, context: DutyContext) -> None:
        self._context = context
        self._scan = SliceScan(context, "Stack that has timed out")

    def run(self) -> None:
        """Fail all stacks of the slice whose deadline has passed."""
        now = self._context.clock()

        def read(conn: Connection, after: tuple[float, str]) -> list[DueStack]:
            return stacks.due(conn, now, limit=PAGE, after=after)

        pages = self._scan.pages(
            read, start=(0.0, ""), position=lambda stack: (stack.deadline_at, stack.id), size=PAGE
        )
        for page in pages:
            self._time_out([stack for stack in page if self._is_ours(stack, now)])

    def _is_ours(self, stack: DueStack, now: float) -> bool:
        ring = self._context.ring
        is_late = now - stack.deadline_at >= DEPUTY_AFTER
        return ring.owns(stack.shard) or (is_late and ring.is_deputy(stack.shard))

    def _time_out(self, due: Sequence[DueStack]) -> None:
        """Fail the stacks; locked ones stay due, and the next rounds retry them."""
        context = self._context
        settings = self._context.settings()
        stacks_by_id = {stack.id: stack for stack in due}

        def time_out(conn: Connection, chunk: Sequence[DueStack]) -> cancel.TimedOutStacks:
            now = context.clock()
            return cancel.time_out_all(conn, chunk, by=settings.host, now=now, grace=settings.cancel_grace)

        for ended in self._scan.run(due, time_out, key=lambda stack: stack.id):
            stacks_ended = [stacks_by_id[stack_id] for stack_id in ended.stacks]
            self._count(stacks_ended)
            self._log(stacks_ended)
            cancel.announce_timed_out(context.hints, ended)

    def _count(self, ended: Sequence[DueStack]) -> None:
        now = self._context.clock()
        recorder = self._context.recorder
        recorder.add(metrics.TIMEOUTS, "stack", amount=len(ended))
        for stack in ended:
            recorder.observe(metrics.DUE_LAG, "stack", value=now - stack.deadline_at)

    def _log(self, ended: Iterable[DueStack]) -> None:
        stacks_by_id = {stack.id: stack for stack in ended}
        if not stacks_by_id:
            return
        names = self._context.database.read(lambda conn: stack_names(conn, stacks_by_id))
        for stack in stacks_by_id.values():
            name, project = names.get(stack.id, ("", None))
            with about(request=named(None, stack.traversal), project=project, stack=stack.id):
                LOG.info("Stack %s (%s) timed out", name, stack.id)
