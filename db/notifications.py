"""What those are told who listen for notifications: gathered in the transaction that makes it true, and told
when that is committed.

Nothing of it is stored: the events are the record, and whoever gets no answer to a commit tells nobody.
Where nobody listens nothing is gathered, and no statement is spent.
"""

import enum
import typing
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .batches import IDS
from .ids import StackId
from .schema import tables

_GATHERED = "stoker_notices"


class EventKind(enum.StrEnum):
    """What there is to tell."""

    STACK = "stack"  #: a stack has begun something, or ended it
    REACHED = "reached"  #: a resource is held at a breakpoint
    CLEARED = "cleared"  #: it is not any more


@dataclass(frozen=True)
class AtBreakpoint:
    """A resource that is held, or was.

    :ivar event: uuid of the event that is the record of it.
    """

    event: str
    name: str
    type: str
    physical_id: str | None
    hook: str


@dataclass(frozen=True)
class Notification:
    """One fact, with the stack as the transaction has left it: nothing of its parameters, properties and
    outputs.

    :ivar reason: of the stack, or of the event at the breakpoint.
    :ivar at: of what happened at a breakpoint; None: of a resource nothing is told.
    """

    fact: EventKind
    stack_id: StackId
    tenant: str
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


Listener = typing.Callable[[Sequence[Notification]], None]
"""Told once a transaction is committed, in its thread; must not block, nor raise."""


def gathering(conn: Connection) -> list[Notification]:
    """Gather, from now on, what this connection's transaction makes true: the list that it goes to."""
    gathered: list[Notification] = []
    conn.execution_options(**{_GATHERED: gathered})
    return gathered


def about_stacks(conn: Connection, stack_ids: Iterable[StackId]) -> None:
    """The stacks have begun something, or ended it; as their rows are now."""
    gathered = _gathered(conn)
    wanted = list(dict.fromkeys(stack_ids))
    if gathered is None or not wanted:
        return
    found = _read(conn, wanted)
    gathered += [_notice(EventKind.STACK, found[stack_id]) for stack_id in wanted if stack_id in found]


def at_breakpoints(
    conn: Connection, fact: EventKind, told: Sequence[tuple[StackId, str, AtBreakpoint]]
) -> None:
    """Resources are held, or are not any more.

    :param told: stack, reason and resource of each.
    """
    gathered = _gathered(conn)
    if gathered is None or not told:
        return
    found = _read(conn, sorted({stack_id for stack_id, _, _ in told}))
    gathered += [
        _notice(fact, {**found[stack_id], "reason": reason}, at)
        for stack_id, reason, at in told
        if stack_id in found
    ]


def _gathered(conn: Connection) -> list[Notification] | None:
    gathered: list[Notification] | None = conn.get_execution_options().get(_GATHERED)
    return gathered


_S = tables.stack.c
_ROWS = sa.select(
    _S.id.label("stack_id"),
    _S.tenant,
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
).where(_S.id.in_(IDS))
_TAGS = (
    sa.select(tables.stack_tag.c.stack_id, tables.stack_tag.c.tag)
    .where(tables.stack_tag.c.stack_id.in_(IDS))
    .order_by(tables.stack_tag.c.stack_id, tables.stack_tag.c.position)
)


def _read(conn: Connection, stack_ids: Sequence[StackId]) -> dict[StackId, dict[str, typing.Any]]:
    rows = conn.execute(_ROWS, {"ids": stack_ids}).mappings()
    found: dict[StackId, dict[str, typing.Any]] = {
        StackId(row["stack_id"]): {**row, "tags": []} for row in rows
    }
    for stack_id, tag in conn.execute(_TAGS, {"ids": stack_ids}):
        found[StackId(stack_id)]["tags"].append(tag)
    return found


def _notice(fact: EventKind, row: dict[str, typing.Any], at: AtBreakpoint | None = None) -> Notification:
    return Notification(fact=fact, at=at, **{**row, "tags": tuple(row["tags"])})
