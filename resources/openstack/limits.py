"""Limits of a project's quotas and what the project uses of them, as the services tell them; pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...shapes import Json, JsonMap
from ..contract import CloudFacts

UNLIMITED = -1


@dataclass(frozen=True)
class Allowance:
    """A quota of a project.

    :ivar limit: the largest amount; UNLIMITED: there is none.
    :ivar used: what is in use, or reserved by a running action.
    """

    limit: int
    used: int

    @property
    def free(self) -> int | None:
        """Return the amount that is left; None: any."""
        return None if self.limit < 0 else max(0, self.limit - self.used)


def allowance(cloud: CloudFacts, service: str, name: str) -> Allowance | None:
    """Return a quota of the caller's project; None: it is not known, or the service has none of that name.

    :param service: type of the service in the service catalog.
    :param name: name of the quota, as the service has it.
    """
    read = _READERS.get(service)
    return None if read is None else read(cloud, name)


def _compute(cloud: CloudFacts, name: str) -> Allowance | None:
    quota = detailed(cloud.entry("compute", f"/os-quota-sets/{cloud.project_id}/detail", "quota_set"), name)
    if quota is None or name != "key_pairs" or quota.limit < 0:
        return quota
    # Key pairs belong to a user, and Nova does not count them here.
    keys = cloud.members("compute", "/os-keypairs", "keypairs")
    return None if keys is None else Allowance(quota.limit, len(keys))


def _block_storage(cloud: CloudFacts, name: str) -> Allowance | None:
    path = f"/os-quota-sets/{cloud.project_id}"
    return detailed(cloud.entry("block-storage", path, "quota_set", usage="True"), name)


def _network(cloud: CloudFacts, name: str) -> Allowance | None:
    return detailed(cloud.entry("network", f"/quotas/{cloud.project_id}/details", "quota"), name)


def _shares(cloud: CloudFacts, name: str) -> Allowance | None:
    path = f"/quota-sets/{cloud.project_id}/detail"
    return detailed(cloud.entry("shared-file-system", path, "quota_set"), name)


def _load_balancer(cloud: CloudFacts, name: str) -> Allowance | None:
    limits = cloud.entry("load-balancer", f"/lbaas/quotas/{cloud.project_id}", "quota")
    limit = _number(limits, name)
    if limit is None or limit < 0:
        return None if limit is None else Allowance(UNLIMITED, 0)
    if name not in _BALANCER_LISTS:
        return None
    items, inside = _BALANCER_LISTS[name]
    things = cloud.members("load-balancer", f"/lbaas/{items}", items, project_id=cloud.project_id)
    if things is None:
        return None
    return Allowance(limit, sum(len(thing.get(inside) or ()) for thing in things) if inside else len(things))


_BALANCER_LISTS: Mapping[str, tuple[str, str]] = {
    "load_balancer": ("loadbalancers", ""),
    "listener": ("listeners", ""),
    "pool": ("pools", ""),
    "member": ("pools", "members"),
    "health_monitor": ("healthmonitors", ""),
    "l7policy": ("l7policies", ""),
    "l7rule": ("l7policies", "rules"),
}
"""Name of the list by the quota, and the field of its members that lists what is counted; "": they are."""


def _names(cloud: CloudFacts, name: str) -> Allowance | None:
    limit = _number(cloud.entry("dns", f"/quotas/{cloud.project_id}", ""), name)
    if limit is None or name != "zones":
        return None
    zones = cloud.members("dns", "/zones", "zones")
    return None if zones is None else Allowance(limit, len(zones))


def _keys(cloud: CloudFacts, name: str) -> Allowance | None:
    limit = _number(cloud.entry("key-manager", "/quotas", "quotas"), name)
    if limit is None or limit < 0:
        return None if limit is None else Allowance(UNLIMITED, 0)
    used = _number(cloud.entry("key-manager", f"/{name}", "", limit=1), "total")
    return None if used is None else Allowance(limit, used)


_READERS: Mapping[str, Callable[[CloudFacts, str], Allowance | None]] = {
    "block-storage": _block_storage,
    "compute": _compute,
    "dns": _names,
    "key-manager": _keys,
    "load-balancer": _load_balancer,
    "network": _network,
    "shared-file-system": _shares,
}
"""By the service's type in the service catalog."""


def detailed(limits: JsonMap | None, name: str) -> Allowance | None:
    """Return a quota of which the service tells limit, use and reservations."""
    entry: Json = (limits or {}).get(name)
    limit = _number(entry, "limit")
    used = _number(entry, "in_use")
    used = _number(entry, "used") if used is None else used
    return (
        None if limit is None or used is None else Allowance(limit, used + (_number(entry, "reserved") or 0))
    )


def _number(entry: Json, name: str) -> int | None:
    value = entry.get(name) if isinstance(entry, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
