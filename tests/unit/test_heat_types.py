"""The schemas of the types are those of Heat 27; doc/cloud_types.md has a table of what differs, and why.

heat_types.json holds what Heat 27.0.1 answers to ``GET /resource_types/TYPE``, without descriptions.
That Heat had no Neutron with chains of services, taps and L2 gateways; of these types it holds what Heat's
source declares.
"""

import json
import pathlib
import re
import typing

import pytest
from stoker.resources.registry import ResourceRegistry
from stoker.resources.rendering import resource_type_schema

Json = typing.Any
ROOT = pathlib.Path(__file__).parents[2]
HEAT = json.loads(pathlib.Path(__file__).with_name("heat_types.json").read_text())
REGISTRY = ResourceRegistry.installed()
COMPARED = ("type", "required", "default", "update_allowed", "immutable", "constraints", "schema")


def _comparable(schema: Json) -> Json:
    """A property in the form of heat_types.json: without what is empty, and without texts."""
    compared = {name: schema[name] for name in COMPARED if name in schema}
    if compared.get("schema"):
        compared["schema"] = {name: _comparable(inner) for name, inner in compared["schema"].items()}
    if compared.get("constraints"):
        compared["constraints"] = [
            {name: value for name, value in item.items() if name != "description"}
            for item in compared["constraints"]
        ]
    empty: tuple[Json, ...] = (None, False, [], {})
    return {
        name: value
        for name, value in compared.items()
        if value not in empty or (name == "default" and value is not None)
    }


def _flat(properties: Json, prefix: str = "") -> dict[str, Json]:
    """All properties by path, nested ones too, without their inner ones."""
    flat: dict[str, Json] = {}
    for name, schema in properties.items():
        flat[prefix + name] = {key: value for key, value in schema.items() if key != "schema"}
        flat |= _flat(schema.get("schema") or {}, f"{prefix}{name}.")
    return flat


def differences(name: str) -> list[str]:
    """``TYPE property PATH`` or ``TYPE attribute NAME`` for each that is not as in Heat."""
    schema = resource_type_schema(name, REGISTRY.get(name))
    our_properties = _flat({key: _comparable(value) for key, value in schema["properties"].items()})
    heat_properties = _flat(HEAT[name]["properties"])
    differences = [
        f"property {path}"
        for path in sorted({*our_properties, *heat_properties})
        if our_properties.get(path) != heat_properties.get(path)
    ]
    our_attributes = {key: value.get("type") for key, value in schema["attributes"].items()}
    heats = HEAT[name]["attributes"]
    differences += [
        f"attribute {key}"
        for key in sorted({*our_attributes, *heats})
        if our_attributes.get(key, "") != heats.get(key, "")
    ]
    return differences


def _documented() -> dict[str, list[str]]:
    """The differences that the table of doc/cloud_types.md names, by type."""
    by_type: dict[str, list[str]] = {}
    for line in (ROOT / "doc/cloud_types.md").read_text().splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        if len(cells) == 3:
            by_type.setdefault(cells[0], []).extend(part.strip(" `") for part in cells[1].split(","))
    return by_type


def test_each_type_has_heats_schema(subtests: pytest.Subtests) -> None:
    documented = _documented()
    for name in sorted(HEAT.keys() & set(REGISTRY.names())):
        with subtests.test(name):
            assert sorted(differences(name)) == sorted(documented.get(name, []))


def test_all_types_of_clouds_are_compared() -> None:
    clouds = [
        name for name in REGISTRY.names() if name.split("::")[1] in ("Neutron", "Nova", "Cinder", "Glance")
    ]
    assert set(clouds) <= set(HEAT)
    assert len(clouds) >= 17


def test_each_type_of_a_cloud_is_tried_on_its_service_or_says_that_it_is_not() -> None:
    """Types of CloudFormation are translations of others."""
    texts = [
        file.read_text() for file in (ROOT / "tests/cloud").rglob("*") if file.suffix in (".py", ".yaml")
    ]
    words = set(re.findall(r"\w+", "\n".join(texts)))
    names = [name for name in REGISTRY.names() if not name.startswith(("AWS::", "OS::Heat::"))]
    on_service = [name for name in names if not REGISTRY.get(name).tested_by_schema]
    assert [name for name in on_service if name.rpartition("::")[2] not in words] == []
