"""The interfaces of a server and their ports, from the property ``networks`` to the attributes.

Pure functions decide how an update gets from the interfaces that a server has to those of the property; names
are ids already.  The algorithm is Heat's.  An entry of the property keeps the interface that it fits to; the
interfaces and entries without a partner are detached and attached.

A port that Stoker makes for a server bears the mark of the server's creation as its description.  So a
repeated step finds it, and the deletion of the server deletes it.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ....shapes import Json, JsonMap
from ...contract import PermanentError, ResourceView, RetryableError, StepContext
from ...imported import IMPORTED_PORTS
from ..bodies import without_nulls
from ..marks import mark_of
from ..names import NameNotFound, resolve
from ..neutron.schema import extra_fields
from ..service import Conflict, RemoteNotFound, Service, in_use, service_of

MARK = "ports_mark"
"""Key of a resource's data: the mark of the ports that were made for its server."""
FRESH = 60.0
"""Seconds for which a view of a network or subnet is taken for true."""
REFERENCES = {"network": "neutron.network", "port": "neutron.port", "subnet": "neutron.subnet"}
Addresses = Mapping[str, list[dict[str, Json]]]
MAC = "OS-EXT-IPS-MAC:mac_addr"
KIND = "OS-EXT-IPS:type"
"""Keys of a server's addresses."""
FIXED_EXTRAS = ("mac_address", "no_fixed_ips")
"""Extra properties of a port that an update of the port cannot change."""


@dataclass(frozen=True)
class Nic:
    """An entry of the property ``networks``; None is not given.

    :ivar extras: extra properties of the port that is made for it.
    """

    network: str | None = None
    port: str | None = None
    subnet: str | None = None
    fixed_ip: str | None = None
    floating_ip: str | None = None
    tag: str | None = None
    extras: JsonMap | None = None

    @property
    def needs_port(self) -> bool:
        """True if the compute service cannot make its port."""
        return not self.port and bool(self.subnet or self.extras is not None)

    @property
    def rank(self) -> tuple[bool, bool, bool, bool]:
        """Place in the order of choice: who asks for most, chooses first."""
        return (not self.port, not self.fixed_ip, not self.subnet, not self.network)


@dataclass(frozen=True)
class ServerInterface:
    """An interface that a server has.

    :ivar fixed_ips: pairs of subnet and address.
    :ivar is_own: whether its port was made for this server, and is deleted with it.
    """

    port: str
    network: str
    mac: str
    fixed_ips: Sequence[Sequence[str]]
    is_own: bool


@dataclass(frozen=True)
class InterfaceChanges:
    """The way from one set of interfaces to another.

    :ivar detach: interfaces to detach, each with its entry of the former property, if it has one.
    :ivar attach: entries to attach an interface for.
    :ivar retained: interfaces that stay, each with its former and its new entry.
    """

    detach: Sequence[tuple[ServerInterface, Nic | None]] = ()
    attach: Sequence[Nic] = ()
    retained: Sequence[tuple[ServerInterface, Nic | None, Nic]] = ()


Accepts = Callable[[Nic, ServerInterface], bool]


def fits(nic: Nic, interface: ServerInterface) -> bool:
    """Return whether an interface is as an entry says, as far as it says."""
    if not (nic.port or nic.fixed_ip or nic.subnet or nic.network):
        return False
    subnets = [subnet for subnet, _ in interface.fixed_ips]
    addresses = [address for _, address in interface.fixed_ips]
    return (
        nic.port in (None, interface.port)
        and nic.network in (None, interface.network)
        and (nic.subnet is None or nic.subnet in subnets)
        and (nic.fixed_ip is None or nic.fixed_ip in addresses)
    )


def pair(
    nics: Sequence[Nic], interfaces: Sequence[ServerInterface], accepts: Accepts = fits
) -> dict[int, ServerInterface]:
    """Return the interface of each entry, by the entry's place; entries without one are absent."""
    free = list(interfaces)
    pairs = {}
    for index in sorted(range(len(nics)), key=lambda index: nics[index].rank):
        chosen = next((item for item in free if accepts(nics[index], item)), None)
        if chosen is not None:
            pairs[index] = chosen
            free.remove(chosen)
    return pairs


