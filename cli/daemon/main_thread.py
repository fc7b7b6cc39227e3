"""The main thread of a daemon: whatever happens once it has begun to start ends in an orderly stop."""

import contextlib
import logging
import os
import select
import sys
import typing
from collections.abc import Callable

from ..config.options import WrongConfiguration
from .main_loop import OperatorSignal, SignalQueue, end_process

LOG = logging.getLogger(__name__)


class Daemon(typing.Protocol):
    """What a program is made of.  All is called by the main thread."""

    signals: SignalQueue

    def start(self) -> None:
        """Begin to serve.

        :raises OSError: a file or an address cannot be used.
        :raises WrongConfiguration: see there.
        """

    def serve(self) -> int:
        """Stay until a stop is wanted, and return the exit code that says why."""

    def stop(self) -> bool:
        """Stop what was started, also if that was not all; whether all that was in progress has ended."""


def run(program: str, daemon: Daemon) -> int:
    """Run a daemon to its end, which is the process's: the exit code is that of `serve`, or 1 if it could not
    start, failed, left something unfinished, or nobody reads its output any more."""
    streams = Streams(daemon.signals)

    def start() -> int:
        try:
            daemon.start()
        except (OSError, WrongConfiguration) as error:
            streams.say(f"{program}: cannot start: {error}")
            return 1
        return 0

    def serve() -> int:
        streams.watch()
        try:
            return daemon.serve()
        except BrokenPipeError:
            streams.mute()
            LOG.warning("Nobody reads the output of %s any more: it stops", program)
            return 1

    code = _whole(start) or _whole(serve)
    ended = _whole(lambda: 0 if daemon.stop() else 1)
    return end_process(code or ended or int(streams.closed))


def _whole(part: Callable[[], int]) -> int:
    """Return what the part returns; 1 if it fails."""
    try:
        return part()
    except Exception:  # top of the main thread: without a stop the other threads would go on for ever
        LOG.exception("The main thread failed: it stops the others, and ends")
        return 1


class Streams:
    """Standard output and error, whose reader may go away: ``stoker serve | head``.

    A daemon that nobody hears any more stops; under a service manager it is started again, with new ones.

    :ivar closed: whether the reader has gone.
    """

    def __init__(self, signals: SignalQueue) -> None:
        self._signals = signals
        self.closed = False

    def watch(self) -> None:
        """See to the handlers of the log, which would print a traceback for each line."""
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
        """Write to nowhere what nobody reads; any thread may call it."""
        self.closed = True
        with open(os.devnull, "w") as nowhere:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    if _has_no_reader(stream.fileno()):
                        os.dup2(nowhere.fileno(), stream.fileno())

    def say(self, text: str) -> None:
        """Print a line to standard error, if somebody reads it."""
        with contextlib.suppress(OSError, ValueError):
            print(text, file=sys.stderr, flush=True)


def _has_no_reader(descriptor: int) -> bool:
    """See poll(2): the other end of a pipe, or of a socket, was closed."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
