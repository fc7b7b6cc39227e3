"""Lines that say how far a long command is: in place on a terminal, now and then in a log."""

import shutil
import time
import typing
from collections.abc import Callable

from ...observe.terminal import write_in_place, write_lines

EVERY = 0.1
"""Seconds between two writes on a terminal at least."""
LOG_EVERY = 10.0
"""Seconds between two lines elsewhere, from the beginning on: a short command writes none."""
BAR = 16
"""Characters of a bar."""
SOON = 1.0
"""Seconds after which a rate is known well enough."""


class ProgressLine:
    """Writes one line again and again.  Used by one thread.

    :param stream: the stream of messages; unless it is a terminal, each line that is written stays.
    :param monotonic: a clock whose seconds never jump.
    """

    def __init__(self, stream: typing.TextIO, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._monotonic = monotonic
        self._is_terminal = stream.isatty()
        self._began_at = monotonic()
        self._written_at: float | None = None
        self._first: dict[str, tuple[float, int]] = {}

    def show(self, text: str) -> None:
        """Write a text in the place of the one before, unless that is very new."""
        now = self._monotonic()
        if not self._is_terminal:
            last = self._began_at if self._written_at is None else self._written_at
            if now - last >= LOG_EVERY:
                self._written_at = now
                write_lines(self._stream, text)
        elif self._written_at is None or now - self._written_at >= EVERY:
            self._written_at = now
            # Of a line that is longer than the terminal only the last part could be cleared.
            write_in_place(self._stream, text[: shutil.get_terminal_size().columns - 1])

    def count(self, verb: str, done: int, unit: str, total: int | None = None) -> None:
        """Show how many things are done, with their rate and, of a known total, the time that is left.

        :param done: the number; what the first call says was done before this command.
        :param unit: name of the things.
        """
        now = self._monotonic()
        began_at, before = self._first.setdefault(verb, (now, done))
        rate = (done - before) / (now - began_at) if now - began_at >= SOON else 0.0
        self.show(progress_text(verb, done, unit, total, rate, has_bar=self._is_terminal))

    def clear(self) -> None:
        """Clear the line, so that something else can be printed."""
        if self._is_terminal and self._written_at is not None:
            self._written_at = None
            write_in_place(self._stream, "")


def progress_text(
    verb: str, done: int, unit: str, total: int | None, rate: float, *, has_bar: bool = False
) -> str:
    """Return a line of progress.  Numbers say all that the bar shows, for readers without eyes or colours.

    :param rate: things for each second; 0: not known yet.
    """
    parts = [f"{done:,} of {total:,} {unit}" if total else f"{done:,} {unit}"]
    if rate > 0:
        parts.append(f"{rate:.0f}/s" if rate >= 10 else f"{rate:.1f}/s")
        if total:
            parts.append(f"{_duration((total - done) / rate)} left")
    bar = ""
    if total:
        share = min(1.0, done / total)
        filled = int(share * BAR)
        bar = f"[{'#' * filled}{'-' * (BAR - filled)}] " if has_bar else ""
        bar += f"{int(share * 100)} %, "
    return f"{verb}: {bar}{', '.join(parts)}"


def _duration(seconds: float) -> str:
    """Return a duration in its largest unit."""
    if seconds < 90:
        return f"{max(0, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
