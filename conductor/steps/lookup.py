"""Looks up the values that a claimed task's definition refers to."""

import typing
from collections.abc import Mapping

from ...db.work.claim import Claim
from ...resources.errors import PermanentError
from ...sealing.stored import StoredLookup, as_residual
from ...template.residual import evaluate, mapping

Json = typing.Any


class Opener(typing.Protocol):
    """Opens what is sealed; Secrets does, and remembers it."""

    def open(self, token: str) -> Json:
        """Return the value of a token.

        :raises SealError: the key is not there.
        """

    def open_value(self, value: Json) -> Json:
        """Return a stored reference or attribute in clear."""


class SealedLookup:
    """Implements template.residual.Lookup on what was read when the task was claimed, for `partial`.

    Its values are as they are stored: secrets stay sealed.
    """

    def __init__(self, claim: Claim) -> None:
        self._claim = claim

    def reference_id(self, resource: str) -> Json:
        """Return the reference of a resource.

        :raises PermanentError: the resource is gone.
        """
        return as_residual(self._input(resource).reference_id)

    def attribute(self, resource: str, name: str) -> Json:
        """Return an attribute of a resource, or all of them for an empty name.

        :raises PermanentError: the resource is gone.
        """
        attributes = self._input(resource).attributes
        if name == "":
            return mapping({key: as_residual(value) for key, value in attributes.items()})
        return as_residual(attributes.get(name))

    def unseal(self, token: str) -> Json:
        """Refuse: nothing that is stored needs it."""
        raise AssertionError("a value that is stored would hold a secret")

    def _input(self, resource: str) -> typing.Any:
        if resource not in self._claim.inputs:
            raise PermanentError(f"the resource {resource} that it refers to is gone")
        return self._claim.inputs[resource]


class ClaimLookup(SealedLookup):
    """Implements the same lookup in clear, for `evaluate`."""

    def __init__(self, claim: Claim, secrets: Opener) -> None:
        super().__init__(claim)
        self._secrets = secrets

    def reference_id(self, resource: str) -> Json:
        """Implement Lookup in clear."""
        return self._secrets.open_value(self._input(resource).reference_id)

    def attribute(self, resource: str, name: str) -> Json:
        """Implement Lookup in clear."""
        attributes = self._input(resource).attributes
        if name == "":
            return {key: self._secrets.open_value(value) for key, value in attributes.items()}
        return self._secrets.open_value(attributes.get(name))

    def unseal(self, token: str) -> Json:
        """Return the value of a token.

        :raises SealError: the key is not there.
        """
        return self._secrets.open(token)


def stored_properties(stored: Mapping[str, Json] | None, secrets: Opener) -> dict[str, Json]:
    """Return properties as they were given to the type, from what is stored of them."""
    return dict(evaluate(stored or {}, StoredLookup(secrets.open)))
