"""Templates in CloudFormation's format through the real client, alone and nested with HOT."""

import json
import re

from client.commands import OpenStack
from harness.waiting import wait_for

WAIT = ("--wait", "--poll", "1")
TEMPLATE = """
AWSTemplateFormatVersion: 2010-09-09
Description: A shop.
Parameters:
  Word: {Type: String, Default: hello, AllowedPattern: "[a-z]*", ConstraintDescription: small letters}
  Secret: {Type: String, NoEcho: "true", MinLength: 3}
  Env: {Type: String, Default: dev, AllowedValues: [dev, prod]}
Mappings:
  Sizes: {ap-southeast-1: {dev: small, prod: large}}
Conditions:
  Prod: {"Fn::Equals": [{Ref: Env}, prod]}
Resources:
  first:
    Type: OS::Heat::TestResource
    DeletionPolicy: Retain
    Properties:
      value:
        "Fn::Join": ["-", [{Ref: Word}, {"Fn::FindInMap": [Sizes, {Ref: "AWS::Region"}, {Ref: Env}]}]]
  second:
    Type: OS::Heat::TestResource
    DependsOn: first
    Properties: {value: {"Fn::Select": ["1", {"Fn::Split": ["-", {"Fn::GetAtt": [first, output]}]}]}}
  extra:
    Type: OS::Heat::TestResource
    Condition: Prod
    Properties: {value: {Ref: Secret}}
Outputs:
  word: {Value: {"Fn::GetAtt": [first, output]}}
  size: {Value: {"Fn::GetAtt": [second, output]}}
  stack: {Value: {Ref: "AWS::StackId"}}
"""
VALUES = ("--parameter", "Secret=hush-hush")


def create(openstack: OpenStack, *options: str, text: str = TEMPLATE) -> str:
    path = openstack.file("cfn.yaml", text)
    openstack.run("stack", "create", "shop", "-t", path, *VALUES, *options, *WAIT)
    return path


def outputs(openstack: OpenStack) -> dict[str, object]:
    rows = openstack.json("stack", "show", "shop")["outputs"]
    return {row["output_key"]: row["output_value"] for row in rows}


def test_a_stack_is_created_shown_updated_and_deleted(openstack: OpenStack) -> None:
    path = create(openstack)
    stack = openstack.json("stack", "show", "shop")
    assert stack["description"] == "A shop."
    parameters = stack["parameters"]
    assert parameters["Secret"] == "******"
    assert (parameters["AWS::StackName"], parameters["AWS::Region"]) == ("shop", "ap-southeast-1")
    assert re.fullmatch(rf"arn:openstack:heat::[^:]+:stacks/shop/{stack['id']}", parameters["AWS::StackId"])
    assert outputs(openstack) == {"word": "hello-small", "size": "small", "stack": parameters["AWS::StackId"]}
    document = openstack.json("stack", "template", "show", "shop")
    assert document["AWSTemplateFormatVersion"] == "2010-09-09"
    assert document["Resources"]["first"]["Properties"]["value"]["Fn::Join"][0] == "-"
    before = {row["resource_name"] for row in openstack.json("stack", "resource", "list", "shop")}
    assert before == {"first", "second"}

    change = ("--existing", "--parameter", "Env=prod")
    preview = openstack.json("stack", "update", "shop", *change, "--dry-run")
    assert {row["resource_name"] for row in preview["added"]} == {"extra"}
    openstack.run("stack", "update", "shop", *change, "--wait")
    assert outputs(openstack)["size"] == "large"
    openstack.run("stack", "update", "shop", "-t", path, *VALUES, "--parameter", "Word=bye", "--wait")
    assert outputs(openstack)["word"] == "bye-small"
    openstack.run("stack", "delete", "shop", "--yes", "--wait")
    assert openstack.json("stack", "list") == []


def test_a_stack_moves_from_one_format_to_the_other_without_a_change(openstack: OpenStack) -> None:
    path = openstack.file("hot.yaml", HOT)
    openstack.run("stack", "create", "shop", "-t", path, *WAIT)
    rows = openstack.json("stack", "resource", "list", "shop")
    path = openstack.file("cfn.yaml", CFN)
    preview = openstack.json("stack", "update", "shop", "-t", path, "--dry-run")
    assert [len(preview[kind]) for kind in ("unchanged", "updated", "replaced", "added", "deleted")] == [
        *(1, 0, 0, 0, 0)
    ]
    openstack.run("stack", "update", "shop", "-t", path, "--wait")
    after = openstack.json("stack", "resource", "list", "shop")
    assert [row["physical_resource_id"] for row in after] == [row["physical_resource_id"] for row in rows]


