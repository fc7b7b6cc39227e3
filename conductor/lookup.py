"""Values that a claimed task's definition refers to."""

import typing
from collections.abc import Mapping

from ..db.claims import Claim
from ..db.sealing import Sealer
from ..resources.errors import Final
from ..template.residual import evaluate, is_node, sealed

Json = typing.Any


class ClaimLookup:
    """Implements template.residual.Lookup on what was read when the task was claimed."""

    def __init__(self, claim: Claim, sealer: Sealer) -> None:
        self._claim = claim
        self._sealer = sealer

    def reference_id(self, resource: str) -> Json:
        """:raises Final: the resource is gone."""
        return open_sealed(self._input(resource).reference_id, self._sealer)

    def attribute(self, resource: str, name: str) -> Json:
        """:raises Final: the resource is gone."""
        attributes = self._input(resource).attributes
        if name == "":
            return {key: open_sealed(value, self._sealer) for key, value in attributes.items()}
        return open_sealed(attributes.get(name), self._sealer)

    def unseal(self, token: str) -> Json:
        """:raises SealError: the key is not there."""
        return self._sealer.open(token)

    def _input(self, resource: str) -> typing.Any:
        if resource not in self._claim.inputs:
            raise Final(f"the resource {resource} that it refers to is gone")
        return self._claim.inputs[resource]


def seal_value(value: Json, sealer: Sealer) -> Json:
    """A secret as it is stored."""
    return None if value is None else sealed(sealer.seal(value))


def open_sealed(value: Json, sealer: Sealer) -> Json:
    """A stored value in clear; others stay as they are."""
    if is_node(value) and value["$fn"] == "sealed":
        return sealer.open(value["args"][0])
    return value


class SealedLookup(ClaimLookup):
    """The same values, but secrets stay sealed: for what is stored."""

    def reference_id(self, resource: str) -> Json:
        """See ClaimLookup."""
        return self._input(resource).reference_id

    def attribute(self, resource: str, name: str) -> Json:
        """See ClaimLookup."""
        attributes = self._input(resource).attributes
        return dict(attributes) if name == "" else attributes.get(name)


class NoInputs:
    """A lookup for stored properties: they hold secrets at the most."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def reference_id(self, resource: str) -> Json:
        """Stored properties refer to no resource."""
        raise Final(f"the stored properties refer to {resource}")

    def attribute(self, resource: str, name: str) -> Json:
        """Stored properties refer to no resource."""
        raise Final(f"the stored properties refer to {resource}.{name}")

    def unseal(self, token: str) -> Json:
        """:raises SealError: the key is not there."""
        return self._sealer.open(token)


def stored_properties(stored: Mapping[str, Json] | None, sealer: Sealer) -> dict[str, Json]:
    """Properties as they were given to the plugin, from what is stored of them."""
    return dict(evaluate(stored or {}, NoInputs(sealer)))
