"""OS::Keystone::User and OS::Keystone::Group, which have roles."""

import contextlib
import typing
from collections.abc import Collection, Mapping, Sequence

from ....shapes import JsonMap
from ....template.constraints import Custom
from ...contract import Attribute, Property, ResourceView, StepContext
from ..bodies import NamedRemote
from ..names import resolve
from ..service import RemoteNotFound
from .base import DESCRIPTION, DOMAIN, ENABLED, NAME, NamedType, since
from .grants import ROLES, check_roles, grant, grants_of, revoke


class OwnerOfRoles(NamedType):
    """Base of what roles are given to."""

    apart: typing.ClassVar[Sequence[str]] = ("roles",)
    references: typing.ClassVar[Mapping[str, NamedRemote]] = {"domain": NamedRemote("keystone.domain")}

    def validate(self, properties: JsonMap) -> None:
        """Check that each role has one place."""
        check_roles(properties)

    def has_more(self, target: ResourceView) -> bool:
        """Return whether it gets roles."""
        return bool(target.properties["roles"])

    def after_create(self, target: ResourceView, context: StepContext) -> None:
        """Give it its roles."""
        roles = grants_of(target.properties["roles"], context)
        grant(self.service_for(context), self.item, self.id_of(target), roles)

    def after_update(self, target: ResourceView, changed: Collection[str], context: StepContext) -> None:
        """Grant new roles, and revoke those that were removed from the template."""
        if "roles" not in changed:
            return
        service = self.service_for(context)
        before = grants_of(target.previous.get("roles"), context)
        after = grants_of(target.properties["roles"], context)
        grant(service, self.item, self.id_of(target), after - before)
        revoke(service, self.item, self.id_of(target), before - after)


class UserGroup(OwnerOfRoles):
    """A group of users."""

    type_name = "OS::Keystone::Group"
    support_status = since("2015.1")
    description = "A group of users, with role assignments; for administrators by default."
    path = "/groups"
    item = "group"
    properties_schema = {"name": NAME, "domain": DOMAIN, "description": DESCRIPTION, "roles": ROLES}
    attributes_schema = {"show": Attribute("All fields, as the service's API returns them.", "map")}


class KeystoneUser(OwnerOfRoles):
    """A user."""

    type_name = "OS::Keystone::User"
    support_status = since("2015.1")
    description = "A user, with groups and role assignments; for administrators by default."
    path = "/users"
    item = "user"
    apart = ("roles", "groups")
    references = {**OwnerOfRoles.references, "default_project": NamedRemote("keystone.project")}
    properties_schema = {
        "name": NAME,
        "domain": DOMAIN,
        "description": DESCRIPTION,
        "enabled": ENABLED,
        "email": Property("string", "E-mail address.", update_allowed=True),
        "password": Property("string", "Password.", update_allowed=True, sensitive=True),
        "default_project": Property(
            "string",
            "Name or id of the default project, for tokens without a given scope.",
            update_allowed=True,
            constraints=(Custom(check_name="keystone.project"),),
        ),
        "groups": Property(
            "list",
            "Names or ids of the groups that the user belongs to.",
            update_allowed=True,
            schema=Property(
                "string", "Name or id of a group.", constraints=(Custom(check_name="keystone.group"),)
            ),
        ),
        "roles": ROLES,
    }
    attributes_schema = {
        "name": Attribute("Name.", "string"),
        "default_project_id": Attribute("Id of the default project.", "string"),
        "domain_id": Attribute("Id of the domain.", "string"),
        "enabled": Attribute("Enabled state: false blocks authentication.", "boolean"),
        "password_expires_at": Attribute("Expiry time of the password.", "string"),
    }

    def has_more(self, target: ResourceView) -> bool:
        """Return whether the user gets roles or groups."""
        return bool(target.properties["roles"] or target.properties["groups"])

    def after_create(self, target: ResourceView, context: StepContext) -> None:
        """Add the user to the groups, and give them their roles."""
        self._join(target, _groups(target.properties, context), context)
        super().after_create(target, context)

    def after_update(self, target: ResourceView, changed: Collection[str], context: StepContext) -> None:
        """Change groups and roles, if they have changed."""
        if "groups" in changed:
            before = _groups(target.previous, context)
            after = _groups(target.properties, context)
            self._join(target, after - before, context)
            for group in sorted(before - after):
                with contextlib.suppress(RemoteNotFound):
                    self.service_for(context).delete(f"/groups/{group}/users/{self.id_of(target)}")
        super().after_update(target, changed, context)

    def _join(self, target: ResourceView, groups: Collection[str], context: StepContext) -> None:
        for group in sorted(groups):
            self.service_for(context).put(f"/groups/{group}/users/{self.id_of(target)}", None)


def _groups(properties: JsonMap, context: StepContext) -> set[str]:
    return {resolve(context, "keystone.group", name) for name in properties.get("groups") or ()}
