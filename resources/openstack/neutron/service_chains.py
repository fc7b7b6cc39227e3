"""OS::Neutron::PortChain and its parts: FlowClassifier, PortPair and PortPairGroup."""

from ....template.constraints import AllowedValues, Custom, Range
from ...contract import Property, SupportStatus
from ..bodies import NamedRemote
from .base import DescribedType
from .schema import NAME, SHOWN

PORT = Custom(check_name="neutron.port")
CIDR = Custom(check_name="net_cidr")
NUMBER = Range(minimum=1, maximum=65535)
DESCRIPTION = Property("string", "Description.", update_allowed=True)


class FlowClassifier(DescribedType):
    """A flow classifier: the traffic that goes through a chain of service functions."""

    type_name = "OS::Neutron::FlowClassifier"
    support_status = SupportStatus("UNSUPPORTED", version="8.0.0")
    description = "A flow classifier: the traffic that goes through a chain of service functions."
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
            "string", "IP protocol.", constraints=(AllowedValues(values=("tcp", "udp", "icmp")),)
        ),
        "ethertype": Property(
            "string",
            "Ethertype of the traffic.",
            default="IPv4",
            constraints=(AllowedValues(values=("IPv4", "IPv6")),),
        ),
        "source_ip_prefix": Property("string", "Source addresses, as CIDR.", constraints=(CIDR,)),
        "destination_ip_prefix": Property("string", "Destination addresses, as CIDR.", constraints=(CIDR,)),
        "source_port_range_min": Property(
            "integer", "First source port of the range.", constraints=(NUMBER,)
        ),
        "source_port_range_max": Property("integer", "Last source port of the range.", constraints=(NUMBER,)),
        "destination_port_range_min": Property(
            "integer", "First destination port of the range.", constraints=(NUMBER,)
        ),
        "destination_port_range_max": Property(
            "integer", "Last destination port of the range.", constraints=(NUMBER,)
        ),
        "logical_source_port": Property(
            "string", "Name or id of the Neutron port that the traffic comes from.", constraints=(PORT,)
        ),
        "logical_destination_port": Property(
            "string", "Name or id of the Neutron port that the traffic goes to.", constraints=(PORT,)
        ),
        "l7_parameters": Property("map", "L7 parameters that the traffic must match."),
    }
    attributes_schema = {"show": SHOWN["show"]}


class PortPair(DescribedType):
    """A port pair: ingress and egress port of a service function."""

    type_name = "OS::Neutron::PortPair"
    support_status = SupportStatus("UNSUPPORTED", version="7.0.0")
    description = "A port pair: ingress and egress port of a service function."
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
            "string",
            "Name or id of the ingress port of the service function.",
            required=True,
            constraints=(PORT,),
        ),
        "egress": Property(
            "string",
            "Name or id of the egress port of the service function.",
            required=True,
            constraints=(PORT,),
        ),
        "service_function_parameters": Property(
            "map", "Service function parameters.", default={"correlation": None}
        ),
    }
    attributes_schema = {"show": SHOWN["show"]}


class PortPairGroup(DescribedType):
    """A group of port pairs that share the load of one step of a chain."""

    type_name = "OS::Neutron::PortPairGroup"
    support_status = SupportStatus("UNSUPPORTED", version="8.0.0")
    description = "A group of port pairs that share the load of one step of a chain."
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
            schema=Property(
                "string", "Name or id of a port pair.", constraints=(Custom(check_name="neutron.port_pair"),)
            ),
        ),
    }
    attributes_schema = {"show": SHOWN["show"]}


class PortChain(DescribedType):
    """A port chain: the service functions that traffic goes through, in their order."""

    type_name = "OS::Neutron::PortChain"
    support_status = SupportStatus("UNSUPPORTED", version="8.0.0")
    description = "A port chain: the service functions that traffic goes through, in their order."
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
            "Names or ids of the port pair groups, in the order of the chain.",
            required=True,
            update_allowed=True,
            schema=Property(
                "string",
                "Name or id of a port pair group.",
                constraints=(Custom(check_name="neutron.port_pair_group"),),
            ),
        ),
        "flow_classifiers": Property(
            "list",
            "Names or ids of the flow classifiers.",
            default=[],
            update_allowed=True,
            schema=Property(
                "string",
                "Name or id of a flow classifier.",
                constraints=(Custom(check_name="neutron.flow_classifier"),),
            ),
        ),
        "chain_parameters": Property("map", "Chain parameters.", default={"correlation": "mpls"}),
    }
    attributes_schema = {"show": SHOWN["show"]}
