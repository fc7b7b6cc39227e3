"""Values under a properties schema: what is taken, what is refused, and with which words."""

import pytest
from stoker.resources.contract.errors import PropertyError
from stoker.resources.contract.properties import (
    changed,
    immutable_changed,
    replacement_needed,
    resolve_properties,
    resolve_stored,
    validate_properties,
)
from stoker.resources.contract.schema import ANY_NAME, Property, SupportStatus, has_attribute
from stoker.template.constraints import AllowedValues, Length, Range

LATER = {"$fn": "get_attr", "args": ["other", "value"]}
SECRET = {"$fn": "sealed", "args": ["token"]}

SERVER = {
    "name": Property("string", required=True, constraints=(Length(maximum=8),)),
    "size": Property("integer", default=1, constraints=(Range(minimum=1, maximum=9),), update_allowed=True),
    "ratio": Property("number"),
    "public": Property("boolean"),
    "labels": Property("map"),
    "tags": Property("list"),
    "extra": Property("any"),
    "zone": Property("string", immutable=True),
    "password": Property("string", sensitive=True, constraints=(Length(minimum=8),)),
    "disk": Property(
        "map",
        schema={
            "gb": Property("integer", required=True, constraints=(Range(minimum=1),)),
            "kind": Property("string", default="ssd", constraints=(AllowedValues(values=("ssd", "hdd")),)),
        },
    ),
    "ports": Property("list", schema=Property("map", schema={"number": Property("integer", required=True)})),
    "numbers": Property("list", schema=Property("integer")),
    "old_name": Property("string", support_status=SupportStatus("HIDDEN")),
}


def property_value(name, value):
    """The resolved value of one property."""
    return resolve_properties(SERVER, {"name": "x", name: value})[name]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("name", "web", "web"),
        ("name", 5, "5"),
        ("name", True, "True"),
        ("size", "5", 5),
        ("size", 5.0, 5),
        ("size", True, 1),
        ("ratio", "5", 5),
        ("ratio", "5.5", 5.5),
        ("ratio", 5.5, 5.5),
        ("ratio", "-1e3", -1000.0),
        ("public", "TRUE", True),
        ("public", "false", False),
        ("public", True, True),
        ("labels", {"a": [1]}, {"a": [1]}),
        ("tags", ["a", 1], ["a", 1]),
        ("tags", ("a",), ["a"]),
        ("extra", {"a": None}, {"a": None}),
        ("disk", {"gb": "7"}, {"gb": 7, "kind": "ssd"}),
        ("ports", [{"number": "1"}, {"number": 2}], [{"number": 1}, {"number": 2}]),
        ("numbers", ["1", 2], [1, 2]),
        # Null is the default, or the type's empty value.
        ("size", None, 1),
        ("ratio", None, 0),
        ("public", None, False),
        ("labels", None, {}),
        ("tags", None, []),
        ("extra", None, None),
        ("name", None, ""),
    ],
)
def test_a_value_is_converted(name, value, expected):
    converted = property_value(name, value)
    assert converted == expected
    assert type(converted) is type(expected)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("name", 1.5, "name: Value must be a string; got 1.5"),
        ("name", ["a"], 'name: Value must be a string; got ["a"]'),
        ("name", "far-too-long", "name: length (12) is out of range (max: 8)"),
        ("size", "five", "size: Value 'five' is not an integer"),
        ("size", 1.5, "size: Value '1.5' is not an integer"),
        ("size", [], "size: Value '[]' is not an integer"),
        ("size", 10, "size: 10 is out of range (min: 1, max: 9)"),
        ("ratio", "much", "ratio: Value 'much' is not a number"),
        ("ratio", "nan", "ratio: Value 'nan' is not a number"),
        ("ratio", float("inf"), "ratio: Value 'Infinity' is not a number"),
        ("ratio", {}, "ratio: Value '{}' is not a number"),
        ("public", 1, 'public: "1" is not a valid boolean'),
        ("public", "yes", 'public: "yes" is not a valid boolean'),
        ("labels", "a=b", 'labels: "a=b" is not a map'),
        ("labels", [], 'labels: "[]" is not a map'),
        ("tags", "a,b", 'tags: "a,b" is not a list'),
        ("tags", {"a": 1}, 'tags: "{"a": 1}" is not a list'),
        ("disk", {}, "disk: Property gb not assigned"),
        ("disk", {"gb": 0}, "disk.gb: 0 is out of range (min: 1)"),
        ("disk", {"gb": 1, "kind": "tape"}, 'disk.kind: "tape" is not an allowed value [ssd, hdd]'),
        (
            "disk",
            {"gb": 1, "kinds": "ssd"},
            'disk: Unknown Property kinds; did you mean "kind"?',
        ),
        ("ports", [{"number": 1}, {}], "ports.1: Property number not assigned"),
        ("ports", [{"number": 1}, 7], 'ports.1: "7" is not a map'),
        ("numbers", [1, "x"], "numbers.1: Value 'x' is not an integer"),
        ("password", "short", "password: The value is not valid; it is secret and not shown"),
    ],
)
def test_a_wrong_value_is_refused_at_run_time_and_at_plan_time(name, value, message):
    for check in (resolve_properties, validate_properties):
        with pytest.raises(PropertyError) as caught:
            check(SERVER, {"name": "x", name: value})
        assert str(caught.value) == message


