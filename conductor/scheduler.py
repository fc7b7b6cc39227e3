"""Runs the duties at their intervals."""

import contextlib
import logging
import threading
import time
import typing
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import futurist
from futurist import periodics

from ..observe import metrics
from ..observe.recorder import SILENT, Recorder
from .liveness import Liveness

LOG = logging.getLogger(__name__)
DUTY_THREADS = 2
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
    """

    has_own_thread: bool = False
    is_vital: bool = False
    is_timed: bool = False


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
        clock: Callable[[], float] = time.time,
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
        self._rounds: dict[str, DutyRound] = {}
        self._locks = {name: threading.Lock() for name in duties}
        common = _Lane("duties", DUTY_THREADS)
        self._lanes = {
            name: _Lane(name, 1) if policy.has_own_thread else common
            for name, policy in self._policies.items()
        }
        for name, duty in duties.items():
            recorder.add(metrics.DUTY_ERRORS, name, amount=0)
            self._lanes[name].periodics.append(self._periodic(name, duty.interval))

    def start(self) -> None:
        """Start all duties; returns at once."""
        for name, duty in self._duties.items():
            self._liveness.expect(_loop(name), duty.interval)
        for lane in self._all_lanes():
            lane.start()

    def stop(self) -> None:
        """Start no other round, and wait for the running ones to end."""
        self._stopped = True
        for name in self._duties:
            self._liveness.forget(_loop(name))
        for lane in self._all_lanes():
            lane.stop()
        end = time.monotonic() + ROUND_ENDS_WITHIN
        for lock in self._locks.values():
            if lock.acquire(timeout=max(0.0, end - time.monotonic())):
                lock.release()
        for lane in self._all_lanes():
            lane.pool.shutdown(wait=False)

    def rounds(self) -> Mapping[str, DutyRound | None]:
        """Return the last round of each duty, by name; None: it has had none yet."""
        return {name: self._rounds.get(name) for name in self._duties}

    def soon(self, name: str) -> None:
        """Run a duty now, on top of its interval."""
        try:
            self._lanes[name].pool.submit(self._round, name)
        except RuntimeError:
            LOG.debug("Duty %s has stopped", name)

    def _all_lanes(self) -> Collection["_Lane"]:
        return {id(lane): lane for lane in self._lanes.values()}.values()

    def _periodic(self, name: str, interval: float) -> Callable[[], None]:
        @periodics.periodic(interval)
        def run() -> None:
            self._round(name)

        return typing.cast(Callable[[], None], run)

    def _round(self, name: str) -> None:
        # A round asked for by soon() gives way to the periodic one, and the other way round.
        if not self._locks[name].acquire(blocking=False):
            return
        policy = self._policies[name]
        try:
            if self._may_run() and (self._is_time_sure() or not policy.is_timed) and not self._stopped:
                loop = _loop(name)
                with self._liveness.at_work(loop) if policy.is_vital else contextlib.nullcontext():
                    self._run(name)
        except Exception:  # top of a duty: the next round tries again, the other duties continue
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

    :ivar periodics: the calls; complete before the start.
    """

    def __init__(self, name: str, threads: int) -> None:
        self.periodics: list[Callable[[], None]] = []
        self.pool = futurist.ThreadPoolExecutor(max_workers=threads)
        self._threads = threads
        self._name = name
        self._worker: periodics.PeriodicWorker | None = None

    def start(self) -> None:
        """Start; returns at once.

        It starts all threads here, because futurist's pool keeps counting a thread that could not start.

        :raises RuntimeError: the process can have no more threads.
        """
        for _ in range(self._threads):
            self.pool.submit(lambda: None)
        calls: list[tuple[typing.Any, ...]] = [(run, (), {}) for run in self.periodics]
        self._worker = periodics.PeriodicWorker(calls, executor_factory=_Lent(self.pool))
        threading.Thread(target=self._worker.start, name=self._name, daemon=True).start()

    def stop(self) -> None:
        """Start no other round."""
        if self._worker is not None:
            self._worker.stop()


class _Lent:
    """Lends a pool to futurist, which then neither shuts it down nor waits for it."""

    shutdown = False

    def __init__(self, pool: futurist.ThreadPoolExecutor) -> None:
        self._pool = pool

    def __call__(self) -> futurist.ThreadPoolExecutor:
        return self._pool
