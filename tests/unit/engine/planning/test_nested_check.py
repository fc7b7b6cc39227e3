"""Nested stacks are checked with their stack: names, attributes, counts, limits, and each equal one once."""

import json
import typing
from dataclasses import replace

import pytest
from stoker.engine.compile import GoalCompiler
from stoker.engine.context import Compiled
from stoker.engine.planning.nested_check import TemplateTree
from stoker.engine.planning.requests import PREVIEWED, REVIEWED, Goal, StoredData, Validated
from stoker.resources.contract.children import ChildGoal
from stoker.resources.contract.properties import validate_properties
from stoker.resources.contract.schema import Attribute
from stoker.resources.heat.value import Value
from stoker.resources.nested.base import NestedType
from stoker.resources.registry import ResourceRegistry
from stoker.sealing.sealer import Sealer
from stoker.template.budget import Budget, BudgetLimits
from stoker.template.compile import Identity, Limits
from stoker.template.errors import LimitExceeded, TemplateError, dotted
from stoker.template.language import ResourceDefinition
from stoker.template.residual import node

Json = typing.Any
REGISTRY = ResourceRegistry.installed()
SEALER = Sealer(["A" * 86 + "=="]).of_stack("p", "r")
LATER = {"get_attr": ["text", "value"]}
TEXT = {"type": "OS::Heat::RandomString"}


def hot(resources: Json, **sections: Json) -> Json:
    return {"heat_template_version": "2018-08-31", "resources": resources, **sections}


def value(content: Json) -> Json:
    return {"type": "OS::Heat::Value", "properties": {"value": content}}


INNER = hot(
    {"v": value({"get_param": "word"})},
    parameters={"word": {"type": "string"}, "other": {"type": "string", "default": "o"}},
    outputs={"out": {"value": {"get_attr": ["v", "value"]}}},
)
FILES = {"inner.yaml": json.dumps(INNER)}


def inner(**properties: Json) -> Json:
    return {"type": "inner.yaml", "properties": {"word": "w", **properties}}


def group(count: Json, definition: Json = None, **properties: Json) -> Json:
    body = {"count": count, "resource_def": definition or {"type": "OS::Heat::None"}, **properties}
    return {"type": "OS::Heat::ResourceGroup", "properties": body}


def compiled(
    resources: Json,
    limits: Limits | None = None,
    files: Json = FILES,
    registry: ResourceRegistry = REGISTRY,
    **goal: Json,
) -> Compiled:
    sections = goal.pop("sections", {})
    compiler = GoalCompiler(registry, limits or Limits())
    return compiler.compile(
        Goal(hot(resources, **sections), files=files, **goal), Identity("s", "i", "p"), SEALER
    )


def paths(resources: Json, **goal: Json) -> list[str]:
    """The places of the errors, with the first words of each."""
    try:
        compiled(resources, **goal)
    except TemplateError as error:
        return [f"{dotted(each.path)}: {each.message}" for each in (error, *error.others)]
    return []


NOT_DEFINED = "The Parameter ({}) was not defined in template."
NOT_PROVIDED = "The Parameter ({}) was not provided."


@pytest.mark.parametrize(
    ("properties", "errors"),
    [
        ({"word": LATER}, []),
        ({"word": LATER, "more": 1}, [NOT_DEFINED.format("more")]),
        ({"word": None, "other": LATER}, [NOT_PROVIDED.format("word")]),
        ({"word": None, "more": LATER}, [NOT_DEFINED.format("more"), NOT_PROVIDED.format("word")]),
    ],
)
def test_names_are_checked_where_values_are_not_known_yet(properties: Json, errors: list[str]) -> None:
    resources = {"n": inner(**properties), "text": TEXT}
    assert paths(resources) == [f"resources.n.properties: {error}" for error in errors]
    draft = [error for error in errors if "not provided" not in error]
    found = paths(resources, purpose=Validated())
    assert found == [f"resources.n.properties: {error}" for error in draft]


def test_a_default_of_the_environment_is_a_value_of_a_nested_stack() -> None:
    resources = {"n": inner(word=None, other=LATER), "text": TEXT}
    assert paths(resources, environment={"parameter_defaults": {"word": "x"}}) == []


