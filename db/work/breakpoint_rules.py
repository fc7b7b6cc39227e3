"""Names of breakpoints, and at which of them a task stops; pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..rows import Task
from ..states import DELETING, UNDECIDED, TaskKind

PRE, POST = "pre", "post"
_ACTIONS = {
    TaskKind.CREATE: "create",
    TaskKind.UPDATE: "update",
    **dict.fromkeys(DELETING, "delete"),
}
POST_DELETE = "post-delete"


def stop_at(task: Task, phase: str) -> str | None:
    """The breakpoint at which the task is to be held before its action begins, or after it has ended.

    :param phase: PRE or POST.
    """
    if task.kind not in _ACTIONS:
        return None
    hook = f"{phase}-{_ACTIONS[task.kind]}"
    return hook if hook in (task.hooks or {}) or (phase == PRE and task.stepped) else None


def is_post(hook: str | None) -> bool:
    """Whether the action has ended when the breakpoint is reached."""
    return hook is not None and hook.startswith(POST)


def aborts(task: Task, hook: str) -> bool:
    """Whether the stack's action ends where the task reaches the breakpoint."""
    return bool((task.hooks or {}).get(hook, {}).get("abort"))


def limit(task: Task, hook: str) -> float | None:
    """Seconds that the task may be held there; None: for ever."""
    found: float | None = (task.hooks or {}).get(hook, {}).get("timeout")
    return found


def fails_at_limit(task: Task, hook: str) -> bool:
    """Whether the end of that time ends the stack's action; else the task goes on."""
    return bool((task.hooks or {}).get(hook, {}).get("then") == "fail")


def abort_reason(hook: str, resource: str) -> str:
    """What the stack shows when a breakpoint has ended its action."""
    return f"{paused_action(hook)} aborted due to breakpoint on resource {resource}"


def paused_action(hook: str) -> str:
    """The action that waits there, as users see it."""
    return hook.partition("-")[2].upper()


def reached_reason(hook: str) -> str:
    """Heat's words; its client looks for them among the events."""
    return f"{paused_action(hook)} paused until Hook {hook} is cleared"


NAMED = 10
"""Breakpoints that a stack's status reason names."""


def paused_reason(action: str, found: Sequence[tuple[str, str]], count: int) -> str:
    """Status reason of a stack that is held.

    :param found: hook and resource of the first NAMED.
    :param count: of all.
    """
    named = ", ".join(f"{hook} on {resource}" for hook, resource in found[:NAMED])
    more = f", and {count - NAMED} more" if count > NAMED else ""
    return f"{action} paused at breakpoint{'s' * (count > 1)}: {named}{more}"


def cleared_reason(hook: str) -> str:
    """Heat's words; its client looks for them among the events."""
    return f"Hook {hook} is cleared"


@dataclass(frozen=True)
class BreakpointHit:
    """A task that reaches a breakpoint; the caller holds its row."""

    task: Task
    hook: str


def partition(unblocked: Iterable[Task]) -> tuple[list[Task], list[BreakpointHit]]:
    """Waiting tasks without predecessors: those that may begin, and those that are to be held."""
    free: list[Task] = []
    stops: list[BreakpointHit] = []
    for task in unblocked:
        hook = None if task.kind in UNDECIDED else stop_at(task, PRE)
        if hook is None:
            free.append(task)
        else:
            stops.append(BreakpointHit(task, hook))
    return free, stops
