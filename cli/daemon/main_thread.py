"""The main thread of a daemon: it starts, serves, and stops in order, also after an error.

A daemon is a service of oslo.service.  One process has the launcher that stays in this process, several
have `workers`.  The launchers that fork would break a conductor's promises.  Their parent answers SIGTERM
with exit code 0 although a step has not ended, and restarts without end a worker that cannot start.  It
sends READY before a worker has started, and replaces the worker on SIGHUP, so that its claims are lost.  It
is the process that systemd's watchdog ends while another one hangs.

1. `SignalQueue()`, before anything else: SIGTERM in the first instant is a stop, too.
2. `start()`, on the launcher's thread.  A wrong configuration or an address in use: exit code 1.
3. `serve()`: 0 after SIGTERM or SIGINT; 75 when too many threads hang; 1 when it fails, or when its output
   has no reader.
4. `launcher.stop()`, which calls `stop()`, also after a start that failed half-way: 1 when work in progress
   did not end in time.
5. `os._exit` with the first code that is not 0, so threads that hang in a plugin's call delay nothing.

SIGHUP uses neither the launcher's `restart` nor `mutate_config_files`, which would apply the first values
of a file before it meets the wrong one: a reload checks all of them first.
"""

import contextlib
import gc
import logging
import os
import select
import sys
import threading
import typing
from collections.abc import Callable

from oslo_config import cfg
from oslo_service import service

from ...observe.terminal import print_by_line, write_lines
from ..config.errors import WrongConfiguration
from .main_loop import OperatorSignal, SignalQueue, end_process
from .memory import limit_arenas

LOG = logging.getLogger(__name__)


class Daemon(typing.Protocol):
    """The parts of a program.

    A thread of the launcher calls `start`, the main thread the others; in a worker process one thread calls
    all of them, which is not the main one.
    """

    signals: SignalQueue

    def start(self) -> None:
        """Begin to serve.

        :raises OSError: a file or an address cannot be used.
        :raises WrongConfiguration: an option is missing or wrong.
        """

    def serve(self) -> int:
        """Serve until a stop is asked for, and return the exit code that says why."""

    def stop(self) -> bool:
        """Stop all parts that have started, even if others have not.

        :returns: whether all that was in progress has ended.
        """


class DaemonService(service.ServiceBase):  # type: ignore[misc]
    """A daemon as a service of oslo.service.

    :ivar code: the process's exit code, as far as it is known.
    """

    def __init__(self, program: str, daemon: Daemon) -> None:
        self.code = 0
        self.streams = Streams(daemon.signals)
        self._program = program
        self._daemon = daemon
        self._started = threading.Event()

    def start(self) -> None:
        """Start the daemon; called by a thread of the launcher, which would only log an error."""
        print_by_line()
        try:
            self.code = _exit_code(self._start)
        finally:
            self._started.set()

    def _start(self) -> int:
        # Imported modules stay: the collector need not walk over them in each of its rounds.  They hold next
        # to no garbage, so a round before this would only cost a twentieth of the start.
        gc.freeze()
        try:
            self._daemon.start()
        except (OSError, WrongConfiguration) as error:
            return cannot_start(self._program, error)
        return 0

    def wait(self) -> None:
        """Wait until the start is over, and serve where it went well."""
        self._started.wait()
        self.code = self.code or _exit_code(self._serve)

    def _serve(self) -> int:
        self.streams.watch()
        try:
            return self._daemon.serve()
        except BrokenPipeError:
            self.streams.mute()
            LOG.warning("The output of %s was closed: it stops", self._program)
            return 1

    def stop(self) -> None:
        """Stop the daemon; a code that says why it stopped stays."""
        unfinished = _exit_code(lambda: 0 if self._daemon.stop() else 1)
        self.code = self.code or unfinished or int(self.streams.closed)

    def reset(self) -> None:
        """Do nothing: the daemon's main loop reloads its configuration on SIGHUP.

        The launcher's own restart would take over a wrong value before it is checked.
        """


def run(program: str, daemon: Daemon) -> int:
    """Run a daemon until it ends, and the process with it.

    The exit code is that of `serve`, or 1 if the daemon could not start, failed, left something unfinished,
    or if nobody reads its output any more.
    """
    limit_arenas()  # Before the launcher starts threads.
    launched = DaemonService(program, daemon)
    launcher = service.Launcher(cfg.CONF)
    launcher.launch_service(launched)
    launched.wait()
    launcher.stop()
    return end_process(launched.code)


def _exit_code(part: Callable[[], int]) -> int:
    """Return the exit code of a part; 1 if it fails."""
    try:
        return part()
    except Exception:  # top of the main thread: without a stop the other threads would run forever
        LOG.exception("The daemon failed: it stops all of its threads, and ends")
        return 1


class Streams:
    """Standard output and error, whose reader may go away: ``stoker serve | head``.

    A daemon without a reader stops; its service manager starts it again, with new streams.

    :ivar closed: whether the reader has gone.
    """

    def __init__(self, signals: SignalQueue) -> None:
        self._signals = signals
        self.closed = False

    def watch(self) -> None:
        """Watch the handlers of the log, which would print a traceback for each line."""
        for handler in logging.getLogger().handlers:
            if isinstance(handler, logging.StreamHandler) and handler.stream in (sys.stdout, sys.stderr):
                self._watch(handler)

    def _watch(self, handler: logging.Handler) -> None:
        otherwise = handler.handleError

        def handle_error(record: logging.LogRecord) -> None:
            if isinstance(sys.exc_info()[1], BrokenPipeError):
                self.mute()
                self._signals.put(OperatorSignal.STOP)
            else:
                otherwise(record)

        handler.handleError = handle_error  # type: ignore[method-assign]

    def mute(self) -> None:
        """Redirect streams that nobody reads to nowhere; any thread may call it."""
        self.closed = True
        with open(os.devnull, "w") as nowhere:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    if _has_no_reader(stream.fileno()):
                        os.dup2(nowhere.fileno(), stream.fileno())


def cannot_start(program: str, error: Exception) -> int:
    """Print why a program cannot start, if somebody reads it, and return its exit code."""
    with contextlib.suppress(OSError, ValueError):
        write_lines(sys.stderr, *f"{program}: cannot start: {error}".splitlines())
    return 1


def _has_no_reader(descriptor: int) -> bool:
    """Return whether the other end of a pipe or socket was closed (poll(2))."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
