"""OS::Magnum::Cluster and OS::Magnum::ClusterTemplate: clusters of containers."""

import typing
from collections.abc import Mapping

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedValues, Custom, Range
from ...contract import (
    Attribute,
    Poll,
    Property,
    PropertyError,
    ResourceView,
    Step,
    StepContext,
    SupportStatus,
)
from ..bodies import NamedRemote
from ..compared import ComparedType
from ..polling import STEADY_PAUSE
from ..statuses import StatusMeaning

ACTIONS = ("CREATE", "UPDATE", "DELETE", "ROLLBACK")
VOLUME_DRIVERS: Mapping[str, tuple[str, ...]] = {
    "kubernetes": ("cinder",),
    "swarm": ("rexray",),
    "mesos": ("rexray",),
}
"""Drivers of volumes by the engine that can use them."""
NAME = Property("string", "Name; if omitted, generated from the names of the stack and the resource.")


class ContainerType(ComparedType):
    """Base of the two types: a change is a patch, a list of operations."""

    support_status = SupportStatus(version="9.0.0")
    service = "container-infrastructure-management"
    item = ""
    id_field = "uuid"
    update_method = "PATCH"
    identity = "the name; Stoker first stores which things have it"

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        """Return the fields of a new thing; it gets a name in any case, by which it is found again."""
        body = super().create_body(target, context)
        return {**body, "name": body.get("name") or target.physical_name}

    def request(self, body: JsonMap, target: ResourceView) -> JsonMap:
        return body

    def _wrapped(self, body: JsonMap) -> JsonMap:
        patch = [{"op": "replace", "path": f"/{name}", "value": value} for name, value in body.items()]
        return typing.cast(JsonMap, patch)

    def _look(self, target: ResourceView, since: float, context: StepContext) -> JsonMap | None:
        """Return the thing; each is read alone, for a list has fewer fields."""
        return self.get(self.service_for(context), self.id_of(target))


class ClusterTemplate(ContainerType):
    """A model of clusters."""

    type_name = "OS::Magnum::ClusterTemplate"
    description = "A cluster template: the settings of container clusters."
    path = "/clustertemplates"
    items = "clustertemplates"
    references = {
        "image": NamedRemote("glance.image"),
        "flavor": NamedRemote("nova.flavor"),
        "master_flavor": NamedRemote("nova.flavor"),
        "external_network": NamedRemote("neutron.network"),
        "fixed_network": NamedRemote("neutron.network", "fixed_network"),
        "fixed_subnet": NamedRemote("neutron.subnet", "fixed_subnet"),
    }
    renamed = {"keypair": "keypair_id"}
    properties_schema = {
        "name": NAME,
        "image": Property(
            "string",
            "Name or id of the nodes' image.",
            required=True,
            constraints=(Custom(check_name="glance.image"),),
        ),
        "flavor": Property(
            "string",
            "Name or id of the worker nodes' flavor.",
            constraints=(Custom(check_name="nova.flavor"),),
        ),
        "master_flavor": Property(
            "string",
            "Name or id of the master nodes' flavor.",
            constraints=(Custom(check_name="nova.flavor"),),
        ),
        "keypair": Property(
            "string", "Name of the nodes' key pair.", constraints=(Custom(check_name="nova.keypair"),)
        ),
        "external_network": Property(
            "string",
            "Name or id of the external network.",
            required=True,
            constraints=(Custom(check_name="neutron.network"),),
        ),
        "fixed_network": Property(
            "string",
            "Name or id of the nodes' network.",
            constraints=(Custom(check_name="neutron.network"),),
        ),
        "fixed_subnet": Property(
            "string", "Name or id of the nodes' subnet.", constraints=(Custom(check_name="neutron.subnet"),)
        ),
        "network_driver": Property("string", "Container network driver."),
        "volume_driver": Property(
            "string",
            "Container volume driver.",
            constraints=(AllowedValues(values=("cinder", "rexray")),),
        ),
        "dns_nameserver": Property(
            "string", "Address of the DNS name server.", constraints=(Custom(check_name="ip_addr"),)
        ),
        "docker_volume_size": Property(
            "integer", "Size of the volume for container images, in GiB.", constraints=(Range(minimum=1),)
        ),
        "docker_storage_driver": Property(
            "string",
            "Storage driver for container images.",
            default="devicemapper",
            constraints=(AllowedValues(values=("devicemapper", "overlay")),),
        ),
        "coe": Property(
            "string",
            "Container orchestration engine (COE).",
            required=True,
            constraints=(AllowedValues(values=tuple(VOLUME_DRIVERS)),),
        ),
        "http_proxy": Property("string", "URL of the HTTP proxy."),
        "https_proxy": Property("string", "URL of the HTTPS proxy."),
        "no_proxy": Property("string", "Hosts without proxy, separated by commas."),
        "labels": Property("map", "Labels: additional settings by name."),
        "tls_disabled": Property("boolean", "TLS: true disables it for the cluster's API.", default=False),
        "public": Property(
            "boolean",
            "Public access: true lets all projects use the cluster template.",
            default=False,
            update_allowed=True,
        ),
        "registry_enabled": Property(
            "boolean", "Private registry for container images in the cluster.", default=False
        ),
        "server_type": Property(
            "string",
            "Server type: vm (virtual machine) or bm (bare metal).",
            default="vm",
            constraints=(AllowedValues(values=("vm", "bm")),),
        ),
        "master_lb_enabled": Property("boolean", "Load balancer for the master nodes.", default=True),
        "floating_ip_enabled": Property("boolean", "Floating IPs for the nodes.", default=True),
    }
    attributes_schema = {"show": Attribute("All fields, as the service's API returns them.", "map")}

    def validate(self, properties: JsonMap) -> None:
        """Check that the engine can use the driver of volumes."""
        engine = str(properties.get("coe"))
        driver = properties.get("volume_driver")
        supported = VOLUME_DRIVERS.get(engine)
        if driver is not None and supported is not None and driver not in supported:
            text = f"Volume driver type {driver} is not supported by COE:{engine}, expecting a "
            raise PropertyError(f"{text}{', '.join(supported)} volume driver.", ("volume_driver",))


