"""The evaluator of users' expressions, the one that this process uses, and the accounts that it charges.

A process has one evaluator, not one for each collaborator: a program with three conductors and an API has as
many helpers as one with a conductor.  Functions of templates stay functions of their arguments; the place of
their computation shows in no result.  A program installs its evaluator when it starts (`pool.install`).
Without one nothing is evaluated, so that no expression of a user ever runs in this process.
"""

import contextlib
import contextvars
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...shapes import Json


class EvaluationBudget(typing.Protocol):
    """CPU time that several evaluations may take together."""

    def seconds_left(self) -> float:
        """Return the seconds that are left; 0 or less when the budget is spent."""

    def spend(self, seconds: float) -> None:
        """Charge CPU time."""


class Evaluator(typing.Protocol):
    """Evaluates expressions and patterns of users, outside of this process.  Thread-safe.

    Each method charges `budget`, if one is given, and the account of the calling thread (`charged_to`).

    :ivar total: seconds of CPU time that the evaluations of one account may take together.

    :raises EvaluationError: the expression has no value, or the pattern is not a regular expression.
    :raises LimitReached: the evaluation exceeded a limit.
    :raises HelperUnavailable: no helper process is free, or none can be started.
    """

    total: float

    def yaql(self, expression: str, data: Json, *, budget: EvaluationBudget | None = None) -> Json:
        """Return the value of a YAQL expression."""

    def match(self, pattern: str, text: str | None, *, budget: EvaluationBudget | None = None) -> bool:
        """Return whether the pattern matches the whole text; None as text only compiles the pattern."""

    def filter_by_start(self, pattern: str, texts: Sequence[str]) -> list[str]:
        """Return the texts whose beginning the pattern matches."""


class _Process:
    """The evaluator of this process."""

    evaluator: Evaluator | None = None


def install(evaluator: Evaluator) -> None:
    """Make this the evaluator of the process.  Called by a program's main thread before it serves."""
    _Process.evaluator = evaluator


def installed() -> Evaluator | None:
    """Return the evaluator of the process, None before one is installed."""
    return _Process.evaluator


def current() -> Evaluator:
    """Return the evaluator of the process.

    :raises RuntimeError: no evaluator is installed, by an error in the program.
    """
    if _Process.evaluator is None:
        raise RuntimeError("no evaluator is installed: call stoker.template.sandbox.pool.install() first")
    return _Process.evaluator


@dataclass
class Account:
    """The evaluations of one request, or of one step of a resource.  Belongs to one thread.

    :ivar owner: the project, which may keep half of the helpers busy at most.
    """

    owner: str
    _remaining: float

    def seconds_left(self) -> float:
        """Return the seconds that are left; 0 or less when all are spent."""
        return self._remaining

    def spend(self, seconds: float) -> None:
        """Charge CPU time."""
        self._remaining -= seconds


_account: contextvars.ContextVar[Account | None] = contextvars.ContextVar("account", default=None)


@contextlib.contextmanager
def charged_to(owner: str, seconds: float | None = None) -> Iterator[None]:
    """Charge the evaluations of this thread in the body to a project, on a new account.

    It counts against the project's share of the helpers, and against the CPU time that all evaluations of one
    request, or of one step of a resource, may take together.

    :param seconds: the CPU time of the account; None: as much as the evaluator allows.
    """
    token = _account.set(Account(owner, current().total if seconds is None else seconds))
    try:
        yield
    finally:
        _account.reset(token)


def account() -> Account | None:
    """Return the account of this thread; None outside of `charged_to`."""
    return _account.get()
