"""Values from outside: every character, any length, whatever a plugin says."""

import pytest
import sqlalchemy as sa
from services.db.rows import (
    NOW,
    a_resource,
    a_stack,
    claim_all,
    outcome,
    resource,
    stack_of,
    step,
    store,
    store_graph,
)
from stoker.db import content, events, resources
from stoker.db.engine import Database
from stoker.db.events import EventQuery
from stoker.db.queries import stack_list
from stoker.db.rows import Event
from stoker.db.schema import tables
from stoker.db.states import Status, TaskState
from stoker.sealing.sealer import Sealer

STRANGE = "Ünïcödé 中文 العربية 🚀🧑‍🚀 'quoted' \"double\" %s :name \\ back\nnewline\t\u2028"
LONG = "🚀" * 60_000


def test_every_character_survives_in_names_reasons_and_templates(database: Database) -> None:
    name = "🚀" * 255
    stack = a_stack(
        name=name, reason=STRANGE, description=STRANGE, tags=("🚀", "ü"), parameters={"🚀": STRANGE}
    )
    store(database, stack)
    assert stack_of(database, stack.id) == stack
    assert database.read(lambda conn: stack_list.find_by_name(conn, "tenant", name)).id == stack.id
    template = {"description": STRANGE, STRANGE: [STRANGE]}
    key = database.write(lambda conn: content.put(conn, template, NOW))
    assert database.read(lambda conn: content.get(conn, key)) == template
    row = a_resource(stack.id, 1, STRANGE, metadata={"🚀": STRANGE}, reason=STRANGE)
    database.write(lambda conn: resources.insert_many(conn, [row]))
    assert database.read(lambda conn: resources.by_name(conn, stack.id, STRANGE)) == row


def test_a_value_of_a_megabyte_is_stored_wherever_a_template_or_plugin_may_give_one(
    database: Database,
) -> None:
    big = {"list": ["x" * 1000] * 1000, "nested": {"🚀": LONG}}
    key = database.write(lambda conn: content.put(conn, big, NOW))
    assert database.read(lambda conn: content.get(conn, key)) == big
    graph = store_graph(database, {"one": []}, definition=big)
    [held] = claim_all(database, graph.ids)
    assert held.task.definition == big
    changes = {"attributes": big, "physical_id": LONG, "data": big, "metadata": big, "reason": LONG}
    step(database, [outcome(held, changes=changes)])
    stored = resource(database, graph.resources["one"])
    assert {name: getattr(stored, name) for name in changes} == changes


@pytest.mark.parametrize("bad", ["nul \0 inside", "half a pair \ud83d.", "\udcff\udcfe"])
def test_a_plugin_message_that_no_database_takes_is_stored_as_well_as_can_be(
    database: Database, bad: str
) -> None:
    graph = store_graph(database, {"one": []})
    [held] = claim_all(database, graph.ids)
    event = Event(
        stack_id=graph.stack.id,
        resource_name="one",
        resource_type="T",
        physical_id=bad,
        action="CREATE",
        status="FAILED",
        reason=bad,
        at=NOW,
    )
    changes = {"reason": bad, "physical_id": bad, "attributes": {"bad": bad}}
    done = step(database, [outcome(held, TaskState.FAILED, reason=bad, changes=changes, event=event)])
    assert done.ended == [(graph.stack.id, Status.FAILED)]
    readable = "".join("\ufffd" if char == "\0" or "\ud800" <= char <= "\udfff" else char for char in bad)
    assert stack_of(database, graph.stack.id).reason == readable
    stored = resource(database, graph.resources["one"])
    assert (stored.reason, stored.physical_id, stored.attributes) == (readable, readable, {"bad": bad})
    query = EventQuery(graph.stack.id, resource_name="one")
    assert readable in {
        item.reason for item, _ in database.read(lambda conn: events.list_events(conn, query))
    }


def test_null_and_json_null_are_both_none_and_empty_values_stay_empty(database: Database) -> None:
    stack = store(database, a_stack())
    values = [None, {}, [], "", 0, False, 0.1, 10**20, "null"]
    rows = [a_resource(stack.id, index + 1, reference_id=value) for index, value in enumerate(values)]
    database.write(lambda conn: resources.insert_many(conn, rows))
    stored = database.read(lambda conn: resources.of_stack(conn, stack.id))
    assert [row.reference_id for row in stored] == values


def test_an_instant_keeps_its_microseconds(database: Database) -> None:
    for moment in (NOW + 0.123456, 0.1, 4_000_000_000.999999):
        stack = store(database, a_stack(deadline_at=moment))
        assert stack_of(database, stack.id).deadline_at == moment


def test_nothing_of_a_secret_can_be_read_in_what_is_stored(database: Database) -> None:
    sealer = Sealer([Sealer.generate_key()]).of_stack("project", "root")
    secret = "correct horse battery staple"
    token = sealer.seal(secret)
    stack = store(database, a_stack(parameters={"password": token}))
    s = tables.stack
    raw = sa.select(*(sa.cast(column, sa.Text) for column in s.c)).where(s.c.id == stack.id)
    text = "\n".join(str(value) for value in database.read(lambda conn: conn.execute(raw).one()))
    assert token in text
    for part in secret.split():
        assert part not in text
    assert sealer.open(stack_of(database, stack.id).parameters["password"]) == secret
