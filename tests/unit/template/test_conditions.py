"""Conditions: their definitions, and what hangs on them."""

import itertools

import pytest
from stoker.template.budget import Budget, BudgetLimits
from stoker.template.compile import Identity, Limits, Source, compile_template
from stoker.template.conditions import Conditions
from stoker.template.errors import InvalidReference, LimitExceeded, TemplateError, ValueUnknown
from stoker.template.functions.table import VERSIONS
from stoker.template.language import Parameter

NEW = "2021-04-16"
PARAMETERS = {
    "yes": {"type": "boolean", "default": True},
    "no": {"type": "boolean", "default": False},
    "zone": {"type": "string", "default": "east"},
    "secret": {"type": "string", "default": "hush", "hidden": True},
    "sizes": {"type": "json", "default": {"small": [1, None], "big": {"x": "y"}}},
    "names": {"type": "comma_delimited_list", "default": "a,b"},
    "which": {"type": "string", "default": "on"},
}
RESOURCE = {"type": "OS::Heat::None"}


def compiled(version=NEW, **sections):
    template = {"heat_template_version": version, "parameters": PARAMETERS, **sections}
    identity = Identity("stack", "id", "project")
    return compile_template(Source(template), identity=identity, limits=Limits(), seal=lambda value: "token")


def truth(condition, **conditions):
    """The condition as a resource's, as a definition and in an if: they must agree."""
    sections = {"conditions": {"c": condition, **conditions}} if not isinstance(condition, str) else {}
    sections = sections or {"conditions": conditions}
    tested = "c" if "c" in sections["conditions"] else condition
    plan = compiled(
        resources={"r": {**RESOURCE, "condition": condition}, "s": {**RESOURCE, "condition": tested}},
        outputs={"o": {"value": {"if": [condition, "true", "false"]}}},
        **sections,
    )
    answers = {"r" in plan.resources, "s" in plan.resources, plan.outputs["o"].value == "true"}
    assert len(answers) == 1
    return answers.pop()


def failure(condition, **sections):
    with pytest.raises(TemplateError) as caught:
        compiled(conditions={"c": condition}, resources={"r": {**RESOURCE, "condition": "c"}}, **sections)
    return str(caught.value)


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        (True, True),
        (False, False),
        ({"get_param": "yes"}, True),
        ({"get_param": "no"}, False),
        ({"not": True}, False),
        ({"not": {"get_param": "no"}}, True),
        ({"and": [True, {"get_param": "yes"}]}, True),
        ({"and": [True, True, False]}, False),
        ({"or": [False, {"get_param": "yes"}]}, True),
        ({"or": [False, False, False]}, False),
        ({"equals": [{"get_param": "zone"}, "east"]}, True),
        ({"equals": [{"get_param": "zone"}, "west"]}, False),
        ({"equals": [{"get_param": ["sizes", "small", 0]}, 1]}, True),
        ({"equals": [{"get_param": ["sizes", "small", 1]}, None]}, True),
        ({"equals": [{"get_param": ["sizes", "huge"]}, ""]}, True),
        ({"equals": [{"get_param": ["sizes", {"get_param": "which"}]}, ""]}, True),
        ({"equals": [{"get_param": "sizes"}, {"small": [1, None], "big": {"x": "y"}}]}, True),
        ({"equals": [{"get_param": "secret"}, "hush"]}, True),
        ({"equals": [{"get_param": "OS::stack_name"}, "stack"]}, True),
        ({"equals": [{"get_param": ["OS::stack_name", "x"]}, ""]}, True),
        ({"equals": ["1", 1]}, False),
        ({"contains": [{"get_param": "zone"}, ["east", "west"]]}, True),
        ({"contains": ["c", {"get_param": "names"}]}, False),
        ({"yaql": {"expression": "$.data.len() > 1", "data": {"get_param": "names"}}}, True),
        ({"not": {"or": [False, {"and": [True, {"equals": [1, 2]}]}]}}, True),
    ],
)
def test_truth(condition, value):
    assert truth(condition) is value


def test_conditions_use_each_other_by_name_in_any_order():
    definitions = {
        "on": True,
        "off": {"not": "on"},
        "both": {"and": ["on", "off"]},
        "either": {"or": ["on", "off"]},
    }
    names = ("on", "off", "both", "either")
    assert [truth(name, **definitions) for name in names] == [True, False, False, True]


