"""OS::Blazar::Host: a host whose time can be reserved."""

from ....shapes import Json, JsonMap
from ...contract import Attribute, Property, ResourceView
from .base import BlazarType

NAME = "hypervisor_hostname"
"""The name in answers; in a creation it is ``name``."""
CAPABILITY = "extra_capability"
ATTRIBUTES = {
    NAME: Attribute("Host name at the hypervisor.", "string"),
    "hypervisor_type": Attribute("Hypervisor type.", "string"),
    "hypervisor_version": Attribute("Hypervisor version.", "integer"),
    "vcpus": Attribute("Number of CPUs.", "integer"),
    "cpu_info": Attribute("CPU description.", "map"),
    "memory_mb": Attribute("Memory, in MiB.", "integer"),
    "local_gb": Attribute("Disk, in GiB.", "integer"),
    "service_name": Attribute("Host name at the compute service.", "string"),
    "reservable": Attribute("Availability for reservations.", "boolean"),
    "status": Attribute("Status.", "string"),
    "trust_id": Attribute("Id of the operator's trust.", "string"),
    CAPABILITY: Attribute("Extra capabilities.", "map"),
    "created_at": Attribute("Time of creation.", "string"),
    "updated_at": Attribute("Time of the last update.", "string"),
}


class Host(BlazarType):
    """A host.  Its further capabilities are fields of their own at the service."""

    type_name = "OS::Blazar::Host"
    description = "A compute host that can be reserved; for administrators."
    path = "/os-hosts"
    item = "host"
    compared = (NAME,)
    renamed = {"name": NAME}
    apart = (CAPABILITY,)
    properties_schema = {
        "name": Property("string", "Host name at the compute service.", required=True),
        CAPABILITY: Property("map", "Extra capabilities, by which leases can select hosts."),
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
