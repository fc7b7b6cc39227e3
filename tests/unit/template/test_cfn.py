"""Templates in CloudFormation's format are compiled to what the same template in HOT is compiled to."""

import dataclasses
import json

import pytest
from stoker.template.budget import BudgetLimits
from stoker.template.compile import Identity, Limits, Region, Source, compile_template, describe
from stoker.template.environment import parse_environment
from stoker.template.errors import InvalidReference, InvalidTemplateVersion, LimitExceeded, TemplateError
from stoker.template.hidden import hidden_names
from stoker.template.load import load_template
from stoker.template.residual import evaluate

AWS = {"AWSTemplateFormatVersion": "2010-09-09"}
HEAT = {"HeatTemplateFormatVersion": "2012-12-12"}
IDENTITY = Identity("shop", "7c0ffee", "acme/1")


def compiled(template, limits=None, **source):
    template = load_template(template) if isinstance(template, str) else template
    return compile_template(
        Source(template, **source), identity=IDENTITY, limits=limits or Limits(), seal=json.dumps
    )


def out(value, base=AWS, **sections):
    return compiled({**base, **sections, "Outputs": {"o": {"Value": value}}}).outputs["o"].value


def problem(template, error=TemplateError, **source):
    with pytest.raises(error) as caught:
        compiled(template, **source)
    return str(caught.value)


class Answers:
    def reference_id(self, resource):
        return f"id of {resource}"

    def attribute(self, resource, name):
        return {"list": ["a", "b"], "key": "small"}.get(name, f"{name} of {resource}")

    def unseal(self, token):
        return json.loads(token)


CFN_TEMPLATE = """
AWSTemplateFormatVersion: 2010-09-09
Description: A shop.
Parameters:
  Size:
    Type: Number
    Description: How many.
    Default: "3"
    MinValue: 1
    MaxValue: "5"
    ConstraintDescription: one to five
  Password: {Type: String, NoEcho: "true", Default: secret, MinLength: "4", MaxLength: 9, Label: Word}
  Zones: {Type: CommaDelimitedList, Default: "a,b"}
  Env: {Type: String, Default: prod, AllowedValues: [prod, dev], AllowedPattern: "[a-z]+"}
Conditions:
  Prod: {"Fn::Equals": [{Ref: Env}, prod]}
  Never: {"Fn::Not": [Prod]}
Resources:
  db:
    Type: OS::Heat::TestResource
    DeletionPolicy: Retain
    Metadata: {password: {Ref: Password}}
    Properties: {value: {"Fn::Select": ["1", {Ref: Zones}]}, size: {Ref: Size}}
  web:
    Type: OS::Heat::TestResource
    DependsOn: [db]
    Condition: Prod
    UpdatePolicy: {x: 1}
    Properties:
      value: {"Fn::Join": ["-", [{Ref: db}, {"Fn::GetAtt": [db, output]}]]}
      other: {"Fn::If": [Never, 1, {"Fn::Replace": [{"%": "!"}, "a%"]}]}
  gone: {Type: OS::Heat::TestResource, Condition: Never}
Outputs:
  url: {Description: Where., Value: {"Fn::GetAtt": [web, output]}, Condition: Prod}
  none: {Value: x, Condition: Never}
"""
HOT_TEMPLATE = """
heat_template_version: 2016-10-14
description: A shop.
parameters:
  Size:
    type: number
    description: How many.
    default: "3"
    constraints: [{range: {min: 1, max: 5}, description: one to five}]
  Password:
    {type: string, hidden: true, default: secret, constraints: [{length: {min: 4, max: 9}}], label: Word}
  Zones: {type: comma_delimited_list, default: "a,b"}
  Env:
    type: string
    default: prod
    constraints: [{allowed_values: [prod, dev]}, {allowed_pattern: "[a-z]+"}]
conditions:
  Prod: {equals: [{get_param: Env}, prod]}
  Never: {not: Prod}
resources:
  db:
    type: OS::Heat::TestResource
    deletion_policy: Retain
    metadata: {password: {get_param: Password}}
    properties: {value: {get_param: [Zones, 1]}, size: {get_param: Size}}
  web:
    type: OS::Heat::TestResource
    depends_on: [db]
    condition: Prod
    update_policy: {x: 1}
    properties:
      value: {list_join: ["-", [{get_resource: db}, {get_attr: [db, output]}]]}
      other: {if: [Never, 1, {str_replace: {template: "a%", params: {"%": "!"}}}]}
  gone: {type: OS::Heat::TestResource, condition: Never}
outputs:
  url: {description: Where., value: {get_attr: [web, output]}, condition: Prod}
  none: {value: x, condition: Never}
"""


