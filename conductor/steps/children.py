"""The nested stacks that a step may create, change and read, as its resource type sees them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from ...db.ids import StackId
from ...db.rows import Resource, Stack
from ...db.states import Status, TaskKind
from ...db.work.claim import Claim
from ...engine.parent_resource import ParentResource, child_id
from ...planning.goal import SECRET_TEMPLATE, secret_parameters, template_is_secret
from ...planning.plan import TaskDefinition
from ...resources.contract.children import (
    ChildFailure,
    ChildGoal,
    ChildInputs,
    Children,
    ChildState,
    GroupMember,
)
from ...resources.contract.views import physical_name
from ...resources.errors import PermanentError
from ...resources.nested.members import output_name
from ...resources.nested.parameterize import parameterize
from ...shapes import JsonMap
from ...template.residual import node, partial
from .claimed_writes import StepDatabase
from .nested import NestedStackOperations
from .secrets import SealedLookup, Secrets, failing_outputs, open_outputs
from .target import kept_properties


class StepChildren(Children):
    """Implements Children for one step of one claim.

    What the step has read of a child is kept until the step changes one.

    :param database: compares the claim in each transaction that changes a child.
    """

    def __init__(
        self, claim: Claim, database: StepDatabase, nested: NestedStackOperations, secrets: Secrets
    ) -> None:
        self._claim = claim
        self._writes = database.writes_of(claim)
        self._nested = nested
        self._secrets = secrets
        self._stacks: dict[StackId, Stack | None] = {}
        self._rows: dict[StackId, list[Resource]] = {}

    def create(self, key: str, goal: ChildGoal, adopted: JsonMap | None = None) -> str:
        return self._forget().create(self._parent(key), self._with_secrets(goal), adopted)

    def update(self, child: str, goal: ChildGoal) -> None:
        self._forget().update(self._parent(), StackId(child), self._with_secrets(goal))

    def delete(self, child: str) -> None:
        self._forget().delete(self._parent(), StackId(child))

    def act(self, child: str, action: str) -> None:
        self._forget().act(self._parent(), StackId(child), TaskKind(action))

    def snapshot(self, child: str, key: str) -> None:
        self._forget().snapshot(self._parent(key), StackId(child))

    def snapshot_state(self, child: str, key: str) -> ChildState | None:
        snapshot = self._nested.snapshot_of(self._parent(key), StackId(child))
        return None if snapshot is None else ChildState(snapshot.action, snapshot.status, snapshot.reason)

    def delete_snapshot(self, child: str, key: str) -> None:
        self._forget().delete_snapshot(self._parent(key), StackId(child))

    def find(self, key: str) -> str | None:
        stack = self._stack(child_id(key))
        return None if stack is None else stack.id

    def state(self, child: str) -> ChildState | None:
        stack = self._stack(StackId(child))
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
        )

    def inner_values(self, child: str, requested: Sequence[Sequence[str | int]]) -> JsonMap:
        stack = self._stack(StackId(child))
        if stack is None:
            return {}
        rows = {row.name: row for row in self._present_rows(stack)}
        outputs = {}
        for parts in requested:
            _, name, *attribute = str(parts[0]).split(".", 2)
            path = [*attribute, *parts[1:]]
            if name in rows:
                value = node("get_attr", name, *path) if path else node("get_resource", name)
                outputs[output_name(parts)] = {"value": value}
        return open_outputs(outputs, rows, self._secrets)

    def output_errors(self, child: str) -> Mapping[str, str]:
        stack = self._stack(StackId(child))
        if stack is None:
            return {}
        rows = {row.name: row for row in self._present_rows(stack)}
        return failing_outputs(stack.outputs, rows, self._secrets)

    def outputs(self, child: str) -> JsonMap:
        stack = self._stack(StackId(child))
        if stack is None:
            return {}
        rows = {row.name: row for row in self._present_rows(stack)}
        return open_outputs(stack.outputs, rows, self._secrets)

    def members(self, child: str) -> Sequence[GroupMember]:
        stack = self._stack(StackId(child))
        if stack is None:
            return []
        bodies = self._nested.bodies(stack, self._secrets.open)
        rows = self._present_rows(stack)
        members = [
            GroupMember(
                name=row.name,
                definition=bodies.get(row.name),
                reference=self._secrets.open_value(row.reference_id),
                is_failed=row.status == Status.FAILED,
                created_at=row.created_at,
                physical_id=row.physical_id,
            )
            for row in rows
        ]
        return sorted(members, key=lambda item: (not item.is_failed, item.created_at, item.name))

    def file(self, name: str) -> str:
        return self._nested.file(self._claim.task.stack_id, name)

    def template(self, url: str) -> str:
        return self._nested.template(url)

    def inputs(self) -> ChildInputs:
        claim = self._claim
        resource = (claim.resource.name, claim.resource.type)
        return self._nested.inputs(claim.task.stack_id, resource, self._secrets.open)

    def _forget(self) -> NestedStackOperations:
        """Return the operations, for one that changes a child."""
        self._stacks.clear()
        self._rows.clear()
        return self._nested

    def _stack(self, child: StackId) -> Stack | None:
        if child not in self._stacks:
            self._stacks[child] = self._nested.find(child, self._claim.root_id)
        return self._stacks[child]

    def _present_rows(self, stack: Stack) -> list[Resource]:
        """Return the child's resources but those that were replaced."""
        if stack.id not in self._rows:
            self._rows[stack.id] = [row for row in self._nested.rows(stack.id) if row.replaced_by is None]
        return self._rows[stack.id]

    def _with_secrets(self, goal: ChildGoal) -> ChildGoal:
        """Return the goal with the names of its secret parameters.

        :raises PermanentError: its template is made of a secret.
        """
        if goal.generated:
            return parameterize(goal, self._secrets.holds)
        properties = kept_properties(self._claim)
        if template_is_secret(self._claim.resource.plugin, properties):
            raise PermanentError(f"the template {SECRET_TEMPLATE}", kind="StackValidationFailed")
        return replace(goal, secret=secret_parameters(goal.parameters, properties, self._secrets.holds))

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
