"""A compiled goal, as it is stored and planned."""

import typing
from collections.abc import Mapping
from dataclasses import dataclass

from ..sealing.sealer import BoundSealer
from ..template.compile import Identity
from ..template.model import CompiledTemplate
from ..template.parameters import parameter_strings

Json = typing.Any


@dataclass(frozen=True)
class Compiled:
    """A goal that was compiled and passed all checks.

    :ivar identity: the stack it was compiled for.
    :ivar environment: as stored: the values of hidden parameters sealed.
    :ivar parameters: of the request, as stored.
    :ivar sealer: of the tree of stacks, which has sealed them.
    """

    identity: Identity
    template: Mapping[str, Json]
    environment: Mapping[str, Json]
    files: Mapping[str, str]
    parameters: Mapping[str, Json]
    plan: CompiledTemplate
    sealer: BoundSealer

    @property
    def outputs(self) -> dict[str, Json]:
        """Return the outputs as they are stored on the stack."""
        return {
            name: {"value": output.value, "description": output.description}
            for name, output in self.plan.outputs.items()
        }

    @property
    def parameter_view(self) -> dict[str, str]:
        """Return every parameter as the API shows it, with the pseudo parameters."""
        return {**self.identity.pseudo(), **parameter_strings(self.plan.parameters)}
