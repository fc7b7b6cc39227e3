"""Types that are other types under the names of CloudFormation's properties."""

import dataclasses
import typing
from collections.abc import Mapping, Sequence

from ..context import Json, ResourceView, StepContext
from ..plugin import ResourceType
from ..properties import changed as names_changed
from ..properties import resolve_stored
from ..schema import Property
from ..steps import Poll, Step

_PAIR = {
    "Key": Property("string", "Key.", required=True),
    "Value": Property("string", "Value.", required=True),
}


def pairs(description: str, *, update_allowed: bool = False, immutable: bool = False) -> Property:
    """Return a property that is a list of keys with values."""
    entry = Property("map", "A key with its value.", schema=_PAIR)
    return Property("list", description, schema=entry, update_allowed=update_allowed, immutable=immutable)


def as_map(entries: Sequence[Mapping[str, Json]] | None) -> dict[str, Json]:
    """Return a list of keys with values as a map; the last value of a key wins."""
    return {entry["Key"]: entry["Value"] for entry in entries or ()}


class TranslatedType(ResourceType):
    """Base of the types whose steps are those of another type, with translated properties.

    :cvar inner: the other type.
    """

    uses_credentials = True
    inner: typing.ClassVar[ResourceType]

    def translated(self, properties: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the properties of the inner type; None is not given.

        :param properties: as of `ResourceView`; after a failure all of them may be None.
        """
        raise NotImplementedError

    def handle_create(self, target: ResourceView, work: StepContext) -> Step:
        """Create the inner type's thing."""
        return self.inner.handle_create(self.inside(target), work)

    def check_create_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Poll it."""
        return self.inner.check_create_complete(self.inside(target), progress, work)

    def handle_update(self, target: ResourceView, changed: frozenset[str], work: StepContext) -> Step:
        """Change those properties of the inner type that are different."""
        inside = self.inside(target)
        names = names_changed(self.inner.properties_schema, inside.previous, inside.properties)
        return self.inner.handle_update(inside, frozenset(names), work)

    def check_update_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Poll it."""
        return self.inner.check_update_complete(self.inside(target), progress, work)

    def handle_delete(self, target: ResourceView, work: StepContext) -> Step:
        """Delete it."""
        return self.inner.handle_delete(self.inside(target), work)

    def check_delete_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Poll it."""
        return self.inner.check_delete_complete(self.inside(target), progress, work)

    def handle_suspend(self, target: ResourceView, work: StepContext) -> Step:
        """Suspend it."""
        return self.inner.handle_suspend(self.inside(target), work)

    def check_suspend_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Poll it."""
        return self.inner.check_suspend_complete(self.inside(target), progress, work)

    def handle_resume(self, target: ResourceView, work: StepContext) -> Step:
        """Resume it."""
        return self.inner.handle_resume(self.inside(target), work)

    def check_resume_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Poll it."""
        return self.inner.check_resume_complete(self.inside(target), progress, work)

    def handle_check(self, target: ResourceView, work: StepContext) -> Step:
        """Compare it with the resource."""
        return self.inner.handle_check(self.inside(target), work)

    def check_check_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Poll the comparison."""
        return self.inner.check_check_complete(self.inside(target), progress, work)

    def handle_adopt(self, target: ResourceView, work: StepContext) -> Step:
        """Adopt it."""
        return self.inner.handle_adopt(self.inside(target), work)

    def check_adopt_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Poll whether it is adopted."""
        return self.inner.check_adopt_complete(self.inside(target), progress, work)

    def find_created(self, key: str, target: ResourceView, work: StepContext) -> str | None:
        """Return what a lost attempt has created, as the inner type finds it."""
        return self.inner.find_created(key, self.inside(target), work)

    def needs_replace_failed(self, target: ResourceView, work: StepContext) -> bool:
        """Return whether the inner type replaces it after a failure."""
        return self.inner.needs_replace_failed(self.inside(target), work)

    def prepare_for_replace(self, target: ResourceView, work: StepContext) -> Poll | None:
        """Release what the replacement needs."""
        return self.inner.prepare_for_replace(self.inside(target), work)

    def restore_after_replace(self, target: ResourceView, work: StepContext) -> Poll | None:
        """Take it again."""
        return self.inner.restore_after_replace(self.inside(target), work)

    def refresh(self, target: ResourceView, work: StepContext) -> Mapping[str, Json]:
        """Return the data with what the service reports now."""
        return self.inner.refresh(self.inside(target), work)

    def attribute_values(self, target: ResourceView) -> Mapping[str, Json]:
        """Return what the service reports."""
        return {"show": self.inner.attribute_values(self.inside(target)).get("show")}

    def inside(self, target: ResourceView) -> ResourceView:
        """Return the resource as the inner type sees it."""
        return dataclasses.replace(
            target,
            properties=self._resolved(target.properties),
            previous=self._resolved(target.previous) if target.previous else {},
        )

    def _resolved(self, properties: Mapping[str, Json]) -> dict[str, Json]:
        found = self.translated(properties)
        given = {name: value for name, value in found.items() if value is not None}
        return resolve_stored(self.inner.properties_schema, given)
