"""Watches who writes the states of tasks and of stacks: only the functions that keep to the tables.

A test may write any state itself, to damage a row.
"""

import pathlib
import sys
import types
import typing
from collections.abc import Iterator, Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from stoker.db import bulk
from stoker.db.work import stack_transitions, transitions

TESTS = str(pathlib.Path(__file__).parents[1])


class Writer(typing.NamedTuple):
    """The module that alone updates some columns of a table."""

    columns: frozenset[str]
    module: types.ModuleType


WRITERS: Mapping[str, Writer] = {
    "task": Writer(frozenset({"state"}), transitions),
    "stack": Writer(frozenset({"action", "status"}), stack_transitions),
}


class StateWatch:
    """Collects the updates of states by others, of all statements of this process, while it is entered.

    :ivar offences: each with its columns and the function that has executed it.
    """

    def __init__(self) -> None:
        self.offences: set[str] = set()

    def __enter__(self) -> typing.Self:
        sa.event.listen(Engine, "before_execute", self._look)
        return self

    def __exit__(self, *_: object) -> None:
        sa.event.remove(Engine, "before_execute", self._look)

    def _look(self, conn: Connection, statement: sa.ClauseElement, *_: object) -> None:
        if not isinstance(statement, sa.Update) or not isinstance(statement.table, sa.Table):
            return
        writer = WRITERS.get(statement.table.name)
        if writer is None or not (written := writer.columns & written_columns(statement)):
            return
        # A statement of the module that was put off is executed elsewhere.
        if not any(statement is form for value in vars(writer.module).values() for form in forms(value)):
            files = list(callers())
            if not files[1].startswith(TESTS) and writer.module.__file__ not in files:
                self.offences.add(f"{', '.join(sorted(written))} of {statement.table.name}, by {files[1]}")


def forms(value: object) -> Iterator[object]:
    """Yield a value of a module and, of an update by ids, its form for a single id."""
    yield value
    if isinstance(value, sa.Update):
        yield bulk.by_ids(value, {name: [0] for name in bulk.lists_of(value)})[0]


def written_columns(statement: sa.Update) -> set[str]:
    """Return the keys of the columns that an update sets."""
    return {str(getattr(column, "key", column)) for column in statement._values or ()}


def callers() -> Iterator[str]:
    """Yield the files of the functions on the stack, the innermost first, but those of libraries."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if "site-packages" not in pathlib.Path(frame.f_code.co_filename).parts:
            yield frame.f_code.co_filename
        frame = frame.f_back
