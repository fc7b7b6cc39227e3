"""Notifications, which a transaction collects and its listener gets once it is committed.

Nothing of them is stored: the events are the record, and a commit without an answer sends none.  Without a
listener nothing is collected, and no statement is spent.
"""

import enum
import typing
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .bulk import OneOf
from .ids import StackId
from .rows import Task
from .schema import tables
from .states import Status

_COLLECTED = "stoker_notifications"


class EventKind(enum.StrEnum):
    """The kinds of facts that are notified.

    All but the first are parts of the notifications' types.
    """

    STACK = "stack"  #: a stack has started an action, or ended it
    REACHED = "reached"  #: a resource is held at a breakpoint
    CLEARED = "cleared"  #: a resource is not held any more
    DRIFT = "drift"  #: a resource differs from its thing in the cloud, or does so no longer
    SCALING = "autoscaling"  #: a signal has started to scale a group; or that has ended


@dataclass(frozen=True)
class AtBreakpoint:
    """A resource that is, or was, held at a breakpoint.

    :ivar event: uuid of the event that records it.
    """

    event: str
    name: str
    type: str
    physical_id: str | None
    hook: str


@dataclass(frozen=True)
class ScalingFact:
    """A change of the size of a group that a signal has requested.

    :ivar ending: ``start``, ``end`` or ``error``.
    :ivar group: the group's reference.
    :ivar kind: type of the adjustment, as policies name it; `by` is its amount.
    :ivar capacity: members of the group at this moment; after the end, those that it should have.
    """

    ending: str
    group: str
    kind: str
    by: float
    capacity: int
    message: str


@dataclass(frozen=True)
class DriftFact:
    """A resource that begins, or ends, to differ from its thing in the cloud.

    :ivar event: uuid of the event that records it.
    :ivar ending: ``DETECTED`` or ``RESOLVED``.
    :ivar reason: the names of what has changed; no values.
    """

    event: str
    name: str
    type: str
    physical_id: str | None
    ending: str
    reason: str


@dataclass(frozen=True)
class Notification:
    """One fact about a stack as the transaction leaves it.

    It has nothing of the stack's parameters, properties and outputs.

    :ivar reason: the reason of the stack, or of the event at the breakpoint.
    :ivar at: the resource at the breakpoint; None: the fact is about the stack.
    :ivar scaling: the change of a group's size; None: the fact is about the stack.
    :ivar drift: the resource that differs, or did; None: the fact is another one.
    """

    kind: EventKind
    stack_id: StackId
    project_id: str
    owner: str | None
    name: str
    parent_id: StackId | None
    root_id: StackId
    action: str
    status: str
    reason: str
    description: str
    created_at: float
    updated_at: float | None
    tags: Sequence[str] = ()
    at: AtBreakpoint | None = None
    scaling: ScalingFact | None = None
    drift: DriftFact | None = None


Listener = typing.Callable[[Sequence[Notification]], None]
"""Gets the notifications of a committed transaction, in its thread; must not block, nor raise."""


def collect(conn: Connection) -> list[Notification]:
    """Start to collect the notifications of this connection's transaction; return the list of them."""
    collected: list[Notification] = []
    conn.execution_options(**{_COLLECTED: collected})
    return collected


def about_stacks(conn: Connection, stack_ids: Iterable[StackId]) -> None:
    """Notify that the stacks have started an action, or ended it, as their rows are now."""
    collected: list[Notification] | None = conn.get_execution_options().get(_COLLECTED)
    ids = list(dict.fromkeys(stack_ids))
    if collected is None or not ids:
        return
    facts = _read(conn, ids)
    collected += [_notification(EventKind.STACK, facts[stack_id]) for stack_id in ids if stack_id in facts]


