"""OS::Neutron::VPNService, IPsecSiteConnection, IKEPolicy and IPsecPolicy: private networks across others."""

from collections.abc import Mapping

from ....template.constraints import AllowedValues, Custom
from ...contract import Attribute, Property
from ..bodies import NamedRemote
from ..statuses import StatusMeaning
from .base import DescribedType
from .schema import ADMIN_STATE, HIDDEN, NAME, SHOWN

DESCRIPTION = Property("string", "Description.", update_allowed=True)
CIPHERS = AllowedValues(values=("3des", "aes-128", "aes-192", "aes-256"))
GROUPS = AllowedValues(values=("group2", "group5", "group14"))
STATUS = Attribute("Status.", "string", volatile=True)
_LIFETIME = {
    "units": Property(
        "string",
        "Unit of the lifetime.",
        default="seconds",
        constraints=(AllowedValues(values=("seconds", "kilobytes")),),
    ),
    "value": Property("integer", "Lifetime of a security association, in the given unit.", default=3600),
}
_DEAD_PEERS = {
    "actions": Property(
        "string",
        "Dead peer detection action.",
        default="hold",
        constraints=(AllowedValues(values=("clear", "disabled", "hold", "restart", "restart-by-peer")),),
    ),
    "interval": Property("integer", "Dead peer detection interval, in seconds.", default=30),
    "timeout": Property("integer", "Dead peer detection timeout, in seconds.", default=120),
}


def _returned(properties: Mapping[str, Property], *names: str) -> Mapping[str, Attribute]:
    """Return attributes that are fields of the service with the names and meanings of properties."""
    return {name: Attribute(properties[name].description, "string") for name in names}


class VPNService(DescribedType):
    """The end of private networks at a router; it is complete before a connection makes it active."""

    type_name = "OS::Neutron::VPNService"
    description = "A VPN service: the VPN endpoint of a router and its subnet."
    path = "/vpn/vpnservices"
    item = "vpnservice"
    slow_delete = True
    status = StatusMeaning()
    references = {"router": NamedRemote("neutron.router"), "subnet": NamedRemote("neutron.subnet")}
    properties_schema = {
        "name": NAME,
        "description": DESCRIPTION,
        "admin_state_up": ADMIN_STATE,
        "subnet": Property(
            "string",
            "Name or id of the local subnet.",
            required=True,
            constraints=(Custom(check_name="neutron.subnet"),),
        ),
        "subnet_id": Property("string", "Old name of subnet.", support_status=HIDDEN, alias_of="subnet"),
        "router": Property(
            "string",
            "Name or id of the router.",
            required=True,
            constraints=(Custom(check_name="neutron.router"),),
        ),
        "router_id": Property("string", "Old name of router.", support_status=HIDDEN, alias_of="router"),
    }
    attributes_schema = {
        **SHOWN,
        **_returned(properties_schema, "admin_state_up", "description"),
        "router_id": Attribute("Id of the router.", "string"),
        "subnet_id": Attribute("Id of the local subnet.", "string"),
        "status": STATUS,
    }


class IKEPolicy(DescribedType):
    """Rules by which the ends of a connection agree on keys."""

    type_name = "OS::Neutron::IKEPolicy"
    description = "An IKE policy: parameters of the key exchange of a VPN connection."
    path = "/vpn/ikepolicies"
    item = "ikepolicy"
    items = "ikepolicies"
    properties_schema = {
        "name": NAME,
        "description": DESCRIPTION,
        "auth_algorithm": Property(
            "string",
            "Authentication hash algorithm.",
            default="sha1",
            update_allowed=True,
            constraints=(AllowedValues(values=("sha1", "sha256", "sha384", "sha512")),),
        ),
        "encryption_algorithm": Property(
            "string", "Encryption algorithm.", default="aes-128", update_allowed=True, constraints=(CIPHERS,)
        ),
        "phase1_negotiation_mode": Property(
            "string",
            "IKE phase 1 negotiation mode.",
            default="main",
            constraints=(AllowedValues(values=("main",)),),
        ),
        "lifetime": Property(
            "map", "Lifetime of the security association.", update_allowed=True, schema=_LIFETIME
        ),
        "pfs": Property(
            "string",
            "Perfect forward secrecy (PFS): Diffie-Hellman group.",
            default="group5",
            update_allowed=True,
            constraints=(GROUPS,),
        ),
        "ike_version": Property(
            "string",
            "IKE version.",
            default="v1",
            update_allowed=True,
            constraints=(AllowedValues(values=("v1", "v2")),),
        ),
    }
    attributes_schema = {
        **SHOWN,
        **_returned(properties_schema, "auth_algorithm", "description", "encryption_algorithm"),
        **_returned(properties_schema, "ike_version", "pfs", "phase1_negotiation_mode"),
        "lifetime": Attribute("Lifetime of the security association.", "map"),
    }


