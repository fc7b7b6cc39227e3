"""OS::Blazar::Lease: hosts or servers that are reserved for a time."""

from collections.abc import Mapping

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedPattern, AllowedValues, Range
from ...contract import Attribute, CloudCalls, Property, ResourceView, StepContext
from ..statuses import StatusMeaning
from .base import BlazarType

MOMENTS = ("start_date", "end_date")
MOMENT = (AllowedPattern(pattern=r"\d{4}-\d{2}-\d{2}\s\d{2}:\d{2}"),)
NUMBER = (Range(minimum=0, maximum=2147483647),)
RESERVATIONS = "reservations"
WITHOUT: Mapping[str, frozenset[str]] = {
    "physical:host": frozenset({"vcpus", "memory_mb", "disk_gb", "affinity", "amount"}),
    "virtual:instance": frozenset({"hypervisor_properties", "max", "min", "before_end"}),
}
"""By what is reserved: the values that say nothing of it."""
RESERVATION = Property(
    "map",
    "Reservation.",
    schema={
        "resource_type": Property(
            "string",
            "Resource type of the reservation.",
            required=True,
            constraints=(AllowedValues(values=("virtual:instance", "physical:host")),),
        ),
        "min": Property("integer", "Minimum number of hosts.", constraints=(Range(minimum=1),)),
        "max": Property("integer", "Maximum number of hosts.", constraints=(Range(minimum=1),)),
        "hypervisor_properties": Property("string", "Hypervisor properties that the hosts must have."),
        "resource_properties": Property("string", "Resource properties that the hosts must have."),
        "before_end": Property(
            "string",
            "Action before the end of the lease.",
            default="default",
            constraints=(AllowedValues(values=("default", "snapshot")),),
        ),
        "amount": Property("integer", "Number of servers.", constraints=NUMBER),
        "vcpus": Property("integer", "Number of virtual CPUs of a server.", constraints=NUMBER),
        "memory_mb": Property("integer", "Memory of a server, in MiB.", constraints=NUMBER),
        "disk_gb": Property("integer", "Disk of a server, in GiB.", constraints=NUMBER),
        "affinity": Property("boolean", "Affinity: true places all servers on one host.", default=False),
    },
)
EVENT = Property(
    "map",
    "Event.",
    schema={
        "event_type": Property("string", "Event type.", required=True),
        "time": Property("string", "Event time, in the form CCYY-MM-DD hh:mm.", required=True),
    },
)


class Lease(BlazarType):
    """A lease."""

    type_name = "OS::Blazar::Lease"
    description = "A lease: a reservation of hosts or servers for a period."
    path = "/leases"
    item = "lease"
    status = StatusMeaning(pending=("CREATING", "UPDATING", "DELETING"), bad=("ERROR",))
    apart = (RESERVATIONS, "events", "before_end_date")
    properties_schema = {
        "name": Property("string", "Name of the lease.", required=True),
        "start_date": Property(
            "string", "Start time, in the form CCYY-MM-DD hh:mm.", required=True, constraints=MOMENT
        ),
        "end_date": Property(
            "string", "End time, in the form CCYY-MM-DD hh:mm.", required=True, constraints=MOMENT
        ),
        "before_end_date": Property(
            "string",
            "Start time of the action before the end, in the form CCYY-MM-DD hh:mm.",
            constraints=MOMENT,
        ),
        RESERVATIONS: Property("list", "Reservations.", required=True, schema=RESERVATION),
        "events": Property("list", "Additional events.", default=[], schema=EVENT),
    }
    attributes_schema = {
        "name": Attribute("Name of the lease.", "string"),
        "start_date": Attribute("Start time.", "string"),
        "end_date": Attribute("End time.", "string"),
        "created_at": Attribute("Time of creation.", "string"),
        "updated_at": Attribute("Time of the last update.", "string"),
        "status": Attribute("Status of the lease.", "string"),
        "user_id": Attribute("Id of the user who created the lease.", "string"),
        "project_id": Attribute("Id of the owning project.", "string"),
        "trust_id": Attribute("Id of the trust by which the service acts for the user.", "string"),
        "degraded": Attribute("Degradation: true if some reserved resources are unavailable.", "boolean"),
        RESERVATIONS: Attribute("Reservations.", "list"),
        "events": Attribute("Events.", "list"),
    }

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        properties = target.properties
        body = {
            **super().create_body(target, context),
            RESERVATIONS: [_relevant(entry) for entry in properties[RESERVATIONS]],
            "events": list(properties["events"] or ()),
        }
        if properties["before_end_date"]:
            body["before_end_date"] = properties["before_end_date"]
        return body

    def reported_properties(self, target: ResourceView, remote: JsonMap, context: CloudCalls) -> JsonMap:
        """Return the fields; moments in the form of templates."""
        live = super().reported_properties(target, remote, context)
        moments = {name: str(live[name])[:16].replace("T", " ") for name in MOMENTS if name in live}
        return {**live, **moments}


def _relevant(entry: JsonMap) -> dict[str, Json]:
    """Return a reservation without the values that say nothing of what is reserved.

    Null stays: the service wants each name.
    """
    left_out = WITHOUT[entry["resource_type"]]
    return {name: value for name, value in entry.items() if name not in left_out}
