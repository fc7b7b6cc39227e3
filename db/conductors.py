"""Rows of conductors: their own reports, and the states that the operator has requested."""

import typing
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from . import statements
from .errors import NotFound
from .ids import MemberId, host_of
from .schema import tables
from .schema.revisions import NUMBER

ACTIVE = "active"
DRAINING = "draining"
STOPPED = "stopped"
FORGOTTEN_AFTER = 60.0
"""Seconds without a report after which a conductor does not count any more.

Its versions do not matter then, and its row may be deleted.  The tooz group says who is alive, not this.
"""


REASON_LENGTH = 255
"""The most characters of the reason for a request."""


@dataclass(frozen=True)
class StateRequest:
    """The state that an operator has requested of a conductor.

    :ivar state: active or draining.
    :ivar by: the user who requested it; "": nobody did, or the user is unknown.
    :ivar at: seconds since the epoch; None: nobody requested it.
    :ivar reason: the operator's reason; "": none.
    """

    state: str = ACTIVE
    by: str = ""
    at: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class ConductorRecord:
    """A conductor as stored; tables.py says the meanings of the columns."""

    host: str
    incarnation: str
    state: str
    started_at: float
    heartbeat_at: float
    wanted: str = ACTIVE
    wanted_by: str = ""
    wanted_at: float | None = None
    wanted_reason: str = ""
    weight: float = 1.0
    shards_owned: int = 0
    ring_version: str = ""
    threads: int = 0
    threads_busy: int = 0
    threads_written_off: int = 0
    rpc_version: str = ""
    schema_number: int = NUMBER
    clock_ahead: float = 0.0

    @property
    def request(self) -> StateRequest:
        """Return the state that the operator has requested."""
        return StateRequest(self.wanted, self.wanted_by, self.wanted_at, self.wanted_reason)


_WANTED = ("wanted", "wanted_by", "wanted_at", "wanted_reason")
"""The columns of an operator's request, in the order of the fields of StateRequest."""


def report(conn: Connection, conductor: ConductorRecord) -> StateRequest:
    """Store a conductor's report; return the state that the operator has requested."""
    dialect = conn.dialect.name
    if dialect not in _REPORTS:
        _REPORTS[dialect] = _report_statement(conn)
    values = {f"new_{name}": value for name, value in asdict(conductor).items()}
    # A first report stores that nothing is requested; a later one leaves the request as it is.
    values |= {f"new_{name}": value for name, value in zip(_WANTED, astuple(StateRequest()), strict=True)}
    result = conn.execute(_REPORTS[dialect], values)
    if not conn.dialect.insert_returning:
        c = tables.conductor.c
        query = sa.select(*(c[name] for name in _WANTED)).where(c.host == conductor.host)
        result = conn.execute(query)
    return StateRequest(*result.one())


_REPORTS: dict[str, sa.Insert] = {}
"""The statement of a report, by dialect: to build it takes longer than to run it."""


def _report_statement(conn: Connection) -> sa.Insert:
    c = tables.conductor
    row: dict[str, sa.BindParameter[typing.Any]] = {
        name: sa.bindparam(f"new_{name}") for name in ConductorRecord.__dataclass_fields__
    }
    changed = [name for name in row if name not in ("host", *_WANTED)]
    insert = statements.insert_or_update(conn, c, row, changed)
    return insert.returning(*(c.c[name] for name in _WANTED)) if conn.dialect.insert_returning else insert


def list_all(conn: Connection) -> Sequence[ConductorRecord]:
    """Return all conductors that ever reported and were not purged, by host."""
    c = tables.conductor
    return [ConductorRecord(**dict(row)) for row in conn.execute(sa.select(c).order_by(c.c.host)).mappings()]


def may_rejoin(rows: Sequence[ConductorRecord], now: float) -> list[ConductorRecord]:
    """Return the conductors that have not stopped and reported lately: they work, or may rejoin."""
    return [c for c in rows if c.state != STOPPED and now - c.heartbeat_at < FORGOTTEN_AFTER]


def written_before(conn: Connection, number: int, now: float) -> list[str]:
    """Return the hosts of the conductors that work, or may rejoin, and are written for an older schema.

    The schema may be an older one.  So this reads columns of the first schema only.

    :param number: number of the schema.
    """
    c = tables.conductor.c
    older = sa.and_(c.schema_number < number, c.state != STOPPED, c.heartbeat_at > now - FORGOTTEN_AFTER)
    return list(conn.execute(sa.select(c.host).where(older).order_by(c.host)).scalars())


def stopped_cleanly(conn: Connection, member: MemberId) -> bool:
    """Return whether a conductor that left was stopping, or draining, by its last report."""
    c = tables.conductor
    state = conn.execute(
        sa.select(c.c.state).where(c.c.host == host_of(member), c.c.incarnation == member)
    ).scalar()
    return state in (DRAINING, STOPPED)


def request_state(conn: Connection, host: str, request: StateRequest) -> None:
    """Ask a conductor to drain, or to take part again.

    :raises NotFound: no conductor of that host ever reported.
    """
    c = tables.conductor
    values = dict(zip(_WANTED, astuple(request), strict=True))
    if conn.execute(sa.update(c).where(c.c.host == host).values(values)).rowcount == 0:
        raise NotFound("Conductor", host)


def purge(conn: Connection, silent_since: float) -> int:
    """Delete conductors whose last heartbeat is older; return how many."""
    c = tables.conductor
    return conn.execute(sa.delete(c).where(c.c.heartbeat_at < silent_since)).rowcount
