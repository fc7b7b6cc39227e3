"""Stored values in clear."""

import typing
from collections.abc import Callable

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