def test_both_formats_are_compiled_to_the_same():
    cfn = compiled(CFN_TEMPLATE)
    hot = compiled(HOT_TEMPLATE)
    value = cfn.resources["web"].properties["value"]
    assert evaluate(value, Answers()) == "id of db-output of db"
    assert evaluate(hot.resources["web"].properties["value"], Answers()) == "id of db-output of db"
    same = {"value": "the same"}
    resources = [
        {
            name: dataclasses.replace(
                definition, properties={**definition.properties, **(same if name == "web" else {})}
            )
            for name, definition in plan.resources.items()
        }
        for plan in (cfn, hot)
    ]
    assert resources[0] == resources[1]
    assert list(cfn.resources) == ["db", "web"]
    assert (cfn.outputs, cfn.parameters, cfn.description) == (hot.outputs, hot.parameters, hot.description)


def test_both_formats_describe_their_parameters_alike():
    assert describe(load_template(CFN_TEMPLATE)) == describe(load_template(HOT_TEMPLATE))


def test_the_format_may_be_json():
    as_json = json.dumps(load_template(CFN_TEMPLATE))
    assert compiled(as_json).resources == compiled(CFN_TEMPLATE).resources


def test_values_come_from_the_request_the_environment_and_its_defaults():
    environment = parse_environment(
        {"parameters": {"Size": 2}, "parameter_defaults": {"Env": "dev", "Size": 4, "unknown": 1}}
    )
    plan = compiled(CFN_TEMPLATE, environment=environment, parameters={"Zones": "x,y"})
    assert plan.resources["db"].properties == {"value": "y", "size": 2}
    assert list(plan.resources) == ["db", "gone"]


def test_a_hidden_value_stays_sealed_everywhere():
    plan = compiled(CFN_TEMPLATE)
    assert plan.parameters["Password"].hidden
    assert plan.resources["db"].metadata == {"password": {"$fn": "sealed", "args": ['"secret"']}}
    assert hidden_names([{"files": CFN_TEMPLATE}], depth=2) == {"Password"}


@pytest.mark.parametrize(("word", "hidden"), [(True, True), ("True", True), ("false", False), ("yes", False)])
def test_only_the_word_true_hides(word, hidden):
    template = {**AWS, "Parameters": {"p": {"Type": "String", "Default": "", "NoEcho": word}}}
    assert compiled(template).parameters["p"].hidden is hidden
    assert hidden_names([template], depth=1) == ({"p"} if hidden else set())


def test_pseudo_parameters_are_heats():
    plan = compiled({**AWS, "Resources": {}})
    assert plan.pseudo == {
        "AWS::StackName": "shop",
        "AWS::StackId": "arn:openstack:heat::acme%2F1:stacks/shop/7c0ffee",
        "AWS::Region": "ap-southeast-1",
    }
    assert out([{"Ref": name} for name in plan.pseudo]) == list(plan.pseudo.values())
    assert compiled({"heat_template_version": "2013-05-23"}).pseudo.keys() == {
        "OS::stack_name",
        "OS::stack_id",
        "OS::project_id",
    }


def test_the_region_and_its_zones_are_the_operators():
    region = Region("north", ("n1", "n2"))
    template = {**AWS, "Outputs": {"o": {"Value": [{"Ref": "AWS::Region"}, {"Fn::GetAZs": ""}]}}}
    assert compiled(template, region=region).outputs["o"].value == ["north", ["n1", "n2"]]
    assert out({"Fn::GetAZs": None}) == ["nova"]
    assert out({"Fn::Select": ["0", {"Fn::GetAZs": {"Ref": "AWS::Region"}}]}) == "nova"
    assert out({"Fn::GetAZs": {"Ref": "r"}}, Resources={"r": {"Type": "OS::Heat::None"}}) == ["nova"]


MAPPINGS = {"M": {"ap-southeast-1": {"small": "m1", "32": ["i"], "fn": {"Ref": "not a function"}}}}


