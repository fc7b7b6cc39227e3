"""A claim in the conductor that has made it: its states, and the events that change them."""

import contextlib
import enum
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...db.ids import TaskId
from ...db.work.claim import Claim
from ...observe import logs
from ...shapes import Json

ClaimKey = tuple[TaskId, int]
"""Task and attempt: the name of one claim."""


class ClaimState(enum.Enum):
    """A state of a claim in the conductor that has made it."""

    CLAIMED = "claimed"  #: its first step was not submitted yet
    RUNNING = "running"  #: its step waits for a thread of the pool, or runs on one
    STOPPING = "stopping"  #: the same, but the step was asked to stop; a grace period runs
    WAITING = "waiting"  #: a timer waits for its next poll
    STORING = "storing"  #: a result waits to be stored
    DETACHED = "detached"  #: its step hangs on a detached thread; the task's failure waits to be stored
    REQUEUING = "requeuing"  #: no thread could run its step, or the step broke: others may claim the task
    LOST = "lost"  #: the claim is not ours any more, but its step has not ended
    HUNG = "hung"  #: the claim is not ours any more, and its step hangs on a detached thread
    CLOSED = "closed"  #: nothing of it is left here


class ClaimEvent(enum.Enum):
    """An event in the life of a claim."""

    START = "start"  #: a step is submitted to the pool
    STOP = "stop"  #: a message, or the task's own timeout, ends it
    RESULT = "result"  #: a step has ended with a result, or none is needed for one
    BREAK = "break"  #: a step has ended, or could not start, without a result
    POLL_LATER = "poll later"  #: nothing is left to do but the next poll
    DETACH = "detach"  #: the grace period is over, and the step hangs
    CLOSE = "close"  #: the database has the result, or refuses it
    LOSE = "lose"  #: the claim was requeued, taken away, or made in a name that is not ours any more


_S = ClaimState
_E = ClaimEvent
TRANSITIONS: Mapping[ClaimState, Mapping[ClaimEvent, ClaimState]] = {
    _S.CLAIMED: {_E.START: _S.RUNNING, _E.LOSE: _S.CLOSED},
    _S.RUNNING: {_E.STOP: _S.STOPPING, _E.RESULT: _S.STORING, _E.BREAK: _S.REQUEUING, _E.LOSE: _S.LOST},
    _S.STOPPING: {
        _E.START: _S.STOPPING,  # The type cancels its action in the cloud: that is a step, too.
        _E.RESULT: _S.STORING,
        _E.BREAK: _S.REQUEUING,
        _E.DETACH: _S.DETACHED,
        _E.LOSE: _S.LOST,
    },
    _S.WAITING: {_E.START: _S.RUNNING, _E.STOP: _S.STOPPING, _E.LOSE: _S.CLOSED},
    _S.STORING: {
        _E.STOP: _S.STORING,  # What has ended is stored; a poll that would follow is stopped.
        _E.POLL_LATER: _S.WAITING,
        _E.CLOSE: _S.CLOSED,
        _E.LOSE: _S.CLOSED,
    },
    # The result of a detached step is refused; the task's failure waits to be stored all the same.
    _S.DETACHED: {_E.RESULT: _S.STORING, _E.BREAK: _S.STORING, _E.CLOSE: _S.HUNG, _E.LOSE: _S.HUNG},
    # A submit that was interrupted by an error may have submitted the step all the same: its result is late.
    _S.REQUEUING: {
        _E.STOP: _S.REQUEUING,
        _E.RESULT: _S.REQUEUING,
        _E.BREAK: _S.REQUEUING,
        _E.LOSE: _S.CLOSED,
    },
    _S.LOST: {_E.RESULT: _S.CLOSED, _E.BREAK: _S.CLOSED, _E.DETACH: _S.HUNG, _E.LOSE: _S.LOST},
    _S.HUNG: {_E.RESULT: _S.CLOSED, _E.BREAK: _S.CLOSED, _E.LOSE: _S.HUNG},
    _S.CLOSED: {_E.RESULT: _S.CLOSED, _E.BREAK: _S.CLOSED, _E.LOSE: _S.CLOSED},
}


def next_state(state: ClaimState, event: ClaimEvent) -> ClaimState:
    """Return the state after the event.

    :raises ValueError: the event is impossible in this state.
    """
    try:
        return TRANSITIONS[state][event]
    except KeyError:
        raise ValueError(f"{event} is impossible for a claim that is {state.value}") from None


@dataclass(eq=False)
class ClaimedTask:
    """A claim, from the moment it is made until nothing of it is left in this process.

    :ivar key: the name of the claim.
    :ivar since: when it was claimed, in seconds since the epoch.
    :ivar state: changed by the thread of the work loop only; any thread may read it.
    :ivar stop: set when its step is to end.
    :ivar job: the pool's handle of the step.
    :ivar started_at: when the step started that runs now, by the monotonic clock; None: none runs.
    :ivar thread: the identifier of the thread it runs on.
    :ivar has_run: whether a step has ever started.
    """

    claim: Claim
    key: ClaimKey
    since: float = 0.0
    state: ClaimState = ClaimState.CLAIMED
    stop: threading.Event = field(default_factory=threading.Event)
    job: Json = None
    started_at: float | None = None
    thread: int | None = None
    has_run: bool = False

    def move(self, event: ClaimEvent) -> None:
        """Change the state.

        :raises ValueError: the event is impossible.
        """
        self.state = next_state(self.state, event)

    @property
    def is_detached(self) -> bool:
        """Return whether the step hangs on a thread that was detached."""
        return self.state in (ClaimState.DETACHED, ClaimState.HUNG)


def claim_key(claim: Claim) -> ClaimKey:
    """Return the name of a claim."""
    return claim.task.id, claim.task.attempt


def log_context(claim: Claim) -> contextlib.AbstractContextManager[None]:
    """Return a context in which log lines belong to the claim's stack and request."""
    task = claim.task
    request = logs.named(task.request, task.traversal)
    return logs.about(request=request, project=claim.project_id, stack=task.stack_id)
