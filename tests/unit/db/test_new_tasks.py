"""The rows of new tasks."""

import types
import typing

from stoker.db.states import REPEATED_TOGETHER
from stoker.db.work.tasks import new_rows

Json = typing.Any


def test_the_hints_of_many_new_tasks_are_repeated_one_after_another() -> None:
    instants = [None, *[5.0] * (REPEATED_TOGETHER + 1)]
    tasks: Json = [types.SimpleNamespace(due_at=at, to_row=lambda at=at: {"due_at": at}) for at in instants]
    assert [row["due_at"] for row in new_rows(tasks)] == [None, *[5.0] * REPEATED_TOGETHER, 6.0]
