"""Values that name things of the cloud: a name and an id of one thing are the same value."""

from collections.abc import Iterator

import pytest
from harness.scripted_context import ScriptedContext, SharingContext
from harness.scripted_service import Answer, ScriptedService, serving
from stoker.engine.named_things import IDS, check_found, known_to_be_same, same_thing, with_ids
from stoker.resources.contract.properties import changed, named_things, respelled
from stoker.resources.contract.schema import Property
from stoker.resources.openstack.names import KINDS, NameNotFound, resolve
from stoker.resources.registry import ResourceRegistry
from stoker.shapes import Json, JsonMap

A, B = "0a0b0c0d-0000-4000-8000-000000000001", "0a0b0c0d-0000-4000-8000-000000000002"
NETWORK = "neutron.network"
REGISTRY = ResourceRegistry.installed()
SCHEMA = {"network": Property("string", names=NETWORK), "size": Property("integer")}


@pytest.fixture
def scripted() -> Iterator[ScriptedService]:
    with serving() as service:
        service.answers["GET /networks?name=public"] = Answer(
            200, {"networks": [{"id": A, "name": "public"}]}
        )
        service.answers["GET /networks?name=other"] = Answer(200, {"networks": [{"id": B, "name": "other"}]})
        service.answers["GET /networks?name=gone"] = Answer(200, {"networks": []})
        yield service


def named_properties(prop: Property, value: str) -> Iterator[Json]:
    """Values of a property that have the text in each place where it names something."""
    if prop.type == "string" and prop.kind in KINDS:
        yield value
    elif isinstance(prop.schema, Property):
        yield from ([item] for item in named_properties(prop.schema, value))
    else:
        for name, inner in (prop.schema or {}).items():
            yield from ({name: item} for item in named_properties(inner, value))


def test_no_type_takes_another_word_for_another_thing() -> None:
    """Whatever a property names, on all levels of all types, is the same by its name and by its id."""
    wrong = []
    count = 0
    for type_name, plugin in [(name, REGISTRY.get(name)) for name in REGISTRY.names()]:
        for name, prop in plugin.properties_schema.items():
            pairs = zip(named_properties(prop, "public"), named_properties(prop, A), strict=True)
            for before, after in pairs:
                count += 1
                for old, new in ((before, after), (after, before)):
                    schema = plugin.properties_schema
                    alike = respelled(
                        schema, {name: old}, {name: new}, lambda kind, x, y: {x, y} == {"public", A}
                    )
                    wrong += [f"{type_name}.{name}"] if changed(schema, alike, {name: new}) else []
                    other = respelled(schema, {name: old}, {name: new}, lambda kind, x, y: False)
                    wrong += [f"{type_name}.{name}"] if not changed(schema, other, {name: new}) else []
    assert wrong == []
    assert count > 150


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("public", A, True),
        (A, "public", True),
        (A, A.upper().replace("-", ""), True),
        ("public", B, False),
        (B, "public", False),
        ("other", "public", False),
        ("gone", A, False),
    ],
)
def test_the_cloud_tells_what_a_name_means(
    scripted: ScriptedService, before: str, after: str, *, expected: bool
) -> None:
    assert same_thing(ScriptedContext(scripted), {})(NETWORK, before, after) is expected


def test_a_new_name_that_leads_nowhere_is_an_error_before_anything_is_replaced(
    scripted: ScriptedService,
) -> None:
    with pytest.raises(NameNotFound):
        same_thing(ScriptedContext(scripted), {})(NETWORK, A, "gone")


def test_a_step_asks_for_whatever_its_properties_name(scripted: ScriptedService) -> None:
    schema = {**SCHEMA, "key": Property("string", names="nova.keypair")}
    context = ScriptedContext(scripted)
    check_found(context, schema, {"network": "public", "key": None, "size": 1})
    check_found(context, schema, {"network": B})
    with pytest.raises(NameNotFound, match="network .gone. could not be found"):
        check_found(context, schema, {"network": "gone"})
    scripted.answers["GET /os-keypairs/mine"] = Answer(403, {})
    check_found(context, schema, {"key": "mine"})


@pytest.mark.parametrize("entries", ["x", [1], [["a", "b"]], [[NETWORK, ["public"], A]], [{"a": 1}], None])
def test_ids_that_somebody_else_has_written_are_ignored(entries: Json) -> None:
    """The data of an adopted resource come from a document."""
    assert known_to_be_same({IDS: entries}, NETWORK, "public", A) is None
    assert known_to_be_same({IDS: [*(entries or ()), [NETWORK, "public", A]]}, NETWORK, "public", A)


def test_what_a_name_has_meant_stays_known(scripted: ScriptedService) -> None:
    context = SharingContext(scripted)
    resolve(context, NETWORK, "public")
    data = with_ids({"x": 1}, context, SCHEMA, {"network": "public", "size": 2})
    assert data == {"x": 1, IDS: [[NETWORK, "public", A]]}
    scripted.answers["GET /networks?name=public"] = Answer(200, {"networks": []})  # It was renamed.
    later = ScriptedContext(scripted)
    asked = len(scripted.requests)
    assert same_thing(later, data)(NETWORK, "public", A)
    assert with_ids(data, later, SCHEMA, {"network": "public"}) == data
    assert with_ids(data, later, SCHEMA, {"network": A}) == {"x": 1}
    assert len(scripted.requests) == asked


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [("public", A, True), ("public", B, False), (A, "public", True), (A, "other", None), ("other", A, None)],
)
def test_a_preview_asks_no_service(before: str, after: str, *, expected: bool | None) -> None:
    data: JsonMap = {IDS: [[NETWORK, "public", A]]}
    assert known_to_be_same(data, NETWORK, before, after) is expected


def test_names_are_found_on_all_levels() -> None:
    schema = {"networks": Property("list", schema=Property("map", schema=SCHEMA))}
    values = {"networks": [{"network": "public", "size": 1}, {"network": None, "size": 1}]}
    assert list(named_things(schema, values)) == [(NETWORK, "public")]
