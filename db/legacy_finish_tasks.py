"""The form in which the previous release stores traversals: as tasks of the kind ``finish``.

Until the schema is contracted, the code of that release works beside this code on the same traversals.  So
they are stored in the older form until then, and 0004_contract moves those that are left.  Only this module
knows the older form.  Remove it with the next number of the schema.
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
"""Condition of every query for tasks: the row is no traversal in the older form."""
_COUNTS = {"clock": "counts"}
_RUNNING = "waiting"


@dataclass(frozen=True, eq=False)
class Form:
    """A form in which traversals are stored.

    :ivar read: the expression that reads each field of a Traversal.
    :ivar which: the condition that a row of the table is a traversal.
    :ivar written: returns the columns to set, given fields of a Traversal.
    :ivar others: the other columns of a new row.
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
"""The tries that find a traversal which 0004_contract may be moving at this moment."""
