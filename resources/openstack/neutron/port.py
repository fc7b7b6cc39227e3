"""OS::Neutron::Port: a port of a network."""

import functools
from collections.abc import Collection

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedValues, Custom
from ...contract import (
    WITHOUT_EFFECT,
    Attribute,
    CloudCalls,
    ImpliedDependency,
    PermanentError,
    Property,
    PropertyError,
    ResourceView,
    RetryableError,
    Step,
    StepContext,
)
from ..bodies import NamedRemote
from ..declared import REMOTE
from ..marks import mark_of
from ..names import resolve
from ..service import MOST_USERS, Conflict, RemoteNotFound, in_use, objects_of
from .base import BUILT, NeutronType
from .fits import NETWORK_FITS
from .lacking_rules import LACKING_RULES
from .network_rules import NETWORK_RULES
from .released_addresses import ReleasedAddresses
from .schema import EXTRA_PROPERTIES, NAME, NETWORK, OF_NETWORK, SHOWN, TAGS
from .users import label

SUBNET = Custom(check_name="neutron.subnet")
FIXED_IP = {
    "subnet": Property(
        "string", "Name or id of the subnet that the address is allocated from.", constraints=(SUBNET,)
    ),
    "subnet_id": Property("string", "Old name of subnet.", constraints=(SUBNET,), alias_of="subnet"),
    "ip_address": Property("string", "IP address.", constraints=(Custom(check_name="ip_addr"),)),
}


