"""Resources as a step sees them: its own resource, others of the stack, and the replacement."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...shapes import JsonMap


def physical_name(stack_name: str, resource_name: str, key: str) -> str:
    """Return a name for the thing outside: STACK-RESOURCE-KEY, at most 255 characters."""
    tail = f"-{resource_name}-{key.replace('-', '')[:12]}"
    return (stack_name[: max(0, 255 - len(tail))] + tail)[-255:]


@dataclass(frozen=True)
class StackFacts:
    """The stack to which a resource belongs."""

    id: str
    name: str
    project_id: str


@dataclass(frozen=True)
class ResourceView:
    """A resource as a step sees it.

    :ivar id: number of the resource row, unique in the installation.
    :ivar properties: the values, resolved and converted by the schema, with defaults; secrets in clear.
    :ivar previous: the properties of the last successful action, for an update; otherwise empty.
    :ivar update_policy: the resource's update_policy, resolved by the type's schema for it.
    :ivar data: values that earlier steps of this resource have stored; private to the plugin.
    :ivar key: the idempotency key, the same for every repetition of this action; the next action has another.
    :ivar creation_key: the key of its creation, also in later actions; "": it was not created here.
    :ivar physical_id: id of the thing outside; None: it does not exist yet.
    :ivar attempt: number of the attempt at this action; above 1 an earlier one may have created the thing.
    :ivar requested_attributes: attributes that others refer to, each with the constant path below it; of a
        NestedType that `has_member_attributes` only.
    :ivar template: the name of the file of the stack that is its type; "": its type is no template.
    """

    id: int
    name: str
    type: str
    stack: StackFacts
    properties: JsonMap
    key: str
    physical_id: str | None = None
    attempt: int = 1
    metadata: JsonMap = field(default_factory=dict)
    data: JsonMap = field(default_factory=dict)
    previous: JsonMap = field(default_factory=dict)
    update_policy: JsonMap = field(default_factory=dict)
    requested_attributes: Sequence[Sequence[str | int]] = ()
    creation_key: str = ""
    template: str = ""

    @property
    def type_name(self) -> str:
        """Return the name of its type for messages."""
        return self.template or self.type

    @property
    def physical_name(self) -> str:
        """Return a name for the thing outside: STACK-RESOURCE-KEY, at most 255 characters.

        Its key is that of the creation, so the name is the same in all actions.
        """
        return physical_name(self.stack.name, self.name, self.creation_key or self.key)


@dataclass(frozen=True)
class Sibling:
    """The present state of another resource of the same stack.

    :ivar generation: number that grows with each change of the metadata.
    """

    id: int
    name: str
    physical_id: str | None
    metadata: JsonMap
    generation: int


@dataclass(frozen=True)
class ReferencedResource:
    """Another resource of the same stack, to which a property refers.

    :ivar type: its type after the environment's mapping.
    :ivar data: values that its steps have stored, secrets in clear.
    :ivar name: its name in the stack.
    """

    type: str
    data: JsonMap = field(default_factory=dict)
    name: str = ""


@dataclass(frozen=True)
class DeletionView:
    """A resource that the deletion of the stack still has to delete.

    :ivar number: a number that identifies the resource among the others.
    :ivar type: its type after the environment's mapping.
    :ivar physical_id: id of its thing outside; None: it has none.
    :ivar successors: numbers of the resources whose deletion waits for the end of this one.
    :ivar is_certain: whether its thing will certainly be deleted: no policy keeps it, no breakpoint holds it.
    """

    number: int
    type: str
    physical_id: str | None
    successors: Sequence[int] = ()
    is_certain: bool = True


@dataclass(frozen=True)
class ReplacementView:
    """The resource that an update has made in the place of another one.

    :ivar type: type of the new resource, perhaps another one.
    :ivar physical_id: id of its thing outside; None: there is no thing, or a lost attempt has created it with
        this `key`.
    :ivar data: values that its type has stored.
    """

    type: str
    key: str
    physical_id: str | None = None
    data: JsonMap = field(default_factory=dict)
