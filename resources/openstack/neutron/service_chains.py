"""OS::Neutron::FlowClassifier and OS::Neutron::PortPair, of chains of services."""

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
    tested_by_schema = True
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
    tested_by_schema = True
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
