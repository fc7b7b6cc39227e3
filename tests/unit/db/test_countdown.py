"""The count-down of tasks: a task begins when the last of its predecessors has ended, and no earlier."""

import types
import typing

import pytest
from stoker.db.work.countdown import FinishedTask, is_last, open_tasks
from stoker.db.work.losses import is_last_chance

Json = typing.Any


@pytest.mark.parametrize(
    ("pending", "ended", "begins"),
    [(1, 1, True), (2, 1, False), (2, 2, True), (3, 2, False), (3, 3, True), (1, 2, True), (0, 1, True)],
)
def test_a_task_begins_after_its_last_predecessor(pending: int, ended: int, begins: bool) -> None:
    task: Json = types.SimpleNamespace(pending=pending)
    assert is_last(task, ended) is begins


@pytest.mark.parametrize(
    ("failure", "aborts", "inherited", "fails"),
    [
        (None, False, False, False),
        (None, True, False, False),
        ("why", False, False, True),
        ("why", False, True, False),
        ("why", True, True, True),
    ],
)
def test_a_traversal_fails_with_a_task_that_began_for_it(
    failure: str | None, aborts: bool, inherited: bool, fails: bool
) -> None:
    task: Json = types.SimpleNamespace(inherited=inherited)
    assert FinishedTask(task, failure, aborts=aborts).fails is fails


@pytest.mark.parametrize(
    ("losses", "most", "is_last"), [(0, 3, False), (1, 3, False), (2, 3, True), (0, 1, True)]
)
def test_a_task_has_its_last_chance_before_the_last_loss(losses: int, most: int, is_last: bool) -> None:
    task: Json = types.SimpleNamespace(losses={"hosts": ["a"] * losses} if losses else None)
    assert is_last_chance(task, most) is is_last


def test_a_traversal_is_counted_down_by_those_of_the_ended_tasks_that_it_counts() -> None:
    numbers: list[Json] = [7, None, 8, 7]
    ended = [FinishedTask(types.SimpleNamespace(finish_id=number)) for number in numbers]  # type: ignore[arg-type]
    assert open_tasks(ended) == {7: 2, 8: 1}
