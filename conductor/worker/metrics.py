"""What the work pipeline counts."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ...db.ids import TaskId
from ...db.states import redelivery_delay
from ...db.work.claim import Claim
from ...observe import metrics
from ...observe.recorder import Recorder
from ..steps.outcomes import StepResult
from .claimed import ClaimedTask


@dataclass(frozen=True)
class WorkMetrics:
    """For the mover's thread, but for `dropped`."""

    recorder: Recorder

    def dropped(self, hints: int) -> None:
        """Hints that did not fit; from any thread."""
        self.recorder.add(metrics.HINTS_DROPPED, amount=hints)

    def exchanged(
        self, claims: Sequence[Claim], wanted: Collection[TaskId], *, began: float, ended: float
    ) -> None:
        """A transaction took so long; of the claims those that hints announced waited since the last hint."""
        self.recorder.observe(metrics.COMMIT, value=ended - began)
        hinted = set(wanted)
        for task in (claim.task for claim in claims):
            if task.id in hinted and task.due_at is not None:
                ready_at = task.due_at - redelivery_delay(task.redelivered)
                self.recorder.observe(metrics.CLAIM_WAIT, value=ended - ready_at)

    def stored(self, result: StepResult, held: ClaimedTask | None) -> None:
        """A result counts."""
        outcome, task = result.outcome, result.claim.task
        assert outcome is not None
        self.recorder.add(metrics.RESULTS, task.kind, outcome.state)
        if result.timed_out:
            self.recorder.add(metrics.TIMEOUTS, "resource")
        if held is not None and held.stop.is_set():
            self.recorder.add(metrics.CANCELS_ANSWERED, "given_up" if held.given_up else "stopped")

    def asked(self) -> None:
        """A task is to stop."""
        self.recorder.add(metrics.CANCELS_ASKED)

    def not_held(self, claims: int) -> None:
        """Tasks that were to stop were not ours."""
        self.recorder.add(metrics.CANCELS_ANSWERED, "not_held", amount=claims)

    def refused(self) -> None:
        """A result came too late."""
        self.recorder.add(metrics.REFUSED)
