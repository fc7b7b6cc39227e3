"""Reads the objects of a project that a stack can adopt, as the services describe them."""

import typing
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from keystoneauth1 import exceptions as ksa_exc
from openstack import exceptions as sdk_exc
from osc_lib import exceptions as exc

from ..shapes import Json, JsonMap
from .pages import PageTrail

SERVER_OWNER = "compute:"
"""Beginning of the owner of a server's port."""
ROUTER_OWNERS = (
    "network:router_interface",
    "network:router_interface_distributed",
    "network:ha_router_replicated_interface",
)
"""Owners of the ports that are interfaces of routers on the project's subnets."""
DEFAULT_GROUP = "default"
"""The security group that each project has, and no template can."""


@dataclass(frozen=True)
class CloudKind:
    """A kind of objects.

    :ivar noun: its name in messages; with dashes in the place of spaces it is the command's option.
    :ivar type: the resource type.
    :ivar service: name of the connection's attribute with the service's requests.
    :ivar path: path of the collection; `details` is the one of the list with all fields.
    :ivar item: key of an object in answers; a list has `item` and ``s``.
    :ivar version: microversion of the requests; None: the service has none, or its first one does.
    :ivar id_field: field with the physical id.
    :ivar is_of_project: whether a list is limited to the project by a parameter.
    """

    noun: str
    type: str
    service: str
    path: str
    item: str
    details: str = ""
    version: str | None = None
    id_field: str = "id"
    is_of_project: bool = False

    @property
    def option(self) -> str:
        """Return the option that names an object of the kind."""
        return f"--{self.noun.lower().replace(' ', '-')}"


def _network_kind(noun: str, name: str, path: str) -> CloudKind:
    item = path.removeprefix("/").removesuffix("s").replace("-", "_")
    return CloudKind(noun, f"OS::Neutron::{name}", "network", path, item, is_of_project=True)


KEY_PAIR = CloudKind(
    "key pair", "OS::Nova::KeyPair", "compute", "/os-keypairs", "keypair", version="2.35", id_field="name"
)
SERVER_GROUP = CloudKind(
    "server group", "OS::Nova::ServerGroup", "compute", "/os-server-groups", "server_group", version="2.64"
)
NETWORK = _network_kind("network", "Net", "/networks")
SUBNET = _network_kind("subnet", "Subnet", "/subnets")
ROUTER = _network_kind("router", "Router", "/routers")
SECURITY_GROUP = _network_kind("security group", "SecurityGroup", "/security-groups")
PORT = _network_kind("port", "Port", "/ports")
FLOATING_IP = _network_kind("floating IP", "FloatingIP", "/floatingips")
VOLUME = CloudKind("volume", "OS::Cinder::Volume", "block_storage", "/volumes", "volume", "/volumes/detail")
SERVER = CloudKind("server", "OS::Nova::Server", "compute", "/servers", "server", "/servers/detail", "2.79")
KINDS = (
    *(KEY_PAIR, SERVER_GROUP, NETWORK, SUBNET, ROUTER, SECURITY_GROUP, PORT, FLOATING_IP),
    *(VOLUME, SERVER),
)
"""The kinds, each after those to which its objects refer."""


@dataclass(frozen=True, order=True)
class RouterLink:
    """An interface of a router on a subnet; both by their ids."""

    router: str
    subnet: str

    @property
    def physical_id(self) -> str:
        """Return the physical id of the resource that it is."""
        return f"{self.router}:subnet_id={self.subnet}"


@dataclass(frozen=True)
class Inventory:
    """Objects to be adopted, with the facts that their descriptions need.

    :ivar objects: objects by the noun of their kind, as their service has them.
    :ivar ports: ports by the id of their server, the oldest first.
    :ivar attachments: attached volumes by the id of their server, in the order of their devices.
    :ivar groups: ids of server groups by the ids of the servers in them.
    :ivar interfaces: interfaces of routers to be adopted.
    """

    objects: Mapping[str, Sequence[JsonMap]] = field(default_factory=dict)
    ports: Mapping[str, Sequence[JsonMap]] = field(default_factory=dict)
    attachments: Mapping[str, Sequence[JsonMap]] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    interfaces: Sequence[RouterLink] = ()


