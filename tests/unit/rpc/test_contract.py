"""Each message is declared once: names, arguments and versions on the wire never change."""

import inspect

import pytest
from harness.next_messages import speak_next
from stoker.db.ids import MemberId, TaskId, TraversalId
from stoker.rpc.client import HintSender
from stoker.rpc.contract import LOWEST, MESSAGES, Hint, Malformed, Reach, deliver, parsed, wire_form

TRAVERSAL = TraversalId("trv")
WIRE = {
    "run_tasks": (Reach.ANY, {"tasks": "1.0"}),
    "cancel": (Reach.ALL, {"traversal": "1.0", "spared": "1.0", "request": "1.0"}),
    "stop_tasks": (Reach.HOST, {"claims": "1.0"}),
    "look_now": (Reach.ALL, {}),
    "activity": (Reach.ALL, {}),
}


class Kept(HintSender):
    def __init__(self) -> None:
        self.sent: list[Hint] = []

    def send(self, hint: Hint) -> None:
        self.sent.append(hint)


class Called:
    """A receiver that keeps how it was called."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def enqueue(self, *arguments: object) -> None:
        self.calls.append(("enqueue", *arguments))

    def cancel(self, *arguments: object) -> None:
        self.calls.append(("cancel", *arguments))

    def stop_tasks(self, *arguments: object) -> None:
        self.calls.append(("stop_tasks", *arguments))

    def poll_now(self) -> None:
        self.calls.append("poll_now")

    def notice_activity(self) -> None:
        self.calls.append("notice_activity")


def all_hints() -> list[Hint]:
    sender = Kept()
    sender.run_tasks(TRAVERSAL, [TaskId(1)])
    sender.cancel(TRAVERSAL, [TaskId(2)], "req-1")
    sender.stop_tasks(MemberId("host/1"), [(TaskId(3), 4)])
    sender.poll_now()
    sender.announce_activity()
    return sender.sent


def test_the_wire_is_what_released_conductors_understand() -> None:
    assert {name: (message.reach, dict(message.arguments)) for name, message in MESSAGES.items()} == WIRE


def test_the_sender_sends_each_message_with_its_arguments() -> None:
    sent = {hint.method: hint for hint in all_hints()}
    assert sent.keys() == MESSAGES.keys()
    for name, hint in sent.items():
        assert list(hint.arguments) == list(MESSAGES[name].arguments)
        assert (hint.host is not None) == (MESSAGES[name].reach == Reach.HOST)


@pytest.mark.parametrize("name", MESSAGES)
def test_the_receiver_takes_each_argument_and_needs_no_newer_one(name: str) -> None:
    _, *parameters = inspect.signature(MESSAGES[name].deliver).parameters.values()
    assert [parameter.name for parameter in parameters] == list(MESSAGES[name].arguments)
    needed = {parameter.name for parameter in parameters if parameter.default is parameter.empty}
    assert needed <= {arg for arg, since in MESSAGES[name].arguments.items() if since == LOWEST}


def test_what_is_sent_arrives() -> None:
    receiver = Called()
    for hint in all_hints():
        deliver(receiver, hint)
    assert receiver.calls == [
        ("enqueue", {"trv": [1]}),
        ("cancel", "trv", [2], "req-1"),
        ("stop_tasks", [(3, 4)]),
        "poll_now",
        "notice_activity",
    ]


@pytest.mark.parametrize(
    ("request_id", "highest", "version", "extra"),
    [
        ("req-1", "1.1", "1.1", {"request": "req-1"}),
        ("req-1", "1.0", "1.0", {}),
        (None, "1.1", "1.0", {}),
    ],
)
def test_a_message_is_sent_in_the_oldest_version_that_has_its_arguments(
    monkeypatch: pytest.MonkeyPatch, request_id: str | None, highest: str, version: str, extra: dict[str, str]
) -> None:
    speak_next(monkeypatch)
    hint = Hint("cancel", {"traversal": "trv", "spared": [], "request": request_id})
    form = wire_form(hint, lambda candidate: parsed(candidate) <= parsed(highest))
    assert form == (version, {"traversal": "trv", "spared": [], **extra})


def test_without_a_newer_argument_nobody_asks_which_versions_are_allowed() -> None:
    def refuse(version: str) -> bool:
        raise AssertionError("the database would be read")

    assert wire_form(Hint("run_tasks", {"tasks": {"trv": [1]}}), refuse)[0] == LOWEST


WRONG = [
    ("run_tasks", {}),
    ("run_tasks", {"tasks": {"trv": [1]}, "more": 1}),
    ("run_tasks", {"tasks": [1]}),
    ("run_tasks", {"tasks": {1: [1]}}),
    ("run_tasks", {"tasks": {"x" * 256: [1]}}),
    ("run_tasks", {"tasks": {"trv": "12"}}),
    ("run_tasks", {"tasks": {"trv": [True]}}),
    ("run_tasks", {"tasks": {"trv": [1], "other": [2**63]}}),
    ("cancel", {"traversal": "trv", "spared": [{}]}),
    ("cancel", {"traversal": "trv", "spared": [], "request": 1}),
    ("stop_tasks", {"claims": [[1]]}),
    ("stop_tasks", {"claims": [[{}, 2]]}),
    ("look_now", {"now": 1}),
]


def test_a_message_in_a_wrong_form_reaches_nobody() -> None:
    receiver = Called()
    taken = []
    for method, arguments in WRONG:
        try:
            deliver(receiver, Hint(method, arguments))
        except Malformed:
            continue
        taken.append((method, arguments))
    assert (taken, receiver.calls) == ([], [])
