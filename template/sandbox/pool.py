"""A bounded pool of helper processes."""

import contextlib
import json
import os
import select
import signal
import threading
import time
import weakref
from collections.abc import Sequence

from ...shapes import Json, JsonMap
from . import channel, evaluator
from .channel import MEMORY, SECONDS
from .errors import EvaluationError, LimitReached, UnusableResult
from .evaluator import EvaluationBudget
from .limits import MIB, WALL_CLOCK, HelperLimits
from .places import Places
from .spawn import ForkServerProcess, Helper

LEAST = 0.001
"""Seconds: less than that is no time to evaluate anything in."""
CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE)


class _Killed(Exception):
    """The helper was ended from outside, while it was idle or at work."""


class HelperPool:
    """Evaluates requests in helper processes.  Thread-safe; the first call starts them.

    A helper that reached a limit is killed, and the next call gets a new one.  When all are busy a call waits
    as long as one evaluation may take.
    """

    def __init__(self, limits: HelperLimits) -> None:
        self.limits = limits
        self.total = limits.total
        self._fork_server = ForkServerProcess(limits)
        self._reset()
        _POOLS.add(self)

    def yaql(self, expression: str, data: Json, *, budget: EvaluationBudget | None = None) -> Json:
        """Return the value of a YAQL expression; see `Evaluator`."""
        return self._ask({"do": "yaql", "expression": expression, "data": data}, budget)

    def match(self, pattern: str, text: str | None, *, budget: EvaluationBudget | None = None) -> bool:
        """Return whether the pattern matches the whole text; see `Evaluator`."""
        return bool(self._ask({"do": "match", "pattern": pattern, "text": text}, budget))

    def filter_by_start(self, pattern: str, texts: Sequence[str]) -> list[str]:
        """Return the texts whose beginning the pattern matches; see `Evaluator`."""
        matches: list[str] = self._ask({"do": "begin", "pattern": pattern, "texts": list(texts)}, None)
        return matches

    def pids(self) -> list[int]:
        """Return the process ids of the fork server and of the idle helpers."""
        with self._lock:
            return [pid for pid in (self._fork_server.pid, *(helper.pid for helper in self._idle)) if pid]

    def unfiltered(self) -> str | None:
        """Return why the system does not filter the calls of helpers; "": it does; None: not known yet."""
        return self._fork_server.unfiltered()

    def close(self) -> None:
        """End all processes; a later call starts new ones."""
        with self._lock:
            for helper in self._idle:
                helper.sock.close()
            self._idle.clear()
        self._fork_server.close()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._places = Places(self.limits.processes)
        self._idle: list[Helper] = []

    def after_fork(self) -> None:
        """Drop the helpers of the parent process; called in a process that was just forked."""
        for helper in self._idle:
            helper.sock.close()
        self._fork_server.forget()
        self._reset()

    def _ask(self, request: JsonMap, budget: EvaluationBudget | None) -> Json:
        account = evaluator.account()
        owner = None if account is None else account.owner
        budgets = [limit for limit in (account, budget) if limit is not None]
        try:
            body = json.dumps(request).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise EvaluationError(f"its data are not JSON: {error}") from error
        if len(body) > self.limits.message:
            raise LimitReached(
                f"with its data it has {len(body)} bytes as JSON; the limit is {self.limits.message}"
            )
        cpu = min([self.limits.seconds, *(budget.seconds_left() for budget in budgets)])
        if cpu < LEAST:
            raise LimitReached("the time of all expressions together is used up")
        # Before a place is taken: a project is not charged for the seconds in which the process starts.
        self._fork_server.start()
        used = 0.0
        try:
            with self._places.occupied(owner, self.limits.seconds * WALL_CLOCK):
                used = cpu  # Until the helper reports the time that it took.
                used, answer = self._answer(body, cpu)
        finally:
            for budget in budgets:
                budget.spend(used)
        return _value(answer, self.limits)

    def _answer(self, body: bytes, cpu: float) -> tuple[float, dict[str, Json]]:
        """Return the CPU time that it took, and the answer."""
        with contextlib.suppress(_Killed):
            return self._evaluate(self._take(), body, cpu)
        try:
            return self._evaluate(self._take(), body, cpu)
        except _Killed as error:
            raise LimitReached("its process was killed twice") from error

    def _take(self) -> Helper:
        """Return an idle helper that is alive, or a new one."""
        while True:
            with self._lock:
                helper = self._idle.pop() if self._idle else None
            if helper is None:
                return self._fork_server.helper()
            if not select.select([helper.sock], [], [], 0)[0]:
                return helper
            self._fork_server.end(helper)  # It never writes without a request, so readable means closed.

    def _evaluate(self, helper: Helper, body: bytes, cpu: float) -> tuple[float, dict[str, Json]]:
        wall = cpu * WALL_CLOCK
        answer = None
        deadline = time.monotonic() + wall
        try:
            channel.send(helper.sock, SECONDS.pack(cpu) + body, deadline)
            answer = channel.receive(helper.sock, self.limits.message + MIB, deadline)
        except TimeoutError:
            # A crowded host gave it less processor time than it may use; users see the same text.
            raise LimitReached(f"took more than {cpu:.3g} s") from None
        except (OSError, channel.TooLong):
            pass
        finally:
            if answer is None:
                status = self._fork_server.end(helper)
            else:
                with self._lock:
                    self._idle.append(helper)
        if answer is None:
            raise _died(status, cpu)
        return SECONDS.unpack_from(answer)[0], json.loads(answer[SECONDS.size :])


def _died(status: int, cpu: float) -> Exception:
    """Return why a helper ended while it was at work."""
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if number == signal.SIGPROF:
        return LimitReached(f"took more than {cpu:.3g} s")
    if number in CRASHES:
        return LimitReached(f"ended its process ({signal.Signals(number).name})")
    return _Killed()


def _value(answer: JsonMap, limits: HelperLimits) -> Json:
    if "value" in answer:
        return answer["value"]
    if "error" in answer:
        raise EvaluationError(answer["error"])
    if "unusable" in answer:
        raise UnusableResult(answer["unusable"])
    if answer["limit"] == MEMORY:
        raise LimitReached(f"needs more than {limits.memory // MIB} MiB of memory")
    raise LimitReached(answer["limit"])


def install(limits: HelperLimits | None = None) -> HelperPool:
    """Make a pool with these limits the evaluator of this process, and close an earlier one.

    A pool that has these limits already stays.
    """
    before = evaluator.installed()
    helper_limits = limits or HelperLimits()
    if isinstance(before, HelperPool) and before.limits == helper_limits:
        return before
    pool = HelperPool(helper_limits)
    evaluator.install(pool)
    if isinstance(before, HelperPool):
        before.close()
    return pool


def _after_fork() -> None:
    for pool in list(_POOLS):
        pool.after_fork()


_POOLS: "weakref.WeakSet[HelperPool]" = weakref.WeakSet()
os.register_at_fork(after_in_child=_after_fork)