def interface_changes(
    old: Sequence[Nic], new: Sequence[Nic], interfaces: Sequence[ServerInterface]
) -> InterfaceChanges:
    """Return how the interfaces become those of the new property.

    Interfaces that somebody else has attached stay.  Where the old property is empty the compute service
    has chosen the network, so all interfaces are the server's own.
    """
    paired = pair(old, interfaces)
    before = {interface.port: old[index] for index, interface in paired.items()}
    own_interfaces = [item for item in interfaces if item.port in before or item.is_own or not old]

    def may_have(nic: Nic, interface: ServerInterface) -> bool:
        # A port that the former entry names may be deleted when no entry names it any more.
        former = before.get(interface.port)
        return fits(nic, interface) and (former is None or not former.port or bool(nic.port))

    def stays(nic: Nic, interface: ServerInterface) -> bool:
        return may_have(nic, interface) and _port_options(nic) == _port_options(before.get(interface.port))

    def may_become(nic: Nic, interface: ServerInterface) -> bool:
        return may_have(nic, interface) and _can_change(before.get(interface.port), nic, interface)

    chosen = pair(new, own_interfaces, stays)
    unpaired = [index for index in range(len(new)) if index not in chosen]
    free = [item for item in own_interfaces if item not in chosen.values()]
    adapted = pair([new[index] for index in unpaired], free, may_become)
    chosen |= {unpaired[index]: interface for index, interface in adapted.items()}
    return InterfaceChanges(
        detach=[(item, before.get(item.port)) for item in own_interfaces if item not in chosen.values()],
        attach=[nic for index, nic in enumerate(new) if index not in chosen],
        retained=[(item, before.get(item.port), new[index]) for index, item in sorted(chosen.items())],
    )


def _port_options(nic: Nic | None) -> tuple[str | None, str | None, Json]:
    return (nic.floating_ip, nic.tag, nic.extras) if nic is not None else (None, None, None)


def _can_change(before: Nic | None, after: Nic, interface: ServerInterface) -> bool:
    """Return whether the interface of an entry can stay where other things of the entry have changed."""
    former = before if before is not None else Nic()
    if former.tag != after.tag:
        return False
    if former.extras == after.extras:
        return True
    if after.extras is None or not interface.is_own:
        return False
    had = former.extras or {}
    return all(had.get(name) == after.extras.get(name) for name in FIXED_EXTRAS)


def nics_of(entries: Sequence[JsonMap] | None, context: StepContext, *, strict: bool = True) -> list[Nic]:
    """Return the entries of the property ``networks`` with the ids of the things that they name.

    An entry with allocate_network is left out.

    :param strict: whether a name that nothing has is an error; otherwise the name stays.
    :raises NameNotFound, NameNotUnique: no thing, or several, have a name.
    """
    return [_nic(entry, context, strict=strict) for entry in entries or () if not entry["allocate_network"]]


def _nic(entry: JsonMap, context: StepContext, *, strict: bool) -> Nic:
    ids: dict[str, str] = {}
    for name, kind in REFERENCES.items():
        if entry[name]:
            try:
                ids[name] = resolve(context, kind, entry[name])
            except NameNotFound:
                if strict:
                    raise
                ids[name] = entry[name]
    options = {name: entry[name] or None for name in ("fixed_ip", "floating_ip", "tag")}
    extras = entry["port_extra_properties"]
    return Nic(**ids, **options, extras=None if extras is None else without_nulls(extras))


