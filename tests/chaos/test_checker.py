"""Each rule of the checker: it is silent about a good run, and finds what is planted in one."""

import dataclasses
import pathlib
import typing

import pytest
from chaos import checker
from chaos.history import (
    Event,
    Expectation,
    FinalCopy,
    FinalResource,
    FinalStack,
    History,
    Kept,
    Outcome,
    Read,
    Signal,
    Unsettled,
    Write,
    load,
)
from chaos.ledger import Entry

Json = typing.Any


def write(kind: str, goal: int, began: float, **fields: Json) -> Write:
    timeout = 60.0 if kind in ("create", "update") else None
    values = {"ended": began + 1, "outcome": Outcome.ACCEPTED, "status": 200, "timeout": timeout, **fields}
    return Write(0, "s", "name", kind, goal, began, **values)


def read(action: str, status: str, goal: int | None, began: float) -> Read:
    return Read("s", action, status, goal, began, began + 0.5, "api-1")


def event(action: str, status: str, at: float, reason: str = "") -> Event:
    return Event("s", True, "name", action, status, reason, at)


def make(number: int, item: str, row: int, *inputs: str, effect: str = "make", value: str = "1") -> Entry:
    body = {"row": row, "label": item, "value": value, "inputs": list(inputs)}
    return Entry(number, float(number), effect, item, body)


def entry(number: int, effect: str, item: str) -> Entry:
    return Entry(number, float(number), effect, item, None)


WRITES = [
    write("create", 1, 0.0),
    write("update", 2, 10.0),
    write("suspend", 2, 20.0),
    write("check", 2, 30.0, outcome=Outcome.UNKNOWN),
    write("update", 3, 40.0, outcome=Outcome.REFUSED),
]
EVENTS = [
    event("CREATE", "IN_PROGRESS", 0.5),
    event("CREATE", "COMPLETE", 5.0),
    event("UPDATE", "IN_PROGRESS", 10.5),
    event("UPDATE", "FAILED", 71.0, "Update timed out"),
    event("SUSPEND", "IN_PROGRESS", 75.0),
]
READS = [
    read("CREATE", "IN_PROGRESS", 1, 2.0),
    read("CREATE", "COMPLETE", 1, 6.0),
    read("UPDATE", "IN_PROGRESS", 2, 12.0),
    read("UPDATE", "COMPLETE", 2, 15.0),
    read("SUSPEND", "COMPLETE", 2, 22.0),
    read("CHECK", "COMPLETE", 2, 60.0),
]
JOURNAL = [
    make(1, "a", 1),
    entry(2, "ready", "a"),
    make(3, "b", 2, "a"),
    entry(4, "ready", "b"),
    make(5, "c", 3, "b"),
    make(6, "b", 2, effect="change", value="2"),
    entry(7, "remove", "c"),
    entry(8, "remove", "a"),
]
RESOURCES = [FinalResource("s", "b", 2, "b")]
STACKS = [
    FinalStack("s", "name", "s", "UPDATE", "COMPLETE", "", is_deleted=False),
    FinalStack("t", "other", "t", "DELETE", "COMPLETE", "", is_deleted=True),
]
COPIED = [
    *JOURNAL,
    Entry(9, 9.0, "copy", "copy-1", {"item": "b"}),
    Entry(10, 10.0, "copy", "copy-2", {"item": "b"}),
    entry(11, "drop", "copy-2"),
]
COPIES = [FinalCopy("s", "b", "snapshot-1", "COMPLETE", "copy-1")]


def signal(target: str, value: str, began: float, outcome: Outcome = Outcome.ACCEPTED) -> Signal:
    return Signal("s", target, value, began, began + 1, outcome)


SIGNALS = [
    signal("handle", "one", 50.0),
    signal("config", "answer", 52.0, Outcome.UNKNOWN),
    signal("config", "answer", 54.0),
    signal("handle", "no", 55.0, Outcome.REFUSED),
]
KEPT = [Kept("s", "handle", ["one"], 51.5, 51.6), Kept("s", "config", ["answer"], 56.0, 56.5)]
EXPECTATIONS = [Expectation("s", {"b": "2"}), Expectation("t", None)]
GOOD = History([*WRITES, *EVENTS, *READS, *RESOURCES, *COPIES, *SIGNALS, *KEPT, *STACKS, *EXPECTATIONS])


