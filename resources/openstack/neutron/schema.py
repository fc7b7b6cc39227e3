"""Properties and attributes that types share: those of the network service, and a server with its ports."""

from collections.abc import Mapping

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedValues, Custom
from ...schema import Attribute, Property, SupportStatus
from ..bodies import Find, without_nulls

NETWORK = "network|network_id"
SUBNET = "subnet|subnet_id"
"""Properties by which types name a network or a subnet, for implied dependencies."""
HIDDEN = SupportStatus("HIDDEN", message="Use the property that has taken its place.")
NAME = Property("string", "Name; none: made of the stack's and the resource's.", update_allowed=True)
TAGS = Property("list", "Tags of the thing.", update_allowed=True, schema=Property("string", "A tag."))
TENANT = Property(
    "string", "Project that owns the thing; only administrators may name another than their own."
)
VALUE_SPECS = Property(
    "map",
    "Further fields of the body, by name, for extensions of the service.",
    default={},
    update_allowed=True,
)
SHOWN: Mapping[str, Attribute] = {
    "name": Attribute("Name of the thing.", "string"),
    "show": Attribute("All that the service reports of it.", "map"),
    "tenant_id": Attribute("Project that owns it.", "string"),
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
        "string", "MAC address; none: the port's.", constraints=(Custom(check_name="mac_addr"),)
    ),
    "ip_address": Property(
        "string",
        "Address, or network as CIDR.",
        required=True,
        constraints=(Custom(check_name="ip_or_cidr"),),
    ),
}
EXTRA_PROPERTIES: Mapping[str, Property] = {
    "value_specs": VALUE_SPECS,
    "admin_state_up": Property("boolean", "The port is up.", default=True, update_allowed=True),
    "mac_address": Property(
        "string",
        "Its MAC address; none: the service chooses.",
        constraints=(Custom(check_name="mac_addr"),),
    ),
    "allowed_address_pairs": Property(
        "list",
        "Further addresses that may pass it.",
        update_allowed=True,
        schema=Property("map", "An address.", schema=ADDRESS_PAIR),
    ),
    "binding:vnic_type": Property(
        "string",
        "Kind of virtual network card.",
        default="normal",
        update_allowed=True,
        constraints=(VNIC_TYPES,),
    ),
    "port_security_enabled": Property(
        "boolean", "Security groups and protection against spoofing apply.", update_allowed=True
    ),
    "qos_policy": Property(
        "string",
        "Name or id of a QoS policy.",
        update_allowed=True,
        constraints=(Custom(check_name="neutron.qos_policy"),),
    ),
    "propagate_uplink_status": Property(
        "boolean", "The state of the uplink is passed on to it.", update_allowed=True
    ),
    "no_fixed_ips": Property("boolean", "It has no addresses.", default=False, update_allowed=True),
}
"""The properties that ports have also where Nova makes one for an entry of a server's networks."""
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