def test_a_function_may_give_the_name_of_a_condition():
    assert truth({"not": {"get_param": "which"}}, on=True) is False


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (1, "conditions.c: a condition must be true or false, not 1"),
        (["a"], 'conditions.c: a condition must be true or false, not ["a"]'),
        ({"get_param": "zone"}, 'conditions.c: a condition must be true or false, not "east"'),
        ({"equals": [1]}, "conditions.c.equals: must be of the form [value_1, value_2]"),
        ({"and": [True]}, "conditions.c.and: must be a list of at least two conditions"),
        ({"or": True}, "conditions.c.or: must be a list of at least two conditions"),
        ({"and": [True, 3]}, "conditions.c.and.1: a condition must be true or false, not 3"),
        (
            {"not": "cc"},
            'conditions.c.not: Invalid condition "cc". The template has no such condition; did',
        ),
        (
            {"get_param": "zoen"},
            'conditions.c.get_param: the template has no parameter "zoen"; did you mean "zone"?',
        ),
        (
            {"get_param": {"a": "b"}},
            'conditions.c.get_param: the parameter\'s name must be a string, not {"a": "b"}',
        ),
        ({"get_param": []}, "conditions.c.get_param: the parameter's name must be a string, not []"),
        (
            {"not": {"get_param": []}},
            "conditions.c.not.get_param: the parameter's name must be a string, not",
        ),
        (
            {"not": {"get_param": {"a": "b"}}},
            "conditions.c.not.get_param: the parameter's name must be a string, not",
        ),
        (
            {"not": {"equals": "secret"}},
            "conditions.c.not.equals: must be of the form [value_1, value_2]",
        ),
        ({"a": 1, "b": 2}, 'conditions.c: a condition must be true or false, not {"a": 1, "b": 2}'),
        ({"contains": ["a", 1]}, "conditions.c.contains: the second argument must be a list, not 1"),
        ({"yaql": {"expression": "("}}, 'conditions.c.yaql: cannot evaluate "("'),
    ],
)
def test_a_value_that_is_no_condition_is_refused_with_its_path(condition, words):
    assert failure(condition).startswith(words)


def test_definitions_that_nobody_uses_are_checked_too():
    with pytest.raises(InvalidReference) as caught:
        compiled(
            conditions={"unused": {"not": "other"}, "used": True},
            resources={"r": {**RESOURCE, "condition": "used"}},
        )
    assert str(caught.value).startswith(
        'conditions.unused.not: Invalid condition "other". The template has no such condition; '
    )


@pytest.mark.parametrize("used", ["lacking", "computed"])
def test_only_the_use_of_a_condition_without_its_parameter_is_refused(used):
    conditions = {"lacking": {"equals": [{"get_param": "absent"}, 1]}, "computed": {"not": "lacking"}}
    assert compiled(conditions=conditions, resources={"r": RESOURCE}).resources.keys() == {"r"}
    with pytest.raises(InvalidReference, match='conditions.lacking.* has no parameter "absent"'):
        compiled(conditions=conditions, resources={"r": {**RESOURCE, "condition": used}})


def test_a_circle_of_conditions_is_shown_with_its_members():
    with pytest.raises(TemplateError) as caught:
        compiled(conditions={"a": {"not": "b"}, "b": {"and": ["c", True]}, "c": {"or": ["b", False]}})
    text = str(caught.value)
    assert text == "conditions.b: conditions depend on each other in a circle: b -> c -> b"


@pytest.mark.parametrize("section", [["c"], "c", 1])
def test_the_section_must_be_a_map(section):
    with pytest.raises(TemplateError, match=r"^conditions: must be a map, not (a list|a string|a number)$"):
        compiled(conditions=section)


def test_a_resource_whose_condition_is_false_does_not_exist():
    plan = compiled(
        resources={
            "off": {**RESOURCE, "condition": False, "properties": {"x": {"get_param": "unknown"}}},
            "on": {**RESOURCE, "condition": True, "depends_on": ["off", "other"]},
            "null": {**RESOURCE, "condition": None},
            "other": RESOURCE,
        }
    )
    assert set(plan.resources) == {"on", "null", "other"}
    assert plan.resources["on"].depends_on == ("other",)


