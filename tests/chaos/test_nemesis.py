"""The nemesis on a busy machine: what takes too long is a fault that ends, and not the end of the run."""

import subprocess

import pytest
from chaos.nemesis import TRIES, Fault, undergo


class SlowFault:
    """A fault whose commands take too long.

    :param slow_ends: how many of the first tries to end it do.
    :ivar commands: the commands in their order.
    """

    def __init__(self, *, slow_ends: int) -> None:
        self._slow_ends = slow_ends
        self.commands: list[str] = []

    def begin(self) -> None:
        self.commands.append("begin")
        raise subprocess.TimeoutExpired("rabbitmqctl", 120)

    def end(self) -> None:
        self.commands.append("end")
        if self.commands.count("end") <= self._slow_ends:
            raise TimeoutError("RabbitMQ does not answer")


def _undergo(slow: SlowFault) -> None:
    fault = Fault("disk full", "broker", slow.begin, slow.end, (1.0, 6.0))
    undergo(fault, lambda: slow.commands.append("wait"))


def test_a_fault_whose_commands_take_too_long_is_undone() -> None:
    slow = SlowFault(slow_ends=2)
    _undergo(slow)
    assert slow.commands == ["begin", "wait", "end", "end", "end"]


def test_a_fault_that_cannot_be_undone_is_reported() -> None:
    slow = SlowFault(slow_ends=TRIES)
    with pytest.raises(TimeoutError):
        _undergo(slow)
    assert slow.commands.count("end") == TRIES


def test_a_fault_that_fails_for_another_reason_is_undone_and_reported() -> None:
    commands: list[str] = []

    def fail() -> None:
        raise ValueError("no such command")

    fault = Fault("disk full", "broker", fail, lambda: commands.append("end"), (1.0, 6.0))
    with pytest.raises(ValueError, match="no such command"):
        undergo(fault, lambda: commands.append("wait"))
    assert commands == ["end"]
