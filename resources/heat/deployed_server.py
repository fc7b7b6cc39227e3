"""OS::Heat::DeployedServer: a server that somebody else has made, with a guest that applies deployments."""

from collections.abc import Mapping

from ...template.constraints import AllowedValues, Length
from ..context import Json, ResourceView, StepContext
from ..guests import POLL_SERVER_CFN, REFUSED, TRANSPORTS, check_transport, collect_config
from ..plugin import ResourceType, check_named
from ..schema import Attribute, Property, SupportStatus
from ..steps import Done, Step


class DeployedServer(ResourceType):
    """A server outside of the cloud's compute service; the id that deployments name is made here.

    `data` has the entries by which the server's os-collect-config finds its metadata.
    """

    description = (
        "A server that exists already, and to which software deployments can be made.\n\n"
        "Its attribute os_collect_config is what the agent os-collect-config in the server needs."
    )
    support_status = SupportStatus(version="2015.1")
    properties_schema = {
        "name": Property("string", "Name of the server.", update_allowed=True),
        "metadata": Property(
            "map",
            "Ignored.",
            update_allowed=True,
            support_status=SupportStatus("DEPRECATED", version="9.0.0"),
        ),
        "software_config_transport": Property(
            "string",
            "How the server reads its metadata. POLL_SERVER_CFN: by requests that it signs with keys of its "
            "own. POLL_TEMP_URL: by requests to an address that is signed. The others need services not used "
            "here.",
            default=POLL_SERVER_CFN,
            update_allowed=True,
            constraints=(AllowedValues(values=tuple(sorted({*TRANSPORTS, *REFUSED}))),),
        ),
        "deployment_swift_data": Property(
            "map",
            "Ignored: metadata is not stored in Swift.",
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
        "os_collect_config": Attribute(
            "Configuration of the agent os-collect-config, with its keys.", "map", sensitive=True
        ),
    }

    def validate(self, properties: Mapping[str, Json]) -> None:
        """Check the transport."""
        check_transport(properties)

    def guest_transport(self, target: ResourceView) -> str | None:
        """Return the transport that the template names."""
        return str(target.properties["software_config_transport"])

    def handle_create(self, target: ResourceView, work: StepContext) -> Step:
        """Give the server an id, and its guest keys."""
        return self._done(target, work)

    def handle_update(self, target: ResourceView, changed: frozenset[str], work: StepContext) -> Step:
        """Give the guest the keys of another transport; the old ones work as long as the resource."""
        return self._done(target, work)

    def handle_adopt(self, target: ResourceView, work: StepContext) -> Step:
        """Give the guest new keys: those of the other stack do not work here."""
        check_named(target)
        return self._done(target, work)

    def attribute_values(self, target: ResourceView) -> Mapping[str, Json]:
        """Return the name, and what os-collect-config needs."""
        return {
            "name": target.properties["name"] or target.data.get("name", target.physical_name),
            "os_collect_config": target.data.get("os_collect_config", {}),
        }

    def _done(self, target: ResourceView, work: StepContext) -> Step:
        entries = collect_config(str(self.guest_transport(target)), work.guest_access())
        name = target.data.get("name", target.physical_name)
        return Done(target.physical_id or target.key, data={"name": name, "os_collect_config": entries})
