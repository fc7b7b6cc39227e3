"""Duties run at their intervals and at once, one round at a time, and never after a stop."""

import pathlib
import threading
import time
import typing
from collections.abc import Callable, Iterator

import pytest
from harness.waiting import wait_for
from stoker.conductor.duties.report import ConductorReport
from stoker.conductor.liveness import Liveness
from stoker.conductor.scheduler import DUTY_THREADS, DutyPolicy, Scheduler
from stoker.conductor.slice import Ring
from stoker.conductor.timetable import AlwaysActive, Cadence
from stoker.conductor.worker.pool import start_thread
from stoker.db.engine import Commits, Database
from stoker.db.errors import Unavailable
from stoker.db.ids import MemberId
from stoker.ring.local_member import LocalMember
from stoker.ring.membership import Membership


class CountedDuty:
    """A duty that counts its rounds.

    :ivar most: rounds at the same time, at the most so far.
    """

    def __init__(self, interval: float = 0.02, job: Callable[[], object] = lambda: None) -> None:
        self.interval = interval
        self.rounds = self.most = self._now = 0
        self._job = job

    def run(self) -> None:
        self.rounds += 1
        self._now += 1
        self.most = max(self.most, self._now)
        try:
            self._job()
        finally:
            self._now -= 1


def fail() -> None:
    raise ValueError("a bug")


@pytest.fixture
def begin() -> Iterator[Callable[..., Scheduler]]:
    schedulers: list[Scheduler] = []

    def start(
        *duties: CountedDuty, may_run: Callable[[], bool] = lambda: True, **options: typing.Any
    ) -> Scheduler:
        """The first duty is "0", the next "1"."""
        named = {str(number): duty for number, duty in enumerate(duties)}
        schedulers.append(Scheduler(named, may_run=may_run, **options))
        schedulers[-1].start()
        return schedulers[-1]

    yield start
    for scheduler in schedulers:
        scheduler.stop()


def test_a_duty_that_breaks_runs_again_and_the_others_continue(begin: Callable[..., Scheduler]) -> None:
    broken = CountedDuty(job=fail)
    sound = CountedDuty()
    begin(broken, sound)
    wait_for(lambda: broken.rounds > 3 and sound.rounds > 3)


@pytest.mark.parametrize(
    ("error", "line"),
    [(ValueError("a bug"), "Duty 0 failed"), (Unavailable("disk full"), "Duty 0 waits, the database is")],
)
def test_a_duty_that_breaks_each_time_is_logged_once_a_minute(
    begin: Callable[..., Scheduler], caplog: pytest.LogCaptureFixture, error: Exception, line: str
) -> None:
    def break_down() -> None:
        raise error

    duty = CountedDuty(job=break_down)
    begin(duty)
    wait_for(lambda: duty.rounds > 5, within=60)
    [record] = [record for record in caplog.records if line in record.getMessage()]
    assert (record.exc_info is None) == isinstance(error, Unavailable)


def test_nothing_runs_while_we_are_not_in_the_ring(begin: Callable[..., Scheduler]) -> None:
    inside = False
    duty = CountedDuty()
    scheduler = begin(duty, may_run=lambda: inside)
    scheduler.soon("0")
    time.sleep(0.2)
    assert duty.rounds == 0
    inside = True
    wait_for(lambda: duty.rounds > 0)


def test_a_requested_duty_runs_long_before_its_interval_ends(begin: Callable[..., Scheduler]) -> None:
    duty = CountedDuty(interval=3600)
    begin(duty).soon("0")
    wait_for(lambda: duty.rounds == 1)


def test_there_is_one_round_of_a_duty_at_a_time(begin: Callable[..., Scheduler]) -> None:
    duty = CountedDuty(job=lambda: time.sleep(0.05))
    scheduler = begin(duty)
    for _ in range(20):
        scheduler.soon("0")
    wait_for(lambda: duty.rounds > 3)
    assert duty.most == 1


def test_a_duty_apart_keeps_its_pace_while_all_others_hang(begin: Callable[..., Scheduler]) -> None:
    let_go = threading.Event()
    hanging = [CountedDuty(job=lambda: let_go.wait(300)) for _ in range(DUTY_THREADS + 1)]
    urgent = CountedDuty()
    common = CountedDuty()
    try:
        scheduler = begin(urgent, common, *hanging, policies={"0": DutyPolicy(has_own_thread=True)})
        wait_for(lambda: sum(duty.rounds for duty in hanging) == DUTY_THREADS)
        before = urgent.rounds
        common_rounds = common.rounds
        wait_for(lambda: urgent.rounds > before + 3)
        assert common.rounds == common_rounds, "the threads of the others hang"
        before = urgent.rounds
        scheduler.soon("0")
        wait_for(lambda: urgent.rounds > before)
    finally:
        let_go.set()


def test_a_duty_that_may_not_act_pauses_and_the_others_continue(begin: Callable[..., Scheduler]) -> None:
    timed = CountedDuty()
    untimed = CountedDuty()
    is_sure = threading.Event()
    begin(timed, untimed, policies={"0": DutyPolicy(is_timed=True)}, is_time_sure=is_sure.is_set)
    wait_for(lambda: untimed.rounds > 3)
    assert timed.rounds == 0
    is_sure.set()
    wait_for(lambda: timed.rounds > 0)


