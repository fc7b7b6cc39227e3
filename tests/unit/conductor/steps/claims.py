"""Claims of one task, for steps that read no database."""

import typing

from stoker.db.ids import ResourceId, StackId, TaskId, TraversalId
from stoker.db.rows import Resource, Task
from stoker.db.states import TaskKind, TaskState
from stoker.db.work.claim import Claim
from stoker.shapes import TypeIdentity

STACK = StackId("s")


def a_task(kind: TaskKind = TaskKind.UPDATE, **columns: typing.Any) -> Task:
    """The task, which runs for the first time."""
    usual = {"attempt": 1, "definition": {}, "retries_left": 3}
    return Task(
        TaskId(1),
        TraversalId("t"),
        STACK,
        kind,
        TaskState.RUNNING,
        0,
        7,
        ResourceId(2),
        **{**usual, **columns},
    )


def a_row(status: str = "COMPLETE", **columns: typing.Any) -> Resource:
    """Its resource, in its creation or after it."""
    identity = TypeIdentity("A::B")
    return Resource(
        ResourceId(2), STACK, "r", "A::B", identity, "CREATE", status, "state changed", 0.0, 0.0, **columns
    )


def a_claim(task: Task, row: Resource) -> Claim:
    """The claim of a task that needs no values of others."""
    return Claim(task, row, {}, "stack", "p", STACK, has_sinks=False)
