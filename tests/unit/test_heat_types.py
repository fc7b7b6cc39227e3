"""The schemas of the types are those of Heat 27; doc/cloud_types.md has a table of what differs, and why.

heat_types.json holds what Heat 27.0.1 answers to ``GET /resource_types/TYPE``, without descriptions.
"""

import json
import pathlib
import typing

import pytest
from stoker.resources.registry import ResourceRegistry
from stoker.resources.rendering import resource_type_schema

Json = typing.Any
ROOT = pathlib.Path(__file__).parents[2]
HEAT = json.loads(pathlib.Path(__file__).with_name("heat_types.json").read_text())
REGISTRY = ResourceRegistry.installed()
COMPARED = ("type", "required", "default", "update_allowed", "immutable", "constraints", "schema")


def _shown(schema: Json) -> Json:
    """A property in the form of heat_types.json: without what is empty, and without texts."""
    found = {name: schema[name] for name in COMPARED if name in schema}
    if found.get("schema"):
        found["schema"] = {name: _shown(inner) for name, inner in found["schema"].items()}
    if found.get("constraints"):
        found["constraints"] = [
            {name: value for name, value in item.items() if name != "description"}
            for item in found["constraints"]
        ]
    empty: tuple[Json, ...] = (None, False, [], {})
    return {
        name: value
        for name, value in found.items()
        if value not in empty or (name == "default" and value is not None)
    }


def _flat(properties: Json, prefix: str = "") -> dict[str, Json]:
    """All properties by path, nested ones too, without their inner ones."""
    found: dict[str, Json] = {}
    for name, schema in properties.items():
        found[prefix + name] = {key: value for key, value in schema.items() if key != "schema"}
        found |= _flat(schema.get("schema") or {}, f"{prefix}{name}.")
    return found


def differences(name: str) -> list[str]:
    """``TYPE property PATH`` or ``TYPE attribute NAME`` for each that is not as in Heat."""
    shown = resource_type_schema(name, REGISTRY.get(name))
    ours = _flat({key: _shown(value) for key, value in shown["properties"].items()})
    theirs = _flat(HEAT[name]["properties"])
    found = [f"property {path}" for path in sorted({*ours, *theirs}) if ours.get(path) != theirs.get(path)]
    mine = {key: value.get("type") for key, value in shown["attributes"].items()}
    heats = HEAT[name]["attributes"]
    found += [
        f"attribute {key}" for key in sorted({*mine, *heats}) if mine.get(key, "") != heats.get(key, "")
    ]
    return found


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
