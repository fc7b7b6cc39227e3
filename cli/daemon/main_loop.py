"""The main thread of a daemon: it waits for signals, feeds the watchdog, and ends the process."""

import contextlib
import enum
import faulthandler
import logging
import os
import queue
import select
import signal
import sys
import time
import typing
from collections.abc import Callable, Sequence
from types import FrameType

from .systemd import Systemd

LOG = logging.getLogger(__name__)


class OperatorSignal(enum.Enum):
    """What the operator wants."""

    STOP = "stop"
    RELOAD = "reload"
    REPLACE = "replace"


WANTED = {
    signal.SIGTERM: OperatorSignal.STOP,
    signal.SIGINT: OperatorSignal.STOP,
    signal.SIGHUP: OperatorSignal.RELOAD,
}
ENDS = (OperatorSignal.STOP, OperatorSignal.REPLACE)


class SignalQueue:
    """SIGTERM and SIGINT mean stop, SIGHUP: read the configuration again.  Made by the main thread.

    A handler of Python's runs in the main thread only, between two steps of it.  A signal that arrives while
    that thread is about to block, or that the kernel gives to another thread, would not be noticed before
    something else wakes it.  So the interpreter writes a byte to a pipe for each signal, and `next` waits
    for that.
    """

    def __init__(self) -> None:
        # Of all queues and events only this one may be used in a signal handler.
        self._caught: queue.SimpleQueue[OperatorSignal] = queue.SimpleQueue()
        self._reader, self._writer = os.pipe()
        for end in (self._reader, self._writer):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in WANTED:
            signal.signal(number, self._catch)
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)  # Until there is something to report on.

    def _catch(self, number: int, frame: FrameType | None) -> None:
        self._caught.put(WANTED[signal.Signals(number)])

    def put(self, wanted: OperatorSignal) -> None:
        """As if a signal had said it; from any thread."""
        self._caught.put(wanted)
        with contextlib.suppress(BlockingIOError):  # Where the pipe is full, `next` wakes anyway.
            os.write(self._writer, b"\0")

    def next(self, seconds: float | None = None) -> OperatorSignal | None:
        """Wait for a signal, or for `seconds`; what it wants, None if none came."""
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            with contextlib.suppress(queue.Empty):
                return self._caught.get_nowait()
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                return None
            select.select([self._reader], [], [], left)
            with contextlib.suppress(BlockingIOError):
                os.read(self._reader, 4096)


def stay(
    signals: SignalQueue,
    systemd: Systemd,
    *,
    reload: Callable[[], str],
    late: Callable[[float], Sequence[str]] = lambda grace: (),
) -> OperatorSignal:
    """Stay until a stop is wanted, or that another process takes our place; which of them.

    :param reload: reads the configuration again; the status that systemd shows afterwards.
    :param late: which of the daemon's loops have not come round for longer than so many seconds.  The
        watchdog is not fed while there are any.
    """
    told: list[str] = []
    while (wanted := signals.next(systemd.pause)) not in ENDS:
        if wanted == OperatorSignal.RELOAD:
            systemd.reloading()
            systemd.ready(reload())
        # Half of the interval: so a loop that hangs is found out in 1.5 intervals at the most.
        stuck = list(late(systemd.watchdog / 2)) if systemd.watchdog else []
        if stuck and stuck != told:
            LOG.critical("Does not come round any more: %s; the watchdog is not fed", ", ".join(stuck))
        elif not stuck:
            systemd.alive()
        told = stuck
    assert wanted is not None
    return wanted


def show_stacks_of_threads() -> None:
    """Let the signal with which the watchdog ends a process that hangs print where each thread stands."""
    faulthandler.enable()


def heard(command: Callable[[], int]) -> int:
    """Run a command that prints, and return its exit code; 1 where its reader goes away, as ``head`` does."""
    try:
        code = command()
        sys.stdout.flush()
    except BrokenPipeError:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        return 1
    return code


def end_process(code: int) -> typing.NoReturn:
    """End the process now that all was stopped in order.

    Python's own end would wait for each idle thread of a pool, up to a second, and for ever for one that
    hangs in a plugin's call, which was given its time already.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # Nobody reads it any more.
            stream.flush()
    os._exit(code)
