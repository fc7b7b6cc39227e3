"""Reports the conductor's state in the database, and obeys the operator's orders there."""

import logging
from collections.abc import Callable

from ...db import conductors
from ...db.conductors import ACTIVE, DRAINING, ConductorRecord, StateRequest
from ...db.engine import Database
from ...db.errors import RowLocked, Unavailable
from ...db.schema.revisions import NUMBER
from ...observe.instants import iso
from ...ring.membership import Membership
from ...rpc.contract import VERSION
from ..slice import Ring

LOG = logging.getLogger(__name__)


class ConductorReport:
    """Writes the conductor's row, and drains the conductor when the operator has written so there.

    :param threads: returns how many threads run steps now, and how many hang and were detached.
    :param size: how many steps can run at the same time.
    """

    interval = 2.0

    def __init__(
        self,
        *,
        database: Database,
        ring: Ring,
        membership: Membership,
        host: str,
        threads: Callable[[], tuple[int, int]],
        size: int,
    ) -> None:
        self._database = database
        self._ring = ring
        self._membership = membership
        self._host = host
        self._threads = threads
        self._size = size
        self._started_at = database.clock()
        self._state = ACTIVE
        self._is_stopping = False
        self._is_unavailable = False

    @property
    def state(self) -> str:
        """Return the state that the row shows."""
        return self._state

    @property
    def is_database_unavailable(self) -> bool:
        """Return whether the last round found the database unavailable."""
        return self._is_unavailable

    def run(self) -> None:
        """Write one report, and enter the state that the operator asks for."""
        row = self.row()
        try:
            requested = self._database.write(lambda conn: conductors.report(conn, row), brief=True)
        except RowLocked as error:
            LOG.warning("The row of this conductor is locked by another transaction: %s", error)
            return
        except Unavailable:
            self._is_unavailable = True
            raise
        self._is_unavailable = False
        self._enter(DRAINING if self._is_stopping else requested.state, _origin(requested))

    def drain(self) -> None:
        """Leave the ring for good, but stay in the group."""
        self._is_stopping = True
        self._enter(DRAINING)
        self._report_last()

    def stopped(self) -> None:
        """Report that the conductor has stopped; no round follows."""
        self._state = conductors.STOPPED
        self._report_last()

    def _enter(self, state: str, origin: str = "") -> None:
        """Take part in the ring, or not.

        :param origin: who requested the state, when and why, as the end of the log's line.
        """
        if state != self._state:
            LOG.info("Conductor %s is %s%s", self._host, state, origin)
            self._state = state
            self._membership.set_state(state)

    def _report_last(self) -> None:
        """Report once more, if the database is available; the silence shows soon enough if it is not."""
        row = self.row()
        try:
            self._database.write(lambda conn: conductors.report(conn, row))
        except Unavailable as error:
            LOG.warning("Reporting that conductor %s stops failed: %s", self._host, error)

    def row(self) -> ConductorRecord:
        """Return the row as it is to be written now."""
        busy, hung = self._threads()
        member = self._ring.member() or ""
        return ConductorRecord(
            host=self._host,
            incarnation=member,
            state=self._state,
            started_at=self._started_at,
            heartbeat_at=self._database.clock(),
            shards_owned=0 if self._state == conductors.STOPPED else self._ring.shards_owned(),
            ring_version=self._ring.version(),
            weight=self._membership.me.weight,
            threads=self._size,
            threads_busy=busy,
            threads_written_off=hung,
            rpc_version=VERSION,
            schema_number=NUMBER,
            clock_ahead=self._database.clock.host_ahead,
        )


def _origin(request: StateRequest) -> str:
    """Return who requested a state, when and why, as the end of a log's line; "": nobody did."""
    if request.at is None:
        return ""
    reason = f": {request.reason}" if request.reason else ""
    return f", as {request.by or 'an unknown user'} requested at {iso(request.at)}{reason}"
