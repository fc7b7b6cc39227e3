"""Commands that show a stack, its resources and events, and the installation."""

import os
import pathlib
import signal
import sys

import pytest
from client.commands import Json, OpenStack
from harness.processes import Process

NAMES = ["first", "second", "handle"]


def test_a_stack_is_shown_with_masked_secrets(demo: OpenStack) -> None:
    stack = demo.json("stack", "show", "demo")
    assert stack["description"] == "A stack to look at"
    assert stack["parameters"]["secret"] == "******"
    assert {item["output_key"]: item["output_value"] for item in stack["outputs"]} == {
        "said": "hello",
        "size": 3,
    }
    assert "outputs" not in demo.json("stack", "show", "demo", "--no-resolve-outputs")
    assert demo.json("stack", "show", stack["id"]) == stack
    assert "CREATE_COMPLETE" in demo.run("stack", "show", "demo").out


def test_the_template_is_shown_as_yaml(demo: OpenStack) -> None:
    text = demo.run("stack", "template", "show", "demo").out
    assert text.startswith("heat_template_version: '2018-08-31'\ndescription: A stack to look at\n")
    assert "get_attr" in text


def test_the_environment_is_shown_with_masked_secrets(demo: OpenStack) -> None:
    environment = demo.json("stack", "environment", "show", "demo")
    assert environment["parameters"] == {"word": "hello", "secret": "******"}
    assert set(environment) == {"parameters", "resource_registry", "parameter_defaults"}


def test_files_are_listed_but_not_an_environment_that_gives_what_is_hidden(
    demo: OpenStack, openstack: OpenStack
) -> None:
    text = "heat_template_version: 2018-08-31\nparameters: {word: {type: string}}\n"
    template = openstack.file("listed.yaml", text)
    plain = openstack.file("plain.yaml", "parameters: {word: x}\n")
    openstack.run("stack", "create", "--wait", "-t", template, "-e", plain, "listed")
    files = openstack.json("stack", "file", "list", "listed")["files"]
    assert [name.rpartition("/")[2] for name in files] == ["plain.yaml"]
    assert "environment.yaml" not in demo.run("stack", "file", "list", "demo").out


def test_outputs_are_listed_and_shown(demo: OpenStack) -> None:
    assert demo.json("stack", "output", "list", "demo") == [
        {"output_key": "said", "description": "What the last one says"},
        {"output_key": "size", "description": "No description given"},
    ]
    assert demo.json("stack", "output", "show", "demo", "said")["output_value"] == "hello"
    everything = demo.json("stack", "output", "show", "demo", "--all")
    assert {key: item["output_value"] for key, item in everything.items()} == {"said": "hello", "size": 3}
    assert "output missing not found" in demo.fails("stack", "output", "show", "demo", "missing")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], NAMES),
        (["--filter", "name=second"], ["second"]),
        (["--filter", "type=OS::Heat::TestResource;status=COMPLETE"], ["first", "second"]),
        (["--filter", "status=FAILED"], []),
        (["-n", "2"], NAMES),
        (["--long"], NAMES),
    ],
)
def test_resources_are_listed(demo: OpenStack, options: list[str], expected: list[str]) -> None:
    rows = demo.json("stack", "resource", "list", "demo", *options)
    assert {row["resource_name"] for row in rows} == set(expected)
    for row in rows:
        assert row["resource_status"] == "CREATE_COMPLETE"
        assert ("stack_name" in row) == (options[:1] in (["-n"], ["--long"]))
        assert row.get("stack_name", "demo") == "demo"


def test_a_resource_is_shown(demo: OpenStack) -> None:
    resource = demo.json("stack", "resource", "show", "demo", "first", "--with-attr", "output")
    assert (resource["resource_type"], resource["required_by"]) == ("OS::Heat::TestResource", ["second"])
    assert resource["attributes"] == {"output": "hello"}
    assert demo.json("stack", "resource", "metadata", "demo", "first") == {"colour": "red"}


def test_wrong_resources_are_explained(demo: OpenStack) -> None:
    for command in ("show", "metadata", "signal", "mark unhealthy"):
        printed = demo.fails("stack", "resource", *command.split(), "demo", "missing")
        assert "not found" in printed
        assert "missing" in printed
    assert "Invalid filter parameters colour" in demo.fails(
        "stack", "resource", "list", "demo", "--filter", "colour=red"
    )
    assert "does not take signals" in demo.fails("stack", "resource", "signal", "demo", "first")


