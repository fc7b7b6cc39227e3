"""OS::Neutron::ProviderNet: a network over a physical one."""

from ....template.constraints import AllowedValues, Custom
from ...schema import Attribute, Property, SupportStatus
from .base import BUILT, NeutronType
from .schema import SHOWN, TAGS, TENANT

TYPES = AllowedValues(values=("local", "vlan", "vxlan", "gre", "geneve", "flat"))


class ProviderNet(NeutronType):
    """A network over a given physical one; for administrators."""

    support_status = SupportStatus(version="2014.1")
    description = "A network over a given physical one. By default administrators alone may create it."
    path = "/networks"
    item = "network"
    port_query = ("network_id", "{}")
    status = BUILT
    renamed = {
        "network_type": "provider:network_type",
        "physical_network": "provider:physical_network",
        "segmentation_id": "provider:segmentation_id",
        "router_external": "router:external",
    }
    apart = ("tags",)
    properties_schema = {
        "name": Property(
            "string", "Name; none: made of the stack's and the resource's.", update_allowed=True
        ),
        "network_type": Property(
            "string", "Kind of physical network.", required=True, update_allowed=True, constraints=(TYPES,)
        ),
        "physical_network": Property("string", "Name of the physical network.", update_allowed=True),
        "segmentation_id": Property("string", "Number of the VLAN or the tunnel.", update_allowed=True),
        "router_external": Property("boolean", "It is external.", default=False, update_allowed=True),
        "admin_state_up": Property("boolean", "The network is up.", default=True, update_allowed=True),
        "shared": Property("boolean", "Other projects may use it.", default=True, update_allowed=True),
        "port_security_enabled": Property(
            "boolean", "New ports are protected by security groups.", update_allowed=True
        ),
        "dns_domain": Property(
            "string",
            "DNS domain of its ports.",
            update_allowed=True,
            constraints=(Custom(check_name="dns_domain"),),
        ),
        "availability_zone_hints": Property(
            "list", "Availability zones, the best first.", update_allowed=True
        ),
        "tags": TAGS,
        "tenant_id": TENANT,
    }
    attributes_schema = {
        "segments": Attribute("Its segments.", "list"),
        "show": SHOWN["show"],
        "status": Attribute("Its status.", "string"),
        "subnets": Attribute("Ids of its subnets.", "list", volatile=True),
    }
