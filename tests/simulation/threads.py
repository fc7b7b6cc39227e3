"""Threads of a pool that take turns with the test: a step runs until it has ended or hangs in a call."""

import threading
from collections.abc import Callable

_CURRENT = threading.local()


class Killed(BaseException):
    """The process of the step was killed."""


class Job:
    """One step.

    :ivar hangs: it waits in a call until `go_on`.
    """

    def __init__(self, function: Callable[[], object]) -> None:
        self._call = function
        self._told = threading.Event()
        self._go = threading.Event()
        self._killed = False
        self.hangs = False

    def run(self) -> None:
        """Begin; returns when it has ended or hangs."""
        threading.Thread(target=self._run, daemon=True).start()
        self._told.wait()

    def go_on(self, *, killed: bool = False) -> None:
        """The call that it hangs in returns; or its process is killed."""
        self._killed = killed
        self._told.clear()
        self._go.set()
        self._told.wait()

    def _run(self) -> None:
        _CURRENT.job = self
        try:
            self._call()
        except Killed:
            pass
        finally:
            self.hangs = False
            self._told.set()

    def hang(self) -> None:
        """In the step's thread."""
        self.hangs = True
        self._told.set()
        self._go.wait()
        self._go.clear()
        self.hangs = False
        if self._killed:
            raise Killed


def hang() -> None:
    """Hang in a call of the step that runs in this thread."""
    _CURRENT.job.hang()
