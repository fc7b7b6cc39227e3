"""``openstack stack create|list|show|delete`` and what they print."""

import json
import re
import threading
import urllib.request

import pytest
from client.commands import OpenStack
from harness.waiting import wait_for

WAIT = ("--wait", "--poll", "1")
TEMPLATE = """
heat_template_version: 2018-08-31
parameters:
  word: {type: string, default: none}
  text: {type: string, default: none}
resources:
  r: {type: OS::Heat::TestResource, properties: {value: {get_param: word}}}
  file: {type: OS::Heat::Value, properties: {value: {get_file: note.txt}}}
outputs:
  note: {value: {get_attr: [file, value]}}
"""
FAILING = """
heat_template_version: 2018-08-31
resources:
  good: {type: OS::Heat::None}
  bad: {type: OS::Heat::TestResource, properties: {fail: true}}
"""
TINY = "heat_template_version: 2018-08-31\nresources: {r: {type: OS::Heat::None}}\n"


@pytest.fixture
def template(openstack: OpenStack) -> str:
    openstack.file("note.txt", "take note")
    return openstack.file("template.yaml", TEMPLATE)


def create(openstack: OpenStack, name: str, *options: str) -> None:
    openstack.run("stack", "create", name, "-t", openstack.file("tiny.yaml", TINY), *options)


def names(openstack: OpenStack, *options: str) -> list[str]:
    return [row["Stack Name"] for row in openstack.json("stack", "list", *options)]


def test_a_stack_is_created_with_all_that_the_command_line_offers(
    openstack: OpenStack, template: str
) -> None:
    environment = openstack.file("environment.yaml", "parameters: {word: from the environment}\n")
    text = openstack.file("text.txt", "from a file")
    done = openstack.run(
        *("stack", "create", "full", "-t", template, "-e", environment, "--parameter-file", f"text={text}"),
        *("--tags", "one,two", "--timeout", "5", "--enable-rollback", *WAIT, "-f", "json"),
    )
    progress, _, table = done.out.partition("{")
    assert "[full]: CREATE_COMPLETE  Stack CREATE completed successfully" in progress
    created = json.loads("{" + table)
    assert (created["stack_name"], created["stack_status"]) == ("full", "CREATE_COMPLETE")
    stack = openstack.json("stack", "show", "full")
    assert stack["id"] == created["id"]
    assert (stack["parameters"]["word"], stack["parameters"]["text"]) == (
        "from the environment",
        "from a file",
    )
    assert (stack["tags"], stack["timeout_mins"]) == (["one", "two"], 5)
    assert stack["disable_rollback"] is False
    assert stack["outputs"][0]["output_value"] == "take note"


def test_parameters_win_over_environments_and_later_environments_over_earlier(
    openstack: OpenStack, template: str
) -> None:
    files = [
        openstack.file(f"{number}.yaml", f"parameters: {{word: {number}, text: {number}}}")
        for number in (1, 2)
    ]
    options = [word for path in files for word in ("-e", path)]
    openstack.run("stack", "create", "layers", "-t", template, *options, "--parameter", "word=given", *WAIT)
    parameters = openstack.json("stack", "show", "layers")["parameters"]
    assert (parameters["word"], parameters["text"]) == ("given", "2")


def test_a_dry_run_shows_a_creation_and_creates_nothing(openstack: OpenStack, template: str) -> None:
    preview = openstack.json("stack", "create", "dry", "-t", template, "--dry-run", "--parameter", "word=x")
    assert [item["resource_name"] for item in preview["resources"]] == ["r", "file"]
    assert preview["resources"][0]["properties"]["value"] == "x"
    assert preview["parameters"]["word"] == "x"
    assert names(openstack) == []


def test_a_creation_that_fails_ends_the_command_with_1(openstack: OpenStack) -> None:
    path = openstack.file("failing.yaml", FAILING)
    printed = openstack.fails("stack", "create", "broken", "-t", path, *WAIT)
    assert "[broken.bad]: CREATE_FAILED" in printed
    assert "Stack broken CREATE_FAILED" in printed
    failures = openstack.run("stack", "failures", "list", "broken").out
    assert "broken.bad:" in failures
    assert "resource_type: OS::Heat::TestResource" in failures
    assert "status: CREATE_FAILED" in failures
    assert "status_reason" in failures
    assert "good" not in failures


