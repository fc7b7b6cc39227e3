"""Turns properties into fields of the bodies that services take."""

import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...shapes import Json, JsonMap
from ..contract import Property
from ..contract.properties import meanings

Find = Callable[[str, str], str]


@dataclass(frozen=True)
class NamedRemote:
    """A property that names another thing of the cloud.

    :ivar kind: a name in `names.KINDS`.
    :ivar field: field of the body; None: the property's name and ``_id``.
    """

    kind: str
    field: str | None = None


class Fields(typing.Protocol):
    """The parts of a declaration that concern properties; `declared.DeclaredType` describes them."""

    references: typing.ClassVar[Mapping[str, NamedRemote]]
    renamed: typing.ClassVar[Mapping[str, str]]
    apart: typing.ClassVar[Sequence[str]]


def without_nulls(properties: JsonMap) -> dict[str, Json]:
    """Return the properties that have a value."""
    return {name: value for name, value in properties.items() if value is not None}


def given(schema: Mapping[str, Property], properties: JsonMap) -> dict[str, Json]:
    """Return the properties that have a value, as the schema says what an empty one means."""
    return without_nulls(meanings(schema, properties))


def fields(declared: Fields, properties: JsonMap, find: Find) -> dict[str, Json]:
    """Return properties as fields of a body; names of other things become their ids.

    :param find: function that returns the id of a thing of a kind by its name or id.
    """
    body: dict[str, Json] = {}
    for name, value in properties.items():
        if name in declared.apart:
            continue
        if (reference := declared.references.get(name)) is not None:
            body[reference.field or f"{name}_id"] = _resolved(reference, value, find)
        else:
            body[declared.renamed.get(name, name)] = value
    return body


def json_patch(body: JsonMap) -> JsonMap:
    """Return the operations that give a thing these fields; null removes one."""
    operations = [
        {"op": "remove", "path": f"/{name}"}
        if value is None
        else {"op": "replace", "path": f"/{name}", "value": value}
        for name, value in body.items()
    ]
    return typing.cast(JsonMap, operations)


def live_fields(declared: Fields, properties: JsonMap, remote: JsonMap) -> dict[str, Json]:
    """Return those of the properties that are fields of a thing and no references, as they are there."""
    fields = {}
    for name, value in properties.items():
        field = declared.renamed.get(name, name)
        if value is not None and field in remote and name not in {*declared.references, *declared.apart}:
            fields[name] = remote[field]
    return fields


def texts(values: JsonMap | None) -> dict[str, str]:
    """Return values as texts, for services that take and keep nothing else."""
    return {name: str(value) for name, value in (values or {}).items()}


def _resolved(reference: NamedRemote, value: Json, find: Find) -> Json:
    if isinstance(value, list):
        return [find(reference.kind, str(item)) for item in value]
    return find(reference.kind, str(value)) if value else None
