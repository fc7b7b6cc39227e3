"""The thread of the work loop: when it runs a round, in whose name, and how it ends."""

import contextlib
import logging
import threading
from collections.abc import Callable

from ...db.work.claim import Claimant
from ...observe.seldom import Seldom
from ..liveness import Liveness, Progress
from ..slice import Ring
from .loop import WorkLoop

LOG = logging.getLogger(__name__)
NAME = "the work loop"
LONGEST_SLEEP = 1.0
"""Seconds after which the work loop checks whether it may still work, if nobody wakes it."""
IDLE_SLEEP = 5.0
"""The same while it holds no task: there is nothing that it may not do, and a change of the ring wakes it."""


class WorkThread:
    """The thread that calls `WorkLoop.run_once` whenever there is something to do.

    :param make: builds the work loop, given the function that wakes this thread.
    :param liveness: notes each round.
    :param progress: says whether the database has to be asked whether it answers.
    :param soon: ends the sleep between two rounds when it is set.
    :param keeping: returns a context in which the rounds' transactions share one connection.
    """

    def __init__(
        self,
        make: Callable[[Callable[[], None]], WorkLoop],
        *,
        ring: Ring,
        host: str,
        liveness: Liveness,
        progress: Progress,
        soon: threading.Event | None = None,
        keeping: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext,
    ) -> None:
        self._ring = ring
        self._liveness = liveness
        self._progress = progress
        self._host = host
        self._keeping = keeping
        self._soon = soon or threading.Event()
        self._stop = threading.Event()
        self._draining = threading.Event()
        self._dead = False
        self._seldom = Seldom()
        self.loop = make(self._soon.set)
        self._thread = threading.Thread(target=self._run, name="work-loop", daemon=True)

    def start(self) -> None:
        """Start the thread; returns at once."""
        self._liveness.expect(NAME, LONGEST_SLEEP)
        self._thread.start()

    def wake(self) -> None:
        """Run a round now, whose name on the ring may be another one.  Quick, and from any thread."""
        self._soon.set()

    def drain(self) -> None:
        """Claim nothing more, and requeue tasks that wait for their next poll."""
        self._draining.set()
        self._soon.set()

    def stop(self, wait: float) -> bool:
        """Drain, and wait until the results of all running steps are stored.

        :param wait: seconds to wait at the most.
        :return: whether all of them were stored.
        """
        self._stop.set()
        self.drain()
        self._thread.join(wait)
        return not self._thread.is_alive()

    def kill(self) -> None:
        """End at once, as a killed process does: for demonstrations and tests."""
        self._dead = True
        self._soon.set()
        self._thread.join(10)

    def _run(self) -> None:
        with self._keeping():
            self._run_rounds()

    def _run_rounds(self) -> None:
        while not self._dead:
            # Cleared before the round: a wake-up during it is seen by this round or by the next one.
            self._soon.clear()
            self._liveness.expect(NAME, LONGEST_SLEEP)
            with self._liveness.at_work(NAME):
                pause = self._round()
            # A stop waits for running steps: others could claim their tasks only after we count as gone.
            if self._stop.is_set() and not self.loop.in_progress:
                self._liveness.forget(NAME)
                return
            is_idle = not (self.loop.in_progress or self._progress.in_doubt)
            longest = IDLE_SLEEP if is_idle else LONGEST_SLEEP
            self._liveness.expect(NAME, longest)
            self._soon.wait(longest if pause is None else min(pause, longest))

    def _round(self) -> float | None:
        try:
            if self._progress.in_doubt and self.loop.database_answers():
                self._progress.proved()
            name = self._ring.member()
            self.loop.work_as(None if name is None else Claimant(name, self._host))
            if self._draining.is_set():
                self.loop.drain()
            return self.loop.run_once()
        except Exception as error:  # top of a thread: a bug in one round must not end all work
            # Where memory is short, logging fails, too.
            with contextlib.suppress(MemoryError, RuntimeError):
                if self._seldom.passes(type(error).__name__):
                    LOG.exception("A round of the work loop failed")
            return LONGEST_SLEEP