def test_every_name_of_the_schema_is_resolved_and_defaults_are_filled_in():
    assert resolve_properties(SERVER, {"name": "x"}) == {
        **dict.fromkeys(SERVER),
        "name": "x",
        "size": 1,
    }


def test_a_missing_required_property_is_refused():
    for check in (resolve_properties, validate_properties):
        with pytest.raises(PropertyError, match="^Property name not assigned$"):
            check(SERVER, {})


def test_an_unknown_name_is_refused_without_naming_hidden_ones():
    with pytest.raises(PropertyError) as caught:
        validate_properties(SERVER, {"name": "x", "old_nam": 1})
    assert str(caught.value).startswith("Unknown Property old_nam")
    assert "allowed: disk, extra," in str(caught.value)
    assert "old_name" not in str(caught.value)
    assert caught.value.path == ()


def test_a_hidden_property_still_works():
    assert property_value("old_name", "y") == "y"


def test_defaults_are_not_shared():
    schema = {
        "tags": Property("list", default=["a"]),
        "extra": Property("any", default={"b": []}),
        "labels": Property("map", default={"c": 1}),
    }
    first = resolve_properties(schema, {})
    first["tags"].append("x")
    first["extra"]["b"].append("x")
    first["labels"]["x"] = 1
    assert resolve_properties(schema, {}) == {"tags": ["a"], "extra": {"b": []}, "labels": {"c": 1}}


def test_a_value_that_came_from_a_secret_is_not_in_the_error():
    with pytest.raises(PropertyError) as caught:
        resolve_properties(SERVER, {"name": "x", "disk": {"gb": "hunter2"}}, secret={"disk"})
    assert caught.value.path == ("disk",)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "properties",
    [
        {"name": LATER},
        {"name": SECRET},
        {"name": "x", "size": LATER},
        {"name": "x", "disk": {"gb": LATER}},
        {"name": "x", "disk": LATER},
        {"name": "x", "ports": [{"number": LATER}, LATER]},
        {"name": "x", "extra": [LATER]},
        {"name": "x", "labels": {"a": LATER}},
        LATER,
    ],
)
def test_what_is_deferred_is_passed_over_at_plan_time(properties):
    validate_properties(SERVER, properties)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"size": LATER}, "Property name not assigned"),
        ({"name": [LATER]}, "name: Value must be of type string, not list"),
        ({"name": "x", "size": {"a": LATER}}, "size: Value must be of type integer, not map"),
        ({"name": "x", "disk": [LATER]}, "disk: Value must be of type map, not list"),
        ({"name": "x", "disk": {"kind": LATER}}, "disk: Property gb not assigned"),
        (
            {"name": "x", "disk": {"gb": LATER, "kind": "tape"}},
            'disk.kind: "tape" is not an allowed value [ssd, hdd]',
        ),
        (
            {"name": "x", "disk": {"gb": LATER, "x": 1}},
            "disk: Unknown Property x (allowed: gb, kind)",
        ),
        ({"name": "x", "ports": [LATER, {"number": "x"}]}, "ports.1.number: Value 'x' is not an integer"),
        ({"name": "x", "ports": [{"number": LATER}, {}]}, "ports.1: Property number not assigned"),
        ({"name": "x", "nmae": LATER}, 'Unknown Property nmae; did you mean "name"?'),
    ],
)
def test_what_is_known_beside_deferred_parts_is_checked_at_plan_time(properties, message):
    with pytest.raises(PropertyError) as caught:
        validate_properties(SERVER, properties)
    assert str(caught.value).startswith(message)


