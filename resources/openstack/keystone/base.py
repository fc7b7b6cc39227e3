"""The bases of the types of the identity service.

Keystone keeps fields that it does not know.  So a thing carries its mark in a field of its own, and the
description is the template's.
"""

import typing
from collections.abc import Mapping

from ....shapes import Json, JsonMap
from ....template.constraints import Custom
from ...contract import Attribute, Property, ResourceView, StepContext, SupportStatus, physical_name
from ..declared import DeclaredType
from ..marks import MARK_NAME, FieldMark, Mark, mark_of
from ..names import resolve

DOMAIN = Property(
    "string",
    "Name or id of the domain.",
    default="default",
    update_allowed=True,
    constraints=(Custom(check_name="keystone.domain"),),
)
NAME = Property(
    "string", "Name; if omitted, generated from the names of the stack and the resource.", update_allowed=True
)
DESCRIPTION = Property("string", "Description.", default="", update_allowed=True)
ENABLED = Property("boolean", "Enabled state: false blocks the use.", default=True, update_allowed=True)
SHOW = {"show": Attribute("All fields, as the service's API returns them.", "map")}
V3 = "Supported versions: keystone v3"


def since(version: str) -> SupportStatus:
    """Return the support status of a type that Heat has since a release."""
    return SupportStatus(version=version, message=V3)


class ExtraMark(FieldMark):
    """A mark in a field that the service does not know."""

    def __init__(self) -> None:
        super().__init__(MARK_NAME)

    def query(self, mark: str) -> Mapping[str, str]:
        """Implement Mark; the service does not filter by it."""
        return {}


class KeystoneType(DeclaredType):
    """Base of the types of the identity service."""

    service = "identity"
    list_parameters: typing.ClassVar[Mapping[str, str | int]] = {}
    is_of_project = False
    update_method = "PATCH"
    always_named = True
    mark: typing.ClassVar[Mark | None] = ExtraMark()

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        """Return the fields of a new thing; an empty name counts as none, as in Heat."""
        body = super().create_body(target, context)
        if "name" in body:
            body["name"] = body["name"] or target.physical_name
        return body

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the fields of the stored answer without the mark."""
        values = super().attribute_values(target)
        return {**values, "show": {key: value for key, value in values["show"].items() if key != MARK_NAME}}


class NamedType(KeystoneType):
    """Base of the types of things whose names are unique in their domain: by its name one is found.

    The whole list of users or projects may be long, so it is not read.
    """

    mark = None
    identity = "the name, which is unique in the domain, and the field ``stoker``"

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        """Return the fields of a new thing, and its mark."""
        return {**super().create_body(target, context), MARK_NAME: mark_of(target.key)}

    def find_created(self, key: str, target: ResourceView, context: StepContext) -> str | None:
        """Return the id of the thing with the name, if it has the mark, too."""
        name = target.properties["name"] or physical_name(target.stack.name, target.name, key)
        query = {"name": name}
        if domain := target.properties.get("domain"):
            query["domain_id"] = resolve(context, "keystone.domain", domain)
        remotes = self.service_for(context).list_all(self.path, self._items(), **query)
        return next((str(each["id"]) for each in remotes if each.get(MARK_NAME) == mark_of(key)), None)

    def _delete_lost(self, target: ResourceView, context: StepContext) -> bool:
        """Delete what a lost call has made: its name would be in the way of a replacement."""
        if target.physical_id is not None or not target.creation_key:
            return False
        lost = self.find_created(target.creation_key, target, context)
        return lost is not None and self._delete_double(lost, context)
