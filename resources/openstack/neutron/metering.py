"""OS::Neutron::MeteringLabel and OS::Neutron::MeteringRule: traffic that is counted."""

from ....template.constraints import AllowedValues
from ...schema import Attribute, Property, SupportStatus
from ..compared import ComparedType
from .base import NeutronType
from .schema import SHOWN


class MeteringLabel(ComparedType, NeutronType):
    """A name under which traffic is counted; it never changes."""

    support_status = SupportStatus(version="2014.1")
    description = "A name under which traffic is counted."
    path = "/metering/metering-labels"
    item = "metering_label"
    identity = "the name; which labels had it before is stored first"
    filters = ("name",)
    properties_schema = {
        "name": Property("string", "Name; none: made of the stack's and the resource's."),
        "description": Property("string", "Its description."),
        "shared": Property("boolean", "It counts the traffic of all projects.", default=False),
    }
    attributes_schema = {
        "name": SHOWN["name"],
        "description": Attribute("Its description.", "string"),
        "shared": Attribute("It counts the traffic of all projects.", "string"),
        "show": SHOWN["show"],
    }


class MeteringRule(ComparedType, NeutronType):
    """Traffic that is counted under a label, or left out; it never changes."""

    support_status = SupportStatus(version="2014.1")
    description = "Traffic that is counted under a label, or left out."
    path = "/metering/metering-label-rules"
    item = "metering_label_rule"
    identity = "all fields of the rule, of which the service keeps one"
    compared = ("metering_label_id", "direction", "remote_ip_prefix", "excluded")
    filters = ("metering_label_id",)
    properties_schema = {
        "metering_label_id": Property("string", "Id of the label.", required=True),
        "remote_ip_prefix": Property("string", "Addresses of the other side, as CIDR.", required=True),
        "direction": Property(
            "string",
            "Direction of the traffic.",
            default="ingress",
            constraints=(AllowedValues(values=("ingress", "egress")),),
        ),
        "excluded": Property("boolean", "It is left out.", default="False"),
    }
    attributes_schema = {
        "direction": Attribute("Direction of the traffic.", "string"),
        "excluded": Attribute("It is left out.", "string"),
        "metering_label_id": Attribute("Id of the label.", "string"),
        "remote_ip_prefix": Attribute("Addresses of the other side.", "string"),
        "show": SHOWN["show"],
    }
