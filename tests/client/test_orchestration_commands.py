"""``openstack orchestration …``: templates, types, versions, functions, services."""

import pytest
from client.commands import OpenStack
from harness.waiting import wait_for

TEMPLATE = """
heat_template_version: 2018-08-31
description: To be judged
parameters:
  word: {type: string, description: Said, label: Word, constraints: [{length: {min: 2, max: 5}}]}
  size: {type: number, default: 3}
  secret: {type: string, hidden: true}
resources:
  r: {type: OS::Heat::TestResource, properties: {value: {get_param: word}}}
"""


@pytest.mark.parametrize("options", [(), ("--show-nested",)])
def test_a_template_is_validated_without_values(openstack: OpenStack, options: tuple[str, ...]) -> None:
    path = openstack.file("t.yaml", TEMPLATE)
    validation = openstack.json("orchestration", "template", "validate", "-t", path, *options)
    assert validation["Description"] == "To be judged"
    assert validation["Parameters"]["word"] == {
        "Type": "String",
        "Description": "Said",
        "Label": "Word",
        "NoEcho": "false",
        "MinLength": 2,
        "MaxLength": 5,
    }
    assert (validation["Parameters"]["size"]["Type"], validation["Parameters"]["size"]["Default"]) == (
        "Number",
        3,
    )
    assert validation["Parameters"]["secret"]["NoEcho"] == "true"
    assert set(validation) == {"Description", "Parameters", "Environment", "Warnings"}
    assert validation["Warnings"] == [
        f"parameters.{name}: nothing uses this parameter" for name in ("size", "secret")
    ]


def test_a_validation_shows_the_parameters_of_nested_stacks(openstack: OpenStack) -> None:
    openstack.file("inner.yaml", TEMPLATE)
    resource = "{type: inner.yaml, properties: {word: abc, secret: s3cret}}"
    path = openstack.file("outer.yaml", f"heat_template_version: 2018-08-31\nresources: {{r: {resource}}}\n")
    validate = ("orchestration", "template", "validate", "-t", path)
    assert "NestedParameters" not in openstack.json(*validate)
    validation = openstack.json(*validate, "--show-nested")
    [(name, nested)] = validation["NestedParameters"].items()
    assert (name, nested["Description"]) == ("r", "To be judged")
    assert nested["Type"].endswith("/inner.yaml")
    assert nested["Parameters"]["word"]["Value"] == "abc"
    assert nested["Type"] in validation["Environment"]["resource_registry"]


def test_values_of_a_validated_template_are_shown_also_the_hidden(openstack: OpenStack) -> None:
    path = openstack.file("t.yaml", TEMPLATE)
    environment = openstack.file(
        "e.yaml", "parameters: {word: abc, secret: s3cret}\nparameter_defaults: {size: 5}\n"
    )
    validation = openstack.json("orchestration", "template", "validate", "-t", path, "-e", environment)
    parameters = validation["Parameters"]
    assert parameters["word"]["Value"] == "abc"
    assert parameters["size"]["Default"] == 5
    assert (parameters["secret"]["Value"], parameters["secret"]["NoEcho"]) == ("s3cret", "true")
    assert validation["Environment"]["parameters"] == {"word": "abc", "secret": "s3cret"}
    assert validation["Environment"]["parameter_defaults"] == {"size": 5}


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("OS::Heat::TestResource", "OS::Heat::TestResorce", "OS::Heat::TestResorce"),
        ("heat_template_version: 2018-08-31", "heat_template_version: 2000-01-01", "2000-01-01"),
        ("parameters:", "parameter:", '"parameter"'),
        ("type: number", "type: digit", "digit"),
        ("resources:", "resources: [", "not valid YAML"),
    ],
)
@pytest.mark.parametrize("values", [(), ("--parameter", "word=abc", "--parameter", "secret=x")])
def test_a_broken_template_is_explained(
    openstack: OpenStack, before: str, after: str, message: str, values: tuple[str, ...]
) -> None:
    path = openstack.file("t.yaml", TEMPLATE.replace(before, after))
    done = openstack.call("orchestration", "template", "validate", "-t", path, *values)
    assert done.code == 1
    # What is no YAML at all is refused by the client itself.
    assert message in done.err or "Error parsing template" in done.err


def test_a_value_that_breaks_a_constraint_is_explained(openstack: OpenStack) -> None:
    path = openstack.file("t.yaml", TEMPLATE)
    values = ("--parameter", "word=a", "--parameter", "secret=x")
    printed = openstack.fails("orchestration", "template", "validate", "-t", path, *values)
    assert "parameters.word" in printed


