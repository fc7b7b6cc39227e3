"""The end of a daemon's main thread, for whatever reason: always a stop, and an exit code."""

import dataclasses
import typing
from collections.abc import Iterator

import pytest
from stoker.cli.config.errors import WrongConfiguration
from stoker.cli.daemon import main_thread
from stoker.cli.daemon.main_loop import SignalQueue


@dataclasses.dataclass
class Fake:
    """A daemon of which parts fail."""

    starting: Exception | None = None
    serving: Exception | int = 0
    stopping: Exception | bool = True
    did: list[str] = dataclasses.field(default_factory=list)
    signals: SignalQueue = typing.cast(SignalQueue, None)

    def start(self) -> None:
        self.did.append("start")
        if self.starting is not None:
            raise self.starting

    def serve(self) -> int:
        self.did.append("serve")
        if isinstance(self.serving, Exception):
            raise self.serving
        return self.serving

    def stop(self) -> bool:
        self.did.append("stop")
        if isinstance(self.stopping, Exception):
            raise self.stopping
        return self.stopping


@pytest.fixture(autouse=True)
def ended(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The exit codes of the process, which does not end here."""
    codes: list[int] = []

    def end(code: int) -> int:
        codes.append(code)
        return code

    monkeypatch.setattr(main_thread, "end_process", end)
    yield codes
    assert len(codes) == 1


@pytest.mark.parametrize(
    ("fake", "code"),
    [
        (Fake(), 0),
        (Fake(serving=75), 75),
        (Fake(serving=75, stopping=False), 75),
        (Fake(stopping=False), 1),
        (Fake(serving=ZeroDivisionError()), 1),
        (Fake(serving=BrokenPipeError()), 1),
        (Fake(serving=OSError("disk full")), 1),
        (Fake(stopping=ZeroDivisionError()), 1),
    ],
)
def test_once_it_has_started_it_is_stopped_whatever_happens(fake: Fake, code: int) -> None:
    assert main_thread.run("daemon", fake) == code
    assert fake.did == ["start", "serve", "stop"]


@pytest.mark.parametrize(
    "error", [kind("in use") for kind in (OSError, WrongConfiguration, ZeroDivisionError)]
)
def test_what_was_started_is_stopped_where_the_rest_cannot_be(
    error: Exception, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    fake = Fake(starting=error)
    assert main_thread.run("daemon", fake) == 1
    assert fake.did == ["start", "stop"]
    is_known = not isinstance(error, ZeroDivisionError)
    assert ("daemon: cannot start: in use\n" in capsys.readouterr().err) == is_known
    assert ("ZeroDivisionError" in caplog.text) != is_known
