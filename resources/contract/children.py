"""Nested stacks for steps.

A nested stack, the *child*, is a stack like any other, run by whichever conductors take its tasks.  The
parent's step stores it and parks; the transaction that ends the child wakes it.
"""

import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ...shapes import Json, JsonMap


@dataclass(frozen=True)
class ChildGoal:
    """The goal of a nested stack.

    :ivar template: the template, as text or as a dict.
    :ivar parameters: values of the template's parameters by name, secrets in clear.
    :ivar timeout: seconds that an action of the child may take; None: the rest of the parent's.
    :ivar generated: a resource type has made the template of values: the properties and the metadata of its
        resources have no functions, their secrets are in clear, and its size is not limited.
    :ivar secret: names of parameters whose values hold secrets; the conductor fills it in.
    :ivar copies: the number of resources that the child will have for each one of the template; only for
        `static_goal`.
    """

    template: str | JsonMap
    parameters: JsonMap = field(default_factory=dict)
    timeout: float | None = None
    generated: bool = False
    secret: frozenset[str] = frozenset()
    copies: int = 1


@dataclass(frozen=True)
class ChildFailure:
    """The first cause for which the action of a nested stack failed.

    :ivar message: the text of the error.
    :ivar kind: kind of the error, such as the name of its class.
    :ivar path: the resource in the child that failed: ``resources.NAME…``; "" if none did.
    :ivar breakpoint: the resource in the child, ``NAME/…``, at whose breakpoint the action ended; "" if it
        failed for another reason.
    """

    message: str
    kind: str = "ResourceFailure"
    path: str = ""
    breakpoint: str = ""


@dataclass(frozen=True)
class ChildState:
    """The present state of a nested stack.

    :ivar id: its id, for users and for waiting.  No call takes it: a step reaches its own child only.
    :ivar traversal: id of its current traversal.
    :ivar failure: the cause, if the child FAILED; None: only the reason is known.
    """

    action: str
    status: str
    reason: str
    name: str = ""
    traversal: str = ""
    failure: ChildFailure | None = None
    id: str = ""

    @property
    def is_over(self) -> bool:
        """Return whether no action is in progress."""
        return self.status != "IN_PROGRESS"


@dataclass(frozen=True)
class GroupMember:
    """A resource of a child whose template was generated.

    :ivar definition: its body in the template, secrets in clear; None: the template no longer has it.
    :ivar reference: the value of get_resource; None: it is not created yet.
    :ivar created_at: seconds since the epoch.
    :ivar physical_id: id of the member's thing outside; None: it has none yet.
    :ivar has_template: says whether a type's name leads to a template with the content of the member's own.
    """

    name: str
    definition: JsonMap | None
    reference: Json = None
    is_failed: bool = False
    created_at: float = 0.0
    physical_id: str | None = None
    has_template: Callable[[str], bool] = field(default=lambda type_name: False, compare=False)

    def has(self, definition: JsonMap) -> bool:
        """Return whether it has this definition already, whatever the address of the template in it."""
        if self.definition is None or self.definition == definition:
            return self.definition == definition
        own = {key: value for key, value in self.definition.items() if key != "type"}
        other = {key: value for key, value in definition.items() if key != "type"}
        return own == other and self.has_template(str(definition.get("type")))

    @property
    def place(self) -> tuple[int, str]:
        """Return its place among the members: the oldest first, those of one second by their names.

        This is Heat's order, where an instant has no fraction, and an import takes it over.
        """
        return int(self.created_at), self.name


def in_order(members: Iterable[GroupMember]) -> list[GroupMember]:
    """Return the members of a group, failed ones first, then the oldest."""
    return sorted(members, key=lambda member: (not member.is_failed, member.place))


@dataclass(frozen=True)
class ChildInputs:
    """The inputs that a nested stack would get from the stack around it, without the operator's environments.

    :ivar environment: the environment as the API takes it; secrets in clear.
    """

    files: Mapping[str, str]
    environment: JsonMap = field(repr=False)


class ChildReads(typing.Protocol):
    """Reads of the nested stack of a resource, and of what the stack around it would give it."""

    def state(self) -> ChildState | None:
        """Return the state of the child; None: it is deleted, or has never existed."""

    def inner_values(self, requested: Sequence[Sequence[str | int]]) -> JsonMap:
        """Return the attributes of the child's resources to which others refer, by name.

        :param requested: paths, which begin with ``resource.NAME`` or ``resource.NAME.ATTRIBUTE``.
        """

    def output_errors(self) -> Mapping[str, str]:
        """Return the errors of the child's outputs that can never be computed, by name of the output."""

    def outputs(self) -> JsonMap:
        """Return the outputs of the child by name; an output that cannot be computed is None."""

    def members(self) -> Sequence[GroupMember]:
        """Return the members of a generated child: failed ones first, then by age and name."""

    def file(self, name: str) -> str:
        """Return the text of a file of the stack.

        :raises PermanentError: there is no such file.
        """

    def template(self, url: str) -> str:
        """Fetch the text of a template, from a host that the operator allows.

        :raises PermanentError: the address may not be asked, or has not answered with a template.
        """

    def inputs(self) -> ChildInputs:
        """Return the inputs that a child of the resource would get, for the request for a remote stack."""


class Children(ChildReads, typing.Protocol):
    """Calls for the nested stack of a resource, which a conductor offers to steps.

    A resource has one child at most, and no call takes an id: the child is the stack whose own row names the
    resource.
    """

    def create(self, key: str, goal: ChildGoal, adopted: JsonMap | None = None) -> str:
        """Start to create the child, or find the one that the resource has; return its id.

        :param key: the `ResourceView.key`, from which name and id of a new child follow.
        :param adopted: things that the child takes over, by resource, as in the document of an exported
            stack; None: everything is created.
        :raises PermanentError: the goal is wrong, or too deep.
        """

    def update(self, goal: ChildGoal) -> str:
        """Start to update the child to another goal, also while an action is in progress; return its id.

        :raises ChildGone: there is no child.
        :raises PermanentError: the goal is wrong, or the child is being deleted.
        """

    def delete(self) -> None:
        """Start to delete the child; one that does not exist is ignored."""

    def act(self, action: str) -> str:
        """Start ``suspend``, ``resume`` or ``check``; return the id of the child.

        :raises ChildGone: there is no child.
        :raises PermanentError: the child is not in a state for it.
        """

    def snapshot(self, key: str) -> str:
        """Start a snapshot of the child, or find that of a step with this key; return the id of the child.

        :raises ChildGone: there is no child.
        :raises PermanentError: the child is not in a state for it.
        """

    def snapshot_state(self, key: str) -> ChildState | None:
        """Return the state of the snapshot that a step with this key has started; None: it does not exist."""

    def delete_snapshot(self, key: str) -> None:
        """Start to delete the snapshot with this key, in any state of the child; a missing one is ignored.

        :raises PermanentError: the snapshot is being taken.
        """
