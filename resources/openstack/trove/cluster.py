"""OS::Trove::Cluster: a cluster of database instances."""

from ....shapes import Json, JsonMap
from ....template.constraints import Length, Range
from ...contract import Attribute, Done, Poll, Property, ResourceView, Step, StepContext, SupportStatus
from ..declared import DELETING, REMOTE
from ..names import resolve
from ..polling import STEADY_PAUSE, pause
from ..service import RemoteNotFound, objects_of
from .base import (
    FLAVOR,
    NETWORKS_SCHEMA,
    REASONS,
    DatabaseType,
    check_datastore,
    check_interfaces,
    datastore_of,
    interfaces_of,
)

FREE = "NONE"
"""The task of a cluster that the service does not work on."""


class DatabaseCluster(DatabaseType):
    """A cluster; its state is that of its instances."""

    type_name = "OS::Trove::Cluster"
    support_status = SupportStatus(version="2015.1")
    description = "A cluster of database instances."
    path = "/clusters"
    item = "cluster"
    answers_in_full = False
    is_listed = False  # No property can change.
    properties_schema = {
        "name": Property(
            "string",
            "Name; if omitted, generated from the names of the stack and the resource.",
            constraints=(Length(maximum=255),),
        ),
        "datastore_type": Property(
            "string", "Datastore type, such as mongodb.", required=True, constraints=(Length(maximum=255),)
        ),
        "datastore_version": Property(
            "string", "Datastore version.", required=True, constraints=(Length(maximum=255),)
        ),
        "instances": Property(
            "list",
            "Instances of the cluster.",
            required=True,
            schema=Property(
                "map",
                "Instance.",
                schema={
                    "flavor": Property(
                        "string", "Name or id of the flavor.", required=True, constraints=(FLAVOR,)
                    ),
                    "volume_size": Property(
                        "integer",
                        "Volume size, in GiB.",
                        required=True,
                        constraints=(Range(minimum=1, maximum=150),),
                    ),
                    "networks": Property(
                        "list",
                        "Network interfaces.",
                        default=[],
                        schema=NETWORKS_SCHEMA,
                        support_status=SupportStatus(version="10.0.0"),
                    ),
                    "availability_zone": Property(
                        "string", "Availability zone.", support_status=SupportStatus(version="14.0.0")
                    ),
                },
            ),
        ),
    }
    attributes_schema = {
        "instances": Attribute("Ids of the instances.", "list"),
        "ip": Attribute("IP addresses of the instances.", "list"),
    }

    def validate(self, properties: JsonMap) -> None:
        """Check the kind of database and the interfaces."""
        check_datastore(properties)
        for number, instance in enumerate(properties.get("instances") or ()):
            check_interfaces(instance.get("networks") or (), ("instances", number, "networks"))

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        properties = target.properties
        instances = [
            {
                "flavorRef": resolve(context, "trove.flavor", instance["flavor"]),
                "volume": {"size": instance["volume_size"]},
                **interfaces_of(instance["networks"] or (), context),
                **({"availability_zone": zone} if (zone := instance["availability_zone"]) else {}),
            }
            for instance in properties["instances"] or ()
        ]
        return {"name": self.name_of(target), **datastore_of(properties), "instances": instances}

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        """Begin to wait until the service does not work on it, for it deletes no other."""
        return Done() if target.physical_id is None else Poll(progress={"since": context.now()}, after=0.0)

    def check_delete_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Delete it once that is possible; then poll until it is gone."""
        service = self.service_for(context)
        try:
            remote = self.get(service, self.id_of(target))
            if _task(remote) == FREE:
                service.delete(self.path_of(target))
                return Poll(progress=progress, after=STEADY_PAUSE)
        except RemoteNotFound:
            return self._deleted(target, context)
        return Poll(progress=progress, after=pause(progress["since"], context.now()))

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return ids and addresses of the instances."""
        remote = target.data.get(REMOTE) or {}
        ids = [instance.get("id") for instance in remote.get("instances") or ()]
        return {**super().attribute_values(target), "instances": ids}

    def problem(self, remote: JsonMap) -> str:
        """Return Heat's words for the state of an instance."""
        return REASONS.get(self.status.of(remote), "")

    def _unwrapped(self, answer: Json) -> JsonMap:
        """Return the cluster with a state made of those of its instances."""
        cluster = super()._unwrapped(answer)
        if _task(cluster) == DELETING:
            return {**cluster, "status": DELETING}
        states = [str(instance.get("status") or "") for instance in objects_of(cluster, "instances")]
        waits = [state for state in states if state != "ACTIVE"]
        worst = next((state for state in waits if state in self.status.bad), "BUILD")
        return {**cluster, "status": worst if waits else "ACTIVE"}

    def _look(self, target: ResourceView, since: float, context: StepContext) -> JsonMap | None:
        """Return the cluster; each is read alone, for a list has fewer fields."""
        return self.get(self.service_for(context), self.id_of(target))


def _task(cluster: JsonMap) -> str:
    return str((cluster.get("task") or {}).get("name") or FREE)