def test_find_in_map():
    def find(*keys, **sections):
        return out({"Fn::FindInMap": ["M", *keys]}, Mappings=MAPPINGS, **sections)

    assert find({"Ref": "AWS::Region"}, "small") == "m1"
    assert find("ap-southeast-1", 32) == ["i"]
    assert find("ap-southeast-1", "fn") == {"Ref": "not a function"}
    deferred = find(
        "ap-southeast-1", {"Fn::GetAtt": ["r", "key"]}, Resources={"r": {"Type": "OS::Heat::None"}}
    )
    assert evaluate(deferred, Answers()) == "m1"


WRONG_LOOKUPS = [
    (["M", "north", "small"], 'the mapping has no key "north"'),
    (["M", "ap-southeast-1", "smal"], 'did you mean "small"'),
    (["M", "ap-southeast-1", ["small"]], "a key of a mapping must be a string"),
    (["N", "north", "small"], 'the template has no mapping "N"'),
    (["M", "north"], "must be of the form [mapping, key, key]"),
    ("M", "must be of the form [mapping, key, key]"),
    ([["M"], "north", "small"], "the template has no mapping"),
    ([], "must be of the form [mapping, key, key]"),
]


OF_CONDITION = {"r": {"Type": "OS::Heat::None", "Condition": "c"}}


@pytest.mark.parametrize(("argument", "words"), WRONG_LOOKUPS)
def test_wrong_lookups_are_refused_with_their_place(argument, words):
    template = {**AWS, "Mappings": MAPPINGS, "Outputs": {"o": {"Value": {"Fn::FindInMap": argument}}}}
    text = problem(template)
    assert text.startswith("Outputs.o.Value.Fn::FindInMap: ")
    assert words in text
    conditions = {"c": {"Fn::FindInMap": argument}}
    text = problem({**AWS, "Mappings": MAPPINGS, "Conditions": conditions, "Resources": OF_CONDITION})
    assert text.startswith("Conditions.c.Fn::FindInMap: ")
    assert words in text


VALUES = [
    ({"Fn::Join": ["", ["a", None, "b"]]}, "ab"),
    ({"Fn::Split": [",", "a,b"]}, ["a", "b"]),
    ({"Fn::Split": [",", ["a", "b"]]}, ["a", "b"]),
    ({"Fn::Base64": "text"}, "text"),
    ({"Fn::Replace": [{"ab": 1, "a": 2}, "ab a"]}, "1 2"),
    ({"Fn::Select": ["1", ["a", "b"]]}, "b"),
    ({"Fn::Select": [7, ["a", "b"]]}, ""),
    ({"Fn::Select": ["k", {"k": 1}]}, 1),
    ({"Fn::Select": ["x", {"k": 1}]}, ""),
    ({"Fn::Select": ["k", '{"k": [1.5]}']}, [1.5]),
    ({"Fn::Select": ["k", ""]}, ""),
    (
        {"Fn::MemberListToMap": ["N", "V", [".member.1.N=b", ".member.1.V=x=y", ".member.0.N=a"]]},
        {"b": "x=y"},
    ),
]


@pytest.mark.parametrize(("tree", "value"), VALUES)
def test_functions_have_heats_values(tree, value):
    assert out(tree) == out(tree, HEAT) == value
    hot = {"heat_template_version": "2013-05-23", "outputs": {"o": {"value": tree}}}
    assert compiled(hot).outputs["o"].value == value


