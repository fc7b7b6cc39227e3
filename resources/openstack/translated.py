"""Types that are other types under the names of CloudFormation's properties."""

import dataclasses
import functools
import typing
from collections.abc import Callable, Mapping

from ...shapes import Json, JsonMap
from ..contract import Property, ResourceType, ResourceView, Step, StepContext
from ..contract.properties import changed as names_changed
from ..contract.properties import resolve_stored

_PAIR = {
    "Key": Property("string", "Key of the pair.", required=True),
    "Value": Property("string", "Value of the pair.", required=True),
}


def pairs(description: str, *, update_allowed: bool = False, immutable: bool = False) -> Property:
    """Return a property that is a list of keys with values."""
    entry = Property("map", "Pair of key and value.", schema=_PAIR)
    return Property("list", description, schema=entry, update_allowed=update_allowed, immutable=immutable)


Source = str | Callable[[JsonMap], Json]
"""The name of a property, or a function of all properties, that gives the value of an inner property."""


def unless_empty(name: str) -> Source:
    """Return the source of a property that is not given where it is empty."""
    return lambda properties: properties.get(name) or None


def tags(properties: JsonMap) -> dict[str, Json]:
    """Return the property Tags as a map; the last value of a key wins."""
    return {entry["Key"]: entry["Value"] for entry in properties.get("Tags") or ()}


class TranslatedType(ResourceType):
    """Base of the types whose steps are those of another type, with translated properties.

    The methods in `FORWARDED` are those of the other type.

    :cvar inner: the other type.
    :cvar translation: the source of each property of the inner type; None leaves it out.  After a
        failure all properties may be None.
    """

    uses_credentials = True
    inner: typing.ClassVar[ResourceType]
    translation: typing.ClassVar[Mapping[str, Source]]

    def __init_subclass__(cls) -> None:
        """Let a type keep copies as its inner type does."""
        super().__init_subclass__()
        cls.snapshot_on_delete = cls.inner.snapshot_on_delete

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Change those properties of the inner type that are different."""
        inside = self.inside(target)
        names = names_changed(self.inner.properties_schema, inside.previous, inside.properties)
        return self.inner.handle_update(inside, frozenset(names), context)

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the service's view."""
        return {"show": self.inner.attribute_values(self.inside(target)).get("show")}

    def inside(self, target: ResourceView) -> ResourceView:
        """Return the resource as the inner type sees it."""
        return dataclasses.replace(
            target,
            properties=self._translated(target.properties),
            previous=self._translated(target.previous) if target.previous else {},
        )

    def _translated(self, properties: JsonMap) -> dict[str, Json]:
        values = {
            name: properties.get(source) if isinstance(source, str) else source(properties)
            for name, source in self.translation.items()
        }
        return resolve_stored(
            self.inner.properties_schema, {name: value for name, value in values.items() if value is not None}
        )


ACTIONS = ("create", "delete", "snapshot_delete", "suspend", "resume", "check", "adopt")
FORWARDED = (
    *(f"handle_{action}" for action in ACTIONS),
    *(f"check_{action}_complete" for action in (*ACTIONS, "update")),
    *("handle_repair", "check_repair_complete"),
    *("find_created", "needs_replace_failed", "prepare_for_replace", "restore_after_replace", "refresh"),
    *("collection", "remote"),
)


def _forwarded(name: str) -> Callable[..., Json]:
    """Return a method that calls the inner type's, with the resource as that type sees it."""

    @functools.wraps(getattr(ResourceType, name))
    def forward(self: TranslatedType, *arguments: Json) -> Json:
        inside = (self.inside(item) if isinstance(item, ResourceView) else item for item in arguments)
        return getattr(self.inner, name)(*inside)

    return forward


for _name in FORWARDED:
    setattr(TranslatedType, _name, _forwarded(_name))
