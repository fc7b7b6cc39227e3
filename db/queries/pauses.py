"""The waits of a stack for its user or for conductors, in one statement for the view of a stack."""

import typing

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..ids import StackId
from ..rows import Stack
from ..schema import tables
from ..states import Status, TaskState

_S = tables.stack.c
_T = tables.task.c
_HELD = (
    sa.select(_T.id)
    .join_from(tables.stack, tables.task, _T.traversal == _S.traversal)
    .where(_S.root_id == sa.bindparam("root"), _S.status == Status.IN_PROGRESS, _T.state == TaskState.HELD)
)
"""By the index on traversal and state: many tasks that run cost nothing."""
_STOPPING = sa.select(_T.id).where(
    _T.stack_id == sa.bindparam("stack"), _T.stop_by.is_not(None), _T.member > ""
)
_PAUSES = sa.select(sa.exists(_HELD).label("held"), sa.exists(_STOPPING).label("stopping"))


class Pauses(typing.NamedTuple):
    """The reasons for which a stack waits.

    :ivar held: whether a task of its tree, in it or around it, is held at a breakpoint.
    :ivar stopping: whether a step of its own was cancelled and has not ended.
    """

    held: bool
    stopping: bool


def pauses_of(conn: Connection, stack: Stack) -> Pauses:
    """Return the reasons for which a stack waits."""
    parameters: dict[str, StackId] = {"root": stack.root_id, "stack": stack.id}
    held, stopping = conn.execute(_PAUSES, parameters).one()
    return Pauses(bool(held), bool(stopping))
