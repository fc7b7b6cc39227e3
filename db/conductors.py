"""Rows of conductors: their own reports, and the states that the operator has requested."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from . import statements
from .errors import NotFound
from .ids import MemberId, host_of
from .schema import tables

ACTIVE = "active"
DRAINING = "draining"
STOPPED = "stopped"
FORGOTTEN_AFTER = 60.0
"""Seconds without a report after which a conductor does not count any more.

Its versions do not matter then, and its row may be deleted.  The tooz group says who is alive, not this.
"""


@dataclass(frozen=True)
class ConductorRecord:
    """A conductor as stored; see tables.py for what the columns mean."""

    host: str
    incarnation: str
    state: str
    started_at: float
    heartbeat_at: float
    wanted: str = ACTIVE
    weight: float = 1.0
    shards_owned: int = 0
    ring_version: str = ""
    threads: int = 0
    threads_busy: int = 0
    threads_written_off: int = 0
    rpc_version: str = ""
    schema_number: int | None = None
    schema_member: str | None = None
    clock_ahead: float | None = None

    @property
    def written_for(self) -> int:
        """Return the number of the schema that its code is written for; 0: its release reports none."""
        # An older release may report for the same host later, and leaves both columns as they were.
        reported = self.schema_number is not None and self.schema_member == self.incarnation
        return (self.schema_number or 0) if reported else 0


def report(conn: Connection, conductor: ConductorRecord) -> str:
    """Store a conductor's report; return the state that the operator has requested: active or draining."""
    c = tables.conductor
    row = asdict(conductor)
    del row["wanted"]
    conn.execute(
        statements.insert_or_update(
            conn, c, {**row, "wanted": ACTIVE}, [name for name in row if name != "host"]
        )
    )
    return str(conn.execute(sa.select(c.c.wanted).where(c.c.host == conductor.host)).scalar_one())


def list_all(conn: Connection) -> Sequence[ConductorRecord]:
    """Return all conductors that ever reported and were not purged, by host."""
    c = tables.conductor
    return [ConductorRecord(**dict(row)) for row in conn.execute(sa.select(c).order_by(c.c.host)).mappings()]


def may_rejoin(found: Sequence[ConductorRecord], now: float) -> list[ConductorRecord]:
    """Return the conductors that have not stopped and reported lately: they work, or may rejoin."""
    return [c for c in found if c.state != STOPPED and now - c.heartbeat_at < FORGOTTEN_AFTER]


def stopped_cleanly(conn: Connection, member: MemberId) -> bool:
    """Return whether a conductor that left was stopping, or draining, by its last report."""
    c = tables.conductor
    state = conn.execute(
        sa.select(c.c.state).where(c.c.host == host_of(member), c.c.incarnation == member)
    ).scalar()
    return state in (DRAINING, STOPPED)


def set_wanted(conn: Connection, host: str, wanted: str) -> None:
    """Ask a conductor to drain, or to take part again.

    :raises NotFound: no conductor of that host ever reported.
    """
    c = tables.conductor
    if conn.execute(sa.update(c).where(c.c.host == host).values(wanted=wanted)).rowcount == 0:
        raise NotFound("Conductor", host)


def purge(conn: Connection, silent_since: float) -> int:
    """Delete conductors whose last heartbeat is older; return how many."""
    c = tables.conductor
    return conn.execute(sa.delete(c).where(c.c.heartbeat_at < silent_since)).rowcount
