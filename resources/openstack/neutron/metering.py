"""OS::Neutron::MeteringLabel and OS::Neutron::MeteringRule: traffic that is counted."""

from ....template.constraints import AllowedValues
from ...contract import Attribute, Property, SupportStatus
from ..compared import ComparedType
from .base import NeutronType
from .schema import SHOWN


class MeteringLabel(ComparedType, NeutronType):
    """A name under which traffic is counted; it never changes."""

    type_name = "OS::Neutron::MeteringLabel"
    support_status = SupportStatus(version="2014.1")
    description = "A metering label, under which L3 traffic is counted."
    path = "/metering/metering-labels"
    item = "metering_label"
    identity = "the name; Stoker first stores which labels have it"
    filters = ("name",)
    properties_schema = {
        "name": Property(
            "string", "Name; if omitted, generated from the names of the stack and the resource."
        ),
        "description": Property("string", "Description of the label."),
        "shared": Property("boolean", "Sharing: true meters the routers of all projects.", default=False),
    }
    attributes_schema = {
        "name": SHOWN["name"],
        "description": Attribute("Description of the label.", "string"),
        "shared": Attribute("Sharing: true meters the routers of all projects.", "string"),
        "show": SHOWN["show"],
    }


class MeteringRule(ComparedType, NeutronType):
    """Traffic that is counted under a label, or left out; it never changes."""

    type_name = "OS::Neutron::MeteringRule"
    support_status = SupportStatus(version="2014.1")
    description = "A metering rule: traffic that a label counts or excludes."
    path = "/metering/metering-label-rules"
    item = "metering_label_rule"
    identity = "all fields of the rule, of which the service keeps one"
    compared = ("metering_label_id", "direction", "remote_ip_prefix", "excluded")
    filters = ("metering_label_id",)
    properties_schema = {
        "metering_label_id": Property("string", "Id of the metering label.", required=True),
        "remote_ip_prefix": Property("string", "Remote addresses, as CIDR.", required=True),
        "direction": Property(
            "string",
            "Traffic direction, as the router sees it.",
            default="ingress",
            constraints=(AllowedValues(values=("ingress", "egress")),),
        ),
        "excluded": Property(
            "boolean", "Exclusion: true keeps matching traffic out of the count.", default="False"
        ),
    }
    attributes_schema = {
        "direction": Attribute("Traffic direction, as the router sees it.", "string"),
        "excluded": Attribute("Exclusion: true keeps matching traffic out of the count.", "string"),
        "metering_label_id": Attribute("Id of the metering label.", "string"),
        "remote_ip_prefix": Attribute("Remote addresses, as CIDR.", "string"),
        "show": SHOWN["show"],
    }
