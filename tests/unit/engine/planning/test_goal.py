"""A goal with its environment: which names are hidden, which files and values stay, what is sealed."""

import json
import typing
from dataclasses import replace

import pytest
from stoker.engine.planning.goal import (
    hiding,
    leaves_open,
    read_environment,
    sealed_values,
    secret_parameters,
    stored_environment,
    template_is_secret,
    with_environment,
)
from stoker.engine.planning.requests import EXISTING, Goal
from stoker.template.budget import Budget, BudgetLimits
from stoker.template.compile import Limits
from stoker.template.environment import Environment
from stoker.template.errors import LimitExceeded
from stoker.template.language import CompiledTemplate, ResourceDefinition
from stoker.template.operator_environment import OperatorEnvironment
from stoker.template.residual import node, quote, sealed

Json = typing.Any
HOT = "heat_template_version: 2018-08-31\n"
HIDING: Json = {
    "heat_template_version": "2018-08-31",
    "parameters": {"word": {"type": "string", "hidden": True}, "plain": {"type": "string"}},
}


def completed(
    goal: Goal, template: Json = HIDING, *, tree: bool = True, **limits: Json
) -> tuple[Goal, Environment]:
    checked = Limits(**limits)
    return with_environment(goal, goal.budget or Budget(checked.budget), template, checked, None, tree=tree)


def test_a_root_hides_what_any_template_of_its_tree_hides() -> None:
    inner = f"{HOT}parameters: {{inner: {{type: string, hidden: true}}}}"
    goal = Goal("", files={"inner.yaml": inner}, environment={"encrypted_param_names": ["known"]})
    _, environment = completed(goal)
    assert environment.encrypted_param_names == ["inner", "known", "word"]
    _, environment = completed(goal, tree=False)
    assert environment.encrypted_param_names == ["known"]
    assert hiding(environment, {"b", "a"}).encrypted_param_names == ["a", "b", "known"]


def test_a_root_that_hides_nothing_keeps_its_environment() -> None:
    _, environment = completed(Goal("", environment={"parameters": {"a": 1}}), {"heat_template_version": "x"})
    assert (environment.parameters, environment.encrypted_param_names) == ({"a": 1}, [])


def test_a_search_for_hidden_names_that_takes_too_long_names_the_files() -> None:
    template = {"heat_template_version": "2018-08-31"}
    nested = HOT + "parameters: {p: {type: string, hidden: true}}\n" + "# text\n" * 50_000
    goal = Goal("", files={f"{number}.yaml": nested for number in range(20)})
    with pytest.raises(LimitExceeded) as caught:
        completed(goal, template, budget=BudgetLimits(steps=100))
    assert caught.value.path == ("files",)


@pytest.mark.parametrize(
    ("text", "stays"), [("parameters: {word: x}", False), ("parameters: {plain: x}", True)]
)
def test_an_environment_file_that_names_a_hidden_parameter_is_not_stored(text: str, *, stays: bool) -> None:
    files = {"e.yaml": text, EXISTING: "parameters: {word: y}", "other": "word"}
    hidden = {"type": "string", "hidden": True}
    template = {**HIDING, "parameters": {**HIDING["parameters"], "second": hidden}}
    goal, environment = completed(Goal("", files=files, environment_files=[EXISTING, "e.yaml"]), template)
    assert set(goal.files) == {EXISTING, "other", *(["e.yaml"] if stays else [])}
    assert environment.parameters["word" if not stays else "plain"] == "x"


def test_values_of_parameters_that_the_template_has_no_more_are_dropped() -> None:
    values = {"word": "w", "gone": "g", "own": "o"}
    goal = Goal(
        "", parameters=values, environment={"parameters": values}, retained=frozenset({"word", "gone"})
    )
    kept, environment = completed(goal)
    assert kept.parameters == environment.parameters == {"word": "w", "own": "o"}
    every = replace(goal, retained=frozenset({"word"}))
    kept, environment = completed(every)
    assert kept.parameters == environment.parameters == values


def test_the_operators_environment_is_below_that_of_the_stack() -> None:
    operator = OperatorEnvironment(Environment(parameter_defaults={"word": "low", "plain": "low"}))
    goal = Goal("", environment={"parameter_defaults": {"word": "own"}})
    _, environment = with_environment(goal, Budget(), HIDING, Limits(), operator, tree=True)
    assert environment.defaults == {"word": "own", "plain": "low"}


def test_the_work_is_charged_to_the_budget_of_the_request() -> None:
    budget = Budget()
    nested = f"{HOT}parameters: {{p: {{type: string, hidden: true}}}}\n" + "# text\n" * 5000
    goal = Goal("", files={"x.yaml": nested}, parameters={"word": "w"}, budget=budget)
    completed(goal, tree=False)
    stored = budget.stored
    steps = budget.steps
    completed(goal)
    assert budget.stored == 2 * stored > 0
    assert budget.steps > 2 * steps


