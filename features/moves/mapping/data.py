"""The values that a type of Heat's and its type of Stoker's both keep of a resource, under both keys."""

import json
import typing
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ....resources.heat.iam import ACCESS_KEY, SECRET
from ....resources.imported import IMPORTED_PORTS
from ....resources.openstack.cinder.volume_backups import BACKUP
from ....resources.openstack.nova.compute import IMAGE
from ....shapes import Json, JsonMap
from ..heat.fields import Damaged
from ..heat.rows import HeatResource
from ..heat.type_names import AWS_HANDLES, EC2_INSTANCE, HEAT_HANDLE, SERVERS

REMOVED = "removed"
"""Key of Stoker's for the members of a group that are removed for good."""
T = typing.TypeVar("T", bound=Collection[Json])


@dataclass(frozen=True)
class KeptValue:
    """A value with its key at Stoker, and that at Heat.

    :ivar is_secret: whether Stoker seals it.
    """

    stoker: str
    heat: str
    is_secret: bool = False


KEPT: Mapping[str, Sequence[KeptValue]] = {
    ACCESS_KEY: [KeptValue(SECRET, "secret_key", is_secret=True)],
    "OS::Heat::RandomString": [KeptValue("value", "value", is_secret=True)],
    "OS::Heat::SwiftSignalHandle": [KeptValue("endpoint", "endpoint", is_secret=True)],
    "OS::Heat::TestResource": [KeptValue("value", "value")],
    "OS::Nova::KeyPair": [KeptValue("private_key", "private_key", is_secret=True)],
    HEAT_HANDLE: [KeptValue("token", "token", is_secret=True), KeptValue("endpoint", "endpoint")],
    **{name: [KeptValue("url", "ec2_signed_url", is_secret=True)] for name in AWS_HANDLES},
}
"""The values by type that are the same text at both."""


def kept_of_heat(type_name: str, data: Mapping[str, str]) -> tuple[dict[str, Json], list[Json]]:
    """Return the values that a type keeps by Stoker's keys, and the secrets among them.

    :param data: the data of Heat's type.
    """
    values = [value for value in KEPT.get(type_name, ()) if value.heat in data]
    secrets: list[Json] = [data[value.heat] for value in values if value.is_secret]
    return {value.stoker: data[value.heat] for value in values}, secrets


def kept_of_stoker(type_name: str, data: JsonMap) -> dict[str, str]:
    """Return the values that a type keeps by Heat's keys.

    :param data: the data of Stoker's type, secrets in clear.
    """
    values = {value.heat: data.get(value.stoker) for value in KEPT.get(type_name, ())}
    return {key: str(value) for key, value in values.items() if value is not None}


def copies_of(data: JsonMap) -> dict[str, Json]:
    """Return the values that name what a snapshot has made of a resource; both have the same keys."""
    return {key: data[key] for key in (BACKUP, IMAGE) if key in data}


def removed_members(data: Mapping[str, str]) -> dict[str, Json]:
    """Return Stoker's data on the members of a group that are removed for good; empty: Heat has none."""
    if "name_blacklist" not in data:
        return {}
    return {REMOVED: sorted(name for name in data["name_blacklist"].split(",") if name)}


def blacklist(data: JsonMap) -> dict[str, str]:
    """Return Heat's data on the members of a group that are removed for good; empty: there are none."""
    removed: Iterable[str] = data.get(REMOVED) or ()
    return {"name_blacklist": ",".join(sorted(removed))} if removed else {}


def ports_of_heat(resource: HeatResource) -> list[str]:
    """Return the ids of the ports that Heat has made for a server, as its data names them.

    An adoption names any: they are asked for, and deleted, with the rights that the stack has at Neutron.

    :raises Damaged: its data says something else.
    """
    ports = parsed(resource, "internal_ports", list)
    if not all(isinstance(port, Mapping) for port in ports):
        raise _damaged(resource, "internal_ports", "are of a wrong type")
    ids = [port.get("id") for port in ports]
    return [str(port) for port in (*ids, resource.data.get("port_id")) if port]


def ports_of_stoker(type_name: str, data: JsonMap) -> dict[str, str]:
    """Return Heat's data on the ports that were made for a server, and are deleted with it."""
    interfaces: Sequence[Json] = data.get("interfaces") or ()
    own = [str(item["port"]) for item in interfaces if item.get("is_own")]
    imported = [str(port) for port in data.get(IMPORTED_PORTS) or ()]
    ports = list(dict.fromkeys([*own, *imported]))
    if not ports or type_name not in SERVERS:
        return {}
    if type_name == EC2_INSTANCE:
        return {"port_id": ports[0]}
    return {"internal_ports": json.dumps([{"id": port} for port in ports])}


def parsed(resource: HeatResource, key: str, kind: type[T]) -> T:
    """Return a value that Heat's type has stored as JSON; an empty one where it has stored none.

    :raises Damaged: it is no JSON, or of another type: an adoption stores any text.
    """
    text = resource.data.get(key)
    if not text:
        return kind()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(resource, key, "are not JSON") from error
    if not isinstance(value, kind):
        raise _damaged(resource, key, "are of a wrong type")
    return value


def _damaged(resource: HeatResource, key: str, state: str) -> Damaged:
    return Damaged(
        f"resource {resource.name}: its {key} {state} (resource_data.value, resource_id {resource.id})"
    )
