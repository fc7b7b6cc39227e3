"""Daemons whose output nobody reads any more: they stop in good order, instead of hanging."""

import contextlib
import pathlib
import signal
import sqlite3
import subprocess
import typing
from collections.abc import Callable, Iterator

import pytest
from harness.guard import GUARD
from harness.installation import set_up
from harness.ports import free_port
from harness.programs import BIN

WITHIN = 180.0


class Piped:
    """A daemon whose two streams are pipes."""

    def __init__(self, *command: str | pathlib.Path) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        GUARD.process(self.process.pid)

    @property
    def out(self) -> typing.IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout

    @property
    def err(self) -> typing.IO[str]:
        assert self.process.stderr is not None
        return self.process.stderr

    def read_until(self, text: str) -> None:
        while text not in (line := self.out.readline()):
            assert line, f"it has ended with {self.process.wait(WITHIN)}: {self.err.read()}"

    def end(self) -> int:
        return self.process.wait(WITHIN)


Start = Callable[..., Piped]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[Piped] = []

    def make(*command: str | pathlib.Path) -> Piped:
        started.append(Piped(*command))
        return started[-1]

    yield make
    for piped in started:
        if piped.process.poll() is None:
            piped.process.kill()
            piped.process.wait(WITHIN)
        for stream in (piped.out, piped.err):
            stream.close()


def serve(start: Start, folder: pathlib.Path) -> Piped:
    return start(BIN / "stoker", "serve", "--data-dir", folder / "data", "--port", str(free_port()))


def states(folder: pathlib.Path) -> list[str]:
    """Return the conductors' last records of themselves."""
    with contextlib.closing(sqlite3.connect(folder / "data" / "stoker.sqlite")) as conn:
        return [row[0] for row in conn.execute("SELECT state FROM conductor ORDER BY host")]


def test_stoker_serve_stops_when_its_output_is_not_read(start: Start, tmp_path: pathlib.Path) -> None:
    served = serve(start, tmp_path)
    served.out.close()
    served.err.close()
    assert served.end() == 1
    assert states(tmp_path) == ["stopped"] * 3


def test_stoker_serve_stops_where_its_log_is_not_read(start: Start, tmp_path: pathlib.Path) -> None:
    served = serve(start, tmp_path)
    served.read_until("export OS_AUTH_TYPE")
    served.out.close()
    served.process.send_signal(signal.SIGTERM)  # That it stops is logged.
    assert served.end() == 1
    assert states(tmp_path) == ["stopped"] * 3
    assert served.err.read() == ""


def test_stoker_serve_stops_where_its_errors_are_not_read(start: Start, tmp_path: pathlib.Path) -> None:
    served = serve(start, tmp_path)
    served.read_until("export OS_AUTH_TYPE")
    served.err.close()
    served.process.send_signal(signal.SIGHUP)  # It says that this changes nothing.
    assert served.end() == 1
    assert states(tmp_path) == ["stopped"] * 3


@pytest.fixture
def config(tmp_path: pathlib.Path) -> pathlib.Path:
    return set_up(tmp_path, f"bind_port = {free_port()}\n")


@pytest.mark.commit
@pytest.mark.parametrize(
    ("program", "ready"), [("stoker-api", "listens on"), ("stoker-conductor", "is in the ring and serves")]
)
def test_a_daemon_stops_whose_log_goes_into_a_closed_pipe(
    start: Start, config: pathlib.Path, program: str, ready: str
) -> None:
    daemon = start(BIN / program, "--config-file", config)
    daemon.read_until(ready)
    daemon.out.close()
    daemon.process.send_signal(signal.SIGHUP)  # What it has read again is logged.
    assert daemon.end() == 1
    assert daemon.err.read() == ""


def test_a_command_whose_output_pipe_closes_early_prints_no_error(config: pathlib.Path) -> None:
    for command in ("stoker-status upgrade check", "stoker-manage service list"):
        program, *arguments = command.split()
        line = f"{BIN / program} --config-file {config} {' '.join(arguments)} | true"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=WITHIN)
        assert done.stderr == ""
