"""A conductor that rests is alive, and its clock is right, however long ago its last report was."""

import typing

import pytest
from oslo_config import cfg
from stoker.cli.commands import fleet
from stoker.cli.commands.sessions import Session
from stoker.cli.config import options
from stoker.conductor.duties.report import ConductorReport
from stoker.conductor.lookout import FORECAST_EVERY
from stoker.db.conductors import ConductorRecord
from stoker.db.engine import Database
from stoker.features.diagnosis.fleet import ConductorFleet
from stoker.features.diagnosis.presence import FRESH, FleetSettings, Presence, fleet_by_reports
from stoker.ring.hashring import Member
from stoker.ring.observer import GroupStatus

BEGAN = 1_800_000_000.0
LONGEST_GAP = ConductorReport.interval + FORECAST_EVERY
"""The rest began just before the next report, which so comes with the second forecast."""


class Installation:
    """Conductors whose last reports are of some age, and which report again after the longest gap.

    One whose report is no longer fresh at the first read reports no more.

    :ivar ages: seconds since the last report at the first read, by host.
    :ivar behind: seconds by which the clock of each host is behind.
    """

    def __init__(self, *, ages: dict[str, float], behind: float = 0.0) -> None:
        self.ages = ages
        self.behind = behind
        self.now = BEGAN

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def read(self, query: object = None) -> list[ConductorRecord]:
        return [self._row(host, age) for host, age in self.ages.items()]

    def _row(self, host: str, age: float) -> ConductorRecord:
        gaps = max(0.0, self.now - BEGAN + age) // LONGEST_GAP if age <= FRESH else 0
        moment = BEGAN - age + gaps * LONGEST_GAP
        return ConductorRecord(host, f"{host}/i", "active", 1.0, moment - self.behind, threads=8)

    def presence(self, *alive: str) -> Presence:
        """Return what is read at first; without hosts the group is unreachable."""
        group = GroupStatus(frozenset(Member(host, "i", started_at=1.0) for host in alive))
        rows = {row.host: row for row in self.read()}
        return Presence(self.now, rows, group if alive else None, None if alive else "refused", 64)


def watched(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, alive: tuple[str, ...] = ()
) -> ConductorFleet:
    conf = cfg.ConfigOpts()
    for group, registered in options.list_opts():
        conf.register_opts(registered, group)
    conf([], default_config_files=[])
    session = Session(conf, typing.cast(Database, installation), 64)
    monkeypatch.setattr(fleet, "presence_of", lambda session: installation.presence(*alive))
    return fleet.fleet_of(session, manage="stoker-manage", sleep=installation.sleep)


@pytest.mark.parametrize("age", [0.01, 1.0, 4.6, 6.9])
def test_who_watches_the_reports_sees_each_conductor_that_rests(
    monkeypatch: pytest.MonkeyPatch, age: float
) -> None:
    seen = watched(Installation(ages={"a": age, "b": 0.0}), monkeypatch)
    assert (seen.alive, seen.skews) == ({"a", "b"}, {})


def test_a_late_conductor_gives_the_others_no_wrong_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = watched(Installation(ages={"a": 6.9, "b": 60.0}), monkeypatch, alive=("a", "b"))
    assert (seen.alive, seen.skews) == ({"a", "b"}, {})


def test_a_report_that_is_older_than_the_watch_is_of_a_slow_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = watched(Installation(ages={"a": 5.0}, behind=20.0), monkeypatch)
    assert (seen.alive, seen.skews) == ({"a"}, {"a": pytest.approx(-18.0)})


@pytest.mark.parametrize(
    ("age", "alive", "skews"),
    [
        (-3.0, {"a"}, {"a": 3.0}),
        (3.0, {"a"}, {}),
        (LONGEST_GAP - 0.01, {"a"}, {}),
        (FRESH + 0.1, set(), {}),
    ],
)
def test_who_does_not_wait_takes_no_age_for_a_slow_clock(
    age: float, alive: set[str], skews: dict[str, float]
) -> None:
    presence = Installation(ages={"a": age}).presence()
    seen = fleet_by_reports(presence, FleetSettings(takeover=1.0, grace=1.0))
    assert (seen.alive, seen.skews) == (alive, skews)
