"""Removes deleted stacks, old events, unused templates and servers without deployments from the database."""

import itertools
import logging
import typing
from collections.abc import Iterable, Sequence

from sqlalchemy.engine import Connection

from ...db import content, events, software, stacks
from ...db.ids import ContentId, StackId
from ...db.software import ServerKey
from ...db.stacks import DeletedStack
from ...db.work.claim import stack_names
from ...observe.logs import about
from .context import FIRST_SHARD, DutyContext
from .slice_scan import SliceScan

LOG = logging.getLogger(__name__)
T = typing.TypeVar("T")
PAGE = 500
MOST_PAGES = 20
"""Pages of deleted stacks that are purged in one round."""
KEEP_SERVERS = 86400.0
"""Seconds for which a server without software deployments is kept, after its last one."""


class StackPurge:
    """Purges stacks that were deleted long ago, old events of stacks that have many, and unused templates."""

    interval = 60.0

    def __init__(self, context: DutyContext) -> None:
        self._context = context
        self._swept: ContentId | None = None
        self._stacks = SliceScan(context, "Deleted stack")
        self._events = SliceScan(context, "The list of events of stack")
        self._contents = SliceScan(context, "A template behind")
        self._servers = SliceScan(context, "A server without deployments,")

    def run(self) -> None:
        """Purge each kind."""
        self._purge_deleted()
        if most := self._context.settings().keep_events:
            self._trim_events(most)
        if self._context.ring.owns(FIRST_SHARD):
            self._sweep_contents()
            self._purge_servers()

    def _purge_deleted(self) -> None:
        """Purge until a page holds nothing of the slice: the other conductors purge the rest."""
        context = self._context
        before = context.clock() - context.settings().keep_deleted

        def read(conn: Connection, after: tuple[float, str]) -> list[DeletedStack]:
            return stacks.deleted_before(conn, before, limit=PAGE, after=after)

        pages = self._stacks.pages(
            read, start=(0.0, ""), position=lambda stack: (stack.deleted_at, stack.id), size=PAGE
        )
        for page in itertools.islice(pages, MOST_PAGES):
            stack_ids = [stack.id for stack in page if context.ring.owns(stack.shard)]
            purged = sum(self._stacks.run(stack_ids, _purge, key=str))
            if purged:
                LOG.info("Purged %d deleted stacks", purged)
            if not stack_ids:
                return

    def _trim_events(self, most: int) -> None:
        """Remove old events of recently active stacks.

        Only a stack that wrote events since the last round can have too many.  The scan goes two rounds back,
        because the slice may have moved since the last one.
        """
        context = self._context
        since = context.clock() - 2 * self.interval
        recent = context.database.read(lambda conn: events.stacks_since(conn, since))
        stack_ids = [stack_id for stack_id, shard in recent if context.ring.owns(shard)]
        for chunk in _parts(stack_ids, PAGE):
            for stack_id in self._with_too_many_events(chunk, most):
                self._trim(stack_id, most)

    def _with_too_many_events(self, stack_ids: Sequence[StackId], most: int) -> list[StackId]:
        return self._context.database.read(lambda conn: events.over_limit_among(conn, stack_ids, most))

    def _trim(self, stack_id: StackId, most: int) -> None:
        def trim(conn: Connection, chunk: Sequence[StackId]) -> int:
            return events.keep_newest(conn, chunk[0], most)

        removed = sum(self._events.run([stack_id], trim, key=str))
        if removed:
            names = self._context.database.read(lambda conn: stack_names(conn, [stack_id]))
            name, project = names.get(stack_id, ("", None))
            with about(project=project, stack=stack_id):
                LOG.info("Removed %d old events of stack %s (%s)", removed, name, stack_id)

    def _sweep_contents(self) -> None:
        """Sweep one page; the next round continues behind it, and starts over after the last."""
        now = self._context.clock()

        def purge_unused(conn: Connection, after: Sequence[ContentId | None]) -> tuple[int, ContentId | None]:
            return content.purge_unused(conn, now, limit=PAGE, after=after[0])

        for removed, swept in self._contents.run([self._swept], purge_unused, key=str):
            self._swept = swept
            if removed:
                LOG.info("Removed %d templates that no stack uses", removed)

    def _purge_servers(self) -> None:
        """Purge the rows of servers that have had no software deployment for long."""
        before = self._context.clock() - KEEP_SERVERS

        def forget(conn: Connection, chunk: Sequence[ServerKey]) -> int:
            return software.forget_servers(conn, chunk, before)

        servers = self._context.database.read(lambda conn: software.unused_servers(conn, before, limit=PAGE))
        if removed := sum(self._servers.run(servers, forget, key=str)):
            LOG.info("Removed %d servers that have no software deployment any more", removed)


def _purge(conn: Connection, stack_ids: Sequence[StackId]) -> int:
    stacks.purge(conn, stack_ids)
    return len(stack_ids)


def _parts(stack_ids: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    return (stack_ids[start : start + size] for start in range(0, len(stack_ids), size))
