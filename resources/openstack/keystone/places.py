"""OS::Keystone::Project, Domain and Role."""

from ....template.constraints import Custom
from ...contract import Attribute, PermanentError, Property, ResourceView, StepContext
from ..bodies import NamedRemote
from ..service import RemoteNotFound, service_of
from .base import DESCRIPTION, DOMAIN, ENABLED, NAME, SHOW, NamedType, since


class KeystoneProject(NamedType):
    """A project."""

    type_name = "OS::Keystone::Project"
    support_status = since("2015.1")
    description = "A project, the owner of resources in the cloud; for administrators by default."
    path = "/projects"
    item = "project"
    references = {"domain": NamedRemote("keystone.domain"), "parent": NamedRemote("keystone.project")}
    properties_schema = {
        "name": NAME,
        "domain": DOMAIN,
        "description": DESCRIPTION,
        "enabled": ENABLED,
        "parent": Property(
            "string",
            "Name or id of the parent project.",
            constraints=(Custom(check_name="keystone.project"),),
        ),
        "tags": Property("list", "Tags.", default=[], update_allowed=True),
    }
    attributes_schema = {
        "name": Attribute("Name.", "string"),
        "parent_id": Attribute("Id of the parent project.", "string"),
        "domain_id": Attribute("Id of the domain.", "string"),
        "enabled": Attribute("Enabled state: false blocks the use.", "boolean"),
        "is_domain": Attribute("Domain role: true if the project acts as a domain.", "boolean"),
    }

    def before_delete(self, target: ResourceView, context: StepContext) -> None:
        """Delete the security group that the network service makes for each project that it sees."""
        query = {"project_id": self.id_of(target), "name": "default"}
        try:
            networks = service_of(context, "network")
        except PermanentError:
            return  # The cloud has no such service.
        for group in networks.list_all("/security-groups", "security_groups", **query):
            try:
                networks.delete(f"/security-groups/{group['id']}")
            except RemoteNotFound:
                continue


class KeystoneDomain(NamedType):
    """A domain, to which projects, users and groups belong."""

    type_name = "OS::Keystone::Domain"
    support_status = since("8.0.0")
    description = "A domain of projects, users and groups; for administrators by default."
    path = "/domains"
    item = "domain"
    identity = "the name, which is unique, and the field ``stoker``"
    properties_schema = {
        "name": NAME,
        "description": Property("string", "Description.", update_allowed=True),
        "enabled": ENABLED,
    }
    attributes_schema = SHOW

    def before_delete(self, target: ResourceView, context: StepContext) -> None:
        """Disable it: the service deletes no domain that can be used."""
        self.service_for(context).patch(self.path_of(target), {self.item: {"enabled": False}})

    def _delete_double(self, physical_id: str, context: StepContext) -> bool:
        service = self.service_for(context)
        try:
            service.patch(f"{self.path}/{physical_id}", {self.item: {"enabled": False}})
        except RemoteNotFound:
            return False
        return super()._delete_double(physical_id, context)


class KeystoneRole(NamedType):
    """A role."""

    type_name = "OS::Keystone::Role"
    support_status = since("2015.1")
    description = "A role for users and groups; for administrators by default."
    path = "/roles"
    item = "role"
    references = {"domain": NamedRemote("keystone.domain")}
    properties_schema = {
        "name": NAME,
        "domain": Property(
            "string",
            "Name or id of the domain, for a domain-specific role.",
            constraints=(Custom(check_name="keystone.domain"),),
        ),
    }
    attributes_schema = SHOW
