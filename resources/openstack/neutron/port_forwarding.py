"""OS::Neutron::FloatingIPPortForward: a port of a floating IP that leads to one of a server."""

from ....template.constraints import AllowedValues, Custom, Range
from ...contract import ImpliedDependency, Property, ResourceView, StepContext, SupportStatus
from ..bodies import NamedRemote
from ..compared import ComparedType
from ..names import Kind, find, is_id
from ..parts import PartType
from .base import NeutronType
from .schema import SHOWN, SUBNET

NUMBER = Range(minimum=1, maximum=65535)
FLOATING_IP = Kind(
    "network",
    "/floatingips",
    "floating IP",
    filter="floating_ip_address",
    name_field="floating_ip_address",
)


class FloatingIPPortForward(PartType, ComparedType, NeutronType):
    """A port forwarding from a floating IP to a port of a server behind a router."""

    type_name = "OS::Neutron::FloatingIPPortForward"
    support_status = SupportStatus(version="19.0.0")
    description = "A port forwarding from a floating IP to a port of a server behind a router."
    path = "/floatingips/{}/port_forwardings"
    item = "port_forwarding"
    whole = "floating_ip"
    identity = "the floating IP, the external port and the protocol, of which the service keeps one"
    compared = ("external_port", "protocol")
    apart = ("floating_ip",)
    implied_dependencies = (
        ImpliedDependency(f"internal_port > fixed_ips.*.{SUBNET}", "OS::Neutron::RouterInterface", SUBNET),
    )
    references = {"internal_port": NamedRemote("neutron.port")}
    renamed = {"internal_port_number": "internal_port"}
    properties_schema = {
        "internal_ip_address": Property(
            "string",
            "Internal IP address, the destination.",
            required=True,
            update_allowed=True,
            constraints=(Custom(check_name="ip_addr"),),
        ),
        "internal_port": Property(
            "string",
            "Name or id of the Neutron port that has the internal address.",
            required=True,
            update_allowed=True,
            constraints=(Custom(check_name="neutron.port"),),
        ),
        "internal_port_number": Property(
            "integer", "Internal port number of the protocol.", update_allowed=True, constraints=(NUMBER,)
        ),
        "external_port": Property(
            "integer",
            "External port number of the protocol, on the floating IP.",
            required=True,
            update_allowed=True,
            constraints=(NUMBER,),
        ),
        "protocol": Property(
            "string",
            "IP protocol.",
            required=True,
            update_allowed=True,
            constraints=(AllowedValues(values=("tcp", "udp", "icmp", "icmp6", "sctp", "dccp")),),
        ),
        "floating_ip": Property("string", "Id or address of the floating IP.", required=True),
    }
    attributes_schema = {"show": SHOWN["show"]}

    def whole_id(self, target: ResourceView, context: StepContext) -> str:
        """Return the id of the floating IP, which has no name."""
        value = str(target.properties["floating_ip"])
        return value if is_id(value) else find(self.service_for(context), FLOATING_IP, value)
