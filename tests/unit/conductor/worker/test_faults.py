"""Retries of what others have locked, and results that break the transaction that stores them."""

import logging
import types
import typing
from collections.abc import Callable, Sequence

import pytest
from stoker.conductor.steps.results import StepResult, Steps
from stoker.conductor.worker.claims import TimerQueue
from stoker.conductor.worker.faults import LockedOut, LoneResult, UnstorableResults
from stoker.db.engine import Database
from stoker.db.errors import RowLocked, Unavailable
from stoker.db.ids import MemberId
from stoker.db.work.claim import Claimant

WHO = Claimant(MemberId("one/i"), "one")


def test_what_is_due_is_taken_out_in_the_order_of_its_moments() -> None:
    timers: TimerQueue[str] = TimerQueue()
    for moment, item in ((3.0, "c"), (1.0, "a"), (2.0, "b"), (1.0, "a2"), (4.0, "d")):
        timers.add(moment, item)
    assert timers.pop_due(0.9) == []
    assert timers.pop_due(2.0, most=1) == ["a"]
    assert timers.pop_due(2.0) == ["a2", "b"]
    assert (len(timers), sorted(timers.items())) == (2, ["c", "d"])


class Rows:
    """A database in which some rows are locked.

    :ivar locked: the locked ones; None: the database is unavailable.
    :ivar tries: what each transaction was to write.
    """

    def __init__(self) -> None:
        self.now = 100.0
        self.locked: str | None = ""
        self.tries: list[str] = []
        self.entries: LockedOut[str] = LockedOut(lambda: self.now, lambda name: name.lower())

    def write(self, transaction: Callable[[object], str], *, brief: bool) -> str:
        assert brief, "it waits for no lock"
        return transaction(None)

    def run(self, fresh: str) -> list[str]:
        """Return the chunks that succeeded, each as its letters."""

        def write(_conn: object, chunk: Sequence[str]) -> str:
            self.tries.append("".join(chunk))
            if self.locked is None:
                raise Unavailable("away")
            if set(chunk) & set(self.locked):
                raise RowLocked("locked")
            return "".join(chunk)

        chunks = list(self.entries.run(typing.cast(Database, self), list(fresh), write))
        assert all("".join(chunk) == text for chunk, text in chunks)
        return [text for _, text in chunks]

    def attempts(self, seconds: float) -> list[float]:
        """Return the moments at which what is locked is tried again."""
        began = self.now
        moments = []
        while self.now < began + seconds:
            before = dict(self.entries.times)
            self.run("")
            if self.entries.times != before:
                moments.append(round(self.now - began, 2))
            self.now = round(self.now + 0.1, 2)
        return moments


