"""Runs the duties when their timetable says so.

futurist's periodics have fixed intervals: they would wake an idle process a dozen times in a second.
"""

import contextlib
import logging
import threading
import time
import typing
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from ..db.engine import routine
from ..db.errors import Unavailable
from ..observe import metrics
from ..observe.recorder import SILENT, Recorder
from ..observe.seldom import Seldom
from .liveness import Liveness
from .timetable import AlwaysActive, Cadence, Outlook, Timetable
from .worker.pool import NoThread, ThreadPool

LOG = logging.getLogger(__name__)
DUTY_THREADS = 2
LONGEST_SLEEP = 5.0
"""Seconds after which the timetable is read again, whatever it says: resting duties show that they live."""
SHORT_OF_MEMORY = 1.0
"""Seconds until the timetable is read again after memory was short."""
ROUND_ENDS_WITHIN = 10.0
"""Seconds that a stop waits for the rounds in progress; one is a few short transactions."""


class Duty(typing.Protocol):
    """Periodic work on the slice.

    :ivar interval: seconds between two rounds.
    """

    interval: float

    def run(self) -> None:
        """Run one round; called by one thread at a time."""


@dataclass(frozen=True)
class DutyPolicy:
    """The way the scheduler runs a duty.

    :ivar has_own_thread: no other duty delays it.
    :ivar is_vital: no other conductor does this work while we hang in it, so a duty that makes no progress
        makes the conductor leave the ring.  The other duties may wait for other services.
    :ivar is_timed: it ends something because of the time, so it pauses while the time is in doubt.
    :ivar is_routine: its commits make nothing due, so they are no activity.
    :ivar cadence: when it runs.
    """

    has_own_thread: bool = False
    is_vital: bool = False
    is_timed: bool = False
    is_routine: bool = False
    cadence: Cadence = Cadence.STEADY


@dataclass(frozen=True)
class DutyRound:
    """The last round of a duty.

    :ivar at: start of the round, in seconds since the epoch.
    :ivar seconds: duration.
    :ivar failed: whether an error ended it.
    """

    at: float
    seconds: float
    failed: bool


