"""OS::Blazar::Lease: hosts or servers that are reserved for a time."""

from collections.abc import Mapping

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedPattern, AllowedValues, Range
from ...contract.context import StepContext
from ...contract.views import ResourceView
from ...schema import Attribute, Property
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
    "A reservation.",
    schema={
        "resource_type": Property(
            "string",
            "What is reserved.",
            required=True,
            constraints=(AllowedValues(values=("virtual:instance", "physical:host")),),
        ),
        "min": Property("integer", "The least number of hosts.", constraints=(Range(minimum=1),)),
        "max": Property("integer", "The largest number of hosts.", constraints=(Range(minimum=1),)),
        "hypervisor_properties": Property("string", "Condition that the hypervisors meet."),
        "resource_properties": Property("string", "Condition that the hosts meet."),
        "before_end": Property(
            "string",
            "What is done before the end.",
            default="default",
            constraints=(AllowedValues(values=("default", "snapshot")),),
        ),
        "amount": Property("integer", "Number of servers.", constraints=NUMBER),
        "vcpus": Property("integer", "Processors of a server.", constraints=NUMBER),
        "memory_mb": Property("integer", "Memory of a server in MiB.", constraints=NUMBER),
        "disk_gb": Property("integer", "Disk of a server in GiB.", constraints=NUMBER),
        "affinity": Property("boolean", "The servers are on one host.", default=False),
    },
)
EVENT = Property(
    "map",
    "An event.",
    schema={
        "event_type": Property("string", "What happens.", required=True),
        "time": Property("string", "When, in the form CCYY-MM-DD hh:mm.", required=True),
    },
)


class Lease(BlazarType):
    """A lease."""

    description = "Hosts or servers that are reserved for a time."
    path = "/leases"
    item = "lease"
    status = StatusMeaning(pending=("CREATING", "UPDATING", "DELETING"), bad=("ERROR",))
    apart = (RESERVATIONS, "events", "before_end_date")
    properties_schema = {
        "name": Property("string", "Its name.", required=True),
        "start_date": Property(
            "string", "The beginning, in the form CCYY-MM-DD hh:mm.", required=True, constraints=MOMENT
        ),
        "end_date": Property(
            "string", "The end, in the form CCYY-MM-DD hh:mm.", required=True, constraints=MOMENT
        ),
        "before_end_date": Property(
            "string", "When the action before the end begins, in the same form.", constraints=MOMENT
        ),
        RESERVATIONS: Property("list", "What is reserved.", required=True, schema=RESERVATION),
        "events": Property("list", "Further events.", default=[], schema=EVENT),
    }
    attributes_schema = {
        **{
            name: Attribute("The field of this name.", "string")
            for name in (
                *("name", "start_date", "end_date", "created_at", "updated_at"),
                *("status", "user_id", "project_id", "trust_id"),
            )
        },
        "degraded": Attribute("Whether less is reserved than was asked for.", "boolean"),
        RESERVATIONS: Attribute("The reservations.", "list"),
        "events": Attribute("The events.", "list"),
    }

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        """Return the fields of a new lease."""
        properties = target.properties
        body = {
            **super().create_body(target, context),
            RESERVATIONS: [_relevant(entry) for entry in properties[RESERVATIONS]],
            "events": list(properties["events"] or ()),
        }
        if properties["before_end_date"]:
            body["before_end_date"] = properties["before_end_date"]
        return body

    def reported_properties(self, target: ResourceView, remote: JsonMap, context: StepContext) -> JsonMap:
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