def test_plan_time_yields_what_is_known():
    properties = validate_properties(SERVER, {"name": LATER, "size": "3", "disk": {"gb": LATER}})
    assert "name" not in properties
    assert "disk" not in properties
    assert properties["size"] == 3
    assert properties["ratio"] is None


def test_a_literal_that_looks_like_a_function_is_a_literal():
    quoted = {"$fn": "literal", "args": [{"$fn": "get_resource", "args": ["x"]}]}
    properties = validate_properties(SERVER, {"name": "x", "extra": quoted})
    assert properties["extra"] == {"$fn": "get_resource", "args": ["x"]}


def test_all_properties_may_be_such_a_literal():
    schema = {ANY_NAME: Property("any")}
    assert validate_properties(schema, {"$fn": "literal", "args": [{"$fn": 1, "a": LATER}]}) == {"$fn": 1}


def test_stored_properties_are_never_refused():
    assert resolve_stored(SERVER, {"size": "3", "ratio": "much", "gone": 1}) == {
        **dict.fromkeys(SERVER),
        "size": 3,
        "ratio": "much",
        "gone": 1,
    }
    assert resolve_stored(SERVER, {})["size"] == 1


def test_a_schema_may_take_any_name():
    schema = {ANY_NAME: Property("any", update_allowed=True)}
    assert resolve_properties(schema, {"a": 1}) == {"a": 1}
    assert validate_properties(schema, {"a": LATER}) == {}
    assert replacement_needed(schema, {"a"}) == frozenset()


def test_changes_are_found_and_distinguished():
    before = resolve_properties(SERVER, {"name": "x", "size": 1, "tags": ["a"], "zone": "a"})
    after = resolve_properties(SERVER, {"name": "y", "size": 2, "tags": ["a"], "zone": "b"})
    names = changed(SERVER, before, after)
    assert names == {"name", "size", "zone"}
    assert replacement_needed(SERVER, names) == {"name", "zone"}
    assert immutable_changed(SERVER, names) == {"zone"}


@pytest.mark.parametrize(
    ("before", "after", "differs"),
    [
        (1, True, True),
        ({"a": [0]}, {"a": [False]}, True),
        (1, 1.0, False),
        ([1, 2], [2, 1], True),
        ([1], [1, 2], True),
        ({"a": 1}, {"a": 1, "b": None}, True),
        (None, "", True),
        ("1", 1, True),
    ],
)
def test_values_are_compared_as_json(before, after, differs):
    assert bool(changed({}, {"x": before}, {"x": after})) is differs


def test_a_property_that_is_absent_on_one_side_counts_as_none():
    assert changed(SERVER, {}, {"extra": None, "size": 2}) == {"size"}


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Property("text"),
        lambda: Property("string", update_allowed=True, immutable=True),
        lambda: Property("string", schema=Property("string")),
        lambda: Property("list", schema={"a": Property("string")}),
        lambda: Property("map", schema=Property("string")),
        lambda: Property("string", constraints=(Range(minimum=1),)),
    ],
)
def test_a_property_that_contradicts_itself_is_refused(wrong):
    with pytest.raises(ValueError, match="."):
        wrong()


def test_every_type_has_the_attribute_show():
    assert has_attribute({}, "show")
    assert not has_attribute({}, "shown")