def test_an_environment_is_merged_of_files_and_document() -> None:
    budget = Budget()
    assert read_environment(Goal(""), HIDING, budget) == Environment()
    document = {"parameters": {"word": "d"}}
    assert read_environment(Goal("", environment=document), HIDING, budget).parameters == {"word": "d"}
    files = {"e.yaml": "parameters: {word: f, plain: f}"}
    goal = Goal("", files=files, environment_files=["e.yaml"])
    assert read_environment(goal, HIDING, budget).parameters == {"word": "f", "plain": "f"}


@pytest.mark.parametrize("part", ["parameters", "environment"])
def test_parameters_and_environment_are_charged_with_their_names(part: str) -> None:
    large = {"word": "x" * 5000}
    goal = Goal(
        "", **({"parameters": large} if part == "parameters" else {"environment": {"parameters": large}})
    )
    with pytest.raises(LimitExceeded) as caught:
        completed(goal, budget=BudgetLimits(bytes=1000))
    assert caught.value.path == (part,)


# -- templates that are not known yet ---------------------------------------------------------------

LATER = node("get_attr", "other", "value")


@pytest.mark.parametrize(
    ("type_name", "properties", "is_open"),
    [
        ("group", {"resource_def": {"type": "x", "properties": {"a": 1}}}, False),
        ("group", {"resource_def": LATER}, True),
        ("group", {"resource_def": {"type": LATER}}, True),
        ("group", {"resource_def": {"type": "x", "properties": {"a": LATER}}}, False),
        ("group", {"resource_def": {"type": "x", "properties": {"resources": LATER}}}, True),
        ("group", {"resources": [{"template": LATER}]}, True),
        ("group", {"resources": [{"size": LATER}]}, False),
        ("group", {"resources": [1, LATER]}, True),
        ("group", {"size": [LATER]}, False),
        ("group", {"parameters": {"template": LATER}}, False),
        ("group", LATER, True),
        ("group", {"template": node("literal", {"$fn": 1, "template": LATER})}, True),
        ("file:///x.yaml", {"template": LATER}, False),
        ("plain", {"template": LATER}, False),
    ],
)
def test_a_template_is_open_that_is_made_of_values_of_other_resources(
    type_name: str, properties: Json, *, is_open: bool
) -> None:
    resources = {
        "first": ResourceDefinition("first", "plain", "plain", properties={"template": LATER}),
        "r": ResourceDefinition("r", type_name, type_name, properties=properties),
    }
    plan = CompiledTemplate("2018-08-31", "", parameters={}, resources=resources, outputs={})
    assert leaves_open(plan, lambda name: name != "plain") is is_open


# -- secrets of nested stacks -----------------------------------------------------------------------

SECRET = sealed("token")


@pytest.mark.parametrize(
    ("stored", "secret"),
    [
        ({"a": SECRET, "b": 1}, {"a"}),
        ({"parameters": {"a": 1, "b": node("list_join", [SECRET])}}, {"b"}),
        ({"parameters": node("map_merge", [SECRET]), "b": 1}, {"a"}),
        (node("map_merge", [SECRET]), {"a", "b"}),
        (node("map_merge", [LATER]), set()),
        ({"parameters": node("map_merge", [LATER])}, set()),
        (node("literal", {"$fn": 1, "a": SECRET, "b": 2}), {"a"}),
        ({}, {"b"}),
        ({"a": 1}, {"b"}),
    ],
)
def test_a_parameter_is_secret_whose_value_holds_a_secret(stored: Json, secret: set[str]) -> None:
    """The value of a parameter that is not among the properties is judged; here 2 is a secret."""
    assert secret_parameters({"a": 1, "b": 2}, stored, lambda value: value == 2) == secret


@pytest.mark.parametrize(
    ("type_name", "properties", "is_secret"),
    [
        ("OS::Heat::Stack", {"template": SECRET}, True),
        ("OS::Heat::Stack", {"template": "text", "parameters": SECRET}, False),
        ("OS::Heat::Stack", node("map_merge", [SECRET]), True),
        ("OS::Heat::Stack", node("map_merge", [LATER]), False),
        ("file:///x.yaml", {"template": SECRET}, False),
    ],
)
def test_a_template_is_secret_that_is_made_of_a_secret(
    type_name: str, properties: Json, *, is_secret: bool
) -> None:
    assert template_is_secret(type_name, properties) is is_secret


def test_hidden_values_are_sealed_and_the_others_quoted() -> None:
    values = {"a": {"$fn": 1}, "b": [2]}
    assert sealed_values(values, ["b"], json.dumps) == {"a": quote({"$fn": 1}), "b": sealed("[2]")}
    environment = Environment(parameters={"a": 1, "b": 2}, parameter_defaults={"a": 3})
    document = stored_environment(environment, ["b"], json.dumps)
    assert document["parameters"] == {"a": 1, "b": sealed("2")}
    assert document["parameter_defaults"] == {"a": 3}
    document = stored_environment(environment, ["a"], json.dumps)
    assert document["parameters"] == {"a": sealed("1"), "b": 2}
    assert document["parameter_defaults"] == {"a": sealed("3")}
