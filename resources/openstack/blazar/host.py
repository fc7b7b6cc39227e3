"""OS::Blazar::Host: a host whose time can be reserved."""

from ....shapes import Json, JsonMap
from ...contract.views import ResourceView
from ...schema import Attribute, Property
from .base import BlazarType

NAME = "hypervisor_hostname"
"""The name in answers; in a creation it is ``name``."""
CAPABILITY = "extra_capability"
ATTRIBUTES = {
    NAME: Attribute("Its name at the hypervisor.", "string"),
    "hypervisor_type": Attribute("Kind of the hypervisor.", "string"),
    "hypervisor_version": Attribute("Version of the hypervisor.", "integer"),
    "vcpus": Attribute("Number of its processors.", "integer"),
    "cpu_info": Attribute("What its processors are.", "map"),
    "memory_mb": Attribute("Its memory in MiB.", "integer"),
    "local_gb": Attribute("Its disk in GiB.", "integer"),
    "service_name": Attribute("Its name at the compute service.", "string"),
    "reservable": Attribute("Whether it can be reserved.", "boolean"),
    "status": Attribute("Its status.", "string"),
    "trust_id": Attribute("Id of the operator's trust.", "string"),
    CAPABILITY: Attribute("Its further capabilities.", "map"),
    "created_at": Attribute("The moment of its creation.", "string"),
    "updated_at": Attribute("The moment of its last change.", "string"),
}


class Host(BlazarType):
    """A host.  Its further capabilities are fields of their own at the service."""

    description = "A host of the compute service, given to the reservation service; for administrators."
    path = "/os-hosts"
    item = "host"
    compared = (NAME,)
    renamed = {"name": NAME}
    apart = (CAPABILITY,)
    properties_schema = {
        "name": Property("string", "Its name at the compute service.", required=True),
        CAPABILITY: Property("map", "Further capabilities, by which leases choose."),
    }
    attributes_schema = ATTRIBUTES

    def request(self, body: JsonMap, target: ResourceView) -> JsonMap:
        """Return the body of a creation; a capability cannot be called ``name``."""
        return {**(target.properties[CAPABILITY] or {}), "name": body[NAME]}

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the fields; those that the service does not name itself are further capabilities."""
        values = super().attribute_values(target)
        fields: dict[str, Json] = dict(values["show"])
        of_service = {"id", *ATTRIBUTES}
        return {
            **values,
            CAPABILITY: {name: value for name, value in fields.items() if name not in of_service},
        }
