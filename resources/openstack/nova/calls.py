"""Calls that change one server."""

from collections.abc import Mapping

from ...contract.context import StepContext
from ...contract.views import Json, ResourceView
from ..service import Conflict, RemoteNotFound, Service, in_use, service_of


class ServerCalls:
    """Calls of the compute service for one server.

    :ivar id: of the server.
    """

    def __init__(self, service: Service, server: str) -> None:
        self.service = service
        self.id = server

    @classmethod
    def of(cls, target: ResourceView, context: StepContext) -> "ServerCalls":
        """Return the calls for a resource's server."""
        return cls(service_of(context, "compute"), str(target.physical_id))

    @property
    def path(self) -> str:
        """The server's path."""
        return f"/servers/{self.id}"

    def get(self) -> Mapping[str, Json]:
        """Return the server as it is now.

        :raises RemoteNotFound: it does not exist.
        """
        server: Mapping[str, Json] = self.service.get(self.path)["server"]
        return server

    def delete(self) -> None:
        """Start to delete the server; a missing one is ignored."""
        try:
            self.service.delete(self.path)
        except RemoteNotFound:
            return

    def put(self, below: str, body: Json) -> None:
        """Change the server, or what is below it."""
        self.service.put(f"{self.path}{below}", body)

    def act(self, action: str, body: Json, *, ignore_conflict: bool = False) -> None:
        """Start an action of the server.

        :param ignore_conflict: the state is read again, anyway.
        :raises RetryableError: the server's state forbids it now.
        """
        try:
            self.service.post(f"{self.path}/action", {action: body})
        except Conflict as error:
            if not ignore_conflict:
                raise in_use(error) from error

    def detach(self, port: str) -> None:
        """Start to detach an interface; a missing one is ignored.

        :raises RetryableError: the server is busy.
        """
        try:
            self.service.delete(f"{self.path}/os-interface/{port}")
        except RemoteNotFound:
            return
        except Conflict as error:
            raise in_use(error) from error

    def attach(self, port: str, tag: str | None = None) -> None:
        """Attach a port.

        :raises RetryableError: the server is busy.
        """
        body = {"port_id": port, **({"tag": tag} if tag else {})}
        try:
            self.service.post(f"{self.path}/os-interface", {"interfaceAttachment": body})
        except Conflict as error:
            raise in_use(error) from error
