"""OS::Nova::ServerGroup: a policy for where the servers of a group run."""

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedValues
from ...contract.context import StepContext
from ...contract.views import ResourceView, physical_name
from ...errors import PropertyError
from ...schema import Attribute, Property, SupportStatus
from ...steps import Poll, Step
from ..declared import DeclaredType

BEFORE = "before"
"""Key of the data: the groups that had the name before the creation."""
POLICIES = AllowedValues(values=("anti-affinity", "affinity", "soft-anti-affinity", "soft-affinity"))


class ServerGroup(DeclaredType):
    """A policy for where the servers of a group run.

    The service keeps nothing of a group but its name, which cannot change and need not be unique.  So a first
    step stores which groups have the name; a further one is ours.
    """

    support_status = SupportStatus(version="2014.2")
    description = "A policy for where the servers of a group run: on one host, or each on another."
    service = "compute"
    path = "/os-server-groups"
    item = "server_group"
    mark = None
    identity = "the name; which groups had it before is stored first"
    properties_schema = {
        "name": Property("string", "Name; none: made of the stack's and the resource's."),
        "policies": Property(
            "list",
            "Its policy: a list of one.",
            default=["anti-affinity"],
            constraints=(POLICIES,),
            schema=Property("string", "A policy."),
        ),
        "rules": Property(
            "map",
            "Rules for the policy.",
            schema={
                "max_server_per_host": Property(
                    "number", "Servers of the group that may run on one host, for anti-affinity."
                ),
            },
        ),
    }
    attributes_schema = {"show": Attribute("All that the service reports of it.", "map")}

    def validate(self, properties: JsonMap) -> None:
        """Check that there is one policy, and that rules fit it."""
        policies = properties.get("policies")
        if policies is not None and len(policies) != 1:
            raise PropertyError("exactly one policy is needed", ("policies",))
        limit = (properties.get("rules") or {}).get("max_server_per_host")
        if limit is not None and policies not in (None, ["anti-affinity"]):
            raise PropertyError("max_server_per_host is for the policy anti-affinity only", ("rules",))

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        """Return the fields of a new group."""
        properties = target.properties
        body = {"name": properties["name"] or target.physical_name, "policy": properties["policies"][0]}
        limit = (properties["rules"] or {}).get("max_server_per_host")
        return body if limit is None else {**body, "rules": {"max_server_per_host": int(limit)}}

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Store which groups have the name already."""
        if target.physical_id is not None:
            return super().handle_create(target, context)
        data = {**target.data, BEFORE: self._named(target, context)}
        return Poll(progress={"begun": True}, after=0.0, data=data)

    def check_create_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Create the group, unless an earlier step has."""
        if not progress.get("begun"):
            return super().check_create_complete(target, progress, context)
        group_id = self.find_created(target.key, target, context) if target.attempt > 1 else None
        if group_id is not None:
            return self._begin_wait(self.get(self.service_for(context), group_id), target, context)
        return super().handle_create(target, context)

    def find_created(self, key: str, target: ResourceView, context: StepContext) -> str | None:
        """Return the first group of the name that did not have it before the creation."""
        if BEFORE not in target.data:
            return None
        groups = [group for group in self._named(target, context) if group not in target.data[BEFORE]]
        return next(iter(groups), None)

    def _named(self, target: ResourceView, context: StepContext) -> list[str]:
        properties = target.properties
        key = target.creation_key or target.key
        name = properties["name"] or physical_name(target.stack.name, target.name, key)
        groups = self.service_for(context).list_all(self.path, "server_groups")
        return [str(group["id"]) for group in groups if group["name"] == name]
