"""AWS::AutoScaling::LaunchConfiguration: the properties with which the servers of a group are launched."""

from collections.abc import Mapping

from ....shapes import Json, JsonMap
from ...contract import (
    CloudCalls,
    Done,
    PermanentError,
    Property,
    PropertyError,
    ReplaceNeeded,
    ResourceType,
    ResourceView,
    StackReads,
    Step,
    StepContext,
    check_named,
)
from ..names import resolve
from ..service import service_of
from .launch_schema import (
    COMMON,
    FLAVOR,
    IMAGE,
    INSTANCE,
    LAUNCH_CONFIGURATION,
    OLD,
    SERVER,
    check_volumes,
)

LAUNCH = "launch"
"""Key of a launch configuration's data: the definition of a server, as a template has it."""


class LaunchConfiguration(ResourceType):
    """A definition of servers.  It makes nothing; the groups that refer to it read it."""

    type_name = "AWS::AutoScaling::LaunchConfiguration"
    description = (
        "A launch configuration: the properties of the servers of a group.\n\n"
        "Each change replaces it, so that groups that refer to it change their servers."
    )
    support_status = OLD
    service = "compute"
    uses_credentials = True
    works_without_cloud = True
    updated_when_redefined = True
    identity = "its name; it makes nothing outside"
    properties_schema = {
        "ImageId": Property("string", "Name or id of the image to boot from.", constraints=(IMAGE,)),
        "InstanceType": Property("string", "Name or id of the flavor.", constraints=(FLAVOR,)),
        "InstanceId": Property(
            "string",
            "Name or id of an existing server: the default for image, flavor, key pair and security groups.",
            constraints=(SERVER,),
        ),
        **COMMON,
    }

    def validate(self, properties: JsonMap) -> None:
        """Check that image and flavor follow from the properties, and that volumes have snapshots."""
        check_volumes(properties)
        values = {name: properties.get(name, "unknown") for name in ("InstanceId", "ImageId", "InstanceType")}
        if not values["InstanceId"] and not (values["ImageId"] and values["InstanceType"]):
            raise PropertyError("If without InstanceId, ImageId and InstanceType are required.")

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Store the definition of a server."""
        return Done(
            physical_id=target.physical_id or target.physical_name, data=server_definition(target, context)
        )

    def handle_adopt(self, target: ResourceView, context: StepContext) -> Step:
        """Store the definition of a server, under the name that it had."""
        check_named(target)
        return Done(data=server_definition(target, context))

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Replace it where the metadata have changed, which the servers get.

        :raises ReplaceNeeded: the metadata have changed.
        """
        if target.metadata != (target.data.get(LAUNCH) or {}).get("metadata", {}):
            raise ReplaceNeeded
        return Done()


def launch_of(reference: str, context: StackReads) -> JsonMap:
    """Return the definition of a server that a launch configuration of the same stack has.

    :param reference: the value of get_resource for the launch configuration.
    :raises PermanentError: there is no such launch configuration.
    """
    referenced = context.referenced(reference)
    if referenced is None or referenced.type != LAUNCH_CONFIGURATION or LAUNCH not in referenced.data:
        text = f"LaunchConfigurationName ({reference}) reference can not be found."
        raise PermanentError(text, kind="StackValidationFailed")
    launch: JsonMap = referenced.data[LAUNCH]
    return launch


def properties_of_server(name: str, context: CloudCalls) -> dict[str, Json]:
    """Return the properties that launch a server like an existing one.

    :param name: name or id of the server.
    :raises PermanentError: there is no such server, or it has no image.
    """
    server = service_of(context, "compute").get(f"/servers/{resolve(context, 'nova.server', name)}")["server"]
    if not server.get("image"):
        text = f"The server {name} has no image, so no other server can be launched from it: set ImageId"
        raise PermanentError(text)
    flavor = server["flavor"]
    groups = [group["name"] for group in server.get("security_groups") or ()]
    properties = {
        "ImageId": server["image"]["id"],
        "InstanceType": flavor.get("id") or flavor["original_name"],
        "KeyName": server.get("key_name"),
        "SecurityGroups": list(dict.fromkeys(groups)) or None,
    }
    return {name: value for name, value in properties.items() if value is not None}


def instance(properties: JsonMap, metadata: JsonMap) -> dict[str, Json]:
    """Return the definition of a server, as a template has it."""
    body: dict[str, Json] = {"type": INSTANCE, "properties": _without_nulls(properties)}
    return {**body, "metadata": metadata} if metadata else body


def server_definition(target: ResourceView, context: CloudCalls) -> dict[str, Json]:
    """Return the definition of a server that a launch configuration keeps in its data.

    :raises PermanentError: it is to be like a server that is not there, or has no image.
    """
    properties = _without_nulls(target.properties)
    like = properties.pop("InstanceId", None)
    server_properties = properties_of_server(like, context) if like else {}
    return {LAUNCH: instance({**server_properties, **properties}, target.metadata)}


def _without_nulls(value: Json) -> Json:
    """Return a value without the members of maps that are not given."""
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list | tuple) else value
