"""Hints of an outbox that gathers: those that come soon after each other share a message."""

import functools
import os
import threading
import typing

import pytest
from harness.waiting import wait_for
from stoker.db.ids import TaskId, TraversalId
from stoker.rpc.contract import Hint
from stoker.rpc.outbox import SHARED_TASKS, Outbox, SendQueue


class Channel:
    """Keeps the arguments of its messages; the pauses between them last until `resume` is set.

    :ivar pauses: seconds for which the outbox has to sleep.
    """

    def __init__(self) -> None:
        self.messages: list[typing.Any] = []
        self.pauses: list[float] = []
        self.pausing = threading.Event()
        self.resume = threading.Event()

    def send(self, hint: Hint) -> None:
        self.messages.append(hint.arguments["tasks"])

    def sleep(self, seconds: float) -> None:
        if seconds:
            self.pauses.append(seconds)
            self.pausing.set()
            assert self.resume.wait(120)


def announce(outbox: Outbox, *numbers: int) -> None:
    for number in numbers:
        outbox.run_tasks(TraversalId(f"trv{number}"), [TaskId(number)])


@pytest.fixture
def channel() -> Channel:
    return Channel()


def test_the_first_hint_goes_at_once_and_the_next_ones_share_a_message(channel: Channel) -> None:
    outbox = Outbox(channel, gather=0.5, monotonic=lambda: 100.0, sleep=channel.sleep)
    outbox.start()
    announce(outbox, 1)
    wait_for(lambda: channel.messages == [{"trv1": [1]}], 60)
    announce(outbox, 2)
    assert channel.pausing.wait(120)
    announce(outbox, 3, 4)
    channel.resume.set()
    assert outbox.stop(120)
    assert channel.messages[1:] == [{"trv2": [2], "trv3": [3], "trv4": [4]}]
    assert channel.pauses == [0.5]


def test_tasks_of_one_traversal_stay_together(channel: Channel) -> None:
    outbox = Outbox(channel, gather=0.5, sleep=channel.sleep)
    outbox.run_tasks(TraversalId("trv"), [TaskId(1)])
    outbox.run_tasks(TraversalId("trv"), [TaskId(2), TaskId(3)])
    outbox.start()
    assert outbox.stop(120)
    assert channel.messages == [{"trv": [1, 2, 3]}]


def test_many_tasks_take_several_messages_so_that_each_conductor_gets_some(channel: Channel) -> None:
    outbox = Outbox(channel, gather=0.5, sleep=channel.sleep)
    channel.resume.set()
    announce(outbox, *range(2 * SHARED_TASKS + 1))
    many = list(map(TaskId, range(SHARED_TASKS)))
    outbox.run_tasks(TraversalId("wide"), many)
    outbox.start()
    assert outbox.stop(120)
    assert [sum(map(len, message.values())) for message in channel.messages] == [
        SHARED_TASKS,
        SHARED_TASKS,
        1,
        SHARED_TASKS,
    ]
    assert channel.messages[-1] == {"wide": many}
    assert len(channel.pauses) == 1, "one that is full waits for nothing"


def test_without_gathering_each_hint_has_a_message_of_its_own(channel: Channel) -> None:
    outbox = Outbox(channel, sleep=channel.sleep)
    announce(outbox, 1, 2)
    outbox.start()
    assert outbox.stop(120)
    assert channel.messages == [{"trv1": [1]}, {"trv2": [2]}]
    assert channel.pauses == []


def _ends_when_all_is_sent(queue: SendQueue) -> bool:
    """Return whether a queue sends, and its end waits for the messages."""
    sending = threading.Event()
    may_end = threading.Event()
    queue.start()
    queue.put(sending.set)
    queue.put(functools.partial(may_end.wait, 120))
    is_sent = sending.wait(120)
    ended_early = queue.stop(0.01)
    may_end.set()
    return is_sent and not ended_early and queue.stop(120)


def test_a_fork_starts_the_queue_that_its_parent_has_made() -> None:
    queue = SendQueue("test")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if _ends_when_all_is_sent(queue) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_queue_that_was_never_started_ends_at_once() -> None:
    queue = SendQueue("test")
    assert queue.stop()
    queue.put(lambda: None)
    assert not queue.stop()
