"""Names of breakpoints, and rules which of them hold a task; pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..rows import FailureCause, Task
from ..states import DELETING, UNDECIDED, TaskKind

PRE = "pre"
POST = "post"
_ACTIONS = {
    TaskKind.CREATE: "create",
    TaskKind.UPDATE: "update",
    **dict.fromkeys(DELETING, "delete"),
}


def stop_at(task: Task, phase: str) -> str | None:
    """Return the breakpoint that holds the task before its action starts, or after it has ended; or None.

    :param phase: PRE or POST.
    """
    if task.kind not in _ACTIONS:
        return None
    hook = f"{phase}-{_ACTIONS[task.kind]}"
    return hook if hook in (task.hooks or {}) or (phase == PRE and task.stepped) else None


def is_post(hook: str | None) -> bool:
    """Return whether the breakpoint comes after the action."""
    return hook is not None and hook.startswith(POST)


def aborts(task: Task, hook: str) -> bool:
    """Return whether the breakpoint aborts the stack's action."""
    return bool((task.hooks or {}).get(hook, {}).get("abort"))


def limit(task: Task, hook: str) -> float | None:
    """Return the seconds after which the breakpoint expires; None: it does not."""
    seconds: float | None = (task.hooks or {}).get(hook, {}).get("timeout")
    return seconds


def fails_at_limit(task: Task, hook: str) -> bool:
    """Return whether the breakpoint, when it expires, fails the stack's action; else it is cleared."""
    return bool((task.hooks or {}).get(hook, {}).get("then") == "fail")


def aborted(hook: str, resource: str) -> FailureCause:
    """Return the cause for which a breakpoint has ended a stack's action; its message is the reason."""
    return abort_at(paused_action(hook), resource)


def abort_at(action: str, path: str) -> FailureCause:
    """Return the cause of an action that ended at the breakpoint of a resource, ``NAME/…``."""
    return FailureCause(f"{action} aborted due to breakpoint on resource {path}", breakpoint=path)


def paused_action(hook: str) -> str:
    """Return the action that the breakpoint holds, as users see it."""
    return hook.partition("-")[2].upper()


def reached_reason(hook: str) -> str:
    """Return the reason of an event in Heat's words, by which its client finds it."""
    return f"{paused_action(hook)} paused until Hook {hook} is cleared"


NAMED = 10
"""Breakpoints that a stack's status reason names at most."""


def paused_reason(action: str, held: Sequence[tuple[str, str]], count: int) -> str:
    """Return the status reason of a stack that breakpoints hold.

    :param held: hook and resource of the first NAMED breakpoints.
    :param count: number of all breakpoints.
    """
    named = ", ".join(f"{hook} on {resource}" for hook, resource in held[:NAMED])
    more = f", and {count - NAMED} more" if count > NAMED else ""
    return f"{action} paused at breakpoint{'s' * (count > 1)}: {named}{more}"


def cleared_reason(hook: str) -> str:
    """Return the reason of an event in Heat's words, by which its client finds it."""
    return f"Hook {hook} is cleared"


@dataclass(frozen=True)
class BreakpointHit:
    """A task that comes to a breakpoint; the caller has locked its row."""

    task: Task
    hook: str


def partition(unblocked: Iterable[Task]) -> tuple[list[Task], list[BreakpointHit]]:
    """Divide waiting tasks without predecessors into those that may run, and those that a breakpoint holds.

    Only the step of an undecided kind finds whether there is anything to do, so its outcome holds the task.
    """
    free: list[Task] = []
    stops: list[BreakpointHit] = []
    for task in unblocked:
        hook = None if task.kind in UNDECIDED else stop_at(task, PRE)
        if hook is None:
            free.append(task)
        else:
            stops.append(BreakpointHit(task, hook))
    return free, stops
