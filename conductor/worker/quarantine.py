"""Decides whether a step may run: not in a name that is not ours, and not beside others that kill conductors.

See db/work/losses.py for the counts of conductors that were lost.
"""

import collections
import logging
import threading
import time
import typing
from collections.abc import Callable
from dataclasses import replace

from ...db.engine import Database
from ...db.errors import Unavailable
from ...db.ids import MemberId, TaskId
from ...db.work import losses
from ...db.work.claim import Claim, Claimant
from ..steps.results import StepResult, Steps
from .claimed import ClaimedTask, ClaimKey, claim_key
from .unstorable import LockedOut

LOG = logging.getLogger(__name__)
Json = typing.Any
UNSURE = 1.0
"""Seconds until a step is retried that did not run because our membership was in doubt."""
NEXT_TRY = 1.0
"""Seconds until a step is retried that has to wait for another one, or for the database."""


class Quarantine:
    """Lets steps run, those of tasks with which conductors were lost one at a time at the end.

    The threads of the pool call `run`, the work loop `forget` and `leave`.

    :ivar cleared: tasks whose losses are to be forgotten.
    :param most: lost conductors at which a task fails.
    :param member: returns our name on the ring at this moment; None: we cannot be sure of it.
    """

    def __init__(
        self,
        steps: Steps,
        *,
        database: Database,
        most: int,
        member: Callable[[], MemberId | None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._steps = steps
        self._database = database
        self._most = most
        self._member = member
        self._lock = threading.Lock()
        self._alone: ClaimKey | None = None
        self.cleared: collections.deque[TaskId] = collections.deque()
        self.locked: LockedOut[TaskId] = LockedOut(monotonic, lambda task_id: task_id)

    def run(self, held: ClaimedTask, progress: Json, who: Claimant) -> StepResult:
        """Run the step; or return that it has to be retried a little later.

        :param progress: the token to poll with, and to retry with.
        """
        claim = held.claim
        # It may have waited long for its thread, in a process that was paused.  It is not cancelled for that:
        # the name may be ours again before the work loop has missed it.
        if self._member() != who.member:
            return StepResult(claim, None, poll_after=UNSURE, progress=progress)
        if not claim.task.losses:
            return self._steps.run(claim, progress, held.stop, who)
        if len(losses.hosts(claim.task)) >= self._most:
            return self._steps.lost_too_often(claim, who)
        if not losses.is_last_chance(claim.task, self._most):
            return self._clear(self._steps.run(claim, progress, held.stop, who))
        wait = StepResult(claim, None, poll_after=NEXT_TRY, progress=progress)
        if not self._enter(claim):
            return wait
        try:
            if not self._announce(claim, who.member):
                return wait
            return self._clear(self._steps.run(claim, progress, held.stop, who))
        finally:
            self.leave(claim)

    def leave(self, claim: Claim) -> None:
        """Let the next task run alone: the step of this one has ended, or its thread was detached."""
        with self._lock:
            if self._alone == claim_key(claim):
                self._alone = None

    def forget(self, who: Claimant) -> None:
        """Forget the losses of tasks whose steps have ended without a result to be stored.

        :raises Unavailable: it is retried at the next call.
        """
        ids = [self.cleared.popleft() for _ in range(len(self.cleared))]
        for _ in self.locked.run(
            self._database, ids, lambda conn, part: losses.forget(conn, part, who.member)
        ):
            pass

    def _enter(self, claim: Claim) -> bool:
        with self._lock:
            if self._alone is not None:
                return False
            self._alone = claim_key(claim)
            return True

    def _announce(self, claim: Claim, member: MemberId) -> bool:
        """Store that the step runs alone now: if the conductor dies in it, the task is to blame."""
        try:
            held = self._database.write(lambda conn: losses.announce(conn, claim.task, member))
        except Unavailable as error:
            LOG.warning("Task %s waits, the database is unavailable: %s", claim.task.id, error)
            return False
        if held:
            text = "Task %s runs alone in quarantine: it was running on %s, which died or went silent"
            LOG.warning(text, claim.task.id, " and ".join(losses.hosts(claim.task)))
        return bool(held)

    def _clear(self, result: StepResult) -> StepResult:
        """Forget the losses; the transaction that stores an outcome does so by itself."""
        if result.outcome is None:
            self.cleared.append(result.claim.task.id)
        return replace(result, claim=replace(result.claim, task=replace(result.claim.task, losses=None)))
