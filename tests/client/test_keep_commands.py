"""``openstack stack snapshot``, ``abandon``, ``export`` and ``adopt`` against a running Stoker."""

import json
import pathlib
import typing

import pytest
from client.commands import OpenStack
from harness.waiting import wait_for

Json = typing.Any
TEMPLATE = """
heat_template_version: 2018-08-31
parameters:
  word: {type: string}
  secret: {type: string, hidden: true, default: none}
resources:
  r: {type: OS::Heat::TestResource, properties: {value: {get_param: word}}}
  password: {type: OS::Heat::RandomString}
  follower:
    type: OS::Heat::TestResource
    properties: {value: {list_join: ["-", [{get_attr: [r, output]}, {get_param: secret}]]}}
outputs:
  word: {value: {get_attr: [follower, output]}}
  password: {value: {get_attr: [password, value]}}
"""
WAIT = ("--wait", "--poll", "1")


def create(openstack: OpenStack, word: str = "one") -> None:
    path = openstack.file("t.yaml", TEMPLATE)
    parameters = ("--parameter", f"word={word}", "--parameter", "secret=s3cret")
    openstack.run("stack", "create", "s", "-t", path, *parameters, *WAIT)


def status(openstack: OpenStack, stack: str = "s") -> str:
    return str(openstack.json("stack", "show", stack)["stack_status"])


def becomes(openstack: OpenStack, expected: str, stack: str = "s") -> None:
    wait_for(lambda: status(openstack, stack) == expected, 60, lambda: status(openstack, stack))


def outputs(openstack: OpenStack, stack: str = "s") -> dict[str, str]:
    items = openstack.json("stack", "show", stack)["outputs"]
    return {item["output_key"]: item["output_value"] for item in items}


def physical(openstack: OpenStack, stack: str = "s") -> dict[str, str]:
    rows = openstack.json("stack", "resource", "list", stack)
    return {row["resource_name"]: row["physical_resource_id"] for row in rows}


def snapshot(openstack: OpenStack, *options: str) -> str:
    """Return its id from the list: the client prints a key in capitals that Heat does not give."""
    before = {row["id"] for row in openstack.json("stack", "snapshot", "list", "s")}
    openstack.run("stack", "snapshot", "create", "s", *options)
    becomes(openstack, "SNAPSHOT_COMPLETE")
    [created] = [row for row in openstack.json("stack", "snapshot", "list", "s") if row["id"] not in before]
    return str(created["id"])


def test_snapshots_are_created_listed_and_shown(openstack: OpenStack) -> None:
    create(openstack)
    created = openstack.json("stack", "snapshot", "create", "s", "--name", "first")
    assert (created["name"], created["action"], created["status"]) == ("first", "CREATE", "IN_PROGRESS")
    assert created["creation_time"].endswith("Z")
    becomes(openstack, "SNAPSHOT_COMPLETE")
    [row] = openstack.json("stack", "snapshot", "list", "s")
    assert (row["name"], row["action"], row["status"]) == ("first", "CREATE", "COMPLETE")
    assert row["status_reason"] == "Stack SNAPSHOT completed successfully"
    view = openstack.json("stack", "snapshot", "show", "s", row["id"])["snapshot"]
    data = view["data"]
    assert (data["name"], data["action"], data["status"]) == ("s", "SNAPSHOT", "COMPLETE")
    assert data["environment"]["parameters"] == {"word": "one", "secret": "******"}
    assert set(data["resources"]) == {"r", "password", "follower"}
    assert data["resources"]["r"]["resource_data"] == {"value": "one"}
    assert data["resources"]["r"]["resource_id"] == physical(openstack)["r"]
    assert data["resources"]["password"]["resource_data"] == "******"
    assert "s3cret" not in json.dumps(view)
    assert set(openstack.json("stack", "resource", "list", "s")[0]) >= {"resource_name"}
    assert len(openstack.json("stack", "resource", "list", "s")) == 3


def test_a_stack_is_restored_from_its_snapshot(openstack: OpenStack) -> None:
    create(openstack)
    before = outputs(openstack)
    ids = physical(openstack)
    first = snapshot(openstack)
    openstack.run("stack", "update", "s", "--existing", "--parameter", "word=two", "--wait")
    assert outputs(openstack)["word"] == "two-s3cret"
    openstack.run("stack", "snapshot", "restore", "s", first)
    becomes(openstack, "RESTORE_COMPLETE")
    assert outputs(openstack) == before
    assert physical(openstack) == ids
    assert openstack.json("stack", "show", "s")["parameters"]["word"] == "one"


