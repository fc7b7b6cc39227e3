"""Runs the duties at their intervals."""

import logging
import threading
import typing
from collections.abc import Callable, Sequence

import futurist
from futurist import periodics

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


class Scheduler:
    """Runs duties while we may.

    :param may_run: asked before each round: whether we are in the ring.
    :param liveness: is told of the end of each round.
    """

    def __init__(
        self, duties: Sequence[Duty], *, may_run: Callable[[], bool], liveness: Liveness | None = None
    ) -> None:
        self._may_run = may_run
        self._liveness = liveness or Liveness()
        self._duties = duties
        self._stopped = False
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
                duty.run()
        except Exception:  # top of a duty: the next round tries again, the other duties go on
            LOG.exception("Duty %s broke", type(duty).__name__)
        finally:
            self._liveness.beat(_name(duty))
            self._locks[id(duty)].release()


def _name(duty: Duty) -> str:
    return f"the duty {type(duty).__name__}"


class _Lent:
    """Gives a pool to futurist, which then neither shuts it down nor waits for that."""

    shutdown = False

    def __init__(self, pool: futurist.ThreadPoolExecutor) -> None:
        self._pool = pool

    def __call__(self) -> futurist.ThreadPoolExecutor:
        return self._pool
