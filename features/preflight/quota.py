"""The quotas that an action needs against those that are left; pure.

An update holds an old thing until its replacement is made, so it may need more at its peak than it has at
its end.  Two amounts bound the peak, whatever the order of the tasks: it is not below the larger one of the
end and of what one replacement holds, and not above the sum of all that is made.  Of a group that changes in
batches, it is not above what the fullest batch holds.
"""

import itertools
import typing
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...resources.contract.known_stack import KnownResource
from ...resources.contract.plugin import ResourceType
from ...resources.contract.preflight import Certainty, CloudFacts, QuotaNeeds, needs_of
from ...resources.openstack.limits import Allowance, allowance
from ...template.language import Path
from .findings import CloudFinding, FindingKind
from .planned import GroupTurn, PlannedPart

UNTIL_GONE = "while what is replaced or deleted exists, too"


class Quota(typing.NamedTuple):
    """A quota of a project: its service's type in the service catalog, and its name there."""

    service: str
    name: str


@dataclass(frozen=True)
class QuotaClaim:
    """The amounts of quotas that one resource takes and releases, with its equal copies.

    :ivar taken: amounts by quota; None: the amount is not known before a step.
    :ivar returned: amounts that are free once the old thing is gone.
    :ivar batch: the batches of a group in which it takes and releases them; None: no batch waits for it.
    """

    path: Path
    taken: Mapping[Quota, int | None] = field(default_factory=dict)
    returned: Mapping[Quota, int | None] = field(default_factory=dict)
    batch: GroupTurn | None = None


def find_exceeded(parts: Sequence[PlannedPart], cloud: CloudFacts) -> Iterator[CloudFinding]:
    """Yield a finding for each quota that an action exceeds, or may exceed."""
    claims = [claim for planned in parts for claim in _claims(planned, cloud)]
    quotas = dict.fromkeys(quota for claim in claims for quota in claim.taken)
    for quota in quotas:
        available = allowance(cloud, *quota)
        if available is not None and available.free is not None:
            yield from _judge(quota, [claim for claim in claims if _concerns(claim, quota)], available)


def _concerns(claim: QuotaClaim, quota: Quota) -> bool:
    return quota in claim.taken or quota in claim.returned


def _claims(planned: PlannedPart, cloud: CloudFacts) -> Iterator[QuotaClaim]:
    def needs(resource: KnownResource | None) -> Mapping[Quota, int | None]:
        if resource is None:
            return {}
        plugin = planned.types[resource.type]
        if _is_of_others(resource, plugin, cloud):
            return {}
        amounts = plugin.quota_needs(resource, planned.stack.known, cloud)
        return _by_quota(amounts, plugin, planned.copies)

    for name, resource in planned.after.items():
        path = (*planned.path, "resources", name)
        if name in planned.stack.new:
            gone = planned.before[name] if name in planned.gone else resource if planned.is_passing else None
            yield QuotaClaim(path, needs(resource), needs(gone), planned.batches.get(name))
        elif name in planned.before:
            change = _change(path, needs(planned.before[name]), needs(resource))
            yield replace(change, batch=planned.batches.get(name))
    for name, resource in planned.before.items():
        if name not in planned.after and name in planned.gone:
            path = (*planned.path, "resources", name)
            yield QuotaClaim(path, returned=needs(resource), batch=planned.batches.get(name))
    for name in planned.copied:
        plugin, _ = planned.gone[name]
        copy = needs_of(plugin.copy_quota, planned.before[name])
        yield QuotaClaim((*planned.path, "resources", name), _by_quota(copy, plugin, planned.copies))


def _is_of_others(resource: KnownResource, plugin: ResourceType, cloud: CloudFacts) -> bool:
    """Return whether a thing may belong to another project or user, whose quotas it takes then."""
    name = plugin.owner_property
    is_open = name in plugin.properties_schema
    return is_open and resource.values.get(name, "unknown") not in (None, cloud.project_id)


def _by_quota(needs: QuotaNeeds, plugin: ResourceType, copies: int) -> Mapping[Quota, int | None]:
    amounts: dict[Quota, int | None] = {}
    for name, amount in needs.items():
        service, _, quota = name.rpartition("/")
        amounts[Quota(service or str(plugin.service), quota)] = None if amount is None else amount * copies
    return {quota: amount for quota, amount in amounts.items() if amount != 0}


