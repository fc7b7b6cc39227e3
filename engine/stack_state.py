"""Decides which actions a stack's state allows, and which goal it keeps; pure."""

from collections.abc import Mapping

from ..db.rows import Stack
from ..db.stack_states import GOALS, Actor, allows, may_end
from ..db.states import Status, TaskKind
from .errors import NotUpdatable

ALLOWED: Mapping[TaskKind, str] = {
    TaskKind.SUSPEND: "a stack is suspended when it has been created, updated, resumed or checked",
    TaskKind.RESUME: "only a suspended stack is resumed",
    TaskKind.CHECK: "a stack is checked when no other action is in progress",
    TaskKind.SNAPSHOT: "a snapshot is taken when no other action is in progress",
}


def check_action(stack: Stack, kind: TaskKind) -> None:
    """Check that the stack is in a state for an action on all of its resources.

    :raises NotUpdatable: another action is in progress, or the stack is not in a state for this one.
    """
    if not allows(stack.state, kind.upper()):
        action = kind.upper()
        raise NotUpdatable(
            f"{action} of stack {stack.name} in the state {stack.state} is not supported: {ALLOWED[kind]}"
        )


def is_in_effect(stack: Stack, kind: TaskKind) -> bool:
    """Return whether the stack is suspended, or resumed, already: as in Heat, nothing is left to do then."""
    idempotent = kind in (TaskKind.SUSPEND, TaskKind.RESUME)
    return idempotent and (stack.action, stack.status) == (kind.upper(), Status.COMPLETE)


def check_updatable(stack: Stack, action: str = "UPDATE") -> None:
    """Check that the stack is in a state for a new goal.

    :param action: UPDATE, ROLLBACK or RESTORE.
    :raises NotUpdatable: the stack is deleted, or is being deleted, or is suspended; or the action has ended
        that was to be rolled back.
    """
    if allows(stack.state, action):
        return
    if stack.action == "DELETE":
        raise NotUpdatable(f"Updating a stack when it is deleting is not supported: stack {stack.name}")
    if stack.action == "SUSPEND":
        raise NotUpdatable("Updating a stack when it is suspended is not supported: resume it first")
    raise NotUpdatable(f"{action} of stack {stack.name} in the state {stack.state} is not supported")


def check_cancellable(stack: Stack, *, rollback: bool) -> None:
    """Check that a user may end the stack's action.

    :param rollback: whether the stack is then to go back to its last complete goal.
    :raises NotUpdatable: no action is in progress, or it is one that is not cancelled, or not rolled back.
    """
    state = stack.state
    if not may_end(state, Actor.USER):
        raise NotUpdatable(f"Cancelling update when stack is {state} is not supported.")
    if rollback and not allows(state, "ROLLBACK", Actor.USER):
        raise NotUpdatable(
            f"Cancelling update when stack is {state} is not supported: {stack.action} cannot be rolled "
            "back; cancel it without rollback"
        )


def may_delete(stack: Stack) -> bool:
    """Return whether there is anything to delete: the stack is neither deleted, nor being deleted."""
    return allows(stack.state, "DELETE")


def kept_goal(stack: Stack) -> Mapping[str, object] | None:
    """Return the goal that a rollback of the action that begins leads to: the last one that was complete.

    It is that of an adoption, too, whatever came of it: a rollback to nothing would delete what was there
    before the stack.  The tags go with it, for an update replaces them.
    """
    is_reached = stack.status == Status.COMPLETE and stack.action in GOALS
    if is_reached or stack.action == "ADOPT":
        return {**current_goal(stack), "tags": list(stack.tags)}
    return stack.previous


def current_goal(stack: Stack) -> Mapping[str, object]:
    """Return the goal that the stack has now."""
    return {
        "template": stack.template_id,
        "environment": stack.environment_id,
        "files": stack.files_id,
        "parameters": stack.parameters,
    }
