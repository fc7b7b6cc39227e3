"""The batches of a rolling update: pure arithmetic, as in Heat (heat/scaling/rolling_update.py)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Batch:
    """One step of a rolling update.

    :ivar size: members after it.
    :ivar updates: how many members get the new definition in it, new ones included.
    """

    size: int
    updates: int


def batches(
    target: int, current: int, *, most: int, in_service: int, surplus_counts: bool = True
) -> list[Batch]:
    """Return the steps from a group of `current` members to one of `target`, all of the new definition.

    :param most: members changed at once; at least 1.
    :param in_service: members that are not touched at any moment, as far as the group has that many.
    :param surplus_counts: extra members, created so that others can be changed, count as updated: they stay,
        and old ones are deleted.  False: the extra members are deleted again.
    """
    steps: list[Batch] = []
    updated = 0
    while updated < current or current != target:
        untouched = min(in_service, target, current)
        changes = min(most, max(target - updated, 0))
        size = changes + max(min(current, target - changes), untouched)
        steps.append(Batch(size, changes))
        surplus = 0 if surplus_counts else max(size - max(current, target), 0)
        updated += changes - surplus
        current = size
    return steps