def _change(path: Path, old: Mapping[Quota, int | None], new: Mapping[Quota, int | None]) -> QuotaClaim:
    """Return the claim of a resource that is updated in place: it takes the difference only."""
    taken: dict[Quota, int | None] = {}
    returned: dict[Quota, int | None] = {}
    for quota in {**old, **new}:
        before, after = old.get(quota, 0), new.get(quota, 0)
        if before is None or after is None:
            continue  # Nobody knows whether it changes at all.
        if after > before:
            taken[quota] = after - before
        elif after < before:
            returned[quota] = before - after
    return QuotaClaim(path, taken, returned)


def _judge(quota: Quota, claims: Sequence[QuotaClaim], available: Allowance) -> Iterator[CloudFinding]:
    free = available.free
    assert free is not None, "an unlimited quota is not judged"
    taken = _largest_peak(quota, claims)
    open_claims = [claim for claim in claims if claim.taken.get(quota, 0) is None]
    if (least := _least_peak(quota, claims)) > free:
        yield _exceeded(quota, claims, available, least, Certainty.CERTAIN)
    elif taken > free:
        yield _exceeded(quota, claims, available, taken, Certainty.LIKELY)
    elif open_claims:
        yield CloudFinding(
            FindingKind.QUOTA,
            open_claims[0].path,
            f"{_named(quota)}: at least {taken} needed, {free} left; the rest is not known before a step",
            str(taken),
            str(free),
            Certainty.NOT_KNOWN,
        )


def _least_peak(quota: Quota, claims: Sequence[QuotaClaim]) -> int:
    """Return the amount that the action holds at some moment, in whatever order its tasks run."""
    taken = [claim.taken.get(quota) or 0 for claim in claims]
    # An amount that nobody knows may be any: then all that is taken may be free before.
    if any(claim.returned.get(quota, 0) is None for claim in claims):
        return 0
    returned = [claim.returned.get(quota) or 0 for claim in claims]
    total = sum(returned)
    replacing = (own - (total - old) for own, old in zip(taken, returned, strict=True))
    return max([sum(taken) - total, *replacing])


def _largest_peak(quota: Quota, claims: Sequence[QuotaClaim]) -> int:
    """Return the amount above which the action never holds anything, in whatever order its tasks run."""
    peak = sum(claim.taken.get(quota) or 0 for claim in claims if claim.batch is None)
    for group in dict.fromkeys(claim.batch.group for claim in claims if claim.batch is not None):
        held: Counter[int] = Counter()
        for claim in claims:
            if claim.batch is not None and claim.batch.group == group:
                held[claim.batch.turn.taking] += claim.taken.get(quota) or 0
                held[claim.batch.turn.returning + 1] -= claim.returned.get(quota) or 0
        peak += max(0, *itertools.accumulate(held[number] for number in sorted(held)))
    return peak


def _exceeded(
    quota: Quota, claims: Sequence[QuotaClaim], available: Allowance, needed: int, certainty: Certainty
) -> CloudFinding:
    free = available.free or 0
    peak = "" if certainty is Certainty.CERTAIN else f" {UNTIL_GONE}"
    numbers = f"{needed} needed{peak}, {free} left ({available.used} of {available.limit} in use)"
    return CloudFinding(
        FindingKind.QUOTA,
        _first_beyond(free, [(claim.path, claim.taken.get(quota) or 0) for claim in claims]),
        f"{_named(quota)}: {numbers}",
        str(needed),
        str(free),
        certainty,
        f"Make room in the project, ask for less, or ask the operator for a larger quota of {quota.name}.",
    )


def _first_beyond(free: int, amounts: Sequence[tuple[Path, int]]) -> Path:
    """Return the path of the resource with which the sum is above what is left."""
    total = 0
    for path, amount in amounts:
        total += amount
        if total > free:
            return path
    return amounts[-1][0]


def _named(quota: Quota) -> str:
    return f"quota {quota.name} of {quota.service}"