def test_wrong_input_is_explained(openstack: OpenStack, template: str) -> None:
    create(openstack, "taken")
    for arguments, message in (
        (("taken", "-t", template), "The Stack (taken) already exists."),
        (("1st", "-t", template), 'must contain only alphanumeric or "_-." characters'),
        (("s", "-t", template, "--parameter", "wrd=x"), 'no parameter "wrd"'),
        (("s", "-t", template, "--tags", "a,,b"), "Invalid tag"),
        (("s", "-t", template, "--timeout", "-5"), "Value '-5' is invalid for 'timeout_mins'"),
        (("taken", "-t", template, "--dry-run"), "already exists"),
    ):
        assert message in openstack.fails("stack", "create", *arguments)
    broken = openstack.file("broken.yaml", TEMPLATE.replace("TestResource", "TestResorce"))
    assert "OS::Heat::TestResorce" in openstack.fails("stack", "create", "s", "-t", broken)
    assert names(openstack) == ["taken"]


def test_a_missing_stack_is_reported_as_not_found(openstack: OpenStack) -> None:
    for command in (
        "stack show",
        "stack template show",
        "stack environment show",
        "stack file list",
        "stack output list",
        "stack resource list",
        "stack delete -y",
    ):
        assert "Stack not found: missing" in openstack.fails(*command.split(), "missing")
    for command in ("stack event list", "stack failures list"):
        assert "The Stack (missing) could not be found." in openstack.fails(*command.split(), "missing")


def test_lists_are_filtered_sorted_and_paged(openstack: OpenStack) -> None:
    for name, tags in (("ant", "small,red"), ("bee", "small"), ("cat", "red")):
        create(openstack, name, "--tags", tags, *WAIT)
    cases: list[tuple[list[str], list[str]]] = [
        ([], ["cat", "bee", "ant"]),
        (["--sort", "stack_name"], ["ant", "bee", "cat"]),
        (["--sort", "stack_name:desc"], ["cat", "bee", "ant"]),
        (["--property", "name=bee"], ["bee"]),
        (["--property", "status=COMPLETE", "--property", "name=ant"], ["ant"]),
        (["--property", "status=FAILED"], []),
        (["--tags", "small"], ["bee", "ant"]),
        (["--tags", "small,red"], ["ant"]),
        (["--tags", "small,red", "--tag-mode", "any"], ["cat", "bee", "ant"]),
        (["--tags", "small,red", "--tag-mode", "not"], ["cat", "bee"]),
        (["--tags", "small", "--tag-mode", "not-any"], ["cat"]),
        (["--limit", "2"], ["cat", "bee"]),
        (["--limit", "7"], ["cat", "bee", "ant"]),
        (["--nested", "--hidden"], ["cat", "bee", "ant"]),
    ]
    for options, expected in cases:
        assert names(openstack, *options) == expected, options
    marker = openstack.json("stack", "show", "cat")["id"]
    assert names(openstack, "--marker", marker) == ["bee", "ant"]
    assert names(openstack, "--marker", marker, "--limit", "1") == ["bee"]


def test_a_list_has_the_columns_of_heats(openstack: OpenStack) -> None:
    create(openstack, "only", *WAIT)
    (row,) = openstack.json("stack", "list", "--nested", "--deleted")
    assert re.fullmatch("[0-9a-f-]{36}", row.pop("ID"))
    assert row.pop("Creation Time").endswith("Z")
    assert row == {
        "Stack Name": "only",
        "Stack Status": "CREATE_COMPLETE",
        "Updated Time": None,
        "Parent": None,
        "Deletion Time": None,
    }
    (short,) = openstack.json("stack", "list", "--short")
    assert set(short) == {"ID", "Stack Name", "Stack Status"}


def test_wrong_lists_are_explained(openstack: OpenStack) -> None:
    assert "not authorized" in openstack.fails("stack", "list", "--all-projects")
    assert "not authorized" in openstack.fails("stack", "list", "--long")
    assert "marker" in openstack.fails("stack", "list", "--marker", "nothing")
    assert "Value '-1' is invalid for 'limit'" in openstack.fails("stack", "list", "--limit", "-1")


