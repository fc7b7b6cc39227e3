"""Counts the tasks in each state."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..ids import TaskId
from ..schema import tables

_PAGE = (
    sa.select(tables.task.c.id, tables.task.c.shard, tables.task.c.state)
    .where(tables.task.c.id > sa.bindparam("after"))
    .order_by(tables.task.c.id)
    .limit(sa.bindparam("most"))
)


def page(conn: Connection, *, after: TaskId, limit: int) -> Sequence[tuple[TaskId, int, str]]:
    """(task, shard, state) of tasks in id order, at most so many, behind `after`."""
    rows = conn.execute(_PAGE, {"after": after, "most": limit})
    return [(TaskId(task_id), shard, state) for task_id, shard, state in rows]
