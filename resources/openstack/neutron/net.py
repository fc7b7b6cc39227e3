"""OS::Neutron::Net: a network."""

from ....template.constraints import Custom
from ...schema import Attribute, Property
from ..bodies import NamedRemote
from .base import BUILT, NeutronType
from .schema import SHOWN, TAGS, TENANT, VALUE_SPECS


class Net(NeutronType):
    """A network of a project."""

    description = "A network. Subnets give it addresses, ports connect servers to it."
    path = "/networks"
    item = "network"
    port_query = ("network_id", "{}")
    status = BUILT
    references = {"qos_policy": NamedRemote("neutron.qos_policy")}
    apart = ("tags", "value_specs", "dhcp_agent_ids")
    properties_schema = {
        "name": Property(
            "string", "Name; none: made of the stack's and the resource's.", update_allowed=True
        ),
        "admin_state_up": Property("boolean", "The network is up.", default=True, update_allowed=True),
        "shared": Property(
            "boolean",
            "Other projects may use it; by default only administrators may say so.",
            default=False,
            update_allowed=True,
        ),
        "tenant_id": TENANT,
        "dhcp_agent_ids": Property(
            "list", "DHCP agents that serve it; for administrators only.", update_allowed=True
        ),
        "port_security_enabled": Property(
            "boolean", "New ports are protected by security groups.", update_allowed=True
        ),
        "dns_domain": Property(
            "string",
            "DNS domain of its ports.",
            update_allowed=True,
            constraints=(Custom(check_name="dns_domain"),),
        ),
        "qos_policy": Property(
            "string",
            "Name or id of a QoS policy.",
            update_allowed=True,
            constraints=(Custom(check_name="neutron.qos_policy"),),
        ),
        "availability_zone_hints": Property("list", "Availability zones, the best first."),
        "tags": TAGS,
        "value_specs": VALUE_SPECS,
    }
    attributes_schema = {
        **SHOWN,
        "admin_state_up": Attribute("The network is up.", "string"),
        "l2_adjacency": Attribute("Its ports are in one broadcast domain.", "boolean"),
        "mtu": Attribute("Size of the largest packet, in bytes.", "integer"),
        "port_security_enabled": Attribute("New ports are protected.", "boolean"),
        "qos_policy_id": Attribute("Id of its QoS policy.", "string"),
        "segments": Attribute("Its segments.", "list"),
        "status": Attribute("Its status.", "string"),
        "subnets": Attribute("Ids of its subnets.", "list", volatile=True),
    }
