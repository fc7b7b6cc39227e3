"""OS::Neutron::VPNService, IPsecSiteConnection, IKEPolicy and IPsecPolicy: private networks across others."""

from collections.abc import Mapping

from ....template.constraints import AllowedValues, Custom
from ...schema import Attribute, Property
from ..bodies import NamedRemote
from ..statuses import StatusMeaning
from .base import DescribedType
from .schema import HIDDEN, NAME, SHOWN

DESCRIPTION = Property("string", "Its description.", update_allowed=True)
UP = Property("boolean", "It is up.", default=True, update_allowed=True)
CIPHERS = AllowedValues(values=("3des", "aes-128", "aes-192", "aes-256"))
GROUPS = AllowedValues(values=("group2", "group5", "group14"))
STATUS = Attribute("Its status.", "string", volatile=True)
_LIFETIME = {
    "units": Property(
        "string",
        "Unit of the value.",
        default="seconds",
        constraints=(AllowedValues(values=("seconds", "kilobytes")),),
    ),
    "value": Property("integer", "How long a key lasts.", default=3600),
}
_DEAD_PEERS = {
    "actions": Property(
        "string",
        "What is done where the peer does not answer.",
        default="hold",
        constraints=(AllowedValues(values=("clear", "disabled", "hold", "restart", "restart-by-peer")),),
    ),
    "interval": Property("integer", "Seconds between two questions to the peer.", default=30),
    "timeout": Property("integer", "Seconds without an answer until it counts as dead.", default=120),
}


def _strings(*names: str) -> Mapping[str, Attribute]:
    return {name: Attribute("The field of this name.", "string") for name in names}


class VPNService(DescribedType):
    """The end of private networks at a router; it is complete before a connection makes it active."""

    description = "The end of a private network at a router."
    path = "/vpn/vpnservices"
    item = "vpnservice"
    slow_delete = True
    status = StatusMeaning()
    references = {"router": NamedRemote("neutron.router"), "subnet": NamedRemote("neutron.subnet")}
    properties_schema = {
        "name": NAME,
        "description": DESCRIPTION,
        "admin_state_up": UP,
        "subnet": Property(
            "string",
            "Name or id of the subnet that is connected.",
            required=True,
            constraints=(Custom(check_name="neutron.subnet"),),
        ),
        "subnet_id": Property("string", "The old name of subnet.", support_status=HIDDEN, alias_of="subnet"),
        "router": Property(
            "string",
            "Name or id of the router.",
            required=True,
            constraints=(Custom(check_name="neutron.router"),),
        ),
        "router_id": Property("string", "The old name of router.", support_status=HIDDEN, alias_of="router"),
    }
    attributes_schema = {
        **SHOWN,
        **_strings("admin_state_up", "description", "router_id", "subnet_id"),
        "status": STATUS,
    }


class IKEPolicy(DescribedType):
    """Rules by which the ends of a connection agree on keys."""

    description = "How the two ends of a connection agree on keys."
    path = "/vpn/ikepolicies"
    item = "ikepolicy"
    items = "ikepolicies"
    properties_schema = {
        "name": NAME,
        "description": DESCRIPTION,
        "auth_algorithm": Property(
            "string",
            "Hash.",
            default="sha1",
            update_allowed=True,
            constraints=(AllowedValues(values=("sha1", "sha256", "sha384", "sha512")),),
        ),
        "encryption_algorithm": Property(
            "string", "Cipher.", default="aes-128", update_allowed=True, constraints=(CIPHERS,)
        ),
        "phase1_negotiation_mode": Property(
            "string",
            "Mode of the first phase.",
            default="main",
            constraints=(AllowedValues(values=("main",)),),
        ),
        "lifetime": Property("map", "How long keys last.", update_allowed=True, schema=_LIFETIME),
        "pfs": Property(
            "string",
            "Group for forward secrecy.",
            default="group5",
            update_allowed=True,
            constraints=(GROUPS,),
        ),
        "ike_version": Property(
            "string",
            "Version of the protocol.",
            default="v1",
            update_allowed=True,
            constraints=(AllowedValues(values=("v1", "v2")),),
        ),
    }
    attributes_schema = {
        **SHOWN,
        **_strings("auth_algorithm", "description", "encryption_algorithm", "ike_version", "pfs"),
        **_strings("phase1_negotiation_mode"),
        "lifetime": Attribute("How long keys last.", "map"),
    }


