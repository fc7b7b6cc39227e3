"""The cost of folding, the depth of what it makes, and the functions that need the whole template."""

import pytest
from stoker.template.compile import Identity, Limits, Source, compile_template
from stoker.template.errors import LimitExceeded, TemplateError
from stoker.template.fold import FoldScope, fold, fold_parts
from stoker.template.functions.table import VERSIONS
from stoker.template.language import MAX_VALUE_DEPTH, Parameter, measure
from stoker.template.residual import ResidualError, evaluate, is_failing

NEW = VERSIONS["2021-04-16"]
LETTERS = ["a"] * 76


def scope_with(**fields):
    of_template = {"files": {}, "resources": frozenset({"server"}), "disabled": frozenset(), "parameters": {}}
    return FoldScope(
        **{
            "version": NEW,
            "pseudo": {},
            "functions": NEW.functions,
            "condition": lambda condition, path: condition,
            **of_template,
            **fields,
        }
    )


def compiled(template, **fields):
    identity = Identity("stack", "id", "project")
    return compile_template(Source(template, **fields), identity=identity, limits=Limits(), seal=str)


def parameter(kind, value):
    return Parameter("p", kind, value, supplied=True, hidden=False, immutable=False, schema={})


class Answers:
    def reference_id(self, resource):
        return f"id of {resource}"


@pytest.mark.parametrize(
    ("tree", "steps"),
    [
        ("text", 0),
        ([], 1),
        ({}, 1),
        ([1, 2, 3], 4),
        ({"a": 1, "b": 2}, 3),
        ([[], [{}]], 3 + 1 + 2 + 1),
        # The map, the argument and its list; then 79 parts are searched for a node, and 76 are joined.
        ({"list_join": ["", LETTERS]}, 2 + 3 + 77 + 79 // 8 + 76),
    ],
)
def test_each_part_of_a_tree_is_a_step(tree, steps):
    scope = scope_with()
    fold(tree, scope, ())
    assert scope.budget.steps == steps


PARAMETER = {"list": ["x" * 100, {"k": "y"}]}
MAP = {"a": {"b": ["z"]}}


@pytest.mark.parametrize(
    ("tree", "sizes"),
    [
        ({"list_join": ["-", ["ab", "c"]]}, [4]),
        ({"list_concat": [["ab"], [1]]}, [measure(["ab", 1]).bytes]),
        ({"get_param": "p"}, [measure(PARAMETER).bytes]),
        ([{"get_param": "p"}, {"get_param": "p"}], [measure(PARAMETER).bytes] * 2),
        ({"get_param": ["p", "list"]}, [measure(PARAMETER["list"]).bytes]),
        ({"get_param": "text"}, [4]),
        ({"get_file": "f"}, [7]),
        ({"Fn::FindInMap": ["M", "a", "b"]}, [measure(["z"]).bytes]),
    ],
)
def test_each_value_that_is_stored_is_charged(tree, sizes):
    parameters = {"p": parameter("json", PARAMETER), "text": parameter("string", "text")}
    of_format = {"version": VERSIONS["2012-12-12"], "functions": VERSIONS["2012-12-12"].functions}
    scope = scope_with(
        parameters=parameters,
        files={"f": "content"},
        mappings={"M": MAP},
        **of_format if "Fn::FindInMap" in tree else {},
    )
    fold(tree, scope, ())
    assert scope.budget.stored == sum(sizes)


@pytest.mark.parametrize("function", ["get_param", "list_concat"])
def test_a_value_may_not_be_too_deep_where_it_is_put(function):
    """The path has the name of the function, which is not in the value."""
    value = ["x"]
    for _ in range(99):
        value = [value]
    scope = scope_with(parameters={"p": parameter("json", value)})
    tree = {"get_param": "p"} if function == "get_param" else {"list_concat": [value]}
    around = ("l",) * (MAX_VALUE_DEPTH - 101)
    fold(tree, scope, around)
    with pytest.raises(LimitExceeded, match=f"deeper than {MAX_VALUE_DEPTH} levels"):
        fold(tree, scope, (*around, "l"))


def test_the_items_of_a_tuple_are_folded():
    """The template of a resource type may have tuples."""
    assert fold(({"list_join": ["", ["a", "b"]]},), scope_with(), ()) == ["ab"]
    value, errors = fold_parts(("a", {"get_param": "p"}, {"get_param": "q"}), scope_with(), ())
    assert value[0] == "a"
    assert [error.path for error in errors] == [(1, "get_param"), (2, "get_param")]


@pytest.mark.parametrize(
    "tree",
    [
        {"get_resource": {"get_param": "name"}},
        {"get_attr": [{"get_param": "name"}, "x"]},
        {"get_file": {"get_param": "name"}},
        {"get_param": {"get_param": "name"}},
    ],
)
def test_a_name_that_is_not_known_yet_makes_a_value_that_fails(tree):
    template = {
        "heat_template_version": "2021-04-16",
        "parameters": {"name": {"type": "string", "default": "server"}},
        "resources": {"server": {"type": "OS::Nova::Server"}},
        "outputs": {"o": {"value": [tree]}},
    }
    value = compiled(template, unknown=frozenset({"name"})).outputs["o"].value
    assert is_failing(value)
    with pytest.raises(ResidualError, match="name is not known"):
        evaluate(value, Answers())


WRONG = {"get_param": 1}


@pytest.mark.parametrize(
    ("tree", "path"),
    [
        ({"list_join": [",", [WRONG]]}, "list_join.1.0.get_param"),
        ({"if": [{"not": "c"}, 1, 2]}, "if.0.not"),
        ({"if": [True, WRONG, 2]}, "if.1.get_param"),
        ({"if": [False, 1, WRONG]}, "if.2.get_param"),
        ({"if": "abc"}, "if"),
        ({"Fn::FindInMap": [{"Fn::GetAtt": ["r", "a"]}, "b", "c"]}, "Fn::FindInMap.0"),
    ],
)
def test_an_error_inside_functions_has_the_innermost_path(tree, path):
    body = {"Value": tree} if "Fn::FindInMap" in tree else {"value": tree}
    hot = {"heat_template_version": "2021-04-16", "outputs": {"o": body}}
    cfn = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Resources": {"r": {"Type": "OS::Heat::None"}},
        "Outputs": {"o": body},
    }
    with pytest.raises(TemplateError) as caught:
        compiled(cfn if "Value" in body else hot)
    assert ".".join(map(str, caught.value.path[3:])) == path


def test_ref_means_the_resource_where_that_may_exist_beside_a_parameter_of_its_name():
    template = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Parameters": {"x": {"Type": "String", "Default": "text"}, "on": {"Type": "String", "Default": "1"}},
        "Conditions": {"c": {"Fn::Equals": [{"Ref": "on"}, "1"]}},
        "Resources": {"x": {"Type": "OS::Heat::None", "Condition": "c"}},
        "Outputs": {"o": {"Value": {"Ref": "x"}}},
    }
    value = compiled(template, unknown=frozenset({"on"})).outputs["o"].value
    assert evaluate(value, Answers()) == "id of x"
