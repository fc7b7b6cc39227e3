"""The nested stacks that a step may create, change and read, as its resource type sees them."""

import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ...db.ids import StackId
from ...db.rows import Resource, Snapshot, Stack
from ...db.schema import tables
from ...db.states import Status, TaskKind, TaskState
from ...db.work.claim import Claim
from ...engine.parent_resource import ParentResource, child_id
from ...planning.hidden_parameters import SECRET_TEMPLATE, secret_parameters, template_is_secret
from ...planning.task_definition import TaskDefinition
from ...resources.context import ChildGoal, ChildState, GroupMember, Json, physical_name
from ...resources.errors import Cancelled, PermanentError
from ...resources.nested.parameterize import parameterize
from ...sealing.stored import RowLookup
from ...template.budget import Budget
from ...template.errors import TemplateError
from ...template.residual import evaluate, is_node, partial
from .lookup import SealedLookup
from .secrets import Secrets
from .target import kept_properties


class NestedStackOperations(typing.Protocol):
    """The use cases of nested stacks that steps need: see engine.nested_stacks.NestedStacks.  Thread-safe.

    All that change something check in their transaction, by `ParentResource.guard`, whether the step may act.
    """

    def create(
        self, nest: ParentResource, goal: ChildGoal, adopted: Mapping[str, Json] | None = None
    ) -> StackId:
        """Start to create the child, or find it if an earlier attempt did."""

    def update(self, nest: ParentResource, key: StackId, goal: ChildGoal) -> None:
        """Start to bring the child to another goal, whatever it does now."""

    def delete(self, nest: ParentResource, key: StackId) -> None:
        """Start to delete the child, whatever it does now."""

    def act(self, nest: ParentResource, key: StackId, kind: TaskKind) -> None:
        """Start to check, suspend or resume the child."""

    def snapshot(self, nest: ParentResource, key: StackId) -> None:
        """Start a snapshot of the child, or find the one that an earlier attempt has started."""

    def snapshot_of(self, nest: ParentResource, key: StackId) -> Snapshot | None:
        """Return the child's snapshot that a step with the parent resource's key has started."""

    def delete_snapshot(self, nest: ParentResource, key: StackId) -> None:
        """Start to delete that snapshot, whatever the child does."""

    def find(self, key: StackId, stack_id: StackId) -> Stack | None:
        """Return the child of a resource of the stack; None: there is none in its tree."""

    def rows(self, key: StackId) -> list[Resource]:
        """Return the child's resources."""

    def bodies(self, child: Stack, unseal: Callable[[str], Json]) -> Mapping[str, Mapping[str, Json]]:
        """Return the resources' definitions in the generated template of a child, in clear."""

    def file(self, stack_id: StackId, name: str) -> str:
        """Return a file of the stack."""


