"""A network in a project, and servers on it that a test drives step by step."""

import concurrent.futures
import typing
from collections.abc import Sequence

from harness.cloud.project import Project
from harness.resource_types import types_of
from harness.step_driver import Context, Driven
from openstack import exceptions

RESOURCE_TYPES = types_of("openstack.nova")

Json = typing.Any
IMAGE = "cirros"
FLAVOR = "m1.tiny"
BIGGER = "m1.small"


class Site:
    """A network with one subnet, 10.7.0.0/24, and servers on it.

    :param context: the context of the servers' steps; None: one that calls the services of the catalog.
    :ivar connection: the user's, the independent witness.
    """

    def __init__(self, project: Project, context: Context | None = None) -> None:
        self.project = project
        self.connection = project.connection
        self.context = context or Context(project.connection.session)
        self.network = self.make_network("net", "10.7.0.0/24")

    def make_network(self, name: str, cidr: str) -> Json:
        """A network with a subnet ``NAME-subnet``."""
        network = self.connection.network.create_network(name=name)
        self.connection.network.create_subnet(
            network_id=network.id, ip_version=4, cidr=cidr, name=f"{name}-subnet"
        )
        return network

    def make_port(self, network: Json = None, **fields: Json) -> Json:
        """A port of the user's own."""
        return self.connection.network.create_port(network_id=(network or self.network).id, **fields)

    def server(self, called: str = "srv", **properties: Json) -> Driven:
        """A server that is not created yet; None leaves out one of the usual properties."""
        usual = {"image": IMAGE, "flavor": FLAVOR, "networks": [{"network": self.network.id}]}
        values = {key: value for key, value in {**usual, **properties}.items() if value is not None}
        return Driven(RESOURCE_TYPES["OS::Nova::Server"](), self.context, values, called)

    def create_all(self, servers: Sequence[Driven]) -> Sequence[Driven]:
        """Create servers side by side."""
        with concurrent.futures.ThreadPoolExecutor(len(servers)) as pool:
            list(pool.map(Driven.create, servers))
        return servers

    def server_view(self, server: Driven | str) -> Json:
        """The server as the witness sees it."""
        return self.connection.compute.get_server(server if isinstance(server, str) else server.id)

    def is_gone(self, server: str) -> bool:
        """True if the witness sees no such server."""
        try:
            self.server_view(server)
        except exceptions.NotFoundException:
            return True
        return False

    def servers(self) -> list[str]:
        """Ids of all servers of the project."""
        return [server.id for server in self.connection.compute.servers(details=False)]

    def ports(self) -> list[str]:
        """Names of all ports of the project."""
        return sorted(port.name for port in self.connection.network.ports(project_id=self.project.id))

    def addresses(self, server: Driven) -> list[str]:
        """The server's addresses as the witness sees them."""
        networks = self.server_view(server).addresses.values()
        return sorted(entry["addr"] for entries in networks for entry in entries)
