"""States of a task and of a stack, and the moves between them that are allowed."""

import enum
from collections.abc import Mapping


class TaskState(enum.StrEnum):
    """Where a task stands; what `due_at` means in each state is said beside it."""

    WAITING = "waiting"  #: predecessors unfinished; due_at none
    READY = "ready"  #: may be claimed, a hint was sent; due_at: send the hint again
    RUNNING = "running"  #: claimed by (member, attempt); due_at: the resource's timeout
    PARKED = "parked"  #: waits for a signal, a child stack, a retry; due_at: wake it
    HELD = "held"  #: at a breakpoint; due_at none, or the breakpoint's own limit
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


FINAL = frozenset({TaskState.DONE, TaskState.FAILED, TaskState.CANCELLED})
UNSTARTED = frozenset({TaskState.WAITING, TaskState.READY, TaskState.PARKED, TaskState.HELD})
ACTIVE = frozenset({TaskState.READY, TaskState.RUNNING, TaskState.PARKED})
"""Something goes on there, or will without anybody's doing."""

TRANSITIONS: Mapping[TaskState, frozenset[TaskState]] = {
    TaskState.WAITING: frozenset(
        {
            TaskState.READY,
            TaskState.RUNNING,  # claimed in the transaction that counted it down: nobody saw it as ready
            TaskState.HELD,
            TaskState.CANCELLED,
        }
    ),
    TaskState.READY: frozenset({TaskState.RUNNING, TaskState.CANCELLED}),
    TaskState.RUNNING: frozenset(
        {
            TaskState.READY,  # given back: handed over, or its conductor died
            TaskState.RUNNING,  # progress
            TaskState.PARKED,
            TaskState.HELD,
            TaskState.DONE,
            TaskState.FAILED,
            TaskState.CANCELLED,
        }
    ),
    TaskState.PARKED: frozenset({TaskState.READY, TaskState.CANCELLED}),
    TaskState.HELD: frozenset({TaskState.READY, TaskState.DONE, TaskState.CANCELLED}),
    TaskState.DONE: frozenset(),
    TaskState.FAILED: frozenset(),
    TaskState.CANCELLED: frozenset(),
}


class TaskKind(enum.StrEnum):
    """What a task does; all but FINISH name the plugin's action."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    CLEANUP = "cleanup"  #: deletes a resource if it was replaced meanwhile
    SUSPEND = "suspend"
    RESUME = "resume"
    CHECK = "check"
    SNAPSHOT = "snapshot"
    DELETE_SNAPSHOT = "delete_snapshot"  #: of a copy that a snapshot keeps
    ADOPT = "adopt"
    OBSERVE = "observe"  #: a check before an update: what it finds is that one's business, and fails nothing
    SCALE = "scale"  #: of a group, because of a signal: beside the traversals, see engine/scaling.py
    FINISH = "finish"  #: no task, but a traversal in its old form: see legacy_finish_tasks.py


class TraversalState(enum.StrEnum):
    """State of a traversal; `due_at` tells when the purge may take one that is not running."""

    RUNNING = "running"  #: tasks of it are not final, or its end is just being stored
    DONE = "done"  #: none of its tasks was left, so it has ended what its stack did
    CANCELLED = "cancelled"  #: what its stack did was ended without it


class DeadlinePolicy(enum.StrEnum):
    """What the deadline of a stack does while all that is unfinished is held at breakpoints."""

    PAUSES = "pauses"
    COUNTS = "counts"


class Standing(enum.StrEnum):
    """Of a task towards its stack's present traversal."""

    OWN = "own"  #: it belongs to it, as far as it knows
    SUPERSEDED = "left"  #: it ran when its traversal was superseded: its result is recorded, and nothing more
    CARRIED_OVER = "adopted"  #: begun by a superseded one, but it does what is still wanted: it goes on


DELETING = frozenset({TaskKind.DELETE, TaskKind.CLEANUP})
REMOVING = frozenset({*DELETING, TaskKind.DELETE_SNAPSHOT})
"""Kinds after whose good end the row is gone."""
UNDECIDED = frozenset({TaskKind.UPDATE, TaskKind.CLEANUP, TaskKind.OBSERVE})
"""Kinds of which only the step finds whether there is something to do; it shows the action's beginning."""

ACTING = frozenset({TaskKind.SUSPEND, TaskKind.RESUME, TaskKind.CHECK, TaskKind.SNAPSHOT})
"""Kinds that act on what is there, and leave the rest alone."""

SILENT = frozenset({TaskKind.DELETE_SNAPSHOT, TaskKind.SCALE})
"""Kinds that show nothing on a resource, nor among the events; that a group was not scaled is one, though."""


class Status(enum.StrEnum):
    """Of a stack's or a resource's last action."""

    IN_PROGRESS = "IN_PROGRESS"
    COMPLETE = "COMPLETE"
    FAILED = "FAILED"


def stopped_reason(action: str) -> str:
    """The reason of a resource whose action was stopped before its end; why may stand behind it."""
    return f"{action} aborted"


REDELIVER_AFTER = 5.0
"""Seconds after which the hint of a ready task is sent again; grows by doubling with each repetition."""
REDELIVER_MOST = 60.0


def redelivery_delay(redelivered: int) -> float:
    """Seconds until the next repetition of a hint that was repeated `redelivered` times."""
    return float(min(REDELIVER_MOST, REDELIVER_AFTER * 2 ** min(redelivered, 10)))
