"""Types that set the limits of a project."""

import typing

from ...shapes import Json, JsonMap
from ...template.constraints import Custom, Range
from ..contract import (
    Attribute,
    Done,
    Poll,
    Property,
    PropertyError,
    ResourceType,
    ResourceView,
    Step,
    StepContext,
)
from .declared import REMOTE
from .names import resolve
from .service import RemoteNotFound, Service, service_of

PROJECT = "project"
SHOW = Attribute("All limits that the resource sets.", "map")


def limits(**descriptions: str) -> dict[str, Property]:
    """Return the properties of a type: the project, and a limit by each name.

    :param descriptions: what is limited, by name.
    """
    return {
        PROJECT: Property(
            "string",
            "Name or id of the project.",
            required=True,
            constraints=(Custom(check_name="keystone.project"),),
        ),
        **{
            name: Property(
                "integer",
                f"{description}; -1: unlimited.",
                update_allowed=True,
                constraints=(Range(minimum=-1),),
            )
            for name, description in descriptions.items()
        },
    }


class QuotaType(ResourceType):
    """Base of the types that set the limits of a project.  A deletion gives it those of all projects.

    The physical id is a name, as in Heat.  It is stored before the first call: only what has one is deleted.

    :cvar path: path of the limits, with ``{}`` in the place of the project's id.
    :cvar item: key of the limits in bodies and answers.
    :cvar microversion: the newest microversion that is used; None: that of the service's interface.
    """

    uses_credentials = True
    identity = "the project, of which the service keeps one set of limits"
    attributes_schema = {"show": SHOW}
    service: typing.ClassVar[str]
    path: typing.ClassVar[str]
    item: typing.ClassVar[str] = "quota"
    microversion: typing.ClassVar[str | None] = None

    def check_limits(self, project: str, values: JsonMap, service: Service) -> None:
        """Check the limits against what the project has.

        :param project: its id.
        :raises PermanentError: it has more than a limit allows.
        """

    def validate(self, properties: JsonMap) -> None:
        """Check that there is a limit."""
        names = [name for name in self.properties_schema if name != PROJECT]
        if all(properties.get(name, "unknown") is None for name in names):
            raise PropertyError(f"at least one of {', '.join(names)} is needed")

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Store that limits will be set."""
        if target.physical_id is not None:
            return self._set(target, context)
        return Poll(progress={}, after=0.0, physical_id=target.physical_name)

    def check_create_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        return self._set(target, context)

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Set all limits; one that was removed from the template stays, as in Heat."""
        return self._set(target, context)

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        """Give the project the limits of all projects."""
        if target.physical_id is not None:
            try:
                self._service(context).delete(self._path(target, context))
            except RemoteNotFound:
                return Done()  # It has the limits of all projects, or is gone.
        return Done()

    def handle_check(self, target: ResourceView, context: StepContext) -> Step:
        """Read the limits."""
        self._service(context).get(self._path(target, context))
        return Done()

    def needs_replace_failed(self, target: ResourceView, context: StepContext) -> bool:
        """Return whether no limit was ever set."""
        return target.physical_id is None

    def live_properties(self, target: ResourceView, context: StepContext) -> JsonMap:
        """Return the limits as they are now."""
        answer = self._service(context).get(self._path(target, context))[self.item]
        return {name: answer[name] for name in self.properties_schema if name in answer}

    def attribute_values(self, target: ResourceView) -> JsonMap:
        return {"show": target.data.get(REMOTE) or {}}

    def _set(self, target: ResourceView, context: StepContext) -> Step:
        names = [name for name in self.properties_schema if name != PROJECT]
        values = {name: target.properties[name] for name in names if target.properties[name] is not None}
        service = self._service(context)
        self.check_limits(self._project(target, context), values, service)
        answer = service.put(self._path(target, context), {self.item: values})
        return Done(data={REMOTE: answer[self.item]})

    def _service(self, context: StepContext) -> Service:
        return service_of(context, self.service, self.microversion)

    def _path(self, target: ResourceView, context: StepContext) -> str:
        return self.path.format(self._project(target, context))

    def _project(self, target: ResourceView, context: StepContext) -> str:
        return resolve(context, "keystone.project", target.properties[PROJECT])
