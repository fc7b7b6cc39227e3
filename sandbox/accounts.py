"""Whose evaluations these are, and what they may take together."""

import contextlib
import contextvars
import typing
from collections.abc import Iterator

from .limits import HelperLimits


class EvaluationBudget(typing.Protocol):
    """What is left of a larger budget of CPU time."""

    def seconds_left(self) -> float:
        """Return the seconds that are left; 0 or less: nothing is."""

    def spend(self, seconds: float) -> None:
        """Take seconds off."""


class Account:
    """The evaluations of one request, or of one step of a resource.  Belongs to one thread.

    :ivar owner: the project, of which half of the helpers are busy at the most.
    """

    def __init__(self, owner: str, seconds: float) -> None:
        self.owner = owner
        self._left = seconds

    def seconds_left(self) -> float:
        """See Budget."""
        return self._left

    def spend(self, seconds: float) -> None:
        """See Budget."""
        self._left -= seconds


_current: contextvars.ContextVar[Account | None] = contextvars.ContextVar("account", default=None)


@contextlib.contextmanager
def charged_to(owner: str, limits: HelperLimits) -> Iterator[None]:
    """Charge what this thread has evaluated in the body to one account."""
    token = _current.set(Account(owner, limits.total))
    try:
        yield
    finally:
        _current.reset(token)


def current() -> Account | None:
    """Return the account of this thread; None: nobody's."""
    return _current.get()
