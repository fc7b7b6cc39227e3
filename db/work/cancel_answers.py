"""What a conductor says of claims that it was asked to stop and does not hold."""

from collections.abc import Sequence

from sqlalchemy.engine import Connection

from ..ids import MemberId, TaskId
from ..rows import ReadyTasks
from . import cancel, orphans
from .release import release

Claims = Sequence[tuple[TaskId, int]]


def answer(conn: Connection, member: MemberId, *, asked: Claims, over: Claims, now: float) -> ReadyTasks:
    """Store the answer; the tasks made ready by it.

    :param asked: all of the claims (task, attempt): nobody need be asked for them again.
    :param over: those of which no step runs: one that was never begun leaves nothing behind.
    """
    ready = release(conn, over, now=now)
    cancel.answered(conn, asked, member)
    ready.merge(orphans.without_step(conn, over, now=now))
    return ready
