"""OS::Neutron::ProviderNet: a network over a physical one."""

from ....template.constraints import AllowedValues
from ...contract import Attribute, Property, SupportStatus
from .base import BUILT, NeutronType
from .schema import ADMIN_STATE, DNS_DOMAIN, NAME, PORT_SECURITY, SHOWN, TAGS, TENANT
from .users import PORTS, Usage

TYPES = AllowedValues(values=("local", "vlan", "vxlan", "gre", "geneve", "flat"))


class ProviderNet(NeutronType):
    """A network over a given physical one; for administrators."""

    type_name = "OS::Neutron::ProviderNet"
    support_status = SupportStatus(version="2014.1")
    description = "A provider network, mapped to a physical network; for administrators by default."
    path = "/networks"
    item = "network"
    quota = {"network": 1}
    used_by = Usage(PORTS, "network_id")
    status = BUILT
    renamed = {
        "network_type": "provider:network_type",
        "physical_network": "provider:physical_network",
        "segmentation_id": "provider:segmentation_id",
        "router_external": "router:external",
    }
    apart = ("tags",)
    properties_schema = {
        "name": NAME,
        "network_type": Property(
            "string",
            "Type of the physical network.",
            required=True,
            update_allowed=True,
            constraints=(TYPES,),
        ),
        "physical_network": Property("string", "Name of the physical network.", update_allowed=True),
        "segmentation_id": Property(
            "string", "Segmentation id: VLAN number, or tunnel key (VNI).", update_allowed=True
        ),
        "router_external": Property(
            "boolean",
            "External network: routers may use it as their gateway.",
            default=False,
            update_allowed=True,
        ),
        "admin_state_up": ADMIN_STATE,
        "shared": Property("boolean", "Sharing with all projects.", default=True, update_allowed=True),
        "port_security_enabled": PORT_SECURITY,
        "dns_domain": DNS_DOMAIN,
        "availability_zone_hints": Property(
            "list",
            "Availability zone hints for the network's agents, in order of preference.",
            update_allowed=True,
        ),
        "tags": TAGS,
        "tenant_id": TENANT,
    }
    attributes_schema = {
        "segments": Attribute("Provider segments of the network.", "list"),
        "show": SHOWN["show"],
        "status": Attribute("Status of the network.", "string"),
        "subnets": Attribute("Ids of the subnets.", "list", volatile=True),
    }