def test_a_failed_update_is_rolled_back_to_the_template_before(openstack: OpenStack) -> None:
    create(openstack)
    failing = TEMPLATE.replace(
        "DependsOn: first\n    Properties: {", "DependsOn: first\n    Properties: {fail: true, "
    )
    assert failing != TEMPLATE
    path = openstack.file("failing.yaml", failing)
    change = ("--rollback", "enabled", "--parameter", "Word=bye")
    openstack.call("stack", "update", "shop", "-t", path, *VALUES, *change)
    wait_for(lambda: openstack.json("stack", "show", "shop")["stack_status"] == "ROLLBACK_COMPLETE")
    assert outputs(openstack)["word"] == "hello-small"
    assert "fail" not in json.dumps(openstack.json("stack", "template", "show", "shop"))


def test_an_environment_gives_parameters_and_their_defaults(openstack: OpenStack) -> None:
    environment = openstack.file(
        "env.yaml", "parameters: {Word: abc}\nparameter_defaults: {Env: prod, Word: no, Other: x}\n"
    )
    create(openstack, "-e", environment)
    assert outputs(openstack)["word"] == "abc-large"


def test_a_template_is_validated_and_previewed(openstack: OpenStack) -> None:
    path = openstack.file("cfn.yaml", TEMPLATE)
    validation = openstack.json("orchestration", "template", "validate", "-t", path)
    assert validation["Parameters"]["Word"] == {
        "Type": "String",
        "Description": "",
        "Label": "Word",
        "NoEcho": "false",
        "Default": "hello",
        "AllowedPattern": "[a-z]*",
        "ConstraintDescription": "small letters",
    }
    assert validation["Parameters"]["Secret"]["NoEcho"] == "true"
    preview = openstack.json("stack", "create", "shop", "-t", path, *VALUES, "--dry-run")
    assert {row["resource_name"] for row in preview["resources"]} == {"first", "second"}
    assert openstack.json("stack", "list") == []


def test_errors_name_the_place_in_the_template(openstack: OpenStack) -> None:
    path = openstack.file("cfn.yaml", TEMPLATE)
    printed = openstack.fails("stack", "create", "x", "-t", path, *VALUES, "--parameter", "Word=ABC")
    assert "small letters" in printed
    for before, after, place in [
        ("[first, output]}]}]", "[first, outputt]}]}]", "Resources.second: The Referenced Attribute"),
        (
            "Properties: {value: {Ref: Secret}}",
            "Properties: {valu: 1}",
            "Resources.extra.Properties: : Unknown Property valu",
        ),
        ("Type: OS::Heat::TestResource\n    Condition", "Type: OS::X\n    Condition", "Resources.extra.Type"),
        ("Resources:", "Resource:", '"Resource" is not a section of a template; did you mean "Resources"'),
    ]:
        text = TEMPLATE.replace(before, after)
        assert text != TEMPLATE
        path = openstack.file("wrong.yaml", text)
        for command in (("stack", "create", "x"), ("orchestration", "template", "validate")):
            printed = openstack.fails(*command, "-t", path, *VALUES, "--parameter", "Env=prod")
            assert place in printed


HOT = """
heat_template_version: 2013-05-23
parameters:
  word: {type: string, default: hot}
resources:
  r: {type: OS::Heat::TestResource, properties: {value: {"Fn::Join": ["", [{Ref: word}, "!"]]}}}
outputs:
  said: {value: {"Fn::Select": [0, [{get_attr: [r, output]}]]}}
"""
CFN = """
HeatTemplateFormatVersion: 2012-12-12
Parameters:
  word: {Type: String, Default: hot}
Resources:
  r: {Type: OS::Heat::TestResource, Properties: {value: {"Fn::Join": ["", [{Ref: word}, "!"]]}}}
Outputs:
  said: {Value: {"Fn::GetAtt": [r, output]}}
"""
HOT_AROUND = """
heat_template_version: 2018-08-31
resources:
  provider: {type: My::Cfn, properties: {word: provider}}
  stack:
    type: OS::Heat::Stack
    properties: {template: {get_file: inner.yaml}, parameters: {word: {get_attr: [provider, said]}}}
  group:
    type: OS::Heat::ResourceGroup
    properties: {count: 2, resource_def: {type: My::Cfn, properties: {word: "member%index%"}}}
outputs:
  said: {value: [{get_attr: [stack, outputs, said]}, {get_attr: [group, said]}]}
"""
CFN_AROUND = """
AWSTemplateFormatVersion: 2010-09-09
Resources:
  provider: {Type: My::Hot, Properties: {word: provider}, Metadata: {k: v}}
  group:
    Type: OS::Heat::ResourceGroup
    Properties: {count: "2", resource_def: {type: My::Hot, properties: {word: "member%index%"}}}
Outputs:
  said: {Value: [{"Fn::GetAtt": [provider, said]}, {"Fn::GetAtt": [group, said]}]}
"""


