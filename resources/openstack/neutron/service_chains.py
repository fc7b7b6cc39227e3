"""OS::Neutron::PortChain and its parts: FlowClassifier, PortPair and PortPairGroup."""

from ....template.constraints import AllowedValues, Custom, Range
from ...schema import Property, SupportStatus
from ..bodies import NamedRemote
from .base import DescribedType
from .schema import NAME, SHOWN

PORT = Custom(check_name="neutron.port")
CIDR = Custom(check_name="net_cidr")
NUMBER = Range(minimum=1, maximum=65535)
DESCRIPTION = Property("string", "Its description.", update_allowed=True)


class FlowClassifier(DescribedType):
    """A description of the packets that go through a chain of services."""

    support_status = SupportStatus("UNSUPPORTED", version="8.0.0")
    description = "A description of the packets that go through a chain of services."
    path = "/sfc/flow_classifiers"
    item = "flow_classifier"
    references = {
        "logical_source_port": NamedRemote("neutron.port", "logical_source_port"),
        "logical_destination_port": NamedRemote("neutron.port", "logical_destination_port"),
    }
    properties_schema = {
        "name": NAME,
        "description": DESCRIPTION,
        "protocol": Property(
            "string", "The protocol.", constraints=(AllowedValues(values=("tcp", "udp", "icmp")),)
        ),
        "ethertype": Property(
            "string", "IPv4 or IPv6.", default="IPv4", constraints=(AllowedValues(values=("IPv4", "IPv6")),)
        ),
        "source_ip_prefix": Property("string", "Addresses of the source, as CIDR.", constraints=(CIDR,)),
        "destination_ip_prefix": Property(
            "string", "Addresses of the destination, as CIDR.", constraints=(CIDR,)
        ),
        "source_port_range_min": Property("integer", "First port of the source.", constraints=(NUMBER,)),
        "source_port_range_max": Property("integer", "Last port of the source.", constraints=(NUMBER,)),
        "destination_port_range_min": Property(
            "integer", "First port of the destination.", constraints=(NUMBER,)
        ),
        "destination_port_range_max": Property(
            "integer", "Last port of the destination.", constraints=(NUMBER,)
        ),
        "logical_source_port": Property(
            "string", "Name or id of the network service's port that they come from.", constraints=(PORT,)
        ),
        "logical_destination_port": Property(
            "string", "Name or id of the network service's port that they go to.", constraints=(PORT,)
        ),
        "l7_parameters": Property("map", "What their contents must be."),
    }
    attributes_schema = {"show": SHOWN["show"]}


class PortPair(DescribedType):
    """The ports by which packets enter and leave a service of a chain."""

    support_status = SupportStatus("UNSUPPORTED", version="7.0.0")
    description = "The ports by which packets enter and leave a service of a chain."
    path = "/sfc/port_pairs"
    item = "port_pair"
    references = {
        "ingress": NamedRemote("neutron.port", "ingress"),
        "egress": NamedRemote("neutron.port", "egress"),
    }
    properties_schema = {
        "name": NAME,
        "description": DESCRIPTION,
        "ingress": Property(
            "string", "Name or id of the port by which they enter.", required=True, constraints=(PORT,)
        ),
        "egress": Property(
            "string", "Name or id of the port by which they leave.", required=True, constraints=(PORT,)
        ),
        "service_function_parameters": Property(
            "map", "Parameters of the service.", default={"correlation": None}
        ),
    }
    attributes_schema = {"show": SHOWN["show"]}


class PortPairGroup(DescribedType):
    """Port pairs that share the packets of one step of a chain."""

    support_status = SupportStatus("UNSUPPORTED", version="8.0.0")
    description = "Port pairs that share the packets of one step of a chain."
    path = "/sfc/port_pair_groups"
    item = "port_pair_group"
    references = {"port_pairs": NamedRemote("neutron.port_pair", "port_pairs")}
    properties_schema = {
        "name": NAME,
        "description": DESCRIPTION,
        "port_pairs": Property(
            "list",
            "Names or ids of the port pairs.",
            required=True,
            update_allowed=True,
            schema=Property("string", "A port pair.", constraints=(Custom(check_name="neutron.port_pair"),)),
        ),
    }
    attributes_schema = {"show": SHOWN["show"]}


class PortChain(DescribedType):
    """The services that packets go through, in their order."""

    support_status = SupportStatus("UNSUPPORTED", version="8.0.0")
    description = "The services that packets go through, in their order."
    path = "/sfc/port_chains"
    item = "port_chain"
    references = {
        "port_pair_groups": NamedRemote("neutron.port_pair_group", "port_pair_groups"),
        "flow_classifiers": NamedRemote("neutron.flow_classifier", "flow_classifiers"),
    }
    properties_schema = {
        "name": NAME,
        "description": DESCRIPTION,
        "port_pair_groups": Property(
            "list",
            "Names or ids of the groups of port pairs, one for each step.",
            required=True,
            update_allowed=True,
            schema=Property(
                "string", "A group.", constraints=(Custom(check_name="neutron.port_pair_group"),)
            ),
        ),
        "flow_classifiers": Property(
            "list",
            "Names or ids of the descriptions of the packets.",
            default=[],
            update_allowed=True,
            schema=Property(
                "string", "A description.", constraints=(Custom(check_name="neutron.flow_classifier"),)
            ),
        ),
        "chain_parameters": Property("map", "Parameters of the chain.", default={"correlation": "mpls"}),
    }
    attributes_schema = {"show": SHOWN["show"]}
