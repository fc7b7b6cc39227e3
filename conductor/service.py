"""A conductor: its parts, and the order in which they start and stop."""

import dataclasses
import logging
import threading
import time
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..db.engine import Database
from ..db.ids import StackId, TaskId, TraversalId
from ..db.server_clock import ServerClock
from ..engine.announce import Hints, announce
from ..engine.updates import Updates
from ..observe import metrics
from ..observe.recorder import SILENT, Recorder
from ..ring.membership import Membership
from ..rpc.bus import MessageServer
from .background import BackgroundPool
from .duties.credentials import Credentials
from .duties.report import ConductorReport, WornOut
from .duties.rollbacks import Rollbacks
from .duties.stack_timeouts import StackPurge, StackTimeouts
from .duties.task_counts import Census
from .duties.task_due import Orphans, TaskDue
from .liveness import Liveness, Progress
from .monitor import Monitor
from .ownership import Ownership
from .scheduler import ROUND_ENDS_WITHIN, Duty, Scheduler
from .slice import Absentees
from .steps.runner import StepRunner
from .worker.executor import ThreadPool
from .worker.loop import Pipeline, PipelineLimits, WorkLoop

Json = typing.Any
LOG = logging.getLogger(__name__)
Shared = dict[str, typing.Any]
LONGEST_FAREWELL = 0.5
"""Seconds that our farewell to the group is given at a stop.  It stands there until the backend forgets it,
so that the others read it also when we are gone."""
VITAL = (TaskDue, StackTimeouts, Orphans, ConductorReport)
"""Duties whose progress decides whether we stay in the ring; the others may wait for other services."""
BUS_ENDS_WITHIN = 5.0
"""Seconds that the message bus is given at a stop; oslo.messaging looks about once a second."""

MOST_WAITING = 100
"""Rollbacks, or revocations, that wait for a thread; the next ones are found again by their duty."""
TIMED = (TaskDue, StackTimeouts, StackPurge, Credentials)
"""Duties that end something because its time is over; they pause while the time is in doubt."""


@dataclass(frozen=True)
class ConductorSettings:
    """:ivar host: name on the ring and in events; stable over restarts, unique.
    :ivar limits: of the work pipeline.
    :ivar drain: seconds that steps in progress are given at a stop.
    :ivar most_written_off: threads hanging in calls at which the conductor had better be replaced; 0: never.
    :ivar patience: seconds after which a claim of a member nobody sees is taken over.
    :ivar keep_deleted: seconds that deleted stacks stay visible.
    :ivar keep_events: events of each stack at the most; 0: all.
    """

    host: str
    limits: PipelineLimits = PipelineLimits()
    drain: float = 30.0
    most_written_off: int = 8
    patience: float = 15.0
    keep_deleted: float = 30 * 86400.0
    keep_events: int = 1000