class Port(NeutronType):
    """A port of a network: the connection of a server or a router."""

    type_name = "OS::Neutron::Port"
    description = "A port of a network, which connects a server or a router to it."
    path = "/ports"
    item = "port"
    quota = {"port": 1}
    status = BUILT
    implied_dependencies = (ImpliedDependency(NETWORK, "OS::Neutron::Subnet", NETWORK),)
    stack_rules = (*NETWORK_RULES, *LACKING_RULES)
    cloud_rules = NETWORK_FITS
    references = {
        "network": NamedRemote("neutron.network"),
        "security_groups": NamedRemote("neutron.security_group", "security_groups"),
        "qos_policy": NamedRemote("neutron.qos_policy"),
    }
    apart = (
        *("tags", "value_specs", "fixed_ips", "no_fixed_ips", "allowed_address_pairs"),
        "replacement_policy",
    )
    properties_schema = {
        **EXTRA_PROPERTIES,
        **OF_NETWORK,
        "device_id": Property(
            "string", "Id of the server or router that uses the port.", default="", update_allowed=True
        ),
        "device_owner": Property(
            "string",
            "Owner of the device, such as network:dhcp or compute:nova.",
            default="",
            update_allowed=True,
        ),
        "fixed_ips": Property(
            "list",
            "Fixed IP addresses; if omitted, one of each IP version that the network's subnets offer.",
            update_allowed=True,
            schema=Property("map", "Fixed IP address.", schema=FIXED_IP),
            empty="omitted",
        ),
        "security_groups": Property(
            "list",
            "Names or ids of security groups; if omitted, the project's default group.",
            update_allowed=True,
        ),
        "dns_name": Property(
            "string",
            "DNS name of the port.",
            update_allowed=True,
            constraints=(Custom(check_name="dns_name"),),
        ),
        "name": NAME,
        "tags": TAGS,
        "replacement_policy": Property(
            "string",
            "Replacement policy; without effect.",
            default="AUTO",
            update_allowed=True,
            constraints=(AllowedValues(values=("AUTO", "REPLACE_ALWAYS")),),
            support_status=WITHOUT_EFFECT,
        ),
    }
    attributes_schema = {
        **SHOWN,
        "admin_state_up": Attribute("Administrative state: true is up.", "string"),
        "device_id": Attribute("Id of the server or router that uses the port.", "string", volatile=True),
        "device_owner": Attribute(
            "Owner of the device, such as network:dhcp or compute:nova.", "string", volatile=True
        ),
        "fixed_ips": Attribute("Fixed IP addresses, each with its subnet.", "list", volatile=True),
        "mac_address": Attribute("MAC address.", "string"),
        "network_id": Attribute("Id of the network.", "string"),
        "security_groups": Attribute("Ids of the security groups.", "list"),
        "status": Attribute("Status of the port.", "string", volatile=True),
        "allowed_address_pairs": Attribute("Additional address pairs that may pass the port.", "list"),
        "subnets": Attribute(
            "Subnets of the fixed IP addresses; for outputs of the stack.", "list", volatile=True
        ),
        "network": Attribute("Network of the port; for outputs of the stack.", "map", volatile=True),
        "port_security_enabled": Attribute(
            "Port security: security groups and anti-spoofing apply.", "boolean"
        ),
        "qos_policy_id": Attribute("Id of the QoS policy.", "string"),
        "dns_assignment": Attribute(
            "DNS assignments: host name, FQDN and address of each.", "map", volatile=True
        ),
        "propagate_uplink_status": Attribute(
            "Propagation of the uplink's status to the port (SR-IOV).", "boolean"
        ),
    }

    def validate(self, properties: JsonMap) -> None:
        """Check that it has addresses or none, and no protection without port security."""
        if properties.get("no_fixed_ips") and properties.get("fixed_ips"):
            raise PropertyError("no_fixed_ips and fixed_ips exclude each other")
        protected = any(properties.get(name) for name in ("security_groups", "allowed_address_pairs"))
        if properties.get("port_security_enabled") is False and protected:
            raise PropertyError(
                "security_groups and allowed_address_pairs need port_security_enabled to be true"
            )

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Create the port; a refusal says who has the address, if that is a port of the same project."""
        try:
            return super().handle_create(target, context)
        except Conflict as error:
            users = self._users_of_addresses(target, context)
            if not users:
                raise
            raise Conflict(f"{error} ({'; '.join(users)})") from error

    def _users_of_addresses(self, target: ResourceView, context: StepContext) -> list[str]:
        """Return who has the addresses that a new port asks for; others' ports are nobody's business."""
        entries = target.properties["fixed_ips"] or ()
        addresses = [entry["ip_address"] for entry in entries if entry.get("ip_address")][:MOST_USERS]
        users = []
        try:
            for address in addresses:
                query = {
                    "fixed_ips": f"ip_address={address}",
                    "network_id": resolve(context, "neutron.network", target.properties["network"]),
                    "project_id": target.stack.project_id,
                }
                ports = self.service_for(context).list_all(self.path, "ports", **query)
                users += [f"{address} is that of {label(port)}" for port in ports]
        except (PermanentError, RetryableError):
            return []  # It is a detail: the refusal is there without it.
        return users

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        return {**super().create_body(target, context), **self._lists(target, None, context)}

    def reported_properties(self, target: ResourceView, remote: JsonMap, context: CloudCalls) -> JsonMap:
        """Return the fields; the user of the port is the template's only where the template names one."""
        values = super().reported_properties(target, remote, context)
        users = ("device_id", "device_owner")
        return {name: value for name, value in values.items() if name not in users or target.properties[name]}

    def update_body(
        self, target: ResourceView, changed: Collection[str], context: StepContext
    ) -> dict[str, Json]:
        """Return the fields that change; without security groups it gets the project's default one."""
        body = super().update_body(target, changed, context)
        if "security_groups" in changed and target.properties["security_groups"] is None:
            body["security_groups"] = [resolve(context, "neutron.security_group", "default")]
        if "port_security_enabled" in changed and target.properties["port_security_enabled"] is None:
            # A new port has the setting of its network.
            network = resolve(context, "neutron.network", target.properties["network"])
            remote = self.service_for(context).get(f"/networks/{network}")["network"]
            body["port_security_enabled"] = remote.get("port_security_enabled", True)
        return {**body, **self._lists(target, changed, context)}

    def prepare_for_replace(self, target: ResourceView, context: StepContext) -> None:
        """Release the addresses, also those of lost creations: the replacement may ask for the same."""
        self._delete_lost(target, context)
        if target.physical_id is None:
            return
        try:
            self._set_addresses(target.physical_id, [], context)
        except PermanentError:
            if not self._floating_ips(target, context).release():
                raise
            self._set_addresses(target.physical_id, [], context)

    def restore_after_replace(self, target: ResourceView, context: StepContext) -> None:
        """Take the addresses and floating IPs back, also where the replacement has them now."""
        addresses = _addresses(target)
        if target.physical_id is None or not addresses:
            return
        replacement = context.replacement()
        floating_ips = self._floating_ips(target, context)
        if replacement is not None and replacement.type == target.type:
            port_ids = [replacement.physical_id] if replacement.physical_id else []
            ports = {*port_ids, *self._marked(mark_of(replacement.key), context)}
            floating_ips.take_from(ports)
            for port in ports:
                self._set_addresses(port, [], context)
        self._set_addresses(target.physical_id, addresses, context)
        floating_ips.give_to(target.physical_id)

    def before_delete(self, target: ResourceView, context: StepContext) -> None:
        """Give a replacement the floating IPs that no other resource has given it."""
        replacement = context.replacement()
        if replacement is not None and replacement.type == target.type and replacement.physical_id:
            self._floating_ips(target, context).give_to(replacement.physical_id)

    def _floating_ips(self, target: ResourceView, context: StepContext) -> ReleasedAddresses:
        addresses = [str(item["ip_address"]) for item in _addresses(target) if "ip_address" in item]
        return ReleasedAddresses(self.service_for(context), self.id_of(target), addresses)

    def refresh(self, target: ResourceView, context: StepContext) -> JsonMap:
        """Return the present data, with the port's network and subnets."""
        data = super().refresh(target, context)
        service = self.service_for(context)
        port = data[REMOTE]
        subnets = dict.fromkeys(item["subnet_id"] for item in objects_of(port, "fixed_ips"))
        return {
            **data,
            "network": service.get(f"/networks/{port['network_id']}")["network"],
            "subnets": [service.get(f"/subnets/{subnet}")["subnet"] for subnet in subnets],
        }

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the fields of the stored answers."""
        others = {name: target.data.get(name) for name in ("network", "subnets")}
        return {**super().attribute_values(target), **others}

    def _set_addresses(self, port: str, addresses: Json, context: StepContext) -> None:
        try:
            self.service_for(context).put(f"{self.path}/{port}", {"port": {"fixed_ips": addresses}})
        except RemoteNotFound:
            return  # Somebody has deleted it, and so released its addresses.
        except Conflict as error:
            raise in_use(error) from error

    def _lists(
        self, target: ResourceView, changed: Collection[str] | None, context: StepContext
    ) -> dict[str, Json]:
        """Return the fields that are lists of maps: all that are given, or those that have changed."""
        properties = target.properties
        body = {}
        names = self.apart if changed is None else changed
        if "fixed_ips" in names and properties["fixed_ips"]:
            body["fixed_ips"] = [_fixed_ip(item, context) for item in properties["fixed_ips"]]
        if "no_fixed_ips" in names and properties["no_fixed_ips"]:
            body["fixed_ips"] = []
        pairs = properties["allowed_address_pairs"]
        if "allowed_address_pairs" in names and (changed is not None or pairs is not None):
            body["allowed_address_pairs"] = [_without_empty(pair) for pair in pairs or ()]
        return body


def _addresses(target: ResourceView) -> list[JsonMap]:
    """Return the port's addresses, each with its subnet, as they were after its last action."""
    return (target.data.get(REMOTE) or {}).get("fixed_ips") or []


def _fixed_ip(item: JsonMap, context: StepContext) -> dict[str, Json]:
    find = functools.partial(resolve, context, "neutron.subnet")
    fixed_ip = {"ip_address": item["ip_address"], "subnet_id": item["subnet"] and find(item["subnet"])}
    return _without_empty(fixed_ip)


def _without_empty(item: JsonMap) -> dict[str, Json]:
    return {name: value for name, value in item.items() if value}
