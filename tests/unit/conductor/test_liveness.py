"""A loop that does not come round is found; one that waits for work is not."""

import threading
import typing

import pytest
from harness.waiting import wait_for
from stoker.conductor.liveness import Liveness, Progress, answered
from stoker.conductor.scheduler import Scheduler
from stoker.conductor.slice import Ring
from stoker.conductor.worker import thread
from stoker.conductor.worker.loop import WorkLoop
from stoker.conductor.worker.thread import WorkThread
from stoker.db.ids import MemberId

GRACE = 5.0


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_loop_is_late_when_its_interval_and_the_grace_are_over() -> None:
    clock = Clock()
    alive = Liveness(clock)
    alive.expect("slow", 60.0)
    alive.expect("fast", 1.0)
    clock.now += 6.0
    assert alive.late(GRACE) == []
    clock.now += 0.1
    assert alive.late(GRACE) == ["fast"]
    alive.beat("fast")
    assert alive.late(GRACE) == []
    clock.now += 60.0
    assert alive.late(GRACE) == ["fast", "slow"]
    alive.forget("fast")
    alive.beat("fast")
    assert alive.late(GRACE) == ["slow"]


class Wheel:
    """A work loop whose round may hang.

    :ivar hangs: a round does.
    :ivar pause: seconds until something is due, as each round returns.
    """

    in_progress = 0
    pause: float | None = 0.01

    def __init__(self) -> None:
        self.hangs = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()

    def work_as(self, who: object) -> None: ...

    def drain(self) -> None: ...

    def run_once(self) -> float | None:
        if not self.go_on.is_set():
            self.hangs.set()
            self.go_on.wait(300)
        return self.pause


class Ashore:
    def member(self) -> MemberId | None:
        return None


def test_a_work_loop_beats_while_it_waits_and_not_while_it_hangs() -> None:
    clock = Clock()
    wheel = Wheel()
    alive = Liveness(clock)
    thread_of_loop = WorkThread(
        lambda wake: typing.cast(WorkLoop, wheel),
        ring=typing.cast(Ring, Ashore()),
        host="a",
        liveness=alive,
        progress=Progress(alive, 5.0),
    )
    thread_of_loop.start()
    clock.now += 100
    wait_for(lambda: not alive.late(GRACE))
    wheel.go_on.clear()
    wait_for(wheel.hangs.is_set)
    clock.now += 100
    assert alive.late(GRACE) == [thread.NAME]
    wheel.go_on.set()
    wait_for(lambda: not alive.late(GRACE))
    assert thread_of_loop.stop(60)
    clock.now += 100
    assert alive.late(GRACE) == []


class RecordedLiveness(Liveness):
    """A liveness that records how often heartbeats are expected."""

    def __init__(self) -> None:
        super().__init__()
        self.intervals: list[float] = []

    def expect(self, name: str, every: float) -> None:
        super().expect(name, every)
        self.intervals.append(every)


class RecordedSleep(threading.Event):
    """An event that records for how long somebody waits for it, and is set soon."""

    def __init__(self) -> None:
        super().__init__()
        self.sleeps: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.sleeps.append(timeout)
        return super().wait(0.01)


@pytest.mark.parametrize(
    ("held", "pause", "sleep"),
    [
        (0, None, thread.IDLE_SLEEP),
        (0, 60.0, thread.IDLE_SLEEP),
        (0, 2.0, 2.0),
        (1, None, thread.LONGEST_SLEEP),
        (1, 2.0, thread.LONGEST_SLEEP),
        (1, 0.5, 0.5),
    ],
)
def test_a_work_loop_sleeps_until_something_is_due_and_longer_while_it_holds_no_task(
    held: int, pause: float | None, sleep: float
) -> None:
    alive = RecordedLiveness()
    soon = RecordedSleep()
    wheel = Wheel()
    wheel.in_progress = held
    wheel.pause = pause
    thread_of_loop = WorkThread(
        lambda wake: typing.cast(WorkLoop, wheel),
        ring=typing.cast(Ring, Ashore()),
        host="a",
        liveness=alive,
        progress=Progress(alive, 5.0),
        soon=soon,
    )
    thread_of_loop.start()
    wait_for(lambda: bool(soon.sleeps))
    thread_of_loop.kill()
    assert soon.sleeps[0] == sleep
    longest = thread.LONGEST_SLEEP if held else thread.IDLE_SLEEP
    assert alive.intervals[:3] == [thread.LONGEST_SLEEP, thread.LONGEST_SLEEP, longest]


class Duty:
    interval = 0.01

    def __init__(self) -> None:
        self.begun = 0
        self.go_on = threading.Event()

    def run(self) -> None:
        self.begun += 1
        self.go_on.wait(300)


@pytest.mark.parametrize("inside", [True, False], ids=["in the ring", "outside of it"])
def test_a_duty_beats_after_each_round_also_when_it_may_not_run(inside: bool) -> None:
    clock = Clock()
    duty = Duty()
    alive = Liveness(clock)
    scheduler = Scheduler({"Duty": duty}, may_run=lambda: inside, liveness=alive)
    scheduler.start()
    if inside:
        wait_for(lambda: duty.begun == 1)
        clock.now += 100
        assert alive.late(GRACE) == ["the duty Duty"]
        duty.go_on.set()
    clock.now += 100
    wait_for(lambda: not alive.late(GRACE))
    scheduler.stop()
    clock.now += 100
    assert alive.late(GRACE) == []


def test_a_loop_without_an_answer_is_stuck_and_one_with_answers_is_not() -> None:
    now = [0.0]
    liveness = Liveness(lambda: now[0])
    with liveness.at_work("a"):
        for _ in range(10):
            now[0] += 4
            answered()
            assert liveness.stuck(5.0) == []
        now[0] += 6
        assert liveness.stuck(5.0) == ["a"]
    assert liveness.stuck(5.0) == []
    answered()


def test_what_was_stuck_is_so_until_the_database_has_answered() -> None:
    now = [0.0]
    liveness = Liveness(lambda: now[0])
    progress = Progress(liveness, 5.0)
    assert (progress.stuck(), progress.in_doubt) == ((), False)
    with liveness.at_work("a"):
        now[0] += 6
        assert progress.stuck() == ["a"]
        progress.proved()
        assert progress.stuck() == ["a"]
    assert (progress.stuck(), progress.in_doubt) == (["a"], True)
    progress.proved()
    assert (progress.stuck(), progress.in_doubt) == ((), False)
