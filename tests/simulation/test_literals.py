"""Values of users, resource types, signals and nested stacks are data, whatever they look like.

It comes out as it went in, and nothing in it is opened or evaluated.
"""

import json
import pathlib
import typing
from collections.abc import Mapping

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from simulation.helpers import ended, rows
from simulation.nested import INNER, hot, settled
from simulation.world import KEY, World
from stoker.api.views.resources import StackLookup
from stoker.api.views.stacks import output
from stoker.db import content, snapshots
from stoker.db import resources as resource_rows
from stoker.db.rows import Stack
from stoker.db.schema import tables
from stoker.db.states import Status
from stoker.engine.exports import abandon_stack, snapshot_document
from stoker.engine.planning.requests import Goal, UpdateRequest
from stoker.engine.signals import send_signal
from stoker.engine.snapshots import take_snapshot
from stoker.engine.updates import update_stack
from stoker.sealing.sealer import Sealer
from stoker.sealing.stored import MASK, Masked, metadata_in_clear

Json = typing.Any
SECRET = "another-project's-word"
TOKEN = Sealer([KEY]).of_stack("victim", "root").seal(SECRET)


def node(function: str, *args: Json) -> Json:
    return {"$fn": function, "args": list(args)}


HOSTILE: Mapping[str, Json] = {
    "a token": node("sealed", TOKEN),
    "no token": node("sealed", "none"),
    "a token below": {"a": [1, {"b": node("sealed", TOKEN)}]},
    "a token that is quoted": node("literal", {"$fn": "sealed", "args": [TOKEN]}),
    "a secret in a function": node("list_join", ["", [node("sealed", TOKEN)]]),
    "a function": node("digest", ["md5", "x"]),
    "a function of much": node("repeat", {"template": "%a%b", "for_each": {"%a": [1] * 9, "%b": [2] * 9}}),
    "a reference": node("get_attr", "victim", "value"),
    "no function": node("nothing", 1),
    "no arguments": {"$fn": "sealed"},
    "wrong arguments": {"$fn": "sealed", "args": "x"},
    "a number": {"$fn": 1, "args": []},
    "a quote that is none": {"$fn": "literal", "args": ["x"]},
    "plain": {"a": [None, True, 1.5, "ü"], "": {}},
}
BAG = {"type": "json"}
INSIDE = json.dumps(
    hot(
        {
            "v": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "given"}}},
            "f": {
                "type": "OS::Heat::Value",
                "properties": {"value": {"resource_facade": "metadata"}},
            },
        },
        parameters={"given": BAG},
        outputs={
            "made": {"value": {"get_attr": ["v", "value"]}},
            "$fn": {"value": "sealed"},
            "args": {"value": [TOKEN]},
            "facade": {"value": {"get_attr": ["f", "value"]}},
        },
    )
)
TEMPLATE = hot(
    {
        "victim": {"type": "OS::Heat::Value", "properties": {"value": "the victim's"}},
        "v": {
            "type": "OS::Heat::Value",
            "properties": {"value": {"get_param": "p"}},
            "metadata": {"own": {"get_attr": ["n", "made"]}, "p": {"get_param": "p"}},
        },
        "n": {
            "type": INNER,
            "properties": {"given": {"get_attr": ["v2", "value"]}},
            "metadata": {"above": {"get_param": "p"}, "late": {"get_attr": ["v2", "value"]}},
        },
        "v2": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "p"}}},
        "chain": {
            "type": "OS::Heat::ResourceChain",
            "properties": {
                "resources": ["OS::Heat::Value"],
                "resource_properties": {"value": {"get_attr": ["v", "value"]}},
            },
        },
        "handle": {
            "type": "OS::Heat::WaitConditionHandle",
            "metadata": {"mine": {"get_param": "word"}, "given": {"get_param": "p"}},
        },
    },
    parameters={
        "p": {"type": "json"},
        "d": {"type": "json", "default": {}},
        "word": {"type": "string", "hidden": True, "default": ""},
        "$fn": {"type": "string", "default": "x"},
        "args": {"type": "json", "default": []},
    },
    outputs={
        "given": {"value": {"get_param": "p"}},
        "default": {"value": {"get_param": "d"}},
        "attribute": {"value": {"get_attr": ["v", "value"]}},
        "all": {"value": {"get_attr": ["v"]}},
        "nested": {"value": {"get_attr": ["n", "made"]}},
        "nested outputs": {"value": {"get_attr": ["n", "outputs"]}},
        "named like a node": {"value": {"get_attr": ["n", "$fn"]}},
        "facade": {"value": {"get_attr": ["n", "facade"]}},
        "chain": {"value": {"get_attr": ["chain", "attributes", "value"]}},
    },
)


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4)


