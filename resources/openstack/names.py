"""Things of the cloud by name or id: one table of where each kind of thing is looked up.

The names of the kinds are those of Heat's custom constraints.
"""

import re
import urllib.parse
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...shapes import Json, JsonMap
from ..contract import CloudCalls, PermanentError
from .service import RemoteNotFound, Service, object_of, service_of

KEPT = 60.0
"""Seconds for which a name that was found keeps its id."""


_NO_PART = frozenset({"", ".", ".."})
"""Values with which an address would lead to something else than one thing."""
_IN_DOMAIN = re.compile(r"(?P<name>.+)\{(?P<domain>[^{}]+)\}")
"""A name with that of its domain, as Heat takes it."""


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
    :ivar path: path of the collection.
    :ivar items: key of the members in a list's answer; None: the last part of the path.
    :ivar item: key of the thing in the answer to its GET; None: the singular of `items`.
    :ivar label: the kind's name in messages.
    :ivar query: further parameters of the list.
    :ivar filters: whether the service can filter by name; otherwise the whole list is searched.
    :ivar filter: parameter of the list by which the service filters.
    :ivar named: whether things are searched by name; otherwise a GET of one thing takes all that names it.
    :ivar odd_ids: whether ids are not always UUIDs, so a value is tried as an id first.
    :ivar by_reference: whether an id may be given as the last part of an address.
    :ivar in_domain: whether a name may be followed by that of its domain: ``alice{Default}``.
    :ivar id_field: field of the id, and `name_field` that of the name.
    """

    service: str
    path: str
    label: str
    items: str = ""
    item: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    filters: bool = True
    filter: str = "name"
    named: bool = True
    odd_ids: bool = False
    by_reference: bool = False
    in_domain: bool = False
    id_field: str = "id"
    name_field: str = "name"

    @property
    def members(self) -> str:
        """Key of the members in a list's answer."""
        return self.items or self.path.rsplit("/", 1)[-1].replace("-", "_")

    @property
    def error(self) -> str:
        """The kind of failure where there is none, as Heat names it."""
        return f"{self.label.replace(' ', '')}NotFound" if self.service == "compute" else "EntityNotFound"