def at_breakpoints(
    conn: Connection, kind: EventKind, hits: Sequence[tuple[StackId, str, AtBreakpoint]]
) -> None:
    """Notify that resources are held, or are not held any more.

    :param hits: stack, reason and resource of each notification.
    """
    collected: list[Notification] | None = conn.get_execution_options().get(_COLLECTED)
    if collected is None or not hits:
        return
    facts = _read(conn, sorted({stack_id for stack_id, _, _ in hits}))
    collected += [
        _notification(kind, {**facts[stack_id], "reason": reason}, at)
        for stack_id, reason, at in hits
        if stack_id in facts
    ]


def about_scaling(conn: Connection, stack_id: StackId, fact: ScalingFact) -> None:
    """Notify of the scaling of a group of the stack."""
    collected: list[Notification] | None = conn.get_execution_options().get(_COLLECTED)
    if collected is not None and (facts := _read(conn, [stack_id])):
        collected.append(replace(_notification(EventKind.SCALING, facts[stack_id]), scaling=fact))


def about_drift(conn: Connection, stack_id: StackId, facts: Sequence[DriftFact]) -> None:
    """Notify of resources of the stack that begin, or end, to differ from their things in the cloud."""
    collected: list[Notification] | None = conn.get_execution_options().get(_COLLECTED)
    if collected is not None and facts and (rows := _read(conn, [stack_id])):
        row = rows[stack_id]
        collected += [
            replace(_notification(EventKind.DRIFT, {**row, "reason": fact.reason}), drift=fact)
            for fact in facts
        ]


def scaling_ended(conn: Connection, task: Task, failure: str | None) -> None:
    """Notify that the task that scales a group is done, or has failed; see planning.action.plan_scaling.

    :param failure: the reason; None: it is done.
    """
    definition = task.definition or {}
    request: typing.Any = definition.get("metadata") or {}
    if conn.get_execution_options().get(_COLLECTED) is None:
        return
    capacity = definition["properties"]["size"] if failure is None else _members(conn, task)
    ending = "end"
    message = f"End resizing the group {request['group']}"
    if failure is not None:
        ending = "error"
        message = failure
    about_scaling(conn, task.stack_id, ScalingFact(ending, capacity=capacity, message=message, **request))


def _members(conn: Connection, task: Task) -> int:
    """Return how many sound members the group of a task has now."""
    r = tables.resource
    s = tables.stack.c
    is_child = sa.and_(s.parent_id == task.stack_id, s.parent_resource_id == task.resource_id)
    child = sa.select(s.id).where(is_child, s.deleted_at.is_(None)).scalar_subquery()
    is_sound = sa.and_(r.c.replaced_by.is_(None), r.c.snapshot_id.is_(None), r.c.status != Status.FAILED)
    counted = sa.select(sa.func.count()).select_from(r).where(r.c.stack_id == child, is_sound)
    return int(conn.execute(counted).scalar_one())


_S = tables.stack.c
_ROWS = sa.select(
    _S.id.label("stack_id"),
    _S.project_id.label("project_id"),
    _S.owner,
    _S.name,
    _S.parent_id,
    _S.root_id,
    _S.action,
    _S.status,
    _S.reason,
    _S.description,
    _S.created_at,
    _S.updated_at,
).where(OneOf(_S.id))
_TAGS = (
    sa.select(tables.stack_tag.c.stack_id, tables.stack_tag.c.tag)
    .where(OneOf(tables.stack_tag.c.stack_id))
    .order_by(tables.stack_tag.c.stack_id, tables.stack_tag.c.position)
)


def _read(conn: Connection, stack_ids: Sequence[StackId]) -> dict[StackId, dict[str, typing.Any]]:
    rows = conn.execute(_ROWS, {"ids": stack_ids}).mappings()
    facts: dict[StackId, dict[str, typing.Any]] = {
        StackId(row["stack_id"]): {**row, "tags": []} for row in rows
    }
    for stack_id, tag in conn.execute(_TAGS, {"ids": stack_ids}):
        facts[StackId(stack_id)]["tags"].append(tag)
    return facts


def _notification(
    kind: EventKind, row: dict[str, typing.Any], at: AtBreakpoint | None = None
) -> Notification:
    return Notification(kind=kind, at=at, **{**row, "tags": tuple(row["tags"])})