class IPsecPolicy(DescribedType):
    """Protection of the packets of a connection."""

    description = "How the packets of a connection are protected."
    path = "/vpn/ipsecpolicies"
    item = "ipsecpolicy"
    items = "ipsecpolicies"
    properties_schema = {
        "name": NAME,
        "description": DESCRIPTION,
        "transform_protocol": Property(
            "string", "Protocol.", default="esp", constraints=(AllowedValues(values=("esp", "ah", "ah-esp")),)
        ),
        "encapsulation_mode": Property(
            "string",
            "What of a packet is protected.",
            default="tunnel",
            constraints=(AllowedValues(values=("tunnel", "transport")),),
        ),
        "auth_algorithm": Property(
            "string", "Hash.", default="sha1", constraints=(AllowedValues(values=("sha1",)),)
        ),
        "encryption_algorithm": Property("string", "Cipher.", default="aes-128", constraints=(CIPHERS,)),
        "lifetime": Property("map", "How long keys last.", schema=_LIFETIME),
        "pfs": Property("string", "Group for forward secrecy.", default="group5", constraints=(GROUPS,)),
    }
    attributes_schema = {
        **SHOWN,
        **_strings("auth_algorithm", "description", "encapsulation_mode", "encryption_algorithm", "pfs"),
        **_strings("transform_protocol"),
        "lifetime": Attribute("How long keys last.", "map"),
    }


class IPsecSiteConnection(DescribedType):
    """A connection to another site."""

    description = "A connection of a VPN service to another site."
    path = "/vpn/ipsec-site-connections"
    item = "ipsec_site_connection"
    slow_delete = True
    status = StatusMeaning(pending=("PENDING_CREATE", "PENDING_UPDATE"), good=("ACTIVE",))
    properties_schema = {
        "name": NAME,
        "description": DESCRIPTION,
        "peer_address": Property("string", "Address of the other end.", required=True),
        "peer_id": Property("string", "Name by which the other end shows who it is.", required=True),
        "peer_cidrs": Property(
            "list",
            "Networks behind the other end.",
            required=True,
            schema=Property("string", "A network, as CIDR.", constraints=(Custom(check_name="net_cidr"),)),
        ),
        "mtu": Property("integer", "Size of the largest packet, in bytes.", default=1500),
        "dpd": Property("map", "How it is noticed that the other end is dead.", schema=_DEAD_PEERS),
        "psk": Property("string", "The secret that both ends share.", required=True, sensitive=True),
        "initiator": Property(
            "string",
            "Who begins.",
            default="bi-directional",
            constraints=(AllowedValues(values=("bi-directional", "response-only")),),
        ),
        "admin_state_up": UP,
        "ikepolicy_id": Property("string", "Id of the policy for keys.", required=True),
        "ipsecpolicy_id": Property("string", "Id of the policy for packets.", required=True),
        "vpnservice_id": Property("string", "Id of the VPN service.", required=True),
    }
    attributes_schema = {
        **SHOWN,
        **_strings(
            "admin_state_up", "auth_mode", "description", "ikepolicy_id", "initiator", "ipsecpolicy_id"
        ),
        **_strings("mtu", "peer_address", "peer_id", "route_mode", "vpnservice_id"),
        "dpd": Attribute("How it is noticed that the other end is dead.", "map"),
        "peer_cidrs": Attribute("Networks behind the other end.", "list"),
        "psk": Attribute("The secret that both ends share.", "string", sensitive=True),
        "status": STATUS,
    }