class CloudObjects:
    """The objects of the client's project.

    :param connection: the connection of openstacksdk.
    """

    def __init__(self, connection: typing.Any) -> None:
        self._connection = connection

    def find(self, kind: CloudKind, name_or_id: str) -> JsonMap:
        """Return the object with an id or a name.

        :raises CommandError: there is none, or several have the name.
        """
        try:
            return self._get(kind, name_or_id)
        except (ksa_exc.NotFound, ksa_exc.BadRequest):
            pass  # It is a name.
        named = [item for item in self._pages(kind) if name_or_id in _names(item)]
        if not named:
            raise exc.CommandError(f"No {kind.noun} of the project has the name or ID {name_or_id}")
        if len(named) > 1:
            ids = ", ".join(str(item["id"]) for item in named)
            raise exc.CommandError(f"Several {kind.noun}s have the name {name_or_id}; give an ID: {ids}")
        return self._get(kind, str(named[0][kind.id_field]))

    def all(self, kind: CloudKind) -> list[JsonMap]:
        """Return all objects of a kind that a template can describe, in the order of their ids.

        A cloud without the service has none.
        """
        if not self._connection.has_service(kind.service.replace("_", "-")):
            return []
        objects = [item for item in self._pages(kind) if _is_adoptable(kind, item)]
        return sorted(objects, key=lambda item: str(item[kind.id_field]))

    def inventory(
        self, objects: Mapping[str, Sequence[JsonMap]], interfaces: Iterable[RouterLink] = ()
    ) -> Inventory:
        """Return objects with the facts that their descriptions need.

        :param interfaces: interfaces of other routers than those of `objects`, which have all of theirs.
        """
        routers = [str(item["id"]) for item in objects.get(ROUTER.noun, ())]
        of_routers = {interface for router in routers for interface in self.interfaces(router)}
        servers = [str(item["id"]) for item in objects.get(SERVER.noun, ())]
        groups = self._pages(SERVER_GROUP) if servers else []
        return Inventory(
            objects=objects,
            ports={server: self._server_ports(server) for server in servers},
            attachments={server: self._attachments(server) for server in servers},
            groups={member: str(group["id"]) for group in groups for member in group["members"]},
            interfaces=sorted(of_routers | set(interfaces)),
        )

    def interfaces(self, router: str) -> list[RouterLink]:
        """Return the interfaces of the router with an id."""
        return [
            RouterLink(router, str(address["subnet_id"]))
            for port in self._pages(PORT, device_id=router)
            if port["device_owner"] in ROUTER_OWNERS
            for address in port["fixed_ips"]
        ]

    def _server_ports(self, server: str) -> list[JsonMap]:
        ports = self._pages(PORT, device_id=server)
        return sorted(ports, key=lambda port: (str(port.get("created_at") or ""), str(port["id"])))

    def _attachments(self, server: str) -> list[JsonMap]:
        answer = self._read(SERVER, f"/servers/{server}/os-volume_attachments")
        return sorted(answer["volumeAttachments"], key=lambda item: str(item.get("device") or ""))

    def _get(self, kind: CloudKind, object_id: str) -> JsonMap:
        """Return the object with an id.

        :raises NotFound, BadRequest: none has it.
        """
        answer = self._request(kind, f"{kind.path}/{urllib.parse.quote(object_id, safe='')}")
        return typing.cast(JsonMap, answer[kind.item])

    def _pages(self, kind: CloudKind, **parameters: str) -> list[JsonMap]:
        """Return the objects of a list with all its pages."""
        if kind.is_of_project:
            # An administrator's list has those of all projects.
            parameters["project_id"] = str(self._connection.current_project_id)
        items = f"{kind.item}s"
        objects: list[JsonMap] = []
        address = kind.details or kind.path
        if parameters:
            address += f"?{urllib.parse.urlencode(parameters)}"
        trail = PageTrail(getattr(self._connection, kind.service).get_endpoint())
        while address:
            answer = self._read(kind, trail.checked(address))
            # A key pair is an object in an object of its list.
            objects += [item.get(kind.item, item) if len(item) == 1 else item for item in answer[items]]
            links = {link["rel"]: link["href"] for link in answer.get(f"{items}_links") or ()}
            address = links.get("next", "")
        return objects

    def _read(self, kind: CloudKind, address: str) -> Json:
        """Return the answer to a request.

        :raises CommandError: the service refuses it, or cannot be reached.
        """
        try:
            return self._request(kind, address)
        except (ksa_exc.ClientException, sdk_exc.SDKException) as error:
            raise exc.CommandError(f"The {kind.noun}s cannot be read: {error}") from error

    def _request(self, kind: CloudKind, address: str) -> Json:
        service = getattr(self._connection, kind.service)
        return service.get(address, microversion=kind.version, raise_exc=True).json()


def _names(item: JsonMap) -> tuple[Json, ...]:
    return item.get("name"), item.get("floating_ip_address")


def _is_adoptable(kind: CloudKind, item: JsonMap) -> bool:
    """Return whether an object is adopted where all of the project are.

    A port without a name that a server has was made for it by the compute service, and is deleted with it.
    """
    if kind == SECURITY_GROUP:
        return bool(item["name"] != DEFAULT_GROUP)
    if kind == PORT:
        is_server_port = str(item["device_owner"]).startswith(SERVER_OWNER)
        return not item["device_owner"] or bool(is_server_port and item["name"])
    return True
