"""OS::Manila::ShareType: a kind of share."""

from collections.abc import Collection, Mapping

from ....shapes import Json, JsonMap
from ...contract import Attribute, CloudCalls, Property, ResourceView, StepContext, SupportStatus
from ..bodies import texts
from ..marks import FieldMark
from ..names import quoted
from ..service import RemoteNotFound, object_of
from .base import ManilaType, as_in_template

EXTRA_SPECS = "extra_specs"
SERVERS = "driver_handles_share_servers"
SNAPSHOTS = "snapshot_support"
SWITCHES = (SERVERS, SNAPSHOTS)
"""Extra specs that properties of their own set."""


class _Mark(FieldMark):
    """The description; types that are not public are listed on demand only."""

    def query(self, mark: str) -> Mapping[str, str]:
        """Implement Mark; the service does not filter by it."""
        return {"is_public": "all"}


class ShareType(ManilaType):
    """A kind of share; for administrators."""

    type_name = "OS::Manila::ShareType"
    description = "A share type; for administrators by default."
    path = "/types"
    item = "share_type"
    list_parameters = {"is_public": "all"}
    is_of_project = False
    mark = _Mark()
    renamed = {"is_public": "share_type_access:is_public"}
    apart = (EXTRA_SPECS, *SWITCHES)
    properties_schema = {
        "name": Property("string", "Name.", required=True),
        "is_public": Property("boolean", "Public access: true gives all projects access.", default=True),
        SERVERS: Property(
            "boolean",
            "Driver mode: true if the driver creates share servers (driver_handles_share_servers).",
            required=True,
        ),
        EXTRA_SPECS: Property("map", "Extra specs.", update_allowed=True),
        SNAPSHOTS: Property(
            "boolean",
            "Snapshot support.",
            default=True,
            support_status=SupportStatus(version="6.0.0"),
        ),
    }
    attributes_schema = {"show": Attribute("All fields, as the service's API returns them.", "map")}

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        """Return the fields of a new type; two properties are extra specs of their own."""
        properties = target.properties
        switches = {name: properties[name] for name in SWITCHES if properties[name] is not None}
        specs = texts({**switches, **(properties[EXTRA_SPECS] or {})})
        return {**super().create_body(target, context), EXTRA_SPECS: specs}

    def update_body(
        self, target: ResourceView, changed: Collection[str], context: StepContext
    ) -> dict[str, Json]:
        """Return no fields: extra specs alone change, by calls of their own."""
        return {}

    def after_update(self, target: ResourceView, changed: Collection[str], context: StepContext) -> None:
        """Set the extra specs, and delete those that were removed from the template."""
        specs = texts(target.properties[EXTRA_SPECS])
        service = self.service_for(context)
        path = f"{self.path_of(target)}/{EXTRA_SPECS}"
        present = object_of(service.get(path), EXTRA_SPECS)
        for name in sorted(present.keys() - specs.keys() - {*SWITCHES}):
            try:
                service.delete(f"{path}/{quoted(name)}")
            except RemoteNotFound:
                continue  # Somebody else has deleted it.
        if specs:
            service.post(path, {EXTRA_SPECS: specs})

    def reported_properties(self, target: ResourceView, remote: JsonMap, context: CloudCalls) -> JsonMap:
        """Return the fields; the extra specs without those that other properties set."""
        properties = target.properties
        specs = object_of(remote, EXTRA_SPECS)
        names = {*SWITCHES} - {*(properties[EXTRA_SPECS] or {})}
        others = {name: value for name, value in specs.items() if name not in names}
        switches = {name: str(specs[name]).lower() == "true" for name in names if name in specs}
        return {
            **super().reported_properties(target, remote, context),
            **switches,
            EXTRA_SPECS: as_in_template(others, properties[EXTRA_SPECS]),
        }
