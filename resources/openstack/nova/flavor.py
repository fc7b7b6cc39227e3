"""OS::Nova::Flavor: a size of servers."""

from collections.abc import Collection, Sequence

from ....shapes import Json, JsonMap
from ....template.constraints import Custom
from ...contract import (
    Attribute,
    CloudCalls,
    Property,
    PropertyError,
    ResourceView,
    StepContext,
    SupportStatus,
)
from ..bodies import texts
from ..declared import REMOTE, DeclaredType
from ..marks import chosen_id, mark_of
from ..names import quoted, resolve
from ..service import RemoteNotFound


class Flavor(DeclaredType):
    """A size of servers; for administrators.  Its id is known before, so it is found by that."""

    type_name = "OS::Nova::Flavor"
    support_status = SupportStatus(version="2014.2")
    description = "A flavor: the CPUs, memory and disks of servers; for administrators by default."
    service = "compute"
    path = "/flavors"
    list_path = "/flavors/detail"
    list_parameters = {"limit": 1000, "is_public": "None"}
    item = "flavor"
    mark = None
    identity = "the id, which Stoker chooses where ``flavorid`` names none, and the description"
    renamed = {
        "ephemeral": "OS-FLV-EXT-DATA:ephemeral",
        "is_public": "os-flavor-access:is_public",
        "flavorid": "id",
    }
    apart = ("extra_specs", "tenants")
    properties_schema = {
        "tenants": Property(
            "list",
            "Names or ids of the projects that have access to the flavor.",
            default=[],
            update_allowed=True,
            schema=Property(
                "string", "Name or id of a project.", constraints=(Custom(check_name="keystone.project"),)
            ),
        ),
        "ram": Property("integer", "Memory, in MiB.", required=True),
        "vcpus": Property("integer", "Number of virtual CPUs.", required=True),
        "disk": Property("integer", "Root disk size, in GiB; 0: the size of the image.", default=0),
        "swap": Property("integer", "Swap disk size, in MiB.", default=0),
        "ephemeral": Property("integer", "Ephemeral disk size, in GiB.", default=0),
        "rxtx_factor": Property(
            "number", "Network bandwidth factor (RX/TX), relative to that of the network.", default=1.0
        ),
        "extra_specs": Property("map", "Extra specs.", update_allowed=True),
        "name": Property(
            "string", "Name; if omitted, generated from the names of the stack and the resource."
        ),
        "flavorid": Property("string", "Id of the flavor; if omitted, generated."),
        "is_public": Property("boolean", "Public access: true gives all projects access.", default=True),
    }
    attributes_schema = {
        "is_public": Attribute("Public access: true gives all projects access.", "boolean"),
        "extra_specs": Attribute("Extra specs.", "map"),
        "show": Attribute("All fields, as the service's API returns them.", "map"),
    }
    attribute_fields = {"is_public": "os-flavor-access:is_public"}

    def validate(self, properties: JsonMap) -> None:
        """Check that projects are named for a flavor only that is not public."""
        if properties.get("tenants") and properties.get("is_public"):
            text = "tenants can be given only where is_public is false"  # prose: Heat's name of the property
            raise PropertyError(text, ("tenants",))

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        body = super().create_body(target, context)
        body.setdefault("name", target.physical_name)
        if body.get("id") in (None, "", "auto"):
            body["id"] = chosen_id(target.key)
        body["description"] = mark_of(target.key)
        return body

    def find_created(self, key: str, target: ResourceView, context: StepContext) -> str | None:
        """Return the id, if the flavor that has it has our mark, too."""
        flavor = target.properties["flavorid"]
        flavor = chosen_id(key) if flavor in (None, "", "auto") else flavor
        try:
            flavor_of_id = self.get(self.service_for(context), quoted(flavor))
        except RemoteNotFound:
            return None
        return flavor if flavor_of_id.get("description") == mark_of(key) else None

    def has_more(self, target: ResourceView) -> bool:
        """Return whether it has extra specs, or projects of its own."""
        return bool(target.properties["extra_specs"] or not target.properties["is_public"])

    def after_create(self, target: ResourceView, context: StepContext) -> None:
        """Set extra specs and projects; the stack's own where none are given."""
        if target.properties["extra_specs"]:
            self._set_extra_specs(target, context)
        if not target.properties["is_public"]:
            self._set_projects(target, target.properties["tenants"] or [target.stack.project_id], context)

    def update_body(
        self, target: ResourceView, changed: Collection[str], context: StepContext
    ) -> dict[str, Json]:
        """Return nothing: all that can change has calls of its own."""
        return {}

    def after_update(self, target: ResourceView, changed: Collection[str], context: StepContext) -> None:
        """Set extra specs and projects, if they have changed."""
        if "extra_specs" in changed:
            self._set_extra_specs(target, context)
        if "tenants" in changed and not target.properties["is_public"]:
            self._set_projects(target, target.properties["tenants"], context)

    def live_properties(self, target: ResourceView, context: StepContext) -> JsonMap:
        """Return the extra specs as they are now: nothing else of a flavor changes."""
        extra_specs = self.service_for(context).get(f"{self.path_of(target)}/os-extra_specs")
        return {"extra_specs": extra_specs["extra_specs"]}

    def reported_properties(self, target: ResourceView, remote: JsonMap, context: CloudCalls) -> JsonMap:
        """Return the extra specs, as far as the list has them: nothing else of a flavor changes."""
        return {"extra_specs": remote["extra_specs"]} if "extra_specs" in remote else {}

    def attribute_values(self, target: ResourceView) -> JsonMap:
        values = super().attribute_values(target)
        return {**values, "extra_specs": (target.data.get(REMOTE) or {}).get("extra_specs") or {}}

    def _set_extra_specs(self, target: ResourceView, context: StepContext) -> None:
        service = self.service_for(context)
        path = f"{self.path_of(target)}/os-extra_specs"
        extra_specs = texts(target.properties["extra_specs"])
        for name in service.get(path)["extra_specs"]:
            if name not in extra_specs:
                service.delete(f"{path}/{quoted(name)}")
        if extra_specs:
            service.post(path, {"extra_specs": extra_specs})

    def _set_projects(self, target: ResourceView, projects: Sequence[str], context: StepContext) -> None:
        service = self.service_for(context)
        path = self.path_of(target)
        project_ids = {resolve(context, "keystone.project", name) for name in projects}
        present = {item["tenant_id"] for item in service.get(f"{path}/os-flavor-access")["flavor_access"]}
        for project in sorted(project_ids - present):
            service.post(f"{path}/action", {"addTenantAccess": {"tenant": project}})
        for project in sorted(present - project_ids):
            service.post(f"{path}/action", {"removeTenantAccess": {"tenant": project}})
