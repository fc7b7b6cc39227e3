"""Steps of tasks that were lost with conductors: see db/work/losses.py."""

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
from ..steps.outcomes import StepResult
from .unstorable import LockedOut

LOG = logging.getLogger(__name__)
Json = typing.Any
NEXT_TRY = 1.0
"""Seconds until a step is tried again that has to wait for another one, or for the database."""


class Quarantine:
    """Lets steps of suspects begin, and forgets their losses when steps of them have ended.

    `run` is called by the threads of the pool, `forget` by the mover's, `leave` by any.

    :param most: losses at which a task fails.
    :param fail: makes the result of a task that fails for that.
    """

    def __init__(
        self,
        database: Database,
        most: int,
        fail: Callable[[Claim, Claimant], StepResult],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._fail = fail
        self._most = most
        self._lock = threading.Lock()
        self._alone: tuple[TaskId, int] | None = None
        self._cleared: collections.deque[TaskId] = collections.deque()
        self._locked: LockedOut[TaskId] = LockedOut(monotonic, lambda task_id: task_id)

    def run(self, claim: Claim, who: Claimant, step: Callable[[], StepResult], progress: Json) -> StepResult:
        """Run the step; or return that it has to be tried again a little later.

        :param progress: the token for that.
        """
        if not claim.task.losses:
            return step()
        if len(losses.hosts(claim.task)) >= self._most:
            return self._fail(claim, who)
        if not losses.is_last_chance(claim.task, self._most):
            return self._cleared_by(step())
        wait = StepResult(claim, None, look_after=NEXT_TRY, progress=progress)
        if not self._enter(claim):
            return wait
        try:
            return self._cleared_by(step()) if self._announced(claim, who.member) else wait
        finally:
            self.leave(claim)

    def leave(self, claim: Claim) -> None:
        """Let the next suspect's step begin: this one has ended, or nobody counts on its end any more."""
        with self._lock:
            if self._alone == (claim.task.id, claim.task.attempt):
                self._alone = None

    def forget(self, who: Claimant) -> None:
        """Store of which tasks steps have ended without a result to be stored.

        :raises Unavailable: it is tried again.
        """
        ids = [self._cleared.popleft() for _ in range(len(self._cleared))]
        for _ in self._locked.run(
            self._database, ids, lambda conn, part: losses.forget(conn, part, who.member)
        ):
            pass

    def next_at(self) -> float | None:
        """Return the moment at which locked rows are tried again; None: there are none."""
        return self._locked.next_at()

    def _enter(self, claim: Claim) -> bool:
        with self._lock:
            if self._alone is not None:
                return False
            self._alone = (claim.task.id, claim.task.attempt)
            return True

    def _announced(self, claim: Claim, member: MemberId) -> bool:
        try:
            held = self._database.write(lambda conn: losses.announce(conn, claim.task, member))
        except Unavailable as error:
            LOG.warning("Task %s waits, the database is unavailable: %s", claim.task.id, error)
            return False
        if held:
            told = "Task %s runs alone among suspects: it was running on %s, which died or went silent"
            LOG.warning(told, claim.task.id, " and ".join(losses.hosts(claim.task)))
        return bool(held)

    def _cleared_by(self, result: StepResult) -> StepResult:
        """The transaction that stores an outcome forgets the losses by itself."""
        if result.outcome is None:
            self._cleared.append(result.claim.task.id)
        return replace(result, claim=replace(result.claim, task=replace(result.claim.task, losses=None)))
