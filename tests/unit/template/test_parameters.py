"""Parameters: how they are declared, where their values come from, and how they are shown."""

import json

import pytest
from oslo_utils import strutils
from stoker.template import scalars
from stoker.template.compile import Identity, Limits, Source, compile_template, describe
from stoker.template.environment import parse_environment
from stoker.template.errors import (
    ImmutableParameter,
    LimitExceeded,
    ParameterMissing,
    TemplateError,
    UnknownParameter,
)
from stoker.template.parameters import MASK, check_immutable, parameter_strings

NEW = "2021-04-16"


def compiled(declarations, parameter_values=None, environment=None, version=NEW):
    template = {"heat_template_version": version, "parameters": declarations}
    return compile_template(
        Source(template, environment=parse_environment(environment), parameters=parameter_values or {}),
        identity=Identity("stack", "id", "project"),
        limits=Limits(),
        seal=lambda value: "token",
    ).parameters


def failure(declarations, parameter_values=None, environment=None, error=TemplateError):
    with pytest.raises(error) as caught:
        compiled(declarations, parameter_values, environment)
    return str(caught.value)


@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        ("string", "text", "text"),
        ("string", "", ""),
        ("string", 1, "1"),
        ("string", 1.5, "1.5"),
        ("string", True, "True"),
        ("number", 7, 7),
        ("number", "7", 7),
        ("number", "-7", -7),
        ("number", "1.5", 1.5),
        ("number", 0, 0),
        ("number", "1e3", 1000.0),
        ("boolean", True, True),
        ("boolean", "TRUE", True),
        ("boolean", "yes", True),
        ("boolean", "on", True),
        ("boolean", 1, True),
        ("boolean", "off", False),
        ("boolean", "f", False),
        ("boolean", 0, False),
        ("comma_delimited_list", "a,b", ["a", "b"]),
        ("comma_delimited_list", "a, b,", ["a", " b", ""]),
        ("comma_delimited_list", "", []),
        ("comma_delimited_list", ["a", 1, True], ["a", "1", "True"]),
        ("comma_delimited_list", [], []),
        ("json", {"a": [1, None]}, {"a": [1, None]}),
        ("json", '{"a": 1}', {"a": 1}),
        ("json", "[1]", [1]),
        ("json", [1], [1]),
        ("json", "", {}),
        ("json", 7, 7),
        ("json", "7", 7),
        ("json", True, True),
        ("json", '"text"', "text"),
        ("string", ["a", 1], "['a', 1]"),
        ("string", {"a": 1}, "{'a': 1}"),
    ],
)
def test_a_value_becomes_one_of_its_type_wherever_it_comes_from(kind, written, value):
    for parameters in (
        compiled({"p": {"type": kind}}, {"p": written}),
        compiled({"p": {"type": kind}}, None, {"parameters": {"p": written}}),
        compiled({"p": {"type": kind}}, None, {"parameter_defaults": {"p": written}}),
        compiled({"p": {"type": kind, "default": written}}),
    ):
        assert parameters["p"].value == value
        assert type(parameters["p"].value) is type(value)
        assert parameters["p"].clear == value


