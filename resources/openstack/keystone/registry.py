"""The table of the types of the identity service."""

from collections.abc import Mapping

from ...plugin import ResourceType
from .assignments import GroupRoleAssignment, UserRoleAssignment
from .catalog import CatalogEndpoint, CatalogRegion, CatalogService
from .owners import KeystoneUser, UserGroup
from .places import KeystoneDomain, KeystoneProject, KeystoneRole

RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {
    "OS::Keystone::Domain": KeystoneDomain,
    "OS::Keystone::Endpoint": CatalogEndpoint,
    "OS::Keystone::Group": UserGroup,
    "OS::Keystone::GroupRoleAssignment": GroupRoleAssignment,
    "OS::Keystone::Project": KeystoneProject,
    "OS::Keystone::Region": CatalogRegion,
    "OS::Keystone::Role": KeystoneRole,
    "OS::Keystone::Service": CatalogService,
    "OS::Keystone::User": KeystoneUser,
    "OS::Keystone::UserRoleAssignment": UserRoleAssignment,
}
