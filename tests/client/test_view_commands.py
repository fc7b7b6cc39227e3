"""``openstack stack plan``, ``watch``, ``graph`` and ``timeline`` against a running Stoker."""

import itertools
import json
import os
import pty
import re
import signal
import subprocess
import sys

from client.commands import OpenStack
from harness.templates import chain

TEMPLATE = """
heat_template_version: 2018-08-31
parameters:
  word: {type: string, default: none}
resources:
  up: {type: OS::Heat::TestResource, properties: {value: {get_param: word}}}
  random: {type: OS::Heat::RandomString, properties: {salt: {get_attr: [up, output]}}}
  gone: {type: OS::Heat::None}
"""
CHANGED = TEMPLATE.replace("gone:", "new:")
FAILING = TEMPLATE.replace("get_param: word}", "get_param: word}, fail: true")


def create(openstack: OpenStack, text: str = TEMPLATE) -> str:
    path = openstack.file("t.yaml", text)
    openstack.run("stack", "create", "s", "-t", path)
    return path


def test_a_plan_shows_changes_and_ends_with_2_if_there_are_any(openstack: OpenStack) -> None:
    path = create(openstack)
    assert openstack.call("stack", "watch", "s", "--interval", "0.2").code == 0
    done = openstack.call(
        "stack", "plan", "s", "-t", openstack.file("new.yaml", CHANGED), "--parameter", "word=two"
    )
    assert (done.code, done.err) == (2, "")
    random, up, added, deleted, sums = done.out.splitlines()
    assert up == "  ~ up  OS::Heat::TestResource (value: none → two)"
    assert random.startswith("-/+ random  OS::Heat::RandomString (may be replaced: depends on up")
    assert (added, deleted) == ("  + new  OS::Heat::None", "  - gone  OS::Heat::None")
    assert sums == "Plan: 1 to add, 2 to update, 0 to replace, 1 to delete (1 may be replaced); 0 unchanged"
    same = openstack.run("stack", "plan", "s", "-t", path, "-f", "json")
    assert same.json["sums"] == {"replaced": 0, "updated": 0, "added": 0, "deleted": 0, "unchanged": 3}
    plan = openstack.call("stack", "plan", "s", "--existing", "--parameter", "word=three")
    assert plan.code == 2
    assert "Stack not found: nothing" in openstack.fails("stack", "plan", "nothing", "-t", path)


def test_a_plan_with_the_cloud_is_also_one_of_a_new_stack(openstack: OpenStack) -> None:
    path = openstack.file("t.yaml", TEMPLATE)
    new = openstack.call("stack", "plan", "s", "-t", path, "--check-cloud")
    assert (new.code, new.err) == (2, "")
    assert new.out.splitlines()[-1].startswith("Plan: 3 to add, 0 to update")
    create(openstack)
    openstack.call("stack", "watch", "s", "--interval", "0.2")
    same = openstack.run("stack", "plan", "s", "-t", path, "--check-cloud", "-f", "json")
    assert same.json["sums"]["unchanged"] == 3
    # Its types need no service.
    assert same.json["findings"] == []
    kept = openstack.call("stack", "plan", "s", "--existing", "--parameter", "word=x", "--check-cloud")
    assert kept.code == 2
    assert "Stack not found" in openstack.fails("stack", "plan", "t", "--existing", "--check-cloud")


def test_a_watch_prints_lines_and_ends_with_the_stack(openstack: OpenStack) -> None:
    create(openstack)
    done = openstack.run("stack", "watch", "s", "--interval", "0.2")
    lines = [line.partition(" ")[2] for line in done.out.splitlines()]
    assert lines[-1] == "stack s CREATE_COMPLETE: Stack CREATE completed successfully"
    assert "up CREATE_COMPLETE" in lines
    assert "--interval must be" in openstack.fails("stack", "watch", "s", "--interval", "0")


def test_a_watch_of_a_failing_stack_ends_with_1(openstack: OpenStack) -> None:
    create(openstack, FAILING)
    done = openstack.call("stack", "watch", "s", "--interval", "0.2")
    assert done.code == 1
    assert "stack s CREATE_FAILED: " in done.out


HELD = {"resource_registry": {"resources": {"gone": {"hooks": "pre-create"}}}}
RESUME = "held at breakpoints: gone (pre-create); openstack stack continue s"


def create_with_a_breakpoint(openstack: OpenStack) -> None:
    environment = openstack.file("e.yaml", json.dumps(HELD))
    path = openstack.file("t.yaml", TEMPLATE)
    openstack.run("stack", "create", "s", "-t", path, "-e", environment)


def test_a_watch_until_a_breakpoint_says_how_to_continue(openstack: OpenStack) -> None:
    create_with_a_breakpoint(openstack)
    done = openstack.run("stack", "watch", "s", "--until-breakpoint", "--interval", "0.2")
    assert done.out.splitlines()[-1].partition(" ")[2] == RESUME
    assert "random CREATE_COMPLETE" in done.out, "it ends when nothing else is left to do"
    openstack.run("stack", "continue", "s")
    ended = openstack.run("stack", "watch", "s", "--until-breakpoint", "--interval", "0.2")
    assert "stack s CREATE_COMPLETE" in ended.out


