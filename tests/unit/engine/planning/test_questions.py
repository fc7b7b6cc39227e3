"""Values that only the cloud can judge: those that become questions, and the errors of wrong ones."""

import typing
from collections.abc import Collection, Mapping

import pytest
from stoker.engine.planning.questions import MOST, Questions
from stoker.engine.planning.requests import Question
from stoker.resources.contract.plugin import ResourceType
from stoker.resources.contract.schema import Custom, Property
from stoker.resources.registry import ResourceRegistry
from stoker.template.errors import ErrorList, dotted
from stoker.template.language import CompiledTemplate, Parameter, ResourceDefinition

Json = typing.Any
IMAGE = Custom(check_name="glance.image")


class Booted(ResourceType):
    properties_schema = {
        "image": Property("string", constraints=[IMAGE]),
        "own": Property("string", constraints=[Custom("An image of ours.", "glance.image")]),
        "secret": Property("string", constraints=[IMAGE], sensitive=True),
        "images": Property("list", schema=Property("string", constraints=[IMAGE])),
        "local": Property("string", constraints=[Custom(check_name="ip_addr")]),
    }


class Plain(ResourceType):
    properties_schema = {"image": Property("string")}


REGISTRY = ResourceRegistry({"Booted": Booted, "Plain": Plain})


def parameter(name: str, value: Json, description: str | None = None, *, hidden: bool = False) -> Parameter:
    custom = (("glance.image", description), ("ip_addr", None))
    parts = {"supplied": True, "hidden": hidden, "immutable": False, "schema": {}}
    return Parameter(name, "string", value, clear=value, custom=custom, **parts)


def plan_of(*definitions: ResourceDefinition, parameters: Collection[Parameter] = ()) -> CompiledTemplate:
    return CompiledTemplate(
        "2018-08-31",
        "",
        parameters={each.name: each for each in parameters},
        resources={each.name: each for each in definitions},
        outputs={},
    )


def booted(name: str, type_name: str = "Booted", *, external_id: str | None = None, **values: Json) -> Json:
    return ResourceDefinition(name, type_name, type_name, properties=values, external_id=external_id)


class Cloud:
    """It has the image ``good`` only."""

    project_id = "p"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def has_service(self, service_type: str) -> bool:
        return True

    def problems(self, questions: Collection[Question]) -> Mapping[Question, str]:
        self.asked += [each.value for each in questions]
        assert {each.check for each in questions} == {"glance.image"}
        return {each: "there is none" for each in questions if each.value != "good"}


def reported(*plans: CompiledTemplate, below: Collection[str] = ()) -> tuple[list[str], list[str]]:
    """The errors and the warnings."""
    questions = Questions()
    for plan in plans:
        questions.collect(plan, REGISTRY)
    for name in below:
        with questions.below(("resources", name)):
            questions.collect(
                plan_of(booted("in", image=name), parameters=[parameter("q", f"{name}2")]), REGISTRY
            )
    errors = ErrorList()
    warnings = questions.ask(Cloud(), errors)
    lines = [[f"{dotted(each.path)}: {each.message}" for each in found] for found in (errors, warnings)]
    return lines[0], lines[1]


def asked(*plans: CompiledTemplate) -> list[str]:
    questions = Questions()
    for plan in plans:
        questions.collect(plan, REGISTRY)
    cloud = Cloud()
    questions.ask(cloud, ErrorList())
    return cloud.asked


def test_each_value_of_resources_and_parameters_makes_one_question() -> None:
    plan = plan_of(
        booted("there", external_id="x", image="a"),
        booted("gone", "Gone", image="b"),
        booted("plain", "Plain", image="c"),
        booted("one", image="d", local="1.2.3.4"),
        booted("two", image="d", images=["e", "", None, "f"]),
        parameters=[parameter("p", "g"), parameter("many", ["h", "i"])],
    )
    assert asked(plan) == ["g", "h", "i", "d", "e", "f"]
    assert asked(plan_of(booted("one", image=""))) == []
    assert asked() == []


def test_a_request_has_so_many_questions_and_no_more() -> None:
    images = [f"i{number}" for number in range(250)]
    assert asked(plan_of(booted("one", images=images))) == images[:200]
    assert MOST == 200


def test_what_the_cloud_does_not_have_is_an_error_with_its_place() -> None:
    plan = plan_of(
        booted("good", image="good"),
        booted("a", image="x"),
        booted("b", own="y"),
        booted("c", secret="z"),
        booted("d", images=["good", "w"]),
        parameters=[parameter("p", "v"), parameter("q", "u", "Ours."), parameter("h", "t", hidden=True)],
    )
    hidden = "Error validating the value, which is not shown"
    errors, warnings = reported(plan)
    assert warnings == []
    assert errors == [
        ": Parameter 'p' is invalid: Error validating value 'v': there is none",
        ": Parameter 'q' is invalid: Ours.",
        f": Parameter 'h' is invalid: {hidden}",
        "resources.a.properties.image: Error validating value 'x': there is none",
        "resources.b.properties.own: An image of ours.",
        f"resources.c.properties.secret: {hidden}",
        "resources.d.properties.images[1]: Error validating value 'w': there is none",
    ]


def test_what_a_nested_stack_names_is_a_warning_because_the_tree_may_make_it() -> None:
    errors, warnings = reported(plan_of(booted("r", image="x")), below=["n", "good"])
    assert errors == ["resources.r.properties.image: Error validating value 'x': there is none"]
    assert warnings == [
        "resources.n: Parameter 'q' is invalid: Error validating value 'n2': there is none",
        "resources.n.resources.in.properties.image: Error validating value 'n': there is none",
        "resources.good: Parameter 'q' is invalid: Error validating value 'good2': there is none",
    ]


def test_no_value_is_shown_with_a_question() -> None:
    assert "hush" not in repr(Question("glance.image", "hush"))


@pytest.mark.parametrize("plan", [plan_of(), plan_of(booted("plain", "Plain", image="c"))])
def test_without_values_the_cloud_gets_no_request(plan: CompiledTemplate) -> None:
    questions = Questions()
    questions.collect(plan, REGISTRY)
    nobody: Json = None
    assert questions.ask(nobody, ErrorList()) == []
