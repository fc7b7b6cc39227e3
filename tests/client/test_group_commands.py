"""Groups of resources, through ``openstack stack``."""

import pytest
from client.commands import OpenStack
from harness.waiting import wait_for

GROUP = """
heat_template_version: 2018-08-31
parameters:
  count: {type: number, default: 2}
  gone: {type: comma_delimited_list, default: ""}
  word: {type: string, default: hello}
resources:
  g:
    type: OS::Heat::ResourceGroup
    update_policy: {rolling_update: {max_batch_size: 1}}
    properties:
      count: {get_param: count}
      removal_policies: [{resource_list: {get_param: gone}}]
      resource_def: {type: My::Word, properties: {value: {list_join: ["-", [{get_param: word}, "%index%"]]}}}
outputs:
  words: {value: {get_attr: [g, output]}}
  last: {value: {get_attr: [g, resource.1.output]}}
"""
REGISTRY = "resource_registry: {'My::Word': 'OS::Heat::TestResource'}\n"


def members(openstack: OpenStack) -> list[str]:
    rows = openstack.json("stack", "resource", "list", "s", "-n", "2")
    assert {row["resource_status"] for row in rows} <= {"CREATE_COMPLETE", "UPDATE_COMPLETE"}
    return sorted(row["resource_name"] for row in rows if row["resource_name"] != "g")


def output(openstack: OpenStack, name: str) -> object:
    return openstack.json("stack", "output", "show", "s", name)["output_value"]


@pytest.mark.full
def test_a_group_is_created_grown_shrunk_and_deleted(openstack: OpenStack) -> None:
    path = openstack.file("g.yaml", GROUP)
    env = openstack.file("e.yaml", REGISTRY)
    common = ("s", "-t", path, "-e", env, "--wait")
    openstack.run("stack", "create", *common, "--poll", "1")
    assert members(openstack) == ["0", "1"]
    assert (output(openstack, "words"), output(openstack, "last")) == (["hello-0", "hello-1"], "hello-1")
    openstack.run("stack", "update", "--parameter", "count=3", "--parameter", "word=bye", *common)
    assert members(openstack) == ["0", "1", "2"]
    assert output(openstack, "words") == ["bye-0", "bye-1", "bye-2"]
    openstack.run("stack", "update", "--parameter", "count=2", "--parameter", "gone=0", *common)
    assert members(openstack) == ["1", "2"]
    group = openstack.json("stack", "resource", "show", "s", "g")
    assert group["attributes"]["removed_rsrc_list"] == ["0"]
    openstack.run("stack", "delete", "s", "-y", "--wait")
    assert openstack.json("stack", "list", "--nested") == []


def test_an_invalid_member_is_refused_at_once(openstack: OpenStack) -> None:
    path = openstack.file("g.yaml", GROUP.replace("{value:", "{vlaue:", 1))
    env = openstack.file("e.yaml", REGISTRY)
    message = openstack.fails("stack", "create", "s", "-t", path, "-e", env)
    assert "resources.g.resources.0.properties" in message
    assert "vlaue" in message
    assert openstack.json("stack", "list") == []


SCALED = """
heat_template_version: 2018-08-31
resources:
  g:
    type: OS::Heat::AutoScalingGroup
    properties:
      min_size: 1
      max_size: 3
      resource: {type: OS::Heat::TestResource, properties: {value: x}}
  up:
    type: OS::Heat::ScalingPolicy
    properties:
      auto_scaling_group_id: {get_resource: g}
      adjustment_type: change_in_capacity
      scaling_adjustment: 1
  chain:
    type: OS::Heat::ResourceChain
    properties: {resources: [OS::Heat::TestResource, OS::Heat::RandomString]}
outputs:
  size: {value: {get_attr: [g, current_size]}}
  url: {value: {get_attr: [up, signal_url]}}
"""


def test_a_signal_scales_a_group(openstack: OpenStack) -> None:
    openstack.run("stack", "create", "s", "-t", openstack.file("a.yaml", SCALED), "--wait", "--poll", "1")
    assert output(openstack, "size") == 1
    assert str(output(openstack, "url")).endswith("/resources/up/signal")
    openstack.run("stack", "resource", "signal", "s", "up")
    wait_for(lambda: output(openstack, "size") == 2)
    assert openstack.json("stack", "show", "s")["stack_status"] == "CREATE_COMPLETE"
    rows = openstack.json(
        "stack", "resource", "list", "s", "-n", "2", "--filter", "type=OS::Heat::TestResource"
    )
    assert len(rows) == 3
