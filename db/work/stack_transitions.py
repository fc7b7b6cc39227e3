"""Every change of a stack's action and status: one function for each end of an arrow of the table.

No other module writes these columns, and each function compares with the table of `stack_states.py`.  Callers
have locked the rows.  The statements compare the states again, so a stack in another state stays as it is.
"""

import typing
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ...shapes import Json
from .. import content, stacks, usage
from ..bulk import OneOf, Write
from ..ids import StackId, TraversalId
from ..rows import FailureCause, Stack
from ..schema import tables
from ..schema.column_types import JsonText
from ..stack_states import ROLLED_BACK, check_arrow
from ..states import StackState, Status

_S = tables.stack.c


@dataclass(frozen=True)
class Failure:
    """The reason why a stack's action fails.

    :ivar cause: the cause that the reason names; None: no resource is the cause.
    :ivar rolled_back: whether the stack is rolled back, if its options request that.
    """

    reason: str
    cause: FailureCause | None = None
    rolled_back: bool = True


def begin(conn: Connection, stack: Stack, traversal: TraversalId, *, action: str, **columns: Json) -> bool:
    """Make a traversal the current one and set columns; return False where the stack's is not current.

    :param stack: the stack as it is, its row locked by the caller.
    :raises ForbiddenTransition: no stack in its state begins the action.
    """
    check_arrow(stack.state, StackState(action, Status.IN_PROGRESS))
    started = _update(
        sa.and_(_S.id == stack.id, _S.traversal == stack.traversal),
        *(action, Status.IN_PROGRESS),
        traversal=traversal,
        rollback_at=None,
        remaining=None,
        **columns,
    )
    difference = [*usage.of_stacks([stack], -1), *usage.of_stacks([replace(stack, **columns)])]
    if usage.write(conn, Write(started, {}), difference) == 0:
        return False
    if not columns.keys().isdisjoint(stacks.CONTENTS):
        begun = sa.and_(_S.id == stack.id, _S.traversal == traversal)
        row = conn.execute(sa.select(*(_S[name] for name in stacks.CONTENTS)).where(begun))
        content.set_uses(conn, stack.id, stacks.contents_of(dict(row.mappings().one())))
    return True


def _update(
    condition: sa.ColumnElement[bool], action: str | None, status: Status, **columns: typing.Any
) -> sa.Update:
    """Return the update of the stacks that a condition selects; all that writes their states is made here.

    :param action: the new action; None: it stays.
    """
    if action is not None:
        columns["action"] = action
    return sa.update(tables.stack).where(condition).values(status=status, **columns)


def _ending(condition: sa.ColumnElement[bool], status: Status, **columns: typing.Any) -> sa.Update:
    """Return the update that ends the actions of stacks with given traversals, unless they have ended."""
    is_current = sa.and_(OneOf(_S.id), OneOf(_S.traversal, "traversals"))
    return _update(
        sa.and_(is_current, _S.status == Status.IN_PROGRESS, condition),
        *(None, status),
        deadline_at=None,
        remaining=None,
        **columns,
    )


_NOW: sa.BindParameter[float] = sa.bindparam("now", type_=sa.Double)
_REASON: sa.BindParameter[str] = sa.bindparam("why", type_=sa.Text)
# As Heat: a stack that was only created has no updated_time.
_UPDATED_AT = sa.case((_S.action == "CREATE", _S.updated_at), else_=_NOW)
_ROLLS_BACK: sa.BindParameter[int] = sa.bindparam("rolls_back", type_=sa.Integer)
_IS_ROLLED_BACK = sa.and_(_S.disable_rollback.is_(sa.false()), _S.action.in_(sorted(ROLLED_BACK)))
_COMPLETE = _ending(
    _S.action != "DELETE",  # A deletion frees the name, too.
    Status.COMPLETE,
    reason=_REASON,
    failure_cause=None,
    rollback_at=None,
    updated_at=_UPDATED_AT,
)
_COMPLETE_DELETION = _ending(
    _S.action == "DELETE",
    Status.COMPLETE,
    reason="Stack DELETE completed successfully",
    live_name=None,
    deleted_at=_NOW,
    updated_at=_NOW,
)
_FAIL = _ending(
    sa.true(),
    Status.FAILED,
    reason=_REASON,
    failure_cause=sa.bindparam("cause", type_=JsonText),
    rollback_at=sa.case((sa.and_(_ROLLS_BACK > 0, _IS_ROLLED_BACK), _NOW), else_=None),
    updated_at=_UPDATED_AT,
)


def complete(conn: Connection, current: Mapping[StackId, TraversalId], reason: str, now: float) -> int:
    """End the current traversals of stacks well, but for deletions.

    :returns: the number of stacks; one is left out that has another traversal, or whose has ended already.
    """
    return conn.execute(_COMPLETE, {**_pairs(current), "why": reason, "now": now}).rowcount


def complete_deletions(conn: Connection, deleted: Sequence[Stack], now: float) -> bool:
    """End deletions of stacks; return False, with nothing changed, where they have ended already.

    Their names are free again at once.  The rows stay until they are purged.

    :param deleted: the stacks as they are, their rows locked by the caller.
    """
    current = {stack.id: stack.traversal for stack in deleted}
    ended = Write(_COMPLETE_DELETION, {**_pairs(current), "now": now})
    return usage.write(conn, ended, usage.of_stacks(deleted, -1)) > 0


def fail(conn: Connection, current: Mapping[StackId, TraversalId], failure: Failure, now: float) -> int:
    """End the current traversals of stacks as failed, all in the same way.

    They are marked for rollback if the user asked for that: see endings.begin_rollbacks.

    :returns: the number of stacks; one is left out that has another traversal, or whose has ended already.
    """
    cause = failure.cause or FailureCause(failure.reason)
    values = {"why": failure.reason, "cause": asdict(cause), "rolls_back": failure.rolled_back, "now": now}
    return conn.execute(_FAIL, {**_pairs(current), **values}).rowcount


def _pairs(current: Mapping[StackId, TraversalId]) -> dict[str, list[str]]:
    return {"ids": sorted(current), "traversals": sorted(current.values())}


_BEGIN_ROLLBACK = _update(
    sa.and_(_S.id == sa.bindparam("key"), _S.status == Status.FAILED, _S.rollback_at.is_not(None)),
    *("ROLLBACK", Status.IN_PROGRESS),
    traversal=sa.bindparam("begun"),
    reason=_REASON,
    deadline_at=sa.bindparam("expiry", type_=sa.Double),
)


def begin_rollback(
    conn: Connection, stack_id: StackId, traversal: TraversalId, reason: str, *, deadline_at: float
) -> None:
    """Let a stack that this transaction has failed, and marked for that, wait for the plan of its rollback.

    :param traversal: the new traversal; it has no tasks before the rollback is planned.
    :param deadline_at: the instant at which the rollback fails that nobody has planned.
    """
    values = {"key": stack_id, "begun": traversal, "why": reason, "expiry": deadline_at}
    conn.execute(_BEGIN_ROLLBACK, values)
