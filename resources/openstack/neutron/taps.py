"""OS::Neutron::TaaS::TapService and OS::Neutron::TaaS::TapFlow: copies of a port's traffic."""

from ....template.constraints import AllowedPattern, AllowedValues, Custom
from ...contract import Property, SupportStatus
from ..bodies import NamedRemote
from ..statuses import StatusMeaning
from .base import DescribedType
from .schema import SHOWN

PORT = Custom(check_name="neutron.port")
WORKED_ON = StatusMeaning(pending=("PENDING_CREATE", "PENDING_UPDATE", "PENDING_DELETE"))
NAME = Property("string", "Name.", default="", update_allowed=True)
DESCRIPTION = Property("string", "Description.", default="", update_allowed=True)


class TapService(DescribedType):
    """A tap service: a port that receives mirrored traffic."""

    type_name = "OS::Neutron::TaaS::TapService"
    support_status = SupportStatus(version="12.0.0")
    description = "A tap service: a port that receives mirrored traffic."
    path = "/taas/tap_services"
    item = "tap_service"
    status = WORKED_ON
    slow_delete = True
    references = {"port": NamedRemote("neutron.port")}
    properties_schema = {
        "name": NAME,
        "description": DESCRIPTION,
        "port": Property(
            "string",
            "Name or id of the port that receives the mirrored traffic.",
            required=True,
            constraints=(PORT,),
        ),
    }
    attributes_schema = {"show": SHOWN["show"]}


class TapFlow(DescribedType):
    """A tap flow: traffic of a port, mirrored to a tap service."""

    type_name = "OS::Neutron::TaaS::TapFlow"
    support_status = SupportStatus(version="12.0.0")
    description = "A tap flow: traffic of a port, mirrored to a tap service."
    path = "/taas/tap_flows"
    item = "tap_flow"
    status = WORKED_ON
    slow_delete = True
    references = {
        "port": NamedRemote("neutron.port", "source_port"),
        "tap_service": NamedRemote("neutron.taas.tap_service"),
    }
    properties_schema = {
        "name": NAME,
        "description": DESCRIPTION,
        "port": Property(
            "string", "Name or id of the port that is mirrored.", required=True, constraints=(PORT,)
        ),
        "tap_service": Property(
            "string",
            "Name or id of the tap service.",
            required=True,
            constraints=(Custom(check_name="neutron.taas.tap_service"),),
        ),
        "direction": Property(
            "string",
            "Traffic direction, as the port sees it.",
            default="BOTH",
            constraints=(AllowedValues(values=("IN", "OUT", "BOTH")),),
        ),
        "vlan_filter": Property(
            "string",
            "VLAN numbers, separated by commas, with ranges such as 9-12.",
            constraints=(AllowedPattern(pattern=r"^([0-9]+(-[0-9]+)?)(,([0-9]+(-[0-9]+)?))*$"),),
        ),
    }
    attributes_schema = {"show": SHOWN["show"]}