class Conductor:
    """One conductor.  `start` and `stop` are called by the main thread.

    :ivar monitor: for those who look at it.
    :param give_back: see traversal.delegation.Delegations.revoke.
    :param ring_changed: called, in the membership's thread, when a conductor has come or gone.
    :param recorder: is told what is worth counting; tasks are counted by state only if there is one.

    Started in the order of their needs: membership (nothing may be claimed without a name), the mover, the
    duties, and last the message bus, which brings work.

    Stopped in this order: we leave the ring, as a draining member, so that the others take the slice while we
    still work; nothing more is claimed, and what stands between two looks is handed over; the steps that run
    end; the duties end; we leave the group, not earlier, for results are accepted from a member only.  The
    message bus, which is slow to end, does so meanwhile; hints that it brings go to the others at the end.
    """

    def __init__(
        self,
        settings: ConductorSettings,
        *,
        database: Database,
        runner: StepRunner,
        hints: Hints,
        membership: Membership,
        updates: Updates,
        give_back: Callable[[StackId, Json], None],
        worn_out: Callable[[], None] = lambda: None,
        ring_changed: Callable[[], None] = lambda: None,
        recorder: Recorder = SILENT,
    ) -> None:
        clock = database.clock
        self.settings = settings
        self._recorder = recorder
        self.liveness = Liveness()
        self._progress = Progress(self.liveness, membership.timing.progress)
        self._membership = membership
        self._ownership = Ownership(membership, settings.host)
        self._pool = ThreadPool(settings.limits.threads)
        self._mover = WorkLoop(
            lambda wake: Pipeline(
                database=database,
                runner=runner,
                executor=self._pool,
                hints=hints,
                clock=clock,
                wake=wake,
                member=self._ownership.member,
                limits=settings.limits,
                recorder=recorder,
            ),
            ring=self._ownership,
            host=settings.host,
            liveness=self.liveness,
            progress=self._progress,
        )
        self._give_back = give_back
        self._rollbacks = BackgroundPool("The rollback", threads=2, waiting=MOST_WAITING)
        self._revocations = BackgroundPool("The revocation", threads=2, waiting=MOST_WAITING)
        self._tell_of_change = ring_changed
        shared: Shared = {"database": database, "ring": self._ownership, "clock": clock}
        self._orphans = self._make_orphans(shared, hints)
        threads: dict[str, typing.Any] = {"threads": self._threads, "size": settings.limits.threads}
        self._report = ConductorReport(**shared, **threads, membership=membership, host=settings.host)
        self._purge = StackPurge(**shared, keep=settings.keep_deleted, keep_events=settings.keep_events)
        self._census = Census(database=database, ring=self._ownership)
        duties = [*self._stack_duties(shared, hints, updates), *self._own_duties(worn_out)]
        self._scheduler = self._make_scheduler(duties, clock)
        self.monitor = self._make_monitor(clock)
        self._ownership.on_change(self._ring_changed)
        self._server: MessageServer | None = None
        self._hints = hints
        self._stopping = False
        self._passed_on: list[tuple[TraversalId, Sequence[TaskId]]] = []

    def _make_orphans(self, shared: Shared, hints: Hints) -> Orphans:
        return Orphans(
            **shared,
            hints=hints,
            absentees=Absentees(patience=self.settings.patience, clock=shared["clock"].monotonic),
            task_losses=self.settings.limits.task_losses,
            recorder=self._recorder,
        )

    def _own_duties(self, worn_out: Callable[[], None]) -> Sequence[Duty]:
        most = self.settings.most_written_off
        wearing = WornOut(lost=lambda: self._pool.lost, most=most, act=worn_out)
        counting = [] if self._recorder is SILENT else [self._census]
        return (self._orphans, self._report, wearing, *counting)

    def _stack_duties(self, shared: Shared, hints: Hints, updates: Updates) -> Sequence[Duty]:
        settings = self.settings
        told: dict[str, typing.Any] = {"hints": hints, "recorder": self._recorder}
        grace, is_deputy = settings.limits.cancel_grace, self._ownership.is_deputy
        return (
            TaskDue(**shared, **told, grace=grace),
            StackTimeouts(**shared, **told, host=settings.host, grace=grace, is_deputy=is_deputy),
            Rollbacks(**shared, updates=updates, background=self._rollbacks),
            Credentials(**shared, give_back=self._give_back, background=self._revocations),
            self._purge,
        )

    def _make_scheduler(self, duties: Sequence[Duty], clock: ServerClock) -> Scheduler:
        return Scheduler(
            duties,
            apart=[duty for duty in duties if isinstance(duty, StackTimeouts)],
            vital=[duty for duty in duties if isinstance(duty, VITAL)],
            may_run=lambda: self._ownership.member() is not None,
            may_act=lambda duty: clock.is_sure or not isinstance(duty, TIMED),
            liveness=self.liveness,
            recorder=self._recorder,
            clock=clock,
        )

    def _make_monitor(self, clock: ServerClock) -> Monitor:
        return Monitor(
            threads=self.settings.limits.threads,
            most_written_off=self.settings.most_written_off,
            ownership=self._ownership,
            membership=self._membership,
            pool=self._pool,
            pipeline=lambda: self.pipeline,
            scheduler=self._scheduler,
            liveness=self.liveness,
            report=self._report,
            census=self._census,
            clock=clock,
        )

    def _threads(self) -> tuple[int, int]:
        return self.pipeline.busy, self._pool.lost

    @property
    def pipeline(self) -> Pipeline:
        """Where hints are to be offered."""
        return self._mover.pipeline

    def _ring_changed(self) -> None:
        """In the membership's thread: what a dead member has left is taken up now, not at the interval."""
        self._tell_of_change()
        self._scheduler.soon(self._orphans)
        self._scheduler.soon(self._report)

    @property
    def membership(self) -> Membership:
        """Our place in the group."""
        return self._membership

    def offer(self, traversal: TraversalId, task_ids: Sequence[TaskId]) -> None:
        """See rpc.server.HintReceiver."""
        self._recorder.add(metrics.HINTS_RECEIVED, "run_tasks")
        if self._progress.in_doubt and self._ownership.member() is None and self._ownership.present():
            announce(self._hints, traversal, task_ids)  # Who has taken over is there for them.
        elif self._stopping:
            self._passed_on.append((traversal, task_ids))
        else:
            self.pipeline.offer(traversal, task_ids)

    def cancel(self, traversal: TraversalId, spared: Sequence[TaskId], request: str | None = None) -> None:
        """See rpc.server.HintReceiver."""
        self._recorder.add(metrics.HINTS_RECEIVED, "cancel")
        self.pipeline.cancel(traversal, spared, request)

    def stop_tasks(self, claims: Sequence[tuple[TaskId, int]]) -> None:
        """See rpc.server.HintReceiver."""
        self._recorder.add(metrics.HINTS_RECEIVED, "stop_tasks")
        self.pipeline.stop(claims)

    def look_now(self) -> None:
        """See rpc.server.HintReceiver."""
        self._recorder.add(metrics.HINTS_RECEIVED, "look_now")
        self._membership.poll_now()
        self._scheduler.soon(self._report)

    def start(self, make_server: Callable[["Conductor"], MessageServer]) -> None:
        """Begin to work; returns at once, for the ring may take a moment to let us in."""
        self._membership.leave_while(self._progress.stuck)
        self._membership.start()
        self._mover.start()
        self._scheduler.start()
        self._server = make_server(self)
        self._server.start()

    def wait_ready(self, timeout: float) -> bool:
        """Wait until we are in the ring; False if we are not within `timeout` seconds."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if self._ownership.member() in self._ownership.present():
                return True
            time.sleep(0.02)
        return False

    def retune(self, *, weight: float, drain: float, keep_deleted: float, keep_events: int) -> None:
        """Go on with other values; see ConductorSettings, and ring.hashring.Member for the weight."""
        self.settings = dataclasses.replace(
            self.settings, drain=drain, keep_deleted=keep_deleted, keep_events=keep_events
        )
        self._purge.keep(deleted=keep_deleted, events=keep_events)
        self._membership.me = dataclasses.replace(self._membership.me, weight=weight)
        self._membership.poll_now()

    @property
    def stops_within(self) -> float:
        """Seconds that `stop` takes at the most, but for what the database takes."""
        return self.settings.drain + ROUND_ENDS_WITHIN + LONGEST_FAREWELL + BUS_ENDS_WITHIN

    def stop(self) -> bool:
        """Stop in order; whether all steps in progress came to an end."""
        self._report.drain()
        self._stopping = True
        bus = self._stop_bus()
        finished = self._mover.stop(self.settings.drain)
        self._scheduler.stop()
        self._rollbacks.stop()
        self._revocations.stop()
        self._report.stopped()
        self._membership.stop(LONGEST_FAREWELL)
        if bus is None:
            self._stop_server()
        else:
            bus.join(BUS_ENDS_WITHIN)
        for traversal, task_ids in self._passed_on:
            announce(self._hints, traversal, task_ids)
        self._pool.shutdown()
        return finished

    def _stop_bus(self) -> threading.Thread | None:
        """Stop the message bus meanwhile; None: no thread can be started for that."""
        bus = threading.Thread(target=self._stop_server, name="bus", daemon=True)
        try:
            bus.start()
        except RuntimeError as error:
            LOG.warning("The message bus is stopped last: %s", error)
            return None
        return bus

    def _stop_server(self) -> None:
        if self._server is not None:
            self._server.stop()

    def kill(self) -> None:
        """End where we stand, without a word to anybody: for demonstrations and tests."""
        self._scheduler.stop()
        self._membership.kill()
        self._mover.kill()
        if self._server is not None:
            self._server.stop()