def nested(openstack: OpenStack, outer: str, inner: str) -> object:
    openstack.file("inner.yaml", inner)
    environment = openstack.file(
        "env.yaml", "resource_registry: {'My::Cfn': inner.yaml, 'My::Hot': inner.yaml}\n"
    )
    path = openstack.file("outer.yaml", outer)
    openstack.run("stack", "create", "shop", "-t", path, "-e", environment, *WAIT)
    return outputs(openstack)["said"]


def test_stacks_of_cloudformations_format_are_nested_in_hot(openstack: OpenStack) -> None:
    assert nested(openstack, HOT_AROUND, CFN) == ["provider!!", ["member0!", "member1!"]]


def test_stacks_of_hot_are_nested_in_cloudformations_format(openstack: OpenStack) -> None:
    assert nested(openstack, CFN_AROUND, HOT) == ["provider!", ["member0!", "member1!"]]


def test_a_nested_error_names_each_template_in_its_own_words(openstack: OpenStack) -> None:
    for outer, inner, place in [
        (CFN_AROUND, HOT.replace("TestResource", "TestResorce"), "Resources.provider.resources.r.type"),
        (HOT_AROUND, CFN.replace("TestResource", "TestResorce"), "resources.provider.Resources.r.Type"),
    ]:
        openstack.file("inner.yaml", inner)
        environment = openstack.file(
            "env.yaml", "resource_registry: {'My::Cfn': inner.yaml, 'My::Hot': inner.yaml}\n"
        )
        path = openstack.file("outer.yaml", outer)
        assert place in openstack.fails("stack", "create", "shop", "-t", path, "-e", environment)


FACADE = """
HeatTemplateFormatVersion: 2012-12-12
Parameters: {word: {Type: String, NoEcho: true}}
Resources:
  r: {Type: OS::Heat::TestResource, Properties: {value: {Ref: word}}}
Outputs:
  said:
    Value:
      "Fn::Join":
        - " "
        - [{"Fn::ResourceFacade": DeletionPolicy}, {"Fn::Select": [k, {"Fn::ResourceFacade": Metadata}]}]
"""


def test_a_provider_template_reads_its_facade_and_hides_in_the_whole_tree(openstack: OpenStack) -> None:
    outer = """
AWSTemplateFormatVersion: 2010-09-09
Parameters: {word: {Type: String, Default: hush}}
Resources:
  provider: {Type: My::Cfn, Properties: {word: {Ref: word}}, Metadata: {k: v}, DeletionPolicy: Retain}
Outputs: {said: {Value: {"Fn::GetAtt": [provider, said]}}}
"""
    assert nested(openstack, outer, FACADE) == "Retain v"
    assert openstack.json("stack", "show", "shop")["parameters"]["word"] == "******"


def test_a_retained_resource_is_not_deleted(openstack: OpenStack) -> None:
    text = """
HeatTemplateFormatVersion: 2012-12-12
Resources:
  kept: {Type: OS::Heat::TestResource, DeletionPolicy: Retain, Properties: {value: 1, fail: false}}
"""
    path = openstack.file("kept.yaml", text)
    openstack.run("stack", "create", "shop", "-t", path, *WAIT)
    abandoned = openstack.json("stack", "export", "shop")
    assert abandoned["resources"]["kept"]["resource_data"] is not None
    assert abandoned["template"]["Resources"]["kept"]["DeletionPolicy"] == "Retain"
    document = openstack.file("adopted.json", json.dumps(abandoned))
    openstack.run("stack", "delete", "shop", "--yes", "--wait")
    openstack.run("stack", "adopt", "shop", "--adopt-file", document, "--wait")
    rows = openstack.json("stack", "resource", "list", "shop")
    assert [row["physical_resource_id"] for row in rows] == [abandoned["resources"]["kept"]["resource_id"]]


def test_a_snapshot_restores_a_stack(openstack: OpenStack) -> None:
    create(openstack)
    snapshot = openstack.json("stack", "snapshot", "create", "shop", "--name", "before")
    # An update does not wait for the snapshot, which would not be complete.
    wait_for(lambda: openstack.json("stack", "show", "shop")["stack_status"] == "SNAPSHOT_COMPLETE")
    openstack.run("stack", "update", "shop", "--existing", "--parameter", "Word=after", "--wait")
    assert outputs(openstack)["word"] == "after-small"
    openstack.run("stack", "snapshot", "restore", "shop", snapshot["ID"])
    wait_for(lambda: openstack.json("stack", "show", "shop")["stack_status"] == "RESTORE_COMPLETE")
    assert outputs(openstack)["word"] == "hello-small"
