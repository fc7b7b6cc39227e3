"""Watches who writes what quotas count: only `usage.write`, which changes the counters with it.

A test may write any row itself, to damage a counter.
"""

import typing
from collections.abc import Mapping

import sqlalchemy as sa
from harness.state_writers import TESTS, callers, written_columns
from sqlalchemy.engine import Connection, Engine
from stoker.db import usage
from stoker.db.schema import tables

COUNTED: Mapping[sa.Table, frozenset[str]] = {
    tables.stack: frozenset({"project_id", "live_name", "goal_size", "tree_resources", "excess_resources"}),
    tables.snapshot: frozenset({"stack_id", "goal_size"}),
    tables.software_config: frozenset({"project_id", "size"}),
    tables.software_deployment: frozenset({"project_id", "input_size", "output_size"}),
    tables.project: frozenset(usage.COUNTERS),
}
"""Columns that the sums of `usage.py` read; whoever inserts or deletes a row writes all of them."""


class CountWatch:
    """Collects the writes of what is counted by others, in all of this process, while it is entered.

    :ivar offences: each with its table, and the file of the function that has executed it.
    """

    def __init__(self) -> None:
        self.offences: set[str] = set()

    def __enter__(self) -> typing.Self:
        sa.event.listen(Engine, "before_execute", self._look)
        return self

    def __exit__(self, *_: object) -> None:
        sa.event.remove(Engine, "before_execute", self._look)

    def _look(self, conn: Connection, statement: sa.ClauseElement, *_: object) -> None:
        if not isinstance(statement, sa.Insert | sa.Update | sa.Delete):
            return
        # A statement that bulk.run has joined has the others beside it.
        parts = [statement, *(cte.element for cte in getattr(statement, "_independent_ctes", ()))]
        for table in filter(None, map(_counted, parts)):
            files = list(callers())
            # The functions of the house on the stack, without this watch.
            if not files[1].startswith(TESTS) and usage.__file__ not in files:
                self.offences.add(f"{table}, by {files[1]}")


def _counted(statement: object) -> str:
    """Return the table of which a statement writes what is counted; "": it writes nothing such."""
    if not isinstance(statement, sa.Insert | sa.Update | sa.Delete):
        return ""
    columns = COUNTED.get(typing.cast(sa.Table, statement.table), frozenset())
    if isinstance(statement, sa.Update):
        columns &= written_columns(statement)
    elif statement.table is tables.project:  # A new row has nothing yet, and none is deleted.
        columns = frozenset()
    return statement.table.description if columns else ""