WRONG = [
    ({"Fn::Join": ["", ["a"], ["b"]]}, "must be of the form [delimiter, [item, …]]"),
    ({"Fn::Join": ["", [1]]}, "items to join must be strings, not 1"),
    ({"Fn::Split": ["", "a"]}, "the delimiter must be a string that is not empty"),
    ({"Fn::Split": [",", None]}, "can only split a string"),
    ({"Fn::Split": [",", "a", 0]}, "must be of the form [delimiter, string]"),
    ({"Fn::Base64": ["x"]}, "must be a string"),
    ({"Fn::Replace": ["a", "b"]}, "must be a map"),
    ({"Fn::Replace": [{"a": "b"}, 1]}, "of a string, not 1"),
    ({"Fn::Select": [{}, ["a"]]}, "the index of a list must be a whole number"),
    ({"Fn::Select": [0, {"k": 1}]}, "the key of a map must be a string"),
    ({"Fn::Select": [0, 5]}, "from a list or a map, not 5"),
    ({"Fn::Select": [0, "no json"]}, "must be JSON"),
    ({"Fn::Select": [0, "[NaN]"]}, "must be JSON"),
    ({"Fn::Select": [0, "[1e999]"]}, "must be JSON"),
    ({"Fn::Select": [0, "[" + "9" * 400 + "]"]}, "must be JSON"),
    ({"Fn::Select": ["0"]}, "must be of the form [index, list] or [key, map]"),
    ({"Fn::MemberListToMap": ["N", "V", ["x"]]}, "a member must be like"),
    ({"Fn::MemberListToMap": ["N", 1, []]}, "must be strings"),
    ({"Fn::MemberListToMap": ["N", "V", "x"]}, "must be a list of strings"),
    ({"Fn::GetAtt": ["r"]}, "must be of the form [resource, attribute]"),
    ({"Fn::GetAtt": "r.output"}, "must be of the form [resource, attribute]"),
    ({"Fn::GetAtt": ["r", "output", "key"]}, "must be of the form [resource, attribute]"),
    ({"Fn::GetAtt": "ro"}, "must be of the form [resource, attribute]"),
    ({"Fn::GetAtt": ["q", "output"]}, 'The template has no resource "q"'),
    ({"Fn::GetAZs": ["x"]}, "must be the name of a region"),
    ({"Fn::ResourceFacade": "metadata"}, "must be one of: Metadata, DeletionPolicy, UpdatePolicy"),
    ({"Fn::ResourceFacade": "Metadata"}, "in the template of a nested stack only"),
    ({"Ref": "rr"}, 'The template has no parameter and no resource "rr"; did you mean "r"?'),
    ({"Ref": ["r"]}, "must be the name of a parameter or of a resource"),
    ({"Ref": "AWS::NoValue"}, 'no parameter and no resource "AWS::NoValue"'),
]


@pytest.mark.parametrize(("tree", "words"), WRONG)
def test_wrong_arguments_are_refused_with_their_place(tree, words):
    (name,) = tree
    resources = {"r": {"Type": "OS::Heat::None", "Properties": {"x": [tree]}}}
    text = problem({**AWS, "Resources": resources})
    assert f"Resources.r.Properties.x.0.{name}" in text
    assert words in text


@pytest.mark.parametrize("name", ["Fn::Sub", "Fn::ImportValue", "Fn::Equals", "Fn::joni"])
def test_unknown_functions_are_refused_not_passed_to_the_resource(name):
    text = problem({**AWS, "Outputs": {"o": {"Value": {name: "x"}}}}, InvalidTemplateVersion)
    assert text.startswith(f'Outputs.o.Value: AWSTemplateFormatVersion 2010-09-09 has no function "{name}"')


def test_words_of_hot_are_words_here():
    assert out({"get_param": "x"}) == {"get_param": "x"}
    assert out({"repeat": {"for_each": {"x": []}, "template": "x"}})["repeat"]


def test_the_facade_is_the_parents_definition():
    facade = {"metadata": {"k": 1}, "deletion_policy": "Retain", "update_policy": {}}
    template = {**HEAT, "Outputs": {"o": {"Value": {"Fn::ResourceFacade": "DeletionPolicy"}}}}
    assert compiled(template, facade=facade).outputs["o"].value == "Retain"


def test_a_parameter_may_be_referred_to_where_a_resource_of_its_name_is_off():
    sections = {
        "Parameters": {"x": {"Type": "String", "Default": "param"}},
        "Conditions": {"on": {"Fn::Equals": [1, 1]}, "off": {"Fn::Not": ["on"]}},
    }
    resources = {"x": {"Type": "OS::Heat::None", "Condition": "off"}}
    assert out({"Ref": "x"}, Resources=resources, **sections) == "param"
    resources = {"x": {"Type": "OS::Heat::None", "Condition": "on"}}
    assert problem({**AWS, **sections, "Resources": resources}).startswith("Duplicate names {'x'}")
    sections.pop("Parameters")
    resources = {"x": {"Type": "OS::Heat::None", "Condition": "off"}}
    template = {
        **AWS,
        **sections,
        "Resources": resources,
        "Outputs": {"o": {"Value": {"Fn::GetAtt": ["x", "y"]}}},
    }
    assert "does not exist: its condition is false" in problem(template, InvalidReference)


