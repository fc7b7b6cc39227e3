"""What a resource that is a stack of its own can do with that stack: the child.

A child is a stack like any other, run by whichever conductors take its tasks.  The parent's step stores it
and parks; the transaction that ends the child wakes it.
"""

import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Json = typing.Any


@dataclass(frozen=True)
class ChildGoal:
    """What a child shall be.

    :ivar template: as text or as a dict.
    :ivar parameters: secrets in clear.
    :ivar timeout: seconds that an action of the child may take; None: what remains of the parent's.
    :ivar generated: the template was made by a resource type, of values: nothing in the properties and the
        metadata of its resources is a function, secrets are in clear, and its size is not limited.
    :ivar secret: names of parameters whose values hold secrets; whoever carries the goal out finds them.
    :ivar copies: how many resources like each of the template's the child will have; for static_goal.
    """

    template: str | Mapping[str, Json]
    parameters: Mapping[str, Json] = field(default_factory=dict)
    timeout: float | None = None
    generated: bool = False
    secret: frozenset[str] = frozenset()
    copies: int = 1


@dataclass(frozen=True)
class ChildState:
    """A child as it is now.

    :ivar traversal: id of the attempt to bring it to its goal: another one for each.
    """

    action: str
    status: str
    reason: str
    name: str = ""
    traversal: str = ""

    @property
    def is_over(self) -> bool:
        """Nothing is being done to it."""
        return self.status != "IN_PROGRESS"


@dataclass(frozen=True)
class GroupMember:
    """A resource of a child whose template was generated.

    :ivar definition: its body in the template, secrets in clear; None: the template has it no more.
    :ivar reference: what get_resource yields; None: it is not made yet.
    :ivar created_at: seconds since the epoch.
    """

    name: str
    definition: Mapping[str, Json] | None
    reference: Json = None
    is_failed: bool = False
    created_at: float = 0.0


class Children(typing.Protocol):
    """What a conductor offers the step of a nested type."""

    def create(self, key: str, goal: ChildGoal, adopted: Mapping[str, Json] | None = None) -> str:
        """Begin a child; its id, the same for the same key, as `Target.key` is.

        :param adopted: by resource, as a document of an exported stack has it, what the child takes over;
            None: all is made.
        :raises Final: the goal is wrong, or too deep.
        """

    def update(self, child: str, goal: ChildGoal) -> None:
        """Begin to bring it to another goal, whatever it does now.

        :raises Final: the goal is wrong, or the child is being deleted.
        """

    def delete(self, child: str) -> None:
        """Begin to delete it; one that is gone already stays gone."""

    def act(self, child: str, action: str) -> None:
        """Begin ``suspend``, ``resume`` or ``check``.

        :raises Final: the child is not in a state for it.
        """

    def snapshot(self, child: str, key: str) -> None:
        """Begin a snapshot of it, or find the one that a step with this key has begun.

        :raises Final: the child is not in a state for it.
        """

    def snapshot_state(self, child: str, key: str) -> ChildState | None:
        """What has become of that snapshot; None: it is not there."""

    def delete_snapshot(self, child: str, key: str) -> None:
        """Begin to delete that snapshot, whatever the child does; one that is gone already stays gone.

        :raises Final: it is being taken.
        """

    def find(self, key: str) -> str | None:
        """The child that a step with this key has created, if it is there."""

    def look(self, child: str) -> ChildState | None:
        """As it is now; None: it is deleted, or was never there."""

    def outputs(self, child: str) -> Mapping[str, Json]:
        """Its outputs by name; None where one cannot be told."""

    def members(self, child: str) -> Sequence[GroupMember]:
        """The resources of a child whose template was generated; those that failed first, then by age and
        name."""

    def file(self, name: str) -> str:
        """The text of a file that belongs to the stack.

        :raises Final: there is no such file.
        """
