"""Results that could not be stored: one that broke its batch's transaction must not take the others along."""

import collections
import contextlib
import logging
from collections.abc import Iterator, Sequence

from ..db.claims import Claimant
from ..db.errors import Unavailable
from ..db.ids import TaskId
from .attempt import StepResult
from .holdings import claim_lines
from .steps import StepRunner

LOG = logging.getLogger(__name__)


class Suspects:
    """After an error that is not the database's absence, each result of the batch is tried alone; one that
    breaks alone is replaced by a failure, and if that breaks too it is dropped.  For the mover's thread."""

    def __init__(self, runner: StepRunner) -> None:
        self._runner = runner
        self._waiting: collections.deque[tuple[StepResult, bool]] = collections.deque()
        self._guilty = False
        self._dropped: set[tuple[TaskId, int]] = set()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def claims(self) -> set[tuple[TaskId, int]]:
        """Return the claims (task, attempt) whose results wait here, or were dropped: nobody else gets those
        before their time is over."""
        return self._dropped | {_claim(result) for result, _ in self._waiting}

    def next(self, who: Claimant | None) -> StepResult | None:
        """The next one to be tried alone."""
        self._guilty = False
        if not self._waiting or who is None:
            return None
        result, self._guilty = self._waiting.popleft()
        return self._runner.unstorable(result.claim, who) if self._guilty else result

    @contextlib.contextmanager
    def watch(self, batch: Sequence[StepResult]) -> Iterator[None]:
        """Around the transaction that stores the batch; lets every error pass."""
        stored = False
        try:
            yield
            stored = True
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
