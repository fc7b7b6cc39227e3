"""Runs the duties at their intervals."""

import contextlib
import logging
import threading
import time
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
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
        """One round; called by one thread at a time."""


@dataclass(frozen=True)
class DutyRound:
    """The last round of a duty.

    :ivar at: when it began, in seconds since the epoch.
    :ivar seconds: how long it took.
    :ivar broke: whether it ended by an error.
    """

    at: float
    seconds: float
    broke: bool


class Scheduler:
    """Runs duties while we may.

    :param apart: those of the duties that have a thread of their own, so that no other duty delays them.
    :param vital: those that no other conductor does while we hang in them: their progress is watched.
    :param may_run: asked before each round: whether we are in the ring.
    :param may_act: asked before each round of a duty, too: whether this duty may do its work now.
    :param liveness: is told of the end of each round.
    """

    def __init__(
        self,
        duties: Sequence[Duty],
        *,
        may_run: Callable[[], bool],
        may_act: Callable[[Duty], bool] = lambda duty: True,
        apart: Collection[Duty] = (),
        vital: Collection[Duty] = (),
        liveness: Liveness | None = None,
        recorder: Recorder = SILENT,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._may_run = may_run
        self._may_act = may_act
        self._liveness = liveness or Liveness()
        self._duties = duties
        self._vital = vital
        self._stopped = False
        self._recorder = recorder
        self._clock = clock
        self._rounds: dict[str, DutyRound] = {}
        for duty in duties:
            recorder.add(metrics.DUTY_ERRORS, type(duty).__name__, amount=0)
        self._locks = {id(duty): threading.Lock() for duty in duties}
        common = _Lane("duties", DUTY_THREADS)
        self._lanes = {
            id(duty): _Lane(type(duty).__name__, 1) if duty in apart else common for duty in duties
        }
        for duty in duties:
            self._lanes[id(duty)].periodics.append(self._periodic(duty))

    def start(self) -> None:
        """Begin; returns at once."""
        for duty in self._duties:
            self._liveness.expect(_name(duty), duty.interval)
        for lane in self._all_lanes():
            lane.start()

    def stop(self) -> None:
        """Let the rounds that run end, begin no other."""
        self._stopped = True
        for duty in self._duties:
            self._liveness.forget(_name(duty))
        for lane in self._all_lanes():
            lane.stop()
        end = time.monotonic() + ROUND_ENDS_WITHIN
        for lock in self._locks.values():
            if lock.acquire(timeout=max(0.0, end - time.monotonic())):
                lock.release()
        for lane in self._all_lanes():
            lane.pool.shutdown(wait=False)

    def rounds(self) -> Mapping[str, DutyRound | None]:
        """The last round of each duty, by its name; None: there was none yet."""
        return {type(duty).__name__: self._rounds.get(type(duty).__name__) for duty in self._duties}

    def soon(self, duty: Duty) -> None:
        """Run a duty now, on top of its interval."""
        try:
            self._lanes[id(duty)].pool.submit(self._round, duty)
        except RuntimeError:
            LOG.debug("Duties have stopped")

    def _all_lanes(self) -> Collection["_Lane"]:
        return {id(lane): lane for lane in self._lanes.values()}.values()

    def _periodic(self, duty: Duty) -> Callable[[], None]:
        @periodics.periodic(duty.interval)
        def run() -> None:
            self._round(duty)

        return typing.cast(Callable[[], None], run)

    def _round(self, duty: Duty) -> None:
        if not self._locks[id(duty)].acquire(blocking=False):
            return
        try:
            if self._may_run() and self._may_act(duty) and not self._stopped:
                with self._liveness.at_work(_name(duty)) if duty in self._vital else contextlib.nullcontext():
                    self._run(duty)
        except Exception:  # top of a duty: the next round tries again, the other duties go on
            LOG.exception("Duty %s broke", type(duty).__name__)
        finally:
            self._liveness.beat(_name(duty))
            self._locks[id(duty)].release()

    def _run(self, duty: Duty) -> None:
        name, began, broke = type(duty).__name__, self._clock(), True
        clocked = time.monotonic()
        try:
            duty.run()
            broke = False
        finally:
            took = time.monotonic() - clocked
            self._rounds[name] = DutyRound(began, took, broke)
            self._recorder.observe(metrics.DUTY, name, value=took)
            if broke:
                self._recorder.add(metrics.DUTY_ERRORS, name)


def _name(duty: Duty) -> str:
    return f"the duty {type(duty).__name__}"


class _Lane:
    """Threads that run some of the duties.

    :ivar periodics: what they run; complete before the start.
    """

    def __init__(self, name: str, threads: int) -> None:
        self.periodics: list[Callable[[], None]] = []
        self.pool = futurist.ThreadPoolExecutor(max_workers=threads)
        self._threads = threads
        self._name = name
        self._worker: periodics.PeriodicWorker | None = None

    def start(self) -> None:
        """Begin; returns at once.

        All threads are started here: futurist's pool counts one that could not be started as there for ever.

        :raises RuntimeError: there can be no more threads.
        """
        for _ in range(self._threads):
            self.pool.submit(lambda: None)
        calls: list[tuple[typing.Any, ...]] = [(run, (), {}) for run in self.periodics]
        self._worker = periodics.PeriodicWorker(calls, executor_factory=_Lent(self.pool))
        threading.Thread(target=self._worker.start, name=self._name, daemon=True).start()

    def stop(self) -> None:
        """Begin no other round."""
        if self._worker is not None:
            self._worker.stop()


class _Lent:
    """Gives a pool to futurist, which then neither shuts it down nor waits for that."""

    shutdown = False

    def __init__(self, pool: futurist.ThreadPoolExecutor) -> None:
        self._pool = pool

    def __call__(self) -> futurist.ThreadPoolExecutor:
        return self._pool
