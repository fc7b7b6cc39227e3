"""The kinds of identifiers, so that one cannot be passed for another."""

import enum
import typing
from dataclasses import dataclass

StackId = typing.NewType("StackId", str)
TraversalId = typing.NewType("TraversalId", str)
TraversalNumber = typing.NewType("TraversalNumber", int)
"""Key of a traversal's row."""
ResourceId = typing.NewType("ResourceId", int)
TaskId = typing.NewType("TaskId", int)
SnapshotId = typing.NewType("SnapshotId", str)
ConfigId = typing.NewType("ConfigId", str)
"""A software config of a known project: db/software.py makes it of an id that a user or a document gives."""
DeploymentId = typing.NewType("DeploymentId", str)
"""A software deployment of a known project, likewise."""
ContentId = typing.NewType("ContentId", str)
MemberId = typing.NewType("MemberId", str)
"""One incarnation of a conductor: ``HOST/INCARNATION``."""


def host_of(member: MemberId) -> str:
    """Return the host of a member's conductor."""
    return member.rsplit("/", 1)[0]


class AwaitedKind(enum.StrEnum):
    """The kinds of events that parked tasks wait for."""

    RESOURCE = "resource"  #: a change of its metadata, such as a signal makes
    STACK = "stack"  #: a nested stack's end
    STEP = "step"  #: the end of a step that was detached


@dataclass(frozen=True, order=True)
class WaitsOn:
    """The event that a parked task waits for, stored as ``KIND:KEY``.

    >>> str(WaitsOn.step(TaskId(7), 2)), WaitsOn.parse("stack:x").kind.name
    ('step:7:2', 'STACK')

    :ivar key: the id of a resource or a stack; ``TASK:ATTEMPT`` of a step.
    """

    kind: AwaitedKind
    key: str

    @classmethod
    def parse(cls, text: str) -> "WaitsOn":
        """Return the value of a stored text.

        :raises ValueError: the text names no known kind.
        """
        kind, _, key = text.partition(":")
        return cls(AwaitedKind(kind), key)

    @classmethod
    def resource(cls, resource_id: ResourceId) -> "WaitsOn":
        """Return the wait for a change of a resource's metadata."""
        return cls(AwaitedKind.RESOURCE, str(resource_id))

    @classmethod
    def stack(cls, stack_id: StackId) -> "WaitsOn":
        """Return the wait for the end of a nested stack."""
        return cls(AwaitedKind.STACK, stack_id)

    @classmethod
    def step(cls, task_id: TaskId, attempt: int) -> "WaitsOn":
        """Return the wait for the end of a detached step."""
        return cls(AwaitedKind.STEP, f"{task_id}:{attempt}")

    @property
    def is_stack(self) -> bool:
        """Return whether it is a nested stack: work that runs elsewhere."""
        return self.kind == AwaitedKind.STACK

    def __str__(self) -> str:
        return f"{self.kind}:{self.key}"
