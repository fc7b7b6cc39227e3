"""The database as steps see it: each of their writes holds the lock of their claim.

A conductor may be paused in the midst of a step.  Meanwhile its claim is revoked, and another attempt, a
newer update or a deletion works on the resource.  If the step wrote then, it would undo that.  So no step
gets a connection that writes: it gets this, and the only way to write compares the claim first.
"""

import typing
from collections.abc import Callable

from sqlalchemy.engine import Connection

from ...db.engine import Database
from ...db.work.claim import Claim, lock
from ...resources.contract.errors import Cancelled

T = typing.TypeVar("T")


class StepDatabase:
    """The database for the steps of all claims.  Thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, transaction: Callable[[Connection], T]) -> T:
        """Run `transaction` in a transaction that changes nothing.

        :raises Unavailable: the database does not answer.
        """
        return self._database.read(transaction)

    def writes_of(self, claim: Claim) -> "ClaimedWrites":
        """Return the writes of the steps of a claim."""
        return ClaimedWrites(self._database, claim)


class ClaimedWrites:
    """The writes of the steps of one claim."""

    def __init__(self, database: Database, claim: Claim) -> None:
        self._database = database
        self._task = claim.task

    def write(self, transaction: Callable[[Connection], T]) -> T:
        """Run `transaction` in a transaction, if the step may still act.

        :raises Cancelled: the claim is not ours any more, or is to be cancelled; nothing is written.
        :raises Unavailable: the database does not answer.
        """

        def fenced(conn: Connection) -> T:
            # The first statement: who revokes the claim waits for this commit, and sees what it has written.
            # The task's row is locked before those of deployments and of the project, as by signals.
            self.check(conn)
            return transaction(conn)

        return self._database.write(fenced)

    def check(self, conn: Connection) -> None:
        """Check, in a transaction, that the step may still act; the lock lasts until its commit.

        :raises Cancelled: the claim is not ours any more, or is to be cancelled.
        """
        if not lock(conn, self._task):
            raise Cancelled
