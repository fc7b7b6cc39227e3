"""A conductor: the order in which its parts start and stop, and the messages that it receives."""

import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..db.ids import TaskId, TraversalId
from ..engine.context import Hints, announce
from ..observe import metrics
from ..observe.recorder import Recorder
from ..ring.hashring import Member
from ..ring.membership import Membership
from ..rpc.bus import MessageServer
from .background import BackgroundPool
from .duties.context import CurrentSettings
from .duties.report import ConductorReport
from .liveness import Progress
from .lookout import Lookout
from .monitor import Monitor
from .ownership import Ownership
from .scheduler import ROUND_ENDS_WITHIN, Scheduler
from .worker.pool import ThreadPool
from .worker.thread import WorkThread

LOG = logging.getLogger(__name__)
LONGEST_FAREWELL = 0.5
"""Seconds that a stop gives to the goodbye to the group.  The backend keeps it until it forgets us, so the
others read it also when we are gone."""
BUS_ENDS_WITHIN = 5.0
"""Seconds that a stop gives to the message bus; oslo.messaging notices a stop about once a second."""


@dataclass(frozen=True)
class ConductorParts:
    """Parts of a conductor, made in cli/wiring.

    :ivar host: name on the ring and in events; stable over restarts, unique.
    :ivar drain: seconds that a stop gives to the steps in progress.
    :ivar settings: settings of the duties, which a reload changes.
    :ivar backgrounds: pools for the long work of the duties.
    :ivar ring_changed: called, in the membership's thread, when a conductor has joined or left.
    :ivar announce_change: asks all conductors to poll the ring's members now.
    """

    host: str
    drain: float
    settings: CurrentSettings
    hints: Hints
    membership: Membership
    ownership: Ownership
    progress: Progress
    pool: ThreadPool
    work_thread: WorkThread
    scheduler: Scheduler
    lookout: Lookout
    report: ConductorReport
    monitor: Monitor
    backgrounds: Sequence[BackgroundPool]
    recorder: Recorder
    ring_changed: Callable[[], None]
    announce_change: Callable[[], None]


