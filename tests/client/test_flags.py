"""Flags of the client's commands that no other test uses, and commands that Stoker does not serve."""

import pytest
from client.commands import OpenStack

WAIT = ("--wait",)
TEMPLATE = """
heat_template_version: 2018-08-31
parameters:
  text: {type: string, default: none}
resources:
  r: {type: OS::Heat::TestResource, properties: {value: {get_param: text}}}
"""
CHILD = "heat_template_version: 2018-08-31\nresources: {only: {type: OS::Heat::None}}\n"
PARENT = "heat_template_version: 2018-08-31\nresources: {child: {type: child.yaml}}\n"


def create(openstack: OpenStack, *options: str) -> str:
    path = openstack.file("t.yaml", TEMPLATE)
    openstack.run("stack", "create", "s", "-t", path, *options, *WAIT, "--poll", "1")
    return path


def test_an_update_converges(openstack: OpenStack) -> None:
    path = create(openstack)
    before = openstack.json("stack", "resource", "show", "s", "r")
    openstack.run("stack", "update", "s", "-t", path, "--converge", *WAIT)
    after = openstack.json("stack", "resource", "show", "s", "r")
    assert openstack.json("stack", "show", "s")["stack_status"] == "UPDATE_COMPLETE"
    assert after["physical_resource_id"] == before["physical_resource_id"]
    assert after["resource_status"] == "CREATE_COMPLETE"
    preview = openstack.json("stack", "update", "s", "-t", path, "--converge", "--dry-run")
    # The client sends the flag with the update itself only.
    assert [item["resource_name"] for item in preview["unchanged"]] == ["r"]


@pytest.mark.parametrize(("rollback", "disabled"), [("enabled", False), ("disabled", True), ("keep", False)])
def test_an_update_says_whether_a_failure_is_rolled_back(
    openstack: OpenStack, rollback: str, disabled: bool
) -> None:
    path = create(openstack, "--enable-rollback")
    openstack.run("stack", "update", "s", "-t", path, "--rollback", rollback, "--timeout", "7", *WAIT)
    stack = openstack.json("stack", "show", "s")
    assert (stack["disable_rollback"], stack["timeout_mins"]) == (disabled, 7)


def test_an_update_takes_parameters_from_files(openstack: OpenStack) -> None:
    path = create(openstack)
    text = openstack.file("text.txt", "from a file")
    environment = openstack.file("e.yaml", "parameters: {text: from the environment}\n")
    openstack.run("stack", "update", "s", "-t", path, "-e", environment, *WAIT)
    assert openstack.json("stack", "show", "s")["parameters"]["text"] == "from the environment"
    openstack.run("stack", "update", "s", "-t", path, "--parameter-file", f"text={text}", *WAIT)
    assert openstack.json("stack", "show", "s")["parameters"]["text"] == "from a file"


def test_an_update_that_is_restricted_fails_with_the_reason(openstack: OpenStack) -> None:
    path = create(openstack)
    environment = openstack.file(
        "e.yaml", "resource_registry: {resources: {r: {restricted_actions: update}}}\n"
    )
    options = ("-t", path, "-e", environment, "--parameter", "text=new")
    assert "update is restricted for resource." in openstack.fails("stack", "update", "s", *options, *WAIT)
    changes = openstack.json("stack", "update", "s", *options, "--dry-run")["updated"]
    assert changes[0]["resource_status_reason"].endswith("update is restricted for resource.")


def test_a_type_without_a_check_has_a_reason(openstack: OpenStack) -> None:
    path = openstack.file("none.yaml", CHILD)
    openstack.run("stack", "create", "s", "-t", path, *WAIT, "--poll", "1")
    openstack.run("stack", "check", "s", *WAIT)
    resource = openstack.json("stack", "resource", "show", "s", "only")
    assert (resource["resource_status"], resource["resource_status_reason"]) == (
        "CHECK_COMPLETE",
        "CHECK not supported for OS::Heat::None",
    )


def test_a_dry_run_shows_changes_of_nested_stacks(openstack: OpenStack) -> None:
    openstack.file("child.yaml", CHILD)
    path = openstack.file("parent.yaml", PARENT)
    openstack.run("stack", "create", "s", "-t", path, *WAIT, "--poll", "1")
    openstack.file("child.yaml", CHILD.replace("only", "other"))
    dry = ("stack", "update", "s", "-t", path, "--dry-run")
    (child,) = openstack.json(*dry)["updated"]
    preview = openstack.json(*dry, "--show-nested")
    assert child == preview["updated"][0] | {"updated_time": child["updated_time"]}
    (deleted,) = preview["deleted"]
    (new,) = preview["added"]
    inside = openstack.json("stack", "resource", "show", "s", "child")["physical_resource_id"]
    assert (deleted["resource_name"], new["resource_name"]) == ("only", "other")
    assert deleted["stack_identity"]["stack_id"] == new["stack_identity"]["stack_id"] == inside


def test_a_files_container_is_refused(openstack: OpenStack) -> None:
    path = create(openstack)
    container = ("-t", path, "--files-container", "box")
    for command in (
        ("stack", "create", "other", *container),
        ("stack", "update", "s", *container),
        ("stack", "update", "s", *container, "--dry-run"),
        ("orchestration", "template", "validate", *container),
    ):
        assert "files_container is not supported" in openstack.fails(*command), command


def test_a_validation_may_ignore_errors(openstack: OpenStack) -> None:
    validate = ("orchestration", "template", "validate", "-t", openstack.file("t.yaml", TEMPLATE))
    openstack.json(*validate, "--ignore-errors", "99001")
    printed = openstack.fails(*validate, "--ignore-errors", "99001,12")
    assert "Invalid codes in ignore_errors: 12; known: 99001" in printed


def test_an_event_is_shown(openstack: OpenStack) -> None:
    create(openstack)
    event = openstack.json("stack", "event", "list", "s", "--resource", "r")[0]
    view = openstack.json("stack", "event", "show", "s", "r", event["id"])
    assert (view["resource_name"], view["resource_status"]) == ("r", event["resource_status"])
    assert "could not be found" in openstack.fails("stack", "event", "show", "s", "r", "missing")
