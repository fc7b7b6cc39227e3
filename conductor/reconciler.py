"""Claims in our name: what the database says that we hold, against what is in memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..db import answers, tasks
from ..db.claims import Claimant
from ..db.engine import Database
from ..db.ids import TaskId
from ..traversal.hints import Hints, announce_all
from .holdings import Holdings
from .stops import Stops
from .tally import Tally
from .workers import Workers


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

    def reconcile(self, who: Claimant) -> None:
        """Give back claims in our name that we do not know of; nothing while all are known.

        :raises Unavailable: it is tried again.
        """
        if not self.uncertain:
            return
        claimed = self.database.read(lambda conn: tasks.claims_of(conn, who.member))
        self.give_back([(i, attempt) for i, attempt, _ in claimed if not self.held.has(i, attempt)])
        self.uncertain = False

    def give_back(self, claimed: Sequence[tuple[TaskId, int]]) -> None:
        """Let others go on with these tasks (with attempt).

        :raises Unavailable: they are ours still.
        """
        if not claimed:
            return
        now = self.clock()
        freed = self.database.write(lambda conn: tasks.release(conn, claimed, now=now))
        for task_id, _ in claimed:
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
