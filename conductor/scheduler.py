"""Runs the duties at their intervals."""

import logging
import threading
import time
import typing
from collections.abc import Callable, Mapping, Sequence
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
class Round:
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

    :param may_run: asked before each round: whether we are in the ring.
    :param liveness: is told of the end of each round.
    """

    def __init__(
        self,
        duties: Sequence[Duty],
        *,
        may_run: Callable[[], bool],
        liveness: Liveness | None = None,
        recorder: Recorder = SILENT,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._may_run = may_run
        self._liveness = liveness or Liveness()
        self._duties = duties
        self._stopped = False
        self._recorder = recorder
        self._clock = clock
        self._rounds: dict[str, Round] = {}
        for duty in duties:
            recorder.add(metrics.DUTY_ERRORS, type(duty).__name__, amount=0)
        self._locks = {id(duty): threading.Lock() for duty in duties}
        self._pool = futurist.ThreadPoolExecutor(max_workers=DUTY_THREADS)
        self._worker = periodics.PeriodicWorker(
            [(self._periodic(duty), (), {}) for duty in duties], executor_factory=_Lent(self._pool)
        )
        self._thread = threading.Thread(target=self._worker.start, name="duties", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        for duty in self._duties:
            self._liveness.expect(_name(duty), duty.interval)
        self._thread.start()

    def stop(self) -> None:
        """Let the rounds that run end, begin no other."""
        self._stopped = True
        for duty in self._duties:
            self._liveness.forget(_name(duty))
        self._worker.stop()
        for lock in self._locks.values():
            if lock.acquire(timeout=ROUND_ENDS_WITHIN):
                lock.release()
        self._pool.shutdown(wait=False)

    def rounds(self) -> Mapping[str, Round | None]:
        """The last round of each duty, by its name; None: there was none yet."""
        return {type(duty).__name__: self._rounds.get(type(duty).__name__) for duty in self._duties}

    def soon(self, duty: Duty) -> None:
        """Run a duty now, on top of its interval."""
        try:
            self._pool.submit(self._round, duty)
        except RuntimeError:
            LOG.debug("Duties have stopped")

    def _periodic(self, duty: Duty) -> Callable[[], None]:
        @periodics.periodic(duty.interval)
        def run() -> None:
            self._round(duty)

        return typing.cast(Callable[[], None], run)

    def _round(self, duty: Duty) -> None:
        if not self._locks[id(duty)].acquire(blocking=False):
            return
        try:
            if self._may_run() and not self._stopped:
                self._run(duty)
        except Exception:  # top of a duty: the next round tries again, the other duties go on
            LOG.exception("Duty %s broke", type(duty).__name__)
        finally:
            self._liveness.beat(_name(duty))
            self._locks[id(duty)].release()

    def _run(self, duty: Duty) -> None:
        name, began, broke = type(duty).__name__, self._clock(), True
        try:
            duty.run()
            broke = False
        finally:
            took = max(0.0, self._clock() - began)
            self._rounds[name] = Round(began, took, broke)
            self._recorder.observe(metrics.DUTY, name, value=took)
            if broke:
                self._recorder.add(metrics.DUTY_ERRORS, name)


def _name(duty: Duty) -> str:
    return f"the duty {type(duty).__name__}"


class _Lent:
    """Gives a pool to futurist, which then neither shuts it down nor waits for that."""

    shutdown = False

    def __init__(self, pool: futurist.ThreadPoolExecutor) -> None:
        self._pool = pool

    def __call__(self) -> futurist.ThreadPoolExecutor:
        return self._pool