def test_a_good_run_is_green(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "history.jsonl"
    GOOD.save(path)
    assert checker.violations(load(path), COPIED) == []


def test_what_has_not_settled_is_reported() -> None:
    assert checker.violations(History([Unsettled("it hangs")]), []) == ["it hangs"]


def test_an_answer_that_nobody_expects_is_found() -> None:
    answer = write("update", 3, 40.0, outcome=Outcome.UNKNOWN, status=500, text="see req-1")
    assert checker.no_error_is_unexpected([*WRITES, answer]) == [
        "update of name is answered by 500: see req-1"
    ]


@pytest.mark.parametrize(
    ("writes", "events", "violation"),
    [
        pytest.param(
            WRITES, EVENTS[:2] + EVENTS[4:], "update was accepted 1 to 1 times, and begun 0", id="lost"
        ),
        pytest.param(
            WRITES, [*EVENTS, EVENTS[0]], "create was accepted 1 to 1 times, and begun 2", id="twice"
        ),
        pytest.param(
            [write("check", 1, 0.0, outcome=Outcome.REFUSED)],
            [event("CHECK", "IN_PROGRESS", 1.0)],
            "check was accepted 0 to 0 times, and begun 1",
            id="refused",
        ),
    ],
)
def test_a_request_that_is_lost_or_doubled_is_found(
    writes: list[Write], events: list[Event], violation: str
) -> None:
    [wrong] = checker.accepted_requests_are_there(writes, events)
    assert violation in wrong


@pytest.mark.parametrize(
    ("stack", "violation"),
    [
        (dataclasses.replace(STACKS[0], status="IN_PROGRESS"), "is UPDATE_IN_PROGRESS"),
        (dataclasses.replace(STACKS[0], status="FAILED"), "is UPDATE_FAILED"),
        (dataclasses.replace(STACKS[0], is_deleted=True), "s is gone, and was not deleted"),
        (dataclasses.replace(STACKS[0], id="u", root="u"), "u is there, and was deleted"),
    ],
)
def test_a_stack_that_does_not_end_right_is_found(stack: FinalStack, violation: str) -> None:
    wrong = checker.stacks_end([stack, STACKS[1]], EXPECTATIONS)
    assert any(violation in text for text in wrong)


@pytest.mark.parametrize(
    ("journal", "resources", "violation"),
    [
        pytest.param([*JOURNAL, make(9, "d", 4)], RESOURCES, "d (d) is leaked", id="leaked"),
        pytest.param(JOURNAL, [*RESOURCES, FinalResource("s", "x", 9, "gone")], "gone is gone", id="missing"),
        pytest.param(JOURNAL, [*RESOURCES, FinalResource("s", "x", 9, "b")], "b belongs to 2", id="shared"),
        pytest.param([*JOURNAL, make(9, "d", 2)], RESOURCES, "resource 2 has made b and d", id="doubled"),
        pytest.param(JOURNAL[:5] + JOURNAL[6:], RESOURCES, "b with the value 2 is missing", id="old"),
    ],
)
def test_an_item_that_is_leaked_or_doubled_is_found(
    journal: list[Entry], resources: list[FinalResource], violation: str
) -> None:
    wrong = checker.nothing_is_leaked_or_doubled(journal, resources, EXPECTATIONS)
    assert any(violation in text for text in wrong)


@pytest.mark.parametrize(
    ("journal", "copies", "violation"),
    [
        pytest.param(COPIED, [], "copy-1 is leaked", id="leaked"),
        pytest.param(JOURNAL, COPIES, "copy-1 of b is gone, and snapshot snapshot-1 has it", id="gone"),
        pytest.param(COPIED, COPIES * 2, "copy-1 belongs to 2 snapshots", id="shared"),
    ],
)
def test_a_copy_without_its_snapshot_or_the_other_way_round_is_found(
    journal: list[Entry], copies: list[FinalCopy], violation: str
) -> None:
    assert checker.snapshots_have_their_copies(journal, copies) == [violation]


@pytest.mark.parametrize(
    ("kept", "violation"),
    [
        pytest.param(Kept("s", "handle", [], 51.5, 51.6), "lacks one at 51.500", id="lost"),
        pytest.param(Kept("s", "handle", ["one", "no"], 60.0, 60.1), "has no at 60.000", id="refused"),
        pytest.param(Kept("s", "handle", ["one"], 40.0, 40.1), "has one at 40.000", id="not sent"),
        pytest.param(Kept("s", "config", [], 56.0, 56.1), "lacks answer at 56.000", id="output"),
    ],
)
def test_a_signal_that_is_lost_or_of_nobody_is_found(kept: Kept, violation: str) -> None:
    [wrong] = checker.signals_are_kept(SIGNALS, [kept])
    assert violation in wrong


def test_a_signal_without_an_answer_may_reach_the_next_config() -> None:
    late = signal("before", "late", 50.0, Outcome.UNKNOWN)
    assert not checker.signals_are_kept([*SIGNALS, late], [Kept("s", "config", ["late"], 60.0, 60.1)])


@pytest.mark.parametrize(
    ("journal", "violation"),
    [
        pytest.param([JOURNAL[0], JOURNAL[2]], "3: b has make before a", id="not ready"),
        pytest.param(
            [*JOURNAL, make(9, "b", 2, "a", effect="change")], "b has change before a", id="removed"
        ),
        pytest.param([*JOURNAL[:4], entry(9, "remove", "a")], "9: a is removed before b", id="in use"),
    ],
)
def test_a_step_before_its_predecessors_is_found(journal: list[Entry], violation: str) -> None:
    [wrong] = checker.steps_are_in_order(journal)
    assert violation in wrong


TIMED_OUT = event("UPDATE", "FAILED", 69.0, "Update timed out")


@pytest.mark.parametrize(
    ("events", "violation"),
    [
        pytest.param([*EVENTS[:3], TIMED_OUT], "times out 1.0 s early", id="early"),
        pytest.param([*EVENTS[:4], EVENTS[3]], "times out twice", id="twice"),
    ],
)
def test_a_timeout_that_is_early_or_repeated_is_found(events: list[Event], violation: str) -> None:
    [wrong] = checker.timeouts_strike_once(WRITES, events)
    assert violation in wrong


def test_a_timeout_may_be_that_of_a_request_without_an_answer() -> None:
    writes = [
        write("create", 1, 0.0, outcome=Outcome.UNKNOWN),
        write("update", 2, 30.0, outcome=Outcome.UNKNOWN),
    ]
    assert checker.timeouts_strike_once(writes, [event("CREATE", "FAILED", 60.5, "Create timed out")]) == []


@pytest.mark.parametrize(
    ("index", "changed", "violation"),
    [
        pytest.param(
            2, read("CREATE", "COMPLETE", 1, 12.0), "shown by api-1 as CREATE_COMPLETE", id="accepted"
        ),
        pytest.param(3, read("UPDATE", "COMPLETE", 1, 15.0), "of goal 1 at 15.000", id="goal"),
        pytest.param(5, read("UPDATE", "COMPLETE", 2, 25.0), "after suspend of goal 2", id="earlier read"),
        pytest.param(1, read("GONE", "COMPLETE", None, 6.0), "shown by api-1 as GONE", id="gone"),
        pytest.param(4, read("UPDATE", "IN_PROGRESS", 2, 17.0), "is in progress again", id="again"),
    ],
)
def test_a_read_that_goes_back_is_found(index: int, changed: Read, violation: str) -> None:
    reads = [*READS[:index], changed, *READS[index + 1 :]]
    wrong = checker.reads_never_go_back(WRITES, reads)
    assert any(violation in text for text in wrong), wrong


def test_a_restored_stack_shows_the_goal_of_the_snapshot() -> None:
    writes = [WRITES[0], write("snapshot", 1, 5.0), WRITES[1], write("restore", 1, 20.0)]
    assert checker.reads_never_go_back(writes, [read("RESTORE", "COMPLETE", 1, 25.0)]) == []
    [wrong] = checker.reads_never_go_back(writes, [read("RESTORE", "COMPLETE", 2, 25.0)])
    assert "RESTORE_COMPLETE of goal 2" in wrong


def test_a_cancelled_action_is_shown_as_it_was() -> None:
    writes = [WRITES[0], write("check", 1, 10.0), write("cancel", 1, 12.0)]
    assert checker.reads_never_go_back(writes, [read("CHECK", "FAILED", 1, 15.0)]) == []


def test_a_request_without_an_answer_may_take_effect_late_or_never() -> None:
    late = write("update", 2, 10.0, outcome=Outcome.UNKNOWN)
    writes = [WRITES[0], late, write("check", 1, 20.0)]
    reads = [read("CHECK", "COMPLETE", 1, 22.0), read("UPDATE", "IN_PROGRESS", 2, 23.0)]
    assert checker.reads_never_go_back(writes, reads) == []