class ServerPorts:
    """The ports of one server.

    :param mark: the mark of the ports that are made for the server.
    """

    def __init__(self, target: ResourceView, context: StepContext, mark: str) -> None:
        self._target = target
        self._context = context
        self._mark = mark
        self._imported: Sequence[str] = target.data.get(IMPORTED_PORTS) or ()
        self._find = functools.partial(resolve, context)
        self.service: Service = service_of(context, "network")

    @classmethod
    def of(cls, target: ResourceView, context: StepContext) -> "ServerPorts":
        """Return the ports of a resource's server.

        An adopted server has ports that bear the mark of the resource which has made it.
        """
        mark = target.data.get(MARK) or mark_of(target.creation_key or target.key)
        return cls(target, context, str(mark))

    def interfaces(self, server: str, ports: Sequence[JsonMap] | None = None) -> list[ServerInterface]:
        """Return the interfaces of the server, the oldest first.

        :param ports: the ports that it has; None: they are read.
        """
        if ports is None:
            ports = self.service.list_all("/ports", "ports", device_id=server)
        return [
            self._interface(port)
            for port in sorted(ports, key=lambda port: str(port.get("created_at") or ""))
        ]

    def marked_ports(self) -> list[JsonMap]:
        """Return the ports that were made for the server."""
        ports = self.service.list_all("/ports", "ports", description=self._mark)
        for port_id in self._imported:
            ports += self.service.list_all("/ports", "ports", id=port_id)
        return [port for port in ports if self._is_own(port)]

    def _is_own(self, port: JsonMap) -> bool:
        """Return whether a port was made for the server, by Stoker or before an import."""
        return port.get("description") == self._mark or port["id"] in self._imported

    def with_ports(
        self,
        nics: Sequence[Nic],
        groups: Sequence[str],
        *,
        all_need_one: bool = False,
        places: Sequence[int] | None = None,
    ) -> list[Nic]:
        """Return the entries, those that need a port of the server's own with it, and associate floating IPs.

        :param groups: names or ids of security groups of new ports.
        :param places: numbers of the entries, the same in each repetition; None: 0, 1, and so on.
        :param all_need_one: whether entries that name a network get a port, too.
        """
        repeated = self._target.attempt > 1 and any(nic.needs_port or all_need_one for nic in nics)
        existing = {port["name"]: str(port["id"]) for port in self.marked_ports()} if repeated else {}
        networks = []
        for number, nic in zip(places or range(len(nics)), nics, strict=True):
            if nic.needs_port or (all_need_one and not nic.port):
                name = f"{self.prefix}{self._target.key[:8]}-{number}"
                nic = dataclasses.replace(nic, port=existing.get(name) or self._make(nic, name, groups))
            if nic.floating_ip and nic.port:
                self.associate(nic)
            networks.append(nic)
        return networks

    @property
    def prefix(self) -> str:
        """Beginning of the names of the ports that are made for the resource's servers."""
        return f"{self._target.stack.name}-{self._target.name}-port-"

    def associate(self, nic: Nic) -> None:
        """Associate the floating IP of an entry with its port."""
        body = without_nulls({"port_id": nic.port, "fixed_ip_address": nic.fixed_ip})
        self.service.put(f"/floatingips/{nic.floating_ip}", {"floatingip": body})

    def disassociate(self, floating_ip: str) -> None:
        """Disassociate a floating IP; one that does not exist is ignored."""
        try:
            self.service.put(f"/floatingips/{floating_ip}", {"floatingip": {"port_id": None}})
        except RemoteNotFound:
            return

    def change(self, port: str, extras: JsonMap) -> None:
        """Change the extra properties of a port."""
        body = {**extra_fields(extras, self._find), "description": self._mark}
        self.service.put(f"/ports/{port}", {"port": body})

    def release(self, port: str) -> None:
        """Release a port from a server that cannot detach it any more; a missing one is ignored."""
        try:
            self.service.put(f"/ports/{port}", {"port": {"device_id": "", "device_owner": ""}})
        except RemoteNotFound:
            return

    def delete(self, port: str) -> None:
        """Delete a port; a missing one is ignored.

        :raises RetryableError: the port is in use.
        """
        try:
            self.service.delete(f"/ports/{port}")
        except RemoteNotFound:
            return
        except Conflict as error:
            raise in_use(error) from error

    def delete_marked(self, attached_to: str | None = None) -> None:
        """Delete the ports that were made for the server.

        :param attached_to: id of a server whose ports stay; None: all are deleted.
        """
        for port in self.marked_ports():
            if attached_to is None or port["device_id"] != attached_to:
                self.delete(port["id"])

    def free_network(self) -> str:
        """Return the network that a server gets whose property names none.

        It is the only one that the project can use, or the one that the network service allocates.

        :raises PermanentError: the project can use several networks.
        """
        networks = self.service.list_all("/networks", "networks", shared=False, admin_state_up=True)
        shared = self.service.list_all("/networks", "networks", shared=True)
        # Administrators see the networks of all projects; those are not meant.
        of_project = [net for net in networks if net["project_id"] == self._target.stack.project_id]
        usable = [str(net["id"]) for net in [*of_project, *shared]]
        if len(usable) > 1:
            raise PermanentError(
                "Multiple possible networks found. Name one in networks.", kind="UnableToAutoAllocateNetwork"
            )
        if usable:
            return usable[0]
        topology = self.service.get(f"/auto-allocated-topology/{self._target.stack.project_id}")
        return str(topology["auto_allocated_topology"]["id"])

    def facts(self, server: str, ports: Sequence[JsonMap] | None = None) -> dict[str, Json]:
        """Return the mark of the ports, their interfaces, and networks and subnets of these by id.

        :param ports: the ports that the server has; None: they are read.
        """
        interfaces = self.interfaces(server, ports)
        networks = {item.network for item in interfaces}
        subnets = {subnet for item in interfaces for subnet, _ in item.fixed_ips}
        return {
            MARK: self._mark,
            "interfaces": [dataclasses.asdict(item) for item in interfaces],
            "networks": {key: self._read("network", key) for key in sorted(networks)},
            "subnets": {key: self._read("subnet", key) for key in sorted(subnets)},
        }

    def read_ahead(self, server: str, answer: str) -> None:
        """Read the networks and subnets that `facts` will need, as far as the property names them, once.

        A server that is built is so complete after one request to the network service.  A failure of these
        requests counts where `facts` makes them.

        :param answer: key of a port's data under which the service's answer is.
        """
        with contextlib.suppress(PermanentError, RetryableError):
            self._context.shared(("read ahead", server), lambda: self._read_named(answer), FRESH)

    def _read_named(self, answer: str) -> None:
        for nic in nics_of(self._target.properties["networks"], self._context, strict=False):
            resource = self._context.referenced(nic.port) if nic.port else None
            port = (resource.data.get(answer) if resource else None) or {}
            if network := nic.network or port.get("network_id"):
                self._read("network", network)
            for address in port.get("fixed_ips") or ():
                self._read("subnet", address["subnet_id"])

    def network_of(self, subnet: str) -> str:
        """Return the network of a subnet.

        :raises PermanentError: the subnet does not exist.
        """
        subnet_body = self._read("subnet", subnet)
        if subnet_body is None:
            raise PermanentError(f"The subnet ({subnet}) could not be found.", kind="EntityNotFound")
        return str(subnet_body["network_id"])

    def _read(self, item: str, key: str) -> Json:
        def read() -> Json:
            try:
                return self.service.get(f"/{item}s/{key}")[item]
            except RemoteNotFound:
                return None

        return self._context.shared((item, key), read, FRESH)

    def _make(self, nic: Nic, name: str, groups: Sequence[str]) -> str:
        network = nic.network or self.network_of(str(nic.subnet))
        body: dict[str, Json] = {"network_id": network, "name": name, "description": self._mark}
        if nic.fixed_ip or nic.subnet:
            body["fixed_ips"] = [without_nulls({"ip_address": nic.fixed_ip, "subnet_id": nic.subnet})]
        if groups:
            body["security_groups"] = [self._find("neutron.security_group", group) for group in groups]
        if nic.extras is not None:
            if nic.extras.get("no_fixed_ips"):
                body["fixed_ips"] = []
            body |= {**extra_fields(nic.extras, self._find), "description": self._mark}
        return str(self.service.post("/ports", {"port": body})["port"]["id"])

    def _interface(self, port: JsonMap) -> ServerInterface:
        return ServerInterface(
            port=str(port["id"]),
            network=str(port["network_id"]),
            mac=str(port["mac_address"]),
            fixed_ips=[[item["subnet_id"], item["ip_address"]] for item in port["fixed_ips"]],
            is_own=self._is_own(port),
        )