def test_of_those_that_share_a_transaction_one_is_retried_ever_more_seldom(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rows = Rows()
    rows.locked = "b"
    assert rows.run("abc") == ["a", "c"]
    assert rows.entries.names == {"b"}
    assert rows.run("bd") == ["d"]
    assert rows.tries == ["abc", "a", "b", "c", "d"], "one that waits is not tried before its moment"
    assert caplog.text == ""
    assert rows.attempts(30.0) == [0.1, 0.3, 0.7, 1.5, 3.1, 6.3, 12.7, 20.7, 28.7]
    assert [record.message for record in caplog.records] == [
        "Task b is locked by another transaction, retrying"
    ]
    rows.locked = ""
    rows.now += 8.0
    assert rows.run("e") == ["e", "b"]
    assert (rows.entries.names, rows.entries.times) == (set(), {})


def test_a_lock_that_is_met_three_times_in_a_row_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    rows = Rows()
    counts = []
    for _ in range(5):
        rows.entries.retry_later("b")
        counts.append(len(caplog.records))
        rows.now += 8.0
        rows.entries.due()
    assert counts == [0, 0, 1, 1, 1]


def test_what_waits_for_the_database_is_due_at_once_and_shares_a_transaction_again() -> None:
    rows = Rows()
    rows.locked = "x"
    rows.run("x")
    rows.now += 0.1
    rows.locked = None
    with pytest.raises(Unavailable):
        rows.run("ab")
    rows.locked = ""
    assert rows.run("abc") == ["abc", "x"]


def test_a_key_that_waits_is_added_once() -> None:
    rows = Rows()
    for name in ("b", "B"):
        rows.entries.retry_later(name)
    assert rows.entries.times == {"b": 1}
    assert rows.entries.due() == []
    rows.now += 0.1
    assert rows.entries.due() == ["b"]
    assert rows.entries.names == set()


def test_what_was_tried_and_is_not_locked_is_forgotten() -> None:
    rows = Rows()
    rows.entries.settle("abc", "ab")
    assert rows.entries.times == {"a": 1, "b": 1}
    rows.now += 0.1
    rows.entries.due()
    rows.entries.settle("ab", "b")
    assert rows.entries.times == {"b": 2}


def result(number: int, *, detached: bool = False) -> StepResult:
    task = types.SimpleNamespace(id=number, attempt=1, request=None, traversal="t", stack_id="s")
    claim: typing.Any = types.SimpleNamespace(task=task, project_id="p")
    return StepResult(claim, None, detached=detached)


class Failing:
    """Steps that only make failures."""

    def unstorable(self, claim: typing.Any, who: Claimant) -> StepResult:
        assert who is WHO
        return StepResult(claim, None, progress="failure")


class Scene:
    def __init__(self) -> None:
        self.now = 100.0
        self.results = UnstorableResults(typing.cast(Steps, Failing()), lambda: self.now)

    def store(self, batch: Sequence[StepResult], error: Exception, *, is_guilty: bool = False) -> None:
        with pytest.raises(type(error)), self.results.watch(batch, is_guilty=is_guilty):
            raise error

    def next(self) -> tuple[int, object, bool] | None:
        found = self.results.next(WHO)
        if found is None:
            return None
        return found.result.claim.task.id, found.result.progress, found.is_guilty


def test_results_of_a_batch_that_breaks_are_tried_alone_and_the_guilty_one_fails_then_is_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = Scene()
    first, second = result(1, detached=True), result(2)
    scene.store([first, second], ValueError("broken"))
    assert scene.results.claims() == {(1, 1), (2, 1)}
    assert scene.next() == (1, None, False)
    scene.store([first], ValueError("broken"))
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    guilty = scene.results.next(WHO)
    assert guilty is not None
    assert (guilty.is_guilty, guilty.result.progress, guilty.result.detached) == (True, "failure", True)
    scene.store([guilty.result], ValueError("broken"), is_guilty=True)
    assert "Task 1 is dropped" in caplog.text
    assert scene.next() == (2, None, False)
    assert scene.next() is None
    assert scene.results.claims() == {(1, 1)}, "nobody else gets the one that was dropped"


def test_a_transaction_that_succeeds_or_meets_no_database_blames_nobody() -> None:
    scene = Scene()
    with scene.results.watch([result(1), result(2)], is_guilty=False):
        pass
    scene.store([result(1), result(2)], Unavailable("away"))
    scene.store([], ValueError("nothing to store"))
    assert scene.results.claims() == set()


def test_memory_that_is_short_divides_a_batch_and_blames_no_single_result() -> None:
    scene = Scene()
    scene.store([result(1)], MemoryError())
    assert scene.results.claims() == set()
    scene.store([result(1), result(2)], MemoryError())
    assert [scene.next(), scene.next(), scene.next()] == [(1, None, False), (2, None, False), None]


def test_one_that_is_locked_out_waits_for_two_seconds_and_delays_no_other() -> None:
    scene = Scene()
    scene.store([result(1), result(2)], RowLocked("locked"))
    assert [scene.next(), scene.next()] == [(1, None, False), (2, None, False)]
    scene.store([result(1)], RowLocked("locked"))
    assert scene.results.claims() == {(1, 1)}
    scene.results.waiting.append(LoneResult(result(3)))
    scene.now = 101.9
    assert [scene.next(), scene.next()] == [(3, None, False), None]
    scene.now = 102.0
    assert [scene.next(), scene.next()] == [(1, None, False), None]
    assert scene.results.locked_out == {}
