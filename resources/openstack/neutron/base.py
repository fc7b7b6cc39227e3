"""The base of the types of the network service."""

import typing
from collections.abc import Collection, Sequence, Set

from ....shapes import Json, JsonMap
from ...contract import CloudFacts, OverQuota, ResourceView, Step, StepContext
from ..declared import DeclaredType
from ..statuses import StatusMeaning
from .over_quota import with_numbers
from .users import Usage, users_outside

BUILT = StatusMeaning(pending=("BUILD",))


class NeutronType(DeclaredType):
    """Base of the types of the network service.

    :cvar used_by: the list of what uses a thing, and keeps it from being deleted; None: nothing does, or the
        service names it.
    """

    service = "network"
    project_filter = "project_id"
    owner_property = "tenant_id"
    always_named = True
    used_by: typing.ClassVar[Usage | None] = None
    apart: typing.ClassVar[Sequence[str]] = ("tags", "value_specs")

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        body = super().create_body(target, context)
        return {**body, **(target.properties.get("value_specs") or {})}

    def update_body(
        self, target: ResourceView, changed: Collection[str], context: StepContext
    ) -> dict[str, Json]:
        body = super().update_body(target, changed, context)
        if "value_specs" in changed:
            body |= target.properties["value_specs"] or {}
        return body

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Create the thing; a refusal for a quota gets its numbers."""
        try:
            return super().handle_create(target, context)
        except OverQuota as error:
            raise with_numbers(error, self.service_for(context), target.stack.project_id) from error

    def users(self, target: ResourceView, context: StepContext) -> Sequence[str]:
        """Return the users of the thing: ports with the servers and routers that they are of, mostly."""
        usage = self.used_by
        if usage is None:
            return ()
        query = usage.query(self.id_of(target))
        users = self.service_for(context).list_all(usage.path, usage.items, **query)
        return usage.names_in(target.stack.project_id, users)

    def users_outside(self, physical_id: str, own: Set[str], cloud: CloudFacts) -> Sequence[str]:
        """Return the users of a thing that are not of the stack."""
        return () if self.used_by is None else users_outside(self.used_by, physical_id, own, cloud)

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
