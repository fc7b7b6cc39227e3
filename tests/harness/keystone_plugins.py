"""A resource type that asks Keystone who it is, in the name of the stack's user."""

import pathlib
from collections.abc import Mapping

from keystoneauth1.plugin import AUTH_INTERFACE
from stoker.resources import (
    Attribute,
    Done,
    Json,
    Poll,
    Property,
    ResourceType,
    ResourceView,
    Step,
    StepContext,
)

IDENTITY = {"service_type": "identity", "interface": AUTH_INTERFACE, "min_version": "3"}


def whoami(context: StepContext) -> Json:
    """Who we are by the stack's credential, and what Keystone shows to that user."""
    session = context.session()
    answer = session.get("/auth/projects", endpoint_filter=IDENTITY)
    [project] = answer.json()["projects"]
    access = session.auth.get_access(session)
    assert access.project_id == project["id"]
    return {"user": access.username, "project": project["id"], "roles": sorted(access.role_names)}


class WhoAmI(ResourceType):
    """Waits until there is a file, then asks; and asks again, and writes it down, when it is deleted."""

    properties_schema = {
        "gate": Property("string", "The file.", required=True),
        "round": Property("integer", default=0, update_allowed=True),
    }
    attributes_schema = {"user": Attribute(), "project": Attribute(), "roles": Attribute()}
    uses_credentials = True

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        return self.check_create_complete(target, {}, context)

    def check_create_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        if not pathlib.Path(target.properties["gate"]).exists():
            return Poll(progress={}, after=0.2)
        return Done(physical_id=target.physical_name, data=whoami(context))

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        return Done(data=whoami(context))

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        pathlib.Path(target.properties["gate"]).write_text(whoami(context)["user"])
        return Done()

    def attribute_values(self, target: ResourceView) -> Mapping[str, Json]:
        return target.data


RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {"Test::WhoAmI": WhoAmI}
