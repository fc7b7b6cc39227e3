"""OS::Keystone::UserRoleAssignment and GroupRoleAssignment: roles for who exists already."""

import typing

from ....shapes import Json, JsonMap
from ....template.constraints import Custom
from ...contract import Done, Poll, Property, ResourceType, ResourceView, Step, StepContext
from ..names import NameNotFound, resolve
from ..service import RemoteNotFound, Service, service_of
from .base import since
from .grants import ROLES, Grant, check_roles, grant, grants_of, present, revoke

GIVEN = "given"
"""Key of the data: the grants that the owner did not have before, as lists; the deletion takes these away."""
OWNER = "owner"


class RoleAssignment(ResourceType):
    """Base of the two types.

    A grant has no place for a mark.  So the first step of a creation stores which of the grants nobody had
    given before.  The others belong to somebody else, and are never taken away.

    :cvar kind: ``user`` or ``group``, which is also the property that names the owner.
    """

    uses_credentials = True
    service = "identity"
    identity = "the owner, the role and its place; Stoker first stores which of the grants exist"
    support_status = since("5.0.0")
    kind: typing.ClassVar[str]

    def validate(self, properties: JsonMap) -> None:
        """Check that each role has one place."""
        check_roles(properties)

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Store which grants are new."""
        if GIVEN in target.data:
            return self._grant(target, context)
        owner = self._owner(target.properties, context)
        grants = grants_of(target.properties["roles"], context) - present(_service(context), self.kind, owner)
        return Poll(progress={}, after=0.0, data=_data(owner, grants))

    def check_create_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Give the roles."""
        return self._grant(target, context)

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Revoke the roles that were removed from the template; store first which present grants are new."""
        owner = self._owner(target.properties, context)
        grants = grants_of(target.properties["roles"], context)
        former_owner, former = self._given(target, context)
        stays = former & grants if owner == former_owner else set()
        revoke(_service(context), self.kind, former_owner, former - stays)
        added = grants - present(_service(context), self.kind, owner)
        return Poll(progress={}, after=0.0, data=_data(owner, stays | added))

    def check_update_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Give the roles."""
        return self._grant(target, context)

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        """Revoke the roles that this resource has granted."""
        try:
            owner, grants = self._given(target, context)
        except NameNotFound:
            return Done()
        revoke(_service(context), self.kind, owner, grants)
        return Done()

    def handle_check(self, target: ResourceView, context: StepContext) -> Step:
        """Check that the owner has the roles.

        :raises RemoteNotFound: a role is missing.
        """
        self._checked(target, context)
        return Done()

    def needs_replace_failed(self, target: ResourceView, context: StepContext) -> bool:
        """Return False: an update gives what is missing."""
        return False

    def handle_adopt(self, target: ResourceView, context: StepContext) -> Step:
        """Check that the owner has the roles, and take them over.  Heat's resource has no physical id.

        A document of Stoker's says which of them are the resource's.  One of Heat's does not: then all are,
        as in Heat.

        :raises RemoteNotFound: a role is missing.
        """
        owner, grants = self._checked(target, context)
        return Done() if GIVEN in target.data else Done(data=_data(owner, grants))

    def _checked(self, target: ResourceView, context: StepContext) -> tuple[str, set[Grant]]:
        """Return the owner and the grants that the template names, all of which are there.

        :raises RemoteNotFound: a role is missing.
        """
        owner = self._owner(target.properties, context)
        grants = grants_of(target.properties["roles"], context)
        if missing := grants - present(_service(context), self.kind, owner):
            places, place, role = min(missing)
            text = f"identity: {self.kind} {owner} has no role {role} in {places[:-1]} {place}"
            raise RemoteNotFound(text)
        return owner, grants

    def _grant(self, target: ResourceView, context: StepContext) -> Step:
        owner = str(target.data[OWNER])
        grants = grants_of(target.properties["roles"], context)
        grant(_service(context), self.kind, owner, grants)
        return Done(data=target.data)

    def _owner(self, properties: JsonMap, context: StepContext) -> str:
        return resolve(context, f"keystone.{self.kind}", properties[self.kind])

    def _given(self, target: ResourceView, context: StepContext) -> tuple[str, set[Grant]]:
        """Return the owner and the grants that are this resource's; of an imported one all that it names."""
        if GIVEN in target.data:
            return str(target.data[OWNER]), {(item[0], item[1], item[2]) for item in target.data[GIVEN]}
        if target.physical_id is None and target.creation_key:
            return "", set()  # Its creation, or its adoption, has not come so far.
        properties = target.previous or target.properties
        return self._owner(properties, context), grants_of(properties["roles"], context)


class UserRoleAssignment(RoleAssignment):
    """Roles of a user."""

    type_name = "OS::Keystone::UserRoleAssignment"
    description = "The role assignments of a user; for administrators by default."
    kind = "user"
    properties_schema = {
        "user": Property(
            "string",
            "Name or id of the user.",
            required=True,
            update_allowed=True,
            constraints=(Custom(check_name="keystone.user"),),
        ),
        "roles": ROLES,
    }


class GroupRoleAssignment(RoleAssignment):
    """Roles of a group."""

    type_name = "OS::Keystone::GroupRoleAssignment"
    description = "The role assignments of a group; for administrators by default."
    kind = "group"
    properties_schema = {
        "group": Property(
            "string",
            "Name or id of the group.",
            required=True,
            update_allowed=True,
            constraints=(Custom(check_name="keystone.group"),),
        ),
        "roles": ROLES,
    }


def _service(context: StepContext) -> Service:
    return service_of(context, "identity")


def _data(owner: str, grants: set[Grant]) -> dict[str, Json]:
    return {OWNER: owner, GIVEN: [list(item) for item in sorted(grants)]}