@pytest.mark.full
def test_snapshots_are_deleted_one_by_one_and_with_their_stack(openstack: OpenStack) -> None:
    create(openstack)
    first = snapshot(openstack)
    second = snapshot(openstack, "--name", "second")
    openstack.run("stack", "snapshot", "delete", "-y", "s", first)
    wait_for(lambda: len(openstack.json("stack", "snapshot", "list", "s")) == 1)
    assert "not found" in openstack.fails("stack", "snapshot", "show", "s", first)
    assert "not found" in openstack.fails("stack", "snapshot", "delete", "-y", "s", first)
    assert "not found" in openstack.fails("stack", "snapshot", "restore", "s", first)
    assert openstack.json("stack", "snapshot", "show", "s", second)["snapshot"]["name"] == "second"
    openstack.run("stack", "delete", "-y", "s", "--wait")
    assert "Stack not found: s" in openstack.fails("stack", "snapshot", "list", "s")


def test_an_exported_stack_still_exists(openstack: OpenStack, tmp_path: pathlib.Path) -> None:
    create(openstack)
    document = openstack.json("stack", "export", "s")
    assert (document["name"], document["action"], document["status"]) == ("s", "CREATE", "COMPLETE")
    assert document["project_id"] == document["stack_user_project_id"] == openstack.tenant
    assert document["template"]["heat_template_version"] == "2018-08-31"
    assert document["environment"]["parameters"] == {"word": "one", "secret": "s3cret"}
    assert document["resources"]["r"] == {
        "name": "r",
        "resource_id": physical(openstack)["r"],
        "type": "OS::Heat::TestResource",
        "action": "CREATE",
        "status": "COMPLETE",
        "metadata": {},
        "resource_data": {"value": "one"},
    }
    openstack.run("stack", "export", "s", "--output-file", str(tmp_path / "s.json"))
    assert json.loads((tmp_path / "s.json").read_text()) == document
    assert status(openstack) == "CREATE_COMPLETE"
    assert "Stack not found: missing" in openstack.fails("stack", "export", "missing")


@pytest.mark.full
def test_adopt_accepts_the_document_of_abandon(openstack: OpenStack, tmp_path: pathlib.Path) -> None:
    create(openstack)
    before = outputs(openstack)
    ids = physical(openstack)
    file = str(tmp_path / "s.json")
    openstack.run("stack", "abandon", "s", "--output-file", file)
    assert "Stack not found: s" in openstack.fails("stack", "show", "s")
    adopted = openstack.json("stack", "adopt", "t", "--adopt-file", file)
    assert adopted["stack_name"] == "t"
    becomes(openstack, "ADOPT_COMPLETE", "t")
    assert physical(openstack, "t") == ids
    assert outputs(openstack, "t") == before
    assert {row["resource_status"] for row in openstack.json("stack", "resource", "list", "t")} == {
        "ADOPT_COMPLETE"
    }
    assert openstack.json("stack", "show", "t")["parameters"]["secret"] == "******"
    openstack.run("stack", "update", "t", "--existing", "--parameter", "word=two", "--wait")
    assert outputs(openstack, "t") == {**before, "word": "two-s3cret"}
    assert physical(openstack, "t") == ids
    openstack.run("stack", "delete", "-y", "t", "--wait")
    assert openstack.json("stack", "list") == []


def test_parameters_of_the_command_win_over_those_of_the_adopted_document(
    openstack: OpenStack, tmp_path: pathlib.Path
) -> None:
    create(openstack)
    file = str(tmp_path / "s.json")
    limited = ("--timeout", "7", "--wait")
    openstack.run("stack", "abandon", "s", "--output-file", file)
    openstack.run("stack", "adopt", "t", "--adopt-file", file, "--parameter", "word=mine", *limited)
    assert openstack.json("stack", "show", "t")["parameters"]["word"] == "mine"
    assert openstack.json("stack", "show", "t")["timeout_mins"] == 7


def test_a_failed_adoption_has_a_reason(openstack: OpenStack) -> None:
    create(openstack)
    document: Json = openstack.json("stack", "export", "s")
    document["resources"]["r"]["resource_id"] = None
    openstack.run("stack", "adopt", "t", "--adopt-file", openstack.file("t.json", json.dumps(document)))
    becomes(openstack, "ADOPT_FAILED", "t")
    reason = openstack.json("stack", "show", "t")["stack_status_reason"]
    assert reason == "Resource ADOPT failed: Exception: resources.r: Resource ID was not provided."
    nothing = openstack.file("nothing.json", "resources: {}")
    printed = openstack.fails("stack", "adopt", "u", "--adopt-file", nothing)
    assert 'Invalid adopt data: "template" is required' in printed


def test_a_stack_in_progress_is_neither_abandoned_nor_snapshotted(openstack: OpenStack) -> None:
    stuck = "{type: OS::Heat::TestResource, properties: {action_wait_secs: {create: -1}}}"
    path = openstack.file("t.yaml", f"heat_template_version: 2018-08-31\nresources: {{stuck: {stuck}}}\n")
    openstack.run("stack", "create", "s", "-t", path)
    message = "Stack s already has an action (CREATE) in progress."
    assert message in openstack.fails("stack", "abandon", "s")
    assert message in openstack.fails("stack", "snapshot", "create", "s")
    assert openstack.json("stack", "snapshot", "list", "s") == []
    openstack.run("stack", "delete", "-y", "s")
