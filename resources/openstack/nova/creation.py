"""The creation of a server, with the ports that the compute service cannot make."""

from collections.abc import Mapping

from ...contract.context import StepContext
from ...contract.views import Json, ResourceView
from ..marks import TagMark, mark_of
from ..service import service_of
from .body import server_body
from .ports import ServerPorts, nics_of

OLDEST_FILES = "compute 2.56"
"""The newest version of the interface that takes files; 2.57 has removed them."""


def create_server(target: ResourceView, context: StepContext, ports: ServerPorts) -> Mapping[str, Json]:
    """Make the ports that the compute service cannot make, and create the server.

    :returns: its id, and a password that must not be stored.
    :raises Conflict, PermanentError, RetryableError: as `Service`.
    """
    properties = target.properties
    nics = ports.with_ports(nics_of(properties["networks"], context), properties["security_groups"])
    body = server_body(target, context, nics)
    TagMark().put(body, mark_of(target.key))
    hints = properties["scheduler_hints"]
    headers = {"OpenStack_API_Version": OLDEST_FILES} if properties["personality"] else {}
    whole = {"server": body, **({"os:scheduler_hints": hints} if hints else {})}
    server: Mapping[str, Json] = service_of(context, "compute").post("/servers", whole, **headers)["server"]
    return server
