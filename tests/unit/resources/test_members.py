"""Members of lists of the cloud are found by an index."""

import typing

from stoker.resources.contract import Members
from stoker.resources.openstack.lists import named

Json = typing.Any


class Counted(dict[str, Json]):
    """A member that counts how often it is looked at."""

    looks = 0

    def get(self, key: str, default: Json = None) -> Json:
        Counted.looks += 1
        return super().get(key, default)


def test_a_list_is_gone_through_once_for_all_values_that_are_looked_up() -> None:
    things = Members([Counted(id=f"i{number}", name=f"n{number}") for number in range(50)])
    Counted.looks = 0
    for number in range(50):
        assert named(things, f"i{number}") == named(things, f"n{number}") == things[number]
    assert Counted.looks == 100, "once for the ids, once for the names"


def test_a_member_is_found_by_a_text_in_a_field_or_in_a_list_of_it() -> None:
    things = Members(
        [
            {"id": "1", "groups": ["a", "b"], "name": "same"},
            {"id": "2", "groups": ["b"], "name": "same"},
            # A service may tell anything.
            {"id": 3, "groups": {"b": 1}, "name": None},
            {},
        ]
    )
    assert [thing["id"] for thing in things.where("groups", "b")] == ["1", "2"]
    assert things.where("groups", "c") == things.where("nothing", "b") == ()
    assert named(things, "same") is named(things, "3") is named(None, "1") is None
    assert len(things) == 4
