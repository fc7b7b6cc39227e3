"""Results of steps, as the database layer stores them; values only."""

import typing
from collections.abc import Mapping
from dataclasses import dataclass, field

from .ids import ResourceId, TaskId, WaitsOn
from .rows import Event, Resource, Task
from .states import TRANSITIONS, TaskState

Json = typing.Any


@dataclass(frozen=True)
class OrphanedCreate:
    """A create whose step was detached: it may still make something.

    :ivar task: the task as its conductor, which still runs the step, has claimed it.
    :ivar resource: with its key, and with the properties that the step got.
    """

    task: Task
    resource: Resource

    @property
    def step(self) -> WaitsOn:
        """Return what the deletion of the orphan waits for."""
        return WaitsOn.step(self.task.id, self.task.attempt)


@dataclass(frozen=True)
class Outcome:
    """The result of a step of a claimed task.

    :ivar state: the task's next state.
    :ivar changes: columns of the resource's row to set.
    :ivar remove: the resource's row is deleted, because a deletion has succeeded.
    :ivar due_at: when a duty attends to the task next, for states that are not final.
    :ivar waits_on: for PARKED; see `resources.steps.Park`.
    :ivar seen: for PARKED on a resource: the generation of its metadata that the step saw.
    :ivar reason: for FAILED: first cause, shown on the stack.
    :ivar hook: for HELD: the breakpoint.
    :ivar aborts: for FAILED: a breakpoint ends the stack's action.
    :ivar begun: the event of the action's start, where only the step could find that it starts.
    :ivar event: the event of the action's end.
    :ivar copy: columns to set of a snapshot's copy of the resource, with the copy's id as ``row_id``.
    :ivar leftover: what the step may still make, for it did not stop; recorded if the task is final.
    :ivar replacement: for READY and HELD: the task continues with the creation of this new resource, which
        replaces `resource_id`.
    """

    task_id: TaskId
    attempt: int
    state: TaskState
    resource_id: ResourceId
    changes: Mapping[str, Json] = field(default_factory=dict)
    remove: bool = False
    due_at: float | None = None
    waits_on: WaitsOn | None = None
    seen: int = 0
    retries_left: int | None = None
    reason: str | None = None
    hook: str | None = None
    aborts: bool = False
    begun: Event | None = None
    event: Event | None = None
    replacement: Resource | None = None
    copy: Mapping[str, Json] = field(default_factory=dict)
    leftover: OrphanedCreate | None = None

    def __post_init__(self) -> None:
        if self.state not in TRANSITIONS[TaskState.RUNNING]:
            raise ValueError(f"a running task never becomes {self.state}")
        if (self.state == TaskState.HELD) != (self.hook is not None):
            raise ValueError("a task is held at a breakpoint")
