"""The database's time counts, whatever the host's clock says, and nothing is ended by a time in doubt."""

import logging

import pytest
from stoker.db.engine import BELIEVED_AFTER, CONFIRMED_AFTER, EVERY, ServerClock

HOURS = 7200.0
BOOT = 500.0
"""Seconds by which the monotonic clock lags behind all others."""


class Scene:
    """A host, and a server; `true` is the time.

    :ivar host, server: by how much their clocks are ahead.
    """

    def __init__(self) -> None:
        self.true = 1_000_000.0
        self.host = 0.0
        self.server = 0.0
        self.clock = ServerClock(wall=lambda: self.true + self.host, monotonic=lambda: self.true - BOOT)

    def measure(self, *, way: float = 0.0, back: float = 0.0) -> None:
        before = self.true - BOOT
        self.true += way
        server_time = self.true + self.server
        self.true += back
        self.clock.measured(server_time, before, self.true - BOOT)

    def go(self, seconds: float, *, measuring: bool = True) -> None:
        for _ in range(round(seconds)):
            self.true += 1.0
            if measuring:
                self.measure()

    @property
    def ahead(self) -> float:
        """Return the seconds by which the clock is ahead of the true time."""
        return self.clock() - self.true


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.mark.parametrize("ahead", [HOURS, -HOURS, 0.3])
def test_a_host_whose_clock_is_wrong_goes_by_the_servers(scene: Scene, ahead: float) -> None:
    scene.host = ahead
    scene.measure()
    assert scene.clock.is_sure
    assert scene.ahead == pytest.approx(0.0)
    assert scene.clock.host_ahead == pytest.approx(ahead)


@pytest.mark.parametrize("jump", [HOURS, -HOURS])
def test_setting_the_hosts_clock_moves_nothing(scene: Scene, jump: float) -> None:
    scene.measure()
    scene.host = jump
    assert scene.ahead == pytest.approx(0.0)
    scene.go(20)
    assert scene.clock.is_sure
    assert scene.ahead == pytest.approx(0.0)


def test_a_wrong_host_is_logged_once_a_minute(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.host = HOURS
    with caplog.at_level(logging.WARNING):
        scene.measure()
        scene.go(59)
        assert caplog.text.count("differs from the database's by +7200.0 s") == 1
        scene.go(2)
    assert caplog.text.count("differs") == 2


def test_before_the_first_measurement_it_is_the_hosts_and_nothing_is_ended_by_it(scene: Scene) -> None:
    scene.host = 3.0
    assert scene.ahead == pytest.approx(3.0)
    assert not scene.clock.is_sure
    scene.measure(way=0.2, back=30.0)
    assert not scene.clock.is_sure, "an answer that took so long says too little"


def test_slow_answers_do_not_shake_what_is_known_better(scene: Scene) -> None:
    scene.measure()
    for way, back in ((0.9, 0.0), (0.0, 0.9), (0.5, 0.4)):
        scene.measure(way=way, back=back)
        assert scene.ahead == pytest.approx(0.0)


def test_a_drift_is_followed(scene: Scene) -> None:
    scene.measure()
    for _ in range(100):
        scene.server += 0.01
        scene.go(1)
    assert scene.ahead == pytest.approx(1.0)
    assert scene.clock.is_sure


@pytest.mark.parametrize("jump", [HOURS, -HOURS])
def test_a_jump_of_the_servers_time_ends_nothing_until_it_is_believed(scene: Scene, jump: float) -> None:
    scene.measure()
    scene.server = jump
    scene.go(BELIEVED_AFTER - 2)
    assert not scene.clock.is_sure
    assert f"jumped by {jump:+.1f} s" in str(scene.clock.trouble())
    assert scene.ahead == pytest.approx(max(0.0, jump)), "no deadline is stored too early"
    scene.go(4)
    assert scene.clock.is_sure
    assert scene.clock.trouble() is None
    assert scene.ahead == pytest.approx(jump)


def test_a_jump_that_is_taken_back_was_none(scene: Scene) -> None:
    scene.measure()
    scene.server = HOURS
    scene.go(10)
    scene.server = 0.0
    scene.go(1)
    assert scene.clock.is_sure
    assert scene.ahead == pytest.approx(0.0)


def test_a_server_that_is_set_right_is_believed_soon_for_the_host_agrees(scene: Scene) -> None:
    scene.server = HOURS
    scene.measure()
    assert scene.ahead == pytest.approx(HOURS)
    scene.server = 0.0
    scene.go(1)
    assert not scene.clock.is_sure
    scene.go(CONFIRMED_AFTER)
    assert scene.clock.is_sure
    assert scene.ahead == pytest.approx(0.0)


def test_it_is_measured_at_intervals_and_by_one_thread(scene: Scene) -> None:
    assert scene.clock.take_turn()
    assert not scene.clock.take_turn()
    scene.measure()
    scene.go(EVERY - 1, measuring=False)
    assert not scene.clock.take_turn()
    scene.go(1, measuring=False)
    assert scene.clock.take_turn()


def test_whoever_connects_again_measures_again(scene: Scene) -> None:
    scene.measure()
    scene.server = -HOURS
    scene.measure()
    assert scene.clock.trouble() is not None
    scene.clock.forget()
    assert scene.clock.trouble() is None
    assert not scene.clock.is_sure
    assert scene.clock.take_turn()
    scene.measure()
    assert scene.clock.is_sure
    assert scene.ahead == pytest.approx(-HOURS)
