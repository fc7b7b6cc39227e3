"""What a conductor says of itself in the database, and what the operator wants of it."""

import logging
from collections.abc import Callable

from ...db import conductors
from ...db.conductors import ACTIVE, DRAINING, ConductorRecord
from ...db.engine import Database
from ...db.errors import RowLocked, Unavailable
from ...db.schema.revisions import NUMBER
from ...ring.membership import Membership
from ...rpc.contract import VERSION
from ..slice import Ring

LOG = logging.getLogger(__name__)


class ConductorReport:
    """Writes the conductor's row and obeys what the operator wrote there.

    :param threads: how many run steps now, and how many hang in calls and were written off.
    :param size: how many steps may run at the same time.
    """

    interval = 1.0

    def __init__(
        self,
        *,
        database: Database,
        ring: Ring,
        membership: Membership,
        clock: Callable[[], float],
        host: str,
        threads: Callable[[], tuple[int, int]],
        size: int,
    ) -> None:
        self._database = database
        self._ring = ring
        self._membership = membership
        self._clock = clock
        self._host = host
        self._threads = threads
        self._size = size
        self._started_at = clock()
        self._state = ACTIVE
        self._own_draining = False
        self._away = False

    @property
    def state(self) -> str:
        """As it is in the row."""
        return self._state

    @property
    def is_database_away(self) -> bool:
        """Whether the last round has found no database."""
        return self._away

    def run(self) -> None:
        """One report."""
        row = self.row()
        try:
            wanted = self._database.write(lambda conn: conductors.report(conn, row), brief=True)
        except RowLocked as error:
            LOG.warning("This conductor's own row is locked by another transaction: %s", error)
            return
        except Unavailable:
            self._away = True
            raise
        self._away = False
        self._be(DRAINING if self._own_draining or wanted == DRAINING else ACTIVE)

    def drain(self) -> None:
        """Leave the ring, and say so; we stay in the group, and do not go back on the ring."""
        self._own_draining = True
        self._be(DRAINING)
        self._tell_last()

    def stopped(self) -> None:
        """Say that we are gone; the duty is over."""
        self._state = conductors.STOPPED
        self._tell_last()

    def _be(self, state: str) -> None:
        if state != self._state:
            LOG.info("This conductor is %s now", state)
            self._state = state
            self._membership.set_state(state)

    def _tell_last(self) -> None:
        """A stop goes on without the database: that we are silent is seen soon enough."""
        row = self.row()
        try:
            self._database.write(lambda conn: conductors.report(conn, row))
        except Unavailable as error:
            LOG.warning("The database is away, so it does not show that this conductor stops: %s", error)

    def row(self) -> ConductorRecord:
        """What we say now."""
        busy, lost = self._threads()
        member = self._ring.member() or ""
        return ConductorRecord(
            host=self._host,
            incarnation=member,
            state=self._state,
            started_at=self._started_at,
            heartbeat_at=self._clock(),
            shards_owned=0 if self._state == conductors.STOPPED else self._ring.shards_owned(),
            ring_version=self._ring.version(),
            weight=self._membership.me.weight,
            threads=self._size,
            threads_busy=busy,
            threads_written_off=lost,
            rpc_version=VERSION,
            schema_number=NUMBER,
            schema_member=member,
            clock_ahead=self._database.clock.host_ahead,
        )


class WornOut:
    """Sees when so many threads hang in calls that the conductor had better be replaced by a new process.

    :param lost: threads that were written off and have not come back.
    :param most: how many are too many; 0: never.
    :param act: called once.
    """

    interval = 1.0

    def __init__(self, *, lost: Callable[[], int], most: int, act: Callable[[], None]) -> None:
        self._lost = lost
        self._most = most
        self._act = act
        self._told = False

    def run(self) -> None:
        """One look."""
        if not self._told and 0 < self._most <= self._lost():
            self._told = True
            LOG.error("%d threads hang in calls that were cancelled: this conductor ends", self._lost())
            self._act()
