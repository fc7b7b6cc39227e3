"""OS::Nova::HostAggregate: hosts that belong together."""

from collections.abc import Collection

from ....shapes import Json, JsonMap
from ....template.constraints import Custom
from ...contract import Attribute, CloudCalls, Property, ResourceView, StepContext, SupportStatus
from ..bodies import texts
from ..compared import ComparedType
from ..service import Conflict, RemoteNotFound, object_of, texts_of

ZONE = "availability_zone"
"""The service has it among the metadata, too."""


class HostAggregate(ComparedType):
    """Hosts that belong together, by metadata or as an availability zone; for administrators."""

    type_name = "OS::Nova::HostAggregate"
    support_status = SupportStatus(version="6.0.0")
    description = (
        "A host aggregate: compute hosts with common metadata or an availability zone; for administrators."
    )
    service = "compute"
    path = "/os-aggregates"
    item = "aggregate"
    identity = "the name, which one aggregate may have"
    apart = ("hosts", "metadata")
    properties_schema = {
        "name": Property("string", "Name of the aggregate.", required=True, update_allowed=True),
        ZONE: Property(
            "string", "Name of the availability zone that the aggregate defines.", update_allowed=True
        ),
        "hosts": Property(
            "list",
            "Names of the compute hosts.",
            update_allowed=True,
            schema=Property(
                "string", "Name of a compute host.", constraints=(Custom(check_name="nova.host"),)
            ),
        ),
        "metadata": Property("map", "Metadata of the aggregate.", default={}, update_allowed=True),
    }
    attributes_schema = {"show": Attribute("All fields, as the service's API returns them.", "map")}

    def has_more(self, target: ResourceView) -> bool:
        """Return whether it has hosts or metadata, which have calls of their own."""
        return bool(target.properties["hosts"] or target.properties["metadata"])

    def after_create(self, target: ResourceView, context: StepContext) -> None:
        """Set the metadata, and add the hosts."""
        self._set_metadata(target, context)
        self._set_hosts(target, target.properties["hosts"] or (), context)

    def after_update(self, target: ResourceView, changed: Collection[str], context: StepContext) -> None:
        """Set metadata and hosts, if they have changed."""
        if "hosts" in changed:
            self._set_hosts(target, target.properties["hosts"] or (), context)
        if "metadata" in changed:
            self._set_metadata(target, context)

    def before_delete(self, target: ResourceView, context: StepContext) -> None:
        """Remove the hosts, which would keep the aggregate from being deleted."""
        self._set_hosts(target, (), context)

    def reported_properties(self, target: ResourceView, remote: JsonMap, context: CloudCalls) -> JsonMap:
        return {
            "name": remote["name"],
            ZONE: remote[ZONE],
            "hosts": remote["hosts"],
            "metadata": _metadata(remote),
        }

    def _set_metadata(self, target: ResourceView, context: StepContext) -> None:
        service = self.service_for(context)
        metadata = texts(target.properties["metadata"])
        present = _metadata(self.get(service, self.id_of(target)))
        left_over = dict.fromkeys(present.keys() - metadata.keys())
        if metadata or left_over:
            body = {"set_metadata": {"metadata": {**left_over, **metadata}}}
            service.post(f"{self.path_of(target)}/action", body)

    def _set_hosts(self, target: ResourceView, hosts: Collection[str], context: StepContext) -> None:
        service = self.service_for(context)
        path = f"{self.path_of(target)}/action"
        present = texts_of(self.get(service, self.id_of(target)), "hosts")
        for host in sorted(set(present) - set(hosts)):
            try:
                service.post(path, {"remove_host": {"host": host}})
            except RemoteNotFound:
                continue  # It is gone, or somebody else has removed it.
        for host in sorted(set(hosts) - set(present)):
            try:
                service.post(path, {"add_host": {"host": host}})
            except Conflict:
                if host not in self.get(service, self.id_of(target))["hosts"]:
                    raise


def _metadata(aggregate: JsonMap) -> dict[str, Json]:
    metadata = object_of(aggregate["metadata"] or {})
    return {name: value for name, value in metadata.items() if name != ZONE}
