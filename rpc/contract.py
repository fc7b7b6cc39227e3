"""The contract between Stoker's processes: topic, messages and versions, each declared once.

Every message is a cast that carries ids only.  It may be lost, doubled, late or out of order, and nothing but
latency may change: the database says what is to be done, a message says where it is.

An addition raises the minor version and keeps the old arguments.  A removal or a change raises the major one.
A message is sent in the oldest version that has all of its arguments, and without arguments that a neighbour
does not understand: see level.py.
"""

import enum
import inspect
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..db.ids import TaskId, TraversalId
from ..shapes import Json, JsonMap

WORK_TOPIC = "stoker.work"
VERSIONS = {"1.0": "conductors of release 0.1"}
"""Versions that can be sent, each with who understands it; the oldest first."""
LOWEST = next(iter(VERSIONS))
VERSION = next(reversed(VERSIONS))
"""The highest one, which conductors report as theirs."""
LONGEST_TEXT = 255
"""Characters of an id."""
LARGEST_NUMBER = 2**63 - 1
"""The largest number that a column of ids holds."""


class Malformed(Exception):
    """A message whose arguments are not those of its kind; nothing of it is carried out."""


class HintReceiver(typing.Protocol):
    """A conductor, as messages reach it.  Called from the message bus's threads; must not block."""

    def enqueue(self, ready: Mapping[TraversalId, Sequence[TaskId]]) -> None:
        """Take in tasks that are ready, by their traversals."""

    def cancel(self, traversal: TraversalId, spared: Sequence[TaskId], request: str | None) -> None:
        """Stop the running tasks of a superseded traversal.

        :param spared: tasks that continue.
        :param request: id of the user's request that cancels, for the log; None: no user asked.
        """

    def stop_tasks(self, claims: Sequence[tuple[TaskId, int]]) -> None:
        """Stop these tasks (with attempt), or answer that they are not held here."""

    def poll_now(self) -> None:
        """Poll the ring's members now, and report."""

    def notice_activity(self) -> None:
        """Stay active for a while: some process has committed something that may be due soon."""


class Reach(enum.Enum):
    """The conductors that get a message."""

    ANY = "any one conductor"
    ALL = "all conductors"
    HOST = "the conductor of one host"


@dataclass(frozen=True)
class Message:
    """A kind of message.

    :ivar arguments: names on the wire, each with the version in which it came.
    :ivar deliver: calls the receiver with the arguments of a message.
    """

    reach: Reach
    arguments: Mapping[str, str]
    deliver: Callable[..., None]


@dataclass(frozen=True)
class Hint:
    """A message to be sent.

    :ivar method: its kind, a key of MESSAGES.
    :ivar arguments: values on the wire; None stands for an argument that is not given.
    :ivar host: receiver of a message with the reach HOST.
    """

    method: str
    arguments: JsonMap
    host: str | None = None


def _run_tasks(receiver: HintReceiver, tasks: Json) -> None:
    if not isinstance(tasks, dict):
        raise Malformed("tasks are lists by their traversals")
    receiver.enqueue({TraversalId(_text(key)): _task_ids(numbers) for key, numbers in tasks.items()})


def _cancel(receiver: HintReceiver, traversal: Json, spared: Json, request: Json = None) -> None:
    user_request = None if request is None else _text(request)
    receiver.cancel(TraversalId(_text(traversal)), _task_ids(spared), user_request)


def _stop_tasks(receiver: HintReceiver, claims: Json) -> None:
    pairs = [_numbers(pair) for pair in _list(claims)]
    if any(len(pair) != 2 for pair in pairs):
        raise Malformed("a claim is a task and an attempt")
    receiver.stop_tasks([(TaskId(task), attempt) for task, attempt in pairs])


def _text(value: Json) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        raise Malformed(f"an id is a text of {LONGEST_TEXT} characters or less")
    return value


def _list(value: Json) -> Sequence[Json]:
    if not isinstance(value, list | tuple):
        raise Malformed("tasks and claims are lists")
    return value


def _numbers(value: Json) -> list[int]:
    """Return the numbers of a list, all of which a column can hold.

    Another form would end a turn of the work loop by an error, with all else that the turn was to do.
    """
    numbers = [*_list(value)]
    if not all(type(number) is int and 0 <= number <= LARGEST_NUMBER for number in numbers):
        raise Malformed(f"tasks and attempts are whole numbers from 0 to {LARGEST_NUMBER}")
    return numbers


def _task_ids(value: Json) -> list[TaskId]:
    return [TaskId(number) for number in _numbers(value)]


def _look_now(receiver: HintReceiver) -> None:
    receiver.poll_now()


def _activity(receiver: HintReceiver) -> None:
    receiver.notice_activity()


MESSAGES: dict[str, Message] = {
    "run_tasks": Message(Reach.ANY, {"tasks": "1.0"}, _run_tasks),
    "cancel": Message(Reach.ALL, {"traversal": "1.0", "spared": "1.0", "request": "1.0"}, _cancel),
    "stop_tasks": Message(Reach.HOST, {"claims": "1.0"}, _stop_tasks),
    "look_now": Message(Reach.ALL, {}, _look_now),
    "activity": Message(Reach.ALL, {}, _activity),
}
"""All messages, by the name of their method on the wire, which never changes."""


_SIGNATURES = {name: inspect.signature(message.deliver) for name, message in MESSAGES.items()}


def deliver(receiver: HintReceiver, hint: Hint) -> None:
    """Call the receiver with a message.

    :raises Malformed: the arguments are not those of the message.
    """
    arguments = {name: value for name, value in hint.arguments.items() if value is not None}
    try:
        bound = _SIGNATURES[hint.method].bind(receiver, **arguments)
    except TypeError as error:
        raise Malformed(str(error)) from error
    MESSAGES[hint.method].deliver(*bound.args, **bound.kwargs)


def wire_form(hint: Hint, allows: Callable[[str], bool]) -> tuple[str, dict[str, Json]]:
    """Return the version in which a message is sent, and its arguments in that version.

    :param allows: returns whether messages of a version may be sent now; never asked about LOWEST.
    """
    version = LOWEST
    arguments = {}
    for name, value in hint.arguments.items():
        since = MESSAGES[hint.method].arguments[name]
        if value is not None and (since == LOWEST or allows(since)):
            version = max(version, since, key=parsed)
            arguments[name] = value
    return version, arguments


def parsed(version: str) -> tuple[int, int]:
    """Return (major, minor) of a version; (0, 0) of a text that is none.

    >>> parsed("1.10") > parsed("1.9")
    True
    """
    major, _, minor = version.partition(".")
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else (0, 0)


def understood(spoken: Iterable[str]) -> str:
    """Return the highest version that all neighbours understand.

    It is the lowest one where no neighbour is known, or where no version reaches all of them.

    :param spoken: the versions that the neighbours report.
    """
    least = min(map(parsed, spoken), default=(0, 0))
    common = [v for v in VERSIONS if parsed(v)[0] == least[0] and parsed(v) <= least]
    return max(common, key=parsed, default=LOWEST)
