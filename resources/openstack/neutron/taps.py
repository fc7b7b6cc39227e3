"""OS::Neutron::TaaS::TapService and OS::Neutron::TaaS::TapFlow: copies of a port's traffic."""

from ....template.constraints import AllowedPattern, AllowedValues, Custom
from ...schema import Property, SupportStatus
from ..bodies import NamedRemote
from ..statuses import StatusMeaning
from .base import DescribedType
from .schema import SHOWN

PORT = Custom(check_name="neutron.port")
WORKED_ON = StatusMeaning(pending=("PENDING_CREATE", "PENDING_UPDATE", "PENDING_DELETE"))
NAME = Property("string", "Its name.", default="", update_allowed=True)
DESCRIPTION = Property("string", "Its description.", default="", update_allowed=True)


class TapService(DescribedType):
    """A port that gets copies of the traffic of others."""

    support_status = SupportStatus(version="12.0.0")
    description = "A port that gets copies of the traffic of others."
    path = "/taas/tap_services"
    item = "tap_service"
    status = WORKED_ON
    slow_delete = True
    references = {"port": NamedRemote("neutron.port")}
    properties_schema = {
        "name": NAME,
        "description": DESCRIPTION,
        "port": Property("string", "Name or id of the port.", required=True, constraints=(PORT,)),
    }
    attributes_schema = {"show": SHOWN["show"]}


class TapFlow(DescribedType):
    """Traffic of a port of which a tap service gets copies."""

    support_status = SupportStatus(version="12.0.0")
    description = "Traffic of a port of which a tap service gets copies."
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
        "port": Property("string", "Name or id of the port.", required=True, constraints=(PORT,)),
        "tap_service": Property(
            "string",
            "Name or id of the tap service.",
            required=True,
            constraints=(Custom(check_name="neutron.taas.tap_service"),),
        ),
        "direction": Property(
            "string",
            "Direction of the traffic.",
            default="BOTH",
            constraints=(AllowedValues(values=("IN", "OUT", "BOTH")),),
        ),
        "vlan_filter": Property(
            "string",
            "Numbers of the VLANs, with commas; ranges with a hyphen.",
            constraints=(AllowedPattern(pattern=r"^([0-9]+(-[0-9]+)?)(,([0-9]+(-[0-9]+)?))*$"),),
        ),
    }
    attributes_schema = {"show": SHOWN["show"]}
