"""What a resource that is a stack of its own can do with that stack: the child.

A child is a stack like any other, run by whichever conductors take its tasks.  The parent's step stores it
and parks; the transaction that ends the child wakes it.
"""

import typing
from collections.abc import Mapping
from dataclasses import dataclass, field

Json = typing.Any


@dataclass(frozen=True)
class ChildGoal:
    """What a child shall be.

    :ivar template: as text or as a dict.
    :ivar parameters: secrets in clear.
    :ivar timeout: seconds that an action of the child may take; None: what remains of the parent's.
    """

    template: str | Mapping[str, Json]
    parameters: Mapping[str, Json] = field(default_factory=dict)
    timeout: float | None = None


@dataclass(frozen=True)
class ChildState:
    """A child as it is now."""

    action: str
    status: str
    reason: str
    name: str = ""

    @property
    def is_over(self) -> bool:
        """Nothing is being done to it."""
        return self.status != "IN_PROGRESS"


class Children(typing.Protocol):
    """What a conductor offers the step of a nested type."""

    def create(self, key: str, goal: ChildGoal) -> str:
        """Begin a child; its id, the same for the same key, as `Target.key` is.

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

    def find(self, key: str) -> str | None:
        """The child that a step with this key has created, if it is there."""

    def look(self, child: str) -> ChildState | None:
        """As it is now; None: it is deleted, or was never there."""

    def outputs(self, child: str) -> Mapping[str, Json]:
        """Its outputs by name; None where one cannot be told."""

    def file(self, name: str) -> str:
        """The text of a file that belongs to the stack.

        :raises Final: there is no such file.
        """
