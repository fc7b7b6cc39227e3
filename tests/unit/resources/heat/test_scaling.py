"""How many members of a scaling group an update deletes that nobody has asked to delete."""

import pytest
from stoker.resources.heat.autoscaling_group import AutoScalingGroup


def sizes(least: int, most: int, capacity: int | None) -> dict[str, int | None]:
    return {"min_size": least, "max_size": most, "desired_capacity": capacity, "cooldown": None}


@pytest.mark.parametrize(
    ("former", "wanted", "members", "deleted"),
    [
        # The request stays the same, and the group has more.
        (sizes(1, 9, 2), sizes(1, 9, 2), 5, 3),
        (sizes(1, 9, None), sizes(1, 9, 1), 5, 4),
        (sizes(1, 9, 5), sizes(1, 9, 5), 3, 0),
        # Somebody asks for another number; it may also have fewer than it was asked for, as after a failure.
        (sizes(3, 9, None), sizes(1, 9, 2), 3, 0),
        (sizes(1, 9, 5), sizes(1, 9, 2), 3, 0),
        (sizes(1, 9, 2), sizes(1, 9, 4), 5, 0),
        # The greatest number is lowered, or no number is asked for any more.
        (sizes(1, 9, None), sizes(1, 2, None), 5, 3),
        (sizes(1, 9, 2), sizes(1, 4, 4), 5, 1),
        (sizes(1, 9, 1), sizes(1, 9, None), 5, 0),
        ({}, sizes(1, 9, 1), 5, 0),
    ],
)
def test_members_that_an_update_deletes_unasked_are_counted(
    former: dict[str, int | None], wanted: dict[str, int | None], members: int, deleted: int
) -> None:
    assert AutoScalingGroup().members_deleted(former, wanted, {"names": ["m"] * members}) == deleted
