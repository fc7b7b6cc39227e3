"""What a step sees of its resource, and what it may call: siblings, addresses, sessions, nested stacks.

A nested stack, the *child*, is a stack like any other, run by whichever conductors take its tasks.  The
parent's step stores it and parks; the transaction that ends the child wakes it.
"""

import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

if typing.TYPE_CHECKING:
    from keystoneauth1.session import Session

Json = typing.Any


def physical_name(stack_name: str, resource_name: str, key: str) -> str:
    """A name for the thing outside: STACK-RESOURCE-KEY, at most 255 characters."""
    tail = f"-{resource_name}-{key.replace('-', '')[:12]}"
    return (stack_name[: max(0, 255 - len(tail))] + tail)[-255:]


@dataclass(frozen=True)
class StackFacts:
    """The stack a resource belongs to."""

    id: str
    name: str
    tenant: str


@dataclass(frozen=True)
class ResourceView:
    """A resource as a step sees it.

    :ivar id: number of the resource row, unique in the installation.
    :ivar properties: resolved and converted by the schema, defaults filled in; secrets in clear.
    :ivar previous: the properties last applied (update only), else empty.
    :ivar update_policy: resolved by the type's schema for it.
    :ivar data: what earlier steps of this resource kept; private to the plugin.
    :ivar key: idempotency key; the same for every repetition of this action, new for the next action.
    :ivar physical_id: id of the thing outside, None before it exists.
    :ivar requested_attributes: attributes that others refer to, each with the constant path below it; of a
        NestedType that `has_member_attributes` only.
    """

    id: int
    name: str
    type: str
    stack: StackFacts
    properties: Mapping[str, Json]
    key: str
    physical_id: str | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict)
    data: Mapping[str, Json] = field(default_factory=dict)
    previous: Mapping[str, Json] = field(default_factory=dict)
    update_policy: Mapping[str, Json] = field(default_factory=dict)
    requested_attributes: Sequence[Sequence[str | int]] = ()

    @property
    def physical_name(self) -> str:
        """A name for the thing outside: STACK-RESOURCE-KEY, at most 255 characters."""
        return physical_name(self.stack.name, self.name, self.key)


@dataclass(frozen=True)
class Sibling:
    """Another resource of the same stack, as it is now.

    :ivar generation: grows with each change of the metadata.
    """

    id: int
    name: str
    physical_id: str | None
    metadata: Mapping[str, Json]
    generation: int


@dataclass(frozen=True)
class Presigned:
    """Where everybody who knows the signature may signal one resource, and do nothing else.

    :ivar endpoint: takes the signature as X-Auth-Token.
    :ivar signature: a secret.
    """

    endpoint: str
    signature: str = field(repr=False)

    @property
    def url(self) -> str:
        """All in one: a secret, too."""
        return f"{self.endpoint}?Signature={self.signature}"


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

    def state(self, child: str) -> ChildState | None:
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


class StepContext(typing.Protocol):
    """What a conductor offers a running step.  All methods may be called from the step's thread only."""

    def now(self) -> float:
        """Seconds since the epoch, UTC."""

    def checkpoint(self) -> None:
        """To be called now and then by long steps.

        :raises Cancelled: the step shall end; let it pass.
        """

    def pause(self, seconds: float) -> None:
        """Sleep, but end early when the step is cancelled.

        :raises Cancelled: the step shall end; let it pass.
        """

    def sibling(self, name: str) -> Sibling:
        """Read another resource of the stack (one database read).

        :raises Final: there is none of that name.
        """

    def signal_url(self, resource_name: str) -> str:
        """Where a signal for a resource of this stack can be posted, with a token of Keystone's."""

    def presigned(self) -> Presigned:
        """Where a signal for this resource can be posted without one."""

    def session(self) -> "Session":
        """A session of keystoneauth's in the name of the stack's user, in its project; his token may have
        expired.  For types that say `uses_credentials`.

        :raises Final: the stack has no credential, or Keystone does not take it any more.
        :raises TryAgain: Keystone is away.
        """

    @property
    def children(self) -> Children:
        """Stacks that the resource consists of."""
