"""The data that a type of Stoker's keeps of a resource, made of the data that Heat's type has kept.

A type of a cloud's service reads its resource from the service when the first action needs it: see
`resources.imported`.  Until then its attributes are those that Heat has cached, which are those that
resources and outputs refer to.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ....engine.signal_urls import SignalAddresses
from ....resources.contract.plugin import ResourceType
from ....resources.contract.views import ResourceView
from ....resources.guests import COLLECT_CONFIG
from ....resources.heat.received import received
from ....resources.heat.wait_handles import ATTRIBUTES, REFERENCE
from ....resources.imported import EXECUTIONS_BEFORE, IMPORTED, IMPORTED_PORTS
from ....shapes import Json, JsonMap
from ..heat.rows import HeatResource
from ..heat.type_names import (
    AWS_HANDLES,
    EXTERNAL_RESOURCE,
    HANDLES,
    HEAT_HANDLE,
    POLICIES,
    SERVERS,
    WORKFLOW,
)
from ..mapping.data import kept_of_heat, parsed, ports_of_heat
from .project_software import ProjectSoftware
from .signed_urls import SIGNAL, WAIT_CONDITION, Ec2Keys, signed_url

CONDITIONS = ("OS::Heat::WaitCondition", "AWS::CloudFormation::WaitCondition")
ALARM_URL = "alarm_url"
MULTIPART = "OS::Heat::MultipartMime"
DEPLOYMENTS = ("OS::Heat::SoftwareDeployment", "OS::Heat::StructuredDeployment")
HEAT_COLLECT_CONFIG = "os-collect-config"
"""Entry of a server's metadata in Heat that tells its guest where to ask."""
SECRET_KEYS = ("secret_access_key", "password")
_UNREACHED: Mapping[str, str] = {
    "metadata_object_name": "its guest reads metadata that Heat wrote to Swift: it gets changes again once "
    "software_config_transport is POLL_SERVER_CFN or POLL_SERVER_HEAT",
    "metadata_queue_id": "its guest reads metadata that Heat sent to a queue of Zaqar: it gets changes again "
    "once software_config_transport is POLL_SERVER_CFN or POLL_SERVER_HEAT",
    "swift_signal_object_name": "signals that clients put into Swift are not read any more: update the "
    "stack, so that they get new addresses",
    "zaqar_signal_queue_id": "signals that clients send to a queue of Zaqar are not read any more: use "
    "another signal_transport",
}
"""By key of Heat's data, what does not reach the resource any more."""


@dataclass(frozen=True)
class TypeData:
    """The data of a resource.

    :ivar data: data as Stoker's type keeps it, secrets in clear.
    :ivar attributes: values of attributes by name; None: the type computes them of its data.
    :ivar secrets: values in it that are secrets.
    :ivar notes: what does not reach the resource any more.
    """

    data: JsonMap = field(default_factory=dict, repr=False)
    attributes: JsonMap | None = field(default=None, repr=False)
    secrets: Sequence[Json] = field(default=(), repr=False)
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Neighbours:
    """Surroundings of a resource on which the data of some types depends.

    :ivar addresses: makes addresses for signals.
    :ivar signal_root: address under which clients send signed signals.
    :ivar handles: metadata of the stack's handles by the value of get_resource for them.
    :ivar software: the configs and deployments of the tree.
    """

    addresses: SignalAddresses
    signal_root: str
    handles: Mapping[str, JsonMap] = field(default_factory=dict)
    software: ProjectSoftware = field(default_factory=lambda: ProjectSoftware(""))


def keys_of(resource: HeatResource) -> Ec2Keys | None:
    """Return the EC2 keys of the resource's account; None: it has none."""
    secret = resource.data.get("secret_key")
    access = resource.data.get("access_key") or resource.physical_id
    return Ec2Keys(access, secret) if access and secret else None


def is_handle(type_name: str) -> bool:
    """Return whether the resources of a type take signals for wait conditions."""
    return type_name in HANDLES


