"""The messages of a daemon to systemd (sd_notify(3)).

Written by hand: oslo.service sends READY only, and its launcher sends that before the service has started.
"""

import logging
import os
import socket
import time
from collections.abc import Mapping

LOG = logging.getLogger(__name__)
FEEDS = 4
"""Messages to the watchdog in its interval: a slow moment must not end the process."""
SENT_WITHIN = 1.0
"""Seconds for a message: the caller has more to do than wait for a manager that reads none."""


class Systemd:
    """A daemon's connection to its service manager; silent where that is not systemd.

    One thread calls it: the one that runs the main loop.

    :param environment: the environment of the process; NOTIFY_SOCKET and WATCHDOG_USEC are read.
    :ivar watchdog: the seconds between two messages after which systemd ends the process; None: never.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        variables = os.environ if environment is None else environment
        self._address = variables.get("NOTIFY_SOCKET", "")
        is_watched = variables.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        watched = variables.get("WATCHDOG_USEC", "") if is_watched else ""
        self.watchdog = int(watched) / 1e6 if watched.isdigit() and int(watched) else None

    @property
    def pause(self) -> float | None:
        """Return the seconds between two messages to the watchdog; None: there is none."""
        return self.watchdog / FEEDS if self.watchdog else None

    def ready(self, status: str) -> None:
        """Announce that the daemon serves; also after a reload."""
        self._notify(f"READY=1\nSTATUS={status}")

    def waiting(self, status: str, within: float) -> None:
        """Announce that the daemon cannot serve yet, and sends its next message within so many seconds."""
        self._notify(f"STATUS={status}\nEXTEND_TIMEOUT_USEC={_microseconds(within)}")

    def reloading(self) -> None:
        """Announce that the daemon reads its configuration again."""
        self._notify(f"RELOADING=1\nMONOTONIC_USEC={_microseconds(time.monotonic())}")

    def stopping(self, within: float) -> None:
        """Announce that the daemon stops, in so many seconds at the most."""
        self._notify(f"STOPPING=1\nSTATUS=stopping\nEXTEND_TIMEOUT_USEC={_microseconds(within)}")

    def alive(self) -> None:
        """Feed the watchdog."""
        self._notify("WATCHDOG=1")

    def _notify(self, text: str) -> None:
        if not self._address:
            return
        # A name that begins with @ lives in the abstract namespace.
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager:
                manager.settimeout(SENT_WITHIN)
                manager.connect(address)
                manager.sendall(text.encode())
        except OSError as error:
            LOG.warning("Cannot notify systemd of %r: %s", text, error)


def _microseconds(seconds: float) -> int:
    return int(seconds * 1e6)
