"""Views of the client's commands: pure functions of the API's answers."""

import io
import typing

import pytest
from stoker.observe.screen import HELD, bar, make_console
from stoker.observe.terminal import harmless
from stoker.osc.drift import drift_lines, list_lines
from stoker.osc.graph import as_dot, as_mermaid, tree
from stoker.osc.inspection import report_lines
from stoker.osc.plan import as_json, finding_lines, is_obstacle, lines
from stoker.osc.timeline import Phase, bars, last_action, phases
from stoker.osc.watch import PlainLines, held_line, is_paused, screen, seconds_of, watch

Json = typing.Any
HOSTILE = "evil\x1b[2J\x07\u202egpj.\u2028new\nline\x9b5m"


def a_resource(number: int, name: str, state: str = "CREATE_COMPLETE", **more: Json) -> Json:
    return {
        "id": number,
        "stack": "root",
        "name": name,
        "type": "OS::Heat::TestResource",
        "state": state,
        "reason": "",
        "required_by": [],
        "nested": None,
        "breakpoint": None,
        "task": None,
        **more,
    }


def a_task(state: str = "running", **more: Json) -> Json:
    since = "2026-01-01T00:00:10.000000Z"
    return {"state": state, "attempt": 1, "since": since, "waits_for": None, "conductor": "c1", **more}


def a_graph(*resources: Json, state: str = "CREATE_IN_PROGRESS", **more: Json) -> Json:
    stack = {
        "id": "root",
        "name": "shop",
        "state": state,
        "reason": "why",
        "deadline": None,
        "seconds_left": None,
    }
    return {"change": "1", "stack": {**stack, **more}, "nested_stacks": [], "resources": list(resources)}


NOW = seconds_of("2026-01-01T00:00:15.000000Z")


def drawn(graph: Json, height: int = 40) -> list[str]:
    return [line.plain.rstrip() for line in screen(graph, NOW, height)]


def test_nothing_that_a_terminal_obeys_gets_through() -> None:
    assert harmless(HOSTILE) == "evil\\x1b[2J\\x07\\u202egpj.\\u2028new\\x0aline\\x9b5m"
    assert harmless("Zürich 北京 🎉") == "Zürich 北京 🎉"
    assert harmless("abcdef", 4) == "abc…"


def test_a_screen_shows_what_each_resource_does_and_waits_for() -> None:
    graph = a_graph(
        a_resource(1, "network", required_by=["web"]),
        a_resource(2, "disk", "CREATE_IN_PROGRESS", task=a_task(attempt=2), required_by=["web", "schema"]),
        a_resource(3, "web", "INIT_COMPLETE"),
        a_resource(4, "schema", "INIT_COMPLETE", task=a_task("held"), breakpoint="pre-create"),
        a_resource(
            5, "ready", "CREATE_IN_PROGRESS", task=a_task("parked", waits_for="signal", conductor=None)
        ),
        a_resource(6, "bad", "CREATE_FAILED", reason=f"no {HOSTILE}"),
    )
    first, *rows = drawn(graph)
    assert first == "shop  CREATE_IN_PROGRESS  1/6"
    assert [row.split() for row in rows[:3]] == [
        ["✓", "network", "CREATE_COMPLETE"],
        ["●", "disk", "CREATE_IN_PROGRESS", "5", "s", "attempt", "2,", "on", "c1"],
        ["·", "web", "INIT_COMPLETE", "waits", "for", "disk"],
    ]
    assert rows[3].split("  ")[-1] == "held at pre-create"
    assert rows[4].endswith("waits for a signal")
    assert "\\x1b[2J" in rows[5]


def test_what_moves_comes_first_where_there_is_no_room() -> None:
    done = [a_resource(number, f"r{number}") for number in range(1000)]
    graph = a_graph(*done, a_resource(1000, "last", "CREATE_IN_PROGRESS", task=a_task()))
    view = drawn(graph, 10)
    assert len(view) <= 10
    assert view[0].endswith("1000/1001")
    assert view[1].startswith("● last")
    assert view[-1] == "… and 1000 more"


def test_nested_stacks_are_below_their_resources() -> None:
    graph = a_graph(a_resource(1, "group", nested="inner"), a_resource(2, "after"))
    graph["resources"].append(a_resource(3, "member", stack="inner"))
    assert [row.split("CREATE")[0].rstrip() for row in drawn(graph)[1:]] == [
        "✓ group",
        "  ✓ member",
        "✓ after",
    ]


