"""The choice of `stoker-manage reconcile`: what it would do, to what, and where it does nothing."""

import dataclasses
import pathlib
import typing

import pytest
import sqlalchemy as sa
from services.db.rows import a_stack, store
from stoker.cli.commands.base import AdminError
from stoker.cli.commands.reconcile import Choice, Reconciliation, unread_lines
from stoker.db.engine import Database
from stoker.db.ids import ResourceId, StackId
from stoker.db.schema import tables, upgrade
from stoker.db.states import Status
from stoker.features.drift.known_things import ThingOfRow
from stoker.features.drift.unknown import Comparison, LostThing, UnknownThing, UnreadList

KEY = "5f0c7a52-94b5-4cf5-8a42-1e6f0a7d9d11"
BEFORE = 1_600_000_000.0  # in 2020, after OLD
OLD = "2020-01-01T00:00:00"
NEW = "2099-01-01T00:00:00Z"


def thing(physical_id: str, created_at: str = OLD) -> UnknownThing:
    return UnknownThing("project", "OS::Neutron::Net", physical_id, "", created_at, KEY)


def lost(physical_id: str) -> LostThing:
    row = ThingOfRow(ResourceId(1), KEY, None, StackId("s"), "stack", "net", is_resource=True)
    return LostThing(thing(physical_id), row)


COMPARISON = Comparison([thing("old"), thing("new", NEW), thing("ageless", "")], [], [lost("made")])
CHOICE = Choice(adopts=True, deletes=True, acts=False, before=BEFORE, limit=10)


@pytest.fixture
def database(tmp_path: pathlib.Path) -> typing.Iterator[Database]:
    database = Database(f"sqlite:///{tmp_path / 's.sqlite'}")
    upgrade.upgrade(database)
    yield database
    database.close()


def results(database: Database, **changes: typing.Any) -> dict[str, str]:
    choice = dataclasses.replace(CHOICE, **changes)
    rows = Reconciliation(database, choice).rows({"project": COMPARISON})
    return {row[2]: row[-1] for row in rows}


def test_without_a_confirmation_nothing_is_done(database: Database) -> None:
    assert results(database) == {
        "made": "would be adopted",
        "old": "would be deleted",
        "new": "stays: too new, or of unknown age",
        "ageless": "stays: too new, or of unknown age",
    }


def test_without_a_bound_the_age_does_not_matter(database: Database) -> None:
    assert set(results(database, before=database.clock() + 1).values()) == {
        "would be adopted",
        "would be deleted",
    }


def test_what_was_not_chosen_stays(database: Database) -> None:
    assert results(database, adopts=False)["made"] == "stays"
    assert results(database, deletes=False)["old"] == "stays"


def test_more_than_the_limit_is_refused_as_a_whole(database: Database) -> None:
    with pytest.raises(AdminError, match="2 things are to be adopted or deleted, more than --limit 1"):
        results(database, acts=True, limit=1)


def test_without_a_stack_at_rest_things_stay(database: Database) -> None:
    without = results(database, acts=True)
    assert without["made"] == "stays: its resource has changed"
    assert without["old"] == "stays: the project has no stack whose user's rights could be used"
    stack = a_stack(project_id="project", name="busy", action="UPDATE", status=Status.IN_PROGRESS)
    store(database, stack)
    assert results(database, acts=True)["old"] == f"stays: stack busy ({stack.id}) is UPDATE_IN_PROGRESS"


def test_a_thing_is_deleted_by_a_stack_of_its_project_at_rest(database: Database) -> None:
    stack = a_stack(project_id="project", name="quiet", action="CREATE", status=Status.COMPLETE)
    store(database, stack)
    result = results(database, acts=True)["old"]
    prefix = "deleted by stack "
    assert result.startswith(f"{prefix}quiet-unknown-")
    query = sa.select(tables.stack.c.parent_id).where(tables.stack.c.name == result.removeprefix(prefix))
    assert database.read(lambda conn: conn.execute(query).scalar_one()) == stack.id
    assert results(database, acts=True)["old"] == "stays: a resource has it"


def test_one_reason_for_many_lists_is_one_line() -> None:
    unread = [
        UnreadList(["net", "vpc"], "no rights"),
        UnreadList(["zone"], "away"),
        UnreadList(["port"], "no rights"),
    ]
    assert unread_lines("p", unread) == [
        "project p: not compared: no rights: net, vpc, port",
        "project p: not compared: away: zone",
    ]
    assert unread_lines("p", [UnreadList(list("abcdefg"), "away")]) == [
        "project p: not compared: away: a, b, c, d, e and 2 more"
    ]
