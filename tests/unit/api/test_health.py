"""Health answers at once, whatever the database does."""

import threading
import time

import pytest
from harness.waiting import wait_for
from stoker.api import health
from stoker.api.health import KEPT, PATIENCE, UNAVAILABLE, DatabaseHealth
from stoker.db.errors import Unavailable

AWAY = f"{UNAVAILABLE}: the database is not available"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that ends is waited for, however slow the host."""
    monkeypatch.setattr(health, "WAIT", 60.0)


class Server:
    """A database that answers when the test lets it, and a clock."""

    def __init__(self) -> None:
        self.now = 100.0
        self.pings = 0
        self.away = False
        self.free = threading.Event()
        self.free.set()
        self.health = DatabaseHealth(self.ping, monotonic=lambda: self.now)

    def ping(self) -> None:
        self.pings += 1
        assert self.free.wait(300)
        if self.away:
            raise Unavailable("gone")


def test_a_database_that_answers_is_well_and_is_not_checked_again_at_once() -> None:
    server = Server()
    assert [server.health.problem() for _ in range(5)] == [None] * 5
    assert server.pings == 1
    server.now += KEPT
    assert server.health.problem() is None
    assert server.pings == 2


def test_one_that_is_unavailable_and_returns() -> None:
    server = Server()
    server.away = True
    assert server.health.problem() == AWAY
    server.away = False
    assert server.health.problem() == AWAY, "kept"
    server.now += KEPT
    assert server.health.problem() is None


def test_one_that_hangs_is_checked_once_and_is_unavailable_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Server()
    assert server.health.problem() is None
    server.free.clear()
    monkeypatch.setattr(health, "WAIT", 0.1)
    server.now += KEPT
    began = time.monotonic()
    assert server.health.problem() is None
    server.now += PATIENCE
    assert server.health.problem() == f"{UNAVAILABLE}: the database has not answered for {PATIENCE:.1f} s"
    assert server.pings == 2
    assert time.monotonic() - began < 30, "it did not wait for the database"
    server.free.set()
    wait_for(lambda: server.health.problem() is None)


def test_one_that_has_never_answered_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "WAIT", 0.1)
    server = Server()
    server.free.clear()
    assert server.health.problem() == f"{UNAVAILABLE}: the database has not answered for 0.0 s"
    server.free.set()
    wait_for(lambda: server.health.problem() is None)


def test_a_process_without_a_thread_to_spare_says_so_and_asks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as short:
        short.setattr(threading.Thread, "start", start)
        assert server.health.problem() == f"{UNAVAILABLE}: database-health: no thread can be started"
    assert server.health.problem() is None
