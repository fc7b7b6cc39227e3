"""OS::Neutron::L2Gateway and OS::Neutron::L2GatewayConnection: bridges to networks outside."""

from collections.abc import Collection

from ....shapes import Json
from ....template.constraints import Custom
from ...contract import Property, ResourceView, StepContext, SupportStatus
from ..bodies import without_nulls
from ..compared import ComparedType
from .base import NeutronType
from .schema import SHOWN

INTERFACE = {
    "name": Property("string", "Name of the interface.", required=True),
    "segmentation_id": Property("list", "Segmentation ids (VLAN numbers) that the interface accepts."),
}
DEVICE = {
    "device_name": Property("string", "Name of the gateway device.", required=True),
    "interfaces": Property(
        "list",
        "Interfaces of the device.",
        required=True,
        schema=Property("map", "Interface.", schema=INTERFACE),
    ),
}


class L2Gateway(ComparedType, NeutronType):
    """An L2 gateway: a bridge between virtual networks and external devices."""

    type_name = "OS::Neutron::L2Gateway"
    support_status = SupportStatus(version="12.0.0")
    description = "An L2 gateway: a bridge between virtual networks and external devices."
    path = "/l2-gateways"
    item = "l2_gateway"
    identity = "the name; Stoker first stores which gateways have it"
    filters = ("name",)
    properties_schema = {
        "name": Property("string", "Name of the gateway.", required=True, update_allowed=True),
        "devices": Property(
            "list",
            "Gateway devices.",
            required=True,
            update_allowed=True,
            schema=Property("map", "Gateway device.", schema=DEVICE),
        ),
    }
    attributes_schema = {"show": SHOWN["show"]}

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        return _without_empty(super().create_body(target, context))

    def update_body(
        self, target: ResourceView, changed: Collection[str], context: StepContext
    ) -> dict[str, Json]:
        return _without_empty(super().update_body(target, changed, context))


def _without_empty(body: dict[str, Json]) -> dict[str, Json]:
    """Return the fields; an interface without segments has no list of them."""
    if "devices" not in body:
        return body
    devices = [
        {**device, "interfaces": [without_nulls(item) for item in device["interfaces"]]}
        for device in body["devices"]
    ]
    return {**body, "devices": devices}


class L2GatewayConnection(ComparedType, NeutronType):
    """A connection of a network to an L2 gateway."""

    type_name = "OS::Neutron::L2GatewayConnection"
    support_status = SupportStatus(version="12.0.0")
    description = "A connection of a network to an L2 gateway."
    path = "/l2-gateway-connections"
    item = "l2_gateway_connection"
    identity = "the gateway, the network and the segment; Stoker first stores which connections exist"
    compared = ("l2_gateway_id", "network_id", "segmentation_id")
    filters = ("l2_gateway_id",)
    properties_schema = {
        "l2_gateway_id": Property("string", "Id of the L2 gateway.", required=True),
        "network_id": Property(
            "string",
            "Id of the network.",
            required=True,
            constraints=(Custom(check_name="neutron.network"),),
        ),
        "segmentation_id": Property("string", "Segmentation id (VLAN number) on the gateway's interfaces."),
    }
    attributes_schema = {"show": SHOWN["show"]}