class Conductor:
    """A conductor.  The main thread calls `start` and `stop`; the message bus's threads call the rest.

    Start, each part after those that it needs:

    1. membership: without a name in the ring nothing may be claimed;
    2. the work loop: it claims and runs tasks;
    3. the duties: they bring work, such as tasks that are due;
    4. the message bus: it brings work from others.

    Stop:

    1. drain the ring: the others take over the slice while we still work;
    2. stop the message bus, beside all that follows because it is slow; collect hints that still come in;
    3. stop the work loop: it claims nothing more, releases waiting tasks, and lets running steps end;
    4. stop the duties and their pools, which may act on results of the work loop;
    5. report the stop, for operators;
    6. leave the group, and not earlier: results are accepted from members only;
    7. send the collected hints to the other conductors, when the message bus brings no more of them;
    8. shut down the threads.

    :ivar monitor: shows health and metrics.
    """

    def __init__(self, parts: ConductorParts) -> None:
        self._parts = parts
        self._drain = parts.drain
        self.host = parts.host
        self.monitor = parts.monitor
        self._server: MessageServer | None = None
        self._stopping = False
        self._announced: Member | None = None
        self._collected: list[Mapping[TraversalId, Sequence[TaskId]]] = []
        parts.ownership.on_change(self._ring_changed)

    def _ring_changed(self) -> None:
        """Release the claims of a dead member now, not at the interval; in the membership's thread.

        Nothing is known of rows in shards that are new to us, so the duties do not rest.
        """
        self._parts.ring_changed()
        self._parts.lookout.stir()
        self._parts.work_thread.wake()
        self._announce_ourselves()
        self._parts.scheduler.soon("Orphans")
        self._parts.scheduler.soon("ConductorReport")

    def _announce_ourselves(self) -> None:
        """Let the others see now that we have joined, or drain; else they do at their next poll."""
        members = self._parts.membership.view().members
        name = self._parts.ownership.member()
        ourselves = next((member for member in members if member.name == name), None)
        if ourselves is not None and ourselves != self._announced:
            self._announced = ourselves
            self._parts.announce_change()

    @property
    def in_progress(self) -> int:
        """Return how many tasks this conductor holds."""
        return self._parts.work_thread.loop.in_progress

    def enqueue(self, ready: Mapping[TraversalId, Sequence[TaskId]]) -> None:
        """Take in tasks that are ready, or announce them again where this conductor cannot run them."""
        parts = self._parts
        parts.recorder.add(metrics.HINTS_RECEIVED, "run_tasks")
        if parts.progress.in_doubt and parts.ownership.member() is None and parts.ownership.present():
            # We were stuck and left the ring.  Who has taken over our shards can run the tasks, too.
            announce(parts.hints, ready)
        elif self._stopping:
            self._collected.append(ready)
        else:
            parts.work_thread.loop.enqueue(ready)

    def cancel(self, traversal: TraversalId, spared: Sequence[TaskId], request: str | None = None) -> None:
        """Stop the running tasks of a superseded traversal, but for the spared ones."""
        self._parts.recorder.add(metrics.HINTS_RECEIVED, "cancel")
        self._parts.work_thread.loop.cancel(traversal, spared, request)

    def stop_tasks(self, claims: Sequence[tuple[TaskId, int]]) -> None:
        """Stop these tasks (with attempt), or answer that they are not held here."""
        self._parts.recorder.add(metrics.HINTS_RECEIVED, "stop_tasks")
        self._parts.work_thread.loop.stop(claims)

    def poll_now(self) -> None:
        """Poll the ring's members now, and report."""
        self._parts.recorder.add(metrics.HINTS_RECEIVED, "look_now")
        self._parts.membership.poll_now()
        self._parts.scheduler.soon("ConductorReport")

    def notice_activity(self) -> None:
        """Let the duties run at their intervals for a while: some process has committed something."""
        self._parts.recorder.add(metrics.HINTS_RECEIVED, "activity")
        self._parts.lookout.stir()

    def start(self, make_server: Callable[["Conductor"], MessageServer]) -> None:
        """Start all parts; returns at once, although the ring may take a moment to let us in."""
        parts = self._parts
        parts.membership.leave_while(parts.progress.stuck)
        parts.membership.start()
        parts.work_thread.start()
        parts.scheduler.start()
        self._server = make_server(self)
        self._server.start()

    def wait_ready(self, timeout: float) -> bool:
        """Wait until we are in the ring; return False if we are not within `timeout` seconds."""
        ownership = self._parts.ownership
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if ownership.member() in ownership.present():
                return True
            time.sleep(0.02)
        return False

    def reconfigure(self, *, weight: float, drain: float, keep_deleted: float, keep_events: int) -> None:
        """Change settings at run time.

        :param weight: the share of this host, as in ring.hashring.Member.
        :param drain: seconds that a stop gives to the steps in progress.
        :param keep_deleted: seconds that deleted stacks stay visible.
        :param keep_events: most events of a stack; 0: no limit.
        """
        parts = self._parts
        self._drain = drain
        parts.settings.value = dataclasses.replace(
            parts.settings.value, keep_deleted=keep_deleted, keep_events=keep_events
        )
        parts.membership.me = dataclasses.replace(parts.membership.me, weight=weight)
        parts.membership.poll_now()

    @property
    def stops_within(self) -> float:
        """Return the most seconds that `stop` takes, beyond the time that the database takes."""
        return self._drain + ROUND_ENDS_WITHIN + LONGEST_FAREWELL + BUS_ENDS_WITHIN

    def stop(self) -> bool:
        """Stop all parts; return whether all steps in progress came to an end."""
        parts = self._parts
        parts.report.drain()
        self._stopping = True
        bus = self._stop_bus()
        finished = parts.work_thread.stop(self._drain)
        parts.scheduler.stop()
        for background in parts.backgrounds:
            background.stop()
        parts.report.stopped()
        parts.membership.stop(LONGEST_FAREWELL)
        if bus is None:
            self._stop_server()
        else:
            bus.join(BUS_ENDS_WITHIN)
        for ready in self._collected:
            announce(parts.hints, ready)
        parts.pool.shutdown()
        return finished

    def _stop_bus(self) -> threading.Thread | None:
        """Stop the message bus in a thread; return None if the process can have no more threads."""
        bus = threading.Thread(target=self._stop_server, name="bus", daemon=True)
        try:
            bus.start()
        except RuntimeError as error:
            LOG.warning("No thread is available, stopping the message bus last: %s", error)
            return None
        return bus

    def _stop_server(self) -> None:
        if self._server is not None:
            self._server.stop()

    def kill(self) -> None:
        """End as a killed process does, for demonstrations and tests."""
        self._parts.scheduler.stop()
        self._parts.membership.kill()
        self._parts.work_thread.kill()
        self._stop_server()