class IPsecPolicy(DescribedType):
    """Protection of the packets of a connection."""

    type_name = "OS::Neutron::IPsecPolicy"
    description = "An IPsec policy: parameters of the encryption and authentication of a VPN connection."
    path = "/vpn/ipsecpolicies"
    item = "ipsecpolicy"
    items = "ipsecpolicies"
    properties_schema = {
        "name": NAME,
        "description": DESCRIPTION,
        "transform_protocol": Property(
            "string",
            "Transform protocol: ESP encrypts, AH only authenticates.",
            default="esp",
            constraints=(AllowedValues(values=("esp", "ah", "ah-esp")),),
        ),
        "encapsulation_mode": Property(
            "string",
            "IPsec encapsulation mode: whole packet (tunnel) or payload (transport).",
            default="tunnel",
            constraints=(AllowedValues(values=("tunnel", "transport")),),
        ),
        "auth_algorithm": Property(
            "string",
            "Authentication hash algorithm.",
            default="sha1",
            constraints=(AllowedValues(values=("sha1",)),),
        ),
        "encryption_algorithm": Property(
            "string", "Encryption algorithm.", default="aes-128", constraints=(CIPHERS,)
        ),
        "lifetime": Property("map", "Lifetime of the security association.", schema=_LIFETIME),
        "pfs": Property(
            "string",
            "Perfect forward secrecy (PFS): Diffie-Hellman group.",
            default="group5",
            constraints=(GROUPS,),
        ),
    }
    attributes_schema = {
        **SHOWN,
        **_returned(properties_schema, "auth_algorithm", "description", "encapsulation_mode"),
        **_returned(properties_schema, "encryption_algorithm", "pfs", "transform_protocol"),
        "lifetime": Attribute("Lifetime of the security association.", "map"),
    }


class IPsecSiteConnection(DescribedType):
    """A connection to another site."""

    type_name = "OS::Neutron::IPsecSiteConnection"
    description = "An IPsec connection of a VPN service to a peer site."
    path = "/vpn/ipsec-site-connections"
    item = "ipsec_site_connection"
    slow_delete = True
    status = StatusMeaning(pending=("PENDING_CREATE", "PENDING_UPDATE"), good=("ACTIVE",))
    properties_schema = {
        "name": NAME,
        "description": DESCRIPTION,
        "peer_address": Property("string", "Address or FQDN of the peer gateway.", required=True),
        "peer_id": Property(
            "string",
            "Identity of the peer router for authentication, such as an address, FQDN or e-mail address.",
            required=True,
        ),
        "peer_cidrs": Property(
            "list",
            "Networks behind the peer, as CIDR.",
            required=True,
            schema=Property("string", "Network, as CIDR.", constraints=(Custom(check_name="net_cidr"),)),
        ),
        "mtu": Property("integer", "Maximum transmission unit (MTU), in bytes.", default=1500),
        "dpd": Property("map", "Dead peer detection (DPD).", schema=_DEAD_PEERS),
        "psk": Property("string", "Pre-shared key (PSK).", required=True, sensitive=True),
        "initiator": Property(
            "string",
            "Initiator mode: bi-directional initiates and responds, response-only waits for the peer.",
            default="bi-directional",
            constraints=(AllowedValues(values=("bi-directional", "response-only")),),
        ),
        "admin_state_up": ADMIN_STATE,
        "ikepolicy_id": Property("string", "Id of the IKE policy.", required=True),
        "ipsecpolicy_id": Property("string", "Id of the IPsec policy.", required=True),
        "vpnservice_id": Property("string", "Id of the VPN service.", required=True),
    }
    attributes_schema = {
        **SHOWN,
        **_returned(properties_schema, "admin_state_up", "description", "ikepolicy_id", "initiator"),
        **_returned(properties_schema, "ipsecpolicy_id", "mtu", "peer_address", "peer_id", "vpnservice_id"),
        "auth_mode": Attribute("Authentication mode.", "string"),
        "route_mode": Attribute("Route mode.", "string"),
        "dpd": Attribute("Dead peer detection (DPD).", "map"),
        "peer_cidrs": Attribute("Networks behind the peer, as CIDR.", "list"),
        "psk": Attribute("Pre-shared key (PSK).", "string", sensitive=True),
        "status": STATUS,
    }