@pytest.mark.parametrize(
    ("kind", "written", "words"),
    [
        ("number", "seven", 'must be a finite number, not "seven"'),
        ("number", True, "must be a number, not true"),
        ("number", [1], "must be a number, not [1]"),
        ("number", "nan", 'must be a finite number, not "nan"'),
        ("number", "1e999", 'must be a finite number, not "1e999"'),
        ("boolean", "maybe", 'must be one of: 0, 1, f, false, n, no, off, on, t, true, y, yes, not "maybe"'),
        ("boolean", 2, "must be one of: 0, 1"),
        ("comma_delimited_list", 1, "must be a list, or a string with commas, not 1"),
        ("comma_delimited_list", [["a"]], 'must be a list of strings, not [["a"]]'),
        ("comma_delimited_list", [None], "must be a list of strings, not [null]"),
        ("json", "{", "must be JSON: "),
        ("json", "text", "must be JSON: "),
        ("json", "[NaN]", 'must be JSON: NaN is not JSON, not "[NaN]"'),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_its_place(kind, written, words):
    assert failure({"p": {"type": kind}}, {"p": written}).startswith(f"parameters.p: {words}")
    assert failure({"p": {"type": kind, "default": written}}).startswith(f"parameters.p.default: {words}")


@pytest.mark.parametrize("value", [["a"], {"a": 1}])
def test_a_nested_stacks_string_takes_no_list_and_no_map(value):
    template = {"heat_template_version": NEW, "parameters": {"p": {"type": "string"}}}
    with pytest.raises(TemplateError, match=r"^parameters\.p: must be a string, not "):
        compile_template(
            Source(template, parameters={"p": value}, facade={}),
            identity=Identity("stack", "id", "project"),
            limits=Limits(),
            seal=lambda value: "token",
        )


def test_a_number_among_json_has_no_length():
    declared = {"p": {"type": "json", "constraints": [{"length": {"min": 1}}]}}
    assert failure(declared, {"p": 5}) == "parameters.p: 5 has no length"


def test_the_request_wins_over_the_environment_and_that_over_its_defaults_and_the_templates():
    declared = {"p": {"type": "string", "default": "template"}}
    environment = {"parameters": {"p": "environment"}, "parameter_defaults": {"p": "defaults", "other": 1}}
    defaults = {"parameter_defaults": environment["parameter_defaults"]}
    parameters = [
        compiled(declared, {"p": "request"}, environment)["p"],
        compiled(declared, {"p": None}, environment)["p"],
        compiled(declared, None, environment)["p"],
        compiled(declared, None, defaults)["p"],
        compiled(declared)["p"],
    ]
    assert [item.value for item in parameters] == [
        "request",
        "defaults",
        "environment",
        "defaults",
        "template",
    ]
    assert [item.supplied for item in parameters] == [True, True, True, True, False]


def test_a_parameter_without_any_value_is_named():
    text = "The Parameter (p) was not provided. It has no default (parameters.p)"
    assert failure({"p": {"type": "string"}}, error=ParameterMissing) == text
    assert failure({"p": {"type": "string", "default": None}}, {"p": None}, error=ParameterMissing) == text


@pytest.mark.parametrize("where", ["request", "environment"])
def test_a_value_for_no_parameter_is_named_with_the_nearest_one(where):
    parameter_values = {"colour": "red"}
    declared = {"color": {"type": "string", "default": "x"}}
    options = (
        {"parameter_values": parameter_values}
        if where == "request"
        else {"environment": {"parameters": parameter_values}}
    )
    text = "The Parameter (colour) was not defined in template. "
    hint = 'The template has no parameter "colour"; did you mean "color"? (parameters.colour)'
    assert failure(declared, error=UnknownParameter, **options) == text + hint


def test_defaults_of_the_environment_may_be_for_other_templates():
    assert compiled({}, None, {"parameter_defaults": {"elsewhere": 1}}) == {}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("string", "parameters.p: must be a map with at least a type"),
        (
            {},
            "parameters.p.type: must be one of: string, number, comma_delimited_list, json, boolean; not",
        ),
        ({"type": "strnig"}, "parameters.p.type: must be one of: string, number"),
        ({"type": ["string"]}, "parameters.p.type: must be one of: string, number"),
        (
            {"type": "string", "defualt": 1},
            'parameters.p: "defualt" is not a key of a parameter; did you mean "default"?',
        ),
        ({"type": "string", "hidden": "maybe"}, "parameters.p.hidden: must be true or false"),
        ({"type": "string", "immutable": 3}, "parameters.p.immutable: must be true or false"),
        ({"type": "string", "tags": "a"}, "parameters.p.tags: must be a list of strings"),
        ({"type": "string", "tags": [1]}, "parameters.p.tags: must be a list of strings"),
        (
            {"type": "string", "constraints": {"length": 1}},
            "parameters.p.constraints: must be a list of constraints",
        ),
    ],
)
def test_a_wrong_declaration_is_refused_with_its_place(body, words):
    assert failure({"p": body}, {"p": "x"}).startswith(words)


def test_the_section_must_be_a_map():
    assert failure(["p"]) == "parameters: must be a map of parameters"
    assert compiled(None) == {}


def test_empty_keys_count_as_absent():
    keys = ("label", "description", "hidden", "immutable", "constraints", "tags", "schema")
    body = {"type": "string", "default": "x", **dict.fromkeys(keys)}
    parameter = compiled({"p": body})["p"]
    assert (parameter.hidden, parameter.immutable, parameter.tags, parameter.value) == (False, False, (), "x")


def deep(levels):
    return json.loads("[" * levels + "]" * levels)


@pytest.mark.parametrize("written", [deep(101), json.dumps(deep(500))])
def test_json_that_is_too_deep_to_be_walked_is_refused(written):
    with pytest.raises(TemplateError, match=r"^parameters\.p: .*deeper than 100 levels"):
        compiled({"p": {"type": "json"}}, {"p": written})
    assert compiled({"p": {"type": "json"}}, {"p": deep(100)})


def test_an_error_shows_the_beginning_of_a_long_value_only():
    assert len(failure({"p": {"type": "number"}}, {"p": "x" * 100_000})) < 300


def test_an_environment_that_is_too_deep_is_refused():
    with pytest.raises(LimitExceeded, match="the environment is deeper than 100 levels"):
        parse_environment({"parameters": {"p": deep(200)}})


