"""Finds what an update with the same template, environment and parameters would change in a tree."""

import enum
from collections.abc import Iterator, Mapping

from ....db.rows import Resource
from ....db.states import Status
from ....engine.context import Compiled, EngineContext
from ....engine.planning.plan import TaskDefinition
from ....engine.planning.requests import MOVED, Goal
from ....engine.stored_resource import properties_in_clear
from ....resources.contract.errors import PropertyError, UnknownType
from ....resources.contract.properties import (
    changed,
    replacement_needed,
    resolve_properties,
)
from ....resources.registry import ResourceRegistry
from ....sealing.sealer import BoundSealer
from ....sealing.stored import RowLookup, StoredLookup
from ....template.errors import TemplateError
from ....template.language import ResourceDefinition
from ....template.residual import evaluate
from .built import BuiltStack, BuiltTree

OTHER_SIZE = "the template has another size of the group"


class Effect(enum.IntEnum):
    """An effect of an update on a resource, the gravest first."""

    DELETE = enum.auto()
    REPLACE = enum.auto()
    UPDATE = enum.auto()
    CREATE = enum.auto()


class Verifier:
    """Plans updates of trees that are not stored yet."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context

    def differences(self, tree: BuiltTree) -> list[str]:
        """Return what an update would change, each with its stack's name; values are not in it.

        Deletions are first, and then replacements.
        """
        root = tree.root
        sealer = self._context.sealer.of_stack(root.stack.project_id, root.stack.id)
        compiled = self._again(root.compiled, sealer)
        differences = [
            (effect, f"{built.stack.name}: {text}")
            for built in root.all()
            for effect, text in self._of_stack(built, compiled if built is root else built.compiled, sealer)
        ]
        return [text for _, text in sorted(differences, key=lambda difference: difference[0])]

    def _again(self, compiled: Compiled, sealer: BoundSealer) -> Compiled:
        """Compile the root's goal again, as it is stored."""
        lookup = StoredLookup(sealer.open)
        goal = Goal(
            template=compiled.template,
            environment=evaluate(compiled.environment, lookup),
            files=compiled.files,
            parameters=evaluate(compiled.parameters, lookup),
            purpose=MOVED,
        )
        return self._context.compiler.compile(goal, compiled.identity, sealer)

    def _of_stack(
        self, built: BuiltStack, compiled: Compiled, sealer: BoundSealer
    ) -> Iterator[tuple[Effect, str]]:
        rows = built.present_rows()
        resizing = built.resizing
        for name in resizing.deleted:
            yield (
                Effect.DELETE,
                f"resource {name} would be deleted: the template has another size of the group",
            )
        for name in resizing.created:
            yield (
                Effect.CREATE,
                f"resource {name} would be created: the template has another size of the group",
            )
        for name in resizing.changed:
            yield Effect.UPDATE, f"resource {name} would have the group's definition"
        for name, definition in compiled.plan.resources.items():
            row = rows.pop(name, None)
            if name in resizing.deleted:
                continue
            if row is None or row.is_untouched:
                yield Effect.CREATE, f"resource {name} would be created"
            else:
                yield from _of_resource(row, definition, built.present_rows(), self._context.registry, sealer)
        yield from ((Effect.DELETE, f"resource {name} would be deleted") for name in rows)


def _of_resource(
    row: Resource,
    definition: ResourceDefinition,
    rows: Mapping[str, Resource],
    registry: ResourceRegistry,
    sealer: BoundSealer,
) -> Iterator[tuple[Effect, str]]:
    try:
        plugin = registry.get(definition.type)
    except UnknownType:
        return
    if row.status == Status.FAILED:
        yield Effect.REPLACE, f"resource {row.name} has failed, and would be repaired or replaced"
        return
    if row.definition != TaskDefinition.of(definition).to_json():
        yield Effect.UPDATE, f"resource {row.name} has another definition"
    if plugin.always_replaced:
        yield Effect.REPLACE, f"resource {row.name} is replaced by each update"
        return
    lookup = RowLookup(rows, sealer.open)
    imported = properties_in_clear(plugin, row.properties, sealer.open)
    try:
        after = resolve_properties(plugin.properties_schema, evaluate(definition.properties, lookup))
    except (TemplateError, PropertyError, LookupError) as error:
        kind = type(error).__name__
        yield Effect.UPDATE, f"resource {row.name}: its properties cannot be computed: {kind}"
        return
    if names := sorted(changed(plugin.properties_schema, imported, after)):
        if replacement_needed(plugin.properties_schema, names):
            yield Effect.REPLACE, f"resource {row.name} would be replaced: {', '.join(names)} would change"
        else:
            yield Effect.UPDATE, f"resource {row.name}: {', '.join(names)} would change"
