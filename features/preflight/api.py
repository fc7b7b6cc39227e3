"""The preflight as the API's handlers ask for it."""

from collections.abc import Sequence

from ...db.rows import Stack
from ...engine.planning.requests import CreateRequest, UpdateRequest
from ...keystone.caller import CallerAccess
from ...shapes import JsonMap
from .check import CloudPreflight


class ApiPreflight:
    """Implements `api.collaborators.Preflight`.  Thread-safe."""

    def __init__(self, preflight: CloudPreflight) -> None:
        self._preflight = preflight

    def of_creation(self, request: CreateRequest, access: CallerAccess | None) -> Sequence[JsonMap]:
        """Return the findings for a stack that would be created."""
        return [finding.view() for finding in self._preflight.of_creation(request, access)]

    def of_update(
        self, stack: Stack, request: UpdateRequest, access: CallerAccess | None
    ) -> Sequence[JsonMap]:
        """Return the findings for an update."""
        return [finding.view() for finding in self._preflight.of_update(stack, request, access)]