_BALANCERS = "load-balancer"
KINDS: Mapping[str, Kind] = {
    "barbican.container": Kind("key-manager", "/containers", "Container", named=False, by_reference=True),
    "barbican.secret": Kind("key-manager", "/secrets", "Secret", named=False, by_reference=True),
    "blazar.reservation": Kind("reservation", "/leases", "Lease", named=False),
    "cinder.backup": Kind("block-storage", "/backups", "Volume backup"),
    "cinder.qos_specs": Kind("block-storage", "/qos-specs", "QoS specs", filters=False),
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
    "designate.zone": Kind("dns", "/zones", "Designate Zone"),
    "glance.image": Kind("image", "/images", "Image"),
    "ironic.node": Kind("baremetal", "/nodes", "Node", named=False, id_field="uuid"),
    "ironic.portgroup": Kind("baremetal", "/portgroups", "PortGroup", named=False, id_field="uuid"),
    "keystone.domain": Kind("identity", "/domains", "KeystoneDomain", odd_ids=True),
    "keystone.group": Kind("identity", "/groups", "KeystoneGroup", odd_ids=True, in_domain=True),
    "keystone.project": Kind("identity", "/projects", "KeystoneProject", odd_ids=True, in_domain=True),
    "keystone.region": Kind("identity", "/regions", "KeystoneRegion", named=False),
    "keystone.role": Kind("identity", "/roles", "KeystoneRole", odd_ids=True, in_domain=True),
    "keystone.service": Kind("identity", "/services", "KeystoneService", odd_ids=True),
    "keystone.user": Kind("identity", "/users", "KeystoneUser", odd_ids=True, in_domain=True),
    "magnum.cluster_template": Kind(
        "container-infrastructure-management",
        "/clustertemplates",
        "ClusterTemplate",
        named=False,
        id_field="uuid",
    ),
    "manila.security_service": Kind("shared-file-system", "/security-services", "security service"),
    "manila.share_network": Kind("shared-file-system", "/share-networks", "share network"),
    "manila.share_snapshot": Kind("shared-file-system", "/snapshots", "share snapshot"),
    "manila.share_type": Kind(
        "shared-file-system",
        "/types",
        "share type",
        items="share_types",
        filters=False,
        query={"is_public": "all"},
    ),
    "mistral.workflow": Kind("workflow", "/workflows", "Workflow", named=False),
    "neutron.address_scope": Kind("network", "/address-scopes", "address_scope"),
    "neutron.flow_classifier": Kind("network", "/sfc/flow_classifiers", "flow_classifier"),
    "neutron.lbaas.listener": Kind("network", "/lbaas/listeners", "listener"),
    "neutron.lbaas.loadbalancer": Kind("network", "/lbaas/loadbalancers", "loadbalancer"),
    "neutron.lbaas.pool": Kind("network", "/lbaas/pools", "pool"),
    "neutron.lbaas.provider": Kind("network", "/service-providers", "provider", id_field="name"),
    "neutron.network": Kind("network", "/networks", "network"),
    "neutron.port": Kind("network", "/ports", "port"),
    "neutron.port_pair": Kind("network", "/sfc/port_pairs", "port_pair"),
    "neutron.port_pair_group": Kind("network", "/sfc/port_pair_groups", "port_pair_group"),
    "neutron.qos_policy": Kind("network", "/qos/policies", "policy"),
    "neutron.router": Kind("network", "/routers", "router"),
    "neutron.security_group": Kind("network", "/security-groups", "security_group"),
    "neutron.segment": Kind("network", "/segments", "segment"),
    "neutron.subnet": Kind("network", "/subnets", "subnet"),
    "neutron.subnetpool": Kind("network", "/subnetpools", "subnetpool"),
    "neutron.taas.tap_flow": Kind("network", "/taas/tap_flows", "tap_flow"),
    "neutron.taas.tap_service": Kind("network", "/taas/tap_services", "tap_service"),
    "nova.flavor": Kind("compute", "/flavors", "Flavor", filters=False),
    "nova.host": Kind(
        "compute",
        "/os-hypervisors",
        "Host",
        items="hypervisors",
        filter="hypervisor_hostname_pattern",
        name_field="hypervisor_hostname",
    ),
    "nova.keypair": Kind("compute", "/os-keypairs", "Key", items="keypairs", filters=False, id_field="name"),
    "nova.server": Kind("compute", "/servers", "Server", query={"all_tenants": "0"}),
    "octavia.availabilityzone": Kind(
        _BALANCERS, "/lbaas/availabilityzones", "availability zone", named=False, id_field="name"
    ),
    "octavia.availabilityzoneprofile": Kind(
        _BALANCERS,
        "/lbaas/availabilityzoneprofiles",
        "availability zone profile",
        items="availability_zone_profiles",
    ),
    "octavia.flavor": Kind(_BALANCERS, "/lbaas/flavors", "flavor"),
    "octavia.flavorprofile": Kind(_BALANCERS, "/lbaas/flavorprofiles", "flavor profile"),
    "octavia.l7policy": Kind(_BALANCERS, "/lbaas/l7policies", "L7 policy"),
    "octavia.listener": Kind(_BALANCERS, "/lbaas/listeners", "listener"),
    "octavia.loadbalancer": Kind(_BALANCERS, "/lbaas/loadbalancers", "load balancer"),
    "octavia.pool": Kind(_BALANCERS, "/lbaas/pools", "pool"),
    "trove.flavor": Kind("database", "/flavors", "Flavor", filters=False),
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

    :param service: requests to the kind's service, with the rights to be used.
    :raises NameNotFound, NameNotUnique: no thing, or several, have the name.
    :raises PermanentError, RetryableError: the errors of `Service`.
    """
    looked_up = value.rstrip("/").rsplit("/", 1)[-1] if kind.by_reference else value
    if looked_up in _NO_PART:
        raise NameNotFound(kind, value)
    if kind.named and kind.filters and not kind.odd_ids and not is_id(value):
        return _by_name(service, kind, value)
    try:
        body = service.get(f"{kind.path}/{quoted(looked_up)}")
    except RemoteNotFound as error:
        if kind.named:
            return _by_name(service, kind, value)
        raise NameNotFound(kind, value) from error
    return str(_member(body).get(kind.id_field, value))


def resolve(context: CloudCalls, name: str, value: str | None) -> str:
    """Return the id of the thing with this id or name, for a step.

    A UUID is an id; the service finds out whether it is there.

    :param name: the kind's name in `KINDS`.
    :param value: name or id; None: it is not known, as of a resource whose properties are wrong.
    :raises NameNotFound, NameNotUnique: no thing, or several, have the name.
    :raises PermanentError, RetryableError: the errors of `Service`.
    """
    kind = KINDS[name]
    if value is None:
        raise NameNotFound(kind, "None")
    if is_id(value) and kind.id_field == "id":
        return value
    service = service_of(context, kind.service)
    # A thing may have been deleted, and another made under its name: that is seen when its id is used.
    return context.shared(
        ("name", name, value), lambda: find(service, kind, value), KEPT, checked_by_use=True
    )


def lately_found(context: CloudCalls, name: str, value: str) -> str | None:
    """Return the id that a step of the last minute has found for a name; None: no service is asked for it."""

    def refuse() -> str:
        raise LookupError

    try:
        return context.shared(("name", name, value), refuse, KEPT)
    except LookupError:
        return None


def quoted(value: str) -> str:
    """Return the value as one part of a path."""
    return urllib.parse.quote(value, safe="")


def _by_name(service: Service, kind: Kind, value: str) -> str:
    name = value
    query = dict(kind.query)
    if kind.in_domain and (match := _IN_DOMAIN.fullmatch(value)):
        name = match["name"]
        query["domain_id"] = find(service, KINDS["keystone.domain"], match["domain"])
    if kind.filters:
        query[kind.filter] = name
    matches = [_inner(item) for item in service.list_all(kind.path, kind.members, **query)]
    # Some services search for a part of the name, or a regular expression.
    ids = [str(item[kind.id_field]) for item in matches if item.get(kind.name_field) == name]
    if not ids:
        raise NameNotFound(kind, value)
    if len(ids) > 1:
        raise NameNotUnique(kind, value)
    return ids[0]


def _member(body: Json) -> JsonMap:
    """Return the thing in the answer to a GET: the value of its only key, or the answer, as Glance has it."""
    body = object_of(body)
    inner = next(iter(body.values())) if len(body) == 1 else body
    return inner if isinstance(inner, Mapping) else body


def _inner(item: JsonMap) -> JsonMap:
    """Return the member itself: key pairs are one level deeper."""
    return _member(item) if len(item) == 1 else item
