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
ACCOUNTS_KEPT = 30.0
"""Seconds for which the result for an account is kept: Keystone locks accounts that it refuses often."""
UNAVAILABLE = "database unavailable"
WAIT = 0.5
"""Most seconds that an answer waits for the database."""
PATIENCE = 2.0
"""Seconds without an answer after which a database that has answered before counts as unavailable."""


class _BackgroundCheck:
    """Runs a check in a thread of its own, once at a time, and keeps its result.  Thread-safe.

    :param check: a function that returns a problem; None: there is none.
    :param name: name of the thread.
    :param kept: seconds for which a result is kept.
    :param problem: the result until there is another one.
    :param monotonic: a clock whose seconds never jump.
    """

    def __init__(
        self,
        check: Callable[[], str | None],
        name: str,
        *,
        kept: float,
        problem: str | None,
        monotonic: Callable[[], float],
    ) -> None:
        self._check = check
        self._name = name
        self._kept = kept
        self._problem = problem
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._answered = threading.Event()
        self._asked_at: float | None = None
        self._told_at: float | None = None

    @property
    def checked(self) -> bool:
        """Return whether there is a result."""
        return self._told_at is not None

    def latest(self, wait: float) -> tuple[str | None, float | None]:
        """Return the last result, and the seconds for which the running check has had none; None: none runs.

        A check is started where the last result is too old.

        :param wait: seconds to wait for a running check.
        """
        self._ask()
        self._answered.wait(wait)
        with self._lock:
            silent = None if self._asked_at is None else self._monotonic() - self._asked_at
            return self._problem, silent

    def _ask(self) -> None:
        with self._lock:
            now = self._monotonic()
            is_new = self._told_at is not None and now - self._told_at < self._kept
            if self._asked_at is not None or is_new:
                return
            self._asked_at = now
            self._answered.clear()
        try:
            threading.Thread(target=self._run, name=self._name, daemon=True).start()
        except RuntimeError:  # The next question tries again.
            with self._lock:
                self._problem = f"{self._name}: no thread can be started"
                self._asked_at = None
            self._answered.set()

    def _run(self) -> None:
        problem: str | None = f"{self._name}: the check failed, see the log"
        try:
            problem = self._check()
        finally:
            with self._lock:
                self._problem = problem
                self._asked_at = None
                self._told_at = self._monotonic()
            self._answered.set()


class DatabaseHealth:
    """Checks that the database answers.  Thread-safe.

    :param ping: a function that reads from the database, or raises Unavailable.
    :param monotonic: a clock whose seconds never jump.
    """

    def __init__(
        self, ping: Callable[[], object], *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._ping = ping
        self._check = _BackgroundCheck(
            self._answer,
            "database-health",
            kept=KEPT,
            problem="the database was not checked yet",
            monotonic=monotonic,
        )

    def problem(self) -> str | None:
        """Return why the database is unavailable; None: it is available."""
        problem, silent = self._check.latest(WAIT)
        if silent is None or (problem is None and silent < PATIENCE):
            return None if problem is None else f"{UNAVAILABLE}: {problem}"
        return f"{UNAVAILABLE}: the database has not answered for {silent:.1f} s"

    def _answer(self) -> str | None:
        try:
            self._ping()
        except Unavailable as error:
            LOG.debug("The database is not available: %s", error)
            return "the database is not available"
        return None


class AccountHealth:
    """Checks that Keystone accepts the service's own accounts.  Thread-safe.

    An answer does not wait for Keystone, and a Keystone that is unavailable is no problem of this service:
    the requests that need it say so.

    :param check: a function that returns why an account is refused; None: none is.
    :param monotonic: a clock whose seconds never jump.
    """

    def __init__(
        self, check: Callable[[], str | None], *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._check = _BackgroundCheck(
            check, "account-health", kept=ACCOUNTS_KEPT, problem=None, monotonic=monotonic
        )

    @property
    def checked(self) -> bool:
        """Return whether there is a result."""
        return self._check.checked

    def problem(self) -> str | None:
        """Return which account Keystone refuses; None: it refuses none, or was not asked yet."""
        return self._check.latest(0)[0]
