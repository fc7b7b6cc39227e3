"""Results that could not be stored: one that broke its batch's transaction must not take the others along."""

import collections
import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence

from ...db.errors import RowLocked, Unavailable
from ...db.ids import TaskId
from ...db.work.claim import Claimant
from ..steps.outcomes import StepResult
from ..steps.runner import StepRunner
from .claimed import claim_lines
from .timers import TimerQueue

LOG = logging.getLogger(__name__)
LOCKED_OUT = 2.0
"""Seconds after which a result is tried again of which another transaction has locked a row."""


class UnstorableResults:
    """After an error that is not the database's absence, each result of the batch is tried alone; one that
    breaks alone is replaced by a failure, and if that breaks too it is dropped.  One that others lock out is
    put off, so that it delays none of the others.  For the mover's thread.

    :ivar is_trying: one is tried alone now.
    """

    def __init__(self, runner: StepRunner, monotonic: Callable[[], float]) -> None:
        self._runner = runner
        self._monotonic = monotonic
        self._locked: TimerQueue[StepResult] = TimerQueue()
        self._locked_out: dict[tuple[TaskId, int], StepResult] = {}
        self._waiting: collections.deque[tuple[StepResult, bool]] = collections.deque()
        self._guilty = self.is_trying = False
        self._dropped: set[tuple[TaskId, int]] = set()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def claims(self) -> set[tuple[TaskId, int]]:
        """Return the claims (task, attempt) whose results wait here, or were dropped: nobody else gets those
        before their time is over."""
        return self._dropped | self._locked_out.keys() | {_claim(result) for result, _ in self._waiting}

    def next(self, who: Claimant | None) -> StepResult | None:
        """The next one to be tried alone."""
        self._guilty = self.is_trying = False
        if who is None:
            return None
        for result in self._locked.pop_due(self._monotonic(), len(self._locked)):
            del self._locked_out[_claim(result)]
            self._waiting.append((result, False))
        if not self._waiting:
            return None
        result, self._guilty = self._waiting.popleft()
        self.is_trying = True
        return self._runner.unstorable(result.claim, who) if self._guilty else result

    def next_at(self) -> float | None:
        """Return the moment at which one is tried again that others have locked out; None: there is none."""
        return self._locked.next_at()

    @contextlib.contextmanager
    def watch(self, batch: Sequence[StepResult]) -> Iterator[None]:
        """Around the transaction that stores the batch; lets every error pass."""
        stored = False
        try:
            yield
            stored = True
        except RowLocked:
            stored = True
            self._put_off(batch)
            raise
        except Unavailable:
            stored = True  # Its absence says nothing about the batch; the pipeline keeps it.
            raise
        except MemoryError:
            # One alone is given back, so that another conductor may try.
            stored = len(batch) == 1
            raise
        finally:
            if not stored:
                self._suspect(batch)

    def _put_off(self, batch: Sequence[StepResult]) -> None:
        if len(batch) > 1:
            self._waiting.extend((result, False) for result in batch)
        for result in batch if len(batch) == 1 else ():
            with claim_lines(result.claim):
                LOG.warning("The result of task %s is locked out, retrying", result.claim.task.id)
            self._locked_out[_claim(result)] = result
            self._locked.add(self._monotonic() + LOCKED_OUT, result)

    def _suspect(self, batch: Sequence[StepResult]) -> None:
        if len(batch) > 1:
            self._waiting.extend((result, False) for result in batch)
        elif batch:
            with claim_lines(batch[0].claim):
                self._suspect_one(batch[0])

    def _suspect_one(self, result: StepResult) -> None:
        if self._guilty:
            self._dropped.add(_claim(result))
            LOG.error("Task %s is given up: not even its failure can be stored", result.claim.task.id)
        else:
            LOG.error("The result of task %s cannot be stored", result.claim.task.id)
            self._waiting.appendleft((result, True))


def _claim(result: StepResult) -> tuple[TaskId, int]:
    return result.claim.task.id, result.claim.task.attempt
