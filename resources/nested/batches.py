"""In which steps a group is changed: pure arithmetic, as Heat does it (heat/scaling/rolling_update.py)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Batch:
    """One step.

    :ivar size: members after it.
    :ivar updates: how many members get the new definition by it, new ones among them.
    """

    size: int
    updates: int


def batches(
    wanted: int, current: int, *, most: int, in_service: int, surplus_counts: bool = True
) -> list[Batch]:
    """The steps from a group of `current` members to one of `wanted`, all of the new definition.

    :param most: members changed at once; at least 1.
    :param in_service: members that are not touched at any moment, as far as there are that many.
    :param surplus_counts: members beyond what was there and what is wanted, made so that others can be
        changed, count as updated: they stay, and old ones go.  False: they are the ones that go again.
    """
    steps: list[Batch] = []
    updated = 0
    while updated < current or current != wanted:
        untouched = min(in_service, wanted, current)
        changes = min(most, max(wanted - updated, 0))
        size = changes + max(min(current, wanted - changes), untouched)
        steps.append(Batch(size, changes))
        surplus = 0 if surplus_counts else max(size - max(current, wanted), 0)
        updated += changes - surplus
        current = size
    return steps
