"""Ports of a server: calls of the network service, and the entries of its property with names resolved.

A port that Stoker makes for a server bears the mark of the server's creation as its description.  So a
repeated step finds it, and the deletion of the server deletes it.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from ...contract.context import StepContext
from ...contract.views import Json, ResourceView
from ...errors import PermanentError
from ..bodies import without_nulls
from ..marks import mark_of
from ..names import NameNotFound, resolve
from ..service import Conflict, RemoteNotFound, Service, in_use, service_of
from .networks import Nic, ServerInterface

MARK = "ports_mark"
"""Key of a resource's data: the mark of the ports that were made for its server."""
KEPT = 60.0
"""Seconds for which what is read of a network or subnet is taken for true."""
EXTRAS_APART = ("value_specs", "allowed_address_pairs", "no_fixed_ips", "qos_policy")
REFERENCES = {"network": "neutron.network", "port": "neutron.port", "subnet": "neutron.subnet"}


def nics_of(
    entries: Sequence[Mapping[str, Json]] | None, context: StepContext, *, strict: bool = True
) -> list[Nic]:
    """Return the entries of the property ``networks`` with the ids of what they name.

    An entry with allocate_network is left out.

    :param strict: what does not exist is an error; otherwise its name stays.
    :raises NameNotFound, NameNotUnique: as they say.
    """
    return [_nic(entry, context, strict=strict) for entry in entries or () if not entry["allocate_network"]]


def _nic(entry: Mapping[str, Json], context: StepContext, *, strict: bool) -> Nic:
    ids: dict[str, str] = {}
    for name, kind in REFERENCES.items():
        if entry[name]:
            try:
                ids[name] = resolve(context, kind, entry[name])
            except NameNotFound:
                if strict:
                    raise
                ids[name] = entry[name]
    others = {name: entry[name] or None for name in ("fixed_ip", "floating_ip", "tag")}
    extras = entry["port_extra_properties"]
    return Nic(**ids, **others, extras=None if extras is None else without_nulls(extras))


class ServerPorts:
    """The ports of one server.

    :param mark: of the ports that are made for it.
    """

    def __init__(self, target: ResourceView, context: StepContext, mark: str) -> None:
        self._target = target
        self._work = context
        self._mark = mark
        self.service: Service = service_of(context, "network")

    @classmethod
    def of(cls, target: ResourceView, context: StepContext) -> "ServerPorts":
        """Return the ports of a resource's server.

        An adopted server has ports that bear the mark of the resource which has made it.
        """
        mark = target.data.get(MARK) or mark_of(target.creation_key or target.key)
        return cls(target, context, str(mark))

    def interfaces(self, server: str) -> list[ServerInterface]:
        """Return the interfaces of the server, the oldest first."""
        ports = self.service.list_all("/ports", "ports", device_id=server)
        ports.sort(key=lambda port: str(port.get("created_at") or ""))
        return [self._interface(port) for port in ports]

    def marked_ports(self) -> list[Mapping[str, Json]]:
        """Return the ports that were made for the server."""
        ports = self.service.list_all("/ports", "ports", description=self._mark)
        return [port for port in ports if port.get("description") == self._mark]

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
        :param all_need_one: those that name a network get a port, too.
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

    def change(self, port: str, extras: Mapping[str, Json]) -> None:
        """Change the extra properties of a port."""
        body = {**self._extras(extras), "description": self._mark}
        self.service.put(f"/ports/{port}", {"port": body})

    def release(self, port: str) -> None:
        """Release a port from a server that cannot detach it any more; a missing one is ignored."""
        try:
            self.service.put(f"/ports/{port}", {"port": {"device_id": "", "device_owner": ""}})
        except RemoteNotFound:
            return

    def delete(self, port: str) -> None:
        """Delete a port; a missing one is ignored.

        :raises RetryableError: it is in use.
        """
        try:
            self.service.delete(f"/ports/{port}")
        except RemoteNotFound:
            return
        except Conflict as error:
            raise in_use(error) from error

    def delete_marked(self, attached_to: str | None = None) -> None:
        """Delete the ports that were made for the server.

        :param attached_to: ports of this server stay.
        """
        for port in self.marked_ports():
            if attached_to is None or port["device_id"] != attached_to:
                self.delete(port["id"])

    def free_network(self) -> str:
        """Return the network that a server gets whose property names none.

        It is the only one that the project can use, or the one that the network service allocates.

        :raises PermanentError: there are several.
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

    def facts(self, server: str) -> dict[str, Json]:
        """Return the mark of the ports, their interfaces, and networks and subnets of these by id."""
        interfaces = self.interfaces(server)
        networks = {item.network for item in interfaces}
        subnets = {subnet for item in interfaces for subnet, _ in item.fixed_ips}
        return {
            MARK: self._mark,
            "interfaces": [dataclasses.asdict(item) for item in interfaces],
            "networks": {key: self._read("network", key) for key in sorted(networks)},
            "subnets": {key: self._read("subnet", key) for key in sorted(subnets)},
        }

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

        return self._work.shared((item, key), read, KEPT)

    def _make(self, nic: Nic, name: str, groups: Sequence[str]) -> str:
        network = nic.network or self.network_of(str(nic.subnet))
        body: dict[str, Json] = {"network_id": network, "name": name, "description": self._mark}
        if nic.fixed_ip or nic.subnet:
            body["fixed_ips"] = [without_nulls({"ip_address": nic.fixed_ip, "subnet_id": nic.subnet})]
        if groups:
            find = "neutron.security_group"
            body["security_groups"] = [resolve(self._work, find, group) for group in groups]
        if nic.extras is not None:
            if nic.extras.get("no_fixed_ips"):
                body["fixed_ips"] = []
            body |= {**self._extras(nic.extras), "description": self._mark}
        return str(self.service.post("/ports", {"port": body})["port"]["id"])

    def _extras(self, extras: Mapping[str, Json]) -> dict[str, Json]:
        values = without_nulls(extras)
        body = {name: value for name, value in values.items() if name not in EXTRAS_APART}
        if values.get("qos_policy"):
            body["qos_policy_id"] = resolve(self._work, "neutron.qos_policy", values["qos_policy"])
        if "allowed_address_pairs" in values:
            body["allowed_address_pairs"] = [without_nulls(item) for item in values["allowed_address_pairs"]]
        return {**body, **(values.get("value_specs") or {})}

    def _interface(self, port: Mapping[str, Json]) -> ServerInterface:
        return ServerInterface(
            port=str(port["id"]),
            network=str(port["network_id"]),
            mac=str(port["mac_address"]),
            fixed_ips=[[item["subnet_id"], item["ip_address"]] for item in port["fixed_ips"]],
            is_own=port.get("description") == self._mark,
        )
