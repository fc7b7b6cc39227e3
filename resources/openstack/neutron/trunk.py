"""OS::Neutron::Trunk: a port that carries the networks of other ports, each with a tag."""

from collections.abc import Collection, Sequence

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedValues, Custom, Range
from ...contract import Attribute, Property, ResourceView, StepContext, SupportStatus
from ..bodies import NamedRemote
from ..names import resolve
from ..service import objects_of
from .base import BUILT, DescribedType
from .schema import NAME, SHOWN

PORT = Custom(check_name="neutron.port")
SUB_PORT = {
    "port": Property("string", "Name or id of the port.", required=True, constraints=(PORT,)),
    "segmentation_id": Property(
        "integer",
        "Segmentation id: VLAN tag of the sub-port's packets in the server.",
        required=True,
        constraints=(Range(minimum=1, maximum=4094),),
    ),
    "segmentation_type": Property(
        "string", "Segmentation type.", required=True, constraints=(AllowedValues(values=("vlan",)),)
    ),
}


class Trunk(DescribedType):
    """A trunk: a parent port that carries the traffic of sub-ports, each with a VLAN tag."""

    type_name = "OS::Neutron::Trunk"
    support_status = SupportStatus(version="9.0.0")
    description = "A trunk: a parent port that carries the traffic of sub-ports, each with a VLAN tag."
    path = "/trunks"
    item = "trunk"
    quota = {"trunk": 1}
    status = BUILT
    references = {"port": NamedRemote("neutron.port")}
    apart = ("sub_ports",)
    properties_schema = {
        "name": NAME,
        "port": Property(
            "string",
            "Name or id of the parent port, which is attached to a server.",
            required=True,
            immutable=True,
            constraints=(PORT,),
        ),
        "sub_ports": Property(
            "list",
            "Sub-ports.",
            update_allowed=True,
            schema=Property("map", "Sub-port.", schema=SUB_PORT),
        ),
        "description": Property("string", "Description of the trunk.", update_allowed=True),
        "admin_state_up": Property(
            "boolean",
            "Administrative state; false locks the trunk against changes of its sub-ports and deletion.",
            update_allowed=True,
        ),
    }
    attributes_schema = {
        "port_id": Attribute("Id of the parent port.", "string"),
        "show": SHOWN["show"],
    }

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        body = super().create_body(target, context)
        return {**body, "sub_ports": _sub_ports(target, context)}

    def after_update(self, target: ResourceView, changed: Collection[str], context: StepContext) -> None:
        """Remove the ports that are left over, and add those that are new or have another tag."""
        if "sub_ports" not in changed:
            return
        self._unlock(target, changed, context)
        service = self.service_for(context)
        path = self.path_of(target)
        expected = {_identity(port): port for port in _sub_ports(target, context)}
        present = {
            _identity(port): port for port in objects_of(self.get(service, self.id_of(target)), "sub_ports")
        }
        if removed := [{"port_id": present[key]["port_id"]} for key in present.keys() - expected.keys()]:
            service.put(f"{path}/remove_subports", {"sub_ports": removed})
        if new := [expected[key] for key in expected.keys() - present.keys()]:
            service.put(f"{path}/add_subports", {"sub_ports": new})

    def _unlock(self, target: ResourceView, changed: Collection[str], context: StepContext) -> None:
        """Switch the trunk on first, where an update does so: the service changes no ports of another."""
        if "admin_state_up" in changed and target.properties["admin_state_up"]:
            body = {self.item: {"admin_state_up": True}}
            self.service_for(context).put(self.path_of(target), body)


def _sub_ports(target: ResourceView, context: StepContext) -> Sequence[JsonMap]:
    return [
        {
            "port_id": resolve(context, "neutron.port", sub_port["port"]),
            "segmentation_type": sub_port["segmentation_type"],
            "segmentation_id": sub_port["segmentation_id"],
        }
        for sub_port in target.properties["sub_ports"] or ()
    ]


def _identity(port: JsonMap) -> tuple[Json, ...]:
    return port["port_id"], port["segmentation_type"], port["segmentation_id"]