@pytest.mark.parametrize(
    ("attribute", "exists"),
    [
        ("out", True),
        ("outputs", True),
        ("show", True),
        ("stack_name", True),
        ("no", False),
        ("resource.v", True),
        ("resource.v.value", True),
        ("resource.v,value", True),
        ("resource.no", False),
        ("resource.no.value", False),
    ],
)
def test_an_attribute_of_a_nested_stack_is_an_output_or_one_of_its_resources(
    attribute: str, *, exists: bool
) -> None:
    user = value({"get_attr": ["n", attribute]})
    named = ".".join(attribute.split(",")[0].split(".")[:2])
    text = f"resources.n: The Referenced Attribute (n {named}) is incorrect."
    assert paths({"n": inner(), "user": user}) == ([] if exists else [text])
    assert paths({"n": inner()}, sections={"outputs": {"o": {"value": {"get_attr": ["n", attribute]}}}}) == []


def test_all_resources_of_the_tree_count_each_as_often_as_it_is_made() -> None:
    definition = {"type": "inner.yaml", "properties": {"word": "w"}}
    tree = {"n": inner(), "m": inner(word="other"), "g": group(3, definition), "one": TEXT}
    assert compiled(tree).resources == 4 + 1 + 1 + 3 + 3
    assert compiled(tree, Limits(resources=12)).resources == 12
    with pytest.raises(LimitExceeded, match="more than 11 resources"):
        compiled(tree, Limits(resources=11))
    assert compiled(tree, Limits(resources=0)).resources == 12


def test_what_is_no_group_counts_by_what_is_in_it() -> None:
    empty = {"type": "OS::Heat::Stack", "properties": {"template": json.dumps(hot({}))}}
    assert compiled({"n": empty}, Limits(resources=1), purpose=PREVIEWED).resources == 1


def test_a_group_of_too_many_is_refused_before_they_are_made() -> None:
    with pytest.raises(LimitExceeded, match="more than 20 resources"):
        compiled({"g": group(10**9)}, Limits(resources=20), purpose=PREVIEWED)
    assert compiled({"g": group(19)}, Limits(resources=20), purpose=PREVIEWED).resources == 20


def test_stacks_are_nested_as_deep_as_they_may_be() -> None:
    files = {**FILES, "outer.yaml": json.dumps(hot({"n": inner()}))}
    outer = {"type": "outer.yaml"}
    assert compiled({"o": outer}, Limits(depth=2), files=files).resources == 3
    with pytest.raises(LimitExceeded, match="nested 1 levels deep"):
        compiled({"o": outer}, Limits(depth=1), files=files)


def test_equal_stacks_are_checked_once_and_their_errors_named_with_each() -> None:
    wrong = {"inner.yaml": json.dumps(hot({"v": {"type": "No::Type"}}))}
    found = paths({"a": {"type": "inner.yaml"}, "b": {"type": "inner.yaml"}}, files=wrong)
    assert [line.partition(":")[0] for line in found] == [
        "resources.a.resources.v.type",
        "resources.b.resources.v.type",
    ]


def test_the_bytes_of_equal_stacks_are_charged_as_often_as_they_are_stored() -> None:
    def stored(resources: Json) -> int:
        budget = Budget()
        compiled(resources, budget=budget)
        return budget.stored

    definition = {"type": "inner.yaml", "properties": {"word": "w" * 1000}}
    base = stored({"g": group(1, definition)})
    one_more = stored({"g": group(2, definition)}) - base
    assert one_more > 1000
    assert stored({"g": group(12, definition)}) - base == pytest.approx(11 * one_more, rel=0.02)
    equal, other = ({"a": inner(word="one"), "b": inner(word=word)} for word in ("one", "two"))
    assert stored(equal) == stored(other)
    several = {f"n{number}": inner(word="w" * 1000) for number in range(3)}
    assert stored(several) > 3 * 1000


