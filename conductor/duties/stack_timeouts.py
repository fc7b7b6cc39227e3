"""Duties over stacks: timeouts, and the purge of what is old."""

import logging
import typing
from collections.abc import Callable, Iterable, Sequence

from sqlalchemy.engine import Connection

from ...db import content, events, stacks
from ...db.engine import Database
from ...db.ids import ContentId, StackId
from ...db.stacks import DeletedStack, DueStack
from ...db.work.claim import stack_names
from ...engine import cancel
from ...engine.announce import Hints
from ...observe import metrics
from ...observe.logs import about, named
from ...observe.recorder import SILENT, Recorder
from ..slice import Ring
from .slice_scan import TOGETHER, Bypass

LOG = logging.getLogger(__name__)
T = typing.TypeVar("T")
PAGE = 500
MOST_PAGES = 20
"""Pages of deleted stacks that are purged in one round."""
STAND_IN_AFTER = 0.5
"""Seconds; longer than a living owner takes, which looks every quarter of a second."""
FIRST_SHARD = 0
"""Its owner does what belongs to no stack."""


class StackTimeouts:
    """Ends each stack of the slice whose deadline has passed; the deadline is a column, so it outlives every
    conductor, and the compare-and-swap on the traversal lets it strike once.

    A stack that its owner has left undone for STAND_IN_AFTER is ended by who would own it without that owner:
    so a death makes timeouts hardly later, however long the membership takes to notice it.

    :param grace: seconds in which what runs may end.
    :param is_deputy: whether we are the next owner of a shard.
    """

    interval = 0.25

    def __init__(
        self,
        *,
        database: Database,
        ring: Ring,
        hints: Hints,
        clock: Callable[[], float],
        host: str,
        grace: float,
        is_deputy: Callable[[int], bool] = lambda shard: False,
        recorder: Recorder = SILENT,
    ) -> None:
        self._database = database
        self._ring = ring
        self._hints = hints
        self._clock = clock
        self._host = host
        self._grace = grace
        self._is_deputy = is_deputy
        self._recorder = recorder
        self._bypass = Bypass(database, "The stack that has timed out")

    def run(self) -> None:
        """One round over all deadlines that have passed."""
        now, after = self._clock(), (0.0, "")
        while True:
            page = self._read(now, after)
            mine = [stack for stack in page if self._is_ours(stack, now)]
            self._time_out_all(mine)
            if len(page) < PAGE:
                return
            after = (page[-1].deadline_at, page[-1].id)

    def _is_ours(self, stack: DueStack, now: float) -> bool:
        left_undone = now - stack.deadline_at >= STAND_IN_AFTER
        return self._ring.owns(stack.shard) or (left_undone and self._is_deputy(stack.shard))

    def _read(self, now: float, after: tuple[float, str]) -> list[DueStack]:
        return self._database.read(lambda conn: stacks.due(conn, now, limit=PAGE, after=after))

    def _time_out_all(self, due: Sequence[DueStack]) -> None:
        """Those whose rows others hold stay due: the next rounds come back to them."""
        found = {stack.id: stack for stack in due}

        def work(conn: Connection, part: Sequence[DueStack]) -> cancel.TimedOutStacks:
            now = self._clock()
            return cancel.time_out_all(conn, part, by=self._host, now=now, grace=self._grace)

        for ended in self._bypass.run(due, work, key=lambda stack: stack.id):
            self._tell([found[stack_id] for stack_id in ended.stacks], ended)

    def _tell(self, stacks_ended: Sequence[DueStack], ended: cancel.TimedOutStacks) -> None:
        now = self._clock()
        self._recorder.add(metrics.TIMEOUTS, "stack", amount=len(stacks_ended))
        for stack in stacks_ended:
            self._recorder.observe(metrics.DUE_LAG, "stack", value=now - stack.deadline_at)
        self._log(stacks_ended)
        cancel.announce_timed_out(self._hints, ended)

    def _log(self, ended: Iterable[DueStack]) -> None:
        found = {stack.id: stack for stack in ended}
        if not found:
            return
        names = self._database.read(lambda conn: stack_names(conn, found))
        for stack in found.values():
            _, tenant = names.get(stack.id, ("", None))
            with about(request=named(None, stack.traversal), project=tenant, stack=stack.id):
                LOG.info("The stack's time is over: what it did has failed")


