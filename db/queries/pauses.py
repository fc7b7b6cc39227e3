"""A stack with its waits for its user or for conductors, in one statement for the view of a stack."""

import typing

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .. import stacks
from ..ids import StackId
from ..rows import Stack
from ..schema import tables
from ..states import Status, TaskState

_T = tables.task.c
_OF_TREE = tables.stack.alias("of_tree")
_HELD = (
    sa.select(_T.id)
    .join_from(_OF_TREE, tables.task, _T.traversal == _OF_TREE.c.traversal)
    .where(
        _OF_TREE.c.root_id == tables.stack.c.root_id,
        _OF_TREE.c.status == Status.IN_PROGRESS,
        _T.state == TaskState.HELD,
    )
)
"""By the index on traversal and state: many tasks that run cost nothing."""
_STOPPING = sa.select(_T.id).where(_T.stack_id == tables.stack.c.id, _T.stop_by.is_not(None), _T.member > "")
_GET = stacks.GET.add_columns(sa.exists(_HELD).label("held"), sa.exists(_STOPPING).label("stopping"))


class Pauses(typing.NamedTuple):
    """The reasons for which a stack waits.

    :ivar held: whether a task of its tree, in it or around it, is held at a breakpoint.
    :ivar stopping: whether a step of its own was cancelled and has not ended.
    """

    held: bool
    stopping: bool


def get(conn: Connection, stack_id: StackId) -> tuple[Stack, Pauses]:
    """Return a stack, also a deleted one that is still stored, and the reasons for which it waits.

    :raises NotFound: there is no such stack.
    """
    stack, reasons = stacks.get_with(conn, _GET, stack_id)
    return stack, Pauses(**{name: bool(value) for name, value in reasons.items()})
