"""The new size of a scaling group after an adjustment: pure arithmetic, as in Heat."""

import math
from dataclasses import dataclass

CHANGE = "change_in_capacity"
EXACT = "exact_capacity"
PERCENT = "percent_change_in_capacity"
ADJUSTMENTS = (CHANGE, EXACT, PERCENT)


@dataclass(frozen=True)
class Bounds:
    """Bounds of a group's size, both inclusive."""

    least: int
    most: int

    def keep(self, size: float) -> int:
        """Return the size, or the bound that it exceeds."""
        return int(max(self.least, min(self.most, size)))


def new_size(current: int, kind: str, adjustment: float, *, least_step: int | None, bounds: Bounds) -> int:
    """Return the size after an adjustment.

    A percentage is rounded towards zero, but to one member where it is less than that.

    :param kind: one of ADJUSTMENTS.
    :param least_step: how many members a percentage adds or removes at least; None or 0: one.
    """
    if kind == EXACT:
        return bounds.keep(adjustment)
    if kind == PERCENT:
        share = current * adjustment / 100.0
        whole = math.trunc(share) if abs(share) >= 1.0 else (share > 0) - (share < 0)
        if least_step and least_step > abs(whole):
            whole = least_step if whole > 0 else -least_step
        adjustment = whole
    return bounds.keep(current + adjustment)
