"""Claims in our name: what the database says that we hold, against what is in memory."""

import logging
import time
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ...db.engine import Database
from ...db.errors import RowLocked, Unavailable
from ...db.ids import TaskId, TraversalId
from ...db.work import cancel_answers, tasks
from ...db.work.claim import Claim, Claimant
from ...engine.announce import Hints, announce_all
from ..steps.orphans import keep_stray, late_result
from ..steps.outcomes import StepResult
from .cancellation import Cancellation
from .claimed import ClaimedTasks, claim_lines
from .executor import Workers
from .metrics import WorkMetrics
from .unstorable import LockedOut

LOG = logging.getLogger(__name__)


@dataclass
class Reconciler:
    """Used by the mover's thread.

    What others lock is retried later, and delays nothing else.

    :ivar uncertain: claims may have been made, or lost, that are not known here.
    """

    database: Database
    hints: Hints
    held: ClaimedTasks
    workers: Workers
    stops: Cancellation
    tally: WorkMetrics
    clock: Callable[[], float]
    monotonic: Callable[[], float] = time.monotonic
    uncertain: bool = False
    _claims: LockedOut[tuple[TaskId, int]] = field(init=False)
    _answers: LockedOut[tuple[TaskId, int]] = field(init=False)

    def __post_init__(self) -> None:
        self._claims = LockedOut(self.monotonic, lambda claim: claim)
        self._answers = LockedOut(self.monotonic, lambda claim: claim)

    def next_at(self) -> float | None:
        """Return the moment at which locked rows are tried again; None: there are none."""
        known = [at for at in (self._claims.next_at(), self._answers.next_at()) if at is not None]
        return min(known, default=None)

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
        self.give_back([unfinished.popleft() for _ in range(len(unfinished))])

    def give_back(self, claimed: Sequence[tuple[TaskId, int]]) -> None:
        """Let others go on with these tasks (with attempt).

        :raises Unavailable: they are ours still, and are given back at the next call.
        """
        now = self.clock()
        for part, freed in self._claims.run(
            self.database, claimed, lambda conn, part: tasks.release(conn, part, now=now)
        ):
            for task_id, attempt in part:
                if self.held.has(task_id, attempt):
                    self.held.drop(task_id)
            announce_all(self.hints, freed)

    def answer(self, who: Claimant) -> None:
        """Say of claims that we were asked to stop and do not hold that we do not.

        :raises Unavailable: it is tried again.
        """
        now, asked = self.clock(), list(self.stops.unknown)
        self.stops.unknown.clear()

        def work(conn: Connection, part: Sequence[tuple[TaskId, int]]) -> dict[TraversalId, list[TaskId]]:
            over = [claim for claim in part if not self.workers.runs(*claim)]
            return cancel_answers.answer(conn, who.member, asked=part, over=over, now=now)

        for part, freed in self._answers.run(self.database, asked, work):
            announce_all(self.hints, freed)
            self.tally.not_held(len(part))


def _claim(claim: Claim) -> tuple[TaskId, int]:
    return claim.task.id, claim.task.attempt


Late = tuple[Claim, StepResult | None]


@dataclass
class LateResults:
    """Used by the mover's thread.  What others lock is retried later, and delays nothing else."""

    database: Database
    hints: Hints
    workers: Workers
    stops: Cancellation
    tally: WorkMetrics
    clock: Callable[[], float]
    monotonic: Callable[[], float]
    _locked: LockedOut[Late] = field(init=False)
    _locked_strays: LockedOut[Claim] = field(init=False)

    def __post_init__(self) -> None:
        self._locked = LockedOut(self.monotonic, lambda late: _claim(late[0]))
        self._locked_strays = LockedOut(self.monotonic, _claim)

    def next_at(self) -> float | None:
        """Return the moment at which `keep` is due; None: nothing is locked."""
        return self._locked_strays.next_at()

    def late_at(self) -> float | None:
        """Return the moment at which `take_late` is due; None: nothing is locked."""
        return self._locked.next_at()

    def take_late(self) -> None:
        """Results that came when their tasks were not ours any more: what they have made is removed, unless
        it is still wanted.

        :raises Unavailable: the rest is kept.
        """
        late = self.workers.late
        late.extend(self._locked.due())
        while late:
            claim, result = late.popleft()
            try:
                self._take(claim, result)
            except RowLocked:
                self._locked.put_off((claim, result))
                continue
            except (Unavailable, MemoryError):
                late.appendleft((claim, result))
                raise
            self._locked.done((claim, result))
            self.tally.refused()

    def _take(self, claim: Claim, result: StepResult | None) -> None:
        if self.workers.runs(claim.task.id, claim.task.attempt):  # That it was given up came too late.
            self.stops.strays.append(claim)
            return
        with claim_lines(claim):
            announce_all(self.hints, late_result(self.database, claim, result, now=self.clock()))

    def renamed(self) -> None:
        """We have another name: the old one counts as gone, and with it the steps that were given up."""
        self.stops.strays.extend(held.claim for held in self.workers.running() if held.given_up)

    def keep(self, who: Claimant) -> None:
        """Steps that hang, of tasks that were taken away before they were given up, or under another name:
        if we die before they come back, others look for what they have made.

        :raises Unavailable: the rest is kept.
        """
        strays = self.stops.strays
        strays.extend(self._locked_strays.due())
        while strays:
            claim = strays[0]
            try:
                if self.workers.runs(claim.task.id, claim.task.attempt):
                    with claim_lines(claim):
                        keep_stray(self.database, claim, who.member, now=self.clock())
            except RowLocked:
                self._locked_strays.put_off(claim)
            else:
                self._locked_strays.done(claim)
            strays.popleft()
