"""OS::Octavia::LoadBalancer and OS::Octavia::Listener."""

from ....shapes import JsonMap
from ....template.constraints import Custom, Range
from ...errors import PropertyError
from ...schema import Attribute, Property, SupportStatus
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

    support_status = SINCE
    description = "An address whose connections are spread over servers."
    path = "/lbaas/loadbalancers"
    item = "loadbalancer"
    references = {
        "vip_subnet": NamedRemote("neutron.subnet"),
        "flavor": NamedRemote("octavia.flavor"),
        "tenant_id": NamedRemote("keystone.project", "project_id"),
    }
    properties_schema = {
        "description": DESCRIPTION,
        "name": NAME,
        "provider": Property("string", "The provider that makes it; none: the service's own choice."),
        "vip_address": Property(
            "string", "Its address; none: the network service chooses.", constraints=(ADDRESS,)
        ),
        "vip_subnet": Property(
            "string",
            "Name or id of the subnet that its address is of.",
            required=True,
            constraints=(SUBNET,),
        ),
        "admin_state_up": ENABLED,
        "tenant_id": Property(
            "string",
            "Project that owns it; only administrators may name another than their own.",
            constraints=(Custom(check_name="keystone.project"),),
        ),
        "flavor": Property(
            "string",
            "Name or id of its flavor.",
            constraints=(Custom(check_name="octavia.flavor"),),
            support_status=SupportStatus(version="14.0.0"),
        ),
        "availability_zone": Property(
            "string",
            "Its availability zone.",
            constraints=(Custom(check_name="octavia.availabilityzone"),),
            support_status=SupportStatus(version="17.0.0"),
        ),
    }
    attributes_schema = {
        "vip_address": Attribute("Its address.", "string"),
        "vip_port_id": Attribute("Id of the port that has the address.", "string"),
        "vip_subnet_id": Attribute("Id of the subnet that the address is of.", "string"),
        "pools": Attribute("Ids of its pools.", "list", volatile=True),
        "flavor_id": Attribute("Id of its flavor.", "string"),
        "show": SHOW,
    }


class Listener(BalancerPart):
    """A port of a balancer, and the protocol that it speaks there."""

    support_status = SINCE
    description = "A port of a load balancer that takes connections."
    path = "/lbaas/listeners"
    item = "listener"
    references = {
        "loadbalancer": NamedRemote("octavia.loadbalancer"),
        "default_pool": NamedRemote("octavia.pool"),
    }
    renamed = {"tenant_id": "project_id"}
    properties_schema = {
        "protocol_port": Property("integer", "The port.", required=True, constraints=(PORT,)),
        "protocol": Property("string", "The protocol.", required=True, constraints=(PROTOCOLS,)),
        "loadbalancer": Property(
            "string", "Name or id of the load balancer.", required=True, constraints=(BALANCER,)
        ),
        "default_pool": Property(
            "string",
            "Name or id of the pool that gets what no policy sends elsewhere.",
            update_allowed=True,
            constraints=(POOL,),
        ),
        "name": NAME,
        "admin_state_up": ENABLED,
        "description": DESCRIPTION,
        "default_tls_container_ref": Property(
            "string",
            "Address of the certificate with its key at the key manager, for TERMINATED_HTTPS.",
            update_allowed=True,
        ),
        "sni_container_refs": Property(
            "list", "Addresses of further certificates, chosen by the name of the host.", update_allowed=True
        ),
        "connection_limit": Property(
            "integer",
            "Connections at the same time; -1: any number.",
            default=-1,
            update_allowed=True,
            constraints=(Range(minimum=-1),),
        ),
        "tenant_id": OWNER,
        "allowed_cidrs": Property(
            "list",
            "Networks from which connections are taken; none: from anywhere.",
            update_allowed=True,
            schema=Property("string", "A network.", constraints=(Custom(check_name="net_cidr"),)),
            support_status=SupportStatus(version="14.0.0"),
        ),
    }
    attributes_schema = {
        "loadbalancers": Attribute("Id of the load balancer, in a list.", "list"),
        "default_pool_id": Attribute("Id of the default pool.", "string", volatile=True),
        "show": SHOW,
    }

    def validate(self, properties: JsonMap) -> None:
        """Check that a listener that ends TLS has a certificate."""
        certificate = properties.get("default_tls_container_ref", "unknown")
        if properties.get("protocol") == "TERMINATED_HTTPS" and certificate is None:
            text = "default_tls_container_ref is needed where protocol is TERMINATED_HTTPS"
            raise PropertyError(text, ("default_tls_container_ref",))
