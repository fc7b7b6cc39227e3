"""OS::Neutron::NetworkGateway: a gateway between networks and devices outside."""

from collections.abc import Collection, Sequence

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedValues, Custom, Length, Range
from ...contract import Attribute, Property, PropertyError, ResourceView, StepContext, SupportStatus
from ..compared import ComparedType
from ..names import resolve
from ..service import RemoteNotFound, objects_of
from .base import NeutronType
from .schema import HIDDEN, NAME, SHOWN

NETWORK = Custom(check_name="neutron.network")
DEVICE = {
    "id": Property("string", "Id of the gateway device.", required=True),
    "interface_name": Property("string", "Name of the device's interface.", required=True),
}
CONNECTION = {
    "network_id": Property(
        "string",
        "Old name of network.",
        support_status=HIDDEN,
        constraints=(NETWORK,),
        alias_of="network",
    ),
    "network": Property("string", "Name or id of the network.", required=True, constraints=(NETWORK,)),
    "segmentation_type": Property(
        "string",
        "Segmentation type of the external traffic: flat (untagged) or vlan.",
        default="flat",
        constraints=(AllowedValues(values=("flat", "vlan")),),
    ),
    "segmentation_id": Property("integer", "VLAN number.", constraints=(Range(minimum=0, maximum=4094),)),
}


class NetworkGateway(ComparedType, NeutronType):
    """A gateway between networks and external devices."""

    type_name = "OS::Neutron::NetworkGateway"
    support_status = SupportStatus(version="2014.1")
    description = "A gateway between networks and external devices."
    path = "/network-gateways"
    item = "network_gateway"
    identity = "the name; Stoker first stores which gateways have it"
    filters = ("name",)
    apart = ("connections",)
    properties_schema = {
        "name": NAME,
        "devices": Property(
            "list",
            "Gateway devices.",
            required=True,
            update_allowed=True,
            constraints=(Length(minimum=1),),
            schema=Property("map", "Gateway device.", schema=DEVICE),
        ),
        "connections": Property(
            "list",
            "Networks connected to the gateway.",
            default=[],
            update_allowed=True,
            schema=Property("map", "Connection of a network.", schema=CONNECTION),
        ),
    }
    attributes_schema = {
        "default": Attribute("Default gateway: true if the service created it as such.", "string"),
        "show": SHOWN["show"],
    }

    def validate(self, properties: JsonMap) -> None:
        """Check that a VLAN has its number, and nothing else has one."""
        connections = properties.get("connections")
        for index, connection in enumerate(connections if isinstance(connections, list) else ()):
            number = connection.get("segmentation_id", "unknown")
            place = ("connections", index, "segmentation_id")
            if connection.get("segmentation_type") == "vlan" and number is None:
                raise PropertyError("segmentation_id is needed for the type vlan", place)
            if connection.get("segmentation_type") == "flat" and number not in (None, 0, "unknown"):
                raise PropertyError("segmentation_id is 0 at most for the type flat", place)

    def needs_replace(self, before: JsonMap, after: JsonMap) -> bool:
        """Return whether it gets other devices, which the service does not change."""
        return bool(before["devices"] != after["devices"])

    def has_more(self, target: ResourceView) -> bool:
        """Return whether it has connections, each of which takes a call of its own."""
        return bool(target.properties["connections"])

    def after_create(self, target: ResourceView, context: StepContext) -> None:
        """Connect the networks."""
        present = self._connections(target, context)
        for connection in self._declared(target.properties, context):
            if connection not in present:
                self._call("connect_network", connection, target, context)

    def after_update(self, target: ResourceView, changed: Collection[str], context: StepContext) -> None:
        """Disconnect the networks that are left over, and connect those that are new."""
        if "connections" not in changed:
            return
        expected = self._declared(target.properties, context)
        present = self._connections(target, context)
        for connection in present:
            if connection not in expected:
                self._call("disconnect_network", connection, target, context)
        for connection in expected:
            if connection not in present:
                self._call("connect_network", connection, target, context)

    def before_delete(self, target: ResourceView, context: StepContext) -> None:
        """Disconnect all networks."""
        for connection in self._connections(target, context):
            self._call("disconnect_network", connection, target, context)

    def _declared(self, properties: JsonMap, context: StepContext) -> Sequence[JsonMap]:
        return [
            _connection({**item, "network_id": resolve(context, "neutron.network", item["network"])})
            for item in properties["connections"] or ()
        ]

    def _connections(self, target: ResourceView, context: StepContext) -> Sequence[JsonMap]:
        gateway = self.get(self.service_for(context), self.id_of(target))
        present = objects_of(gateway, "connections") if "connections" in gateway else []
        return [_connection(item) for item in present]

    def _call(self, action: str, connection: JsonMap, target: ResourceView, context: StepContext) -> None:
        try:
            self.service_for(context).put(f"{self.path_of(target)}/{action}", connection)
        except RemoteNotFound:
            if action == "connect_network":
                raise


def _connection(item: JsonMap) -> dict[str, Json]:
    """Return a connection as the service takes it."""
    number = item.get("segmentation_id")
    fields = {"network_id": item["network_id"], "segmentation_type": item.get("segmentation_type") or "flat"}
    return {**fields, "segmentation_id": number} if number else fields
