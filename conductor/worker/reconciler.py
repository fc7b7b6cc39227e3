"""Keeps the database and this process agreed on claims: unknown ones, unanswered ones, and late results."""

import collections
import logging
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field

from sqlalchemy.engine import Connection

from ...db.engine import Database
from ...db.errors import RowLocked, Unavailable
from ...db.rows import ReadyTasks
from ...db.work import member_claims, tasks
from ...db.work.claim import Claim, Claimant
from ...engine.context import Hints, announce
from ..steps.orphans import record_hung, resolve_late
from ..steps.results import StepResult
from .claimed import ClaimedTasks, ClaimEvent, ClaimKey, claim_key, log_context
from .executor import WorkMetrics
from .unstorable import LockedOut

LOG = logging.getLogger(__name__)


@dataclass
class Reconciler:
    """Requeues claims, and answers for those that are not ours.  For the thread of the work loop.

    Claims that others lock are retried later, and delay nothing else.

    :ivar runs: returns whether a step of the claim has not ended.
    :ivar uncertain: claims may have been made, or lost, that are not known here.
    :ivar unanswered: claims to be answered for: they are not ours.
    :ivar unfinished: claims to be requeued: no step could start for them, or it ended without a result.
    """

    database: Database
    hints: Hints
    held: ClaimedTasks
    runs: Callable[[ClaimKey], bool]
    metrics: WorkMetrics
    clock: Callable[[], float]
    monotonic: Callable[[], float]
    uncertain: bool = False
    unfinished: collections.deque[ClaimKey] = field(default_factory=collections.deque)
    unanswered: list[ClaimKey] = field(default_factory=list)
    locked_claims: LockedOut[ClaimKey] = field(init=False)
    locked_answers: LockedOut[ClaimKey] = field(init=False)

    def __post_init__(self) -> None:
        self.locked_claims = LockedOut(self.monotonic, lambda key: key)
        self.locked_answers = LockedOut(self.monotonic, lambda key: key)

    def repair(self, known: Set[ClaimKey]) -> None:
        """Let go of claims that an error in the work loop has lost; `reconcile` requeues them.

        :param known: claims with a step, a timer or a result.
        """
        self.uncertain = True
        lost = [held for held in self.held.all() if held.key not in known]
        for held in lost:
            self.held.remove(held, ClaimEvent.LOSE)
        LOG.warning("The work loop continues after an error, %d claims are requeued", len(lost))

    def reconcile(self, who: Claimant) -> None:
        """Requeue claims in our name that are unfinished, or unknown here, and answer for those not ours.

        :raises Unavailable: it is retried at the next call.
        """
        if self.unfinished or self.locked_claims.retries:
            self.requeue([self.unfinished.popleft() for _ in range(len(self.unfinished))])
        if self.uncertain:
            claimed = self.database.read(lambda conn: tasks.claimed_by(conn, who.member))
            keys = [(task_id, attempt) for task_id, attempt, _ in claimed]
            if unknown := [key for key in keys if self.held.get(key) is None]:
                self.requeue(unknown)
            self.uncertain = False
        if self.unanswered or self.locked_answers.retries:
            self._answer(who)

    def requeue(self, claims: Sequence[ClaimKey]) -> None:
        """Let others claim these tasks.

        :raises Unavailable: the claims are ours still, and are requeued at the next call.
        """
        now = self.clock()
        for part, freed in self.locked_claims.run(
            self.database, claims, lambda conn, part: member_claims.release(conn, part, now=now)
        ):
            for key in part:
                if (held := self.held.get(key)) is not None:
                    self.held.remove(held, ClaimEvent.LOSE)
            announce(self.hints, freed)

    def _answer(self, who: Claimant) -> None:
        """Store of claims that we were asked to cancel, and do not hold, that nobody has to wait for us."""
        now = self.clock()
        asked = list(self.unanswered)
        self.unanswered.clear()

        def work(conn: Connection, part: Sequence[ClaimKey]) -> ReadyTasks:
            over = [key for key in part if not self.runs(key)]
            return member_claims.answer(conn, who.member, requested=part, over=over, now=now)

        for part, freed in self.locked_answers.run(self.database, asked, work):
            announce(self.hints, freed)
            self.metrics.not_held(len(part))


Late = tuple[Claim, StepResult | None]


@dataclass
class LateResults:
    """Results of steps whose claims are not ours any more: what they have made must not be forgotten.

    For the thread of the work loop.  What others lock is retried later, and delays nothing else.

    :ivar runs: returns whether a step of the claim has not ended.
    :ivar results: each with its claim; None: the step ended without one.
    :ivar hung: claims that are not ours any more, and whose steps hang on detached threads.
    """

    database: Database
    hints: Hints
    runs: Callable[[ClaimKey], bool]
    metrics: WorkMetrics
    clock: Callable[[], float]
    monotonic: Callable[[], float]
    results: collections.deque[Late] = field(default_factory=collections.deque)
    hung: collections.deque[Claim] = field(default_factory=collections.deque)
    locked_results: LockedOut[Late] = field(init=False)
    locked_hung: LockedOut[Claim] = field(init=False)

    def __post_init__(self) -> None:
        self.locked_results = LockedOut(self.monotonic, lambda late: claim_key(late[0]))
        self.locked_hung = LockedOut(self.monotonic, claim_key)

    def resolve(self) -> None:
        """Have removed what late results have made, unless it is needed.

        :raises Unavailable: the rest is kept.
        """
        late = self.results
        late.extend(self.locked_results.due())
        while late:
            claim, result = late.popleft()
            try:
                self._resolve(claim, result)
            except RowLocked:
                self.locked_results.retry_later((claim, result))
                continue
            except (Unavailable, MemoryError):
                late.appendleft((claim, result))
                raise
            self.locked_results.done((claim, result))
            self.metrics.refused()

    def _resolve(self, claim: Claim, result: StepResult | None) -> None:
        if self.runs(claim_key(claim)):  # It is the result of a detached step's task: the step hangs still.
            self.hung.append(claim)
            return
        with log_context(claim):
            announce(self.hints, resolve_late(self.database, claim, result, now=self.clock()))

    def record(self, who: Claimant) -> None:
        """Store which steps hang whose claims are not ours any more.

        If this process dies before they return, others search for what they have made.

        :raises Unavailable: the rest is kept.
        """
        self.hung.extend(self.locked_hung.due())
        while self.hung:
            claim = self.hung[0]
            try:
                if self.runs(claim_key(claim)):
                    with log_context(claim):
                        record_hung(self.database, claim, who.member, now=self.clock())
            except RowLocked:
                self.locked_hung.retry_later(claim)
            else:
                self.locked_hung.done(claim)
            self.hung.popleft()
