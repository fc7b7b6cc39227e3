"""Claims in our name: what the database says that we hold, against what is in memory."""

import logging
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

import sqlalchemy as sa

from ..db import answers, tasks
from ..db.claims import Claim, Claimant
from ..db.engine import Database
from ..db.errors import Unavailable
from ..db.ids import TaskId
from ..traversal.hints import Hints, announce_all
from .holdings import Holdings
from .stops import Stops
from .tally import Tally
from .workers import Workers

LOG = logging.getLogger(__name__)


@dataclass
class Reconciler:
    """Used by the mover's thread.

    :ivar uncertain: claims may have been made, or lost, that are not known here.
    """

    database: Database
    hints: Hints
    held: Holdings
    workers: Workers
    stops: Stops
    tally: Tally
    clock: Callable[[], float]
    uncertain: bool = False

    def repair(self, kept: Set[tuple[TaskId, int]]) -> None:
        """After an error in the work loop: forget what nothing would ever bring back to it, so that
        `reconcile` gives it back, and count anew.

        :param kept: claims (task, attempt) whose results wait elsewhere.
        """
        self.uncertain = True
        known = {_claim(held.claim) for held in self.workers.running()} | kept | self.held.timed()
        # Read after those that run: a step that ends meanwhile is in one of them.
        known |= {_claim(result.claim) for result in list(self.workers.results)}
        lost = [held for held in self.held.all() if _claim(held.claim) not in known]
        for held in lost:
            self.held.drop(held.claim.task.id)
        self.workers.recount()
        self.stops.restore()
        LOG.warning("The work loop goes on after an error; %d claims are given back", len(lost))

    def database_answers(self) -> bool:
        """Return whether the database answers; may take long."""
        try:
            self.database.read(lambda conn: conn.execute(sa.select(1)).scalar())
        except Unavailable as error:
            LOG.warning("The database is unavailable still: %s", error)
            return False
        return True

    def reconcile(self, who: Claimant) -> None:
        """Give back claims in our name that we do not know of; nothing while all are known.

        :raises Unavailable: it is tried again.
        """
        if not self.uncertain:
            return
        claimed = self.database.read(lambda conn: tasks.claims_of(conn, who.member))
        self.give_back([(i, attempt) for i, attempt, _ in claimed if not self.held.has(i, attempt)])
        self.uncertain = False

    def give_back_unfinished(self) -> None:
        """Give back what no step could begin for, or what a step has broken at.

        :raises Unavailable: it is tried again.
        """
        unfinished = self.workers.unfinished
        if claims := list(unfinished):
            self.give_back(claims)
            for _ in claims:
                unfinished.popleft()

    def give_back(self, claimed: Sequence[tuple[TaskId, int]]) -> None:
        """Let others go on with these tasks (with attempt).

        :raises Unavailable: they are ours still.
        """
        if not claimed:
            return
        now = self.clock()
        freed = self.database.write(lambda conn: tasks.release(conn, claimed, now=now))
        for task_id, attempt in claimed:
            if self.held.has(task_id, attempt):
                self.held.drop(task_id)
        announce_all(self.hints, freed)

    def answer(self, who: Claimant) -> None:
        """Say of claims that we were asked to stop and do not hold that we do not.

        :raises Unavailable: it is tried again.
        """
        asked = list(self.stops.unknown)
        if not asked:
            return
        over = [claim for claim in asked if not self.workers.runs(*claim)]
        now = self.clock()
        freed = self.database.write(
            lambda conn: answers.answer(conn, who.member, asked=asked, over=over, now=now)
        )
        announce_all(self.hints, freed)
        self.tally.not_held(len(asked))
        del self.stops.unknown[: len(asked)]


def _claim(claim: Claim) -> tuple[TaskId, int]:
    return claim.task.id, claim.task.attempt
