"""`stoker-api` with several worker processes: one address, one unit of systemd, one exit code."""

import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator

import pytest
from harness import proctree
from harness.deployment import call
from harness.guard import GUARD
from harness.installation import set_up
from harness.ports import free_port
from harness.processes import Process, ProcessEnded
from harness.programs import BIN, Program
from harness.waiting import wait_for

WATCHDOG = 24.0
"""A worker that is well must not seem to hang where the machine pauses."""


class Manager:
    """systemd's end: what it hears, and the process."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.config = set_up(folder, f"bind_port = {self.port}\nworkers = 2\n[metrics]\napi = true\n")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(folder / "notify"))
        self.socket.setblocking(False)
        self.heard: list[str] = []
        self.process: Process | None = None

    def start(self, kind: type[Process] = Program) -> Process:
        env = {"NOTIFY_SOCKET": str(self.folder / "notify"), "WATCHDOG_USEC": str(int(WATCHDOG * 1e6))}
        env["TMPDIR"] = str(self.folder)
        command = [BIN / "stoker-api", "--config-file", self.config]
        self.process = kind(command, log=self.folder / "log", env=env)
        return self.process

    def hears(self, text: str) -> bool:
        with contextlib.suppress(BlockingIOError):
            while True:
                self.heard.append(self.socket.recv(4096).decode())
        return any(text in message for message in self.heard)

    def workers(self) -> set[int]:
        """The pids of the API's workers: the children but for helpers of its own."""
        assert self.process is not None
        lines = {pid: cmdline(pid) for pid in children(self.process.pid)}
        return {pid for pid, line in lines.items() if line and b"stoker.template.sandbox" not in line}

    def healthy(self) -> bool:
        return call(self.url, "GET", "/healthcheck")[0] == 200


def children(pid: int) -> list[int]:
    """The direct ones."""
    pids = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # The thread has ended meanwhile.
            pids += [int(child) for child in (task / "children").read_text().split()]
    return pids


def cmdline(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


@pytest.fixture
def manager(tmp_path: pathlib.Path) -> Iterator[Manager]:
    started = Manager(tmp_path)
    yield started
    if started.process is not None:
        started.process.kill()
    started.socket.close()


@pytest.fixture
def api(request: pytest.FixtureRequest, manager: Manager) -> Process:
    process = manager.start(getattr(request, "param", Program))

    def ready() -> bool:
        if not process.is_running:
            raise ProcessEnded(process.tail())
        return manager.hears("READY=1")

    wait_for(ready, 60, process.tail)
    # A helper that is being started has its parent's command line for a moment.
    wait_for(lambda: len(manager.workers()) == 2, 60, process.tail)
    return process


@pytest.mark.parametrize("api", [Process], indirect=True, ids=["started for real"])
def test_systemd_is_notified_once_all_workers_serve_and_at_the_stop(manager: Manager, api: Process) -> None:
    assert len(manager.workers()) == 2
    assert api.text().count(f"stoker-api listens on 127.0.0.1:{manager.port}") == 2
    ready = [message for message in manager.heard if "READY" in message]
    assert ready == [f"READY=1\nSTATUS=serves at 127.0.0.1:{manager.port} with 2 worker processes"]
    assert all(manager.healthy() for _ in range(20))
    assert api.stop() == 0
    assert manager.hears("STOPPING=1")


@pytest.mark.commit
def test_each_worker_tells_the_requests_of_all(manager: Manager, api: Process) -> None:
    """Connections of their own go to the one worker or the other."""
    counted = re.compile(r'stoker_api_requests_total\{.*route="/healthcheck".*\} (\S+)')

    def requests() -> float:
        with urllib.request.urlopen(f"{manager.url}/metrics", timeout=60) as answer:
            return sum(float(value) for value in counted.findall(answer.read().decode()))

    before = requests()
    for number in range(1, 21):
        assert manager.healthy()
        assert requests() == before + number


@pytest.mark.commit
def test_an_interrupt_is_an_orderly_stop(manager: Manager, api: Process) -> None:
    assert list(manager.folder.glob("stoker-metrics-*"))
    assert api.stop(number=signal.SIGINT) == 0
    assert not list(manager.folder.glob("stoker-metrics-*"))


def test_a_wrong_configuration_ends_it_instead_of_more_tries(manager: Manager) -> None:
    manager.config.write_text(manager.config.read_text() + "[DEFAULT]\ntransport_url = carrier-pigeon://x\n")
    process = manager.start()
    wait_for(lambda: process.exit_code == 1, 60, process.tail)
    assert "stoker-api: cannot start: transport_url" in process.text()
    assert not manager.hears("READY")
    assert "Traceback" not in process.text()


@pytest.mark.commit
def test_a_reload_keeps_the_workers(manager: Manager, api: Process) -> None:
    before = manager.workers()
    manager.heard.clear()
    manager.config.write_text(manager.config.read_text() + "[DEFAULT]\ndebug = true\n")
    api.send(signal.SIGHUP)
    wait_for(lambda: manager.hears("READY=1"), 60, api.tail)
    messages = [message.replace("\n", " ") for message in manager.heard if "WATCHDOG" not in message]
    assert re.match(r"RELOADING=1 MONOTONIC_USEC=\d+$", messages[0])
    assert messages[1:] == ["READY=1 STATUS=the configuration was read again; changed: DEFAULT.debug"]
    assert manager.workers() == before
    assert api.text().count("The configuration was read again; changed: DEFAULT.debug") == 3


@pytest.mark.parametrize(
    ("number", "text"), [(signal.SIGKILL, "died; it is restarted"), (signal.SIGSTOP, "hangs; it is ended")]
)
def test_a_worker_that_dies_or_hangs_is_replaced_while_the_other_serves(
    manager: Manager, api: Process, number: signal.Signals, text: str
) -> None:
    before = manager.workers()
    victim = min(before)
    os.kill(victim, number)

    def ended() -> bool:
        manager.hears(text)  # The parent must not wait for its manager.
        return text in api.text()

    def why() -> str:
        return f"victim {victim} in {proctree.tree(api.pid)}: {api.end_with_stacks()}"

    wait_for(ended, 4 * WATCHDOG, why)
    wait_for(lambda: len(manager.workers() - {victim}) == 2, 60, api.tail)
    assert before - {victim} < manager.workers()
    wait_for(lambda: api.text().count("stoker-api listens on") == 3, 60, api.tail)
    assert all(manager.healthy() for _ in range(20))
    assert api.stop() == 0


def test_each_worker_writes_its_report(manager: Manager, api: Process) -> None:
    api.send(signal.SIGUSR2)
    wait_for(lambda: api.text().count("product = Stoker") == 2, 60, api.tail)
    assert manager.healthy()


@pytest.mark.commit
def test_workers_end_whose_parent_was_killed(manager: Manager, api: Process) -> None:
    tree = proctree.tree(api.pid)
    api.send(signal.SIGKILL)
    assert not proctree.wait_gone(tree, 180)


def test_the_watchdog_is_fed(manager: Manager, api: Process) -> None:
    manager.heard.clear()
    wait_for(lambda: manager.hears("WATCHDOG=1"), 4 * WATCHDOG, api.tail)
    assert api.is_running


def test_it_ends_with_1_when_nobody_reads_its_log(manager: Manager) -> None:
    command = [BIN / "stoker-api", "--config-file", manager.config]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    GUARD.process(process.pid)
    assert process.stdout is not None
    with process.stdout:
        while b"worker processes" not in (line := process.stdout.readline()):
            assert line
    process.send_signal(signal.SIGHUP)  # What it has read again is logged.
    assert process.wait(180) == 1
