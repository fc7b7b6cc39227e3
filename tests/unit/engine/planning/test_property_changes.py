"""The values that a preview shows of the properties that change."""

import typing

import pytest
from stoker.engine.planning.property_changes import MOST_SHOWN, GivenProperties, property_changes
from stoker.resources.contract.schema import ANY_NAME, Property
from stoker.sealing.stored import MASK
from stoker.template.residual import mapping, node, quote, sealed

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
    "any": Property("any", update_allowed=True),
}
SECRET = sealed("key.token")
JOINED = node("list_join", ["", ["x", SECRET]])


def properties(values: Json, **trees: Json) -> GivenProperties:
    """Properties whose residuals are their values, but for some."""
    return GivenProperties(values, mapping({**values, **trees}))


def values(before: GivenProperties, after: GivenProperties, **more: Json) -> Json:
    changes = property_changes(SCHEMA, before, after, **more)
    return {name: (change.old, change.new) for name, change in changes.items()}


def test_what_changes_is_named_with_both_values_and_whether_it_replaces() -> None:
    before = properties({"size": 1, "text": "m", "map": {"a": 1}})
    after = properties({"size": 2, "text": "n", "map": {"a": 1}})
    changes = property_changes(SCHEMA, before, after)
    assert list(changes) == ["size", "text"]
    assert [(change.old, change.new, change.requires_replacement) for change in changes.values()] == [
        (1, 2, True),
        ("m", "n", False),
    ]


def test_what_is_not_known_yet_is_left_out() -> None:
    assert values(properties({"size": 1, "text": "m"}), properties({"size": 2}), unknown={"text": ["a"]}) == {
        "size": (1, 2)
    }


@pytest.mark.parametrize("tree", [SECRET, JOINED], ids=["a secret", "made of a secret"])
@pytest.mark.parametrize("first", [True, False])
def test_a_secret_is_masked_on_both_sides(tree: Json, first: bool) -> None:
    secret = properties({"text": "clear"}, text=tree)
    clear = properties({"text": "before"})
    sides = (secret, clear) if first else (clear, secret)
    assert values(*sides) == {"text": (MASK, MASK)}


def test_of_a_map_only_the_secrets_are_masked() -> None:
    before = properties({"map": {"a": "1", "p": "was", "l": ["was", "x"]}})
    after = properties(
        {"map": {"a": "2", "p": "clear", "l": ["clear", "x"]}},
        map={"a": "2", "p": SECRET, "l": [SECRET, "x"]},
    )
    old, new = values(before, after)["map"]
    assert old == {"a": "1", "p": MASK, "l": [MASK, "x"]}
    assert new == {"a": "2", "p": MASK, "l": [MASK, "x"]}
    longer = properties({"map": {"l": ["was", "x", "y"]}})
    assert values(longer, after)["map"][0] == {"l": MASK}, "who knows which of them was the secret"


def test_properties_that_a_function_makes_of_a_secret_are_masked() -> None:
    whole = GivenProperties({"text": "clear", "size": 2}, node("yaql", SECRET))
    assert values(properties({"text": "m", "size": 1}), whole) == {"size": (MASK, MASK), "text": (MASK, MASK)}


def test_sensitive_properties_are_masked_on_each_level() -> None:
    users = [{"name": "a", "password": "p"}]
    assert values(properties({"key": "k"}), properties({"key": "l", "users": users})) == {
        "key": (MASK, MASK),
        "users": (None, [{"name": "a", "password": MASK}]),
    }


def test_a_secret_under_the_old_name_of_a_property_is_masked() -> None:
    after = GivenProperties({"text": "clear"}, mapping({"old_text": SECRET}))
    assert values(properties({"text": "m"}), after) == {"text": (MASK, MASK)}


def test_parameters_that_a_nested_template_hides_are_masked() -> None:
    member = {"type": "c.yaml", "properties": {"password": "p", "other": "o"}}
    before = properties({"map": {}, "text": "m"})
    after = properties({"map": {"r": [member]}, "text": "n"})
    changes = values(before, after, hidden={"password", "text"})
    assert changes == {
        "map": ({}, {"r": [{**member, "properties": {"password": MASK, "other": "o"}}]}),
        "text": (MASK, MASK),
    }
    schema = {ANY_NAME: Property("any")}
    (change,) = property_changes(
        schema, properties({}), properties({"password": "p"}), hidden={"password"}
    ).values()
    assert (change.old, change.new) == (None, MASK)


