"""The thread that turns the pipeline's wheel."""

import contextlib
import logging
import threading
from collections.abc import Callable

from ...db.work.claim import Claimant
from ..liveness import Liveness, Progress
from ..slice import Ring
from .pipeline import Pipeline

LOG = logging.getLogger(__name__)

NAME = "the mover"
LONGEST_SLEEP = 1.0
"""Seconds after which the mover looks whether it may still work, if nobody wakes it."""


class WorkLoop:
    """Calls `Pipeline.turn` whenever there is something to do, under the name that the ring gives.

    :param make: builds the pipeline, given the function that wakes this mover.
    :param liveness: is told of each turn.
    :param progress: says whether the database has to be asked whether it answers.
    """

    def __init__(
        self,
        make: Callable[[Callable[[], None]], Pipeline],
        *,
        ring: Ring,
        host: str,
        liveness: Liveness,
        progress: Progress,
    ) -> None:
        self._ring = ring
        self._liveness = liveness
        self._progress = progress
        self._host = host
        self._soon = threading.Event()
        self._stop = threading.Event()
        self._draining = threading.Event()
        self._dead = False
        self.pipeline = make(self._soon.set)
        self._thread = threading.Thread(target=self._run, name="mover", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._liveness.expect(NAME, LONGEST_SLEEP)
        self._thread.start()

    def drain(self) -> None:
        """Claim nothing more, and give back what stands between two looks."""
        self._draining.set()
        self._soon.set()

    def stop(self, wait: float) -> bool:
        """Drain, wait for the steps that run until their results are stored, but no longer than `wait`
        seconds; whether all of them were."""
        self._stop.set()
        self.drain()
        self._thread.join(wait)
        return not self._thread.is_alive()

    def kill(self) -> None:
        """End where we stand, as a killed process does: for demonstrations and tests."""
        self._dead = True
        self._soon.set()
        self._thread.join(10)

    def _run(self) -> None:
        while not self._dead:
            self._soon.clear()
            self._liveness.beat(NAME)
            with self._liveness.at_work(NAME):
                pause = self._turn()
            if self._stop.is_set() and not self.pipeline.in_progress:
                self._liveness.forget(NAME)
                return
            self._soon.wait(LONGEST_SLEEP if pause is None else min(pause, LONGEST_SLEEP))

    def _turn(self) -> float | None:
        try:
            if self._progress.in_doubt and self.pipeline.database_answers():
                self._progress.proved()
            name = self._ring.member()
            self.pipeline.work_as(None if name is None else Claimant(name, self._host))
            if self._draining.is_set():
                self.pipeline.close_intake()
                self.pipeline.hand_over()
            return self.pipeline.run_once()
        except Exception:  # top of a thread: a bug in one turn must not end all work of the conductor
            with contextlib.suppress(
                MemoryError, RuntimeError
            ):  # Where memory is short, logging breaks, too.
                LOG.exception("A turn of the pipeline broke")
            return LONGEST_SLEEP
