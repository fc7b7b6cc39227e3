"""OS::Cinder::VolumeType: a kind of volume."""

from collections.abc import Collection, Mapping

from ....shapes import Json, JsonMap
from ....template.constraints import Custom
from ...contract import Attribute, Property, PropertyError, ResourceView, StepContext, SupportStatus
from ..declared import DeclaredType
from ..marks import FieldMark
from ..names import resolve


class _Mark(FieldMark):
    """The description; types that are not public are listed on demand only."""

    def query(self, mark: str) -> Mapping[str, str]:
        """Implement Mark; the service does not filter by it."""
        return {"is_public": "None"}


class VolumeType(DeclaredType):
    """A kind of volume; for administrators."""

    type_name = "OS::Cinder::VolumeType"
    support_status = SupportStatus(version="2015.1")
    description = "A volume type; for administrators by default."
    service = "block-storage"
    path = "/types"
    list_parameters = {"is_public": "None"}
    is_of_project = False
    item = "volume_type"
    mark = _Mark()
    renamed = {"is_public": "os-volume-type-access:is_public", "metadata": "extra_specs"}
    apart = ("projects",)
    properties_schema = {
        "name": Property("string", "Name of the volume type.", required=True, update_allowed=True),
        "metadata": Property("map", "Extra specs.", update_allowed=True),
        "is_public": Property(
            "boolean", "Public access: true gives all projects access.", default=True, update_allowed=True
        ),
        "description": Property("string", "Description.", update_allowed=True),
        "projects": Property(
            "list",
            "Names or ids of the projects that have access to the volume type.",
            default=[],
            update_allowed=True,
            schema=Property(
                "string", "Name or id of a project.", constraints=(Custom(check_name="keystone.project"),)
            ),
        ),
    }
    attributes_schema = {"show": Attribute("All fields, as the service's API returns them.", "map")}

    def validate(self, properties: JsonMap) -> None:
        """Check that projects are named for a type only that is not public."""
        if properties.get("projects") and properties.get("is_public"):
            raise PropertyError("projects can be given only where is_public is false", ("projects",))

    def has_more(self, target: ResourceView) -> bool:
        """Return whether it has a description of its own, in the mark's place, or projects."""
        return bool(target.properties["description"] or target.properties["projects"])

    def after_create(self, target: ResourceView, context: StepContext) -> None:
        """Set the description and the projects."""
        if target.properties["description"]:
            body = {"description": target.properties["description"]}
            self.service_for(context).put(self.path_of(target), {self.item: body})
        self._set_projects(target, context)

    def update_body(
        self, target: ResourceView, changed: Collection[str], context: StepContext
    ) -> dict[str, Json]:
        """Return the fields that change; a change has another name for is_public than a creation."""
        names = {"name", "description"} & set(changed)
        return {name: target.properties[name] for name in sorted(names)}

    def after_update(self, target: ResourceView, changed: Collection[str], context: StepContext) -> None:
        """Set extra specs and projects, if they have changed."""
        service = self.service_for(context)
        if "is_public" in changed:  # A type that is public takes no projects.
            body = {"is_public": target.properties["is_public"]}
            service.put(self.path_of(target), {self.item: body})
        if "metadata" in changed:
            metadata = target.properties["metadata"] or {}
            path = f"{self.path_of(target)}/extra_specs"
            for name in service.get(path)["extra_specs"]:
                if name not in metadata:
                    service.delete(f"{path}/{name}")
            if metadata:
                service.post(path, {"extra_specs": metadata})
        if {"projects", "is_public"} & set(changed):
            self._set_projects(target, context)

    def _set_projects(self, target: ResourceView, context: StepContext) -> None:
        if target.properties["is_public"]:
            return
        service = self.service_for(context)
        path = self.path_of(target)
        projects = {resolve(context, "keystone.project", name) for name in target.properties["projects"]}
        answer = service.get(f"{path}/os-volume-type-access")["volume_type_access"]
        present = {item["project_id"] for item in answer}
        for project in sorted(projects - present):
            service.post(f"{path}/action", {"addProjectAccess": {"project": project}})
        for project in sorted(present - projects):
            service.post(f"{path}/action", {"removeProjectAccess": {"project": project}})
