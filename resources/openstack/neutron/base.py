"""The base of the types of the network service."""

import typing
from collections.abc import Collection, Sequence

from ....shapes import Json, JsonMap
from ...contract import OverQuota, ResourceView, Step, StepContext
from ..declared import DeclaredType
from ..statuses import StatusMeaning
from .over_quota import with_numbers

BUILT = StatusMeaning(pending=("BUILD",))


class NeutronType(DeclaredType):
    """Base of the types of the network service.

    :cvar port_query: parameter and value of a list of the ports that use a thing, with ``{}`` in place of the
        thing's id; None: no ports use it.
    """

    service = "network"
    project_filter = "project_id"
    port_query: typing.ClassVar[tuple[str, str] | None] = None
    apart: typing.ClassVar[Sequence[str]] = ("tags", "value_specs")

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        """Return the fields of a new thing; it gets a name in any case, as in Heat."""
        body = super().create_body(target, context)
        if "name" in self.properties_schema:
            body.setdefault("name", target.physical_name)
        return {**body, **(target.properties.get("value_specs") or {})}

    def update_body(
        self, target: ResourceView, changed: Collection[str], context: StepContext
    ) -> dict[str, Json]:
        body = super().update_body(target, changed, context)
        if "value_specs" in changed:
            body |= target.properties["value_specs"] or {}
        if "name" in body and not body["name"]:
            body["name"] = target.physical_name
        return body

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Create the thing; a refusal for a quota gets its numbers."""
        try:
            return super().handle_create(target, context)
        except OverQuota as error:
            raise with_numbers(error, self.service_for(context), target.stack.project_id) from error

    def users(self, target: ResourceView, context: StepContext) -> Sequence[str]:
        """Return the ports that use the thing, with the servers and routers that they are of."""
        if self.port_query is None:
            return ()
        name, value = self.port_query
        ports = self.service_for(context).list_all(
            "/ports", "ports", **{name: value.format(self.id_of(target))}
        )
        return sorted(label(port) for port in ports)

    def has_more(self, target: ResourceView) -> bool:
        """Return whether the thing gets tags, which the service takes by a call of their own only."""
        return bool(target.properties.get("tags"))

    def after_create(self, target: ResourceView, context: StepContext) -> JsonMap | None:
        """Set the tags."""
        self.service_for(context).put(f"{self.path_of(target)}/tags", {"tags": target.properties["tags"]})
        return None

    def after_update(self, target: ResourceView, changed: Collection[str], context: StepContext) -> None:
        """Set the tags, if they have changed."""
        if "tags" in changed:
            tags = {"tags": target.properties["tags"] or []}
            self.service_for(context).put(f"{self.path_of(target)}/tags", tags)


class DescribedType(NeutronType):
    """Base of the types that have a description of the template's own, in the place of the mark."""

    def has_more(self, target: ResourceView) -> bool:
        """Return whether it has a description, or tags; the mark is there at first."""
        return bool(target.properties["description"]) or super().has_more(target)

    def after_create(self, target: ResourceView, context: StepContext) -> JsonMap | None:
        """Give the thing its description and its tags; return it as the service answers the description."""
        if super().has_more(target):
            super().after_create(target, context)
        if not target.properties["description"]:
            return None
        body = {self.item: {"description": target.properties["description"]}}
        return self._unwrapped(self.service_for(context).put(self.path_of(target), body))


def label(port: JsonMap) -> str:
    """Return the name of a port's user, with the port."""
    owner = str(port["device_owner"])
    device = "server" if owner.startswith("compute:") else "router" if "router" in owner else ""
    text = f"port {port['id']}"
    return f"{device} {port['device_id']} ({text})" if device else text
