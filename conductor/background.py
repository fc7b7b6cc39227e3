"""Runs long work of the duties on threads of its own, so that no duty waits for it."""

import logging
import threading
import typing
from collections.abc import Callable, Hashable

import futurist
from futurist import rejection

from ..db.errors import Unavailable
from ..observe.seldom import Seldom

LOG = logging.getLogger(__name__)


class Background(typing.Protocol):
    """A pool for the long work of a duty.  Thread-safe."""

    def submit(self, key: Hashable, function: Callable[[], None]) -> bool:
        """Run the work soon; return False if the queue is full or work of this key has not ended."""


class BackgroundPool:
    """Implements Background on a bounded pool.

    :param name: of the work, for the log.
    :param threads: number of threads.
    :param waiting: how much work may wait for a thread; more is rejected.
    """

    def __init__(self, name: str, *, threads: int, waiting: int) -> None:
        self._name = name
        full = rejection.reject_when_reached(waiting)
        self._pool = futurist.ThreadPoolExecutor(max_workers=threads, check_and_reject=full)
        self._lock = threading.Lock()
        self._seldom = Seldom()
        self._keys: set[Hashable] = set()

    def submit(self, key: Hashable, function: Callable[[], None]) -> bool:
        """Run the work soon; return False if the queue is full or work of this key has not ended."""
        with self._lock:
            if key in self._keys:
                return False
            self._keys.add(key)
        try:
            future = self._pool.submit(function)
        except (futurist.RejectedSubmission, RuntimeError):
            self._forget(key)
            return False
        future.add_done_callback(lambda done: self._ended(key, done))
        return True

    def stop(self) -> None:
        """Start no more work, and do not wait for running work: each of its steps is a transaction."""
        self._pool.shutdown(wait=False)

    def _ended(self, key: Hashable, future: typing.Any) -> None:
        self._forget(key)
        if not future.cancelled() and (error := future.exception()) is not None:
            if isinstance(error, Unavailable):
                if self._seldom.passes("unavailable"):
                    LOG.warning("%s waits, the database is unavailable: %s", self._name, error)
            elif self._seldom.passes(str(key), type(error).__name__):
                LOG.error("%s of %s failed, retrying", self._name, key, exc_info=error)

    def _forget(self, key: Hashable) -> None:
        with self._lock:
            self._keys.discard(key)