SECRET = {"p": {"type": "string", "hidden": True, "constraints": [{"length": {"min": 5}}]}}


def test_a_hidden_value_is_sealed_and_shown_as_stars():
    parameter = compiled(SECRET, {"p": "hunter2"})
    assert parameter["p"].value == {"$fn": "sealed", "args": ["token"]}
    assert parameter["p"].clear == "hunter2"
    assert "hunter2" not in repr(parameter)
    assert parameter_strings(parameter) == {"p": MASK}


@pytest.mark.parametrize("kind", ["number", "json", "boolean", "comma_delimited_list"])
def test_an_error_about_a_hidden_value_does_not_contain_it(kind):
    secret = {"number": "hush", "json": "hush", "boolean": "hush", "comma_delimited_list": [["hush"]]}[kind]
    with pytest.raises(TemplateError) as caught:
        compiled({"p": {"type": kind, "hidden": True}}, {"p": secret})
    assert str(caught.value) == f"parameters.p: must be a {kind}"
    assert caught.value.__cause__ is None
    assert "hush" not in repr(caught.value.__context__)


def test_an_error_of_a_constraint_does_not_contain_a_hidden_value():
    with pytest.raises(TemplateError) as caught:
        compiled(SECRET, {"p": "hush"})
    assert str(caught.value) == "parameters.p: the value does not satisfy the constraint length"
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("string", "a", "a"),
        ("number", 1.5, "1.5"),
        ("boolean", "yes", "True"),
        ("comma_delimited_list", ["a", "b"], "a,b"),
        ("json", {"a": [1]}, '{"a": [1]}'),
    ],
)
def test_values_are_shown_as_strings(kind, value, text):
    assert parameter_strings(compiled({"p": {"type": kind}}, {"p": value})) == {"p": text}


def test_an_update_may_not_change_an_immutable_parameter():
    declared = {name: {"type": "string", "immutable": name != "free"} for name in ("a", "b", "free")}
    old = compiled(declared, {"a": "1", "b": "1", "free": "1"})
    check_immutable(old, compiled(declared, {"a": "1", "b": "1", "free": "2"}))
    with pytest.raises(
        ImmutableParameter, match=r"^The following parameters are immutable and may not be updated: a, b$"
    ):
        check_immutable(old, compiled(declared, {"a": "2", "b": "2", "free": "1"}))
    # A parameter that is new to the stack may have any value.
    check_immutable({}, compiled(declared, {"a": "2", "b": "2", "free": "1"}))


def test_a_declaration_is_described_as_heat_does():
    constraints = [{"length": {"min": 1, "max": 9}, "description": "Short."}, {"allowed_pattern": "[a-z]*"}]
    body = {"type": "string", "default": "a", "description": "d", "constraints": constraints, "tags": ["t"]}
    template = {
        "heat_template_version": NEW,
        "parameters": {"p": body, "h": {"type": "json", "hidden": True, "default": {"a": 1}}},
    }
    description = describe({**template, "parameter_groups": [{"label": "g", "parameters": ["p"]}]})
    assert description["Description"] == "No description"
    assert description["ParameterGroups"] == [{"label": "g", "parameters": ["p"]}]
    assert description["Parameters"]["p"] == {
        "Type": "String",
        "Description": "d",
        "NoEcho": "false",
        "Label": "p",
        "Default": "a",
        "MinLength": 1,
        "MaxLength": 9,
        "AllowedPattern": "[a-z]*",
        "ConstraintDescription": "Short.",
        "Tags": ["t"],
    }
    assert description["Parameters"]["h"] == {
        "Type": "Json",
        "Description": "",
        "NoEcho": "true",
        "Label": "h",
        "Default": {"a": 1},
    }


def test_the_words_for_truth_values_are_those_of_oslo_utils() -> None:
    assert set(strutils.TRUE_STRINGS) == scalars.TRUE
    assert set(strutils.FALSE_STRINGS) == scalars.FALSE


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            [{"Key": "a", "Value": None}, {"Key": 1}],
            [".member.0.Key=a", ".member.0.Value=", ".member.1.Key=1"],
        ),
        (["a", None], ["a", ""]),
        ("a,b", ["a", "b"]),
    ],
)
def test_a_nested_stack_gets_lists_as_heat_hands_them_on(value, expected):
    section = {"p": {"type": "comma_delimited_list"}, "j": {"type": "json"}}
    source = Source(
        {"heat_template_version": NEW, "parameters": section},
        parameters={"p": value, "j": [{"k": None}]},
        facade={},
    )
    parameters = compile_template(
        source, identity=Identity("stack", "id", "project"), limits=Limits(), seal=str
    ).parameters
    assert parameters["p"].value == expected
    assert parameters["j"].value == [{"k": None}]