def test_a_deletion_is_waited_for_and_shown_with_the_deleted(openstack: OpenStack) -> None:
    create(openstack, "doomed", *WAIT)
    openstack.run("stack", "delete", "-y", "--wait", "doomed")
    assert names(openstack) == []
    (row,) = openstack.json("stack", "list", "--deleted")
    assert (row["Stack Name"], row["Stack Status"]) == ("doomed", "DELETE_COMPLETE")
    assert row["Deletion Time"].endswith("Z")


def test_several_stacks_are_deleted_and_those_missing_are_named(openstack: OpenStack) -> None:
    create(openstack, "one", *WAIT)
    create(openstack, "two", *WAIT)
    printed = openstack.fails("stack", "delete", "-y", "one", "missing", "two")
    assert "Stack not found: missing" in printed
    assert "Unable to delete 1 of the 3 stacks." in printed
    for row in openstack.json("stack", "list"):
        assert row["Stack Status"].startswith("DELETE_")


@pytest.mark.full
def test_commands_work_as_processes_of_their_own(openstack: OpenStack) -> None:
    path = openstack.file("tiny.yaml", TINY)
    finished = openstack.process(
        "stack", "create", "--wait", "--poll", "1", "-t", path, "real", "-f", "value"
    )
    assert (finished.code, finished.err) == (0, ""), finished
    assert finished.out.endswith("\nCREATE_COMPLETE\nStack CREATE completed successfully\n")
    again = openstack.process("stack", "create", "-t", path, "real")
    assert (again.code, again.out) == (1, "")
    assert again.err.strip() == "ERROR: The Stack (real) already exists."


def test_a_wait_for_a_failing_creation_includes_its_rollback(openstack: OpenStack) -> None:
    statuses: set[str] = set()
    over = threading.Event()

    def poll() -> None:
        stacks = f"{openstack.service.url}/v1/{openstack.tenant}/stacks"
        while not over.is_set():
            with urllib.request.urlopen(stacks, timeout=120) as answer:
                statuses.update(stack["stack_status"] for stack in json.load(answer)["stacks"])

    watcher = threading.Thread(target=poll)
    watcher.start()
    try:
        failing = openstack.file("failing.yaml", FAILING)
        done = openstack.call("stack", "create", "back", "-t", failing, "--enable-rollback", *WAIT)
        wait_for(lambda: "ROLLBACK_COMPLETE" in statuses)
    finally:
        over.set()
        watcher.join()
    # The client stops at the event, as with Heat; who polls the status stops at the rollback's end.
    assert (done.code, "Stack back CREATE_FAILED" in done.err) == (1, True)
    order = [line.split("]: ")[1].split()[0] for line in done.out.splitlines() if "[back]" in line]
    assert (
        order
        == [
            "CREATE_IN_PROGRESS",
            "CREATE_FAILED",
            "ROLLBACK_IN_PROGRESS",
            "ROLLBACK_COMPLETE",
        ][: len(order)]
    )
    assert statuses <= {"CREATE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE"}


def test_all_errors_of_a_template_are_printed(openstack: OpenStack) -> None:
    wrong = """
heat_template_version: 2018-08-31
resources:
  web: {type: OS::Heat::TestResource, properties: {valeu: 1}}
  volume: {type: OS::Heat::TestResource, properties: {wait_secs: big}}
outputs:
  address: {values: 1}
"""
    path = openstack.file("wrong.yaml", wrong)
    right = openstack.file("right.yaml", "heat_template_version: 2018-08-31")
    openstack.run("stack", "create", "there", "-t", right, "--wait", "--poll", "1")
    for command in (("create", "s"), ("create", "s", "--dry-run"), ("update", "there"), ("plan", "there")):
        lines = openstack.fails("stack", *command, "-t", path).strip().splitlines()[-4:]
        keyword = '"values" is not a valid keyword inside a output definition; did you mean "value"?'
        assert lines[0].endswith(f"{keyword} (outputs.address)")
        assert lines[1] == "2 more errors:"
        assert lines[2].startswith(
            '- resources.web.properties: Unknown Property valeu; did you mean "value"?'
        )
        assert lines[3] == "- resources.volume.properties.wait_secs: Value 'big' is not a number"
