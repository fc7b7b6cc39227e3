"""``openstack stack update --dry-run`` against a running Stoker."""

from client.commands import Json, OpenStack

TEMPLATE = """
heat_template_version: 2018-08-31
parameters:
  word: {type: string, default: none}
  fixed: {type: string, default: x, immutable: true}
resources:
  same: {type: OS::Heat::None, description: Stays, metadata: {colour: red}}
  up: {type: OS::Heat::TestResource, properties: {value: {get_param: word}}}
  random: {type: OS::Heat::RandomString, properties: {salt: {get_attr: [up, output]}}}
  old: {type: OS::Heat::TestResource, properties: {value: x, update_replace: true}}
  gone: {type: OS::Heat::None}
"""
CHANGED = TEMPLATE.replace("value: x", "value: y").replace("gone:", "new:")


def changes(openstack: OpenStack, *options: str) -> dict[str, list[Json]]:
    preview: dict[str, list[Json]] = openstack.json("stack", "update", "s", "--dry-run", *options)
    assert list(preview) == ["added", "deleted", "replaced", "unchanged", "updated"]
    return preview


def names(preview: dict[str, list[Json]]) -> dict[str, list[str]]:
    return {effect: [item["resource_name"] for item in items] for effect, items in preview.items()}


def test_a_dry_run_shows_the_changes_of_an_update_and_makes_none(openstack: OpenStack) -> None:
    path = openstack.file("t.yaml", TEMPLATE)
    openstack.run("stack", "create", "s", "-t", path, "--wait", "--poll", "1")
    listed = openstack.json("stack", "resource", "list", "s")
    new = openstack.file("changed.yaml", CHANGED)
    preview = changes(openstack, "-t", new, "--parameter", "word=two", "--show-nested")
    assert names(preview) == {
        "unchanged": ["same"],
        "updated": ["up", "random"],
        "replaced": ["old"],
        "added": ["new"],
        "deleted": ["gone"],
    }
    (same,) = preview["unchanged"]
    (up, random) = preview["updated"]
    (added,) = preview["added"]
    stack = openstack.json("stack", "show", "s")
    where = {"stack_name": "s", "stack_id": stack["id"], "tenant": openstack.tenant}
    assert same["resource_identity"] == {**where, "path": "/resources/same"}
    assert same["stack_identity"] == {**where, "path": ""}
    assert (same["resource_action"], same["resource_status"]) == ("CREATE", "COMPLETE")
    assert (same["resource_type"], same["description"], same["metadata"]) == (
        "OS::Heat::None",
        "Stays",
        {"colour": "red"},
    )
    assert up["attributes"]["output"] == "none", "as it is now"
    assert up["required_by"] == ["random"]
    assert random["resource_status_reason"] == (
        "may be replaced: depends on up: values that are not known before the update"
    )
    assert (added["resource_action"], added["resource_status"], added["physical_resource_id"]) == (
        "INIT",
        "COMPLETE",
        "",
    )
    assert openstack.json("stack", "resource", "list", "s") == listed
    assert stack["stack_status"] == "CREATE_COMPLETE"


def test_a_dry_run_may_take_missing_fields_from_the_stack(openstack: OpenStack) -> None:
    path = openstack.file("t.yaml", TEMPLATE)
    openstack.run(
        "stack", "create", "s", "-t", path, "--parameter", "word=one", "--wait", "--poll", "1", "--tags", "a"
    )
    everything = ["same", "old", "gone", "up", "random"]
    unchanged = names(changes(openstack, "--existing"))["unchanged"]
    assert sorted(unchanged) == sorted(everything)
    assert names(changes(openstack, "--existing", "--clear-parameter", "word"))["updated"] == ["up", "random"]
    assert names(changes(openstack, "-t", path))["updated"] == ["up", "random"]


def test_a_dry_run_refuses_what_the_update_would_refuse(openstack: OpenStack) -> None:
    path = openstack.file("t.yaml", TEMPLATE)
    openstack.run("stack", "create", "s", "-t", path, "--wait", "--poll", "1")
    dry = ("stack", "update", "s", "--dry-run")
    assert "immutable" in openstack.fails(*dry, "-t", path, "--parameter", "fixed=y")
    broken = openstack.file("broken.yaml", TEMPLATE.replace("OS::Heat::None", "OS::Heat::Nothing"))
    assert "OS::Heat::Nothing" in openstack.fails(*dry, "-t", broken)
    assert "could not be found" in openstack.fails("stack", "update", "missing", "--dry-run", "-t", path)
    openstack.run("stack", "suspend", "s", "--wait")
    assert "suspended" in openstack.fails(*dry, "-t", path)
