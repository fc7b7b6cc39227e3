"""Starting an update: the new goal and its plan in one transaction, at whatever moment."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlalchemy.engine import Connection

from ..db import content, endings, events, resources, stacks, tasks
from ..db.ids import ResourceId
from ..db.stacks import Stack
from ..db.states import Status, TaskState
from .compiling import Compiled
from .planning import Scope
from .start import Begun, traversals
from .updating import UpdatePlan, UpdatePlanner


class NotUpdatable(Exception):
    """The stack cannot be updated as it is now; the text says why."""


@dataclass(frozen=True)
class Change:
    """What an update asks for.

    :ivar stack: as it was when the goal was compiled.
    :ivar columns: of the stack to set beside the goal: timeout_mins, disable_rollback …
    :ivar action: UPDATE, or ROLLBACK.
    :ivar deadline_at: seconds since the epoch.
    :ivar tags: None leaves them.
    """

    stack: Stack
    compiled: Compiled
    parameter_view: Mapping[str, str]
    deadline_at: float
    action: str = "UPDATE"
    columns: Mapping[str, object] = field(default_factory=dict)
    tags: Sequence[str] | None = None


def start_update(
    conn: Connection, change: Change, scope: Scope, always: Callable[[str], bool]
) -> Begun | None:
    """Supersede whatever the stack does with an update to a new goal; None if the stack was changed by
    somebody else meanwhile: compile again, for the old goal that this one was merged with is not the current
    one any more.

    :raises NotUpdatable: the stack is deleted, or is being deleted, or is suspended.
    """
    stack = stacks.lock(conn, change.stack.id)
    if stack.traversal != change.stack.traversal:
        return None
    _check(stack)
    reason = f"Stack {change.action} started"
    updating = _with_goal(conn, stack, change, scope)
    begun = stacks.begin(
        conn,
        stack.id,
        seen=stack.traversal,
        traversal=scope.traversal,
        action=change.action,
        reason=reason,
        deadline_at=change.deadline_at,
        template_id=updating.template_id,
        environment_id=updating.environment_id,
        files_id=updating.files_id,
        previous=updating.previous,
        parameters=updating.parameters,
        parameter_view=updating.parameter_view,
        outputs=updating.outputs,
        description=updating.description,
        **change.columns,
    )
    assert begun, "the row is locked"
    if change.tags is not None:
        stacks.set_tags(conn, stack.id, change.tags)
    tasks.cancel_unstarted(conn, stack.traversal, now=scope.now)
    running = {ResourceId(t.resource_id): t for t in tasks.running_of_stack(conn, stack.id) if t.resource_id}
    plan = UpdatePlanner(
        resources.of_stack(conn, stack.id), change.compiled.plan, running, scope, always
    ).plan()
    events.add_many(conn, [endings.stack_event(updating, Status.IN_PROGRESS, reason, by=None, now=scope.now)])
    _store(conn, plan, now=scope.now)
    return Begun(updating, plan.ready, traversals(running.values()), plan.spared)


def _check(stack: Stack) -> None:
    if stack.action == "DELETE":
        raise NotUpdatable(f"Updating a stack when it is deleting is not supported: stack {stack.name}")
    if stack.action == "SUSPEND":
        raise NotUpdatable("Updating a stack when it is suspended is not supported: resume it first")


def _with_goal(conn: Connection, stack: Stack, change: Change, scope: Scope) -> Stack:
    """The stack with the new goal, the last complete one kept beside it."""
    compiled, previous = change.compiled, stack.previous
    if stack.status == Status.COMPLETE and change.action != "ROLLBACK":
        previous = {
            "template": stack.template_id,
            "environment": stack.environment_id,
            "files": stack.files_id,
            "parameters": stack.parameters,
        }
    return replace(
        stack,
        action=change.action,
        status=Status.IN_PROGRESS,
        traversal=scope.traversal,
        template_id=content.put(conn, compiled.template, scope.now),
        environment_id=content.put(conn, compiled.environment, scope.now),
        files_id=content.put(conn, dict(compiled.files), scope.now),
        previous=previous,
        parameters=compiled.parameters,
        parameter_view=change.parameter_view,
        outputs={
            name: {"value": output.value, "description": output.description}
            for name, output in compiled.plan.outputs.items()
        },
        description=compiled.plan.description,
    )


def _store(conn: Connection, plan: UpdatePlan, *, now: float) -> None:
    resources.delete_many(conn, plan.settled)
    resources.insert_many(conn, plan.resources)
    resources.change_many(conn, plan.changes)
    for old, new in plan.after:
        # Read again: an old task may be waited for by several.
        current = tasks.get(conn, old.id)
        if current is not None and current.state == TaskState.RUNNING:
            tasks.set_successors(conn, old.id, [*current.successors, new])
    tasks.insert_many(conn, [*plan.tasks, plan.finish])
    if not plan.tasks:
        endings.finish(conn, plan.finish.id, by=None, now=now)
