"""A conductor's health: one reason in words for each fault."""

import time
import typing
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest
from harness.waiting import wait_for
from stoker.conductor.duties.report import ConductorReport
from stoker.conductor.liveness import Liveness
from stoker.conductor.monitor import Monitor, ranges
from stoker.conductor.scheduler import Scheduler
from stoker.conductor.slice import Ring
from stoker.conductor.worker.pool import ThreadPool
from stoker.db.engine import Database, ServerClock
from stoker.db.errors import Unavailable
from stoker.db.ids import MemberId
from stoker.observe import metrics
from stoker.ring.local_member import LocalMember
from stoker.ring.membership import Membership

NOTHING = typing.cast(typing.Any, None)


class Alone:
    """A ring with nobody else in it.

    :ivar name: ours; None: we are not in it.
    """

    name: MemberId | None = MemberId("one/1")

    def member(self) -> MemberId | None:
        return self.name

    def owns(self, shard: int) -> bool:
        return self.name is not None

    def shards_owned(self) -> int:
        return 1

    def version(self) -> str:
        return "cafe"

    def present(self) -> frozenset[MemberId]:
        return frozenset(filter(None, [self.name]))


@dataclass(frozen=True)
class Parts:
    ring: Alone
    pool: ThreadPool
    liveness: Liveness
    report: ConductorReport
    now: list[float]
    monitor: Monitor


@pytest.fixture
def parts() -> Parts:
    ring = Alone()
    pool = ThreadPool(2)
    now = [0.0]
    liveness = Liveness(lambda: now[0])
    report = ConductorReport(
        database=Database("postgresql+psycopg://u@127.0.0.1:1/none", tries=1, sleep=lambda seconds: None),
        ring=typing.cast(Ring, ring),
        membership=Membership(NOTHING, LocalMember("one"), shard_count=1),
        host="one",
        threads=lambda: (0, 0),
        size=2,
    )
    monitor = Monitor(
        threads=2,
        most_hung_threads=1,
        ownership=typing.cast(typing.Any, ring),
        membership=NOTHING,
        pool=pool,
        loop=NOTHING,
        scheduler=NOTHING,
        liveness=liveness,
        report=report,
        clock=ServerClock(wall=lambda: now[0], monotonic=lambda: now[0]),
    )
    return Parts(ring, pool, liveness, report, now, monitor)


def leave_the_ring(parts: Parts) -> None:
    parts.ring.name = None


def lose_the_database(parts: Parts) -> None:
    with pytest.raises(Unavailable):
        parts.report.run()


def hang(parts: Parts) -> None:
    job = parts.pool.submit(time.sleep, 600)
    wait_for(lambda: job.state.name == "RUNNING")
    parts.pool.detach(job)


def stop_a_loop(parts: Parts) -> None:
    parts.liveness.expect("the work loop", 1.0)
    parts.now[0] = 12.0


CASES: list[tuple[Callable[[Parts], None], str]] = [
    (lambda parts: parts.report.drain(), "draining: "),
    (leave_the_ring, "not in the ring: "),
    (lose_the_database, "database unavailable: "),
    (hang, "too many hung threads: 1 threads hang in calls that were cancelled"),
    (stop_a_loop, "stuck: the work loop makes no progress"),
]


@pytest.mark.parametrize(("bring_about", "text"), CASES)
def test_each_problem_is_reported(parts: Parts, bring_about: Callable[[Parts], None], text: str) -> None:
    assert parts.monitor.health_problems() == []
    bring_about(parts)
    [reason] = parts.monitor.health_problems()
    assert reason.startswith(text)


def test_an_account_that_keystone_refuses_is_a_problem(parts: Parts) -> None:
    monitor = replace(parts.monitor, refused_account=lambda: "[trustee]: Keystone refuses it")
    assert monitor.health_problems() == ["[trustee]: Keystone refuses it"]


def test_a_thread_that_shall_not_be_replaced_is_not_counted_as_hung(parts: Parts) -> None:
    hang(parts)
    assert replace(parts.monitor, most_hung_threads=0).health_problems() == []


@pytest.mark.parametrize(
    ("numbers", "text"), [([], ""), ([4], "4"), ([0, 1, 2, 3], "0-3"), ([0, 2, 3, 7, 8, 9], "0 2-3 7-9")]
)
def test_shards_are_written_as_ranges(numbers: list[int], text: str) -> None:
    assert ranges(numbers) == text


@pytest.mark.parametrize(
    ("reason", "values", "text"),
    [
        (None, [], "no expression was evaluated yet"),
        ("", [1], "system calls of helpers: filtered (seccomp)"),
        ("no seccomp", [0], "system calls of helpers: not filtered: no seccomp"),
    ],
)
def test_the_filter_of_helpers_is_a_gauge_and_in_the_report(
    parts: Parts, reason: str | None, values: list[int], text: str
) -> None:
    loop = typing.cast(typing.Any, SimpleNamespace(view=lambda: SimpleNamespace(held=[], waiting=0), busy=0))
    monitor = replace(parts.monitor, loop=loop, unfiltered=lambda: reason)
    gauges = [sample.value for sample in monitor.samples() if sample.metric is metrics.HELPERS_FILTERED]
    assert (gauges, monitor.sections()["Expressions"]()) == (values, text)


@pytest.mark.parametrize("is_resting", [False, True])
def test_the_report_says_whether_the_duties_rest(parts: Parts, is_resting: bool) -> None:
    scheduler = Scheduler({}, may_run=lambda: True)
    monitor = replace(parts.monitor, scheduler=scheduler, is_resting=lambda: is_resting)
    assert monitor.sections()["Duties"]().startswith("at rest") == is_resting
