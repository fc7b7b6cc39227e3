"""Watches whether the loops of a conductor are alive and make progress."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence

_CURRENT = threading.local()


def answered() -> None:
    """Note that the loop of this thread makes progress: the database has answered it."""
    note = getattr(_CURRENT, "note", None)
    if note is not None:
        note()


class Liveness:
    """Records the heartbeat of each loop.  Any thread may call it.

    A loop that waits for work beats all the same: the work loop once a second, a duty once in its interval.
    While the conductor rests they may sleep for five seconds, a duty that begins to rest for seven.
    A loop without a heartbeat is stuck in a call that never returns: in the database, in a lock, in a bug.

    :param monotonic: seconds that never jump.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._due: dict[str, float] = {}
        self._every: dict[str, float] = {}
        self._at_work: dict[str, float] = {}

    def expect(self, name: str, every: float) -> None:
        """Expect a heartbeat of the loop at least once in `every` seconds from now on."""
        with self._lock:
            self._every[name] = every
            self._due[name] = self._monotonic() + every

    def beat(self, name: str) -> None:
        """Record a heartbeat; do nothing if none is expected."""
        with self._lock:
            if name in self._every:
                self._due[name] = self._monotonic() + self._every[name]

    def forget(self, name: str) -> None:
        """Expect no more heartbeats: the loop has ended in good order."""
        with self._lock:
            self._every.pop(name, None)
            self._due.pop(name, None)

    def late(self, grace: float) -> list[str]:
        """Return the loops whose heartbeat is more than `grace` seconds late."""
        now = self._monotonic()
        with self._lock:
            return sorted(name for name, due in self._due.items() if now - due > grace)

    @contextlib.contextmanager
    def at_work(self, name: str) -> Iterator[None]:
        """Watch the progress of the loop in this thread: each answer of the database is progress."""

        def note() -> None:
            with self._lock:
                self._at_work[name] = self._monotonic()

        note()
        _CURRENT.note = note
        try:
            yield
        finally:
            _CURRENT.note = None
            with self._lock:
                self._at_work.pop(name, None)

    def stuck(self, limit: float) -> list[str]:
        """Return the loops that are at work and have made no progress for more than `limit` seconds."""
        now = self._monotonic()
        with self._lock:
            return sorted(name for name, since in self._at_work.items() if now - since > limit)


class Progress:
    """Decides whether this conductor makes the progress that a member of the ring has to make.

    Once a loop was stuck, the conductor counts as stuck until no loop is and the database has answered again.
    The heartbeat of a loop that does nothing, because it is out of the ring, proves nothing.

    :param limit: seconds without progress.
    """

    def __init__(self, liveness: Liveness, limit: float) -> None:
        self._liveness = liveness
        self._limit = limit
        self._stuck: Sequence[str] = ()
        self._proved = False

    @property
    def in_doubt(self) -> bool:
        """Return whether the work loop has to prove that the database answers."""
        return bool(self._stuck)

    def proved(self) -> None:
        """Note that the database has answered; called by the work loop."""
        self._proved = True

    def stuck(self) -> Sequence[str]:
        """Return the loops without progress; called by the membership's thread."""
        stuck_parts = self._liveness.stuck(self._limit)
        if stuck_parts:
            self._stuck = stuck_parts
            self._proved = False
        elif self._proved:
            self._stuck = ()
        return self._stuck