def test_long_values_are_cut_around_the_first_difference() -> None:
    before = "a" * 5000 + "m" + "b" * 5000
    after = "a" * 5000 + "n" + "b" * 5000
    old, new = values(properties({"text": before}), properties({"text": after}))["text"]
    assert old.startswith("…aaaa")
    assert len(old) == len(new) == MOST_SHOWN + 2
    assert (old.index("m"), new.index("n")) == (21, 21)
    short, long = values(properties({"text": "abc"}), properties({"text": before}))["text"]
    assert (short, long) == ("abc", "a" * MOST_SHOWN + "…")
    whole, cut = values(properties({"map": {"k": "v"}}), properties({"map": {"k": before}}))["map"]
    assert whole == {"k": "v"}
    assert cut.startswith('{"k": "aaa')
    assert len(cut) == MOST_SHOWN + 1


def test_a_secret_is_masked_before_a_value_is_cut() -> None:
    after = properties({"map": {"p": "clear", "x": "a" * 5000}}, map={"p": SECRET, "x": "a" * 5000})
    old, new = values(properties({"map": {"p": "was"}}), after)["map"]
    assert old == {"p": MASK}
    assert new.startswith('{"p": "******"')


@pytest.mark.parametrize(
    ("before", "after", "tree", "shown"),
    [
        ("plain", {"p": "x", "o": 1}, {"p": SECRET, "o": 1}, (MASK, {"p": MASK, "o": 1})),
        ({"p": 1}, "x", SECRET, (MASK, MASK)),
        ("ab", ["x", "y"], [SECRET, "y"], (MASK, [MASK, "y"])),
        ([1, 2, 3, 4, 5, 6], "x", SECRET, (MASK, MASK)),
        ([1], [2], [2], ([1], [2])),
        ({"$fn": "f", "p": "w"}, {"$fn": "f", "p": "x"}, quote({"$fn": "f", "p": "x"}), None),
        ({"$fn": "f", "p": "w"}, {"$fn": "f", "p": "x"}, mapping({"$fn": "f", "p": SECRET}), MASK),
    ],
)
def test_values_of_other_forms_are_masked_where_the_other_one_is(
    before: Json, after: Json, tree: Json, shown: Json
) -> None:
    if shown in (None, MASK):
        shown = tuple({"$fn": "f", "p": shown or text} for text in "wx")
    assert values(properties({"any": before}), properties({"any": after}, any=tree))["any"] == shown


@pytest.mark.parametrize("users", ["text", ["text"], [1, None]])
def test_a_value_of_a_wrong_form_is_shown_as_it_is(users: Json) -> None:
    assert values(properties({}), properties({"users": users})) == {"users": (None, users)}


def test_a_property_whose_name_is_that_of_a_node_hides_no_other_one() -> None:
    schema = {ANY_NAME: Property("any")}
    after = GivenProperties({"$fn": "f", "p": "x"}, mapping({"$fn": "f", "p": SECRET}))
    changes = property_changes(schema, properties({}), after)
    assert {name: change.new for name, change in changes.items()} == {"$fn": "f", "p": MASK}


A, B = "a" * 1000, "b"


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        (A, B, (A, B)),
        (B, A, (B, A)),
        (f"{A}a", B, (f"{A}…", B)),
        (B, f"{A}a", (B, f"{A}…")),
        (A, f"{A}aa", (A, f"…{'a' * 22}")),
        (f"{A}aa", A, (f"…{'a' * 22}", A)),
        (A * 2, A * 3, (f"…{'a' * 20}", f"…{A}…")),
        (f"{A}{'a' * 20}m{'a' * 979}", f"{A}{'a' * 20}n", (f"…{'a' * 20}m{'a' * 979}", f"…{'a' * 20}n")),
    ],
)
def test_a_thousand_characters_of_a_value_are_shown(old: str, new: str, shown: tuple[str, str]) -> None:
    assert values(properties({"text": old}), properties({"text": new}))["text"] == shown


def test_a_map_that_is_cut_is_json_as_people_read_it() -> None:
    _, new = values(properties({"map": {}}), properties({"map": {"k": "ä" * 2000}}))["map"]
    assert new.startswith('{"k": "ää')
