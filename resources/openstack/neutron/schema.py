"""Properties and attributes that types share: those of the network service, and a server with its ports."""

from collections.abc import Mapping

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedValues, Custom, Length
from ...contract import Attribute, Property, SupportStatus
from ..bodies import Find, without_nulls

NETWORK = "network|network_id"
SUBNET = "subnet|subnet_id"
"""Properties by which types name a network or a subnet, for implied dependencies."""
HIDDEN = SupportStatus("HIDDEN", message="Use the property that has taken its place.")
_COLUMN = Length(maximum=255)
"""The length of the service's columns for names and tags (NAME_FIELD_SIZE in neutron-lib)."""
NAME = Property(
    "string",
    "Name; if omitted, generated from the names of the stack and the resource.",
    update_allowed=True,
    constraints=(_COLUMN,),
)
TAGS = Property(
    "list", "Tags.", update_allowed=True, schema=Property("string", "Tag.", constraints=(_COLUMN,))
)
OF_NETWORK: Mapping[str, Property] = {
    "network": Property(
        "string",
        "Name or id of the network.",
        required=True,
        constraints=(Custom(check_name="neutron.network"),),
    ),
    "network_id": Property("string", "Old name of network.", support_status=HIDDEN, alias_of="network"),
}
"""The network that a subnet or port is on."""
TENANT = Property("string", "Id of the owning project; another than one's own is for administrators only.")
ADMIN_STATE = Property("boolean", "Administrative state: true is up.", default=True, update_allowed=True)
DNS_DOMAIN = Property(
    "string",
    "DNS domain of the ports, with a full stop at the end.",
    update_allowed=True,
    constraints=(Custom(check_name="dns_domain"),),
)
PORT_SECURITY = Property(
    "boolean",
    "Default port security of new ports: security groups and anti-spoofing.",
    update_allowed=True,
)
VALUE_SPECS = Property(
    "map",
    "Extra fields of the request, by name, for API extensions.",
    default={},
    update_allowed=True,
)
SHOWN: Mapping[str, Attribute] = {
    "name": Attribute("Name.", "string"),
    "show": Attribute("All fields, as the service's API returns them.", "map"),
    "tenant_id": Attribute("Id of the owning project.", "string"),
}
"""Attributes that most of the types have."""
VNIC_TYPES = AllowedValues(
    values=(
        *("normal", "direct", "macvtap", "direct-physical", "baremetal"),
        *("virtio-forwarder", "smart-nic"),
    )
)
ADDRESS_PAIR = {
    "mac_address": Property(
        "string", "MAC address; if omitted, that of the port.", constraints=(Custom(check_name="mac_addr"),)
    ),
    "ip_address": Property(
        "string",
        "IP address, or network as CIDR.",
        required=True,
        constraints=(Custom(check_name="ip_or_cidr"),),
    ),
}
EXTRA_PROPERTIES: Mapping[str, Property] = {
    "value_specs": VALUE_SPECS,
    "admin_state_up": ADMIN_STATE,
    "mac_address": Property(
        "string",
        "MAC address; if omitted, the service assigns one.",
        constraints=(Custom(check_name="mac_addr"),),
    ),
    "allowed_address_pairs": Property(
        "list",
        "Additional address pairs that may pass the port, such as virtual IPs.",
        update_allowed=True,
        schema=Property("map", "Address pair.", schema=ADDRESS_PAIR),
    ),
    "binding:vnic_type": Property(
        "string",
        "VNIC type: normal is a virtual NIC, direct and macvtap use SR-IOV.",
        default="normal",
        update_allowed=True,
        constraints=(VNIC_TYPES,),
    ),
    "port_security_enabled": Property(
        "boolean", "Port security: security groups and anti-spoofing apply.", update_allowed=True
    ),
    "qos_policy": Property(
        "string",
        "Name or id of the QoS policy.",
        update_allowed=True,
        constraints=(Custom(check_name="neutron.qos_policy"),),
    ),
    "propagate_uplink_status": Property(
        "boolean", "Propagation of the uplink's status to the port (SR-IOV).", update_allowed=True
    ),
    "no_fixed_ips": Property(
        "boolean", "Port without fixed IP addresses.", default=False, update_allowed=True
    ),
}
"""The properties that ports have also where Nova makes one for an entry of a server's networks."""


def is_overridden(properties: JsonMap, *fields: str) -> bool:
    """Return whether ``value_specs`` may set a field, so that its property means nothing.

    :param properties: the known properties; those that are unknown are absent.
    """
    if "value_specs" not in properties:
        return True
    return any(field in (properties["value_specs"] or {}) for field in fields)


EXTRAS_APART = ("value_specs", "allowed_address_pairs", "no_fixed_ips", "qos_policy")
"""Extra properties that are no fields of the body by the same name."""


def extra_fields(properties: JsonMap, find: Find) -> dict[str, Json]:
    """Return the fields for those of the `EXTRA_PROPERTIES` that have a value.

    The property ``no_fixed_ips`` gives none: it matters to a new port only.

    :param find: function that returns the id of a QoS policy by its name or id.
    """
    values = without_nulls(properties)
    body = {name: value for name, value in values.items() if name not in EXTRAS_APART}
    if values.get("qos_policy"):
        body["qos_policy_id"] = find("neutron.qos_policy", values["qos_policy"])
    if "allowed_address_pairs" in values:
        body["allowed_address_pairs"] = [without_nulls(pair) for pair in values["allowed_address_pairs"]]
    return {**body, **(values.get("value_specs") or {})}
