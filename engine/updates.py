"""Updates of stacks: the new goal is compiled, then committed with its plan, then announced."""

from collections.abc import Callable

from sqlalchemy.engine import Connection

from ..db import resources, snapshots, stacks
from ..db.ids import SnapshotId
from ..db.rows import Resource, Stack
from ..db.states import Status
from . import cancel as ending
from .change import Change, commit_update
from .context import EngineContext, Review
from .errors import Changing, NotUpdatable
from .goals import compile_for, compile_update, previous_goal, stored_goal
from .parent_resource import child_snapshot_id
from .planning.requests import UpdateRequest
from .restore import Restoring
from .stack_state import check_cancellable, check_updatable, current_goal
from .tree_budget import TreeBudget

TRIES = 20
CANCELLED = "User cancelled operation"


def update_stack(
    context: EngineContext, stack: Stack, request: UpdateRequest, review: Review | None = None
) -> None:
    """Bring the stack to a new goal, at any moment; committed when this returns.

    :param review: looks at the compiled goal first; None: nobody does.
    :raises TemplateError: the goal is wrong.
    :raises NotUpdatable: the stack's state allows no update; see change.start_update.
    :raises Changing: other requests have changed the stack each time that the goal was compiled.
    :raises DelegationRefused, KeystoneUnavailable: the stack needs a new credential and cannot get one.
    """
    renewed = False

    def make(current: Stack) -> Change:
        nonlocal renewed
        check_updatable(current)
        change = _change(context, current, request, review)
        if not renewed:
            # Only now: a goal that is wrong, or that the review refuses, gives the stack no new credential.
            # Only once: while Keystone answers, others may change the stack.
            context.delegations.renew(stack.root_id, request.trustor)
            renewed = True
        return change

    _retry(context, stack, make)


def restore_stack(context: EngineContext, stack: Stack, snapshot_id: SnapshotId) -> None:
    """Bring the stack back to the state that a snapshot keeps, at any moment.

    :raises NotFound: the stack has no such snapshot.
    :raises TemplateError: the goal of that time is wrong today.
    :raises NotUpdatable: the snapshot is not complete, or the stack's state allows no update.
    :raises Changing: other requests have changed the stack each time that the goal was compiled.
    """
    _retry(context, stack, lambda current: _restoration(context, current, snapshot_id))


def roll_back_stack(context: EngineContext, stack: Stack, why: str = "") -> bool:
    """Bring the stack back to its last complete goal, or to nothing if there is none.

    :param why: added to the stack's reason.
    :returns: False: another request has changed the stack meanwhile.
    :raises TemplateError: the old goal is wrong today.
    :raises NotUpdatable: the stack's state allows no update; see change.start_update.
    """
    compiled = compile_for(context, stack, previous_goal(context, stack))
    columns: dict[str, object] = {"timeout_mins": stack.timeout_mins}
    if why:
        columns["reason"] = f"Stack ROLLBACK started: {why}"
    timeout = context.timeout(stack.timeout_mins)
    tags = (stack.previous or {}).get("tags")
    change = Change(stack, compiled, lambda now: now + timeout, action="ROLLBACK", columns=columns, tags=tags)
    return commit_update(context, change)


def heal_stack(context: EngineContext, stack: Stack, guard: Callable[[Connection], None]) -> bool:
    """Bring a stack back to its present goal, by an update that compares each resource first.

    :param guard: called first in the transaction; an error of it keeps the update from being stored.
    :returns: False: another request has changed the stack meanwhile.
    :raises TemplateError: the goal is wrong today.
    :raises NotUpdatable: the stack's state allows no update; see change.start_update.
    """
    compiled = compile_for(context, stack, stored_goal(context, stack, current_goal(stack)))
    timeout = context.timeout(stack.timeout_mins)
    columns: dict[str, object] = {"timeout_mins": stack.timeout_mins}
    change = Change(stack, compiled, lambda now: now + timeout, converge=True, columns=columns)
    return commit_update(context, change, guard)


