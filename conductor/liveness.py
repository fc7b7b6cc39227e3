"""Whether the loops of a conductor still come round."""

import threading
import time
from collections.abc import Callable


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
