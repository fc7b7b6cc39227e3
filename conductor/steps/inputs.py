"""Values that a claimed task's definition refers to, sealed or in clear."""

import typing
from dataclasses import dataclass

from ...db.work.claim import Claim, InputValue
from ...resources.contract.errors import PermanentError
from ...resources.nested.base import output_error
from ...sealing.stored import as_residual
from ...shapes import Json
from ...template.residual import ReadOnce, mapping


class Opener(typing.Protocol):
    """Opens sealed values; Secrets does, and remembers them."""

    def open(self, token: str) -> Json:
        """Return the value of a token.

        :raises SealError: the key is not there.
        """

    def open_value(self, value: Json) -> Json:
        """Return a stored reference or attribute in clear."""

    def peek(self, value: Json) -> Json:
        """Return the same without remembering that it was sealed."""


@dataclass(frozen=True)
class SealedLookup(ReadOnce):
    """Implements template.residual.Lookup on the values that were read at the claim, for `partial`.

    Its values are as they are stored: secrets stay sealed.
    """

    claim: Claim

    def reference_id(self, resource: str) -> Json:
        """Return the reference of a resource.

        :raises PermanentError: the resource is gone.
        """
        return as_residual(self._input(resource).reference_id)

    def _read(self, resource: str, name: str) -> Json:
        """Return an attribute.

        :raises PermanentError: the resource is gone.
        """
        attributes = self._input(resource).attributes
        if name == "":
            return mapping({key: as_residual(value) for key, value in attributes.items()})
        return as_residual(attributes.get(name))

    def unseal(self, token: str) -> Json:
        """Refuse: nothing that is stored needs it."""
        raise AssertionError("a value that is stored would hold a secret")

    def _input(self, resource: str) -> InputValue:
        if resource not in self.claim.inputs:
            raise PermanentError(f"the resource {resource} that it refers to is gone")
        return self.claim.inputs[resource]


@dataclass(frozen=True)
class ClaimLookup(SealedLookup):
    """Implements the same lookup in clear, for `evaluate`."""

    secrets: Opener

    def reference_id(self, resource: str) -> Json:
        return self.secrets.open_value(self._input(resource).reference_id)

    def _read(self, resource: str, name: str) -> Json:
        """Return the value of an attribute in clear.

        :raises PermanentError: the resource is gone, or it is an output that can never be computed.
        """
        read = self._input(resource)
        if name == "":
            return {key: self.secrets.open_value(value) for key, value in read.attributes.items()}
        value = self.secrets.open_value(read.attributes.get(name))
        if value is None and (text := output_error(resource, self.secrets.peek(read.data), name)) is not None:
            raise PermanentError(text)
        return value

    def unseal(self, token: str) -> Json:
        """Return the value of a token.

        :raises SealError: the key is not there.
        """
        return self.secrets.open(token)