def created(world: World, value: Json) -> Stack:
    stack = world.create(
        "s",
        TEMPLATE,
        files={INNER: INSIDE},
        parameters={"p": value, "word": "own-word", "$fn": "sealed", "args": [TOKEN]},
        environment={"parameter_defaults": {"d": value}},
    )
    return settled(world, stack)


def outputs(world: World, stack: Stack) -> dict[str, Json]:
    """Return the outputs as the API shows them."""
    stored = world.database.read(lambda conn: resource_rows.of_stack(conn, stack.id))
    lookup = StackLookup(stored, world.context.sealer_of(stack))
    outputs_shown = [output(name, item, lookup) for name, item in world.stack(stack.id).outputs.items()]
    assert not any("output_error" in item for item in outputs_shown), outputs_shown
    return {item["output_key"]: item["output_value"] for item in outputs_shown}


def signal(world: World, stack: Stack, **details: Json) -> None:
    send_signal(world.context, world.stack(stack.id), "handle", details)


def shown_metadata(world: World, stack: Stack, name: str) -> Json:
    """Return the metadata as guests and the resource's type see it."""
    return metadata_in_clear(rows(world, stack)[name], world.context.sealer_of(stack).open)


def text_of(world: World) -> str:
    def read(conn: sa.Connection) -> str:
        all_tables = tables.metadata.tables.values()
        return "\n".join(
            str(tuple(row)) for table in all_tables for row in conn.execute(sa.select(table)).all()
        )

    return world.database.read(read)


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_a_value_comes_out_of_every_way_as_it_went_in(world: World, value: Json) -> None:
    stack = created(world, value)
    assert stack.status == Status.COMPLETE, stack.reason
    named = {"$fn": "sealed", "args": [TOKEN]}
    facade = {"above": value, "late": value}
    assert outputs(world, stack) == {
        "given": value,
        "default": value,
        "attribute": value,
        "all": {"value": value},
        "nested": value,
        "nested outputs": {"made": value, **named, "facade": facade},
        "named like a node": "sealed",
        "facade": facade,
        "chain": {"0": value},
    }
    assert shown_metadata(world, stack, "v") == {"own": value, "p": value}

    signal(world, stack, id="$fn", data=value, reason=json.dumps(value))
    signal(world, stack, id="own", data=value)
    metadata = {"mine": "own-word", "given": value}
    entry = {"status": "SUCCESS", "data": value}
    received = {
        "$fn": {**entry, "reason": json.dumps(value)},
        "own": {**entry, "reason": "Signal 4 received"},
    }
    assert shown_metadata(world, stack, "handle") == {**metadata, **received}
    exported = world.export(world.stack(stack.id))
    parameters = {"p": value, "word": "own-word", "$fn": "sealed", "args": [TOKEN]}
    assert exported["environment"]["parameters"] == parameters
    assert exported["environment"]["parameter_defaults"] == {"d": value}
    assert exported["resources"]["handle"]["metadata"] == {**metadata, **received}
    assert exported["resources"]["n"]["resource_data"]["outputs"]["made"] == value
    assert SECRET not in json.dumps(exported)

    snapshot = take_snapshot(world.context, world.stack(stack.id), "kept")
    settled(world, stack)
    snapshot_row = world.database.read(lambda conn: snapshots.get(conn, stack.id, snapshot.id))
    contents = world.database.read(lambda conn: content.get_many(conn, snapshot_row.contents))
    copies = world.database.read(lambda conn: resource_rows.copies(conn, stack.id, snapshot_row.id))
    listed = snapshot_document(world.stack(stack.id), snapshot_row, contents, copies, Masked())
    assert listed["environment"]["parameters"] == {**parameters, "word": MASK}
    assert listed["resources"]["handle"]["metadata"] == {**metadata, "mine": MASK, **received}
    assert SECRET not in json.dumps(listed)

    update_stack(
        world.context,
        world.stack(stack.id),
        UpdateRequest(Goal(TEMPLATE, files={INNER: INSIDE}), existing=True),
    )
    settled(world, stack)
    assert world.stack(stack.id).status == Status.COMPLETE
    assert shown_metadata(world, stack, "handle") == {**metadata, **received}

    document = json.loads(json.dumps(abandon_stack(world.context, world.stack(stack.id))))
    again = world.adopt("again", document)
    assert world.settle(lambda: ended(world, again), within=60)
    assert world.stack(again.id).status == Status.COMPLETE, world.stack(again.id).reason
    assert outputs(world, again)["nested"] == value
    assert shown_metadata(world, again, "handle") == {**metadata, **received}
    clear = text_of(world)
    assert SECRET not in clear
    assert "own-word" not in clear


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_what_a_document_to_adopt_brings_is_data(world: World, value: Json) -> None:
    stack = created(world, {"any": "thing"})
    document = json.loads(json.dumps(abandon_stack(world.context, world.stack(stack.id))))
    document["resources"]["handle"]["metadata"] = {"1": value, "$fn": value}
    document["resources"]["victim"]["metadata"] = value
    document["resources"]["victim"]["resource_data"] = {"kept": value, "$fn": "sealed", "args": [TOKEN]}
    document["environment"]["parameters"]["p"] = value
    again = world.adopt("again", document)
    assert world.settle(lambda: ended(world, again), within=60)
    assert world.stack(again.id).status == Status.COMPLETE, world.stack(again.id).reason
    assert shown_metadata(world, again, "handle") == {"1": value, "$fn": value}
    assert shown_metadata(world, again, "victim") == value
    exported = world.export(world.stack(again.id))
    data = document["resources"]["victim"]["resource_data"]
    assert exported["resources"]["victim"]["resource_data"] == data
    assert exported["environment"]["parameters"]["p"] == value
    assert SECRET not in json.dumps(exported) + text_of(world)


NAMES = ["sealed", "literal", "get_attr", "list_join", "digest", "select", "x"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "x", TOKEN, "sealed", "literal"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["$fn", "args", "v", "a"]), inner, max_size=4)
        | st.builds(lambda name, args: node(name, *args), st.sampled_from(NAMES), st.lists(inner, max_size=2))
    ),
    max_leaves=8,
)


@pytest.mark.full
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.dictionaries(st.sampled_from(["$fn", "args", "k"]), JSON, max_size=3))
def test_any_value_comes_out_as_it_went_in(tmp_path_factory: pytest.TempPathFactory, value: Json) -> None:
    world = World(tmp_path_factory.mktemp("any"), hosts=1, threads=4)
    stack = created(world, value)
    values = outputs(world, stack)
    for name in ("given", "default", "attribute", "nested", "chain"):
        assert values[name] == ({"0": value} if name == "chain" else value), name
    signal(world, stack, data=value)
    exported = world.export(world.stack(stack.id))
    [received] = [item for key, item in exported["resources"]["handle"]["metadata"].items() if key == "3"]
    assert received["data"] == value
    assert shown_metadata(world, stack, "v") == {"own": value, "p": value}
