"""What steps come to whose tasks are not ours any more: what they make must not be forgotten."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ...db.engine import Database
from ...db.errors import RowLocked, Unavailable
from ...db.ids import TaskId
from ...db.work.claim import Claim, Claimant
from ...engine.announce import Hints, announce_all
from ..steps.outcomes import StepResult
from .cancellation import Cancellation
from .claimed import claim_lines
from .executor import Workers
from .locked_out import LockedOut
from .metrics import WorkMetrics
from .orphans import keep_stray, late_result

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
        self._locked = LockedOut(self.monotonic, lambda late: _key(late[0]))
        self._locked_strays = LockedOut(self.monotonic, _key)

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


def _key(claim: Claim) -> tuple[TaskId, int]:
    return claim.task.id, claim.task.attempt
