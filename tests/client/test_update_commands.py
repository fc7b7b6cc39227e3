"""``openstack stack update`` against a running Stoker."""

from client.commands import OpenStack
from harness.waiting import wait_for

WAIT = ("--wait",)
TEMPLATE = """
heat_template_version: 2018-08-31
parameters:
  word: {type: string, default: none}
  fixed: {type: string, default: x, immutable: true}
resources:
  r:
    type: OS::Heat::TestResource
    properties: {value: {get_param: word}, update_replace: %s}
  follower: {type: OS::Heat::Value, properties: {value: {get_attr: [r, output]}}}
outputs:
  word: {value: {get_attr: [follower, value]}}
"""
SMALL = "heat_template_version: 2018-08-31\nresources: {only: {type: OS::Heat::None}}\n"


def create(openstack: OpenStack, *, replaced: bool = False) -> str:
    path = openstack.file("t.yaml", TEMPLATE % str(replaced).lower())
    openstack.run("stack", "create", "s", "-t", path, "--parameter", "word=one", *WAIT, "--poll", "1")
    return path


def physical(openstack: OpenStack) -> dict[str, str]:
    rows = openstack.json("stack", "resource", "list", "s")
    return {row["resource_name"]: row["physical_resource_id"] for row in rows}


def output(openstack: OpenStack) -> str:
    return str(openstack.json("stack", "output", "show", "s", "word")["output_value"])


def test_a_parameter_changes_what_depends_on_it_in_place(openstack: OpenStack) -> None:
    path = create(openstack)
    before = physical(openstack)
    openstack.run("stack", "update", "s", "-t", path, "--parameter", "word=two", *WAIT)
    stack = openstack.json("stack", "show", "s")
    assert (stack["stack_status"], stack["parameters"]["word"]) == ("UPDATE_COMPLETE", "two")
    assert stack["updated_time"].endswith("Z")
    assert output(openstack) == "two"
    assert physical(openstack) == before


def test_existing_keeps_the_fields_that_are_not_given(openstack: OpenStack) -> None:
    create(openstack)
    openstack.run("stack", "update", "s", "--existing", "--parameter", "word=three", "--tags", "a,b", *WAIT)
    assert output(openstack) == "three"
    assert openstack.json("stack", "show", "s")["tags"] == ["a", "b"]
    openstack.run("stack", "update", "s", "--existing", "--clear-parameter", "word", *WAIT)
    assert output(openstack) == "none"
    assert openstack.json("stack", "show", "s")["tags"] == ["a", "b"]


def test_a_replacement_moves_its_followers_and_is_deleted(openstack: OpenStack) -> None:
    path = create(openstack, replaced=True)
    before = physical(openstack)
    openstack.run("stack", "update", "s", "-t", path, "--parameter", "word=two", *WAIT)
    after = physical(openstack)
    assert set(after) == set(before)
    assert after["r"] != before["r"]
    assert output(openstack) == "two"


def test_another_template_brings_and_removes_resources(openstack: OpenStack) -> None:
    create(openstack)
    openstack.run("stack", "update", "s", "-t", openstack.file("small.yaml", SMALL), *WAIT)
    assert set(physical(openstack)) == {"only"}
    assert openstack.json("stack", "show", "s")["outputs"] == []


def test_an_update_that_cannot_be_is_refused_and_changes_nothing(openstack: OpenStack) -> None:
    path = create(openstack)
    printed = openstack.fails("stack", "update", "s", "-t", path, "--parameter", "fixed=y")
    assert "The following parameters are immutable and may not be updated: fixed" in printed
    missing = openstack.fails("stack", "update", "missing", "-t", path)
    assert "The Stack (missing) could not be found." in missing
    bad = openstack.file("bad.yaml", SMALL.replace("None", "Nothing"))
    assert "OS::Heat::Nothing" in openstack.fails("stack", "update", "s", "-t", bad)
    assert openstack.json("stack", "show", "s")["stack_status"] == "CREATE_COMPLETE"


STUCK = """
heat_template_version: 2018-08-31
resources:
  r: {type: OS::Heat::TestResource, properties: {value: one}}
  stuck: {type: OS::Heat::TestResource, properties: {action_wait_secs: {create: -1}}}
"""


def test_a_stuck_update_is_cancelled_and_rolled_back(openstack: OpenStack) -> None:
    create(openstack)
    before = physical(openstack)
    openstack.run("stack", "update", "s", "-t", openstack.file("stuck.yaml", STUCK))
    openstack.run("stack", "cancel", "s", "--wait")
    assert openstack.json("stack", "show", "s")["stack_status"] == "ROLLBACK_COMPLETE"
    after = physical(openstack)
    assert after["r"] == before["r"]
    assert set(after) == set(before)
    assert output(openstack) == "one"


def test_a_stuck_creation_is_cancelled_without_rollback(openstack: OpenStack) -> None:
    openstack.run("stack", "create", "s", "-t", openstack.file("stuck.yaml", STUCK))
    openstack.run("stack", "cancel", "s", "--no-rollback")
    stack = openstack.json("stack", "show", "s")
    assert (stack["stack_status"], stack["stack_status_reason"]) == (
        "CREATE_FAILED",
        "User cancelled operation",
    )
    printed = openstack.fails("stack", "cancel", "s")
    assert "not in cancelable state" in printed
    assert "only an action in progress can be stopped" in openstack.fails("stack", "stop", "s")


def test_a_stuck_creation_is_stopped_and_rolled_back(openstack: OpenStack) -> None:
    openstack.run("stack", "create", "-t", openstack.file("t.yaml", STUCK), "s")
    done = openstack.run("stack", "stop", "s", "--rollback", "--wait", "-f", "value", "-c", "stack_status")
    assert done.out == "ROLLBACK_COMPLETE\n"
    assert openstack.run("stack", "resource", "list", "s", "-f", "value").out == ""


def test_a_failed_creation_is_rolled_back_where_that_is_requested(openstack: OpenStack) -> None:
    bad = STUCK.replace("action_wait_secs: {create: -1}", "fail: true")
    openstack.run("stack", "create", "s", "--enable-rollback", "-t", openstack.file("bad.yaml", bad))
    wait_for(lambda: openstack.json("stack", "show", "s")["stack_status"] == "ROLLBACK_COMPLETE")
    assert physical(openstack) == {}


def test_a_stack_is_suspended_resumed_and_checked(openstack: OpenStack) -> None:
    create(openstack)
    for command, state in (
        ("suspend", "SUSPEND_COMPLETE"),
        ("resume", "RESUME_COMPLETE"),
        ("check", "CHECK_COMPLETE"),
    ):
        openstack.run("stack", command, "s", "--wait")
        assert openstack.json("stack", "show", "s")["stack_status"] == state
        listed = openstack.json("stack", "resource", "list", "s")
        assert {item["resource_status"] for item in listed} == {state}
    assert "only a suspended stack is resumed" in openstack.fails("stack", "resume", "s")
