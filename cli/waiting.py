"""Waiting for the end of a daemon's life."""

import logging
import os
import signal
import sys
import threading
import typing
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


def end_process(code: int) -> typing.NoReturn:
    """End the process now that all was stopped in order.

    Python's own end would wait for each idle thread of a pool, up to a second, and for ever for one that
    hangs in a plugin's call, which was given its time already.
    """
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
