"""Shows a conductor's health, gauges, and tasks in progress."""

import itertools
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..db.conductors import ACTIVE
from ..db.engine import ServerClock
from ..db.work.claim import action_of
from ..observe import metrics
from ..observe.instants import iso
from ..observe.metrics import Sample
from ..ring.membership import Membership
from .duties.report import ConductorReport
from .liveness import Liveness
from .ownership import Ownership
from .scheduler import Scheduler
from .worker.claimed import ClaimedTask, ClaimState
from .worker.loop import WorkLoop
from .worker.pool import ThreadPool

STUCK_AFTER = 10.0
"""Seconds of delay of a loop after which the conductor counts as stuck."""


@typing.runtime_checkable
class GaugeSource(typing.Protocol):
    """A duty that has gauges to show."""

    def samples(self) -> Iterable[Sample]:
        """Return the gauges as they are now."""


@dataclass(frozen=True)
class Monitor:
    """Shows a conductor from inside.

    It only reads, from any thread, and asks nobody outside of the process.

    :ivar threads: steps that can run at the same time.
    :ivar most_hung_threads: hung threads at which the conductor is replaced; 0: there is no limit.
    :ivar loop: the work loop.
    :ivar gauges: duties that have gauges.
    :ivar is_resting: returns whether duties rest, because nothing is due.
    :ivar unfiltered: returns why the system does not filter the calls of the helpers that evaluate
        expressions; "": it does; None: not known yet.
    :ivar refused_account: returns which account at Keystone is refused, without a wait; None: none is.
    """

    threads: int
    most_hung_threads: int
    ownership: Ownership
    membership: Membership
    pool: ThreadPool
    loop: WorkLoop
    scheduler: Scheduler
    liveness: Liveness
    report: ConductorReport
    clock: ServerClock
    gauges: Sequence[GaugeSource] = ()
    is_resting: Callable[[], bool] = lambda: False
    unfiltered: Callable[[], str | None] = lambda: None
    refused_account: Callable[[], str | None] = lambda: None

    def health_problems(self) -> list[str]:
        """Return a text for each reason why the conductor does not serve; nothing: it serves."""
        problems = []
        if self.report.state != ACTIVE:
            problems.append("draining: other conductors take over its shards, it finishes its running tasks")
        elif self.ownership.member() is None:
            problems.append("not in the ring: it may not work until the coordination backend lets it join")
        if self.report.is_database_unavailable:
            problems.append("database unavailable: results are kept until it answers")
        if (doubt := self.clock.trouble()) is not None:
            problems.append(doubt)
        if 0 < self.most_hung_threads <= self.pool.hung:
            problems.append(
                f"too many hung threads: {self.pool.hung} threads hang in calls that were cancelled"
            )
        if self.pool.short_of_threads:
            problems.append("no threads available: memory, or the number of processes, is exhausted")
        if (refused := self.refused_account()) is not None:
            problems.append(refused)
        return problems + [f"stuck: {loop} makes no progress" for loop in self.liveness.late(STUCK_AFTER)]

    def samples(self) -> Iterator[Sample]:
        """Return all gauges."""
        view = self.loop.view()
        yield Sample(metrics.HEALTHY, 0 if self.health_problems() else 1)
        yield Sample(metrics.CLOCK_AHEAD, self.clock.host_ahead)
        yield Sample(metrics.MEMBER, 0 if self.ownership.member() is None else 1)
        yield Sample(metrics.SHARDS_OWNED, self.ownership.shards_owned())
        yield Sample(metrics.RING_MEMBERS, len(self.ownership.present()))
        yield Sample(metrics.RING_INFO, 1, (self.ownership.version(),))
        yield Sample(metrics.TASKS_IN_HAND, len(view.held))
        yield Sample(metrics.HINTS_WAITING, view.waiting)
        yield Sample(metrics.THREADS_BUSY, self.loop.busy)
        yield Sample(metrics.THREADS_MAX, self.threads)
        yield Sample(metrics.THREADS_WRITTEN_OFF, self.pool.hung)
        if (reason := self.unfiltered()) is not None:
            yield Sample(metrics.HELPERS_FILTERED, 0 if reason else 1)
        for source in self.gauges:
            yield from source.samples()

    def sections(self) -> Mapping[str, Callable[[], str]]:
        """Return the sections of a report for people, by title."""
        return {
            "Health": lambda: "\n".join(self.health_problems() or ["serving"]),
            "Ring": self._ring,
            "Tasks in progress": lambda: _table(_tasks(self.loop.view().held, self.clock())),
            "Running steps": lambda: _table(_steps(self.loop.view().running, self.clock)),
            "Duties": self._duties_text,
            "Expressions": self._expressions,
        }

    def _ring(self) -> str:
        view = self.membership.view()
        shards = sorted(self.ownership.shards())
        lines = [f"this host's clock is {self.clock.host_ahead:+.3f} s ahead of the database's"]
        lines += [f"this conductor is {self.ownership.member() or 'not in the ring'}, {self.report.state}"]
        lines += [f"version {view.version}, {len(view.members)} members:"]
        lines += [
            f"  {member.name} {member.state}, weight {member.weight:g}"
            for member in sorted(view.members, key=lambda member: member.host)
        ]
        return "\n".join([*lines, f"{len(shards)} shards owned: {ranges(shards) or 'none'}"])

    def _expressions(self) -> str:
        reason = self.unfiltered()
        if reason is None:
            return "no expression was evaluated yet"
        return f"system calls of helpers: {f'not filtered: {reason}' if reason else 'filtered (seccomp)'}"

    def _duties_text(self) -> str:
        note = "at rest, for nothing is due in the next seconds\n" if self.is_resting() else ""
        return note + _table(self._duties())

    def _duties(self) -> Iterator[Sequence[str]]:
        yield "duty", "last round", "took", "ended"
        for name, last in self.scheduler.rounds().items():
            if last is None:
                yield name, "never", "", ""
            else:
                yield (
                    name,
                    iso(last.at),
                    f"{last.seconds:.3f} s",
                    "by an error" if last.failed else "well",
                )


