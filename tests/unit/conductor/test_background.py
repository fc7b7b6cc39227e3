"""Long work runs beside the duties: bounded, once for each object, and what breaks is tried again."""

import logging
import threading
from collections.abc import Iterator

import pytest
from harness.waiting import wait_for
from stoker.conductor.background import BackgroundPool


@pytest.fixture
def pool() -> Iterator[BackgroundPool]:
    background = BackgroundPool("The work", threads=2, waiting=4)
    yield background
    background.stop()


def test_what_hangs_delays_nobody_who_submits(pool: BackgroundPool) -> None:
    let_go = threading.Event()
    ended = threading.Event()
    try:
        assert pool.submit("a", lambda: let_go.wait(300) and None)
        assert pool.submit("b", lambda: let_go.wait(300) and None)
        assert not pool.submit("a", ended.set), "its work is not over"
        accepted = [pool.submit(number, ended.set) for number in range(20)]
        assert False in accepted, "there is no room for all of them"
        assert not ended.is_set()
    finally:
        let_go.set()
    wait_for(lambda: pool.submit("a", ended.set))
    wait_for(ended.is_set)


def test_what_breaks_is_logged_and_may_be_submitted_again(
    pool: BackgroundPool, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise ValueError("a bug")

    with caplog.at_level(logging.ERROR):
        assert pool.submit("a", fail)
        wait_for(lambda: "The work of a failed" in caplog.text)
    done = threading.Event()
    wait_for(lambda: pool.submit("a", done.set))
    wait_for(done.is_set)


def test_nothing_is_taken_after_the_end(pool: BackgroundPool) -> None:
    pool.stop()
    assert not pool.submit("a", lambda: None)