class Cluster(ContainerType):
    """A cluster."""

    type_name = "OS::Magnum::Cluster"
    description = "A container cluster, such as Kubernetes."
    path = "/clusters"
    items = "clusters"
    slow_delete = True
    answers_in_full = False
    status = StatusMeaning(
        pending=tuple(f"{action}_IN_PROGRESS" for action in ACTIONS),
        bad=tuple(f"{action}_FAILED" for action in ACTIONS),
        deleted=("DELETE_COMPLETE",),
    )
    references = {
        "cluster_template": NamedRemote("magnum.cluster_template"),
    }
    properties_schema = {
        "name": NAME,
        "cluster_template": Property(
            "string",
            "Name or id of the cluster template.",
            required=True,
            constraints=(Custom(check_name="magnum.cluster_template"),),
        ),
        "keypair": Property(
            "string",
            "Name of the nodes' key pair; if omitted, that of the cluster template.",
            constraints=(Custom(check_name="nova.keypair"),),
        ),
        "node_count": Property(
            "integer",
            "Number of worker nodes.",
            default=1,
            update_allowed=True,
            constraints=(Range(minimum=1),),
        ),
        "master_count": Property(
            "integer",
            "Number of master nodes.",
            default=1,
            update_allowed=True,
            constraints=(Range(minimum=1),),
        ),
        "discovery_url": Property(
            "string", "Discovery URL, by which the nodes find each other.", update_allowed=True
        ),
        "create_timeout": Property(
            "integer",
            "Timeout of the creation, in minutes.",
            default=60,
            update_allowed=True,
            constraints=(Range(minimum=0),),
        ),
    }
    attributes_schema = {
        "api_address": Attribute("Address of the cluster's API.", "string"),
        "cluster_template_id": Attribute("Id of the cluster template.", "string"),
        "coe_version": Attribute("Version of the container orchestration engine (COE).", "string"),
        "container_version": Attribute("Version of the container runtime.", "string"),
        "create_timeout": Attribute("Timeout of the creation, in minutes.", "integer"),
        "discovery_url": Attribute("Discovery URL, by which the nodes find each other.", "string"),
        "keypair": Attribute("Name of the nodes' key pair.", "string"),
        "master_count": Attribute("Number of master nodes.", "integer"),
        "name": Attribute("Name of the cluster.", "string"),
        "node_count": Attribute("Number of worker nodes.", "integer"),
        "stack_id": Attribute("Id of the stack that the service made for the cluster.", "string"),
        "status": Attribute("Status of the cluster.", "string"),
        "status_reason": Attribute("Reason of the status.", "string"),
        "master_addresses": Attribute("IP addresses of the master nodes.", "list"),
        "node_addresses": Attribute("IP addresses of the worker nodes.", "list"),
    }

    def problem(self, remote: JsonMap) -> str:
        return str(remote.get("status_reason") or "")

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Send the fields that have changed; the service begins a moment later."""
        body = self.update_body(target, changed, context)
        since = context.now()
        self.service_for(context).patch(self.path_of(target), self._wrapped(body))
        return Poll(progress={"since": since}, after=STEADY_PAUSE)

    def check_update_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll until the update is complete: the state of before it may be there for a while."""
        remote = self.get(self.service_for(context), self.id_of(target))
        if self.status.of(remote) == "CREATE_COMPLETE":
            return Poll(progress=progress, after=STEADY_PAUSE)
        return self._wait(remote, progress["since"], target, context)
