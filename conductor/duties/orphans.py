"""Releases the claims of conductors that are gone."""

import functools
import logging
from collections.abc import Collection

from ...db import conductors
from ...db.ids import MemberId, TaskId, host_of
from ...db.work import due_tasks, losses, member_claims, orphans, tasks
from ...db.work.losses import Loss
from ...engine.context import announce
from ...observe import metrics
from ...ring.local_member import process_of
from ..slice import Absentees
from .context import DutyContext
from .slice_scan import PAGE, SliceScan

LOG = logging.getLogger(__name__)
MOST_COUNTED = 100
"""Conductors whose losses can be taken back; the oldest are forgotten."""


class Orphans:
    """Releases the claims of members that are gone, so that other conductors run the tasks.

    It runs often, and at once when the membership changes.  While nothing is claimed it scans an empty index.
    """

    interval = 1.0

    def __init__(self, context: DutyContext) -> None:
        self._context = context
        self._absentees = Absentees(patience=context.settings().patience, clock=context.monotonic)
        self._scan = SliceScan(context, "The claim of a conductor that is gone, task")
        self._counted: dict[MemberId, list[TaskId]] = {}

    def run(self) -> None:
        """Release the tasks of the claiming members that are gone."""
        claiming = frozenset(self._context.database.read(tasks.claiming_members))
        present = self._context.ring.present()
        living = {process_of(member) for member in present}
        self._forgive_returned(living)
        for member in sorted(self._absentees.departed(claiming, present)):
            self._release_orphaned_creates(member)
            self._release_claims(member, was_silent=process_of(member) in living)

    def _release_claims(self, member: MemberId, *, was_silent: bool) -> None:
        context = self._context
        claimed = context.database.read(lambda conn: tasks.claimed_by(conn, member))
        claims = [(task_id, attempt) for task_id, attempt, shard in claimed if context.ring.owns(shard)]
        if not claims:
            return
        LOG.warning("Conductor %s died, releasing %d of its tasks to other conductors", member, len(claims))
        loss = None if was_silent else self._loss_of(member)
        if loss is not None:
            self._counted[member] = [task_id for task_id, _ in claims]
            if len(self._counted) > MOST_COUNTED:
                del self._counted[next(iter(self._counted))]
        release = functools.partial(member_claims.release, now=context.clock(), loss=loss)
        for freed in self._scan.run(claims, release, key=lambda claim: claim[0], together=PAGE):
            context.recorder.add(metrics.TAKEOVERS, amount=sum(map(len, freed.values())))
            announce(context.hints, freed)
            if freed:
                # It may have got hints of further tasks, too, and has taken them along.
                hasten = functools.partial(
                    due_tasks.hasten_hints, traversals=list(freed), now=context.clock()
                )
                context.database.write(hasten)

    def _loss_of(self, member: MemberId) -> Loss | None:
        """Return the loss to count; None: the conductor has stopped in good order."""
        if self._context.database.read(lambda conn: conductors.stopped_cleanly(conn, member)):
            return None
        return Loss(host_of(member), self._context.settings().task_losses)

    def _forgive_returned(self, living: Collection[str]) -> None:
        """Take back the losses of conductors whose process is in the group again.

        :param living: the processes of the members, as `process_of` returns them.
        """
        for member in [name for name in self._counted if process_of(name) in living]:
            forgive = functools.partial(losses.forgive, task_ids=self._counted[member], host=host_of(member))
            self._context.database.write(forgive)
            del self._counted[member]

    def _release_orphaned_creates(self, member: MemberId) -> None:
        """Release tasks that wait for the end of a step which died with its conductor."""
        context = self._context
        waiting = context.database.read(lambda conn: orphans.of_member(conn, member))
        task_ids = [task_id for task_id, shard in waiting if context.ring.owns(shard)]
        if task_ids:
            abandon = functools.partial(orphans.abandon, now=context.clock(), member=member)
            for freed in self._scan.run(task_ids, abandon, key=str, together=PAGE):
                announce(context.hints, freed)