def test_plain_lines_are_written_for_changes_only() -> None:
    lines_of = PlainLines(make_console(io.StringIO()), lambda graph: "")
    waiting = a_resource(1, "a", "INIT_COMPLETE")
    assert list(lines_of.changed(a_graph(waiting))) == ["stack shop CREATE_IN_PROGRESS: why"]
    running = a_resource(1, "a", "CREATE_IN_PROGRESS", task=a_task())
    assert list(lines_of.changed(a_graph(running))) == ["a CREATE_IN_PROGRESS (on c1)"]
    assert list(lines_of.changed(a_graph(running))) == []
    nested = a_resource(3, "0", stack="inner")
    group = a_resource(2, "web", nested="inner")
    assert list(lines_of.changed(a_graph(group, nested))) == ["web CREATE_COMPLETE", "web/0 CREATE_COMPLETE"]
    hostile = a_graph(a_resource(1, HOSTILE, "CREATE_FAILED"), state="CREATE_FAILED")
    assert "\x1b" not in "".join(lines_of.changed(hostile))


def test_a_stack_is_paused_when_breakpoints_hold_all_that_is_left() -> None:
    done = a_resource(1, "a")
    held = a_resource(2, "b", "INIT_COMPLETE", task=a_task("held"))
    busy = a_resource(3, "c", "CREATE_IN_PROGRESS", task=a_task())
    parent = a_resource(
        4, "d", "CREATE_IN_PROGRESS", nested="inner", task=a_task("parked", waits_for="stack")
    )
    assert is_paused(a_graph(done, held))
    assert is_paused(a_graph(busy, seconds_left=5.0)), "the service knows of nested stacks that are not shown"
    assert not is_paused(a_graph(done, held, busy))
    assert not is_paused(a_graph(done, held, parent))
    assert is_paused({**a_graph(done, held, parent), "nested_stacks": [{"id": "inner"}]})
    assert not is_paused(a_graph(done))
    assert not is_paused(a_graph(done, held, state="CREATE_FAILED"))


def test_what_is_held_is_named_with_the_command_that_continues_it() -> None:
    held = [{"resource_path": f"in/{n}", "hook": "pre-create"} for n in range(12)]
    line = held_line(held, "a b")
    assert line.startswith("held at breakpoints: in/0 (pre-create), in/1 (pre-create), ")
    assert line.endswith(", in/9 (pre-create), 2 more; openstack stack continue 'a b'")
    assert "\x1b" not in held_line([{"resource_path": HOSTILE, "hook": "pre-create"}], "s")


def test_a_watch_ends_at_the_state_it_waits_for() -> None:
    graphs = iter([a_graph(), a_graph(seconds_left=5.0), a_graph(state="CREATE_COMPLETE")])
    view: list[Json] = []
    assert watch(lambda: next(graphs), view.append, 0.5, lambda _: None, ends=is_paused) == 0
    assert len(view) == 2


