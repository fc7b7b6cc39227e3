"""The operator's view of the conductors: one whole ring, and who is alive by the group alone."""

import dataclasses

import pytest
from stoker.cli.commands.base import AdminError
from stoker.cli.commands.columns import Age, Known, Share
from stoker.cli.commands.installation import ring_of
from stoker.db.conductors import STOPPED, ConductorRecord
from stoker.features.diagnosis.presence import Presence
from stoker.features.diagnosis.ring import health, sums
from stoker.ring.hashring import Member, View, assign
from stoker.ring.observer import GroupStatus

NOW = 1_800_000_000.0
COUNT = 64
HOSTS = ("one", "two", "three")
MEMBERS = {host: Member(host, "i", started_at=1.0) for host in HOSTS}


def view(*hosts: str) -> View:
    return View.of([MEMBERS[host] for host in hosts], COUNT)


def reports(*hosts: str, age: float = 0.5) -> dict[str, ConductorRecord]:
    """Return the reports of conductors that see each other on the ring."""
    ring = view(*hosts)
    return {
        host: ConductorRecord(
            host,
            f"{host}/i",
            "active",
            1.0,
            NOW - age,
            shards_owned=len(assign(ring).shards_of(host)),
            ring_version=ring.version,
            threads=8,
        )
        for host in hosts
    }


def presence_with(
    rows: dict[str, ConductorRecord], *, alive: tuple[str, ...], silent: tuple[str, ...] = ()
) -> Presence:
    group = GroupStatus(
        frozenset(MEMBERS[host] for host in alive), frozenset(MEMBERS[host] for host in silent)
    )
    return Presence(NOW, rows, group, None, COUNT)


def footer(presence: Presence, in_progress: int) -> list[str]:
    """The lines below the table."""
    return [sums(presence, in_progress), health(presence)]


def test_all_is_well() -> None:
    presence = presence_with(reports(*HOSTS), alive=HOSTS)
    assert presence.unsettled() is None
    assert footer(presence, 5) == [
        "alive: 3 of 3 conductors; shards: 64 of 64 (100.0%); stacks in progress: 5; threads busy: 0 of 24",
        "healthy: every one of 64 shards has one owner",
    ]


def test_one_that_died_owns_its_shards_until_the_others_have_them() -> None:
    """Its report is as fresh as those of the others."""
    dead = presence_with(reports(*HOSTS), alive=("one", "two"), silent=("three",))
    assert dict(dead.shards()) == {host: len(assign(view(*HOSTS)).shards_of(host)) for host in HOSTS}
    assert (dead.state("three"), dead.status("three"), dead.is_alive("three")) == ("silent", "down", False)
    assert "three is silent; its shards go to the others" in (dead.unsettled() or "")
    for silent in (("three",), ()):
        after = presence_with(reports(*HOSTS) | reports("one", "two"), alive=("one", "two"), silent=silent)
        assert sum(after.shards().values()) == COUNT
        assert after.shards().get("three", 0) == 0
        assert after.unsettled() is None
        assert footer(after, 0)[1] == "settled: every one of 64 shards has one owner; not alive: three"


def test_between_the_two_the_ring_is_still_whole_and_said_to_be_unsettled() -> None:
    rows = reports(*HOSTS) | {"one": reports("one", "two")["one"]}
    presence = presence_with(rows, alive=("one", "two"), silent=("three",))
    assert sum(presence.shards().values()) == COUNT
    assert "see different rings" in (presence.unsettled() or "")


def test_an_old_report_of_one_that_is_alive_does_not_make_it_dead() -> None:
    presence = presence_with(reports(*HOSTS, age=3600), alive=HOSTS)
    assert [presence.status(host) for host in HOSTS] == ["up"] * 3


def test_one_that_has_not_reported_yet_is_shown() -> None:
    presence = presence_with(reports("one", "two"), alive=HOSTS)
    assert presence.hosts == sorted(HOSTS)
    assert presence.state("three") == "active"
    assert presence.unsettled() == "no report yet from: three"


def test_one_that_has_stopped_is_not_missed() -> None:
    rows = reports("one", "two")
    rows["three"] = dataclasses.replace(reports("three")["three"], state=STOPPED, shards_owned=0)
    presence = presence_with(rows, alive=("one", "two"))
    assert presence.state("three") == STOPPED
    assert footer(presence, 0)[1] == "healthy: every one of 64 shards has one owner"


def test_without_the_group_nobody_guesses() -> None:
    presence = Presence(NOW, reports(*HOSTS), None, "refused", COUNT)
    assert [presence.status(host) for host in HOSTS] == ["unknown"] * 3
    assert [presence.is_alive(host) for host in HOSTS] == [None] * 3
    sums, health = footer(presence, 0)
    assert sums.startswith("alive: ? of 3 conductors")
    assert health.startswith("unknown: the group of conductors is unreachable: refused; the last reports")
    with pytest.raises(AdminError, match="is unreachable: refused"):
        ring_of(presence)


def test_programs_get_numbers_instants_and_truth_values() -> None:
    assert (str(Share(1 / 3)), Share(1 / 3).machine_readable()) == ("33.3%", 0.3333)
    age = Age.of(NOW - 90, NOW)
    assert (str(age), age.machine_readable()) == ("1 min ago", "2027-01-15T07:58:30Z")
    assert (str(Age.of(None, NOW)), Age.of(None, NOW).machine_readable()) == ("never", None)
    assert [(str(Known(x)), Known(x).machine_readable()) for x in (True, None)] == [
        ("True", True),
        ("unknown", None),
    ]
