"""The thread of the work loop, round by round, without a thread."""

import contextlib
import threading
import types
import typing
from collections.abc import Callable, Iterator

import pytest
from stoker.conductor.liveness import Liveness, Progress
from stoker.conductor.slice import Ring
from stoker.conductor.worker.loop import WorkLoop
from stoker.conductor.worker.thread import WorkThread
from stoker.db.ids import MemberId
from stoker.db.work.claim import Claimant

NAME = MemberId("one/i")


class Scene:
    """A thread with its work loop, its ring and its database; it ends after some rounds.

    :param has_event: whether it sleeps on an event of its own.
    :ivar before: called before each round, with its number from 1; its return is the pause.
    :ivar calls: the calls of the work loop.
    :ivar sleeps: seconds for which the thread slept.
    """

    def __init__(self, *, has_event: bool = False) -> None:
        self.before: Callable[[int], float | None] = lambda number: None
        self.rounds = 3
        self.calls: list[object] = []
        self.sleeps: list[float] = []
        self.expected: list[float] = []
        self.in_progress = 0
        self.in_doubt = False
        self.has_database = True
        self.name: MemberId | None = NAME
        self.is_at_work = self.is_forgotten = self.keeps = False
        self._count = 0
        made: list[Callable[[], None]] = []

        def make(wake: Callable[[], None]) -> WorkLoop:
            made.append(wake)
            return typing.cast(WorkLoop, self)

        self.thread = WorkThread(
            make,
            ring=typing.cast(Ring, self),
            host="one",
            liveness=typing.cast(Liveness, self),
            progress=typing.cast(Progress, self),
            soon=None if has_event else typing.cast(threading.Event, self),
            keeping=self.keeping,
        )
        [self.wake] = made

    # -- the work loop and its database

    def work_as(self, who: Claimant | None) -> None:
        self.calls.append(who)

    def drain(self) -> None:
        self.calls.append("drain")

    def run_once(self) -> float | None:
        self._count += 1
        assert self.is_at_work
        assert self.keeps
        if self._count == self.rounds:
            self.thread._dead = True
        return self.before(self._count)

    @contextlib.contextmanager
    def keeping(self) -> Iterator[None]:
        self.keeps = True
        yield
        self.keeps = False

    def database_answers(self) -> bool:
        self.calls.append("database")
        return self.has_database

    def proved(self) -> None:
        self.calls.append("proved")

    # -- the ring, and the liveness of the loop

    def member(self) -> MemberId | None:
        return self.name

    def expect(self, name: str, every: float) -> None:
        self.expected.append(every)

    def forget(self, name: str) -> None:
        self.is_forgotten = True

    @contextlib.contextmanager
    def at_work(self, name: str) -> Iterator[None]:
        self.is_at_work = True
        yield
        self.is_at_work = False

    # -- the event that ends a sleep

    is_set = False

    def set(self) -> None:
        self.is_set = True

    def clear(self) -> None:
        self.is_set = False

    def wait(self, seconds: float) -> None:
        assert not self.is_at_work
        self.sleeps.append(seconds)

    def run(self) -> None:
        self.thread._run()


@pytest.mark.parametrize(
    ("pause", "in_progress", "in_doubt", "sleep", "longest"),
    [
        (None, 0, False, 5.0, 5.0),
        (None, 1, False, 1.0, 1.0),
        (None, 0, True, 1.0, 1.0),
        (0.2, 0, False, 0.2, 5.0),
        (3.0, 1, False, 1.0, 1.0),
        (3.0, 0, False, 3.0, 5.0),
    ],
)
def test_a_sleep_ends_when_something_is_due_or_a_change_could_be_missed(
    *, pause: float | None, in_progress: int, in_doubt: bool, sleep: float, longest: float
) -> None:
    scene = Scene()
    scene.before = lambda _: pause
    scene.in_progress, scene.in_doubt, scene.has_database = in_progress, in_doubt, False
    scene.run()
    assert scene.sleeps == [sleep] * 3
    assert scene.expected == [1.0, longest] * 3


def test_each_round_works_in_the_name_of_its_moment() -> None:
    scene = Scene()
    names = [None, MemberId("one/j")]

    def change(number: int) -> None:
        scene.name = names[number - 1] if number < 3 else None

    scene.before = change
    scene.run()
    assert scene.calls == [Claimant(NAME, "one"), None, Claimant(MemberId("one/j"), "one")]


def test_the_database_has_to_answer_while_progress_is_in_doubt_only() -> None:
    scene = Scene()
    scene.name = None

    def change(number: int) -> None:
        scene.in_doubt = number < 3
        scene.has_database = number == 2

    scene.before = change
    scene.rounds = 4
    scene.run()
    assert scene.calls == [None, "database", None, "database", "proved", None, None]


def test_a_round_that_fails_is_logged_and_another_one_follows_soon(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()

    def fail(number: int) -> None:
        raise (RuntimeError if number < 3 else ValueError)("no such thing")

    scene.before = fail
    scene.run()
    assert scene.sleeps == [1.0] * 3
    assert [record.message for record in caplog.records] == ["A round of the work loop failed"] * 2


def test_a_drain_is_repeated_in_each_round_and_wakes_the_thread() -> None:
    scene = Scene()
    scene.name = None
    scene.before = lambda number: scene.thread.drain() if number == 1 else None
    scene.run()
    assert scene.calls == [None, None, "drain", None, "drain"]
    for wake in (scene.wake, scene.thread.wake, scene.thread.drain):
        scene.is_set = False
        wake()
        assert scene.is_set


def test_a_wake_during_a_round_ends_the_sleep_after_it() -> None:
    scene = Scene()
    scene.rounds = 1
    scene.before = lambda _: scene.wake()
    scene.is_set = True
    scene.run()
    assert scene.is_set


def test_a_wake_before_a_round_is_over_with_it() -> None:
    scene = Scene()
    scene.rounds, scene.is_set = 1, True
    scene.run()
    assert not scene.is_set


def test_a_thread_is_expected_to_work_before_it_has_started_and_a_kill_ends_its_sleep() -> None:
    scene = Scene()
    calls: list[object] = []
    scene.thread._thread = typing.cast(
        threading.Thread,
        types.SimpleNamespace(
            start=lambda: calls.append(list(scene.expected)),
            join=lambda seconds: calls.append((scene.is_set, scene.thread._dead)),
        ),
    )
    scene.thread.start()
    scene.thread.kill()
    assert calls == [[1.0], (True, True)]


def test_one_that_stops_ends_when_all_results_are_stored() -> None:
    scene = Scene()
    scene.name, scene.in_progress, scene.rounds = None, 1, 9

    def stop(number: int) -> None:
        if number == 1:
            scene.thread._stop.set()
        scene.in_progress = int(number < 3)

    scene.before = stop
    scene.run()
    assert len(scene.sleeps) == 2
    assert scene.is_forgotten
    assert scene.expected[-1] == 1.0


def test_a_stop_says_whether_the_thread_has_ended() -> None:
    for in_progress in (1, 0):
        scene = Scene(has_event=True)
        scene.rounds, scene.in_progress = 1_000_000, in_progress
        scene.thread.start()
        assert scene.thread._thread.daemon
        assert scene.thread.stop(0.01 if in_progress else 5.0) == (not in_progress)
        assert "drain" in scene.calls or not in_progress
        scene.thread.kill()
        assert not scene.thread._thread.is_alive()
        assert scene.expected[0] == 1.0