def address_attributes(server: JsonMap, data: JsonMap) -> dict[str, Json]:
    """Return the attributes that are made of the server's addresses.

    :param server: the server as the service last reported it.
    :param data: the resource's data, with the facts of `ServerPorts.facts`.
    """
    by_label: Addresses = server.get("addresses") or {}
    networks = {label: [entry["addr"] for entry in entries] for label, entries in by_label.items()}
    ids = _network_ids(data, by_label)
    detailed = {label: [_detailed(data, entry) for entry in entries] for label, entries in by_label.items()}
    return {
        "networks": {**networks, **{ids[label]: networks[label] for label in ids}},
        "addresses": {**detailed, **{ids[label]: detailed[label] for label in ids}},
        "first_address": _first(networks),
    }


def _network_ids(data: JsonMap, by_label: Addresses) -> dict[str, str]:
    of_mac = {item["mac"]: str(item["network"]) for item in data.get("interfaces") or ()}
    return {
        label: of_mac[entries[0][MAC]]
        for label, entries in by_label.items()
        if entries and entries[0].get(MAC) in of_mac
    }


def _detailed(data: JsonMap, entry: JsonMap) -> dict[str, Json]:
    """Return an address with its port, subnets and network; a floating one has none of them."""
    if entry.get(KIND) == "floating":
        return {**entry, "port": None}
    interfaces = [item for item in data.get("interfaces") or () if item["mac"] == entry.get(MAC)]
    if not interfaces:
        return {**entry, "port": None}
    subnets = [data["subnets"].get(subnet) for subnet, _ in interfaces[0]["fixed_ips"]]
    return {
        **entry,
        "port": interfaces[0]["port"],
        "subnets": [subnet for subnet in subnets if subnet is not None],
        "network": data["networks"].get(interfaces[0]["network"]),
    }


def _first(networks: Mapping[str, list[str]]) -> str:
    return next((networks[label][0] for label in sorted(networks, reverse=True) if networks[label]), "")
