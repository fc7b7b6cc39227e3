"""Limits of the cost of one request: work, memory of the values that it computes, and time.

A few lines of a template can ask for terabytes, or for hours.  So the code charges to the request's budget
each cost that grows faster than the text of the user; where it can compute a size, it charges before it makes
the value.  The budget counts work in steps, because a count is the same on a slow machine and on a busy one.
The time is the last resort, for work that is not counted.
"""

import contextlib
import contextvars
import json
import time
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..settings import Bytes, Seconds, setting
from ..shapes import Json
from .errors import LimitExceeded
from .language import MAX_VALUE_DEPTH, MEMORY, STORED, WIDE, measure, walk

MAX_TEXT = 16 * 1024 * 1024
"""Characters that a function may make; a few hundred lines of template could ask for terabytes."""
_SMALL = 65_536
"""Bytes up to which the growth of a text in JSON is not charged."""
_ESCAPED = 6
"""Factor by which a text can grow in JSON: ``\\u0000``."""
_CLOCK_EVERY = 2_000
"""Steps after which the clock is read again."""


@dataclass(frozen=True)
class BudgetLimits:
    """Limits of one request."""

    steps: int = setting(
        "max_compile_steps",
        2_000_000,
        "Maximum number of steps, of about a microsecond each, to compile the template, the environment and "
        "the nested templates of one request. A flat stack of 10,000 resources takes a few hundred "
        "thousand. A request that needs more is refused with 400; 0: no limit.",
        least=0,
    )
    bytes: Bytes = setting(
        "max_compile_bytes",
        50 * 1024 * 1024,
        "Maximum size in bytes of all values that one request computes and stores: the results of "
        "functions, and the properties, metadata and outputs of all resources. Such a request needs about "
        "twice as much memory. A request that needs more is refused with 400; 0: no limit.",
        least=0,
    )
    seconds: Seconds = setting(
        "max_compile_seconds",
        5.0,
        "Seconds of processor time that one request may take to compile, for work that is not counted in "
        "steps. Other load of the machine does not count. A request that needs more is refused with 400; 0: "
        "no limit.",
        least=0,
    )