def test_a_watch_continues_at_a_breakpoint(openstack: OpenStack) -> None:
    create_with_a_breakpoint(openstack)
    command = [
        sys.executable,
        "-u",
        "-m",
        "openstackclient.shell",
        "stack",
        "watch",
        "s",
        "--interval",
        "0.2",
    ]
    env = {**os.environ, **openstack.variables}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        list(itertools.takewhile(lambda line: RESUME not in line, process.stdout))
        process.send_signal(signal.SIGINT)
        assert process.stdout.read().strip() == "Stack s continues; only the watch has ended."
        assert process.wait(120) == 130
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        before = list(itertools.takewhile(lambda line: RESUME not in line, process.stdout))
        assert any("gone INIT_COMPLETE (held at pre-create)" in line for line in before)
        openstack.run("stack", "continue", "s")
        output = process.stdout.read()
        assert process.wait(120) == 0
    assert RESUME not in output
    assert "stack s CREATE_COMPLETE" in output


def test_an_inspection_names_the_cause_of_a_wait(openstack: OpenStack) -> None:
    create_with_a_breakpoint(openstack)
    openstack.run("stack", "watch", "s", "--until-breakpoint", "--interval", "0.2")
    lines = openstack.run("stack", "inspect", "s").out.splitlines()
    assert lines[1] == "unfinished: 1 held"
    assert any(line.startswith("gone: create is held") for line in lines)
    assert any(line.startswith("  sooner: openstack stack continue") for line in lines)
    report = openstack.run("stack", "inspect", "s", "-f", "json").json
    assert [task["cause"] for task in report["tasks"]] == ["breakpoint"]
    assert "--limit must be 1 or more" in openstack.fails("stack", "inspect", "s", "--limit", "0")
    assert "Stack not found: nothing" in openstack.fails("stack", "inspect", "nothing")


def test_a_watch_on_a_terminal_draws_in_place(openstack: OpenStack) -> None:
    create(openstack)
    openstack.run("stack", "watch", "s")
    text = on_a_terminal(openstack, "stack", "watch", "s")
    assert "\x1b[32m✓ up" in text
    assert re.search(r"s\x1b\[0m  \x1b\[32mCREATE_COMPLETE\x1b\[0m  3/3", text), text


def test_a_watch_by_lines_never_moves_the_cursor_of_a_terminal(openstack: OpenStack) -> None:
    create(openstack)
    text = on_a_terminal(openstack, "stack", "watch", "s", "--lines")
    assert re.search(r"^\d\d:\d\d:\d\d .*CREATE_COMPLETE", text, re.MULTILINE), text
    assert [code for code in re.findall(r"\x1b\[[\d;?]*[A-Za-z]", text) if not code.endswith("m")] == []


def on_a_terminal(openstack: OpenStack, *arguments: str) -> str:
    """Return what a command writes on a terminal; it must succeed."""
    main, terminal = pty.openpty()
    command = [sys.executable, "-m", "openstackclient.shell", *arguments]
    env = {**os.environ, **openstack.variables, "TERM": "xterm", "COLUMNS": "100"}
    env.pop("NO_COLOR", None)
    with subprocess.Popen(command, env=env, stdout=terminal, stderr=terminal, stdin=terminal) as process:
        os.close(terminal)
        drawn = b""
        while chunk := _read(main):
            drawn += chunk
        assert process.wait(120) == 0
    os.close(main)
    return drawn.decode()


def _read(terminal: int) -> bytes:
    """Return what was written; nothing when the other side is closed, which Linux reports as an error."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


def test_graphs_in_three_forms(openstack: OpenStack) -> None:
    openstack.run("stack", "create", "s", "-t", openstack.file("t.yaml", json.dumps(chain(3))))
    openstack.run("stack", "watch", "s", "--interval", "0.2")
    lines = openstack.run("stack", "graph", "s").out.splitlines()
    assert [line.partition("  OS::")[0] for line in lines] == ["r0", "  r1", "    r2"]
    dot = openstack.run("stack", "graph", "s", "-f", "dot").out
    ids = dict(re.findall(r'(r\d+) \[label="(r\d)"', dot))
    assert [(ids[a], ids[b]) for a, b in re.findall(r"(r\d+) -> (r\d+);", dot)] == [
        ("r0", "r1"),
        ("r1", "r2"),
    ]
    assert openstack.run("stack", "graph", "s", "-f", "mermaid").out.startswith("flowchart LR\n")


def test_a_timeline_has_a_bar_for_each_resource(openstack: OpenStack) -> None:
    openstack.run("stack", "create", "s", "-t", openstack.file("t.yaml", json.dumps(chain(3))))
    openstack.run("stack", "watch", "s", "--interval", "0.2")
    _, *rows, _ = openstack.run("stack", "timeline", "s").out.splitlines()
    assert [row.split()[0] for row in rows] == ["r0", "r1", "r2"]
    assert all("█" in row for row in rows)
    phases_by_name = openstack.json("stack", "timeline", "s")
    ends = [phases_by_name[name][-1]["end"] for name in ("r0", "r1", "r2")]
    assert ends == sorted(ends)
    assert {phase["kind"] for phases in phases_by_name.values() for phase in phases} == {"ready", "done"}
