"""All errors of a goal are named at once, and none of them is only a consequence of another."""

import typing
from collections.abc import Collection, Mapping
from dataclasses import replace

import pytest
import yaml
from stoker.engine.compile import GoalCompiler
from stoker.engine.planning.requests import Goal, Question, TypeForbidden
from stoker.resources.registry import ResourceRegistry
from stoker.sealing.sealer import Sealer
from stoker.template.budget import BudgetLimits
from stoker.template.compile import Identity, Limits
from stoker.template.errors import MOST_ERRORS, LimitExceeded, TemplateError, dotted

Json = typing.Any
REGISTRY = ResourceRegistry.installed()
SEALER = Sealer(["A" * 86 + "=="]).of_stack("p", "r")


def error_of(goal: Goal, limits: Limits | None = None) -> TemplateError:
    compiler = GoalCompiler(REGISTRY, limits or Limits())
    with pytest.raises(TemplateError) as caught:
        compiler.compile(goal, Identity("s", "i", "p"), SEALER)
    return caught.value


def places(goal: Goal) -> list[str]:
    error = error_of(goal)
    return [dotted(each.path) for each in (error, *error.others)]


EVERYWHERE = """
heat_template_version: 2021-04-16
parameters:
  size: {type: number, default: big}
  name: {type: string, default: ab, constraints: [{length: {min: 5}}, {range: {min: 1}}]}
  free: {type: string}
conditions:
  wrong: {equals: [{get_param: nothing}, 1]}
  follows: {not: wrong}
resources:
  one:
    type: OS::Heat::TestResource
    condition: follows
    properties: {value: {get_param: size}, no: 1}
  two:
    type: OS::Heat::RandomString
    depends_on: [three, nowhere]
    deletion_policy: Keep
    properties: {length: long, sequence: abc, lenght: 1}
  three:
    type: OS::Heat::Value
    depends_on: four
    properties: {value: {list_join: [",", {get_param: name}]}}
  four:
    type: OS::Heat::Value
    depends_on: three
    properties: {value: {get_attr: [one, output]}, type: number}
outputs:
  o: {value: {get_attr: [five, value]}}
"""


def test_an_error_of_one_part_hides_none_of_another() -> None:
    assert places(Goal(EVERYWHERE, parameters={"more": 1})) == [
        "parameters.size.default",
        "parameters.name.constraints[1]",
        "parameters.name.default",
        "parameters.more",
        "parameters.free",
        "conditions.wrong.equals[0].get_param",
        "resources.two.depends_on",
        "resources.two.deletion_policy",
        "resources",
        "outputs.o.value.get_attr",
    ]
    fewer = EVERYWHERE.replace("big", "1").replace("default: ab, ", "").replace(", {range: {min: 1}}", "")
    assert places(Goal(fewer, parameters={"free": "x", "name": "abcde"}))[-4:] == [
        "outputs.o.value.get_attr",
        "resources.two.properties",
        "resources.two.properties.length",
        "resources.two.properties.sequence",
    ]


NESTED = """
heat_template_version: 2021-04-16
parameters:
  length: {type: number, default: many}
resources:
  low: {type: low.yaml, properties: {wrong: {get_attr: [text, value]}, other: {get_attr: [text, value]}}}
  text: {type: "OS::Heat::RandomString", properties: {length: long, salt: [1]}}
"""
LOW = """
HeatTemplateFormatVersion: 2012-12-12
Parameters:
  Size: {Type: Number, Default: x}
Resources:
  a: {Type: "OS::Heat::Value", Properties: {type: word, value: {Ref: none}}}
"""


