"""What a step can do with the stacks that its resource consists of."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ...db.ids import StackId
from ...db.rows import Stack
from ...db.schema import tables
from ...db.states import Status, TaskKind, TaskState
from ...db.work.claim import Claim
from ...engine.nested_stacks import NestedStacks
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


class StepChildren:
    """Implements resources.children.Children for one step of one claim."""

    def __init__(self, claim: Claim, nesting: NestedStacks, secrets: Secrets) -> None:
        self._claim = claim
        self._nesting = nesting
        self._secrets = secrets

    def create(self, key: str, goal: ChildGoal, adopted: Mapping[str, Json] | None = None) -> str:
        """See Children."""
        return self._nesting.create(self._nest(key), self._lifted(goal), adopted)

    def update(self, child: str, goal: ChildGoal) -> None:
        """See Children."""
        self._nesting.update(self._nest(), StackId(child), self._lifted(goal))

    def delete(self, child: str) -> None:
        """See Children."""
        self._nesting.delete(self._nest(), StackId(child))

    def act(self, child: str, action: str) -> None:
        """See Children."""
        self._nesting.act(self._nest(), StackId(child), TaskKind(action))

    def snapshot(self, child: str, key: str) -> None:
        """See Children."""
        self._nesting.snapshot(self._nest(key), StackId(child))

    def snapshot_state(self, child: str, key: str) -> ChildState | None:
        """See Children."""
        found = self._nesting.snapshot_of(self._nest(key), StackId(child))
        return None if found is None else ChildState(found.action, found.status, found.reason)

    def delete_snapshot(self, child: str, key: str) -> None:
        """See Children."""
        self._nesting.delete_snapshot(self._nest(key), StackId(child))

    def find(self, key: str) -> str | None:
        """See Children."""
        found = self._look(child_id(key))
        return None if found is None else found.id

    def state(self, child: str) -> ChildState | None:
        """See Children."""
        found = self._look(StackId(child))
        if found is None:
            return None
        return ChildState(found.action, found.status, found.reason, found.name, found.traversal)

    def outputs(self, child: str) -> Mapping[str, Json]:
        """See Children."""
        found = self._look(StackId(child))
        if found is None:
            return {}
        rows = {row.name: row for row in self._nesting.rows(found.id) if row.replaced_by is None}
        opening = _Opening(self._secrets)
        lookup = RowLookup(rows, opening.open)
        values: dict[str, Json] = {}
        budget = Budget()
        for name, output in found.outputs.items():
            try:
                values[name] = opening.noted(output["value"], lookup, budget)
            except (TemplateError, LookupError):
                values[name] = None
        return values

    def members(self, child: str) -> Sequence[GroupMember]:
        """See Children."""
        found = self._look(StackId(child))
        if found is None:
            return []
        bodies = self._nesting.bodies(found, self._secrets.open)
        rows = [row for row in self._nesting.rows(found.id) if row.replaced_by is None]
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
        return self._nesting.file(self._claim.task.stack_id, name)

    def _look(self, child: StackId) -> Stack | None:
        return self._nesting.find(child, self._claim.task.stack_id)

    def _lifted(self, goal: ChildGoal) -> ChildGoal:
        """Return the goal with its secrets, as resources/nested/parameterize.py and
        planning/hidden_parameters.py name them.

        :raises Final: its template is made of a secret.
        """
        if goal.generated:
            return parameterize(goal, self._secrets.tells)
        kept = kept_properties(self._claim)
        if template_is_secret(self._claim.resource.plugin, kept):
            raise PermanentError(f"the template {SECRET_TEMPLATE}", kind="StackValidationFailed")
        return replace(goal, secret=secret_parameters(goal.parameters, kept, self._secrets.tells))

    def _nest(self, key: str = "") -> ParentResource:
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
        """:raises Cancelled: the task is not ours any more."""
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
    """Opens secrets, and notes as a secret whatever was made of one."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._has_opened = False

    def open(self, token: str) -> Json:
        """The value of a token."""
        self._has_opened = True
        return self._secrets.open(token)

    def noted(self, tree: Json, lookup: RowLookup, budget: Budget) -> Json:
        """The value of a tree whose secrets are opened here."""
        if isinstance(tree, dict) and not is_node(tree):
            return {key: self.noted(item, lookup, budget) for key, item in tree.items()}
        if isinstance(tree, list):
            return [self.noted(item, lookup, budget) for item in tree]
        self._has_opened = False
        value = evaluate(tree, lookup, budget)
        if self._has_opened:
            self._secrets.add(value)
        return value
