"""Stored values in clear."""

import typing
from collections.abc import Callable, Mapping

from ..db.resources import Resource
from ..template.residual import is_node

Json = typing.Any


class StoredLookup:
    """Implements template.residual.Lookup for values that were resolved before they were stored: they hold
    secrets at the most.

    :param unseal: opens the token of a secret.
    """

    def __init__(self, unseal: Callable[[str], Json]) -> None:
        self.unseal = unseal

    def reference_id(self, resource: str) -> Json:
        """Stored values refer to no resource."""
        raise LookupError(resource)

    def attribute(self, resource: str, name: str) -> Json:
        """Stored values refer to no resource."""
        raise LookupError(f"{resource}.{name}")


class RowLookup:
    """Implements template.residual.Lookup on rows of resources, by their names; in clear."""

    def __init__(self, rows: Mapping[str, Resource], unseal: Callable[[str], Json]) -> None:
        self._rows = rows
        self.unseal = unseal

    def reference_id(self, resource: str) -> Json:
        """As it was when the resource's last action ended."""
        return self._opened(self._rows[resource].reference_id)

    def attribute(self, resource: str, name: str) -> Json:
        """As it was when the resource's last action ended."""
        found = self._rows[resource].attributes or {}
        if name == "":
            return {key: self._opened(value) for key, value in found.items()}
        return self._opened(found.get(name))

    def _opened(self, value: Json) -> Json:
        return self.unseal(value["args"][0]) if is_node(value) and value["$fn"] == "sealed" else value
