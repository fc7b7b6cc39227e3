"""A daemon's main thread between its start and its stop, and its notifications to systemd."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import typing
from collections.abc import Iterator

import pytest
from stoker.cli.daemon.main_loop import EVENT_OF_SIGNAL, SignalQueue, run_main_loop
from stoker.cli.daemon.systemd import Systemd
from stoker.cli.daemon.workers import stops_early
from stoker.cli.http.server import unanswered


@pytest.fixture
def signals() -> Iterator[SignalQueue]:
    before = {number: signal.getsignal(number) for number in EVENT_OF_SIGNAL}
    signals = SignalQueue()
    yield signals
    signal.set_wakeup_fd(-1)
    for number, handler in before.items():
        signal.signal(number, handler)


ELSEWHERE = """
import os, signal, threading, time
from stoker.cli.daemon.main_loop import SignalQueue

signals = SignalQueue()
other = threading.Thread(target=time.sleep, args=(600,), daemon=True)
other.start()
# The kernel gives the signal to the other thread, and nothing interrupts what the main one waits in.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()
print(signals.next(200), flush=True)
os._exit(0)
"""


def test_a_signal_is_noticed_whichever_thread_the_kernel_gives_it_to() -> None:
    done = subprocess.run([sys.executable, "-c", ELSEWHERE], capture_output=True, text=True, timeout=300)
    assert done.stdout == "OperatorSignal.STOP\n", done.stderr


@pytest.mark.parametrize(
    ("sent", "reloads", "is_stopped"),
    [
        ([], 0, False),
        ([signal.SIGHUP], 1, False),
        ([signal.SIGTERM], 0, True),
        ([signal.SIGHUP, signal.SIGTERM], 1, True),
    ],
)
def test_signals_during_the_start_of_workers_are_obeyed(
    signals: SignalQueue, sent: list[signal.Signals], reloads: int, is_stopped: bool
) -> None:
    statuses: list[str] = []

    def reload() -> str:
        statuses.append("reloaded")
        return statuses[-1]

    for number in sent:
        os.kill(os.getpid(), number)
    assert stops_early(signals, reload) == is_stopped
    assert len(statuses) == reloads


class Manager:
    """systemd's end of the socket."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self._socket.settimeout(60)
        self.address = address

    def heard(self) -> str:
        return self._socket.recv(4096).decode()

    def all_heard(self) -> list[str]:
        self._socket.settimeout(0.05)
        numbers = []
        while True:
            try:
                numbers.append(self.heard())
            except TimeoutError:
                return numbers


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Manager:
    return Manager(
        str(tmp_path / "notify") if request.param == "path" else f"@stoker-{os.getpid()}-{id(request)}"
    )


def systemd(manager: Manager, **more: str) -> Systemd:
    return Systemd({"NOTIFY_SOCKET": manager.address, **more})


def test_systemd_hears_each_state(manager: Manager) -> None:
    notifier = systemd(manager)
    notifier.waiting("not yet", 60)
    assert manager.heard() == "STATUS=not yet\nEXTEND_TIMEOUT_USEC=60000000"
    notifier.ready("serves")
    assert manager.heard() == "READY=1\nSTATUS=serves"
    notifier.reloading()
    assert manager.heard().startswith("RELOADING=1\nMONOTONIC_USEC=")
    notifier.stopping(12.5)
    assert manager.heard() == "STOPPING=1\nSTATUS=stopping\nEXTEND_TIMEOUT_USEC=12500000"


@pytest.mark.parametrize(
    ("variables", "watchdog"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "60000000"}, 60.0),
        ({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": str(os.getpid())}, 60.0),
        ({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_the_watchdog_is_ours_or_there_is_none(variables: dict[str, str], watchdog: float | None) -> None:
    assert Systemd(variables).watchdog == watchdog


def test_without_a_manager_nothing_is_sent() -> None:
    Systemd({}).ready("serves")
    Systemd({"NOTIFY_SOCKET": "/no/such/socket"}).ready("serves")


def test_a_manager_that_reads_nothing_holds_up_nobody(
    manager: Manager, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stoker.cli.daemon.systemd.SENT_WITHIN", 0.01)
    notifier = systemd(manager)
    while not caplog.records:
        notifier.alive()
    assert caplog.records[0].getMessage() == "Cannot notify systemd of 'WATCHDOG=1': timed out"
    assert set(manager.all_heard()) == {"WATCHDOG=1"}
    notifier.ready("serves")
    assert manager.heard() == "READY=1\nSTATUS=serves"


def run(signals: SignalQueue, notifier: Systemd, **more: typing.Any) -> None:
    """Stay until something ends us."""
    run_main_loop(signals, notifier, **{"reload": lambda: "", **more})


def end() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def test_the_watchdog_is_fed_until_a_loop_is_late_and_again_afterwards(
    signals: SignalQueue, manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    late = iter([[], ["the work loop"], ["the work loop"], []])
    graces: list[float] = []

    def ask(grace: float) -> list[str]:
        graces.append(grace)
        if len(graces) == 5:
            end()
        return next(late, ["done"])

    run(signals, systemd(manager, WATCHDOG_USEC="40000"), late=ask)
    assert manager.all_heard() == ["WATCHDOG=1"] * 2
    assert graces[0] == 0.02
    assert [record.args for record in caplog.records] == [("the work loop",), ("done",)]


def test_a_reload_is_reported_with_what_came_of_it(signals: SignalQueue, manager: Manager) -> None:
    os.kill(os.getpid(), signal.SIGHUP)
    end()
    run(signals, systemd(manager), reload=lambda: "nothing has changed")
    begun, ended = [text for text in manager.all_heard() if not text.startswith("WATCHDOG")]
    assert begun.startswith("RELOADING=1")
    assert ended == "READY=1\nSTATUS=nothing has changed"


def test_a_server_is_silent_when_it_has_not_answered_for_long() -> None:
    now = 0.0
    answers = True
    late = unanswered(lambda: answers, lambda: now)
    now = 100.0
    assert late(30) == []
    answers = False
    now = 130.0
    assert late(30) == []
    now = 130.1
    assert late(30) == ["the HTTP server"]
    answers = True
    assert late(30) == []
