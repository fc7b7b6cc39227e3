"""Whether the loops of a conductor still come round, and whether what they do makes progress."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence

_CURRENT = threading.local()


def answered() -> None:
    """Note that the loop which runs in this thread makes progress: the database has answered it."""
    note = getattr(_CURRENT, "note", None)
    if note is not None:
        note()


class Liveness:
    """When each loop last came round.  Any thread may call it.

    A loop that waits for work comes round all the same: the mover once a second, a duty once in its interval.
    One that does not is stuck in a call that never returns: in the database, in a lock, in a bug.

    :param monotonic: seconds that never jump.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._due: dict[str, float] = {}
        self._every: dict[str, float] = {}
        self._at_work: dict[str, float] = {}

    def expect(self, name: str, every: float) -> None:
        """From now on the loop comes round at least once in `every` seconds."""
        with self._lock:
            self._every[name] = every
            self._due[name] = self._monotonic() + every

    def beat(self, name: str) -> None:
        """The loop came round; nothing if it is not expected to."""
        with self._lock:
            if name in self._every:
                self._due[name] = self._monotonic() + self._every[name]

    def forget(self, name: str) -> None:
        """The loop ends in good order."""
        with self._lock:
            self._every.pop(name, None)
            self._due.pop(name, None)

    def late(self, grace: float) -> list[str]:
        """The loops that should have come round more than `grace` seconds ago."""
        now = self._monotonic()
        with self._lock:
            return sorted(name for name, due in self._due.items() if now - due > grace)

    @contextlib.contextmanager
    def at_work(self, name: str) -> Iterator[None]:
        """Inside, the loop does something in this thread; each answer of the database is progress."""

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

    Once something was stuck, it counts as stuck until nothing is and the database has answered again: a loop
    that comes round because it is out of the ring, and does nothing, proves nothing.

    :param limit: seconds without progress.
    """

    def __init__(self, liveness: Liveness, limit: float) -> None:
        self._liveness = liveness
        self._limit = limit
        self._stuck: Sequence[str] = ()
        self._proved = False

    @property
    def in_doubt(self) -> bool:
        """Whether the mover has to ask the database, to prove that it answers."""
        return bool(self._stuck)

    def proved(self) -> None:
        """Note that the database has answered; called by the mover."""
        self._proved = True

    def stuck(self) -> Sequence[str]:
        """Return what makes no progress; called by the membership's thread."""
        found = self._liveness.stuck(self._limit)
        if found:
            self._stuck, self._proved = found, False
        elif self._proved:
            self._stuck = ()
        return self._stuck
