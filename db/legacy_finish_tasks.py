"""Traversals in the form in which the release before stores them: as a task of kind ``finish``.

Until the schema is contracted (0004_contract) the code of that release works beside this one, on the same
traversals.  So they are stored in the old form until then, and 0004_contract moves those that are left.  Only
this module knows the old form.  It goes with the next number of the schema.
"""

import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from .schema import tables
from .states import DeadlinePolicy, TaskKind, TraversalState

Json = typing.Any
Values = Mapping[str, Json]

_T = tables.task.c
IS_TASK = _T.kind != TaskKind.FINISH
"""The row is a task."""
_COUNTS = {"clock": "counts"}
_RUNNING = "waiting"


@dataclass(frozen=True, eq=False)
class Form:
    """A form in which traversals are stored.

    :ivar read: what stands for each field of a Traversal.
    :ivar which: condition: the row is a traversal.
    :ivar written: from fields of a Traversal to the columns of the table.
    :ivar others: columns that a new row needs besides.
    """

    table: sa.Table
    read: Mapping[str, sa.ColumnElement[typing.Any]]
    which: sa.ColumnElement[bool]
    written: Callable[[Values], Values]
    others: Values


def _written(values: Values) -> Values:
    return dict(pair for name, value in values.items() for pair in _columns(name, value))


def _columns(name: str, value: Json) -> list[tuple[str, Json]]:
    if name == "action":  # The old form does not have it.
        return []
    if name == "state":
        return [("state", _RUNNING if value == TraversalState.RUNNING else value)]
    if name == "aborted":
        return [("hook", "abort" if value else None)]
    if name == "deadline_policy":
        return [("hooks", _COUNTS if value == DeadlinePolicy.COUNTS else None)]
    if name == "waits_for_paused_children":
        return [("waits_on", "children" if value else None)]
    return [({"open_tasks": "pending", "held_tasks": "held", "failure": "reason"}.get(name, name), value)]


ROW = Form(tables.traversal, dict(tables.traversal.c.items()), sa.true(), dict, {})
FINISH_TASK = Form(
    tables.task,
    {
        **{name: _T[name] for name in ("id", "traversal", "stack_id", "shard", "request", "due_at")},
        "open_tasks": _T.pending,
        "held_tasks": _T.held,
        "failure": _T.reason,
        "action": sa.null(),
        "state": sa.case((_T.state == _RUNNING, sa.literal(TraversalState.RUNNING.value)), else_=_T.state),
        "aborted": sa.case((_T.hook == "abort", 1), else_=0),
        "deadline_policy": sa.case(
            (_T.hooks.is_(None), sa.literal(DeadlinePolicy.PAUSES.value)),
            else_=sa.literal(DeadlinePolicy.COUNTS.value),
        ),
        "waits_for_paused_children": sa.case((_T.waits_on == "children", 1), else_=0),
    },
    _T.kind == TaskKind.FINISH,
    _written,
    {"kind": TaskKind.FINISH, "restricted": [], "inputs": {}, "successors": []},
)
TRIED = (ROW, FINISH_TASK, ROW)
"""In this order, to find one that 0004_contract may move at this moment."""
