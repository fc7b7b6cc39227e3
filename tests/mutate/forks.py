"""A fork that runs something for a limited time, and ends with all processes that it has started."""

import contextlib
import dataclasses
import enum
import math
import os
import resource
import select
import signal
import time
import typing

SURVIVES, FAILS, CANNOT = 0, 1, 2
"""Exit codes of a fork."""
Tell = typing.Callable[[str], None]
"""Notes the name of the test that is run now."""
LONGEST_NAME = 4096


class End(enum.Enum):
    """The way in which a fork has ended."""

    SURVIVED = enum.auto()
    FAILED = enum.auto()
    CANNOT = enum.auto()  #: it could not do what it was to try
    LATE = enum.auto()  #: after its time on the clock: it waits, or the machine is busy
    COMPUTES = enum.auto()  #: after its time of the processor, however busy the machine is


@dataclasses.dataclass(frozen=True)
class Trial:
    """The result of a fork."""

    end: End
    seconds: float
    test: str  #: the last one that was begun; empty: none


def attempt(run: typing.Callable[[Tell], int], *, seconds: float, processor: float) -> Trial:
    """Run something in a fork.

    :param seconds: how long it may take.
    :param processor: how many of them the fork itself may compute.
    """
    began = time.monotonic()
    name = os.memfd_create("test")
    child = os.fork()
    if child == 0:
        _run(run, name, processor)
    try:
        ended = _ends_within(child, seconds)
        if not ended:
            os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        test = os.pread(name, LONGEST_NAME, 0).decode().rstrip("\n")
    finally:
        os.close(name)
    return Trial(_end_of(status) if ended else End.LATE, time.monotonic() - began, test)


def _run(run: typing.Callable[[Tell], int], name: int, processor: float) -> typing.NoReturn:
    code = FAILS
    try:
        os.setsid()
        # The system ends it, even in a loop that Python does not leave.
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)
        used = time.process_time()
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(used + processor), most))
        quiet = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(quiet, descriptor)
        code = run(lambda test: _note(name, test))
    except BaseException:  # noqa: BLE001 - top of a process
        code = FAILS
    finally:
        os._exit(code)


def _note(file: int, test: str) -> None:
    os.ftruncate(file, 0)
    os.pwrite(file, test.encode()[:LONGEST_NAME], 0)


def _ends_within(child: int, seconds: float) -> bool:
    """Wait for the end of a process; return whether it came in time."""
    watch = os.pidfd_open(child)
    try:
        readable, _, _ = select.select([watch], [], [], seconds)
    finally:
        os.close(watch)
    return bool(readable)


def _end_of(status: int) -> End:
    if os.WIFSIGNALED(status):
        return End.COMPUTES if os.WTERMSIG(status) == signal.SIGXCPU else End.FAILED
    return {SURVIVES: End.SURVIVED, CANNOT: End.CANNOT}.get(os.WEXITSTATUS(status), End.FAILED)