def test_conditions_name_each_other_and_combine():
    conditions = {
        "a": {"Fn::Equals": [{"Ref": "p"}, "x"]},
        "b": {"Fn::And": ["a", {"Fn::Or": [{"Fn::Not": ["a"]}, "c"]}]},
        "c": {"Fn::Equals": [{"Fn::FindInMap": ["M", "ap-southeast-1", "small"]}, "m1"]},
    }
    template = {
        **AWS,
        "Parameters": {"p": {"Type": "String"}},
        "Mappings": MAPPINGS,
        "Conditions": conditions,
        "Outputs": {"o": {"Value": {"Fn::If": ["b", 1, 2]}}},
    }
    assert compiled(template, parameters={"p": "x"}).outputs["o"].value == 1
    assert compiled(template, parameters={"p": "y"}).outputs["o"].value == 2


WRONG_CONDITIONS = [
    ({"Fn::Not": "c"}, "Conditions.c.Fn::Not: must be a list of one condition"),
    ({"Fn::Not": ["d", "d"]}, "Conditions.c.Fn::Not: must be a list of one condition"),
    ({"Fn::And": ["d"]}, "Conditions.c.Fn::And: must be a list of at least two conditions"),
    ({"Fn::Not": ["c"]}, "Conditions.c: conditions depend on each other in a circle: c -> c"),
    ({"Fn::Not": ["x"]}, 'Conditions.c.Fn::Not.0: Invalid condition "x". The template has no such condition'),
    ({"Fn::Equals": [{"Fn::Join": ["", []]}, ""]}, 'the function "Fn::Join" cannot be used in a condition'),
    ({"Fn::Equals": [{"Fn::Sub": ""}, ""]}, 'has no function "Fn::Sub" here'),
    ({"Fn::Equals": [{"Ref": "x"}, ""]}, 'the template has no parameter "x"'),
    ({"Fn::Equals": [{"Ref": ["AWS::Region", 0]}, ""]}, "the parameter's name must be a string"),
    ("text", 'Invalid condition "text". The template has no such condition'),
]


@pytest.mark.parametrize(("condition", "words"), WRONG_CONDITIONS)
def test_wrong_conditions_are_refused_with_their_place(condition, words):
    conditions = {"c": condition, "d": {"Fn::Equals": [1, 1]}}
    text = problem({**AWS, "Conditions": conditions, "Resources": OF_CONDITION})
    assert text.startswith("Conditions.c")
    assert words in text


HIDDEN = {"p": {"Type": "String", "NoEcho": "true", "Default": "hush"}}


def test_a_wrong_condition_does_not_show_a_hidden_value():
    conditions = {"c": {"Fn::FindInMap": ["M", {"Ref": "p"}, "x"]}}
    text = problem({**AWS, "Parameters": HIDDEN, "Mappings": MAPPINGS, "Conditions": conditions})
    assert "hush" not in text


PLACES = [
    ({"Foo": 1}, 'The template section is invalid: Foo. "Foo" is not a section of a template'),
    ({"resources": {}}, 'The template section is invalid: resources. "resources" is not a section'),
    ({"Resources": []}, "Resources: must be a map"),
    ({"Resources": {"r": 1}}, "Resources.r: must be a map"),
    ({"Resources": {"r": {"type": "OS::Heat::None"}}}, "Each resource must contain a type key."),
    ({"Resources": {"r": {"Type": "T", "Properties": 1}}}, "Resources.r.Properties: must be a map"),
    ({"Resources": {"r": {"Type": "T", "DependsOn": "q"}}}, 'The specified reference "'),
    ({"Resources": {"r": {"Type": "T", "DeletionPolicy": "retain"}}}, "Resources.r.DeletionPolicy: Invalid"),
    ({"Resources": {"r": {"Type": "T", "Condition": "c"}}}, "Resources.r.Condition: Invalid condition"),
    (
        {"Resources": {"r": {"Type": "T", "DependsOn": "r"}}},
        "Circular Dependency Found: Resources: ",
    ),
    ({"Outputs": {"o": {"value": 1}}}, "Each output must contain a value key. (Outputs.o)"),
    ({"Outputs": {"o": {"Value": 1, "Condition": "c"}}}, "Outputs.o.Condition: Invalid condition"),
    ({"Mappings": []}, "Mappings: must be a map"),
    ({"Parameters": {"p": 1}}, "Parameters.p: must be a map"),
    ({"Parameters": {"p": {"type": "String"}}}, 'Parameters.p: "type" is not a key of a parameter; did you'),
    ({"Parameters": {"p": {"Type": "string"}}}, "Parameters.p.Type: must be one of: String, Number"),
    ({"Parameters": {"p": {"Type": "String", "MinLength": "x"}}}, "Parameters.p.MinLength: must be a number"),
    ({"Parameters": {"p": {"Type": "Number", "MaxValue": []}}}, "Parameters.p.MaxValue: must be a number"),
    ({"Parameters": {"p": {"Type": "String", "MinValue": 1}}}, "Parameters.p: range does not fit"),
    ({"Parameters": {"p": {"Type": "String", "AllowedValues": "x"}}}, "Parameters.p.AllowedValues: must be"),
    ({"Parameters": {"p": {"Type": "String", "AllowedPattern": "("}}}, "Parameters.p.AllowedPattern: "),
    ({"Parameters": {"p": {"Type": "Number", "Default": "x"}}}, "Parameters.p.Default: "),
    (
        {"Parameters": {"p": {"Type": "String", "Default": "abc", "MaxLength": 2}}},
        "Parameters.p.Default: ",
    ),
]


