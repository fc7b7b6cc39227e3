"""The walk of a duty over its objects, some of which other transactions have locked."""

import logging
import types
import typing
from collections.abc import Callable, Sequence

import pytest
from stoker.conductor.duties.context import DutyContext
from stoker.conductor.duties.slice_scan import SliceScan
from stoker.db.errors import DamagedRow, RowLocked, TooSlow

LOCKED = RowLocked("locked")


class Rows:
    """A database whose transactions fail where one of their objects has an error.

    :ivar errors: object -> error of its transaction.
    :ivar tried: the objects of each transaction.
    """

    def __init__(self) -> None:
        self.now = 100.0
        self.errors: dict[str, Exception] = {}
        self.tried: list[str] = []
        context = types.SimpleNamespace(database=self, monotonic=lambda: self.now)
        self.scan = SliceScan(typing.cast(DutyContext, context), "Thing")

    def read(self, query: Callable[..., typing.Any]) -> typing.Any:
        return query(None)

    def write(self, transaction: Callable[..., typing.Any], *, brief: bool) -> typing.Any:
        assert brief, "it waits for no lock"
        return transaction(None)

    def run(self, objects: str, together: int = 2) -> tuple[list[str], list[str]]:
        """Run transactions over objects, a letter for each; return those that were tried, and succeeded."""
        self.tried.clear()

        def write(_conn: object, chunk: Sequence[str]) -> str:
            self.tried.append("".join(chunk))
            for name in chunk:
                if name in self.errors:
                    raise self.errors[name]
            return "".join(chunk)

        done = list(self.scan.run(list(objects), write, key=lambda name: name, together=together))
        return list(self.tried), done


def test_each_page_is_read_behind_the_last_object_until_one_is_not_full() -> None:
    for count, pages in ((5, ["ab", "cd", "e"]), (4, ["ab", "cd", ""]), (0, [""])):
        names = "abcdefgh"[:count]
        reads: list[str] = []

        def read(_conn: object, after: str, names: str = names, reads: list[str] = reads) -> list[str]:
            reads.append(after)
            return [name for name in names if name > after][:2]

        scanned = list(Rows().scan.pages(read, start="", position=lambda name: name, size=2))
        assert ["".join(page) for page in scanned] == pages
        assert reads == ["", "b", "d"][: len(pages)]


@pytest.mark.parametrize("error", [LOCKED, TooSlow("slow"), DamagedRow("damaged")])
def test_objects_beside_a_locked_one_are_retried_one_by_one_after_all_others(error: Exception) -> None:
    rows = Rows()
    rows.errors["b"] = error
    assert rows.run("abcde") == (["ab", "cd", "e", "a", "b"], ["cd", "e", "a"])
    assert rows.run("abc") == (["ac"], ["ac"]), "one that is still locked pauses"


def test_a_single_object_that_is_locked_is_not_retried_at_once() -> None:
    rows = Rows()
    rows.errors["c"] = LOCKED
    assert rows.run("abc") == (["ab", "c"], ["ab"])


def test_a_locked_object_is_retried_last_and_ever_more_seldom() -> None:
    rows = Rows()
    rows.errors["b"] = LOCKED
    began = rows.now
    tried = []
    for step in range(120):
        rows.now = began + step / 4
        attempts, done = rows.run("abc", 5)
        assert "".join(done) == "ac"
        if attempts[-1] == "b":
            tried.append(rows.now - began)
    assert tried == [0.5, 1.5, 3.5, 7.5, 15.5, 23.5]
    rows.errors.clear()
    rows.now = began + 31.5
    assert rows.run("abc", 5) == (["ac", "b"], ["ac", "b"])
    rows.errors["b"] = LOCKED
    assert rows.run("b") == (["b"], [])
    rows.now += 0.5
    assert rows.run("b") == (["b"], []), "its pauses begin anew"


def test_one_that_was_done_elsewhere_is_forgotten() -> None:
    rows = Rows()
    rows.errors["b"] = LOCKED
    for elapsed, attempts in ((0.0, ["b"]), (0.5, ["b"])):
        rows.now = 100.0 + elapsed
        assert rows.run("b")[0] == attempts
    rows.now = 101.5 + 16.0
    rows.run("a")
    assert rows.run("ab")[0] == ["a", "b"], "it is still known as locked"
    rows.now += 1.0 + 2.0 + 16.1
    rows.run("a")
    assert rows.run("ab")[0] == ["ab", "a", "b"]


@pytest.mark.parametrize(
    ("error", "level", "times"), [(LOCKED, logging.WARNING, [3]), (DamagedRow("odd"), logging.ERROR, [1])]
)
def test_contention_is_logged_the_third_time_and_damage_the_first(
    caplog: pytest.LogCaptureFixture, error: Exception, level: int, times: list[int]
) -> None:
    rows = Rows()
    rows.errors["b"] = error
    logged = []
    for time in range(1, 6):
        caplog.clear()
        rows.run("b")
        logged += [(time, record.levelno) for record in caplog.records]
        rows.now += 8.0
    assert logged == [(time, level) for time in times]