class Rest(AlwaysActive):
    """An outlook that the test sets."""

    def __init__(self) -> None:
        self.resting = True

    def is_resting(self, now: float) -> bool:
        return self.resting

    def forecast_at(self, now: float) -> float:
        return now


def test_a_duty_rests_until_the_scheduler_is_woken(begin: Callable[..., Scheduler]) -> None:
    rest = Rest()
    policies = {"0": DutyPolicy(cadence=Cadence.ACTIVE)}
    duty = CountedDuty()
    steady = CountedDuty()
    scheduler = begin(duty, steady, policies=policies, outlook=rest)
    wait_for(lambda: steady.rounds > 3)
    assert duty.rounds == 0
    rest.resting = False
    scheduler.wake()
    wait_for(lambda: duty.rounds > 3)


def test_a_resting_duty_lives_and_one_that_hangs_does_not(begin: Callable[..., Scheduler]) -> None:
    rest = Rest()
    rest.resting = False
    now = [0.0]
    alive = Liveness(monotonic=lambda: now[0])
    let_go = threading.Event()
    hanging = CountedDuty(job=lambda: let_go.wait(300))
    sound = CountedDuty()
    policies = dict.fromkeys("01", DutyPolicy(cadence=Cadence.ACTIVE))
    try:
        scheduler = begin(hanging, sound, policies=policies, outlook=rest, liveness=alive)
        wait_for(lambda: hanging.rounds == 1 and sound.rounds > 0)
        rest.resting = True
        now[0] = 100.0
        scheduler.wake()
        wait_for(lambda: alive.late(10.0) == ["the duty 0"])
    finally:
        let_go.set()


def test_only_commits_outside_of_routine_duties_are_activity(
    begin: Callable[..., Scheduler], tmp_path: pathlib.Path
) -> None:
    commits = Commits()
    notified: list[str] = []
    commits.listen(lambda: notified.append(threading.current_thread().name), every=0.0)
    database = Database(f"sqlite:///{tmp_path / 'db.sqlite'}", committed=commits)
    report = CountedDuty(job=lambda: database.write(lambda conn: None))
    begin(report, policies={"0": DutyPolicy(is_routine=True)})
    wait_for(lambda: report.rounds > 2)
    assert notified == []
    database.read(lambda conn: None)
    assert notified == []
    database.write(lambda conn: None)
    assert notified == [threading.current_thread().name]


def test_a_listener_is_notified_of_the_first_of_many_commits() -> None:
    now = [0.0]
    commits = Commits(lambda: now[0])
    often: list[float] = []
    rarely: list[float] = []
    commits.listen(lambda: often.append(now[0]), every=1.0)
    commits.listen(lambda: rarely.append(now[0]), every=3.0)
    for moment in (0.0, 0.9, 1.0, 2.5, 3.5):
        now[0] = moment
        commits()
    assert (often, rarely) == ([0.0, 1.0, 2.5, 3.5], [0.0, 3.5])


def test_a_stop_waits_for_the_round_that_runs_and_no_other_begins(begin: Callable[..., Scheduler]) -> None:
    go_on = threading.Event()
    ended = threading.Event()

    def job() -> None:
        go_on.wait(300)
        ended.set()

    duty = CountedDuty(job=job)
    scheduler = begin(duty)
    wait_for(lambda: duty.rounds == 1)
    threading.Timer(0.2, go_on.set).start()
    scheduler.stop()
    assert ended.is_set()
    scheduler.soon("0")
    time.sleep(0.1)
    assert duty.rounds == 1


def test_an_idle_scheduler_stops_at_once(begin: Callable[..., Scheduler]) -> None:
    def seconds() -> float:
        scheduler = begin(CountedDuty(interval=3600))
        began = time.monotonic()
        scheduler.stop()
        return time.monotonic() - began

    # A host that pauses for a moment delays some of them.
    fastest = min(seconds() for _ in range(5))
    assert fastest < 0.5, "a pool of futurist would wait up to a second for each idle thread"


def test_the_threads_of_all_duties_are_there_from_the_start(
    begin: Callable[..., Scheduler], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Callable[[], None]] = []

    def start(function: Callable[[], None]) -> None:
        started.append(function)
        start_thread(function)

    monkeypatch.setattr("stoker.conductor.scheduler._start_thread", start)
    policies = {"1": DutyPolicy(has_own_thread=True)}
    for _ in range(50):  # Some of them are idle before the others are started.
        started.clear()
        begin(CountedDuty(interval=3600), CountedDuty(interval=3600), policies=policies).stop()
        assert len(started) == DUTY_THREADS + 1


class Alone:
    """The ring and the membership of one conductor.

    :ivar state: the state that it last reported to the others.
    """

    state = "active"
    me = LocalMember("a")

    def set_state(self, state: str) -> None:
        self.state = state

    def member(self) -> MemberId | None:
        return MemberId("a/1")

    def shards_owned(self) -> int:
        return 1

    def version(self) -> str:
        return "v"


def test_a_conductor_leaves_the_ring_also_while_the_database_is_unavailable() -> None:
    alone = Alone()
    report = ConductorReport(
        database=Database("postgresql+psycopg://u@127.0.0.1:1/none", tries=1),
        ring=typing.cast(Ring, alone),
        membership=typing.cast(Membership, alone),
        host="a",
        threads=lambda: (0, 0),
        size=1,
    )
    report.drain()
    assert alone.state == "draining"
    report.stopped()
