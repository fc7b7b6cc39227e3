"""The nested stacks that a step may create, change and read, as its resource type sees them."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from ...db.rows import Resource, Stack
from ...db.states import TaskKind
from ...db.work.claim import Claim
from ...engine.children import members_of
from ...engine.nested_stacks import NestedStacks
from ...engine.parent_resource import ParentResource
from ...engine.planning.plan import TaskDefinition
from ...resources.contract.children import (
    ChildFailure,
    ChildGoal,
    ChildInputs,
    Children,
    ChildState,
    GroupMember,
)
from ...resources.contract.views import physical_name
from ...sealing.secrets import Secrets
from ...shapes import JsonMap
from ...template.residual import partial
from .child_secrets import failing_outputs, goal_with_secrets, open_inner_values, open_outputs
from .claimed_writes import StepDatabase
from .inputs import SealedLookup
from .target import kept_properties


@dataclass
class _ReadChild:
    """The child as the step has read it.

    :ivar rows: its resources but those that were replaced; None: they were not read yet.
    """

    stack: Stack | None
    rows: list[Resource] | None = None


class StepChildren(Children):
    """Implements Children for one step of one claim.

    What the step has read of the child is kept until the step changes it.

    :param database: compares the claim in each transaction that changes a child, by `ParentResource.guard`.
    """

    def __init__(self, claim: Claim, database: StepDatabase, nested: NestedStacks, secrets: Secrets) -> None:
        self._claim = claim
        self._writes = database.writes_of(claim)
        self._nested = nested
        self._secrets = secrets
        self._read: _ReadChild | None = None
        self._same_templates: dict[tuple[str, str], bool] = {}

    def create(self, key: str, goal: ChildGoal, adopted: JsonMap | None = None) -> str:
        return self._forget().create(self._parent(key), self._with_secrets(goal), adopted)

    def update(self, goal: ChildGoal) -> str:
        return self._forget().update(self._parent(), self._with_secrets(goal))

    def delete(self) -> None:
        self._forget().delete(self._parent())

    def act(self, action: str) -> str:
        return self._forget().act(self._parent(), TaskKind(action))

    def snapshot(self, key: str) -> str:
        return self._forget().snapshot(self._parent(key))

    def snapshot_state(self, key: str) -> ChildState | None:
        snapshot = self._nested.snapshot_of(self._parent(key))
        return None if snapshot is None else ChildState(snapshot.action, snapshot.status, snapshot.reason)

    def delete_snapshot(self, key: str) -> None:
        self._forget().delete_snapshot(self._parent(key))

    def state(self) -> ChildState | None:
        stack = self._stack()
        if stack is None:
            return None
        cause = stack.failure_cause
        return ChildState(
            action=stack.action,
            status=stack.status,
            reason=stack.reason,
            name=stack.name,
            traversal=stack.traversal,
            failure=None if cause is None else ChildFailure(**asdict(cause)),
            id=stack.id,
        )

    def inner_values(self, requested: Sequence[Sequence[str | int]]) -> JsonMap:
        stack = self._stack()
        if stack is None:
            return {}
        rows = {row.name: row for row in self._present_rows()}
        return open_inner_values(requested, rows, self._secrets)

    def output_errors(self) -> Mapping[str, str]:
        stack = self._stack()
        if stack is None:
            return {}
        rows = {row.name: row for row in self._present_rows()}
        return failing_outputs(stack.outputs, rows, self._secrets)

    def outputs(self) -> JsonMap:
        stack = self._stack()
        if stack is None:
            return {}
        rows = {row.name: row for row in self._present_rows()}
        return open_outputs(stack.outputs, rows, self._secrets)

    def members(self) -> Sequence[GroupMember]:
        stack = self._stack()
        if stack is None:
            return []
        bodies = self._nested.bodies(stack, self._secrets.open)
        return members_of(
            self._present_rows(),
            bodies,
            self._secrets,
            lambda row: functools.partial(self._has_template, stack, row),
        )

    def _has_template(self, child: Stack, member: Resource, type_name: str) -> bool:
        """Return whether a type's name leads to the template of a member; members share the answers."""
        key = (member.template, type_name)
        if key not in self._same_templates:
            resource = (self._claim.resource.name, self._claim.resource.type)
            self._same_templates[key] = self._nested.has_template(
                child, member, resource, type_name, self._secrets.open
            )
        return self._same_templates[key]

    def file(self, name: str) -> str:
        return self._nested.file(self._claim.task.stack_id, name)

    def template(self, url: str) -> str:
        return self._nested.template(url)

    def inputs(self) -> ChildInputs:
        claim = self._claim
        resource = (claim.resource.name, claim.resource.type)
        return self._nested.inputs(claim.task.stack_id, resource, self._secrets.open)

    def _forget(self) -> NestedStacks:
        """Return the operations, for one that changes the child."""
        self._read = None
        return self._nested

    def _child(self) -> _ReadChild:
        if self._read is None:
            claim = self._claim
            self._read = _ReadChild(self._nested.find(claim.task.stack_id, claim.resource.id))
        return self._read

    def _stack(self) -> Stack | None:
        return self._child().stack

    def _present_rows(self) -> list[Resource]:
        """Return the child's resources but those that were replaced."""
        child = self._child()
        if child.rows is None:
            rows = [] if child.stack is None else self._nested.rows(child.stack.id)
            child.rows = [row for row in rows if row.replaced_by is None]
        return child.rows

    def _with_secrets(self, goal: ChildGoal) -> ChildGoal:
        claim = self._claim
        return goal_with_secrets(goal, claim.resource.plugin, kept_properties(claim), self._secrets)

    def _parent(self, key: str = "") -> ParentResource:
        claim = self._claim
        definition = TaskDefinition.from_json(claim.task.definition)
        lookup = SealedLookup(claim)
        return ParentResource(
            stack_id=claim.task.stack_id,
            resource_id=claim.resource.id,
            resource_name=claim.resource.name,
            resource_type=definition.type or claim.resource.type,
            child_name=physical_name(claim.stack_name, claim.resource.name, key),
            key=key,
            facade={
                "metadata": partial(definition.metadata, lookup),
                "deletion_policy": definition.deletion_policy,
                "update_policy": partial(definition.update_policy, lookup),
            },
            guard=self._writes.check,
        )
