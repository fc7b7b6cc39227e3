"""The result of a step, and the calls of the worker to the steps: values apart from those who make them."""

import threading
import typing
from dataclasses import dataclass

from ...db.rows import Outcome
from ...db.work.claim import Claim, Claimant
from ...shapes import Json


@dataclass(frozen=True)
class StepResult:
    """The result of one step, or of the event that ended it.

    :ivar claim: with the resource as it is after the step, for the next poll.
    :ivar outcome: is to be stored; None: nothing has changed, the task waits for its next poll.
    :ivar poll_after: seconds until the next poll, for a task that this conductor keeps.
    :ivar progress: token for that poll.
    :ivar timed_out: the resource's timeout has passed.
    :ivar detached: the step did not stop, so its thread was detached.
    :ivar keeps_claim: the outcome is progress only: the task stays with this conductor, which polls it next.
    """

    claim: Claim
    outcome: Outcome | None
    poll_after: float | None = None
    progress: Json = None
    timed_out: bool = False
    detached: bool = False
    keeps_claim: bool = False


class Steps(typing.Protocol):
    """Runs steps of claimed tasks, and makes the results of those that cannot run.  Thread-safe."""

    def run(self, claim: Claim, progress: Json, stop: threading.Event, who: Claimant) -> StepResult:
        """Run the next step of the claim, in a thread of the pool; never raises.

        :param progress: the token to poll with; None: the stored token, or a start if there is none.
        :param stop: set when the step is to end.
        """

    def has_cancel(self, claim: Claim) -> bool:
        """Return whether the resource type has something to do when its action is cancelled."""

    def cancel(self, claim: Claim, who: Claimant) -> StepResult:
        """Cancel the action of a task between two polls, in a thread of the pool; never raises."""

    def cancelled(self, claim: Claim, who: Claimant) -> StepResult:
        """Return the result of a task that is cancelled between two polls, without a call to its type."""

    def detached(self, claim: Claim, who: Claimant) -> StepResult:
        """Return the result of a task whose step did not stop."""

    def lost_too_often(self, claim: Claim, who: Claimant) -> StepResult:
        """Return the result of a task with which too many conductors were lost."""

    def unstorable(self, claim: Claim, who: Claimant) -> StepResult:
        """Return the result of a task whose own result cannot be stored."""
