"""Breakpoints: listing the tasks that are held, and continuing them."""

from collections.abc import Sequence

from sqlalchemy.engine import Connection

from ..db import resources, stacks
from ..db.errors import NotFound
from ..db.ids import StackId, TaskId
from ..db.rows import Resource, Stack
from ..db.states import Status
from ..db.work import breakpoints, clear_breakpoints
from ..db.work.breakpoints import HeldTask
from ..db.work.clear_breakpoints import Cleared
from ..template.resource_settings import HOOKS
from ..template.scalars import written
from ..template.wildcards import fits
from .context import EngineContext, announce
from .errors import InvalidHook


def clear_breakpoint(context: EngineContext, stack: Stack, resource: str, hook: object) -> None:
    """Continue one resource, as Heat's signal asks.

    :raises NotFound: the stack has no such resource.
    :raises InvalidHook: the hook is no breakpoint, or the resource is not held there; nothing is changed.
    """
    if not isinstance(hook, str):
        raise InvalidHook(f"unset_hook must be the name of a hook, not {written(hook)}")

    def transaction(conn: Connection) -> Cleared:
        row = _row(conn, stack, resource)
        if hook not in HOOKS:
            raise InvalidHook(f'Invalid hook type "{hook}" for {_heat_name(row, stack)}')
        held_tasks = held_itself(conn, stack.id)
        ids = [item.id for item in held_tasks if (item.resource_name, item.hook) == (resource, hook)]
        done = _clear(context, conn, ids, None) if ids else None
        if done is None:
            raise InvalidHook(f'The "{hook}" hook is not defined on {_heat_name(row, stack)}')
        return done

    announce(context.hints, context.database.write(transaction).ready)


def continue_held(
    context: EngineContext,
    stack: Stack,
    *,
    names: Sequence[str] | None = None,
    hook: str | None = None,
    step: bool = False,
) -> list[HeldTask]:
    """Continue held resources of the stack and of those nested in it, in one transaction; return them.

    :param names: names or wildcards of resources, ``NESTED/NAME`` for nested ones; None: all.
    :param hook: the breakpoint at which the resources are held; None: any breakpoint.
    :param step: whether the next tasks are held again before they begin.  Without it, and without names
        or hook, stepping ends.
    :raises InvalidHook: no resource is held, or one of the names matches none; nothing is changed.
    """
    if hook is not None and hook not in HOOKS:
        raise InvalidHook(f'"{hook}" is not one of: {", ".join(HOOKS)}')
    stepping = True if step else False if names is None and hook is None else None

    def transaction(conn: Connection) -> tuple[list[HeldTask], Cleared]:
        held_tasks, traversals = breakpoints.held_in_tree(conn, stack.id)
        chosen = _chosen(held_tasks, stack, names, hook)
        done = _clear(context, conn, [item.id for item in chosen], stepping)
        if done is None:
            raise InvalidHook(f"Stack {stack.name} continued meanwhile; read where it is held now")
        for traversal in sorted(traversals):
            clear_breakpoints.set_stepping(conn, traversal, stepping)
        return chosen, done

    chosen, done = context.database.write(transaction)
    announce(context.hints, done.ready)
    return chosen


def _clear(
    context: EngineContext, conn: Connection, ids: Sequence[TaskId], stepping: bool | None
) -> Cleared | None:
    return clear_breakpoints.clear(conn, ids, stepping=stepping, by=None, now=context.clock())


def held(conn: Connection, stack: Stack) -> list[HeldTask]:
    """Return the breakpoints at which resources of the stack and of its nested stacks are held."""
    return breakpoints.held_in_tree(conn, stack.id)[0] if stack.status == Status.IN_PROGRESS else []


def held_itself(conn: Connection, stack_id: StackId) -> list[HeldTask]:
    """Return the breakpoints at which the stack's own resources are held now."""
    stack = stacks.get(conn, stack_id)
    return breakpoints.held_of(conn, stack.traversal) if stack.status == Status.IN_PROGRESS else []


def _row(conn: Connection, stack: Stack, name: str) -> Resource:
    """Return a row of the resource; a replaced one may be held before or after its deletion."""
    rows = [row for row in resources.of_stack(conn, stack.id) if row.name == name]
    if not rows:
        raise NotFound("Resource", name)
    return rows[-1]


def _chosen(
    found: Sequence[HeldTask], stack: Stack, names: Sequence[str] | None, hook: str | None
) -> list[HeldTask]:
    at = "a breakpoint" if hook is None else hook
    fits = [item for item in found if hook in (None, item.hook)]
    if not fits:
        raise InvalidHook(f"Nothing of stack {stack.name} is held at {at}")
    if names is None:
        return fits
    for name in names:
        if not any(_matches(item, name) for item in fits):
            paths = ", ".join(sorted({item.path for item in fits}))
            raise InvalidHook(
                f'No resource "{name}" of stack {stack.name} is held at {at}; held are: {paths}'
            )
    return [item for item in fits if any(_matches(item, name) for name in names)]


def _matches(item: HeldTask, pattern: str) -> bool:
    """Return whether the task matches a name as Heat's client reads it: a wildcard stays on its level."""
    names = item.path.split("/")
    patterns = pattern.split("/")
    return len(names) == len(patterns) and all(map(fits, names, patterns))


def _heat_name(row: Resource, stack: Stack) -> str:
    """Return the resource as Heat names it in its errors."""
    physical = f" [{row.physical_id}]" if row.physical_id else ""
    return f'{row.type.rpartition("::")[2]} "{row.name}"{physical} Stack "{stack.name}" [{stack.id}]'
