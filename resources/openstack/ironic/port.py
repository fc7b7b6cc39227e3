"""OS::Ironic::Port: a network interface of a bare metal node."""

from ....shapes import Json, JsonMap
from ....template.constraints import Custom
from ...contract import Attribute, Property, ResourceView, StepContext, SupportStatus
from ..bodies import NamedRemote, json_patch
from ..declared import DeclaredType
from ..marks import chosen_id
from ..service import RemoteNotFound


class BareMetalPort(DeclaredType):
    """A port; its id is chosen here, so that it is its own mark."""

    type_name = "OS::Ironic::Port"
    support_status = SupportStatus(version="13.0.0")
    description = "A network interface of a bare metal node."
    service = "baremetal"
    path = "/ports"
    list_path = "/ports/detail"
    item = ""
    items = "ports"
    id_field = "uuid"
    mark = None
    identity = "the id, which Stoker chooses"
    update_method = "PATCH"
    slow_delete = True
    references = {
        "node": NamedRemote("ironic.node", "node_uuid"),
        "portgroup": NamedRemote("ironic.portgroup", "portgroup_uuid"),
    }
    properties_schema = {
        "node": Property(
            "string",
            "Name or id of the node.",
            required=True,
            update_allowed=True,
            constraints=(Custom(check_name="ironic.node"),),
        ),
        "address": Property("string", "MAC address.", required=True, update_allowed=True),
        "portgroup": Property(
            "string",
            "Name or id of the port group.",
            update_allowed=True,
            constraints=(Custom(check_name="ironic.portgroup"),),
        ),
        "local_link_connection": Property(
            "map",
            "Local link connection to the switch: switch_id, port_id and switch_info.",
            update_allowed=True,
        ),
        "pxe_enabled": Property("boolean", "PXE boot on the port.", update_allowed=True),
        "physical_network": Property("string", "Name of the physical network.", update_allowed=True),
        "extra": Property("map", "Extra metadata.", update_allowed=True),
        "is_smartnic": Property(
            "boolean", "Smart NIC: true if the port belongs to one.", update_allowed=True
        ),
    }
    attributes_schema = {
        "address": Attribute("MAC address.", "string"),
        "node_uuid": Attribute("Id of the node.", "string"),
        "portgroup_uuid": Attribute("Id of the port group.", "string"),
        "physical_network": Attribute("Name of the physical network.", "string"),
        "pxe_enabled": Attribute("PXE boot: true if the port may be used for it.", "boolean"),
        "is_smartnic": Attribute("Smart NIC: true if the port belongs to one.", "boolean"),
        "local_link_connection": Attribute("Local link connection to the switch.", "map"),
        "internal_info": Attribute("Internal information of the bare metal service about the port.", "map"),
        "extra": Attribute("Extra metadata.", "map"),
    }

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        return {**super().create_body(target, context), "uuid": chosen_id(target.creation_key or target.key)}

    def request(self, body: JsonMap, target: ResourceView) -> JsonMap:
        return body

    def find_created(self, key: str, target: ResourceView, context: StepContext) -> str | None:
        """Return the id of the port, if there is one with it."""
        try:
            return str(self.get(self.service_for(context), chosen_id(key))[self.id_field])
        except RemoteNotFound:
            return None

    def _wrapped(self, body: JsonMap) -> JsonMap:
        return json_patch(body)