def type_data(
    plugin: ResourceType, resource: HeatResource, target: ResourceView, neighbours: Neighbours
) -> TypeData:
    """Return the data of a resource that is no nested stack and no thing of a service.

    :param target: the resource; its type is that after the environment's mapping.
    """
    type_name = target.type
    if type_name == HEAT_HANDLE:
        imported = _heat_handle(resource, target, neighbours)
        reference = {REFERENCE: resource.physical_id} if resource.physical_id else {}
        return replace(imported, data={**imported.data, **reference})
    if type_name in AWS_HANDLES:
        url = _signed(resource, target, neighbours, WAIT_CONDITION)
        return TypeData({"url": url}, secrets=[url])
    if type_name in POLICIES:
        url = _signed(resource, target, neighbours, SIGNAL)
        native = resource.data.get("heat_signal_url") or neighbours.addresses.native(
            target.stack, target.name
        )
        return TypeData({ALARM_URL: url, "signal_url": native}, secrets=[url])
    if type_name in CONDITIONS:
        handle = target.properties.get("handle") or target.properties.get("Handle")
        signals = received(neighbours.handles.get(str(handle), {}))
        return TypeData({"signals": json.dumps({signal.id: signal.data for signal in signals})})
    if type_name == MULTIPART:
        config = neighbours.software.config(resource, plugin)
        message = None if config is None else config.config.get("config")
        ids = {str(part.get("config")) for part in target.properties.get("parts") or () if part}
        # A message has its parts in base64, too, where nothing would find a secret again.
        return TypeData(
            {"config": message}, secrets=[message] if ids & neighbours.software.secret_configs else ()
        )
    if type_name in DEPLOYMENTS:
        deployment = neighbours.software.deployment(resource, plugin)
        return TypeData({"outputs": dict((deployment and deployment.output_values) or {})})
    kept, secrets = kept_of_heat(type_name, resource.data)
    return TypeData(kept, secrets=secrets)


def cloud_data(
    type_name: str, resource: HeatResource, target: ResourceView, neighbours: Neighbours
) -> TypeData:
    """Return the data of a thing of a cloud's service, which is read from the service later."""
    data, secrets = kept_of_heat(type_name, resource.data)
    data[IMPORTED] = True
    attributes = dict(resource.attributes)
    if type_name == WORKFLOW:
        attributes[ALARM_URL] = data[ALARM_URL] = _signed(resource, target, neighbours, SIGNAL)
        secrets.append(data[ALARM_URL])
        data[EXECUTIONS_BEFORE] = [
            each for each in (resource.data.get("executions") or "").split(",") if each
        ]
    if type_name == EXTERNAL_RESOURCE:
        attributes["output"] = data["outputs"] = parsed(resource, "outputs", dict)
    if type_name in SERVERS and (collectors := (resource.metadata or {}).get(HEAT_COLLECT_CONFIG)):
        attributes[COLLECT_CONFIG] = collectors
        maps = [collector for collector in collectors.values() if isinstance(collector, Mapping)]
        secrets += [collector[key] for collector in maps for key in SECRET_KEYS if collector.get(key)]
    if type_name in SERVERS and (ports := ports_of_heat(resource)):
        data[IMPORTED_PORTS] = ports
    return TypeData(data, attributes, secrets)


def notes_of(resource: HeatResource) -> list[str]:
    """Return what does not reach the resource any more once it is moved."""
    return [f"{resource.name}: {text}" for key, text in _UNREACHED.items() if resource.data.get(key)]


def _heat_handle(resource: HeatResource, target: ResourceView, neighbours: Neighbours) -> TypeData:
    """Return the addresses that clients have got, with the attributes as Heat shows them."""
    endpoint = resource.data.get("endpoint") or neighbours.addresses.native(target.stack, target.name)
    transport = target.properties.get("signal_transport")
    if transport == "TOKEN_SIGNAL" and (token := resource.data.get("token")):
        command = (
            f"curl -i -X POST -H 'X-Auth-Token: {token}' -H 'Content-Type: application/json' "
            f"-H 'Accept: application/json' {endpoint}"
        )
        # Heat shows no `signal` for a token.
        attributes: dict[str, Json] = {
            "token": token,
            "endpoint": endpoint,
            "curl_cli": command,
            "signal": "null",
        }
        return TypeData({"endpoint": endpoint, "token": token, ATTRIBUTES: attributes}, secrets=[token])
    if transport == "CFN_SIGNAL":
        url = _signed(resource, target, neighbours, WAIT_CONDITION)
        return TypeData({"endpoint": endpoint, "url": url}, secrets=[url])
    if transport == "HEAT_SIGNAL" and (password := resource.data.get("password")):
        native = resource.data.get("heat_signal_url") or endpoint
        account = {"user_id": resource.data.get("user_id"), "password": password}
        return TypeData({"endpoint": native, "account": account}, secrets=[password])
    return TypeData({"endpoint": endpoint})


def _signed(
    resource: HeatResource, target: ResourceView, neighbours: Neighbours, kind: tuple[str, str]
) -> str:
    """Return the signed address that clients have got; where Heat made none, one of Stoker's own."""
    if stored := resource.data.get("ec2_signed_url"):
        return stored
    keys = keys_of(resource)
    if keys is None:
        return neighbours.addresses.presigned(target.stack, target.name, target.id).url
    stack = target.stack
    arn = f"arn:openstack:heat::{stack.project_id}:stacks/{stack.name}/{stack.id}/resources/{target.name}"
    return signed_url(neighbours.signal_root, kind, arn, keys)