def events(demo: OpenStack, *options: str) -> list[tuple[str, str]]:
    rows: list[Json] = demo.json("stack", "event", "list", "demo", *options)
    return [(row["resource_name"], row["resource_status"]) for row in rows]


def test_events_are_listed_as_a_log_and_as_rows(demo: OpenStack) -> None:
    log = demo.run("stack", "event", "list", "demo").out.splitlines()
    assert log[0].endswith("[demo]: CREATE_IN_PROGRESS  Stack CREATE started")
    assert any(line.endswith("[demo.first]: CREATE_COMPLETE  state changed") for line in log)
    story = events(demo)
    assert len(story) == len(log) >= 8
    assert (story[0], story[-1]) == (("demo", "CREATE_IN_PROGRESS"), ("demo", "CREATE_COMPLETE"))
    assert events(demo, "--limit", "2") == story[:2]
    assert sorted(events(demo, "--nested-depth", "2")) == sorted(story)
    assert events(demo, "--filter", "resource_status=IN_PROGRESS", "--limit", "1") == story[:1]
    assert events(demo, "--sort", "resource_name:asc") == sorted(story, key=lambda item: item[0])
    assert events(demo, "--sort", ":desc")[0][1] == "CREATE_COMPLETE"


def test_events_are_paged_by_marker(demo: OpenStack) -> None:
    rows = demo.json("stack", "event", "list", "demo")
    after = demo.json("stack", "event", "list", "demo", "--marker", rows[2]["id"])
    assert after == rows[3:]
    assert "marker" in demo.fails("stack", "event", "list", "demo", "--marker", "nothing")


def test_events_of_a_resource_and_a_single_event(demo: OpenStack) -> None:
    assert events(demo, "--resource", "first") == [
        ("first", "CREATE_IN_PROGRESS"),
        ("first", "CREATE_COMPLETE"),
    ]
    row = demo.json("stack", "event", "list", "demo", "--resource", "first")[1]
    event = demo.json("stack", "event", "show", "demo", "first", row["id"])
    assert (event["resource_type"], event["resource_status"]) == ("OS::Heat::TestResource", "CREATE_COMPLETE")
    printed = demo.fails("stack", "event", "list", "demo", "--resource", "missing")
    assert "No events found for resource missing" in printed


def test_events_are_followed_until_the_user_interrupts(demo: OpenStack, tmp_path: pathlib.Path) -> None:
    command = [
        pathlib.Path(sys.executable).parent / "openstack",
        "stack",
        "event",
        "list",
        "--follow",
        "demo",
    ]
    follower = Process(
        command,
        log=tmp_path / "follow.log",
        # Heat's client prints them, and does not flush.
        env={**demo.variables, "PYTHONWARNINGS": "ignore", "PYTHONUNBUFFERED": "1"},
    )
    follower.wait_for_text("[demo]: CREATE_COMPLETE", 120)
    assert follower.stop(number=signal.SIGINT) == os.EX_OK
    assert "Traceback" not in follower.text()


def test_no_failures_print_nothing(demo: OpenStack) -> None:
    assert demo.run("stack", "failures", "list", "demo").out == ""


def test_a_signal_and_marks_change_a_resource(openstack: OpenStack) -> None:
    text = "heat_template_version: 2018-08-31\nresources: {h: {type: OS::Heat::WaitConditionHandle}}\n"
    openstack.run(
        *("stack", "create", "s", "-t", openstack.file("h.yaml", text), "--wait", "--poll", "1"),
    )
    body = openstack.file("data.json", '{"id": "2", "data": "from a file"}')
    openstack.run("stack", "resource", "signal", "s", "h", "--data", '{"id": "1", "data": "x"}')
    openstack.run("stack", "resource", "signal", "s", "h", "--data-file", body)
    metadata = openstack.json("stack", "resource", "metadata", "s", "h")
    assert {key: entry["data"] for key, entry in metadata.items()} == {"1": "x", "2": "from a file"}
    openstack.run("stack", "resource", "mark", "unhealthy", "s", "h", "it smells")
    resource = openstack.json("stack", "resource", "show", "s", "h")
    assert (resource["resource_status"], resource["resource_status_reason"]) == ("CHECK_FAILED", "it smells")
    openstack.run("stack", "resource", "mark", "unhealthy", "--reset", "s", "h")
    assert openstack.json("stack", "resource", "show", "s", "h")["resource_status"] == "CHECK_COMPLETE"
