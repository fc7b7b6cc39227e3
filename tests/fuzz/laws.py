"""The law of every input: it ends, in little time and memory, in an answer or in an error that is meant."""

import gc
import os
import pathlib
import re
import signal
import time
import traceback
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass

from harness import pace

Json = typing.Any
ROOT = pathlib.Path(__file__).parents[2]
MOST_SECONDS = 1.0
"""Seconds of the processor that one input may take, on the reference machine."""
MOST_BYTES = 100 << 20
"""Bytes of memory that one input may take."""
STOPPED = 10.0
"""Seconds of the processor after which an input is stopped."""
CANARY = "canary-b51d0f7c"
"""A text that belongs to another project, and that no answer may hold."""
_PEAK = re.compile(r"VmHWM:\s+(\d+) kB")
_RESIDENT = re.compile(r"VmRSS:\s+(\d+) kB")


class Broken(Exception):
    """An input has broken the law.

    :ivar law: the part of the law, in one word.
    :ivar place: the innermost function of the product, where there is one.
    """

    def __init__(self, law: str, text: str, place: str = "") -> None:
        super().__init__(f"{law}: {text}")
        self.law = law
        self.place = place

    @property
    def signature(self) -> str:
        """Return the text that failures of one cause share."""
        return f"{self.law} {self.place}"


@dataclass(frozen=True)
class Cost:
    """The cost of an input.

    :ivar seconds: seconds of the processor, of this process.
    :ivar grown: bytes that the process needed at its peak, above those before.
    """

    seconds: float
    grown: int


def check_text(text: str, where: str) -> None:
    """Check that an answer holds nothing of another project.

    :raises Broken: it does.
    """
    if CANARY in text:
        begin = max(0, text.index(CANARY) - 100)
        raise Broken("leak", f"another project's data: …{text[begin : begin + 200]}…", where)


def check_status(status: int, declared: typing.Collection[int], where: str) -> None:
    """Check the status code of an answer.

    :param declared: codes that the description of the API names for the operation.
    :raises Broken: it is an error of the server, or not declared.
    """
    if status >= 500 and status != 503:
        raise Broken("status", f"the answer is {status}", where)
    if status not in declared:
        raise Broken("undeclared", f"the answer {status} is not in the description", where)


def examine(run: Callable[[], None]) -> Cost:
    """Run one input, and return its cost.

    :raises Broken: it has broken the law.
    """
    _forget_peak()
    before = _memory(_RESIDENT)
    since = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, STOPPED)
    try:
        run()
    except Broken:
        raise
    except Exception as error:  # noqa: BLE001 - the law is that there is none
        raise Broken("exception", "".join(traceback.format_exception(error)), place_of(error)) from error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    cost = Cost(time.process_time() - since, _memory(_PEAK) - before)
    if cost.seconds > MOST_SECONDS and cost.seconds > MOST_SECONDS * pace.measure().processor:
        raise Broken("time", f"{cost.seconds:.1f} s of the processor")
    if cost.grown > MOST_BYTES:
        raise Broken("memory", f"{cost.grown >> 20} MB")
    return cost


def place_of(error: BaseException) -> str:
    """Return the kind of an error, and the innermost function of the product that it has passed."""
    frames = [
        f"{pathlib.Path(frame.filename).relative_to(ROOT)}:{frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(str(ROOT))
        and "/tests/" not in frame.filename
        and ".venv" not in frame.filename
    ]
    return f"{type(error).__name__} {frames[-1] if frames else ''}".strip()


def prepare() -> None:
    """Stop inputs that do not end, and keep what is loaded out of each search for garbage."""
    signal.signal(signal.SIGPROF, _stop)
    gc.collect()
    gc.freeze()


def _stop(number: int, frame: types.FrameType | None) -> None:
    name = "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_code.co_name}"
    raise Broken("time", f"stopped after {STOPPED:.0f} s of the processor in {name}", name)


def _forget_peak() -> None:
    descriptor = os.open("/proc/self/clear_refs", os.O_WRONLY)
    try:
        os.write(descriptor, b"5")
    finally:
        os.close(descriptor)


def _memory(pattern: re.Pattern[str]) -> int:
    match = pattern.search(pathlib.Path("/proc/self/status").read_text())
    assert match is not None
    return int(match[1]) << 10