def test_the_errors_of_nested_stacks_are_among_them() -> None:
    body = yaml.safe_load(
        """
        heat_template_version: "2021-04-16"
        resources:
          group:
            type: OS::Heat::ResourceGroup
            properties: {count: 2, resource_def: {type: mine.yaml, properties: {length: 1}}}
          beside: {type: mine.yaml}
          gone: {type: gone.yaml}
        """
    )
    files = {"mine.yaml": NESTED, "low.yaml": LOW}
    inside = [
        "parameters.length.default",
        "resources.text.properties.length",
        "resources.text.properties.salt",
        "resources.low.properties",
        "resources.low.properties",
        "resources.low.Parameters.Size.Default",
        "resources.low.Resources.a.Properties.value.Ref",
        "resources.low.Resources.a.Properties.type",
    ]
    alone = {**body, "resources": {name: body["resources"][name] for name in ("beside", "gone")}}
    paths = places(Goal(alone, files=files))
    assert paths == [*(f"resources.beside.{path}" for path in inside), "resources.gone.type"]
    assert len(places(Goal(body, files=files))) == MOST_ERRORS
    grouped = {**body, "resources": {"group": body["resources"]["group"]}}
    assert places(Goal(grouped, files=files)) == [f"resources.group.resources.0.{path}" for path in inside]


def test_a_template_in_cloudformations_format_has_its_names_in_all_of_them() -> None:
    text = """
    AWSTemplateFormatVersion: 2010-09-09
    Parameters: {P: {Type: Number, Default: x}, Q: {Type: Text}}
    Resources:
      a: {Type: "OS::Heat::TestResource", DependsOn: [b, c], Properties: {no: 1, wait_secs: x}}
      d: {Type: "OS::Heat::TestResource", DeletionPolicy: Keep, Properties: {value: {"Fn::GetAtt": [e, f]}}}
    Outputs: {o: {}}
    """
    assert places(Goal(text)) == [
        "Parameters.P.Default",
        "Parameters.Q.Type",
        "Resources.a.DependsOn",
        "Resources.a.DependsOn",
        "Resources.d.Properties.value.Fn::GetAtt",
        "Resources.d.DeletionPolicy",
        "Outputs.o",
        "Resources.a.Properties",
        "Resources.a.Properties.wait_secs",
    ]


def test_each_wrong_part_of_a_value_is_named_and_a_wrong_function_once() -> None:
    wrong: Json = [{"get_param": f"p{number}"} for number in range(6)]
    metadata = {
        "list": {"alone": [*wrong[:2], "right"]},
        "two keys": {"list_join": wrong[2], "other": wrong[3]},
        "function": {"list_join": [",", wrong[4:]]},
    }
    body = {"type": "OS::Heat::None", "metadata": metadata}
    assert places(Goal({"heat_template_version": "2021-04-16", "resources": {"a": body}})) == [
        "resources.a.metadata.list.alone[0].get_param",
        "resources.a.metadata.list.alone[1].get_param",
        "resources.a.metadata.two keys.list_join.get_param",
        "resources.a.metadata.two keys.other.get_param",
        "resources.a.metadata.function.list_join[1][0].get_param",
    ]
    unknown = {"Type": "OS::Heat::None", "Metadata": {"a": {"Fn::Sub": {"Ref": "none"}}}}
    cfn = {"AWSTemplateFormatVersion": "2010-09-09", "Resources": {"a": unknown}}
    assert places(Goal(cfn)) == ["Resources.a.Metadata.a"]


def test_every_circle_is_named() -> None:
    needs = {"a": "b", "b": "a", "c": "c", "d": "a", "e": "f"}
    bodies: Json = {
        name: {"type": "OS::Heat::None", "depends_on": required} for name, required in needs.items()
    }
    bodies["f"] = {"type": "OS::Heat::None"}
    error = error_of(Goal({"heat_template_version": "2021-04-16", "resources": bodies}))
    texts = sorted(each.message.rpartition(": ")[2] for each in (error, *error.others))
    assert len(texts) == 2
    assert {"a", "b"} == set(texts[0].split(" -> "))
    assert texts[1] == "c -> c"


