"""OS::Octavia::LoadBalancer and OS::Octavia::Listener."""

from ....shapes import JsonMap
from ....template.constraints import Custom, Range
from ...contract import Attribute, Property, PropertyError, SupportStatus
from ..bodies import NamedRemote
from .base import BalancerPart
from .schema import (
    ADDRESS,
    BALANCER,
    DESCRIPTION,
    ENABLED,
    NAME,
    OWNER,
    POOL,
    PORT,
    PROTOCOLS,
    SHOW,
    SINCE,
    SUBNET,
)


class LoadBalancer(BalancerPart):
    """An address whose connections go to the members of pools."""

    type_name = "OS::Octavia::LoadBalancer"
    support_status = SINCE
    description = "A load balancer with a virtual IP address."
    path = "/lbaas/loadbalancers"
    item = "loadbalancer"
    quota = {"load_balancer": 1, "network/port": 1}
    owner_property = "tenant_id"
    references = {
        "vip_subnet": NamedRemote("neutron.subnet"),
        "flavor": NamedRemote("octavia.flavor"),
        "tenant_id": NamedRemote("keystone.project", "project_id"),
    }
    properties_schema = {
        "description": DESCRIPTION,
        "name": NAME,
        "provider": Property("string", "Provider driver; if omitted, the service's default."),
        "vip_address": Property(
            "string",
            "Virtual IP address (VIP); if omitted, allocated from the subnet.",
            constraints=(ADDRESS,),
        ),
        "vip_subnet": Property(
            "string",
            "Name or id of the subnet of the VIP.",
            required=True,
            constraints=(SUBNET,),
        ),
        "admin_state_up": ENABLED,
        "tenant_id": Property(
            "string",
            "Id of the owning project; another than one's own is for administrators only.",
            constraints=(Custom(check_name="keystone.project"),),
        ),
        "flavor": Property(
            "string",
            "Name or id of the load balancer flavor.",
            constraints=(Custom(check_name="octavia.flavor"),),
            support_status=SupportStatus(version="14.0.0"),
        ),
        "availability_zone": Property(
            "string",
            "Name of the availability zone.",
            constraints=(Custom(check_name="octavia.availabilityzone"),),
            support_status=SupportStatus(version="17.0.0"),
        ),
    }
    attributes_schema = {
        "vip_address": Attribute("Virtual IP address (VIP).", "string"),
        "vip_port_id": Attribute("Id of the VIP's port.", "string"),
        "vip_subnet_id": Attribute("Id of the VIP's subnet.", "string"),
        "pools": Attribute("Ids of the pools.", "list", volatile=True),
        "flavor_id": Attribute("Id of the flavor.", "string"),
        "show": SHOW,
    }


class Listener(BalancerPart):
    """A port of a balancer, and the protocol that it speaks there."""

    type_name = "OS::Octavia::Listener"
    support_status = SINCE
    description = "A listener: a port and protocol on which a load balancer accepts connections."
    path = "/lbaas/listeners"
    item = "listener"
    quota = {"listener": 1}
    references = {
        "loadbalancer": NamedRemote("octavia.loadbalancer"),
        "default_pool": NamedRemote("octavia.pool"),
    }
    renamed = {"tenant_id": "project_id"}
    properties_schema = {
        "protocol_port": Property(
            "integer",
            "Port number that the listener accepts connections on.",
            required=True,
            constraints=(PORT,),
        ),
        "protocol": Property("string", "Protocol of the listener.", required=True, constraints=(PROTOCOLS,)),
        "loadbalancer": Property(
            "string", "Name or id of the load balancer.", required=True, constraints=(BALANCER,)
        ),
        "default_pool": Property(
            "string",
            "Name or id of the default pool, for requests that no L7 policy redirects.",
            update_allowed=True,
            constraints=(POOL,),
        ),
        "name": NAME,
        "admin_state_up": ENABLED,
        "description": DESCRIPTION,
        "default_tls_container_ref": Property(
            "string",
            "Key manager reference of the certificate and key, for TERMINATED_HTTPS.",
            update_allowed=True,
        ),
        "sni_container_refs": Property(
            "list",
            "Key manager references of the certificates for server name indication (SNI).",
            update_allowed=True,
        ),
        "connection_limit": Property(
            "integer",
            "Maximum number of concurrent connections; -1: unlimited.",
            default=-1,
            update_allowed=True,
            constraints=(Range(minimum=-1),),
        ),
        "tenant_id": OWNER,
        "allowed_cidrs": Property(
            "list",
            "Networks that may connect; if omitted, all.",
            update_allowed=True,
            schema=Property("string", "Network, as CIDR.", constraints=(Custom(check_name="net_cidr"),)),
            support_status=SupportStatus(version="14.0.0"),
        ),
    }
    attributes_schema = {
        "loadbalancers": Attribute("Id of the load balancer, as a list.", "list"),
        "default_pool_id": Attribute("Id of the default pool.", "string", volatile=True),
        "show": SHOW,
    }

    def validate(self, properties: JsonMap) -> None:
        """Check that a listener that ends TLS has a certificate."""
        certificate = properties.get("default_tls_container_ref", "unknown")
        if properties.get("protocol") == "TERMINATED_HTTPS" and certificate is None:
            text = "default_tls_container_ref is needed where protocol is TERMINATED_HTTPS"
            raise PropertyError(text, ("default_tls_container_ref",))
