"""Consequences of an update that its template does not show: what is lost, and who else uses it; pure."""

from collections.abc import Iterator, Sequence

from ...resources.contract.preflight import Certainty, CloudFacts
from .findings import CloudFinding, FindingKind
from .planned import PlannedPart

MOST_USERS = 5
"""Users of a thing that a finding names."""


def find_shrinking(parts: Sequence[PlannedPart]) -> Iterator[CloudFinding]:
    """Yield the groups of which an update deletes members unasked; no cloud is asked."""
    for planned in parts:
        for name, data in planned.stored.items():
            old_group = planned.before.get(name)
            new_group = planned.after.get(name)
            if old_group is None or new_group is None or old_group.type != new_group.type:
                continue
            deleted = planned.types[new_group.type].members_deleted(old_group.values, new_group.values, data)
            if deleted:
                yield CloudFinding(
                    FindingKind.SURPRISE,
                    (*planned.path, "resources", name),
                    f"the update brings it to the size of its template, and deletes {deleted} of its members",
                    certainty=Certainty.CERTAIN,
                    advice="Let the template ask for the present number first.",
                )


def find_surprises(parts: Sequence[PlannedPart], cloud: CloudFacts) -> Iterator[CloudFinding]:
    """Yield what is lost with things that are replaced, and the users of things that are deleted."""
    for planned in parts:
        for name, (plugin, physical_id) in planned.gone.items():
            path = (*planned.path, "resources", name)
            if name in planned.stack.replaced and plugin.lost_with_it:
                yield CloudFinding(
                    FindingKind.SURPRISE,
                    path,
                    f"it is replaced, and {plugin.lost_with_it} with it",
                    certainty=Certainty.CERTAIN,
                    advice="Change it in place, or save what matters first.",
                )
            users = plugin.users_outside(physical_id, planned.stack.own, cloud)
            if users:
                named = ", ".join(users[:MOST_USERS])
                more = f" and {len(users) - MOST_USERS} more" if len(users) > MOST_USERS else ""
                yield CloudFinding(
                    FindingKind.SURPRISE,
                    path,
                    f"it is deleted, but in use outside of the stack by {named}{more}",
                    certainty=Certainty.LIKELY,
                    advice="Its deletion waits for them, and may fail: release it first.",
                )
