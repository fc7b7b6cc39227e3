"""The forms of stored values: in clear, masked, or as part of a residual.

========================================== ============================================================
column                                     form
========================================== ============================================================
stack.parameters, .outputs[].value,        residuals; only secrets are left to be opened in parameters
.previous and snapshot.goal, content.body
of an environment
resource.definition, task.definition       their fields are residuals
resource.properties                        residual in which only secrets are left
resource.reference_id, .attributes[]       quoted data in which secrets are sealed, each by itself
resource.data                              a secret's node, or quoted data
imported_key.secret                        a secret's node
resource.metadata                          entries of the template: residual in which only secrets are
                                           left; entries of signals and others: quoted data
software_config.body, software_deployment  sealed as a whole: see software.py
.input_values, .output_values
all other JSON                             literal, read as it is
========================================== ============================================================
"""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass

from ..db.rows import Resource
from ..shapes import Json
from ..template.residual import (
    ARGS,
    FN,
    ReadOnce,
    evaluate,
    is_deferred,
    is_node,
    mapping,
    members,
    retokened,
    token_of,
    unquoted,
)
from .redaction import MASK

Unseal = Callable[[str], Json]
"""Opens the token of a secret."""


@dataclass(frozen=True)
class StoredLookup:
    """Implements template.residual.Lookup for values that were resolved before they were stored.

    Such values hold secrets at the most.

    :ivar unseal: opens the token of a secret.
    """

    unseal: Unseal

    def reference_id(self, resource: str) -> Json:
        """Refuse: stored values refer to no resource."""
        raise LookupError(resource)

    def attribute(self, resource: str, name: str) -> Json:
        """Refuse: stored values refer to no resource."""
        raise LookupError(f"{resource}.{name}")


class SealedRowLookup(ReadOnce):
    """Implements template.residual.Lookup on rows of resources by name; keeps secrets sealed."""

    def __init__(self, rows: Mapping[str, Resource]) -> None:
        self._rows = rows

    def reference_id(self, resource: str) -> Json:
        """Return the value that the resource's last action has left."""
        return as_residual(self._rows[resource].reference_id)

    def _read(self, resource: str, name: str) -> Json:
        """Return the value that the resource's last action has left."""
        attributes = self._rows[resource].attributes or {}
        if name == "":
            return mapping({key: as_residual(value) for key, value in attributes.items()})
        return as_residual(attributes.get(name))

    def unseal(self, token: str) -> Json:
        """Refuse: `partial` opens no secret."""
        raise AssertionError("a secret would be opened")


class RowLookup(ReadOnce):
    """Implements template.residual.Lookup on rows of resources, by their names; in clear."""

    def __init__(self, rows: Mapping[str, Resource], unseal: Unseal) -> None:
        self._rows = rows
        self.unseal = unseal

    def reference_id(self, resource: str) -> Json:
        """Return the value that the resource's last action has left."""
        return in_clear(self._rows[resource].reference_id, self.unseal)

    def _read(self, resource: str, name: str) -> Json:
        """Return the value that the resource's last action has left."""
        attributes = self._rows[resource].attributes or {}
        if name == "":
            return {key: in_clear(value, self.unseal) for key, value in attributes.items()}
        return in_clear(attributes.get(name), self.unseal)


def in_clear(value: Json, unseal: Unseal) -> Json:
    """Return the data of a reference, an attribute or a resource's data."""
    if isinstance(value, list):
        return [in_clear(item, unseal) for item in value]
    if not isinstance(value, dict):
        return value
    token = token_of(value)
    if token is not None:
        return unseal(token)
    return {key: in_clear(item, unseal) for key, item in _entries(value).items()}


def as_residual(value: Json) -> Json:
    """Return the same as part of a residual: secrets stay sealed."""
    if isinstance(value, list):
        return [as_residual(item) for item in value]
    if not isinstance(value, dict) or token_of(value) is not None:
        return value
    return mapping({key: as_residual(item) for key, item in _entries(value).items()})


def _entries(value: dict[str, Json]) -> Mapping[str, Json]:
    """Return the entries of a map that was quoted."""
    return members(value) if is_node(value) and value[FN] == "literal" else value


def metadata_in_clear(row: Resource, unseal: Unseal) -> dict[str, Json]:
    """Return a resource's metadata as its type and its guests see it."""
    if not row.metadata:
        return {}
    lookup = StoredLookup(unseal)
    if is_made(row.metadata):
        metadata = evaluate(row.metadata, lookup)
        return metadata if isinstance(metadata, dict) else {}
    code = _code_in(row.definition)
    return {
        key: evaluate(value, lookup) if key in code else unquoted(value)
        for key, value in members(row.metadata).items()
    }


def is_made(metadata: Json) -> bool:
    """Return whether it is sealed, or made by a function, as a whole."""
    return is_node(metadata) and metadata[FN] != "literal"


def metadata_retokened(metadata: Json, definition: Json, change: Callable[[str], str]) -> Json:
    """Return a resource's metadata with `change` of each secret's token in its place."""
    if is_made(metadata):
        return retokened(metadata, change)
    code = _code_in(definition)
    entries = members(metadata).items()
    renewed = {key: retokened(value, change) if key in code else value for key, value in entries}
    return {**metadata, ARGS: [renewed]} if is_node(metadata) else renewed


def masked(tree: Json) -> Json:
    """Return a residual as it may be shown: secrets masked, functions as in a template."""
    if is_node(tree):
        if tree[FN] == "sealed":
            return MASK
        if tree[FN] == "error":
            return None  # It has no value yet.
        if tree[FN] == "literal":
            return {key: masked(item) for key, item in tree[ARGS][0].items()}
        args = [masked(arg) for arg in tree[ARGS]]
        single = len(args) == 1
        return {tree[FN]: args[0] if single else [arg for arg in args if arg != ""]}
    if isinstance(tree, dict):
        return {key: masked(item) for key, item in tree.items()}
    if isinstance(tree, list):
        return [masked(item) for item in tree]
    return tree


@dataclass(frozen=True)
class InClear:
    """Shows stored values to callers that may read their secrets.

    :ivar unseal: opens the token of a secret.
    """

    unseal: Unseal

    def residual(self, tree: Json) -> Json:
        """Return a value of which only secrets are left to be opened."""
        return evaluate(tree, StoredLookup(self.unseal))

    def data(self, row: Resource) -> Json:
        """Return the data that the resource's type has stored."""
        return in_clear(row.data, self.unseal) or {}

    def metadata(self, row: Resource) -> Json:
        """Return the resource's metadata."""
        return metadata_in_clear(row, self.unseal)


class Masked:
    """Shows stored values without their secrets."""

    def residual(self, tree: Json) -> Json:
        """Return a value of which only secrets are left to be opened."""
        return masked(tree)

    def data(self, row: Resource) -> Json:
        """Return the data that the resource's type has stored."""
        return in_clear(row.data, lambda token: MASK) or {}

    def metadata(self, row: Resource) -> Json:
        """Return the resource's metadata."""
        return masked(row.metadata or {})


def _code_in(definition: Json) -> Container[str]:
    """Return the names of the entries of metadata that the template defines by functions."""
    declared = (definition or {}).get("metadata", {})
    if is_made(declared):
        return _Everything()
    return {key for key, value in members(declared).items() if is_deferred(value)}


class _Everything:
    def __contains__(self, key: object) -> bool:
        return True
