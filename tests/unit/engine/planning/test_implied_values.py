"""Values of properties by which resources imply that one waits for another, and what the search costs."""

import typing

import pytest
from stoker.engine.planning.implied import with_implied_dependencies
from stoker.template.budget import Budget
from stoker.template.language import CompiledTemplate, ResourceDefinition
from stoker.template.residual import failing, node, references
from unit.engine.planning.test_implied import REGISTRY, TYPES

Json = typing.Any
NESTED = "OS::Heat::ResourceGroup"


def ref(name: str) -> Json:
    return node("get_resource", name)


def implied(
    resources: dict[str, tuple[str, Json]], nested: Json = None, budget: Budget | None = None
) -> dict[str, set[str]]:
    """The resources that others wait for, besides those that they refer to."""
    definitions = {}
    for name, (kind, properties) in resources.items():
        uses = references(properties)
        required = tuple(sorted({use.resource for use in uses} & resources.keys()))
        definitions[name] = ResourceDefinition(
            name, kind, kind, properties=properties, references=uses, requires=required
        )
    plan = CompiledTemplate("2018-08-31", "", parameters={}, resources=definitions, outputs={})
    declared = {name: TYPES[kind].implied_dependencies for name, (kind, _) in resources.items()}
    contents = {"nested": nested, "inside": REGISTRY.implied_dependencies} if nested is not None else {}
    ordered = with_implied_dependencies(plan, declared, budget or Budget(), **contents)
    assert list(ordered.resources) == sorted(ordered.resources, key=list(ordered.resources).index)
    return {
        name: more
        for name, each in ordered.resources.items()
        if (more := set(each.requires) - set(definitions[name].requires))
    }


@pytest.mark.parametrize(
    ("first", "second", "waits"),
    [
        ("n", "n", True),
        (5, 5, True),
        (5, "5", True),
        ("", "", False),
        (None, None, False),
        (failing("lost"), failing("lost"), False),
        (node("literal", {"$fn": 1}), node("literal", {"$fn": 1}), False),
        (node("str_replace", {"a": 1, "b": 2}), node("str_replace", {"b": 2, "a": 1}), True),
        (node("list_join", [ref("n")]), node("list_join", [ref("n")]), True),
        (ref("n"), ref("n"), True),
        (ref("gone"), ref("gone"), True),
        (["n"], ["n"], False),
    ],
)
def test_resources_that_name_the_same_wait(first: Json, second: Json, *, waits: bool) -> None:
    found = implied(
        {"n": ("Net", {}), "s": ("Subnet", {"network": first}), "p": ("Port", {"network": second})}
    )
    assert found == ({"p": {"s"}} if waits else {})


WAY = {
    "n": ("Net", {}),
    "s": ("Subnet", {"network": ref("n")}),
    "w": ("Interface", {"subnet": ref("s"), "router": "r"}),
}


@pytest.mark.parametrize(
    ("port_id", "waits"),
    [
        (ref("p"), True),
        ("text", False),
        (7, False),
        (node("get_attr", "p", "id"), False),
        (node("list_join", [ref("p")]), False),
        (ref("gone"), False),
    ],
)
@pytest.mark.parametrize("beside", [None, {"g": {"Subnet": ["other"]}}])
def test_only_a_reference_leads_on_to_what_the_other_one_names(
    port_id: Json, beside: Json, *, waits: bool
) -> None:
    resources = {
        **WAY,
        "p": ("Port", {"network": ref("n")}),
        "f": ("Floating", {"port_id": port_id}),
        **({"g": (NESTED, {"count": 1})} if beside else {}),
    }
    found = implied(resources, beside)
    assert found == {"p": {"s"}, **({"f": {"w"}} if waits else {})}


@pytest.mark.parametrize(
    ("value", "waits"),
    [
        (ref("s"), True),
        (node("get_attr", "s", "id"), False),
        (node("list_join", [ref("x")]), False),
        (ref("gone"), False),
        ("text", False),
    ],
)
def test_what_is_inside_leads_on_by_references_only(value: Json, *, waits: bool) -> None:
    """The nested stack has an interface of a subnet; the floating address has a port of its network."""
    resources = {
        "n": ("Net", {}),
        "s": ("Subnet", {"network": ref("n")}),
        "x": ("Net", {}),
        "p": ("Port", {"network": ref("n")}),
        "g": (NESTED, {"resource_def": {"value": value}}),
        "f": ("Floating", {"port_id": ref("p")}),
    }
    found = implied(resources, {"g": {"Interface": [value]}})
    assert found.get("f", set()) == ({"g"} if waits else set())


def test_each_declaration_of_what_may_be_inside_is_read() -> None:
    """Two types declare the same of subnets; the declaration of routers comes behind them."""
    resources = {
        "g": (NESTED, {"resource_def": {"gateway": "n"}}),
        "f": ("Floating", {"floating": "n"}),
    }
    assert implied(resources, {"g": {"Router": ["n"]}}) == {"f": {"g"}}


def test_nothing_waits_for_what_waits_for_it_already() -> None:
    resources = {
        "s": ("Subnet", {"network": "n", "value": node("get_attr", "a", "x")}),
        "a": ("Net", {"value": node("list_join", [ref("b"), ref("c")])}),
        "b": ("Net", {"value": ref("g")}),
        "c": ("Net", {"value": ref("g")}),
        "g": (NESTED, {"resource_def": {"network": "n"}}),
    }
    assert implied(resources, {"g": {"Port": ["n"]}}) == {}


def test_each_search_is_charged_by_what_it_reads_and_finds() -> None:
    """The numbers change with the search: 5 steps for each dependency, and 1 for each value."""

    def steps(*names: str) -> int:
        every: dict[str, tuple[str, Json]] = {
            **WAY,
            "p": ("Port", {"network": ref("n")}),
            "q": ("Port", {"network": ref("n")}),
            "f": ("Floating", {"port_id": ref("p")}),
            "g": (NESTED, {"resource_def": {"value": ref("n")}}),
            "h": (NESTED, {"resource_def": {"value": [ref("g"), "x", {"y": 1}]}}),
            "i": ("Port", {"network": ref("h"), "value": ref("q")}),
        }
        budget = Budget()
        nested = {name: {"Subnet": [ref("n")], "Port": [ref("n")]} for name in names if name in "gh"}
        implied({name: each for name, each in every.items() if name in names}, nested or None, budget)
        return budget.steps

    assert steps("n", "s") == 0
    assert steps("n", "s", "p") == 7
    assert steps("n", "s", "p", "q") == 14
    assert steps("n", "s", "w", "p", "f") == 15
    assert steps("n", "s", "w", "p", "q", "f", "g", "h", "i") == 194
    budget = Budget()
    through: Json = {
        **WAY,
        "g": (NESTED, {"value": ref("n")}),
        "f": ("Floating", {"port_id": ref("g")}),
    }
    assert implied(through, {"g": {"Port": [ref("n")]}}, budget)["f"] == {"w"}
    assert budget.steps == 54