@pytest.mark.parametrize("tree", [{"get_resource": "off"}, {"get_attr": ["off", "show"]}])
def test_what_is_not_there_cannot_be_referred_to(tree):
    with pytest.raises(InvalidReference) as caught:
        compiled(
            resources={
                "off": {**RESOURCE, "condition": False},
                "on": {**RESOURCE, "properties": {"x": tree}},
            }
        )
    name = next(iter(tree))
    text = 'The specified reference "off" (in on.Properties.x) is incorrect. '
    hint = f'The resource "off" does not exist: its condition is false (resources.on.properties.x.{name})'
    assert str(caught.value) == text + hint


def test_only_the_chosen_side_of_an_if_is_looked_at():
    off = {"off": {**RESOURCE, "condition": False}}
    tree = {"if": [False, {"get_resource": "off"}, {"if": [True, "b", {"get_param": "unknown"}]}]}
    assert compiled(resources=off, outputs={"o": {"value": tree}}).outputs["o"].value == "b"


def test_the_body_of_a_resource_that_is_not_there_is_still_checked():
    with pytest.raises(
        TemplateError,
        match=r'^"propreties" is not a valid keyword inside a resource definition; did',
    ):
        compiled(resources={"off": {**RESOURCE, "condition": False, "propreties": {}}})


def test_an_output_whose_condition_is_false_is_null():
    outputs = {"o": {"value": {"get_param": "unknown"}, "condition": {"get_param": "no"}, "description": "d"}}
    output = compiled(outputs=outputs).outputs["o"]
    assert (output.value, output.description, output.references) == (None, "d", ())


@pytest.mark.parametrize("at", ["resources", "outputs"])
def test_a_wrong_condition_is_shown_where_it_is_used(at):
    body = {**RESOURCE} if at == "resources" else {"value": 1}
    with pytest.raises(InvalidReference) as caught:
        compiled(conditions={"near": True}, **{at: {"x": {**body, "condition": "naer"}}})
    assert str(caught.value) == (
        f'{at}.x.condition: Invalid condition "naer". '
        'The template has no such condition; did you mean "near"?'
    )


@pytest.mark.parametrize(
    ("tree", "value"),
    [
        ({"a": {"if": [False, 1]}, "b": {"if": [True, 2]}}, {"b": 2}),
        ([{"if": [False, 1]}, {"if": [True, 2]}], [2]),
        ({"if": [False, 1]}, None),
        ({"list_join": [",", ["a", {"if": [False, "b"]}, "c"]]}, "a,c"),
        ({"map_merge": [{"a": 1}, {"if": [False, {"a": 2}]}]}, {"a": 1}),
        ({"get_param": ["sizes", {"if": [False, "small"]}, "big", "x"]}, "y"),
        ({"repeat": {"for_each": {"x": ["a", {"if": [False, "b"]}]}, "template": "x"}}, ["a"]),
        ({"if": [False, 1, {"if": [True, 3]}]}, 3),
    ],
)
def test_an_if_without_its_third_argument_leaves_the_item_out(tree, value):
    assert compiled(outputs={"o": {"value": tree}}).outputs["o"].value == value


@pytest.mark.parametrize(
    ("version", "args"),
    [(NEW, [True]), (NEW, [True, 1, 2, 3]), (NEW, "x"), ("2018-08-31", [True, 1]), (NEW, {"a": 1})],
)
def test_the_form_of_an_if(version, args):
    with pytest.raises(TemplateError) as caught:
        compiled(version, outputs={"o": {"value": {"if": args}}})
    words = "must be of the form [condition, value if true, value if false]"
    assert str(caught.value) == f"outputs.o.value.if: {words}"


def test_a_condition_on_a_secret_shows_only_its_truth():
    tree = {"if": [{"equals": [{"get_param": "secret"}, "hush"]}, "right", "wrong"]}
    plan = compiled(outputs={"o": {"value": tree}})
    assert plan.outputs["o"].value == "right"
    assert "hush" not in repr(plan)


