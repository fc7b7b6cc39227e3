"""The count-down of tasks: a task begins when the last of its predecessors has ended, and no earlier."""

import types
import typing

import pytest
from stoker.db.work.countdown import is_last

Json = typing.Any


@pytest.mark.parametrize(
    ("pending", "ended", "begins"),
    [(1, 1, True), (2, 1, False), (2, 2, True), (3, 2, False), (3, 3, True), (1, 2, True), (0, 1, True)],
)
def test_a_task_begins_after_its_last_predecessor(pending: int, ended: int, begins: bool) -> None:
    task: Json = types.SimpleNamespace(pending=pending)
    assert is_last(task, ended) is begins
