"""Accounts: the project that an evaluation belongs to, and the CPU time that its request has left."""

import contextlib
import contextvars
from collections.abc import Iterator


class Account:
    """The evaluations of one request, or of one step of a resource.  Belongs to one thread.

    :ivar owner: the project, which may keep half of the helpers busy at most.
    """

    def __init__(self, owner: str, seconds: float) -> None:
        self.owner = owner
        self._left = seconds

    def seconds_left(self) -> float:
        """Return the seconds that are left; 0 or less when all are spent."""
        return self._left

    def spend(self, seconds: float) -> None:
        """Charge CPU time."""
        self._left -= seconds


_current: contextvars.ContextVar[Account | None] = contextvars.ContextVar("account", default=None)


@contextlib.contextmanager
def charged_to(owner: str, seconds: float) -> Iterator[None]:
    """Charge what this thread evaluates in the body to a new account.

    :param seconds: CPU time of all evaluations in the body together.
    """
    token = _current.set(Account(owner, seconds))
    try:
        yield
    finally:
        _current.reset(token)


def current() -> Account | None:
    """Return the account of this thread; None outside of `charged_to`."""
    return _current.get()