class Budget:
    """Counter of the cost of one request; belongs to one thread.

    :ivar bytes: bytes taken so far.
    :ivar stored: the part of `bytes` that will be stored.
    :ivar steps: steps done so far.
    :param clock: seconds of this thread's processor time.
    """

    def __init__(
        self, limits: BudgetLimits | None = None, *, clock: Callable[[], float] = time.thread_time
    ) -> None:
        self.limits = BudgetLimits() if limits is None else limits
        self.bytes = 0
        self.stored = 0
        self.steps = 0
        self._clock = clock
        self._since = clock()
        self._elsewhere = 0.0
        self._next_check = self._later()

    def step(self, count: int = 1) -> None:
        """Charge so much work, before it is done.

        :raises LimitExceeded: the request takes too much work.
        """
        self.steps += count
        if self.steps >= self._next_check:
            self._check()

    def take(self, size: int) -> None:
        """Charge so many bytes, before they are made.

        :raises LimitExceeded: the request takes too many bytes.
        """
        self.bytes += size
        while self.bytes > self.limits.bytes > 0:
            self.extend(
                f"the request computes more than {self.limits.bytes} bytes of values, the service's limit"
            )

    def take_text(self, characters: int, *, is_ascii: bool = True) -> None:
        """Charge a text of so many characters.

        :raises LimitExceeded: the text is too long.
        """
        self.take(MEMORY.text + characters * (1 if is_ascii else WIDE))

    def take_list(self, length: int, each: int = 0) -> None:
        """Charge a list of so many items, of so many bytes each.

        :raises LimitExceeded: the list is too long.
        """
        self.take(MEMORY.list + length * (MEMORY.item + each))

    def take_value(self, value: Json, depth: int = 0) -> None:
        """Charge a value that exists already, part by part.

        :param depth: levels around the value.
        :raises LimitExceeded: the value is too large, or too deep.
        """
        check_depth(depth + walk(value, self.take, MEMORY, MAX_VALUE_DEPTH - depth))

    def store_value(self, value: Json, depth: int = 0) -> None:
        """Charge a value that exists already, and that will be copied and stored.

        :param depth: levels around the value.
        :raises LimitExceeded: the value is too large, or too deep.
        """
        check_depth(depth + walk(value, self.store, MEMORY, MAX_VALUE_DEPTH - depth))

    def take_stored(self, value: Json) -> None:
        """Charge a value that will be stored.  In memory it may share its parts with others, but not there.

        :raises LimitExceeded: the value is too large, or too deep.
        """
        check_depth(walk(value, self.store, STORED, MAX_VALUE_DEPTH))

    def check_text(self, characters: int) -> None:
        """Refuse a text that is too long to be made; charges nothing.

        :raises LimitExceeded: the text would become longer than MAX_TEXT.
        """
        if characters > MAX_TEXT:
            raise LimitExceeded(
                f"would make a text of {characters} characters, above the limit of {MAX_TEXT}"
            )

    def json_text(self, value: Json) -> str:
        """Return a map or list as JSON, as functions put it into texts, charged.

        :raises LimitExceeded: the JSON is too long.
        """
        size = measure(value).bytes
        self.take(size if size <= _SMALL else size * _ESCAPED)
        return json.dumps(value, sort_keys=True)

    def store(self, size: int) -> None:
        """Charge so many bytes that will be stored.

        :raises LimitExceeded: the request takes too many bytes.
        """
        self.stored += size
        self.take(size)

    def spend(self, seconds: float) -> None:
        """Charge processor time that a helper process used for the request.

        :raises LimitExceeded: the request takes too much time.
        """
        self._elsewhere += seconds
        self._check()

    def seconds_left(self) -> float:
        """Return the processor time that is left, 0 or more; infinite without a limit."""
        if not self.limits.seconds:
            return float("inf")
        return max(0.0, self.limits.seconds - self._elsewhere - (self._clock() - self._since))

    def extend(self, refusal: str) -> None:
        """Raise the limit that is exceeded, where more may be had; this budget has no more.

        :param refusal: the text of the error.
        :raises LimitExceeded: the limit stays.
        """
        raise LimitExceeded(refusal)

    def _check(self) -> None:
        while self.steps > self.limits.steps > 0:
            self.extend(f"the request takes more than {self.limits.steps} steps of work, the service's limit")
        while self.seconds_left() <= 0:
            self.extend(
                f"the request takes more than {self.limits.seconds:g} seconds of work, the service's limit"
            )
        self._next_check = self._later()

    def _later(self) -> int:
        """Return the number of steps at the next check: when the clock is due, or the limit is reached."""
        due = self.steps + _CLOCK_EVERY
        return min(due, self.limits.steps + 1) if self.limits.steps else due


class BudgetSource(typing.Protocol):
    """Gives a thread the budgets of what it computes."""

    def budget(self, limits: BudgetLimits) -> contextlib.AbstractContextManager[Budget]:
        """Return a budget for one computation, which ends with the context."""


SOURCE: contextvars.ContextVar[BudgetSource | None] = contextvars.ContextVar("budget source", default=None)
"""The source of the budgets of a thread that runs a step; None: they are its own."""


@contextlib.contextmanager
def new_budget(limits: BudgetLimits | None = None) -> Iterator[Budget]:
    """Give a computation that is part of no request a budget, from the source of this thread if it has one.

    :param limits: of the budget; None: the service's usual ones.
    """
    source = SOURCE.get()
    if source is None:
        yield Budget(limits)
    else:
        with source.budget(limits or BudgetLimits()) as of_source:
            yield of_source


@contextlib.contextmanager
def charged_at(*path: str | int) -> Iterator[None]:
    """Name the part of a document that costs too much, where nothing inside of it is named.

    :raises LimitExceeded: the part costs too much; the error has a path.
    """
    try:
        yield
    except LimitExceeded as error:
        raise located(error, *path) from error


def located(error: LimitExceeded, *path: str | int) -> LimitExceeded:
    """Return the error with a path, where it has none."""
    return error if error.path else LimitExceeded(error.message, path)


def check_depth(depth: int) -> None:
    """Refuse a value that is too many levels deep.

    :raises LimitExceeded: the value is too deep.
    """
    if depth > MAX_VALUE_DEPTH:
        raise LimitExceeded(f"a value is deeper than {MAX_VALUE_DEPTH} levels")


def json_size(value: Json) -> int:
    """Return the bytes of a value as compact JSON in UTF-8."""
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="surrogatepass"))