class Scheduler:
    """Runs duties while this conductor is in the ring.

    :param duties: all duties, by name.
    :param policies: policies of some of them, by name.
    :param may_run: returns whether we are in the ring; called before each round.
    :param is_time_sure: returns whether timed duties may run; called before each round of one.
    :param liveness: records the end of each round.
    :param outlook: says whether the duties rest that run only while the conductor is active.
    :param clock: seconds since the epoch.
    :param monotonic: seconds that never jump.
    """

    def __init__(
        self,
        duties: Mapping[str, Duty],
        *,
        policies: Mapping[str, DutyPolicy] | None = None,
        may_run: Callable[[], bool],
        is_time_sure: Callable[[], bool] = lambda: True,
        liveness: Liveness | None = None,
        recorder: Recorder = SILENT,
        outlook: Outlook | None = None,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        policies_by_duty = policies or {}
        self._may_run = may_run
        self._is_time_sure = is_time_sure
        self._liveness = liveness or Liveness()
        self._duties = duties
        self._policies = {name: policies_by_duty.get(name, DutyPolicy()) for name in duties}
        self._stopped = False
        self._recorder = recorder
        self._clock = clock
        self._monotonic = monotonic
        self._seldom = Seldom(monotonic)
        self._timetable = Timetable(
            {name: duty.interval for name, duty in duties.items()},
            {name: policy.cadence for name, policy in self._policies.items()},
            outlook or AlwaysActive(),
        )
        self._woken = threading.Event()
        self._timer = threading.Thread(target=self._watch, name="duties", daemon=True)
        self._rounds: dict[str, DutyRound] = {}
        self._locks = {name: threading.Lock() for name in duties}
        self._queued: set[str] = set()
        common = _Lane(DUTY_THREADS)
        self._lanes = {
            name: _Lane(1) if policy.has_own_thread else common for name, policy in self._policies.items()
        }
        for name in duties:
            recorder.add(metrics.DUTY_ERRORS, name, amount=0)

    def start(self) -> None:
        """Start all duties; returns at once."""
        for name, duty in self._duties.items():
            # A busy conductor makes no forecast for hours.
            if self._policies[name].cadence is not Cadence.FORECAST:
                self._liveness.expect(_loop(name), duty.interval)
        for lane in self._all_lanes():
            lane.start()
        self._timetable.start(self._monotonic())
        self._timer.start()

    def stop(self) -> None:
        """Start no other round, and wait for the running ones to end."""
        self._stopped = True
        self.wake()
        for name in self._duties:
            self._liveness.forget(_loop(name))
        end = time.monotonic() + ROUND_ENDS_WITHIN
        for lock in self._locks.values():
            if lock.acquire(timeout=max(0.0, end - time.monotonic())):
                lock.release()
        for lane in self._all_lanes():
            lane.pool.shutdown()

    def wake(self) -> None:
        """Read the timetable now: the outlook has changed.  Quick, and from any thread."""
        self._woken.set()

    def _watch(self) -> None:
        """Begin rounds when they are due; the thread that does it sleeps until then."""
        while not self._stopped:
            self._woken.clear()
            try:
                pause = self._begin_due()
            except MemoryError:  # Nothing is lost: what is due is due still.
                pause = SHORT_OF_MEMORY
            self._woken.wait(min(max(0.0, pause), LONGEST_SLEEP))

    def _begin_due(self) -> float:
        """Begin the rounds that are due; return the seconds until the next one is."""
        now = self._monotonic()
        for name in self._timetable.take_due(now):
            self.soon(name)
        for name in self._timetable.resting(now):
            if not self._locks[name].locked():
                self._liveness.beat(_loop(name))
        return self._timetable.next_at(now) - self._monotonic()

    def rounds(self) -> Mapping[str, DutyRound | None]:
        """Return the last round of each duty, by name; None: it has had none yet."""
        return {name: self._rounds.get(name) for name in self._duties}

    def soon(self, name: str) -> None:
        """Run a duty now, on top of its interval."""
        if name in self._queued:
            return
        self._queued.add(name)
        try:
            self._lanes[name].pool.submit(self._round, name)
        except RuntimeError:
            self._queued.discard(name)
            LOG.debug("Duty %s has stopped", name)
        except NoThread:  # The pool logs it; the duty is due again after its interval.
            self._queued.discard(name)

    def _all_lanes(self) -> Collection["_Lane"]:
        return {id(lane): lane for lane in self._lanes.values()}.values()

    def _round(self, name: str) -> None:
        self._queued.discard(name)
        # A round that is asked for gives way to one that runs, whoever began it.
        if not self._locks[name].acquire(blocking=False):
            return
        policy = self._policies[name]
        try:
            if self._may_run() and (self._is_time_sure() or not policy.is_timed) and not self._stopped:
                loop = _loop(name)
                with (
                    self._liveness.at_work(loop) if policy.is_vital else contextlib.nullcontext(),
                    routine() if policy.is_routine else contextlib.nullcontext(),
                ):
                    self._run(name)
        except Unavailable as error:
            if self._seldom.passes(name, "unavailable"):
                LOG.warning("Duty %s waits, the database is unavailable: %s", name, error)
        except Exception as error:  # top of a duty: the next round tries again, the other duties continue
            if self._seldom.passes(name, type(error).__name__):
                LOG.exception("Duty %s failed", name)
        finally:
            self._liveness.beat(_loop(name))
            self._locks[name].release()

    def _run(self, name: str) -> None:
        started = self._clock()
        failed = True
        clocked = time.monotonic()
        try:
            self._duties[name].run()
            failed = False
        finally:
            seconds = time.monotonic() - clocked
            self._rounds[name] = DutyRound(started, seconds, failed)
            self._recorder.observe(metrics.DUTY, name, value=seconds)
            if failed:
                self._recorder.add(metrics.DUTY_ERRORS, name)


def _loop(name: str) -> str:
    """Return the name of a duty's loop in health texts."""
    return f"the duty {name}"


class _Lane:
    """Threads that run some of the duties.

    futurist's threads would wake each second, for nothing.
    """

    def __init__(self, threads: int) -> None:
        self.pool = ThreadPool(threads, start=_start_thread)

    def start(self) -> None:
        """Start all threads, so that none is missing when memory is short; returns at once.

        :raises NoThread: the process can have no more threads.
        """
        self.pool.fill()


def _start_thread(function: Callable[[], None]) -> None:
    threading.Thread(target=function, name="duty", daemon=True).start()
