"""A line that says how far a long command is: in place on a terminal, and nowhere else."""

import time
import typing
from collections.abc import Callable

from ...observe.terminal import write_in_place

EVERY = 0.1
"""Seconds between two writes at least."""


class ProgressLine:
    """Writes one line again and again.  Used by one thread.

    :param stream: the stream of messages; unless it is a terminal nothing is written, for scripts read it.
    :param monotonic: a clock whose seconds never jump.
    """

    def __init__(self, stream: typing.TextIO, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._monotonic = monotonic
        self._is_terminal = stream.isatty()
        self._written_at: float | None = None

    def show(self, text: str) -> None:
        """Write a text in the place of the one before, unless that is very new."""
        now = self._monotonic()
        if self._is_terminal and (self._written_at is None or now - self._written_at >= EVERY):
            self._written_at = now
            write_in_place(self._stream, text)

    def clear(self) -> None:
        """Clear the line, so that something else can be printed."""
        if self._written_at is not None:
            self._written_at = None
            write_in_place(self._stream, "")