CONSEQUENCES = {
    "a section with a typo": (
        "resorces: {a: {type: OS::Heat::None}}\noutputs: {o: {value: {get_attr: [a, show]}}}",
        [""],
    ),
    "a key with a typo": ("resources: {a: {type: OS::Heat::Value, propertis: {value: 1}}}", ["resources.a"]),
    "a required property with a typo": (
        "resources: {a: {type: OS::Heat::Value, properties: {valeu: 1, type: number}}}",
        ["resources.a.properties"],
    ),
    "a parameter that is wrong is used": (
        "parameters: {p: {type: numbr}}\n"
        "resources: {a: {type: OS::Heat::RandomString, properties: {length: {get_param: p}}}}",
        ["parameters.p.type"],
    ),
    "a resource that is wrong is used": (
        "resources: {a: {type: No}, b: {type: OS::Heat::Value, depends_on: a, "
        "properties: {value: {get_attr: [a, x]}}}}\noutputs: {o: {value: {get_attr: [a, x]}}}",
        ["resources.a.type"],
    ),
    "a property that is wrong leaves its rules unknown": (
        "resources: {a: {type: OS::Heat::RandomString, properties: {length: {get_param: p}, "
        "character_sequences: [{sequence: abc, min: 9}]}}}",
        ["resources.a.properties.length"],
    ),
    "a wrong declaration of a hidden parameter": (
        "parameters: {p: {type: number, hidden: maybe, default: s3cret}}",
        ["parameters.p.hidden", "parameters.p.default"],
    ),
}


@pytest.mark.parametrize(("text", "paths"), CONSEQUENCES.values(), ids=CONSEQUENCES)
def test_what_follows_from_an_error_is_none(text: str, paths: list[str]) -> None:
    error = error_of(Goal(f"heat_template_version: 2021-04-16\n{text}"))
    assert [dotted(each.path) for each in (error, *error.others)] == paths
    assert not any("s3cret" in each.message for each in (error, *error.others))


def test_the_first_error_goes_before_what_ends_the_search() -> None:
    bad: Json = {"type": "OS::Heat::TestResource", "depends_on": "no"}
    costly = {"type": "OS::Heat::Value", "properties": {"value": ["x"] * 3000}}
    body = {"heat_template_version": "2021-04-16", "resources": {"a": bad, "b": costly}}
    limits = Limits(budget=BudgetLimits(steps=2500))
    assert dotted(error_of(Goal(body), limits).path) == "resources.a.depends_on"
    body["resources"] = {"b": costly}
    assert isinstance(error_of(Goal(body), limits), LimitExceeded)
    goal = Goal(body, may_use=lambda name: False)
    with pytest.raises(TypeForbidden):
        GoalCompiler(REGISTRY, Limits()).compile(goal, Identity("s", "i", "p"), SEALER)
    body["resources"] = {"a": bad}
    assert dotted(error_of(replace(goal, template=body)).path) == "resources.a.depends_on"


def test_the_errors_of_an_environment_are_named_at_once() -> None:
    environment: Json = {
        "paramters": {},
        "parameter_defaults": [],
        "resource_registry": {
            "A": 1,
            "resources": {"r": {"hooks": "pre-creat", "s": {"timeout": "long"}}, "t": 5},
        },
        "event_sinks": [{"type": "no"}],
    }
    inside = [
        "parameter_defaults",
        "resource_registry.A",
        "resource_registry.resources.r.hooks",
        "resource_registry.resources.r.s.timeout",
        "resource_registry.resources.t",
        "event_sinks[0].type",
    ]
    template = "heat_template_version: 2021-04-16"
    assert places(Goal(template, environment=environment)) == [
        "environment",
        *(f"environment.{path}" for path in inside),
    ]
    named = {
        "environment_files": ["e.yaml"],
        "files": {"e.yaml": yaml.safe_dump(environment, sort_keys=False)},
    }
    assert places(Goal(template, **named)) == ["e.yaml", *(f"e.yaml.{path}" for path in inside)]


class Cloud:
    """A cloud that has nothing."""

    project_id = "p"

    def has_service(self, service_type: str) -> bool:
        return True

    def problems(self, questions: Collection[Question]) -> Mapping[Question, str]:
        return dict.fromkeys(questions, "there is none")


def test_what_the_cloud_does_not_have_is_named_with_the_other_errors() -> None:
    text = """
    heat_template_version: 2021-04-16
    resources:
      a: {type: "OS::Nova::Server", properties: {image: i, flavor: f}}
      b: {type: "OS::Nova::Server", properties: {flavour: f}}
    """
    assert places(Goal(text, cloud=Cloud())) == [
        "resources.b.properties",
        "resources.a.properties.image",
        "resources.a.properties.flavor",
    ]