class StepChildren:
    """Implements Children for one step of one claim."""

    def __init__(self, claim: Claim, nested: NestedStackOperations, secrets: Secrets) -> None:
        self._claim = claim
        self._nested = nested
        self._secrets = secrets

    def create(self, key: str, goal: ChildGoal, adopted: Mapping[str, Json] | None = None) -> str:
        """See Children."""
        return self._nested.create(self._parent(key), self._with_secrets(goal), adopted)

    def update(self, child: str, goal: ChildGoal) -> None:
        """See Children."""
        self._nested.update(self._parent(), StackId(child), self._with_secrets(goal))

    def delete(self, child: str) -> None:
        """See Children."""
        self._nested.delete(self._parent(), StackId(child))

    def act(self, child: str, action: str) -> None:
        """See Children."""
        self._nested.act(self._parent(), StackId(child), TaskKind(action))

    def snapshot(self, child: str, key: str) -> None:
        """See Children."""
        self._nested.snapshot(self._parent(key), StackId(child))

    def snapshot_state(self, child: str, key: str) -> ChildState | None:
        """See Children."""
        found = self._nested.snapshot_of(self._parent(key), StackId(child))
        return None if found is None else ChildState(found.action, found.status, found.reason)

    def delete_snapshot(self, child: str, key: str) -> None:
        """See Children."""
        self._nested.delete_snapshot(self._parent(key), StackId(child))

    def find(self, key: str) -> str | None:
        """See Children."""
        found = self._stack(child_id(key))
        return None if found is None else found.id

    def state(self, child: str) -> ChildState | None:
        """See Children."""
        found = self._stack(StackId(child))
        if found is None:
            return None
        return ChildState(found.action, found.status, found.reason, found.name, found.traversal)

    def outputs(self, child: str) -> Mapping[str, Json]:
        """See Children."""
        found = self._stack(StackId(child))
        if found is None:
            return {}
        rows = {row.name: row for row in self._nested.rows(found.id) if row.replaced_by is None}
        opening = _Opening(self._secrets)
        lookup = RowLookup(rows, opening.open)
        values: dict[str, Json] = {}
        budget = Budget()
        for name, output in found.outputs.items():
            try:
                values[name] = opening.evaluate(output["value"], lookup, budget)
            except (TemplateError, LookupError):
                values[name] = None
        return values

    def members(self, child: str) -> Sequence[GroupMember]:
        """See Children."""
        found = self._stack(StackId(child))
        if found is None:
            return []
        bodies = self._nested.bodies(found, self._secrets.open)
        rows = [row for row in self._nested.rows(found.id) if row.replaced_by is None]
        members = [
            GroupMember(
                name=row.name,
                definition=bodies.get(row.name),
                reference=self._secrets.open_value(row.reference_id),
                is_failed=row.status == Status.FAILED,
                created_at=row.created_at,
            )
            for row in rows
        ]
        return sorted(members, key=lambda item: (not item.is_failed, item.created_at, item.name))

    def file(self, name: str) -> str:
        """See Children."""
        return self._nested.file(self._claim.task.stack_id, name)

    def _stack(self, child: StackId) -> Stack | None:
        return self._nested.find(child, self._claim.task.stack_id)

    def _with_secrets(self, goal: ChildGoal) -> ChildGoal:
        """Return the goal with the names of its secret parameters.

        :raises PermanentError: its template is made of a secret.
        """
        if goal.generated:
            return parameterize(goal, self._secrets.holds)
        kept = kept_properties(self._claim)
        if template_is_secret(self._claim.resource.plugin, kept):
            raise PermanentError(f"the template {SECRET_TEMPLATE}", kind="StackValidationFailed")
        return replace(goal, secret=secret_parameters(goal.parameters, kept, self._secrets.holds))

    def _parent(self, key: str = "") -> ParentResource:
        claim = self._claim
        definition, lookup = TaskDefinition.from_json(claim.task.definition), SealedLookup(claim)
        return ParentResource(
            stack_id=claim.task.stack_id,
            resource_id=claim.resource.id,
            resource_name=claim.resource.name,
            child_name=physical_name(claim.stack_name, claim.resource.name, key),
            key=key,
            facade={
                "metadata": partial(definition.metadata, lookup),
                "deletion_policy": definition.deletion_policy,
                "update_policy": partial(definition.update_policy, lookup),
            },
            guard=self._check_claim,
        )

    def _check_claim(self, conn: Connection) -> None:
        """Check, in a transaction, that the step may still act; the lock lasts until its commit.

        :raises Cancelled: the task is not ours any more.
        """
        t, task = tables.task, self._claim.task
        held = sa.select(t.c.id).where(
            t.c.id == task.id,
            t.c.attempt == task.attempt,
            t.c.member == task.member,
            t.c.state == TaskState.RUNNING,
            t.c.stop_by.is_(None),
        )
        if conn.execute(held.with_for_update()).first() is None:
            raise Cancelled


class _Opening:
    """Opens secrets, and remembers as a secret whatever was made of one."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._has_opened = False

    def open(self, token: str) -> Json:
        """Return the value of a token."""
        self._has_opened = True
        return self._secrets.open(token)

    def evaluate(self, tree: Json, lookup: RowLookup, budget: Budget) -> Json:
        """Return the value of a tree, and remember the parts that hold secrets."""
        if isinstance(tree, dict) and not is_node(tree):
            return {key: self.evaluate(item, lookup, budget) for key, item in tree.items()}
        if isinstance(tree, list):
            return [self.evaluate(item, lookup, budget) for item in tree]
        self._has_opened = False
        value = evaluate(tree, lookup, budget)
        if self._has_opened:
            self._secrets.add(value)
        return value