_WAITS = {
    ClaimState.CLAIMED: "waits for a thread",
    ClaimState.RUNNING: "waits for a thread",
    ClaimState.STOPPING: "waits for a thread",
    ClaimState.WAITING: "waits for a poll",
    ClaimState.STORING: "waits to be stored",
    ClaimState.DETACHED: "waits to be stored",
    ClaimState.REQUEUING: "waits to be requeued",
}
"""Cause of a claimed task's wait, by its state, while no step of it runs."""


def _tasks(claimed_tasks: Iterable[ClaimedTask], now: float) -> Iterator[Sequence[str]]:
    yield "task", "attempt", "stack", "resource", "action", "since", "seconds", "now"
    for claimed in sorted(claimed_tasks, key=lambda claimed: claimed.since):
        task = claimed.claim.task
        does = "runs a step" if claimed.started_at is not None else _WAITS.get(claimed.state, "")
        yield (
            str(task.id),
            str(task.attempt),
            task.stack_id,
            claimed.claim.resource.name,
            action_of(task.kind),
            iso(claimed.since),
            f"{now - claimed.since:.1f}",
            f"{does}, to stop" if claimed.stop.is_set() else does,
        )


def _steps(claimed_tasks: Iterable[ClaimedTask], clock: ServerClock) -> Iterator[Sequence[str]]:
    yield "thread", "task", "stack", "resource", "type", "since", "seconds", "remark"
    for claimed in claimed_tasks:
        began = claimed.started_at
        thread = claimed.thread
        if began is not None:
            task = claimed.claim.task
            resource = claimed.claim.resource
            seconds = clock.monotonic() - began
            yield (
                str(thread),
                str(task.id),
                task.stack_id,
                resource.name,
                resource.type,
                iso(clock() - seconds),
                f"{seconds:.1f}",
                "detached" if claimed.is_detached else "",
            )


def _table(rows: Iterable[Sequence[str]]) -> str:
    """Align the columns."""
    lines = list(rows)
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    padded = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in lines)
    return "\n".join(padded)


def ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers for people: ``0-3 7 9-12``."""
    runs = itertools.groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])
    parts = [[number for _, number in run] for _, run in runs]
    return " ".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)