@pytest.mark.parametrize(("sections", "words"), PLACES)
def test_errors_name_their_place_as_the_template_does(sections, words):
    assert problem({**AWS, **sections}).startswith(words)


def test_the_authors_words_for_a_constraint_are_shown():
    declared = {"Type": "String", "AllowedValues": ["a"], "ConstraintDescription": "only a"}
    text = problem({**AWS, "Parameters": {"p": declared}}, parameters={"p": "b"})
    assert text == "Parameters.p: only a"


@pytest.mark.parametrize(
    "sections", [{"Conditions": {}}, {"Resources": {"r": {"Type": "OS::Heat::None", "Condition": "c"}}}]
)
def test_heats_version_has_no_conditions(sections):
    assert '"Condition' in (text := problem({**HEAT, **sections}))
    assert "needs AWSTemplateFormatVersion 2010-09-09" in text
    assert 'no function "Fn::If"' in problem({**HEAT, "Outputs": {"o": {"Value": {"Fn::If": ["c", 1, 2]}}}})


def test_keys_that_heat_does_not_know_are_ignored():
    resources = {"r": {"Type": "OS::Heat::None", "CreationPolicy": {}, "Comment": "x"}}
    plan = compiled({**AWS, "Resources": resources, "Outputs": {"o": {"Value": 1, "Export": {"Name": "x"}}}})
    assert list(plan.resources) == ["r"]


def test_a_template_has_the_limits_of_hot():
    resources = {f"r{n}": {"Type": "OS::Heat::None"} for n in range(3)}
    text = problem({**AWS, "Resources": resources}, LimitExceeded, limits=Limits(resources=2))
    assert text == "Resources: 3 resources are above the limit of 2 ([stacks] max_resources)"
    double = {"Fn::Replace": [{"x": "xx" * 50}, "x" * 200]}
    for _ in range(3):
        double = {"Fn::Replace": [{"x": "x" * 100}, double]}
    limits = Limits(budget=BudgetLimits(bytes=1_000_000))
    text = problem({**AWS, "Outputs": {"o": {"Value": double}}}, LimitExceeded, limits=limits)
    assert text.startswith("Outputs.o.Value.Fn::Replace")


def test_the_text_of_select_costs_what_its_json_takes():
    many = json.dumps([[]] * 20_000)
    template = {**AWS, "Outputs": {"o": {"Value": {"Fn::Select": [0, many]}}}}
    assert compiled(template).outputs["o"].value == []
    limits = Limits(budget=BudgetLimits(bytes=1_000_000))
    assert "more than 1000000 bytes" in problem(template, LimitExceeded, limits=limits)
    # It is charged before it is read, by its length.
    template = {**AWS, "Outputs": {"o": {"Value": {"Fn::Select": [0, f"[{' ' * 100_000}1]"]}}}}
    assert "more than 1000000 bytes" in problem(template, LimitExceeded, limits=limits)


def test_a_copied_mapping_is_charged_at_each_use():
    mappings = {"M": {"k": {"v": "x" * 10_000}}}
    look = {"Fn::FindInMap": ["M", "k", {"Fn::GetAtt": ["r", "key"]}]}
    template = {
        **AWS,
        "Mappings": mappings,
        "Resources": {"r": {"Type": "OS::Heat::None"}},
        "Outputs": {str(n): {"Value": look} for n in range(100)},
    }
    limits = Limits(budget=BudgetLimits(bytes=500_000))
    assert "bytes of values" in problem(template, LimitExceeded, limits=limits)
