"""Roles of users and groups in projects and domains."""

import contextlib
from collections.abc import Collection, Iterable

from ....shapes import Json, JsonMap
from ....template.constraints import Custom
from ...contract import Property, PropertyError, StepContext
from ..names import resolve
from ..service import RemoteNotFound, Service

Grant = tuple[str, str, str]
"""A role in a place: ``projects`` or ``domains``, the id of that one, and the id of the role."""
PLACES = ("project", "domain")
ROLES = Property(
    "list",
    "Role assignments, each in a project or in a domain.",
    update_allowed=True,
    schema=Property(
        "map",
        "Role assignment.",
        schema={
            "role": Property(
                "string",
                "Name or id of the role.",
                required=True,
                constraints=(Custom(check_name="keystone.role"),),
            ),
            "project": Property(
                "string",
                "Name or id of the project.",
                constraints=(Custom(check_name="keystone.project"),),
            ),
            "domain": Property(
                "string",
                "Name or id of the domain.",
                constraints=(Custom(check_name="keystone.domain"),),
            ),
        },
    ),
)


def check_roles(properties: JsonMap) -> None:
    """Check that each role has one place.

    :raises PropertyError: a role has none, or two.
    """
    for index, entry in enumerate(properties.get("roles") or ()):
        if not isinstance(entry, dict) or not {"role", *PLACES} <= entry.keys():
            continue
        if entry["project"] is not None and entry["domain"] is not None:
            text = "Cannot define the following properties at the same time: project, domain."
            raise PropertyError(text, ("roles", index))
        if entry["project"] is None and entry["domain"] is None:
            text = f"Either project or domain must be specified for role {entry['role']}"
            raise PropertyError(text, ("roles", index))


def grants_of(roles: Iterable[JsonMap] | None, context: StepContext) -> set[Grant]:
    """Return the grants that a property `roles` describes."""
    grants: set[Grant] = set()
    for entry in roles or ():
        place = "project" if entry["project"] else "domain"
        place_id = resolve(context, f"keystone.{place}", entry[place])
        grants.add((f"{place}s", place_id, resolve(context, "keystone.role", entry["role"])))
    return grants


def present(service: Service, kind: str, owner_id: str) -> set[Grant]:
    """Return the grants that a user or a group has now, without those that it inherits.

    :param kind: ``user`` or ``group``.
    """
    query = {f"{kind}.id": owner_id}
    answers: list[Json] = service.list_all("/role_assignments", "role_assignments", **query)
    return {
        (f"{place}s", str(answer["scope"][place]["id"]), str(answer["role"]["id"]))
        for answer in answers
        for place in PLACES
        if place in answer["scope"] and "OS-INHERIT:inherited_to" not in answer["scope"]
    }


def grant(service: Service, kind: str, owner_id: str, grants: Collection[Grant]) -> None:
    """Give roles; to repeat it changes nothing."""
    for one in sorted(grants):
        service.put(_path(kind, owner_id, one), None)


def revoke(service: Service, kind: str, owner_id: str, grants: Collection[Grant]) -> None:
    """Take roles away; one that is not there is no error."""
    for one in sorted(grants):
        with contextlib.suppress(RemoteNotFound):
            service.delete(_path(kind, owner_id, one))


def _path(kind: str, owner_id: str, one: Grant) -> str:
    places, place_id, role_id = one
    return f"/{places}/{place_id}/{kind}s/{owner_id}/roles/{role_id}"
