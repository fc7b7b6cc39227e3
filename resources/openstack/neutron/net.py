"""OS::Neutron::Net: a network."""

from ....template.constraints import Custom
from ...contract import Attribute, Property
from ..bodies import NamedRemote
from .base import BUILT, NeutronType
from .schema import ADMIN_STATE, DNS_DOMAIN, NAME, PORT_SECURITY, SHOWN, TAGS, TENANT, VALUE_SPECS
from .users import PORTS, Usage


class Net(NeutronType):
    """A network of a project."""

    type_name = "OS::Neutron::Net"
    description = "A network, with subnets for addresses and ports for servers."
    path = "/networks"
    item = "network"
    quota = {"network": 1}
    used_by = Usage(PORTS, "network_id")
    status = BUILT
    references = {"qos_policy": NamedRemote("neutron.qos_policy")}
    apart = ("tags", "value_specs", "dhcp_agent_ids")
    properties_schema = {
        "name": NAME,
        "admin_state_up": ADMIN_STATE,
        "shared": Property(
            "boolean",
            "Sharing with all projects; setting it is for administrators by default.",
            default=False,
            update_allowed=True,
        ),
        "tenant_id": TENANT,
        "dhcp_agent_ids": Property(
            "list",
            "Ids of the DHCP agents that serve the network; for administrators only.",
            update_allowed=True,
        ),
        "port_security_enabled": PORT_SECURITY,
        "dns_domain": DNS_DOMAIN,
        "qos_policy": Property(
            "string",
            "Name or id of the QoS policy.",
            update_allowed=True,
            constraints=(Custom(check_name="neutron.qos_policy"),),
        ),
        "availability_zone_hints": Property(
            "list", "Availability zone hints for the network's agents, in order of preference."
        ),
        "tags": TAGS,
        "value_specs": VALUE_SPECS,
    }
    attributes_schema = {
        **SHOWN,
        "admin_state_up": Attribute("Administrative state: true is up.", "string"),
        "l2_adjacency": Attribute("L2 adjacency: true if all ports share one broadcast domain.", "boolean"),
        "mtu": Attribute("Maximum transmission unit (MTU), in bytes.", "integer"),
        "port_security_enabled": Attribute("Default port security of new ports.", "boolean"),
        "qos_policy_id": Attribute("Id of the QoS policy.", "string"),
        "segments": Attribute("Provider segments of the network.", "list"),
        "status": Attribute("Status of the network.", "string"),
        "subnets": Attribute("Ids of the subnets.", "list", volatile=True),
    }
