"""Previews of updates, also of the stacks that the stack's resources are; nothing is stored."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...db import resources
from ...db.ids import StackId
from ...db.queries import nesting
from ...db.rows import Resource, Stack
from ...db.work import tasks
from ...engine.context import Compiled, EngineContext
from ...engine.errors import NotUpdatable
from ...engine.goals import compile_update, identity_of
from ...engine.named_things import known_to_be_same
from ...engine.parent_resource import living_child
from ...engine.planning.requests import UpdateRequest
from ...engine.stack_state import check_updatable
from ...engine.tree_budget import TreeBudget
from ...template.budget import Budget
from ...template.compile import Identity
from ...template.errors import LimitExceeded
from .forecasts import ChildForecasts, is_group
from .plan import (
    ChangeKind,
    NestedChanges,
    PreviewedStack,
    ResourceChange,
    Unchangeable,
    UpdatePreview,
    preview_update,
)

GROUPS_WITHIN = 2.0
"""Seconds of processor time for the members of groups in a preview: there may be thousands."""


def preview_changes(
    context: EngineContext, stack: Stack, request: UpdateRequest, *, nested: bool = False
) -> list[ResourceChange]:
    """Return the changes that an update would make.

    :param nested: whether the changes in nested stacks are included.
    :raises TemplateError: the goal is wrong, or a value that is known by now does not fit.
    :raises NotUpdatable: the stack's state allows no update, or a property would change that never may.
    :raises LimitExceeded: the tree of stacks is too large, or takes too much work.
    """
    check_updatable(stack)
    compiled = compile_update(context, stack, request)
    return changes_of_compiled(context, compiled, stack, converge=request.converge, nested=nested)


def changes_of_compiled(
    context: EngineContext, compiled: Compiled, stack: Stack, *, converge: bool, nested: bool
) -> list[ResourceChange]:
    """Return the changes that an update to a compiled goal would make; see preview_changes.

    :param converge: the update compares each resource with its thing first.
    """
    try:
        return _TreePreview(context).of_stack(compiled, stack, converge=converge, nested=nested)
    except Unchangeable as error:
        raise NotUpdatable(str(error)) from error


def things_of(context: EngineContext, stack_ids: Sequence[StackId]) -> list[tuple[str, str]]:
    """Return the types and physical ids of the things of some stacks and of those nested in them."""
    return context.database.read(lambda conn: nesting.things(conn, stack_ids))


class _TreePreview:
    """Reads the plan of one update, and those of the nested stacks, which share a budget."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self._budget = TreeBudget(context.settings.tree)
        self._work = Budget(context.settings.limits.budget)
        self._group_work: Budget | None = None

    def of_stack(
        self, compiled: Compiled, stack: Stack, *, converge: bool = False, nested: bool = True
    ) -> list[ResourceChange]:
        """Return the changes of a stack.

        :raises Unchangeable: the update would fail.
        """
        child = self._context.database.read(
            lambda conn: PreviewedStack(
                stack.id,
                resources.of_stack(conn, stack.id),
                tasks.running_of_stack(conn, stack.id, lock=False),
            )
        )
        self._budget.take_rows(child.rows)
        return self._read(compiled, child, converge=converge, nested=nested)

    def _read(
        self, compiled: Compiled, stack: PreviewedStack, *, converge: bool = False, nested: bool = True
    ) -> list[ResourceChange]:
        preview, changes = preview_update(
            compiled.plan,
            replace(stack, hidden=compiled.environment["encrypted_param_names"]),
            registry=self._context.registry,
            unseal=compiled.sealer.open,
            scope=self._context.scope(stack.id),
            converge=converge,
            same=known_to_be_same,
        )
        if not nested:
            return changes
        with self._budget.level():
            return [replace(item, inside=self._nested(item, preview, compiled)) for item in changes]

    def _nested(
        self, item: ResourceChange, preview: UpdatePreview, compiled: Compiled
    ) -> Sequence[NestedChanges]:
        """Return the changes of the stack that the resource is now, and of that which it will be."""
        had = self._child(item.row)
        definition = item.definition
        stays = had is not None and item.effect in (ChangeKind.UNCHANGED, ChangeKind.UPDATED)
        deleted = [] if had is None or stays else [self._deleted(had)]
        if definition is None or not self._context.registry.is_nested(definition.type):
            return deleted
        child = had if stays else None
        parent = compiled.identity
        name = f"{parent.stack_name}-{item.name}"
        identity = Identity(name, "", parent.project_id) if child is None else identity_of(child)
        planned = NestedChanges(StackId(identity.stack_id), identity.stack_name, None)
        with self._optional(is_group(self._context.registry.get(definition.type))):
            forecasts = ChildForecasts(self._context, preview, compiled, self._work)
            forecast = forecasts.of(definition, item.row if stays else None, child, identity)
            if forecast is not None:
                passing = None if forecast.passing is None else self._of_child(None, forecast.passing)
                changes = self._of_child(child, forecast.last)
                planned = replace(planned, items=changes, turns=forecast.turns, passing=passing or ())
        return [*deleted, planned]

    @contextlib.contextmanager
    def _optional(self, is_optional: bool) -> Iterator[None]:
        """Let the forecast of a group take from a budget of its own, and end where that is spent.

        A preview compiles each member, the update one for all: so a group that an update may have can be too
        large for a preview, which then says that its members are not known.
        """
        outer = self._work
        if not is_optional or outer is self._group_work:
            yield
            return
        if self._group_work is None:
            limits = self._context.settings.limits.budget
            seconds = min(limits.seconds or GROUPS_WITHIN, GROUPS_WITHIN)
            self._group_work = Budget(replace(limits, seconds=seconds))
        self._work = self._group_work
        try:
            yield
        except LimitExceeded:
            pass
        finally:
            self._work = outer

    def _of_child(self, child: Stack | None, goal: Compiled) -> list[ResourceChange] | None:
        if child is None:
            return self._read(goal, PreviewedStack(StackId("")))
        try:
            return self.of_stack(goal, child)
        except Unchangeable:
            return None

    def _deleted(self, stack: Stack) -> NestedChanges:
        rows = self._context.database.read(lambda conn: resources.of_stack(conn, stack.id))
        self._budget.take_rows(rows)
        items = []
        with self._budget.level():
            for row in rows:
                if row.replaced_by is None:
                    child = self._child(row)
                    inside = () if child is None else [self._deleted(child)]
                    items.append(ResourceChange(row.name, ChangeKind.DELETED, row=row, inside=inside))
        return NestedChanges(stack.id, stack.name, items)

    def _child(self, row: Resource | None) -> Stack | None:
        # Most rows are no stacks: no transaction for each of them.
        if row is None or not self._context.registry.is_nested(row.plugin):
            return None
        return self._context.database.read(lambda conn: living_child(conn, row, self._context.registry))
