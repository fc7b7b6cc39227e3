"""OS::Keystone::Region, Service and Endpoint: the service catalog."""

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedValues, Custom
from ...contract import Property, ResourceView, StepContext
from ..bodies import NamedRemote
from ..marks import MARK_NAME, chosen_id, mark_of
from ..names import quoted
from ..service import RemoteNotFound, Service
from .base import ENABLED, NAME, SHOW, KeystoneType, since

DESCRIPTION = Property("string", "Description.", update_allowed=True)


class CatalogRegion(KeystoneType):
    """A region; the creator chooses its id."""

    type_name = "OS::Keystone::Region"
    support_status = since("6.0.0")
    description = "A region of the service catalog; for administrators by default."
    path = "/regions"
    item = "region"
    mark = None
    identity = "the id, which Stoker chooses if the template does not, and the field ``stoker``"
    references = {"parent_region": NamedRemote("keystone.region")}
    properties_schema = {
        "id": Property("string", "Id of the region; if omitted, generated."),
        "parent_region": Property(
            "string",
            "Id of the parent region.",
            update_allowed=True,
            constraints=(Custom(check_name="keystone.region"),),
        ),
        "description": DESCRIPTION,
        "enabled": ENABLED,
    }
    attributes_schema = SHOW

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        """Return the fields of a new region, and its mark."""
        body = super().create_body(target, context)
        return {**body, "id": body.get("id") or chosen_id(target.key), MARK_NAME: mark_of(target.key)}

    def get(self, service: Service, physical_id: str) -> JsonMap:
        """Return a region; its id may have any characters."""
        return super().get(service, quoted(physical_id))

    def path_of(self, target: ResourceView) -> str:
        """Return the region's path."""
        return f"{self.path}/{quoted(self.id_of(target))}"

    def find_created(self, key: str, target: ResourceView, context: StepContext) -> str | None:
        """Return the id, if the region that has it has our mark, too."""
        region_id = target.properties["id"] or chosen_id(key)
        try:
            region = self.get(self.service_for(context), region_id)
        except RemoteNotFound:
            return None
        return region_id if region.get(MARK_NAME) == mark_of(key) else None

    def _delete_lost(self, target: ResourceView, context: StepContext) -> bool:
        if target.physical_id is not None or not target.creation_key:
            return False
        lost = self.find_created(target.creation_key, target, context)
        return lost is not None and self._delete_double(quoted(lost), context)


class CatalogService(KeystoneType):
    """A service of the service catalog."""

    type_name = "OS::Keystone::Service"
    support_status = since("5.0.0")
    description = "A service of the service catalog; for administrators by default."
    path = "/services"
    item = "service"
    properties_schema = {
        "name": NAME,
        "type": Property("string", "Service type, such as compute.", required=True, update_allowed=True),
        "description": DESCRIPTION,
        "enabled": ENABLED,
    }
    attributes_schema = SHOW


class CatalogEndpoint(KeystoneType):
    """The address of a service."""

    type_name = "OS::Keystone::Endpoint"
    support_status = since("5.0.0")
    description = "An endpoint of a service; for administrators by default."
    path = "/endpoints"
    item = "endpoint"
    references = {
        "service": NamedRemote("keystone.service"),
        "region": NamedRemote("keystone.region"),
    }
    properties_schema = {
        "name": NAME,
        "service": Property(
            "string",
            "Name or id of the service.",
            required=True,
            update_allowed=True,
            constraints=(Custom(check_name="keystone.service"),),
        ),
        "region": Property(
            "string",
            "Id of the region.",
            update_allowed=True,
            constraints=(Custom(check_name="keystone.region"),),
        ),
        "interface": Property(
            "string",
            "Endpoint interface.",
            required=True,
            update_allowed=True,
            constraints=(AllowedValues(values=("public", "internal", "admin")),),
        ),
        "url": Property("string", "URL of the endpoint.", required=True, update_allowed=True),
        "enabled": ENABLED,
    }
    attributes_schema = SHOW