@pytest.mark.parametrize(
    "condition",
    [
        {"get_param": "secret"},
        {"not": {"get_param": ["secret"]}},
        {"contains": [1, {"get_param": "secret"}]},
        {"get_param": {"get_param": "secret"}},
        {"yaql": {"expression": {"get_param": "secret"}}},
        {"yaql": {"expression": {"get_param": "secret"}, "data": 1}},
        {"and": [True, {"equals": [{"get_param": "secret"}]}]},
    ],
)
def test_an_error_about_a_secret_does_not_contain_it(condition):
    with pytest.raises(TemplateError, match=r"^conditions\.c.*the value of a hidden parameter") as caught:
        compiled(conditions={"c": condition}, resources={"r": {**RESOURCE, "condition": "c"}})
    error = caught.value
    while error is not None:
        assert "hush" not in str(error)
        error = error.__cause__ or error.__context__


def evaluated(definitions, version=VERSIONS[NEW], **values):
    """Check these conditions in their order; a parameter that is None has no value yet."""
    parameters = {
        name: Parameter(name, "json", value, True, False, False, {}, clear=value, is_known=value is not None)
        for name, value in values.items()
    }
    budget = Budget(BudgetLimits(steps=5000))
    mappings = {"M": {"x": {"list": [1, 2], "map": {"a": 1}, "text": "a"}}}
    conditions = Conditions(definitions, version, parameters, {}, budget, mappings)
    for name in definitions:
        conditions.check(name)
    return conditions


@pytest.mark.parametrize(
    ("condition", "steps"),
    [
        (True, 0),
        ({"equals": [1, 1]}, 3),
        ({"equals": [[1, 1, 1], 1]}, 3 + 4),
        ({"equals": [{"a": 1, "b": 1}, 1]}, 3 + 3),
        ({"equals": [{"get_param": "text"}, 1]}, 3),
        ({"equals": [{"get_param": "list"}, 1]}, 3 + 39),
        ({"equals": [{"get_param": "map"}, 1]}, 3 + 39),
    ],
)
def test_a_condition_costs_its_lists_and_maps_and_the_size_of_parameters(condition, steps):
    values = {"text": "x" * 9999, "list": ["x" * 9999], "map": {"a": "x" * 9999}}
    assert evaluated({"c": condition}, **values).budget.steps == 15 + steps


@pytest.mark.parametrize(("key", "is_charged"), [("list", True), ("map", True), ("text", False)])
def test_a_list_or_map_that_a_function_returns_is_charged(key, is_charged):
    condition = {"Fn::Equals": [{"Fn::FindInMap": ["M", "x", key]}, 1]}
    assert (evaluated({"c": condition}, VERSIONS["2010-09-09"]).budget.bytes > 0) is is_charged


def test_a_condition_that_many_name_is_evaluated_once():
    numbers = {f"c{index}": {"and": [f"c{index + 1}", f"c{index + 2}"]} for index in range(30)}
    assert evaluated({**numbers, "c30": True, "c31": True}).evaluate("c0", ()) is True


@pytest.mark.parametrize("length", [20, 21])
def test_twenty_computed_names_may_lead_from_one_to_the_next(length):
    others = {f"other{index}": True for index in range(30)}
    names = {f"c{index}": {"get_param": ["next", f"c{index}"]} for index in range(1, length)}
    chain = {**names, f"c{length}": True}
    values = {f"c{index}": f"c{index + 1}" for index in range(1, length)}
    if length == 20:
        assert evaluated({**chain, **others}, next=values).evaluate("c1", ()) is True
    else:
        with pytest.raises(LimitExceeded, match="more than 20 computed names"):
            evaluated({**others, **chain}, next=values)


@pytest.mark.parametrize("form", [lambda name: {"and": [True, name]}, lambda name: {"get_param": name}])
def test_names_in_lists_and_parameters_may_lead_far(form):
    names = [f"c{index}" for index in range(51)]
    chain = {name: form(target) for name, target in itertools.pairwise(names)}
    conditions = evaluated({**chain, names[-1]: True}, **{name: name for name in names})
    assert conditions.evaluate("c0", ()) is True


def test_a_condition_is_unknown_as_long_as_its_parameter_is():
    conditions = evaluated({"c": {"not": "d"}, "d": {"get_param": "late"}}, late=None)
    for name in ("c", "d"):
        with pytest.raises(ValueUnknown, match=f'the value of the condition "{name}" is not known'):
            conditions.evaluate(name, ())
