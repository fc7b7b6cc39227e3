"""The values that a preview shows of the properties that change."""

import typing

import pytest
from stoker.planning.property_changes import MOST_SHOWN, GivenProperties, property_changes
from stoker.resources.schema import ANY_NAME, Property
from stoker.sealing.stored import MASK
from stoker.template.residual import mapping, node, sealed

Json = typing.Any
SCHEMA = {
    "size": Property("integer"),
    "text": Property("string", update_allowed=True),
    "key": Property("string", update_allowed=True, sensitive=True),
    "map": Property("map", update_allowed=True),
    "users": Property(
        "list",
        update_allowed=True,
        schema=Property(
            "map", schema={"name": Property("string"), "password": Property("string", sensitive=True)}
        ),
    ),
    "old_text": Property("string", alias_of="text"),
}
SECRET = sealed("key.token")
JOINED = node("list_join", ["", ["x", SECRET]])


def given(values: Json, **trees: Json) -> GivenProperties:
    """Properties whose residuals are their values, but for some."""
    return GivenProperties(values, mapping({**values, **trees}))


def values(before: GivenProperties, after: GivenProperties, **more: Json) -> Json:
    found = property_changes(SCHEMA, before, after, **more)
    return {name: (change.old, change.new) for name, change in found.items()}


def test_what_changes_is_named_with_both_values_and_whether_it_replaces() -> None:
    before = given({"size": 1, "text": "m", "map": {"a": 1}})
    after = given({"size": 2, "text": "n", "map": {"a": 1}})
    found = property_changes(SCHEMA, before, after)
    assert list(found) == ["size", "text"]
    assert [(one.old, one.new, one.requires_replacement) for one in found.values()] == [
        (1, 2, True),
        ("m", "n", False),
    ]


def test_what_is_not_known_yet_is_left_out() -> None:
    assert values(given({"size": 1, "text": "m"}), given({"size": 2}), unknown={"text": ["a"]}) == {
        "size": (1, 2)
    }


@pytest.mark.parametrize("tree", [SECRET, JOINED], ids=["a secret", "made of a secret"])
@pytest.mark.parametrize("first", [True, False])
def test_a_secret_is_masked_on_both_sides(tree: Json, first: bool) -> None:
    secret, clear = given({"text": "clear"}, text=tree), given({"text": "before"})
    sides = (secret, clear) if first else (clear, secret)
    assert values(*sides) == {"text": (MASK, MASK)}


def test_of_a_map_only_the_secrets_are_masked() -> None:
    before = given({"map": {"a": "1", "p": "was", "l": ["was", "x"]}})
    after = given(
        {"map": {"a": "2", "p": "clear", "l": ["clear", "x"]}},
        map={"a": "2", "p": SECRET, "l": [SECRET, "x"]},
    )
    old, new = values(before, after)["map"]
    assert old == {"a": "1", "p": MASK, "l": [MASK, "x"]}
    assert new == {"a": "2", "p": MASK, "l": [MASK, "x"]}
    longer = given({"map": {"l": ["was", "x", "y"]}})
    assert values(longer, after)["map"][0] == {"l": MASK}, "who knows which of them was the secret"


def test_properties_that_a_function_makes_of_a_secret_are_masked() -> None:
    whole = GivenProperties({"text": "clear", "size": 2}, node("yaql", SECRET))
    assert values(given({"text": "m", "size": 1}), whole) == {"size": (MASK, MASK), "text": (MASK, MASK)}


def test_sensitive_properties_are_masked_on_each_level() -> None:
    users = [{"name": "a", "password": "p"}]
    assert values(given({"key": "k"}), given({"key": "l", "users": users})) == {
        "key": (MASK, MASK),
        "users": (None, [{"name": "a", "password": MASK}]),
    }


def test_a_secret_under_the_old_name_of_a_property_is_masked() -> None:
    after = GivenProperties({"text": "clear"}, mapping({"old_text": SECRET}))
    assert values(given({"text": "m"}), after) == {"text": (MASK, MASK)}


def test_parameters_that_a_nested_template_hides_are_masked() -> None:
    member = {"type": "c.yaml", "properties": {"password": "p", "other": "o"}}
    before, after = given({"map": {}, "text": "m"}), given({"map": {"r": [member]}, "text": "n"})
    found = values(before, after, hidden={"password", "text"})
    assert found == {
        "map": ({}, {"r": [{**member, "properties": {"password": MASK, "other": "o"}}]}),
        "text": (MASK, MASK),
    }
    schema = {ANY_NAME: Property("any")}
    (one,) = property_changes(schema, given({}), given({"password": "p"}), hidden={"password"}).values()
    assert (one.old, one.new) == (None, MASK)


def test_long_values_are_cut_around_the_first_difference() -> None:
    before, after = "a" * 5000 + "m" + "b" * 5000, "a" * 5000 + "n" + "b" * 5000
    old, new = values(given({"text": before}), given({"text": after}))["text"]
    assert old.startswith("…aaaa")
    assert len(old) == len(new) == MOST_SHOWN + 2
    assert (old.index("m"), new.index("n")) == (21, 21)
    short, long = values(given({"text": "abc"}), given({"text": before}))["text"]
    assert (short, long) == ("abc", "a" * MOST_SHOWN + "…")
    whole, cut = values(given({"map": {"k": "v"}}), given({"map": {"k": before}}))["map"]
    assert whole == {"k": "v"}
    assert cut.startswith('{"k": "aaa')
    assert len(cut) == MOST_SHOWN + 1


def test_a_secret_is_masked_before_a_value_is_cut() -> None:
    after = given({"map": {"p": "clear", "x": "a" * 5000}}, map={"p": SECRET, "x": "a" * 5000})
    old, new = values(given({"map": {"p": "was"}}), after)["map"]
    assert old == {"p": MASK}
    assert new.startswith('{"p": "******"')
