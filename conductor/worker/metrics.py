"""Counts the work of the work loop."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ...db.ids import TaskId
from ...db.states import redelivery_delay
from ...db.work.claim import Claim
from ...observe import metrics
from ...observe.recorder import Recorder
from ..steps.results import StepResult
from .claimed import ClaimedTask


@dataclass(frozen=True)
class WorkMetrics:
    """The numbers of the work loop.  For its thread; any thread may call `dropped`."""

    recorder: Recorder

    def dropped(self, hints: int) -> None:
        """Count hints that did not fit into the intake."""
        self.recorder.add(metrics.HINTS_DROPPED, amount=hints)

    def exchanged(
        self, claims: Sequence[Claim], hinted: Collection[TaskId], *, began: float, ended: float
    ) -> None:
        """Record how long a transaction took, and how long claims waited since the last hint."""
        self.recorder.observe(metrics.COMMIT, value=ended - began)
        ids = set(hinted)
        for task in (claim.task for claim in claims):
            if task.id in ids and task.due_at is not None:
                ready_at = task.due_at - redelivery_delay(task.redelivered)
                self.recorder.observe(metrics.CLAIM_WAIT, value=ended - ready_at)

    def stored(self, result: StepResult, held: ClaimedTask | None) -> None:
        """Count a result that was stored."""
        outcome, task = result.outcome, result.claim.task
        assert outcome is not None
        self.recorder.add(metrics.RESULTS, task.kind, outcome.state)
        if result.timed_out:
            self.recorder.add(metrics.TIMEOUTS, "resource")
        if held is not None and held.stop.is_set():
            self.recorder.add(metrics.CANCELS_ANSWERED, "given_up" if result.detached else "stopped")

    def asked(self) -> None:
        """Count a task that is cancelled."""
        self.recorder.add(metrics.CANCELS_ASKED)

    def not_held(self, claims: int) -> None:
        """Count tasks that were to be cancelled, and are not ours."""
        self.recorder.add(metrics.CANCELS_ANSWERED, "not_held", amount=claims)

    def refused(self) -> None:
        """Count a late result."""
        self.recorder.add(metrics.REFUSED)