class StackPurge:
    """Forgets stacks that were deleted long ago, old events of stacks that have many, and contents nobody
    uses.

    :param keep: seconds a deleted stack stays visible with ``--deleted``.
    :param keep_events: of each stack that many are kept at the most; 0: all of them.
    """

    interval = 60.0

    def __init__(
        self,
        *,
        database: Database,
        ring: Ring,
        clock: Callable[[], float],
        keep: float,
        keep_events: int = 0,
    ) -> None:
        self._database = database
        self._ring = ring
        self._clock = clock
        self._keep = keep
        self._keep_events = keep_events
        self._swept: ContentId | None = None
        self._bypass = Bypass(database, "The deleted stack")
        self._trimming = Bypass(database, "The list of events of stack")
        self._sweeping = Bypass(database, "One of the templates behind")

    def keep(self, *, deleted: float, events: int) -> None:
        """Keep other amounts from the next round on."""
        self._keep, self._keep_events = deleted, events

    def run(self) -> None:
        """One round."""
        self._purge_deleted()
        if self._keep_events:
            self._trim_events()
        if self._ring.owns(FIRST_SHARD):
            self._sweep_contents()

    def _purge_deleted(self) -> None:
        """All that the scan finds while some of it is ours: the others' part goes when they come to it."""
        before, after = self._clock() - self._keep, (0.0, "")
        for _ in range(MOST_PAGES):
            old = self._old(before, after)
            mine = [stack.id for stack in old if self._ring.owns(stack.shard)]
            purged = sum(self._bypass.run(mine, _purge, key=str))
            if purged:
                LOG.info("%d deleted stacks were purged", purged)
            if not mine or len(old) < PAGE:
                return
            after = (old[-1].deleted_at, old[-1].id)

    def _old(self, before: float, after: tuple[float, str]) -> list[DeletedStack]:
        return self._database.read(lambda conn: stacks.deleted_before(conn, before, limit=PAGE, after=after))

    def _trim_events(self) -> None:
        """Only stacks to which something happened since the last round can have too many; two rounds back,
        for the slice may have moved since."""
        since = self._clock() - 2 * self.interval
        recent = self._database.read(lambda conn: events.stacks_since(conn, since))
        mine = [stack_id for stack_id, shard in recent if self._ring.owns(shard)]
        for part in _parts(mine, PAGE):
            for stack_id in self._crowded(part):
                self._trim(stack_id)

    def _crowded(self, stack_ids: Sequence[StackId]) -> list[StackId]:
        return self._database.read(lambda conn: events.crowded_among(conn, stack_ids, self._keep_events))

    def _trim(self, stack_id: StackId) -> None:
        most = self._keep_events

        def work(conn: Connection, part: Sequence[StackId]) -> int:
            return events.keep_newest(conn, part[0], most)

        gone = sum(self._trimming.run([stack_id], work, key=str))
        if gone:
            names = self._database.read(lambda conn: stack_names(conn, [stack_id]))
            with about(project=names.get(stack_id, ("", None))[1], stack=stack_id):
                LOG.info("%d old events were removed", gone)

    def _sweep_contents(self) -> None:
        """One part; the next round goes on behind it, and begins anew behind the last."""
        now = self._clock()

        def work(conn: Connection, after: Sequence[ContentId | None]) -> tuple[int, ContentId | None]:
            return content.purge_unused(conn, now, limit=PAGE, after=after[0])

        for gone, swept in self._sweeping.run([self._swept], work, key=str):
            self._swept = swept
            if gone:
                LOG.info("%d templates that no stack uses were removed", gone)


def _purge(conn: Connection, stack_ids: Sequence[StackId]) -> int:
    stacks.purge(conn, stack_ids)
    return len(stack_ids)


def _parts(found: Sequence[T], size: int = TOGETHER) -> Iterable[Sequence[T]]:
    return (found[start : start + size] for start in range(0, len(found), size))
