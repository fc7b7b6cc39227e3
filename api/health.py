"""Checks the health of the service without a long wait.

oslo.middleware's healthcheck calls its backends in the request's thread, so it hangs as long as the database
does, and its answers have a shape of their own.  A load balancer needs the answer within a second.
"""

import logging
import threading
import time
from collections.abc import Callable

from ..db.errors import Unavailable

LOG = logging.getLogger(__name__)
KEPT = 1.0
"""Seconds for which a result is kept: asking more often costs the database nothing."""
WAIT = 0.5
"""Most seconds that an answer waits for the database."""
PATIENCE = 2.0
"""Seconds without an answer after which a database that has answered before counts as unavailable."""


class DatabaseHealth:
    """Checks, in a thread of its own, that the database answers; one check at a time.  Thread-safe.

    :param ping: a function that reads from the database, or raises Unavailable.
    :param monotonic: a clock whose seconds never jump.
    """

    def __init__(
        self, ping: Callable[[], object], *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._ping = ping
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._answered = threading.Event()
        self._asked_at: float | None = None
        self._told_at: float | None = None
        self._problem: str | None = "the database was not checked yet"

    def problem(self) -> str | None:
        """Return why the database is unavailable; None: it is available."""
        self._ask()
        self._answered.wait(WAIT)
        with self._lock:
            if self._asked_at is None:
                return self._problem
            silent = self._monotonic() - self._asked_at
            if self._problem is None and silent < PATIENCE:
                return None
            return f"the database has not answered for {silent:.1f} s"

    def _ask(self) -> None:
        with self._lock:
            now = self._monotonic()
            if self._asked_at is not None or (self._told_at is not None and now - self._told_at < KEPT):
                return
            self._asked_at = now
            self._answered.clear()
        threading.Thread(target=self._run, name="database-health", daemon=True).start()

    def _run(self) -> None:
        problem: str | None = "the database is not available"
        try:
            self._ping()
            problem = None
        except Unavailable as error:
            LOG.debug("The database is not available: %s", error)
        finally:
            with self._lock:
                self._problem = problem
                self._asked_at = None
                self._told_at = self._monotonic()
            self._answered.set()