def test_what_is_uncertain_has_no_errors_and_is_not_there() -> None:
    sections = {
        "parameters": {"on": {"type": "boolean", "default": True}},
        "conditions": {"c": {"get_param": "on"}},
    }
    wrong = {**inner(more=1), "condition": "c"}
    draft = {"sections": sections, "purpose": Validated(keeps_nested=True), "unknown": frozenset({"on"})}
    kept = compiled({"n": wrong, "m": inner()}, **draft)
    assert list(kept.nested) == ["m"]
    good = compiled({"n": {**inner(), "condition": "c"}}, **draft)
    assert list(good.nested) == ["n"]
    deep = {**group(50), "condition": "c"}
    assert compiled({"n": deep, "m": TEXT}, Limits(resources=5), **draft).nested == {}
    with pytest.raises(LimitExceeded):
        compiled({"n": group(50), "m": TEXT}, Limits(resources=5), **draft)


def test_plans_are_kept_for_who_reviews_them() -> None:
    resources = {"n": inner(word={"get_param": "p"}), "g": group(2), "text": TEXT}
    sections = {"parameters": {"p": {"type": "string", "hidden": True, "default": "hush"}}}
    assert compiled(resources, sections=sections).nested == {}
    nested = compiled(resources, sections=sections, purpose=REVIEWED).nested
    assert (nested["n"].branch.secret, nested["n"].branch.depth) == ({"word"}, 1)
    assert list(nested["n"].described["Parameters"]) == ["word", "other"]
    assert (nested["g"].copies, nested["g"].described["Parameters"]) == (2, {})
    assert (nested["n"].stack.resources, nested["g"].stack.resources) == (1, 1)
    plan = nested["n"].stack.plan
    assert plan is not None
    assert list(plan.resources) == ["v"]
    every = compiled({"g": group(2)}, purpose=PREVIEWED).nested["g"]
    assert (every.copies, every.stack.resources) == (1, 2)


def test_values_that_are_not_known_are_unknown_parameters() -> None:
    nested = compiled({"n": inner(other=LATER), "text": TEXT}, purpose=REVIEWED).nested
    assert (nested["n"].branch.unknown, nested["n"].branch.parameters) == ({"other"}, {"word": "w"})
    drafted = compiled({"n": {"type": "inner.yaml"}}, purpose=Validated(keeps_nested=True)).nested
    assert drafted["n"].branch.unknown == {"word"}


def test_the_members_of_a_group_that_are_read_are_charged_before_they_are_made() -> None:
    definition = {"type": "OS::Heat::Value", "properties": {"value": 1}}
    reader = value({"get_attr": ["g", "value"]})
    limits = Limits(resources=0, budget=BudgetLimits(bytes=1_000_000))
    assert compiled({"g": group(1000, definition), "r": reader}, limits).resources == 1002
    with pytest.raises(LimitExceeded, match="bytes of values"):
        compiled({"g": group(10_000, definition), "r": reader}, limits)
    assert compiled({"g": group(LATER, definition), "r": reader, "text": TEXT}, limits).resources == 4


def test_members_that_a_group_has_lost_are_not_made_again() -> None:
    stored = StoredData(lambda: {("g",): {"removed": ["0"]}})
    both = compiled({"g": group(2), "h": group(2)}, purpose=PREVIEWED, stored_data=stored).nested
    plans = [both[name].stack.plan for name in "gh"]
    assert [list(plan.resources) for plan in plans if plan] == [["1", "2"], ["0", "1"]]


PROVIDER = {"environment": {"resource_registry": {"My::Type": "inner.yaml"}}}


def test_a_template_that_is_mapped_to_a_type_takes_its_place() -> None:
    mine = {"type": "My::Type", "properties": {"word": "w"}}
    assert paths({"n": mine}, **PROVIDER) == []
    none = {"environment": {"resource_registry": {"OS::Heat::Value": "inner.yaml"}}}
    [error] = paths({"n": {"type": "OS::Heat::Value", "properties": {"value": 1}}}, **none)
    assert "facade OS::Heat::Value" in error
    files = {**FILES, "general.yaml": json.dumps(hot({}, parameters={"need": {"type": "string"}}))}
    registry = {
        "resource_registry": {"My::Type": "general.yaml", "resources": {"n": {"My::Type": "inner.yaml"}}}
    }
    [error] = paths({"n": mine}, files=files, environment=registry)
    assert error.endswith("Required property need for facade My::Type missing in provider")


