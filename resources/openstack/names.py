"""Things of the cloud by name or id: one table of where each kind of thing is looked up.

The names of the kinds are those of Heat's custom constraints.
"""

import urllib.parse
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..context import Json, StepContext
from ..errors import PermanentError
from .service import Service, ThingNotFound, service_of

KEPT = 60.0
"""Seconds for which a name that was found keeps its id."""


class NameNotFound(PermanentError):
    """Nothing has this name or id."""

    def __init__(self, kind: "Kind", value: str) -> None:
        super().__init__(f"The {kind.label} ({value}) could not be found.", kind=kind.error)


class NameNotUnique(PermanentError):
    """Several things have this name."""

    def __init__(self, kind: "Kind", value: str) -> None:
        text = f"Several things of kind {kind.label} have the name {value}; use an id"
        super().__init__(text, kind="PhysicalResourceNameAmbiguity")


@dataclass(frozen=True)
class Kind:
    """A kind of thing.

    :ivar service: the service's type in the service catalog.
    :ivar path: of the collection.
    :ivar items: key of the members in a list's answer; None: the last part of the path.
    :ivar item: key of the thing in the answer to its GET; None: the singular of `items`.
    :ivar label: what messages call it.
    :ivar query: further parameters of the list.
    :ivar filters: the service can filter by name; otherwise the whole list is searched.
    :ivar id_field: field of the id.
    """

    service: str
    path: str
    label: str
    items: str = ""
    item: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    filters: bool = True
    id_field: str = "id"

    @property
    def members(self) -> str:
        """Key of the members in a list's answer."""
        return self.items or self.path.rsplit("/", 1)[-1].replace("-", "_")

    @property
    def error(self) -> str:
        """The kind of failure where there is none, as Heat names it."""
        return f"{self.label.replace(' ', '')}NotFound" if self.service == "compute" else "EntityNotFound"


KINDS: Mapping[str, Kind] = {
    "cinder.backup": Kind("block-storage", "/backups", "Volume backup"),
    "cinder.snapshot": Kind("block-storage", "/snapshots", "VolumeSnapshot"),
    "cinder.volume": Kind("block-storage", "/volumes", "Volume"),
    "cinder.vtype": Kind(
        "block-storage",
        "/types",
        "VolumeType",
        items="volume_types",
        filters=False,
        query={"is_public": "None"},
    ),
    "glance.image": Kind("image", "/images", "Image"),
    "keystone.project": Kind("identity", "/projects", "Project"),
    "keystone.user": Kind("identity", "/users", "User"),
    "neutron.address_scope": Kind("network", "/address-scopes", "address_scope"),
    "neutron.network": Kind("network", "/networks", "network"),
    "neutron.port": Kind("network", "/ports", "port"),
    "neutron.qos_policy": Kind("network", "/qos/policies", "policy"),
    "neutron.router": Kind("network", "/routers", "router"),
    "neutron.security_group": Kind("network", "/security-groups", "security_group"),
    "neutron.segment": Kind("network", "/segments", "segment"),
    "neutron.subnet": Kind("network", "/subnets", "subnet"),
    "neutron.subnetpool": Kind("network", "/subnetpools", "subnetpool"),
    "nova.flavor": Kind("compute", "/flavors", "Flavor", filters=False),
    "nova.keypair": Kind("compute", "/os-keypairs", "Key", items="keypairs", filters=False, id_field="name"),
    "nova.server": Kind("compute", "/servers", "Server", query={"all_tenants": "0"}),
}
"""By the name of the custom constraint."""


def is_id(value: str) -> bool:
    """Return whether the value is an id as most services make them: a UUID, with hyphens or without."""
    try:
        return str(uuid.UUID(value)).replace("-", "") == value.lower().replace("-", "")
    except ValueError:
        return False


def find(service: Service, kind: Kind, value: str) -> str:
    """Return the id of the thing with this id or name.

    :param service: of the kind's service, with the rights to be used.
    :raises NameNotFound, NameNotUnique: as they say.
    :raises PermanentError, RetryableError: as `Service`.
    """
    if kind.filters and not is_id(value):
        return _by_name(service, kind, value)
    try:
        body = service.get(f"{kind.path}/{quoted(value)}")
    except ThingNotFound:
        return _by_name(service, kind, value)
    return str(_thing(body).get(kind.id_field, value))


def resolve(work: StepContext, name: str, value: str) -> str:
    """Return the id of the thing with this id or name, for a step.

    A UUID is an id; the service finds out whether it is there.

    :param name: of the kind, in `KINDS`.
    :raises NameNotFound, NameNotUnique: as they say.
    :raises PermanentError, RetryableError: as `Service`.
    """
    kind = KINDS[name]
    if is_id(value) and kind.id_field == "id":
        return value
    service = service_of(work, kind.service)
    return work.shared(("name", name, value), lambda: find(service, kind, value), KEPT)


def quoted(value: str) -> str:
    """Return the value as one part of a path."""
    return urllib.parse.quote(value, safe="")


def _by_name(service: Service, kind: Kind, value: str) -> str:
    query = {**kind.query, "name": value} if kind.filters else dict(kind.query)
    found = [_inner(item) for item in service.list_all(kind.path, kind.members, **query)]
    # Some services search for a part of the name, or a regular expression.
    ids = [str(item[kind.id_field]) for item in found if item.get("name") == value]
    if not ids:
        raise NameNotFound(kind, value)
    if len(ids) > 1:
        raise NameNotUnique(kind, value)
    return ids[0]


def _thing(body: Json) -> Mapping[str, Json]:
    """Return the thing in the answer to a GET: the value of its only key, or the answer, as Glance has it."""
    inner = next(iter(body.values())) if len(body) == 1 else body
    return inner if isinstance(inner, Mapping) else body


def _inner(item: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the member itself: key pairs are one level deeper."""
    return _thing(item) if len(item) == 1 else item
