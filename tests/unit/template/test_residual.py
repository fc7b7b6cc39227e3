"""The parts of values that an evaluation reads."""

import typing

import pytest
from stoker.template.budget import Budget
from stoker.template.residual import node, partial, sealed


class Large(list[typing.Any]):
    """A list of which nobody reads more than one item."""

    def __iter__(self) -> typing.NoReturn:
        raise AssertionError("it is read as a whole")

    __reversed__ = __iter__


class Values:
    """Implements Lookup with a map that holds a large list and a secret."""

    def __init__(self) -> None:
        self.value = {"items": Large(["a", {"deep": ["b"]}]), "secret": sealed("token")}

    def attribute(self, resource: str, name: str) -> typing.Any:
        return self.value

    def reference_id(self, resource: str) -> typing.Any:
        raise AssertionError

    unseal = reference_id


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["items", 0], "a"),
        (["items", "1", "deep", 0], "b"),
        (["items", -1], {"deep": ["b"]}),
        (["items", 2], None),
        (["items", "none"], None),
        (["none"], None),
        (["none", "deeper"], None),
        (["items", 0, "deeper"], None),
        (["secret"], sealed("token")),
    ],
)
def test_of_a_large_value_only_what_is_selected_is_read(path: list[typing.Any], value: object) -> None:
    assert partial(node("get_attr", "r", "v", *path), Values(), Budget()) == value


def test_a_part_that_is_selected_is_charged_each_time() -> None:
    values = Values()
    values.value["items"][0] = ["x" * 1000] * 10
    budget = Budget()
    for _ in range(3):
        before = budget.bytes
        partial(node("get_attr", "r", "v", "items", 0), values, budget)
        assert budget.bytes - before > 10_000
