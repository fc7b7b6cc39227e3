"""What steps come to whose tasks are not ours any more: what they make must not be forgotten."""

from collections.abc import Callable
from dataclasses import dataclass

from ..db.claims import Claim, Claimant
from ..db.engine import Database
from ..db.errors import Unavailable
from ..traversal.hints import Hints, announce_all
from .attempt import StepResult
from .holdings import claim_lines
from .leftovers import keep_stray, late_result
from .stops import Stops
from .tally import Tally
from .workers import Workers


@dataclass(frozen=True)
class Strays:
    """Used by the mover's thread."""

    database: Database
    hints: Hints
    workers: Workers
    stops: Stops
    tally: Tally
    clock: Callable[[], float]

    def take_late(self) -> None:
        """Results that came when their tasks were not ours any more: what they have made is removed, unless
        it is still wanted.

        :raises Unavailable: the rest is kept.
        """
        late = self.workers.late
        while late:
            claim, result = late.popleft()
            try:
                self._take(claim, result)
            except (Unavailable, MemoryError):
                late.appendleft((claim, result))
                raise
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
        while strays:
            claim = strays[0]
            if self.workers.runs(claim.task.id, claim.task.attempt):
                with claim_lines(claim):
                    keep_stray(self.database, claim, who.member, now=self.clock())
            strays.popleft()