def cancel_action(context: EngineContext, stack: Stack, *, rollback: bool, by: str | None = None) -> None:
    """Stop the stack's action; with `rollback` it then goes back to its last complete goal.

    :param by: name of the user, for the stack's reason and its event.
    :raises NotUpdatable: the stack does nothing that could be cancelled.
    :raises Changing: another request has changed the stack meanwhile.
    """
    check_cancellable(stack, rollback=rollback)
    why = f"{stack.action} cancelled by {by}" if by else CANCELLED
    if not (roll_back_stack(context, stack, why) if rollback else _cancel(context, stack, why)):
        raise Changing(f"Stack {stack.name} was changed by another request meanwhile")


def _retry(context: EngineContext, stack: Stack, make: Callable[[Stack], Change]) -> None:
    """Make and commit a change, and again as long as other requests change the stack meanwhile."""
    for _ in range(TRIES):
        if commit_update(context, make(stack)):
            return
        stack = context.database.read(lambda conn, key=stack.id: stacks.get(conn, key))  # type: ignore[misc]
    raise Changing(f"Stack {stack.name} is being changed by others all the time; try again")


def _change(context: EngineContext, stack: Stack, request: UpdateRequest, review: Review | None) -> Change:
    timeout_mins = request.timeout_mins if request.timeout_mins is not None else stack.timeout_mins
    timeout = context.timeout(timeout_mins)
    columns: dict[str, object] = {"timeout_mins": timeout_mins}
    if request.disable_rollback is not None:
        columns["disable_rollback"] = request.disable_rollback
    if request.abort_on_breakpoint is not None:
        columns["abort_on_breakpoint"] = request.abort_on_breakpoint
    compiled = compile_update(context, stack, request)
    if review is not None and (note := review(compiled)):
        columns["reason"] = f"Stack UPDATE started{note}"
    return Change(
        stack,
        compiled,
        lambda now: now + timeout,
        converge=request.converge,
        is_limited=request.is_limited,
        columns=columns,
        tags=request.tags if request.tags is not None or request.existing else (),
    )


def _restoration(context: EngineContext, stack: Stack, snapshot_id: SnapshotId) -> Change:
    database = context.database
    sealer = context.sealer_of(stack)
    snapshot = database.read(lambda conn: snapshots.get(conn, stack.id, snapshot_id))
    if (snapshot.action, snapshot.status) != ("CREATE", Status.COMPLETE):
        raise NotUpdatable("Restoring incomplete snapshot is not supported")
    copies = database.read(lambda conn: resources.copies(conn, stack.id, snapshot_id))
    restoring = Restoring(
        context.registry,
        sealer.open,
        lambda row: _copies_inside(context, row),
        TreeBudget(context.settings.tree),
    )
    goal = restoring.goal(stored_goal(context, stack, snapshot.goal), copies)
    timeout = context.timeout(stack.timeout_mins)
    return Change(
        stack,
        compile_for(context, stack, goal),
        lambda now: now + timeout,
        action="RESTORE",
        is_limited=True,
        columns={"timeout_mins": stack.timeout_mins},
    )


def _copies_inside(context: EngineContext, row: Resource) -> list[Resource]:
    """Return the copies in the snapshot of a nested stack, by the copy of the resource that it is."""
    key = row.key
    if key is None or not context.registry.is_nested(row.plugin):
        return []

    def read(conn: Connection) -> list[Resource]:
        inner = snapshots.of_nested(conn, row.stack_id, child_snapshot_id(key))
        return [] if inner is None else resources.copies(conn, inner.stack_id, inner.id)

    return context.database.read(read)


def _cancel(context: EngineContext, stack: Stack, why: str) -> bool:
    now = context.clock()
    grace = context.settings.defaults.cancel_grace
    done = context.database.write(lambda conn: ending.cancel_stack(conn, stack, why, now=now, grace=grace))
    if done is not None:
        ending.announce_timed_out(context.hints, done)
    return done is not None
