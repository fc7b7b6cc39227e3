"""What users ask of breakpoints: which hold, and that they let go."""

from collections.abc import Sequence

from sqlalchemy.engine import Connection

from ..db import resources, stacks
from ..db.errors import NotFound
from ..db.ids import TaskId
from ..db.rows import ListedStack, Resource, Stack
from ..db.states import Status
from ..db.work import breakpoints, clear_breakpoints
from ..db.work.breakpoints import HeldTask
from ..db.work.clear_breakpoints import Cleared
from ..template.matching import fits
from ..template.resource_settings import HOOKS
from .announce import announce_all
from .context import EngineContext
from .errors import InvalidHook


class BreakpointOperations:
    """Carries out what is asked.  Thread-safe."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context

    def clear(self, stack: Stack, resource: str, hook: object) -> None:
        """Let one resource go on, as Heat's signal asks.

        :raises NotFound: the stack has no such resource.
        :raises InvalidHook: it is no breakpoint, or the resource is not held there; nothing is changed.
        """

        if not isinstance(hook, str):
            raise InvalidHook(f"unset_hook must be the name of a hook, not {hook!r}")

        def work(conn: Connection) -> Cleared:
            row = _row(conn, stack, resource)
            if hook not in HOOKS:
                raise InvalidHook(f'Invalid hook type "{hook}" for {_shown(row, stack)}')
            found = _held_now(conn, stack)
            ids = [item.id for item in found if (item.resource_name, item.hook) == (resource, hook)]
            done = self._clear(conn, ids, None) if ids else None
            if done is None:
                raise InvalidHook(f'The "{hook}" hook is not defined on {_shown(row, stack)}')
            return done

        announce_all(self._context.hints, self._context.database.write(work).ready)

    def go_on(
        self, stack: Stack, *, names: Sequence[str] | None = None, hook: str | None = None, step: bool = False
    ) -> list[HeldTask]:
        """Let held resources of the stack, and of those nested in it, go on, all of them in one transaction;
        which those were.

        :param names: names or wildcards of resources, ``NESTED/NAME`` for nested ones; None: all.
        :param hook: only those held at this breakpoint; None: at whichever.
        :param step: whatever may begin next is held again before it begins.  Without it, and with nothing
            chosen, going on step by step is over.
        :raises InvalidHook: nothing is held, or one of the names fits nothing that is; nothing is changed.
        """
        if hook is not None and hook not in HOOKS:
            raise InvalidHook(f'"{hook}" is not one of: {", ".join(HOOKS)}')
        stepping = True if step else False if names is None and hook is None else None

        def work(conn: Connection) -> tuple[list[HeldTask], Cleared]:
            found, traversals = breakpoints.held_in_tree(conn, stack.id)
            chosen = _chosen(found, stack, names, hook)
            done = self._clear(conn, [item.id for item in chosen], stepping)
            if done is None:
                raise InvalidHook(f"Stack {stack.name} went on meanwhile; look where it is held now")
            for traversal in sorted(traversals):
                clear_breakpoints.set_stepping(conn, traversal, stepping)
            return chosen, done

        chosen, done = self._context.database.write(work)
        announce_all(self._context.hints, done.ready)
        return chosen

    def _clear(self, conn: Connection, ids: Sequence[TaskId], stepping: bool | None) -> Cleared | None:
        return clear_breakpoints.clear(conn, ids, stepping=stepping, by=None, now=self._context.clock())


def held(conn: Connection, stack: Stack) -> list[HeldTask]:
    """Return the breakpoints at which resources of the stack and of its nested stacks are held."""
    return breakpoints.held_in_tree(conn, stack.id)[0] if stack.status == Status.IN_PROGRESS else []


def held_itself(conn: Connection, stack: ListedStack) -> list[HeldTask]:
    """Return the breakpoints at which the stack's own resources are held."""
    return breakpoints.held_of(conn, stack.traversal) if stack.status == Status.IN_PROGRESS else []


def _held_now(conn: Connection, stack: Stack) -> list[HeldTask]:
    return held_itself(conn, stacks.get(conn, stack.id))


def _row(conn: Connection, stack: Stack, name: str) -> Resource:
    """One that was replaced may be held before, or behind, its deletion."""
    found = [row for row in resources.of_stack(conn, stack.id) if row.name == name]
    if not found:
        raise NotFound("Resource", name)
    return found[-1]


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
        if not any(_fits(item, name) for item in fits):
            held = ", ".join(sorted({item.path for item in fits}))
            raise InvalidHook(f'No resource "{name}" of stack {stack.name} is held at {at}; held are: {held}')
    return [item for item in fits if any(_fits(item, name) for name in names)]


def _fits(item: HeldTask, wanted: str) -> bool:
    """As Heat's client reads it: a wildcard stays on its level."""
    names, patterns = item.path.split("/"), wanted.split("/")
    return len(names) == len(patterns) and all(map(fits, names, patterns))


def _shown(row: Resource, stack: Stack) -> str:
    """As Heat names a resource in its errors."""
    physical = f" [{row.physical_id}]" if row.physical_id else ""
    return f'{row.type.rpartition("::")[2]} "{row.name}"{physical} Stack "{stack.name}" [{stack.id}]'
