"""Breakpoints through the real client: the session of doc/breakpoints.md, and the rest of the commands."""

import pathlib
import shlex
import typing

import pytest
from client.commands import OpenStack
from harness.waiting import wait_for

Json = typing.Any
ROOT = pathlib.Path(__file__).parents[2]
DOC = ROOT / "doc" / "breakpoints.md"
PROMPT = "    $ openstack "
LOOKS = {
    ("stack", "show"),
    ("resource", "list"),
    ("resource", "show"),
    ("breakpoint", "list"),
    ("hook", "poll"),
}
"""Commands that change nothing: asked again until what they print has come about."""
CHAIN = """
heat_template_version: 2018-08-31
parameters:
  word: {type: string, default: one}
resources:
  a: {type: OS::Heat::TestResource, properties: {value: {get_param: word}}}
  b: {type: OS::Heat::TestResource, properties: {value: {get_attr: [a, output]}}}
  c: {type: OS::Heat::TestResource, properties: {value: {get_attr: [b, output]}}}
"""


def session() -> list[tuple[list[str], str]]:
    """Commands of the document, each with what it says that they print."""
    commands: list[tuple[list[str], list[str]]] = []
    in_output = False
    for line in DOC.read_text().splitlines():
        if line.startswith(PROMPT):
            commands.append((shlex.split(line[len(PROMPT) :]), []))
            in_output = True
        elif in_output and line.startswith("    "):
            commands[-1][1].append(line[4:])
        else:
            in_output = False
    return [(command, "".join(f"{line}\n" for line in lines)) for command, lines in commands]


def test_the_session_of_the_document_runs_as_shown(
    openstack: OpenStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    commands = session()
    assert len(commands) == 12
    for command, printed in commands:
        if LOOKS & set(zip(command, command[1:], strict=False)):
            wait_for(
                lambda: openstack.run(*command).out == printed,  # noqa: B023
                60,
                lambda: f"{command}: {openstack.run(*command).out}",  # noqa: B023
            )
        else:
            assert openstack.run(*command).out == printed, command
    environment = (ROOT / "examples" / "breakpoints-environment.yaml").read_text()
    assert "".join(f"    {line}\n" for line in environment.splitlines()) in DOC.read_text()


def create(openstack: OpenStack, *options: str) -> str:
    path = openstack.file("chain.yaml", CHAIN)
    openstack.run("stack", "create", "s", "-t", path, *options)
    return path


def held(openstack: OpenStack) -> list[tuple[str, str]]:
    rows = openstack.json("stack", "breakpoint", "list", "s")
    return [(row["resource_name"], row["hook"]) for row in rows]


def wait_held(openstack: OpenStack, *names: str) -> None:
    wait_for(lambda: [name for name, _ in held(openstack)] == [*names], 60, lambda: str(held(openstack)))


def wait_status(openstack: OpenStack, status: str) -> Json:
    def stack() -> Json:
        return openstack.json("stack", "show", "s")

    wait_for(lambda: stack()["stack_status"] == status, 60, lambda: str(stack()))
    return stack()


def polled(openstack: OpenStack) -> list[str]:
    return [row["Resource Name"] for row in openstack.json("stack", "hook", "poll", "s")]


def test_heats_own_commands_set_poll_and_clear_breakpoints(openstack: OpenStack) -> None:
    path = create(openstack, "--pre-create", "b")
    wait_held(openstack, "b")
    assert polled(openstack) == ["b"]
    openstack.run("stack", "hook", "clear", "s", "b", "--pre-create")
    wait_status(openstack, "CREATE_COMPLETE")
    openstack.run("stack", "update", "s", "-t", path, "--parameter", "word=two", "--pre-update", "b")
    wait_held(openstack, "b")
    assert polled(openstack) == ["b"]
    openstack.run("stack", "hook", "clear", "s", "b")
    wait_status(openstack, "UPDATE_COMPLETE")
    environment = openstack.file("e.yaml", "resource_registry: {resources: {b: {hooks: pre-delete}}}")
    openstack.run("stack", "update", "s", "-t", path, "-e", environment, "--parameter", "word=two", "--wait")
    openstack.run("stack", "delete", "s", "-y")
    wait_held(openstack, "b")
    assert polled(openstack) == ["b"]
    assert [row["resource_name"] for row in openstack.json("stack", "resource", "list", "s")] == ["a", "b"]
    openstack.run("stack", "hook", "clear", "s", "b", "--pre-delete")
    wait_for(lambda: openstack.call("stack", "show", "s").code == 1)


def test_clearing_twice_or_a_resource_that_is_not_held_is_an_error(openstack: OpenStack) -> None:
    create(openstack, "--pre-create", "b")
    wait_held(openstack, "b")
    printed = openstack.fails("stack", "hook", "clear", "s", "a")
    assert 'The "pre-create" hook is not defined on TestResource "a"' in printed
    printed = openstack.fails("stack", "continue", "s", "b", "x*")
    assert 'No resource "x*" of stack s is held at a breakpoint; held are: b' in printed
    assert held(openstack) == [("b", "pre-create")]
    openstack.run("stack", "continue", "s", "b")
    wait_status(openstack, "CREATE_COMPLETE")
    assert "Nothing of stack s is held at a breakpoint" in openstack.fails("stack", "continue", "s")
    assert "Stack not found: none" in openstack.fails("stack", "step", "none")


@pytest.mark.full
def test_a_held_stack_is_updated_to_another_template_or_deleted(openstack: OpenStack) -> None:
    path = create(openstack, "--pre-create", "b")
    wait_held(openstack, "b")
    openstack.run("stack", "update", "s", "-t", path, "--parameter", "word=two", "--wait")
    assert openstack.json("stack", "show", "s")["stack_status"] == "UPDATE_COMPLETE"
    openstack.run("stack", "update", "s", "-t", path, "--parameter", "word=three", "--pre-update", "c")
    wait_held(openstack, "c")
    [listed] = openstack.json("stack", "list")
    assert listed["Stack Status"] == "UPDATE_IN_PROGRESS"
    openstack.run("stack", "delete", "s", "-y", "--wait")


def test_retries_are_turned_off_in_a_file_that_the_client_can_read(openstack: OpenStack) -> None:
    text = 'resource_registry: {resources: {"*": {stoker: {retries: 0}, hooks: {pre-create: {timeout: 1}}}}}'
    create(openstack, "-e", openstack.file("e.yaml", text), "--wait", "--poll", "1")
    reasons = [row["resource_status_reason"] for row in openstack.json("stack", "event", "list", "s")]
    assert reasons.count("Hook pre-create is cleared") == 3, "each went on after its second"
