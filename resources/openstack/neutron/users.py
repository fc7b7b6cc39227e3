"""The users of the things of the network service: ports, mostly, which its lists name; pure."""

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass

from ....shapes import JsonMap
from ...contract import CloudFacts, Members

_OF_SERVICE = frozenset(
    {
        "network:dhcp",
        "network:distributed",
        "network:floatingip_agent_gateway",
        "network:router_ha_interface",
        "network:router_centralized_snat",
    }
)
"""Owners of ports that the service makes, and deletes itself, with the interface or the network."""
OF_INTERFACE = frozenset(
    {
        "network:router_interface",
        "network:router_interface_distributed",
        "network:ha_router_replicated_interface",
    }
)
"""Owners of ports that are a router's interfaces."""
_OF_BALANCER = "lb-"
"""Begin of the device of the port of a load balancer's address; the balancer's id follows."""
_OF_AMPHORA = "octavia-lb-vrrp-"
"""Begin of the names of ports that go with their load balancer, whose id they do not have."""
_OF_SHARES = "manila:"
"""Owners of ports that go with their share network."""


@dataclass(frozen=True)
class Usage:
    """A list of the service, and the field by which its members use a thing.

    :ivar path: the path of the list.
    :ivar field: the field that has the thing's id, or a list of ids.
    :ivar key: where the field is a list of maps, the key in these that has the id.
    :ivar noun: the word for a member; "": it is a port, which has a server or a router.
    """

    path: str
    field: str
    key: str = ""
    noun: str = ""

    @property
    def items(self) -> str:
        """The key of the members in an answer."""
        return self.path.removeprefix("/")

    def query(self, physical_id: str) -> dict[str, str]:
        """Return the parameters of the list of those that use a thing."""
        return {self.field: f"{self.key}={physical_id}" if self.key else physical_id}

    def of(self, members: Members, physical_id: str) -> Iterator[JsonMap]:
        """Yield the members that use a thing."""
        if not self.key:
            yield from members.where(self.field, physical_id)
            return
        for member in members:
            entries = member.get(self.field)
            if any(entry.get(self.key) == physical_id for entry in entries or ()):
                yield member

    def label(self, member: JsonMap) -> str:
        """Return the name of a user, a port with its server or router."""
        return f"{self.noun} {member['id']}" if self.noun else label(member)

    def names_in(self, project_id: str, members: Iterable[JsonMap]) -> list[str]:
        """Return the names of the users of one project, and the number of the others, which comes first.

        A reason can be read by all of the project, and the user who made a stack may see others' things: an
        administrator does.  What the service deletes by itself keeps nothing.
        """
        users = [user for user in members if str(user.get("device_owner")) not in _OF_SERVICE]
        names = sorted(self.label(user) for user in users if user.get("project_id") == project_id)
        others = len(users) - len(names)
        kind = f"{self.noun or 'port'}{'s' if others > 1 else ''}"
        return [*([f"{others} {kind} of other projects"] if others else []), *names]


PORTS = "/ports"


def label(port: JsonMap) -> str:
    """Return the name of a port's user, with the port."""
    owner = str(port.get("device_owner") or "")
    device = "server" if owner.startswith("compute:") else "router" if "router" in owner else ""
    text = f"port {port['id']}"
    return f"{device} {port.get('device_id')} ({text})" if device else text


def users_outside(usage: Usage, physical_id: str, own: Set[str], cloud: CloudFacts) -> list[str]:
    """Return the users of a thing that are not of a stack, as far as the caller sees them.

    :param own: the physical ids of the stack's things.
    """
    members = cloud.members("network", usage.path, usage.items) or Members()
    users = usage.of(members, physical_id)
    return [f"the {usage.label(user)}" for user in users if not (_names(user) & own or _goes_with_it(user))]


def interfaces_outside(router: str, own: Set[str], cloud: CloudFacts) -> list[str]:
    """Return the interfaces of a router that are not of a stack, as far as the caller sees them.

    :param own: the physical ids of the stack's things; that of an interface has router, and subnet or port.
    """
    ports = cloud.members("network", PORTS, "ports") or Members()
    return [
        f"the port {port.get('id')}"
        for port in ports.where("device_id", router)
        if str(port.get("device_owner")) in OF_INTERFACE
        and own.isdisjoint({str(port.get("id")), *_subnets(port), *_interface_ids(port)})
    ]


def _subnets(port: JsonMap) -> list[str]:
    """Return the ids of the subnets that a port has addresses of."""
    return [str(entry.get("subnet_id")) for entry in port.get("fixed_ips") or ()]


def _interface_ids(port: JsonMap) -> Iterator[str]:
    """Yield the physical ids that a resource has that connects a router by a port."""
    router = port.get("device_id")
    yield f"{router}:port_id={port.get('id')}"
    yield from (f"{router}:subnet_id={subnet}" for subnet in _subnets(port))


def _names(user: JsonMap) -> Set[str]:
    """Return the ids of a user, of its connection, and of what has it: a server, a router or a balancer."""
    device = str(user.get("device_id")).removeprefix(_OF_BALANCER)
    return {str(user.get("id")), device, *_interface_ids(user)}


def _goes_with_it(user: JsonMap) -> bool:
    """Return whether a service deletes a user by itself."""
    owner = str(user.get("device_owner") or "")
    is_part = str(user.get("name") or "").startswith(_OF_AMPHORA) or owner.startswith(_OF_SHARES)
    return is_part or owner in _OF_SERVICE
