"""One module decides what of a resource is sealed, and what its type sees of it."""

import ast
import json
import typing
from dataclasses import replace

import pytest
import yaml
from harness.sources import ROOT, source
from services.db.rows import a_resource
from stoker.db.ids import ResourceId, StackId
from stoker.engine import stored_resource
from stoker.engine.stored_resource import (
    StoredResource,
    changed_properties,
    data_column,
    metadata_of_origin,
    value_columns,
)
from stoker.resources.contract.views import StackFacts
from stoker.resources.registry import ResourceRegistry
from stoker.sealing.sealer import Sealer, SealError
from stoker.sealing.secrets import Secrets
from stoker.sealing.stored import StoredLookup
from stoker.template.residual import token_of

REGISTRY = ResourceRegistry.installed()
SECRET = 'a "quoted"\tword\nof two lines: ä'
WRITERS = ("seal", "protect", "protect_whole", "protect_each")
"""Methods of Secrets that make a column."""
PASSED_ON = [
    (type_name, name, attribute.from_property)
    for type_name in REGISTRY.names()
    for name, attribute in REGISTRY.get(type_name).attributes_schema.items()
    if attribute.from_property is not None
]


@pytest.fixture
def secrets() -> Secrets:
    sealer = Sealer([Sealer.generate_key()]).of_stack("project", "root")
    return Secrets(sealer)


@pytest.mark.parametrize("convert", [str, json.dumps, yaml.safe_dump, repr])
@pytest.mark.parametrize(("type_name", "name", "property_name"), PASSED_ON)
def test_an_attribute_of_a_hidden_property_is_sealed_in_whatever_form(
    secrets: Secrets, type_name: str, name: str, property_name: str, convert: typing.Callable[[str], str]
) -> None:
    plugin = REGISTRY.get(type_name)
    stored_resource.note_properties({property_name: secrets.seal(SECRET)}, {property_name: SECRET}, secrets)
    converted = convert(SECRET)
    columns = value_columns(plugin, {name: converted, "other": "plain"}, "id", secrets)
    columns["data"] = data_column(plugin, {"kept": converted}, secrets)
    assert "quoted" not in json.dumps(columns)
    assert columns["reference_id"] == "id"


@pytest.mark.parametrize(("type_name", "name", "property_name"), PASSED_ON)
def test_an_attribute_of_a_plain_property_stays_readable(
    secrets: Secrets, type_name: str, name: str, property_name: str
) -> None:
    plugin = REGISTRY.get(type_name)
    stored_resource.note_properties({property_name: "plain"}, {property_name: "plain"}, secrets)
    if not plugin.attributes_schema[name].sensitive:
        columns = value_columns(plugin, {name: "plain"}, "id", secrets)
        assert columns == {"attributes": {name: "plain"}, "reference_id": "id"}


@pytest.mark.parametrize("blank", ["", True, False, [], {}, {"on": False}, 0, "text"])
def test_an_attribute_is_sealed_by_its_declaration_whatever_its_value(
    secrets: Secrets, blank: typing.Any
) -> None:
    stored_resource.note_properties({"value": secrets.seal(blank)}, {"value": blank}, secrets)
    columns = value_columns(REGISTRY.get("OS::Heat::Value"), {"value": blank}, "id", secrets)
    token = token_of(columns["attributes"]["value"])
    assert token is not None
    assert secrets.open(token) == blank


def test_what_is_beside_a_secret_in_a_property_stays_readable_in_the_attribute(secrets: Secrets) -> None:
    stored = {"value": {"secret": secrets.seal(""), "plain": "", "list": [secrets.seal(True), True]}}
    value = {"secret": "", "plain": "", "list": [True, True]}
    stored_resource.note_properties(stored, {"value": value}, secrets)
    columns = value_columns(REGISTRY.get("OS::Heat::Value"), {"value": value}, "id", secrets)
    assert columns["attributes"] == stored


def test_a_hidden_property_stays_sealed_where_the_cloud_shows_another_value(secrets: Secrets) -> None:
    stored = {"value": secrets.seal(SECRET), "type": "string"}
    stored_resource.note_properties(stored, {"value": SECRET, "type": "string"}, secrets)
    column = changed_properties(
        REGISTRY.get("OS::Heat::Value"), stored, {"value": "else", "type": "json"}, secrets
    )
    assert secrets.open_value(column["value"]) == "else"
    assert column["type"] == "json"


def test_no_other_module_makes_a_column_of_a_resource() -> None:
    """A module with its own rule is how a hidden value comes into the database in clear."""
    allowed = {"engine/stored_resource.py", "sealing/secrets.py"}
    calls = []
    for folder in ("conductor", "engine", "features"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            relative = str(path.relative_to(ROOT))
            if relative not in allowed:
                calls += [f"{relative}:{node.lineno}" for node in _writing(source(path).nodes(ast.Call))]
    assert calls == []


def _writing(nodes: typing.Iterable[ast.Call]) -> typing.Iterator[ast.Call]:
    for node in nodes:
        if not isinstance(node.func, ast.Attribute):
            continue
        owner = node.func.value
        name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
        if node.func.attr in WRITERS and name.endswith("secrets"):
            yield node


def test_no_other_module_makes_a_view_of_a_row() -> None:
    """A module with its own rule shows a type another resource than the others do."""
    places = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for folder in ("api", "conductor", "engine", "features")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path.relative_to(ROOT).as_posix() != "engine/stored_resource.py"
        for node in source(path).nodes(ast.Call)
        if isinstance(node.func, ast.Name) and node.func.id == "ResourceView"
    ]
    assert places == []


@pytest.fixture
def partly_readable(secrets: Secrets) -> StoredResource:
    """A row with values that a lost key has sealed, beside others."""
    lost = Secrets(Sealer([Sealer.generate_key()]).of_stack("project", "root"))
    row = a_resource(
        StackId("s"),
        ResourceId(1),
        plugin="OS::Heat::TestResource",
        properties={"value": lost.seal("gone"), "fail": True},
        metadata={"word": lost.seal("gone")},
        definition={"metadata": {"word": lost.seal("gone")}},
        data=lost.seal({"kept": 1}),
    )
    plugin = REGISTRY.get(row.plugin)
    return StoredResource(row, StackFacts("s", "name", "project"), plugin, secrets.open)


@pytest.mark.parametrize("read", [StoredResource.properties, StoredResource.metadata, StoredResource.data])
def test_an_action_needs_all_values_of_its_resource(
    partly_readable: StoredResource, read: typing.Callable[[StoredResource], object]
) -> None:
    with pytest.raises(SealError):
        read(partly_readable)


def test_a_deletion_continues_without_the_values_that_a_lost_key_has_sealed(
    partly_readable: StoredResource,
) -> None:
    view = replace(partly_readable, is_deleting=True).view()
    default = partly_readable.plugin.properties_schema["value"].default
    assert (view.properties["value"], view.properties["fail"]) == (default, True)
    assert (view.metadata, view.data) == ({}, {})
    assert (view.id, view.type) == (partly_readable.row.id, "OS::Heat::TestResource")


def test_metadata_of_another_engine_keep_the_secrets_of_the_template_sealed(secrets: Secrets) -> None:
    template = {"word": secrets.seal(SECRET), "plain": 1}
    metadata = {"word": SECRET, "plain": 2, "signal": {"a": 1}}
    column = metadata_of_origin(metadata, template, StoredLookup(secrets.open))
    assert column == {**metadata, "word": template["word"]}