def test_a_template_that_is_not_among_the_files_is_refused() -> None:
    assert [line.partition(":")[0] for line in paths({"n": {"type": "gone.yaml"}})] == ["resources.n.type"]


def test_equal_templates_of_other_parameters_are_checked_by_themselves() -> None:
    limited = replace(Limits(), depth=5)
    constrained = json.loads(FILES["inner.yaml"])
    constrained["parameters"]["word"]["constraints"] = [{"length": {"max": 3}}]
    files = {"inner.yaml": json.dumps(constrained)}
    found = paths({"a": inner(), "b": inner(word="long"), "c": inner()}, files=files, limits=limited)
    assert len(found) == 1
    assert found[0].startswith("resources.b.")


def test_equal_groups_count_as_often_as_they_are_made() -> None:
    definition = {"type": "inner.yaml", "properties": {"word": "w" * 5000}}
    assert compiled({"g": group(3, definition), "h": group(3, definition)}).resources == 2 + 3 + 3 + 3 + 3

    def stored(*names: str) -> int:
        budget = Budget()
        compiled({**{name: group(12, definition) for name in names}, "t": TEXT}, budget=budget)
        return budget.stored

    assert stored("g", "h") - stored("g") == pytest.approx(stored("g") - stored(), rel=0.1)


def test_the_size_of_a_stack_is_that_of_all_below_it() -> None:
    def outer(count: int) -> Json:
        files = {"outer.yaml": json.dumps(hot({"g": group(count, value("v" * 1000))}))}
        [child] = compiled({"o": {"type": "outer.yaml"}}, files=files, purpose=REVIEWED).nested.values()
        return child.stack

    assert [outer(count).resources for count in (1, 3)] == [2, 4]
    below = outer(1).children["g"].stack.stored
    assert below > 1000
    assert outer(3).stored - outer(1).stored == 2 * below
    assert outer(1).stored > below


@pytest.mark.parametrize(
    ("resource", "equal"),
    [
        (inner(other="o"), {"type": "inner.yaml", "properties": {"other": "o", "word": "w"}}),
        (group(1, value("v")), group(1, dict(reversed(value("v").items())))),
    ],
    ids=["properties", "definition"],
)
def test_what_differs_in_the_order_of_keys_is_charged_as_what_is_equal(resource: Json, equal: Json) -> None:
    def cost(*resources: Json) -> tuple[int, int]:
        budget = Budget()
        compiled({f"n{number}": each for number, each in enumerate(resources)}, budget=budget)
        return budget.steps, budget.stored

    assert cost(resource, equal) == cost(resource, resource)


def test_a_value_that_a_function_makes_in_a_nested_stack_is_charged_once() -> None:
    def stored(characters: int) -> int:
        budget = Budget()
        files = {"inner.yaml": json.dumps(hot({"v": value({"get_file": "f"})})), "f": "x" * characters}
        compiled({"n": {"type": "inner.yaml"}}, files=files, budget=budget)
        return budget.stored

    assert stored(10_000) - stored(0) == 10_000


def test_the_comparison_of_stacks_is_charged_by_what_it_writes() -> None:
    def steps(characters: int = 0) -> int:
        budget = Budget()
        compiled({"n": inner(word="w" * characters)}, budget=budget)
        return budget.steps

    assert steps(100_000) - steps(50_000) == 100
    assert steps() == 17, "a number that changes with the check"


def test_a_stack_of_a_text_counts_and_reads_its_resource() -> None:
    text = json.dumps(hot({"v": value({"resource_facade": "deletion_policy"})}))
    stack = {"type": "OS::Heat::Stack", "properties": {"template": text}}
    assert compiled({"s": stack}).resources == 2