def test_template_versions_and_functions_are_listed(openstack: OpenStack) -> None:
    versions = openstack.json("orchestration", "template", "version", "list")
    assert {"Version": "heat_template_version.2013-05-23", "Type": "hot", "Aliases": []} in versions
    newest = versions[-1]
    assert newest["Version"] == "heat_template_version.2021-04-16"
    assert newest["Aliases"] == ["heat_template_version.wallaby"]
    assert [row["Version"] for row in versions if row["Type"] == "cfn"] == [
        "AWSTemplateFormatVersion.2010-09-09",
        "HeatTemplateFormatVersion.2012-12-12",
    ]
    for row in versions:
        functions = openstack.json("orchestration", "template", "function", "list", row["Version"])
        base = {"Ref", "Fn::GetAtt"} if row["Type"] == "cfn" else {"get_attr", "get_param", "get_resource"}
        assert base <= {item["Functions"] for item in functions}
        assert all(item["Description"] for item in functions)
    plain = openstack.json("orchestration", "template", "function", "list", newest["Version"])
    conditions = openstack.json(
        "orchestration", "template", "function", "list", newest["Version"], "--with_conditions"
    )
    assert {"equals", "not", "and", "or"} <= {item["Functions"] for item in conditions}
    assert "equals" not in {item["Functions"] for item in plain}
    printed = openstack.fails("orchestration", "template", "function", "list", "heat_template_version.1999")
    assert "Template version not found: heat_template_version.1999" in printed


def test_resource_types_are_listed(openstack: OpenStack) -> None:
    names = [row["Resource Type"] for row in openstack.json("orchestration", "resource", "type", "list")]
    assert {"OS::Heat::TestResource", "OS::Heat::WaitCondition"} <= set(names)
    rows = openstack.json("orchestration", "resource", "type", "list", "--filter", "name=OS::Heat::Wait.*")
    assert [row["Resource Type"] for row in rows] == [
        "OS::Heat::WaitCondition",
        "OS::Heat::WaitConditionHandle",
    ]
    described = openstack.json("orchestration", "resource", "type", "list", "--long")
    assert [row["Resource Type"] for row in described] == names
    assert all(row["Description"] for row in described)
    printed = openstack.fails("orchestration", "resource", "type", "list", "--filter", "support_status=odd")
    assert "SUPPORTED" in printed


def test_a_resource_type_is_shown(openstack: OpenStack) -> None:
    name = "OS::Heat::RandomString"
    schema = openstack.json("orchestration", "resource", "type", "show", name)
    assert schema["resource_type"] == name
    assert schema["properties"]["length"]["type"] == "integer"
    assert schema["properties"]["length"]["constraints"] == [{"range": {"min": 1, "max": 512}}]
    assert "value" in schema["attributes"]
    assert schema["support_status"]["status"] == "SUPPORTED"
    described = openstack.json("orchestration", "resource", "type", "show", name, "--long")
    assert described["description"]
    assert "Resource type not found: No::Such" in openstack.fails(
        "orchestration", "resource", "type", "show", "No::Such"
    )


@pytest.mark.parametrize(
    ("kind", "version"), [("hot", "heat_template_version"), ("cfn", "HeatTemplateFormatVersion")]
)
def test_a_template_is_generated_for_a_resource_type(openstack: OpenStack, kind: str, version: str) -> None:
    template = openstack.json(
        "orchestration", "resource", "type", "show", "OS::Heat::RandomString", "--template-type", kind
    )
    assert version in template
    resources = template["resources" if kind == "hot" else "Resources"]
    (body,) = resources.values()
    assert body["type" if kind == "hot" else "Type"] == "OS::Heat::RandomString"


@pytest.mark.parametrize("kind", ["hot", "cfn"])
@pytest.mark.parametrize("name", ["OS::Heat::None", "OS::Heat::WaitConditionHandle"])
def test_a_template_generated_for_a_type_creates_a_stack(openstack: OpenStack, kind: str, name: str) -> None:
    template = openstack.run("orchestration", "resource", "type", "show", name, "--template-type", kind).out
    path = openstack.file("made.yaml", template)
    openstack.run("stack", "create", "made", "-t", path, "--wait", "--poll", "1")


def test_the_build_and_the_services_are_shown(openstack: OpenStack) -> None:
    build = openstack.json("orchestration", "build", "info")
    assert build["api"] == build["engine"]
    assert build["api"]["revision"]
    listed = lambda: openstack.json("orchestration", "service", "list")  # noqa: E731
    # Who is late with a sign of life is not up.
    wait_for(lambda: all(row["Status"] == "up" for row in listed()))
    rows = listed()
    assert [row["Hostname"] for row in rows] == ["conductor-1", "conductor-2"]
    for row in rows:
        assert (row["Binary"], row["Topic"]) == ("stoker-conductor", "stoker.work")
        assert row["Host"] == row["Hostname"]
        assert row["Engine ID"]
        assert row["Updated At"].endswith("Z")
