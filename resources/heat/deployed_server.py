"""OS::Heat::DeployedServer: a server that somebody else has made, with a guest that applies deployments."""

from ...shapes import JsonMap
from ...template.constraints import Length
from ..contract import (
    Attribute,
    Done,
    Property,
    ResourceType,
    ResourceView,
    Step,
    StepContext,
    SupportStatus,
    check_named,
)
from ..guests import COLLECT_CONFIG, TRANSPORT, check_transport


class DeployedServer(ResourceType):
    """A server outside of the cloud's compute service; the id that deployments name is made here."""

    type_name = "OS::Heat::DeployedServer"
    description = (
        "An existing server, which takes software deployments.\n\n"
        "Its attribute os_collect_config is what the agent os-collect-config in the server needs."
    )
    support_status = SupportStatus(version="2015.1")
    properties_schema = {
        "name": Property("string", "Name of the server.", update_allowed=True),
        "metadata": Property(
            "map",
            "Metadata; without effect.",
            update_allowed=True,
            support_status=SupportStatus("DEPRECATED", version="9.0.0"),
        ),
        "software_config_transport": TRANSPORT,
        "deployment_swift_data": Property(
            "map",
            "Swift object for the metadata; without effect, because metadata is not stored in Swift.",
            default={},
            update_allowed=True,
            schema={
                "container": Property("string", "Name of the container.", constraints=(Length(minimum=1),)),
                "object": Property("string", "Name of the object.", constraints=(Length(minimum=1),)),
            },
        ),
    }
    attributes_schema = {
        "name": Attribute("Name of the server.", "string"),
        COLLECT_CONFIG: Attribute("Configuration of the agent os-collect-config, with its keys.", "map"),
    }

    def validate(self, properties: JsonMap) -> None:
        """Check the transport."""
        check_transport(properties)

    def guest_transport(self, target: ResourceView) -> str | None:
        """Return the transport that the template names."""
        return str(target.properties["software_config_transport"])

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Give the server an id, and its guest keys."""
        return _done(target)

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Give the guest the keys of another transport; the old ones work until it has used those."""
        return _done(target)

    def handle_adopt(self, target: ResourceView, context: StepContext) -> Step:
        """Give the guest new keys: those of the other stack do not work here."""
        check_named(target)
        return _done(target)

    def attribute_values(self, target: ResourceView) -> JsonMap:
        return {"name": target.properties["name"] or target.data.get("name", target.physical_name)}


def _done(target: ResourceView) -> Step:
    name = target.data.get("name", target.physical_name)
    return Done(target.physical_id or target.key, data={"name": name})
