"""What systemd is told of a daemon (sd_notify(3)); nothing where it is not systemd that runs us."""

import logging
import os
import socket
import time
from collections.abc import Mapping

LOG = logging.getLogger(__name__)
FEEDS = 4
"""How often the watchdog is fed in its interval: a slow moment must not end the process."""


class Systemd:
    """Speaks to the service manager.  For the main thread.

    oslo.service has READY only.

    :param environment: of the process; NOTIFY_SOCKET and WATCHDOG_USEC are read.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        found = os.environ if environment is None else environment
        self._address = found.get("NOTIFY_SOCKET", "")
        meant = found.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        watched = found.get("WATCHDOG_USEC", "") if meant else ""
        self.watchdog = int(watched) / 1e6 if watched.isdigit() and int(watched) else None

    @property
    def pause(self) -> float | None:
        """Seconds between two feeds of the watchdog; None: there is none."""
        return self.watchdog / FEEDS if self.watchdog else None

    def ready(self, status: str) -> None:
        """We serve; also after a reload."""
        self._tell(f"READY=1\nSTATUS={status}")

    def waiting(self, status: str, within: float) -> None:
        """We cannot serve yet; the next word comes within so many seconds."""
        self._tell(f"STATUS={status}\nEXTEND_TIMEOUT_USEC={_microseconds(within)}")

    def reloading(self) -> None:
        """We read the configuration again."""
        self._tell(f"RELOADING=1\nMONOTONIC_USEC={_microseconds(time.monotonic())}")

    def stopping(self, within: float) -> None:
        """We stop, in so many seconds at the most."""
        self._tell(f"STOPPING=1\nSTATUS=stopping\nEXTEND_TIMEOUT_USEC={_microseconds(within)}")

    def alive(self) -> None:
        """Feed the watchdog."""
        self._tell("WATCHDOG=1")

    def _tell(self, text: str) -> None:
        if not self._address:
            return
        # A name that begins with @ lives in the abstract namespace.
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager:
                manager.connect(address)
                manager.sendall(text.encode())
        except OSError as error:
            LOG.warning("systemd cannot be told %r: %s", text, error)


def _microseconds(seconds: float) -> int:
    return int(seconds * 1e6)
