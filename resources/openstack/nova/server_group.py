"""OS::Nova::ServerGroup: a policy for where the servers of a group run."""

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedValues, Length
from ...contract import Attribute, Property, PropertyError, ResourceView, StepContext, SupportStatus
from ..compared import ComparedType

POLICIES = AllowedValues(values=("anti-affinity", "affinity", "soft-anti-affinity", "soft-affinity"))


class ServerGroup(ComparedType):
    """A policy for where the servers of a group run.

    The service keeps nothing of a group but its name, which cannot change and need not be unique.  So a first
    step stores which groups have the name; a further one is ours.
    """

    type_name = "OS::Nova::ServerGroup"
    support_status = SupportStatus(version="2014.2")
    description = "A server group: an affinity or anti-affinity policy for the hosts of its servers."
    service = "compute"
    path = "/os-server-groups"
    item = "server_group"
    quota = {"server_groups": 1}
    identity = "the name; Stoker first stores which groups have it"
    properties_schema = {
        "name": Property(
            "string",
            "Name; if omitted, generated from the names of the stack and the resource.",
            constraints=(Length(maximum=255),),
        ),
        "policies": Property(
            "list",
            "Scheduling policy, as a list with one item.",
            default=["anti-affinity"],
            constraints=(POLICIES,),
            schema=Property("string", "Scheduling policy."),
        ),
        "rules": Property(
            "map",
            "Rules of the policy.",
            schema={
                "max_server_per_host": Property(
                    "number", "Maximum number of the group's servers on one host, with anti-affinity."
                ),
            },
        ),
    }
    attributes_schema = {"show": Attribute("All fields, as the service's API returns them.", "map")}

    def validate(self, properties: JsonMap) -> None:
        """Check that there is one policy, and that rules fit it."""
        policies = properties.get("policies")
        if policies is not None and len(policies) != 1:
            raise PropertyError("exactly one policy is needed", ("policies",))
        limit = (properties.get("rules") or {}).get("max_server_per_host")
        if limit is not None and policies not in (None, ["anti-affinity"]):
            raise PropertyError("max_server_per_host is for the policy anti-affinity only", ("rules",))

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        properties = target.properties
        body = {"name": properties["name"] or target.physical_name, "policy": properties["policies"][0]}
        limit = (properties["rules"] or {}).get("max_server_per_host")
        return body if limit is None else {**body, "rules": {"max_server_per_host": int(limit)}}
