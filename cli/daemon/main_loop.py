"""The main loop of a daemon: it waits for signals, feeds the watchdog, and ends the process."""

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
from collections.abc import Callable, Iterable, Sequence
from types import FrameType

from ...observe.terminal import print_by_line
from .systemd import Systemd

LOG = logging.getLogger(__name__)


class OperatorSignal(enum.Enum):
    """The main loop's events: requests of the operator, or of the daemon itself."""

    STOP = "stop"
    RELOAD = "reload"
    REPLACE = "replace"


EVENT_OF_SIGNAL = {
    signal.SIGTERM: OperatorSignal.STOP,
    signal.SIGINT: OperatorSignal.STOP,
    signal.SIGHUP: OperatorSignal.RELOAD,
}
ENDS = (OperatorSignal.STOP, OperatorSignal.REPLACE)
"""The events that end the main loop."""


class SignalQueue:
    """The events of the main loop: SIGTERM and SIGINT stop the daemon, SIGHUP reloads its configuration.

    The main thread makes it.  oslo.service's SignalHandler is no substitute: it runs its handlers only when
    the main thread wakes up, and a signal does not always wake it.  A handler of Python runs in the main
    thread only, between two of its steps.  A signal that arrives while this thread is about to block, or
    that the kernel delivers to another thread, would stay unnoticed until something else happens.  So the
    interpreter writes a byte to a pipe for each signal, and `next` waits for that.

    :param caught: the signals to handle; a worker process, whose signals its launcher handles, has none.
    :ivar report: called on SIGUSR2, in the signal handler.
    """

    def __init__(self, caught: Iterable[signal.Signals] = (*EVENT_OF_SIGNAL, signal.SIGUSR2)) -> None:
        self.report: Callable[[], object] = lambda: None
        # Of all queues and events only this one may be used in a signal handler.
        self._caught: queue.SimpleQueue[OperatorSignal] = queue.SimpleQueue()
        self._reader, self._writer = os.pipe()
        for end in (self._reader, self._writer):
            os.set_blocking(end, False)
        handled = list(caught)
        if handled:
            signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in handled:
            signal.signal(number, self._catch)

    def _catch(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGUSR2:
            self.report()
        else:
            self._caught.put(EVENT_OF_SIGNAL[signal.Signals(number)])

    def put(self, event: OperatorSignal) -> None:
        """Add an event, as a signal does; any thread may call it."""
        self._caught.put(event)
        with contextlib.suppress(BlockingIOError):  # Where the pipe is full, `next` wakes anyway.
            os.write(self._writer, b"\0")

    def next(self, seconds: float | None = None) -> OperatorSignal | None:
        """Wait for an event, `seconds` at most; return None if none came."""
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


def run_main_loop(
    signals: SignalQueue,
    systemd: Systemd,
    *,
    reload: Callable[[], str],
    late: Callable[[float], Sequence[str]] = lambda grace: (),
) -> OperatorSignal:
    """Run until the daemon must stop or another process must replace it; return which of the two.

    :param reload: a function that reads the configuration again and returns the status for systemd.
    :param late: a function that returns the daemon's loops without progress for longer than so many
        seconds.  While there are any, the watchdog is not fed.
    """
    announced: list[str] = []
    while (event := signals.next(systemd.pause)) not in ENDS:
        if event == OperatorSignal.RELOAD:
            systemd.reloading()
            systemd.ready(reload())
        # Half of the interval: so a loop that hangs is found out in 1.5 intervals at the most.
        stuck = list(late(systemd.watchdog / 2)) if systemd.watchdog else []
        if stuck and stuck != announced:
            LOG.critical(
                "No progress: %s; the watchdog gets no notification, systemd restarts this process",
                ", ".join(stuck),
            )
        elif not stuck:
            systemd.alive()
        announced = stuck
    assert event is not None
    return event


def print_stacks_on_abort() -> None:
    """Print each thread's stack when the watchdog aborts a process that hangs."""
    faulthandler.enable()


def run_command(command: Callable[[], int]) -> int:
    """Run a command that prints; return its exit code, 1 where its reader goes away, as ``head`` does."""
    print_by_line()
    try:
        code = command()
        sys.stdout.flush()
    except BrokenPipeError:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        return 1
    return code


def end_process(code: int) -> typing.NoReturn:
    """End the process after everything was stopped in order.

    Python's own end would wait up to a second for each idle thread of a pool, and forever for a thread that
    hangs in a plugin's call, which had its time already.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # Nobody reads it any more.
            stream.flush()
    os._exit(code)