def test_members_that_share_a_value_are_charged_with_it_each() -> None:
    budget = Budget()
    compiled({"g": group(100, value("v" * 1000))}, purpose=PREVIEWED, budget=budget)
    assert budget.bytes - budget.stored > 100 * 1000


@pytest.mark.parametrize("purpose", [REVIEWED, PREVIEWED])
def test_of_a_group_whose_members_are_not_known_nothing_is_checked(purpose: Json) -> None:
    assert compiled({"g": group(2, LATER), "text": TEXT}, purpose=purpose).nested == {}


def test_requested_attributes_cost_as_much_as_their_outputs() -> None:
    budget = Budget()
    nobody: Json = None
    how = {"keeps": False, "all_members": False, "is_draft": False}
    tree = TemplateTree(REGISTRY, Limits(), {}, nobody, nobody, budget, nobody, **how)
    plugin: Json = REGISTRY.get("OS::Heat::ResourceGroup")
    kind = "OS::Heat::ResourceGroup"
    given = group(7)["properties"]
    definition = ResourceDefinition("g", kind, kind, given, requested_attributes=(("a",), ("b",)))
    known = validate_properties(plugin.properties_schema, given)
    assert tree._charge_members(definition, plugin, known)
    assert budget.bytes == 7 * 2 * 400
    later = {**given, "resource_def": node("get_attr", "text", "value")}
    assert not tree._charge_members(replace(definition, properties=later), plugin, {**known, **later})


def test_a_template_that_is_a_text_is_checked_where_attributes_inside_are_read() -> None:
    text = json.dumps(hot({"v": value({"get_param": "lost"})}))
    nested = {"type": "OS::Heat::Stack", "properties": {"template": text}}
    [error] = paths({"n": nested, "r": value({"get_attr": ["n", "resource.v", "value"]})})
    assert error.startswith("resources.n.resources.v.properties.value")


class Nest(NestedType):
    """A type whose template is a map that it has not made of values."""

    has_member_attributes = True
    attributes_schema = {"resource.v": Attribute()}

    def static_goal(self, values: Json, definition: ResourceDefinition) -> ChildGoal:
        return ChildGoal({"AWSTemplateFormatVersion": "2010-09-09", "Resources": {"v": {"Type": "Lost"}}})


def test_a_template_that_is_a_map_is_checked_where_attributes_inside_are_read() -> None:
    registry = ResourceRegistry({"OS::Heat::Value": Value, "Nest": Nest})
    [error] = paths({"n": {"type": "Nest"}, "r": value({"get_attr": ["n", "resource.v"]})}, registry=registry)
    assert error == "resources.n.Resources.v.Type: The Resource Type (Lost) could not be found."


def test_a_template_takes_the_place_of_what_the_environment_says() -> None:
    mine = {"type": "My::Type", "properties": {"word": "w"}}
    lost = {"My::Type": "gone.yaml", "resources": {"n": {"My::Type": "inner.yaml"}}}
    assert paths({"n": mine}, environment={"resource_registry": lost}) == []
    named = {"OS::Heat::Value": json.dumps(hot({})), **FILES}
    mapped = {"resource_registry": {"OS::Heat::Value": "inner.yaml"}}
    plain = {"n": {"type": "OS::Heat::Value", "properties": {"value": 1}}}
    [error] = paths(plain, files=named, environment=mapped)
    assert "facade OS::Heat::Value" in error
    assert paths(plain, environment=mapped) == [error], "a file with the name of a type is none"
    asking = {**FILES, "asking.yaml": json.dumps(hot({}, parameters={"need": {"type": "string"}}))}
    other = {"resource_registry": {"asking.yaml": "inner.yaml"}}
    named_itself = {"type": "asking.yaml", "properties": {"word": "w"}}
    assert paths({"n": named_itself}, files=asking, environment=other) == [], "a template has no facade"
    wrong = {"inner.yaml": json.dumps(hot({}, parameters={"p": {"type": "numbr"}}))}
    found = paths({"n": {"type": "OS::Heat::Value", "properties": {}}}, files=wrong, environment=mapped)
    assert [line.partition(":")[0] for line in found] == ["resources.n.parameters.p.type"]
