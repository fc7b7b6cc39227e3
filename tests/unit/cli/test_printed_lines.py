"""Lines that Stoker prints while it runs reach their reader at once, also through a pipe."""

import io
import sys
import types
import typing
from collections.abc import Callable

import pytest
from stoker.cli.daemon.main_loop import SignalQueue, run_command
from stoker.cli.daemon.main_thread import DaemonService
from stoker.osc.access import client_of


class Talkative:
    """A daemon that prints."""

    signals = typing.cast(SignalQueue, None)

    def start(self) -> None:
        print("a line")

    def serve(self) -> int:
        return 0

    def stop(self) -> bool:
        return True


def by_a_command() -> None:
    run_command(lambda: len(str(print("a line"))))


def by_a_daemon() -> None:
    DaemonService("daemon", Talkative()).start()


def by_a_command_of_the_client() -> None:
    manager = types.SimpleNamespace(orchestration=None)
    client_of(
        typing.cast(typing.Any, types.SimpleNamespace(app=types.SimpleNamespace(client_manager=manager)))
    )
    print("a line")


class Pipe(io.RawIOBase):
    """The pieces that arrive at the other end."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, piece: typing.Any) -> int:
        self.pieces.append(bytes(piece))
        return len(piece)


@pytest.mark.parametrize("print_a_line", [by_a_command, by_a_daemon, by_a_command_of_the_client])
def test_a_line_is_flushed_into_a_pipe(
    print_a_line: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = Pipe()
    stream = io.TextIOWrapper(io.BufferedWriter(pipe))
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        patch.setattr(stream, "flush", lambda: None, raising=False)
        print_a_line()
    assert pipe.pieces == [b"a line\n"]