@pytest.mark.parametrize(
    ("end", "code"), [("CREATE_COMPLETE", 0), ("CREATE_FAILED", 1), ("DELETE_COMPLETE", 0)]
)
def test_a_watch_ends_with_its_stack(end: str, code: int) -> None:
    states = iter(["CREATE_IN_PROGRESS", "CREATE_IN_PROGRESS", end])
    view: list[str] = []
    slept: list[float] = []
    ended = watch(
        lambda: a_graph(state=next(states)),
        lambda graph: view.append(graph["stack"]["state"]),
        0.5,
        slept.append,
    )
    assert (ended, view[-1], slept) == (code, end, [0.5, 0.5])


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def printed(stream: io.StringIO) -> str:
        make_console(stream).print(bar(0.5, 4, HELD))
        return stream.getvalue()

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert printed(io.StringIO()) == "██░░\n"
    assert "\x1b[" in printed(Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[33m" not in printed(Terminal())


def test_a_tree_shows_who_needs_whom_and_each_only_once_in_full() -> None:
    graph = a_graph(
        a_resource(1, "a", required_by=["c"]),
        a_resource(2, "b", required_by=["c"]),
        a_resource(3, "c", nested="in"),
    )
    graph["resources"].append(a_resource(4, "leaf", stack="in"))
    assert [(depth, item["name"], again) for depth, item, again in tree(graph)] == [
        *((0, "a", False), (1, "c", False), (2, "leaf", False)),
        *((0, "b", False), (1, "c", True)),
    ]


def test_graphs_for_other_programs_hold_no_commands_of_theirs() -> None:
    graph = a_graph(a_resource(1, 'a"];x', required_by=["b"]), a_resource(2, "b"), name='s" }')
    dot = list(as_dot(graph))
    assert '    r1 [label="a\\"];x", color="#2e7d4f"];' in dot
    assert dot[-2:] == ["  r1 -> r2;", "}"]
    mermaid = list(as_mermaid(graph))
    assert '  r1["a#34;#93;#59;x"]' in mermaid
    assert mermaid[-1] == "  r1 --> r2"
    assert "\x1b" not in "".join(
        [*as_dot(a_graph(a_resource(1, HOSTILE))), *as_mermaid(a_graph(a_resource(1, HOSTILE)))]
    )


def an_event(name: str, state: str, at: float, attempt: int | None = 1, **more: Json) -> Json:
    moment = f"2026-01-01T00:00:{at:09.6f}Z"
    claimed = moment if attempt is not None else None
    return {
        "resource_name": name,
        "resource_status": state,
        "resource_status_reason": "",
        "physical_resource_id": name,
        "stack_name": "shop",
        "time": moment,
        "attempt": attempt,
        "ready_time": None,
        "claimed_time": claimed,
        "conductor": "c1",
        **more,
    }


def at(second: float) -> float:
    return seconds_of(f"2026-01-01T00:00:{second:09.6f}Z")


def test_phases_of_a_resource_follow_from_its_events() -> None:
    ready = "2026-01-01T00:00:01.000000Z"
    claimed = "2026-01-01T00:00:06.000000Z"
    paused = {"attempt": None, "resource_status_reason": "CREATE paused until Hook pre-create is cleared"}
    by_name = phases(
        [
            an_event("shop", "CREATE_IN_PROGRESS", 0, None),
            an_event("a", "CREATE_IN_PROGRESS", 2, ready_time=ready),
            an_event("b", "INIT_COMPLETE", 3, **paused),
            an_event("b", "CREATE_IN_PROGRESS", 5),
            an_event("a", "CREATE_COMPLETE", 8, attempt=3, claimed_time=claimed, conductor="c2"),
            an_event("c", "CREATE_FAILED", 9, claimed_time=claimed),
        ]
    )
    assert [(p.kind, p.begin, p.end) for p in by_name["a"]] == [
        ("ready", at(1), at(2)),
        ("again", at(2), at(6)),
        ("done", at(6), at(8)),
    ]
    assert [p.conductor for p in by_name["a"]] == [None, "c1", "c2"]
    assert [(p.kind, p.begin, p.end) for p in by_name["b"]] == [
        ("held", at(3), at(5)),
        ("running", at(5), None),
    ]
    assert [(p.kind, p.begin, p.end) for p in by_name["c"]] == [("failed", at(6), at(9))]
    assert "shop" not in by_name


def test_bars_have_a_line_for_each_resource() -> None:
    by_name = phases(
        [
            an_event("a", "CREATE_IN_PROGRESS", 0),
            an_event("a", "CREATE_COMPLETE", 5),
            an_event(HOSTILE, "CREATE_IN_PROGRESS", 5),
            an_event(HOSTILE, "CREATE_FAILED", 10),
        ]
    )
    axis, a, hostile, _ = [line.plain for line in bars(by_name, 60)]
    assert axis.rstrip().endswith("10.0 s")
    assert (a.count("█"), hostile.count("█")) == (12, 13)
    assert a.index("█") < hostile.index("█")
    assert a.endswith(" 5.00 s")
    assert "\x1b" not in hostile
    assert [line.plain for line in bars({}, 60)] == ["nothing has happened yet"]


def test_long_names_of_a_timeline_keep_their_ends() -> None:
    done = [Phase("done", 0.0, 1.0, "CREATE", 1, "one")]
    names = [f"a-nested-stack-with-a-long-name/{name}" for name in "ab"]
    _, *rows, _ = [line.plain for line in bars(dict.fromkeys(names, done), 60)]
    assert [row.split()[0][-2:] for row in rows] == ["/a", "/b"]
    assert all(row.startswith("…") for row in rows)


def test_the_last_action_is_shown() -> None:
    events = [
        an_event("shop", "CREATE_IN_PROGRESS", 0, None, physical_resource_id="root"),
        an_event("a", "CREATE_COMPLETE", 1),
        an_event("shop", "UPDATE_IN_PROGRESS", 2, None, physical_resource_id="root"),
        an_event("a", "UPDATE_COMPLETE", 3),
    ]
    assert [event["resource_status"] for event in last_action(events, "root")] == [
        "UPDATE_IN_PROGRESS",
        "UPDATE_COMPLETE",
    ]


def a_change(name: str, reason: str = "state changed", **more: Json) -> Json:
    return {"resource_name": name, "resource_type": "T", "resource_status_reason": reason, **more}


CHANGES = {
    "added": [a_change("y")],
    "deleted": [a_change("z")],
    "replaced": [a_change("r", "")],
    "updated": [
        a_change("b", "may be replaced: depends on c.id"),
        a_change("a", property_changes={"value": {"old": "m", "new": "n"}, "size": {"old": 1, "new": None}}),
        a_change(HOSTILE, parent_resource="group"),
    ],
    "unchanged": [a_change("same")],
}


def test_a_plan_has_a_line_for_each_change_and_one_of_sums() -> None:
    assert [text for _, text in lines(CHANGES)] == [
        "-/+ r  T",
        "  ~ a  T (size: 1 → null, value: m → n)",
        "-/+ b  T (may be replaced: depends on c.id)",
        f"  ~ group/{harmless(HOSTILE)}  T",
        "  + y  T",
        "  - z  T",
        "Plan: 1 to add, 3 to update, 1 to replace, 1 to delete (1 may be replaced); 1 unchanged",
    ]


def test_a_plan_for_programs() -> None:
    plan = as_json(CHANGES)
    assert plan["sums"] == {"replaced": 1, "updated": 3, "added": 1, "deleted": 1, "unchanged": 1}
    assert plan["updated"][1] == {
        "resource": "b",
        "type": "T",
        "reason": "may be replaced: depends on c.id",
        "property_changes": {},
    }


def test_an_inspection_as_text() -> None:
    stack = {"id": "i", "name": "s", "action": "CREATE", "status": "IN_PROGRESS", "remaining": None}
    reason = {"why": "no conductor is alive", "next": "nothing", "at": None, "commands": ["one", "two"]}
    task = {
        "resource": "r",
        "action": "create",
        "state": "ready",
        "since": "2026-01-01T12:00:00.250000+00:00",
        "attempt": 2,
        "request": "",
    }
    report = {
        "stack": {**stack, "deadline_at": "2026-01-01T20:00:00.250000+00:00"},
        "counts": {"ready": 1, "held": 2},
        "general": [reason],
        "failed": [{"resource": "f", "action": "CREATE", "reason": "it broke"}],
        "tasks": [
            {
                **task,
                **reason,
                "request": "",
                "why": "it waits",
                "at": "2026-01-01T13:00:00.250000+00:00",
                "commands": [],
            }
        ],
        "more": 3,
    }
    assert list(report_lines(report)) == [
        "stack s (i): CREATE_IN_PROGRESS",
        "unfinished: 2 held, 1 ready",
        "times out: 2026-01-01 20:00:00 UTC",
        *("", "! no conductor is alive", "  by itself: nothing", "  sooner: one", "      or: two"),
        "  f: CREATE failed: it broke",
        *("", "r: create is ready since 2026-01-01 12:00:00 UTC, attempt 2", "  why: it waits"),
        "  by itself: nothing: 2026-01-01 13:00:00 UTC",
        *("", "3 more are not shown; --limit shows more"),
    ]


def test_drift_is_shown_with_both_values() -> None:
    resource = {
        "resource_path": "n/web",
        "resource_type": "OS::Nova::Server",
        "physical_resource_id": "77",
        "since": "2026-11-25T08:00:00Z",
        "difference": "CHANGED",
        "properties": [{"name": "name", "template": "web", "cloud": "www"}],
    }
    gone = {**resource, "resource_path": "port", "difference": "GONE", "properties": []}
    drift = {
        "stack_name": "shop",
        "stack_id": "1",
        "drift_status": "DRIFTED",
        "observed_time": None,
        "healing_time": None,
        "unknown": ["network: no connection"],
        "resources": [resource, gone],
    }
    assert list(drift_lines(drift)) == [
        "stack shop (1): DRIFTED",
        "observed: never",
        "! not known: network: no connection",
        "",
        "n/web (OS::Nova::Server, 77) has changed, since 2026-11-25T08:00:00Z",
        '  name: "web" in the template, "www" in the cloud',
        "",
        "port (OS::Nova::Server, 77) is gone, since 2026-11-25T08:00:00Z",
    ]
    stack = {"stack_name": "shop", "stack_status": "CREATE_COMPLETE", "drift_status": "DRIFTED"}
    lines = list(list_lines([{**stack, "drifted_resources": 2}]))
    assert lines[1].split() == ["shop", "CREATE_COMPLETE", "DRIFTED", "2"]


def test_findings_come_after_the_plan_and_what_hinders_comes_first() -> None:
    unknown = {
        "kind": "not checked",
        "path": "",
        "message": "not checked: network: no answer within 5 s",
        "certainty": "not known",
        "advice": "",
    }
    quota = {
        "kind": "quota",
        "path": "resources.web",
        "message": "quota cores of compute: 8 needed, 4 left\x1b",
        "certainty": "likely",
        "advice": "Ask.",
    }
    assert [is_obstacle(item) for item in (unknown, quota)] == [False, True]
    assert list(finding_lines([unknown, quota])) == [
        ("obstacle", "  ! resources.web: quota cores of compute: 8 needed, 4 left\\x1b (likely). Ask."),
        ("finding", "  ? not checked: network: no answer within 5 s."),
    ]
