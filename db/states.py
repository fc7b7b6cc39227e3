"""States and kinds of tasks, the allowed transitions between states, and statuses of stacks."""

import enum
from collections.abc import Mapping
from typing import NamedTuple


class TaskState(enum.StrEnum):
    """The states of a task, and the meaning of `due_at` in each of them."""

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
"""States in which a task runs, or will run without a user's request."""

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
            TaskState.READY,  # released: its conductor stops, or has died
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
    """The kinds of tasks, most of which are named like the type's action."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    CLEANUP = "cleanup"  #: deletes a resource if it was replaced meanwhile
    SUSPEND = "suspend"
    RESUME = "resume"
    CHECK = "check"
    SNAPSHOT = "snapshot"
    DELETE_SNAPSHOT = "delete_snapshot"  #: deletes a copy that a snapshot keeps
    ADOPT = "adopt"
    OBSERVE = "observe"  #: a check before an update, which decides by its result; it fails nothing
    REFRESH = "refresh"  #: reads volatile attributes after all other tasks, for outputs; it fails nothing
    SCALE = "scale"  #: scales a group after a signal, outside of traversals: see engine/scaling.py
    SIGNAL = "signal"  #: carries out the request of a signal, during any action of the stack


class TraversalState(enum.StrEnum):
    """The states of a traversal; the purge may take one that does not run when `due_at` has passed."""

    RUNNING = "running"  #: some of its tasks are open, or its end is being stored
    DONE = "done"  #: all its tasks are final, so it has ended its stack's action
    CANCELLED = "cancelled"  #: its stack's action has ended without it


class DeadlinePolicy(enum.StrEnum):
    """The two ways in which a stack's deadline behaves while breakpoints hold all unfinished work."""

    PAUSES = "pauses"
    COUNTS = "counts"


class Standing(enum.StrEnum):
    """The relations of a task to its stack's present traversal."""

    OWN = "own"  #: its traversal was the present one when its row was written last
    SUPERSEDED = "left"  #: it was running when its traversal was superseded: only its result is recorded
    CARRIED_OVER = "adopted"  #: it began in a superseded traversal, and continues for a newer one


DELETING = frozenset({TaskKind.DELETE, TaskKind.CLEANUP})
UNDECIDED = frozenset({TaskKind.UPDATE, TaskKind.CLEANUP, TaskKind.OBSERVE})
"""Kinds whose step finds whether there is anything to do, and shows the action's start then."""

ACTING = frozenset({TaskKind.SUSPEND, TaskKind.RESUME, TaskKind.CHECK, TaskKind.SNAPSHOT})
"""Kinds that act on existing resources only."""

SIGNALLED = frozenset({TaskKind.SCALE, TaskKind.SIGNAL})
"""Kinds that signals begin."""

SILENT = frozenset({TaskKind.DELETE_SNAPSHOT, TaskKind.REFRESH, *SIGNALLED})
"""Kinds that change neither a resource's status nor the events; only a failed signal is an event."""

INDEPENDENT = frozenset({TaskKind.DELETE_SNAPSHOT, TaskKind.SIGNAL})
"""Kinds that run during any action of the stack."""


class Status(enum.StrEnum):
    """The statuses of a stack's or a resource's last action."""

    IN_PROGRESS = "IN_PROGRESS"
    COMPLETE = "COMPLETE"
    FAILED = "FAILED"


class StackState(NamedTuple):
    """A stack's action, and its status."""

    action: str
    status: str

    def __str__(self) -> str:
        return f"{self.action}_{self.status}"


def cancelled_reason(action: str) -> str:
    """Return the reason of a resource whose action was cancelled; a colon and the cause may follow it."""
    return f"{action} aborted"


POST_DELETE = "post-delete"
"""The breakpoint at which a resource's row is kept although the resource is deleted."""

REDELIVER_AFTER = 5.0
"""Seconds after which the hint of a ready task is repeated; the interval doubles with each repetition."""
REDELIVER_MOST = 60.0
REPEATED_TOGETHER = 100
"""Ready tasks whose hints are repeated at the same moment; those of the next ones follow a second later.

So a backlog of many tasks, which wait for threads, costs little; and lost hints of as many come in time.
"""


def redelivery_delay(redelivered: int) -> float:
    """Return the seconds until the next repetition of a hint that was repeated `redelivered` times."""
    return float(min(REDELIVER_MOST, REDELIVER_AFTER * 2 ** min(redelivered, 10)))


def turn_of(number: int) -> float:
    """Return by how many seconds a hint is repeated later, for the task of this number among many."""
    return float(number // REPEATED_TOGETHER)
