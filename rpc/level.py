"""Decides in which version messages are sent while neighbours of different releases work together.

oslo.messaging's version_cap is a constant of a client, and refuses newer messages.  Here the highest version
changes as conductors come and go, and a message is sent without its newer arguments, not refused.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..db.errors import DatabaseError
from ..settings import setting
from .contract import LOWEST, VERSION, VERSIONS, parsed, understood

LOG = logging.getLogger(__name__)
AUTO = "auto"
HOLDS = 5.0
"""Seconds for which a version that was found holds in a process that sees no ring."""


@dataclass(frozen=True)
class UpgradeSettings:
    """The operator's pin of the version."""

    pin: str = setting(
        "conductor",
        AUTO,
        "Newest version of messages that are sent to conductors. A version other than auto is a pin, to be "
        "removed when all conductors are upgraded. A conductor refuses a message that is newer than it "
        "understands; the work is then done later, found in the database. Conductors of this release "
        f"understand {VERSION}.",
        choices={
            AUTO: "the newest that all conductors in the database understand",
            **{version: f"what {who} understand" for version, who in VERSIONS.items()},
        },
        is_mutable=True,
    )


class Level:
    """The highest version that may be sent: the pin, or the highest that all reporting conductors understand.

    It reads the reports only when a message has a newer form, and the result holds for a while, or until the
    ring changes: so an idle process reads nothing.  Thread-safe.

    A new conductor is in the ring a moment before it reports its version.  A message that it refuses by then
    is lost like any other.

    :param spoken: reads from the database which versions the conductors report.
    :param pin: returns the version that the operator has pinned, or AUTO; it may change at run time.
    """

    def __init__(
        self,
        spoken: Callable[[], Iterable[str]],
        *,
        pin: Callable[[], str] = lambda: AUTO,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spoken = spoken
        self._pin = pin
        self._clock = clock
        self._lock = threading.Lock()
        self._found = LOWEST
        self._until: float | None = None

    def allows(self, version: str) -> bool:
        """Return whether messages of that version may be sent now."""
        return parsed(version) <= parsed(self.version())

    def version(self) -> str:
        """Return the highest one; while the database is unavailable, the last one that was found."""
        if (pin := self._pin()) != AUTO:
            return pin
        with self._lock:
            if self._until is None or self._clock() >= self._until:
                self._until = self._clock() + HOLDS
                self._read()
            return self._found

    def reset(self) -> None:
        """Read the reports again at the next message: a conductor has come or gone."""
        with self._lock:
            self._until = None

    def _read(self) -> None:
        try:
            version = understood(self._spoken())
        except DatabaseError as error:
            LOG.warning(
                "Reading the conductors' versions failed, still sending messages in version %s: %s",
                self._found,
                error,
            )
            return
        if version != self._found:
            LOG.info("Sending messages in version %s, which all conductors understand", version)
            self._found = version
