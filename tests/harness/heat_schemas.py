"""The schemas of Heat's types, and which parts of them Stoker's types have.

heat_types.json holds what Heat 27.0.1 answers to ``GET /resource_types/TYPE``, without descriptions.
That Heat had no Neutron with chains of services, taps and L2 gateways, no Manila, Blazar, Zun, Mistral, Trove
and Ironic; of these types it holds what Heat's source declares.
"""

import dataclasses
import json
import pathlib
import typing
from collections.abc import Iterator, Mapping

from stoker.resources.registry import ResourceRegistry
from stoker.resources.rendering import resource_type_schema

Json = typing.Any
HEAT: Mapping[str, Json] = json.loads(pathlib.Path(__file__).with_name("heat_types.json").read_text())
"""Schemas of Heat's types by name."""
REGISTRY = ResourceRegistry.installed()
COMPARED = ("type", "required", "default", "update_allowed", "immutable", "constraints", "schema")


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The parts that a type has in Stoker or in Heat, each with whether it is the same in both.

    :ivar properties: by path, those within maps and lists, too.
    :ivar attributes: by name.
    """

    properties: Mapping[str, bool]
    attributes: Mapping[str, bool]

    def differences(self) -> Iterator[str]:
        """``property PATH`` or ``attribute NAME`` for each part that differs."""
        for word, parts in (("property", self.properties), ("attribute", self.attributes)):
            yield from (f"{word} {name}" for name, is_same in parts.items() if not is_same)


def compared(name: str) -> Comparison:
    """Compare a type that both have."""
    schema = resource_type_schema(name, REGISTRY.get(name))
    properties = _flat({key: _comparable(value) for key, value in schema["properties"].items()})
    attributes = {key: value.get("type") for key, value in schema["attributes"].items()}
    heat = HEAT[name]
    heats = _flat(heat["properties"])
    for path in properties.keys() & heats.keys():
        if "constraints" not in heats[path]:
            _drop_lengths(properties[path])
    return Comparison(_equal_parts(properties, heats), _equal_parts(attributes, heat["attributes"]))


def _drop_lengths(prop: dict[str, Json]) -> None:
    """Drop the lengths that a service takes: Heat leaves them to it, and creates other things before."""
    others = [item for item in prop.pop("constraints", []) if item.keys() != {"length"}]
    if others:
        prop["constraints"] = others


def _equal_parts(ours: Mapping[str, Json], heats: Mapping[str, Json]) -> dict[str, bool]:
    return {
        name: name in ours and name in heats and ours[name] == heats[name] for name in sorted({*ours, *heats})
    }


def _comparable(schema: Json) -> Json:
    """A property in the form of heat_types.json: without what is empty, and without texts."""
    parts = {name: schema[name] for name in COMPARED if name in schema}
    if parts.get("schema"):
        parts["schema"] = {name: _comparable(inner) for name, inner in parts["schema"].items()}
    if parts.get("constraints"):
        parts["constraints"] = [
            {name: value for name, value in item.items() if name != "description"}
            for item in parts["constraints"]
        ]
    empty: tuple[Json, ...] = (None, False, [], {})
    return {
        name: value
        for name, value in parts.items()
        if value not in empty or (name == "default" and value is not None)
    }


def _flat(properties: Json, prefix: str = "") -> dict[str, Json]:
    """All properties by path, nested ones too, without their inner ones."""
    flat: dict[str, Json] = {}
    for name, schema in properties.items():
        flat[prefix + name] = {key: value for key, value in schema.items() if key != "schema"}
        flat |= _flat(schema.get("schema") or {}, f"{prefix}{name}.")
    return flat
