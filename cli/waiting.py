"""Waiting for the end of a daemon's life."""

import signal
import threading
from types import FrameType


class StopSignal:
    """Set by SIGTERM and SIGINT.  Made by the main thread."""

    def __init__(self) -> None:
        self._event = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._caught)

    def _caught(self, number: int, frame: FrameType | None) -> None:
        self._event.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the signal, or for `seconds`; whether it came."""
        return self._event.wait(seconds)
