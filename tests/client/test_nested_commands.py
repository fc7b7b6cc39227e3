"""Nested stacks through the real client: files named as types, mapped types, OS::Heat::Stack."""

import pytest
from client.commands import OpenStack

WAIT = ("--wait", "--poll", "1")
INNER = """
heat_template_version: 2018-08-31
parameters:
  word: {type: string, default: none}
resources:
  r: {type: OS::Heat::TestResource, properties: {value: {get_param: word}}}
outputs:
  word: {value: {get_attr: [r, output]}}
"""
OUTER = """
heat_template_version: 2018-08-31
parameters:
  word: {type: string, default: hello}
resources:
  by_file: {type: inner.yaml, properties: {word: {get_param: word}}}
  by_map: {type: My::Own::Type, properties: {word: {get_attr: [by_file, word]}}}
  by_property:
    type: OS::Heat::Stack
    properties:
      template: {get_file: inner.yaml}
      parameters: {word: {get_attr: [by_map, word]}}
outputs:
  said: {value: {get_attr: [by_property, outputs, word]}}
"""
STATUSES = {"CREATE_COMPLETE"}


def create(openstack: OpenStack, inner: str = INNER, name: str = "tree") -> tuple[str, str]:
    """The paths of template and environment."""
    openstack.file("inner.yaml", inner)
    environment = openstack.file("env.yaml", "resource_registry: {'My::Own::Type': inner.yaml}\n")
    return openstack.file("outer.yaml", OUTER), environment


@pytest.mark.full
def test_a_tree_is_created_shown_updated_and_deleted(openstack: OpenStack) -> None:
    path, environment = create(openstack)
    openstack.run("stack", "create", "tree", "-t", path, "-e", environment, *WAIT)
    assert openstack.json("stack", "output", "show", "tree", "said")["output_value"] == "hello"
    rows = openstack.json("stack", "resource", "list", "tree", "-n", "2")
    assert [row["resource_name"] for row in rows].count("r") == 3
    assert {row["resource_status"] for row in rows} == STATUSES
    assert {row["stack_name"] for row in rows if row["resource_name"] != "r"} == {"tree"}
    nested = openstack.json("stack", "list", "--nested")
    assert len(nested) == 4
    child = next(row for row in nested if row["Stack Name"].startswith("tree-by_map-"))
    view = openstack.json("stack", "show", child["Stack Name"])
    assert view["id"] == child["ID"]
    assert view["parent"] == openstack.json("stack", "show", "tree")["id"]
    assert [row["Stack Name"] for row in openstack.json("stack", "list")] == ["tree"]
    events = openstack.json("stack", "event", "list", "tree", "--nested-depth", "1")
    assert {"r", "by_file"} <= {event["resource_name"] for event in events}
    openstack.run("stack", "update", "tree", "--existing", "--parameter", "word=bye", "--wait")
    assert openstack.json("stack", "output", "show", "tree", "said")["output_value"] == "bye"
    after = openstack.json("stack", "list", "--nested")
    assert {row["ID"] for row in after} == {row["ID"] for row in nested}, "children are updated, not replaced"
    openstack.run("stack", "delete", "tree", "--yes", "--wait")
    assert openstack.json("stack", "list", "--nested") == []


def test_a_failure_inside_is_listed_with_its_path(openstack: OpenStack) -> None:
    broken = INNER.replace("value: {get_param: word}", "value: {get_param: word}, fail: true")
    path, environment = create(openstack, broken)
    failed = openstack.call("stack", "create", "tree", "-t", path, "-e", environment, *WAIT)
    assert failed.code != 0
    reason = openstack.json("stack", "show", "tree")["stack_status_reason"]
    assert reason.startswith("Resource CREATE failed: ValueError: resources.by_file.resources.r: ")
    failures = openstack.run("stack", "failures", "list", "tree").out
    assert "tree.by_file.r:" in failures


def test_a_nested_template_with_an_error_is_refused_before_anything_is_created(openstack: OpenStack) -> None:
    path, environment = create(openstack, INNER.replace("OS::Heat::TestResource", "No::Such::Type"))
    refused = openstack.call("stack", "create", "tree", "-t", path, "-e", environment)
    assert refused.code != 0
    assert "resources.by_file.resources.r.type" in refused.err
    assert "No::Such::Type" in refused.err
    assert openstack.json("stack", "list") == []
