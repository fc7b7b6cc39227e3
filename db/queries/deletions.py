"""The resources that the deletion of a stack has still to delete, in one narrow statement."""

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..ids import TaskId, TraversalId
from ..schema import tables
from ..states import FINAL, TaskKind


@dataclass(frozen=True)
class OpenDeletion:
    """A task that has still to delete a resource.

    :ivar plugin: the resource's type after the environment's mapping.
    :ivar physical_id: its id in the cloud; None: it has none.
    :ivar successors: tasks that wait for this one.
    :ivar is_certain: whether neither a deletion policy nor a breakpoint keeps the resource's thing.
    """

    task_id: TaskId
    plugin: str
    physical_id: str | None
    successors: Sequence[TaskId]
    is_certain: bool


def open_deletions(conn: Connection, traversal: TraversalId) -> list[OpenDeletion]:
    """Return the unfinished deletions of a traversal, if it deletes its whole stack; else none."""
    t = tables.task
    r = tables.resource
    s = tables.stack
    query = (
        sa.select(t.c.id, t.c.successors, t.c.definition, t.c.hooks, t.c.stepped, r.c.plugin, r.c.physical_id)
        .join(r, r.c.id == t.c.resource_id)
        .join(s, (s.c.id == t.c.stack_id) & (s.c.traversal == t.c.traversal))
        .where(
            t.c.traversal == traversal,
            t.c.kind == TaskKind.DELETE,
            t.c.state.not_in(FINAL),
            s.c.action == "DELETE",
        )
        .order_by(t.c.id)
    )
    return [
        OpenDeletion(
            row.id,
            row.plugin,
            row.physical_id,
            [TaskId(task_id) for task_id in row.successors],
            not ((row.definition or {}).get("retain") or row.hooks or row.stepped),
        )
        for row in conn.execute(query)
    ]
