"""A conductor's report of itself, and the operator's orders in its answer."""

import types
import typing
from collections.abc import Callable

import pytest
import sqlalchemy as sa
from stoker.conductor.duties.report import ConductorReport
from stoker.conductor.slice import Ring
from stoker.db import conductors
from stoker.db.conductors import ConductorRecord, StateRequest
from stoker.db.engine import Database
from stoker.db.errors import RowLocked, Unavailable
from stoker.db.ids import MemberId
from stoker.db.schema import tables
from stoker.ring.local_member import LocalMember
from stoker.ring.membership import Membership


class Clock:
    """The database's time, by a host whose own clock is ahead of it."""

    host_ahead = 0.25

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Installation:
    """The conductor, its ring, and the database in which it reports.

    :ivar error: the next error of the database.
    :ivar entered: the states that the members were told.
    """

    def __init__(self, database: Database) -> None:
        self.clock = Clock()
        self.me = LocalMember("one", weight=2.0)
        self.error: Exception | None = None
        self.entered: list[str] = []
        self.incarnation: MemberId | None = MemberId("one/i")
        self._database = database
        database.write(lambda conn: conn.execute(sa.delete(tables.conductor)))
        self.report = ConductorReport(
            database=typing.cast(Database, self),
            ring=typing.cast(Ring, types.SimpleNamespace(
                member=lambda: self.incarnation, shards_owned=lambda: 7, version=lambda: "cafe"
            )),
            membership=typing.cast(Membership, self),
            host="one",
            threads=lambda: (3, 1),
            size=8,
        )  # fmt: skip

    def set_state(self, state: str) -> None:
        self.entered.append(state)

    def write(self, transaction: Callable[..., StateRequest], *, brief: bool = False) -> StateRequest:
        if self.error is not None:
            raise self.error
        return self._database.write(transaction, brief=brief)

    def request(self, request: StateRequest) -> None:
        """Store the operator's request."""
        self._database.write(lambda conn: conductors.request_state(conn, "one", request))

    def row(self) -> ConductorRecord:
        """Return the conductor as it is stored."""
        [row] = self._database.read(conductors.list_all)
        return row


@pytest.fixture
def installation(database: Database) -> Installation:
    return Installation(database)


def test_a_report_has_what_an_operator_reads(installation: Installation) -> None:
    installation.clock.now = 130.0
    installation.report.run()
    row = installation.row()
    assert (row.started_at, row.heartbeat_at, row.clock_ahead) == (100.0, 130.0, 0.25)
    assert (row.host, row.incarnation, row.state, row.weight) == ("one", "one/i", "active", 2.0)
    assert (row.shards_owned, row.ring_version) == (7, "cafe")
    assert (row.threads, row.threads_busy, row.threads_written_off) == (8, 3, 1)
    installation.incarnation = None
    assert installation.report.row().incarnation == ""


def test_an_order_is_obeyed_once_and_logged_with_its_origin(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    installation.report.run()
    installation.request(StateRequest("draining", "", 0.0, "a new disk"))
    for _ in range(2):
        installation.report.run()
    assert installation.report.state == "draining"
    installation.request(StateRequest("active", "alice", 0.0))
    installation.report.run()
    assert installation.entered == ["draining", "active"]
    installation.request(StateRequest("draining"))
    installation.report.run()
    assert caplog.messages == [
        "Conductor one is draining, as an unknown user requested at 1970-01-01T00:00:00Z: a new disk",
        "Conductor one is active, as alice requested at 1970-01-01T00:00:00Z",
        "Conductor one is draining",
    ]


def test_one_that_stops_drains_whatever_is_requested_and_says_so_at_once(installation: Installation) -> None:
    installation.report.run()
    for name, state, shards in (("drain", "draining", 7), ("run", "draining", 7), ("stopped", "stopped", 0)):
        getattr(installation.report, name)()
        assert (installation.row().state, installation.row().shards_owned) == (state, shards)
    assert installation.entered == ["draining"]


def test_a_locked_row_is_no_lost_database(installation: Installation) -> None:
    installation.error = RowLocked("locked")
    installation.report.run()
    assert not installation.report.is_database_unavailable
    installation.error = Unavailable("away")
    with pytest.raises(Unavailable):
        installation.report.run()
    assert installation.report.is_database_unavailable
    installation.report.stopped()
    installation.error = None
    installation.report.run()
    assert not installation.report.is_database_unavailable
