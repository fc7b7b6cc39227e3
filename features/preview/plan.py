"""The preview of an update, read from its plan; pure.

The plan is the one that the update would start with.  A decision that it leaves to a step is made as that
step would make it.  A value that another resource provides is not known before that resource has changed;
where the result depends on such a value the preview says so.
"""

import enum
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...db.ids import ResourceId, StackId
from ...db.rows import Resource, Task
from ...db.states import Status, TaskKind
from ...engine.planning.plan import Plan, TaskDefinition, TraversalScope, same_goal, tasks_by_resource
from ...engine.planning.property_changes import GivenProperties, PropertyChange, property_changes
from ...engine.planning.update import StillToBeAdopted, TypeFacts, UpdatePlanner
from ...engine.stored_resource import planned, properties_in_clear
from ...resources.contract.errors import PermanentError, PropertyError
from ...resources.contract.plugin import ResourceType
from ...resources.contract.properties import (
    changed,
    meanings,
    replacement_needed,
    resolve_properties,
    resolve_stored,
    respelled,
)
from ...resources.contract.schema import Property
from ...resources.contract.views import ResourceView, StackFacts
from ...resources.registry import ResourceRegistry
from ...resources.update_decision import (
    RESTRICTED,
    UpdateDecision,
    decide_update,
    may_replace,
    survives_failure,
)
from ...sealing.sealer import SealError
from ...sealing.stored import RowLookup, SealedRowLookup, in_clear
from ...shapes import Json, JsonMap, StoredDefinition
from ...template.errors import InvalidProperty, TemplateError
from ...template.language import CompiledTemplate, Reference, Residual, ResourceDefinition
from ...template.residual import evaluate, is_deferred, is_node, mapping, partial, references

OBSERVED = "may be updated or replaced: depends on what really exists, which is compared first"


MaybeSame = Callable[[JsonMap, str, str, str], bool | None]
"""Says from a resource's data whether two values name one thing of a kind; None: only the cloud knows."""


class ChangeKind(enum.StrEnum):
    """The change of a resource; the words are Heat's."""

    UNCHANGED = "unchanged"
    UPDATED = "updated"
    REPLACED = "replaced"
    ADDED = "added"
    DELETED = "deleted"


@dataclass(frozen=True)
class ResourceChange:
    """The change that an update would make to one resource.

    :ivar reason: why the change may differ or fail; empty if it is certain.
    :ivar row: the resource as it is; None: it does not exist.
    :ivar definition: the resource as it shall be; None: the update deletes it.
    :ivar inside: the stacks that it is and will be, where the request asks for them.
    :ivar property_changes: the properties that change, if it is updated or replaced; those whose new values
        are not known yet are absent.
    :ivar cause: why it has to be replaced; empty if only its type knows that.
    """

    name: str
    effect: ChangeKind
    reason: str = ""
    row: Resource | None = None
    definition: ResourceDefinition | None = None
    inside: "Sequence[NestedChanges]" = ()
    property_changes: Mapping[str, PropertyChange] = field(default_factory=dict)
    cause: str = ""


@dataclass(frozen=True)
class NestedChanges:
    """The changes of the resources of a nested stack.

    :ivar stack_id: id of the stack; "": it does not exist yet.
    :ivar items: the changes; None: they are not known before the update.
    :ivar turns: of a group that changes in batches, the batch in which each member changes, by name.
    :ivar passing: the members of such a group that exist only while others are changed.
    """

    stack_id: StackId
    stack_name: str
    items: "Sequence[ResourceChange] | None"
    turns: Mapping[str, "Turn"] = field(default_factory=dict)
    passing: "Sequence[ResourceChange]" = ()


class Turn(typing.NamedTuple):
    """The batches of a group in which a member changes, by their numbers.

    :ivar taking: the batch that makes something.
    :ivar returning: the batch at whose end something is gone.
    """

    taking: int
    returning: int


class Unchangeable(Exception):
    """The update would fail: it changes a property that can never change; the text says which."""


@dataclass(frozen=True)
class PreviewedStack:
    """A stack of which an update is previewed.

    :ivar id: id of the stack; "": it does not exist yet.
    :ivar running: tasks of older traversals that still run.
    :ivar hidden: names of the parameters that a template of its tree hides.
    """

    id: StackId
    rows: Sequence[Resource] = ()
    running: Sequence[Task] = ()
    hidden: Sequence[str] = ()


def preview_update(
    compiled: CompiledTemplate,
    stack: PreviewedStack,
    *,
    registry: ResourceRegistry,
    unseal: Callable[[str], Json],
    scope: TraversalScope,
    converge: bool,
    same: MaybeSame,
) -> tuple["UpdatePreview", list[ResourceChange]]:
    """Plan an update of a stack, and return the changes to each resource that the plan would make.

    :param unseal: opens the token of a secret.
    :param scope: the scope of the plan, of which nothing is stored.
    :param converge: the update compares each resource with the remote resource first.
    :param same: says whether two values name the same thing of the cloud.
    :raises Unchangeable: the update would fail.
    :raises TemplateError: a value that is known by now does not fit.
    """
    running = tasks_by_resource(stack.running)
    types = TypeFacts(registry)
    planner = UpdatePlanner(stack.rows, compiled, running, scope, types, observing=converge)
    preview = UpdatePreview(compiled, stack, running, registry=registry, unseal=unseal, same=same)
    try:
        return preview, preview.read(planner.plan())
    except StillToBeAdopted as error:
        raise Unchangeable(str(error)) from error


class UpdatePreview:
    """The preview of one update.

    :param stack: the stack before the update.
    :param running: tasks of older traversals that still run, by resource.
    :param unseal: opens the token of a secret.
    :param same: says whether two values name the same thing of the cloud.
    """

    def __init__(
        self,
        compiled: CompiledTemplate,
        stack: PreviewedStack,
        running: Mapping[ResourceId, Task],
        *,
        registry: ResourceRegistry,
        unseal: Callable[[str], Json],
        same: MaybeSame,
    ) -> None:
        self._compiled = compiled
        self._same = same
        self._existing = {row.id: row for row in stack.rows}
        self._hidden = frozenset(stack.hidden)
        self._running = running
        self._registry = registry
        self._unseal = unseal
        self._changes: dict[str, ResourceChange] = {}
        self._in_place: set[str] = set()
        self._rows: dict[str, Resource] = {}

    def read(self, plan: Plan) -> list[ResourceChange]:
        """Return the change to each resource, in the template's order; deletions come last.

        :raises Unchangeable: the update would fail.
        :raises TemplateError: a value that is known by now does not fit.
        """
        new = {row.name: row for row in plan.resources}
        updates = {
            self._existing[task.resource_id].name: self._existing[task.resource_id]
            for task in plan.tasks
            if task.kind == TaskKind.UPDATE
        }
        observed = {task.resource_id for task in plan.tasks if task.kind == TaskKind.OBSERVE}
        current = {row.name: row for row in self._existing.values() if row.replaced_by is None}
        for name, definition in self._compiled.resources.items():
            if name in new:
                effect = ChangeKind.ADDED if new[name].replaces is None else ChangeKind.REPLACED
                self._changes[name] = ResourceChange(
                    name, effect, row=current.get(name), definition=definition
                )
            elif name in updates:
                change = self._updated(updates[name], definition)
                if updates[name].id in observed and change.effect != ChangeKind.REPLACED:
                    change = replace(change, reason=change.reason or OBSERVED)
                self._changes[name] = change
            else:
                self._changes[name] = ResourceChange(
                    name, ChangeKind.UNCHANGED, row=current[name], definition=definition
                )
            if (row := self._changes[name].row) is not None:
                self._changes[name] = self._explained(self._changes[name], row, definition)
                self._rows[name] = row
        removed = [row for name, row in current.items() if name not in self._compiled.resources]
        return [
            *self._changes.values(),
            *(ResourceChange(row.name, ChangeKind.DELETED, row=row) for row in removed),
        ]

    def known_properties(self, definition: ResourceDefinition) -> dict[str, Json] | None:
        """Return a resource's properties, after `read`; None: some depend on values that are not known yet.

        :raises TemplateError: a value does not fit.
        """
        plugin = self._registry.get(definition.type)
        return None if self._unknown(definition, plugin) else self._resolved(definition, plugin, {})

    def target_of(
        self, definition: ResourceDefinition, row: Resource | None, stack: StackFacts
    ) -> tuple[ResourceView, frozenset[str]] | None:
        """Return a resource as the step of its update would see it, with the names of what changes.

        :param row: the resource as it is; None: it is new.
        :param stack: the stack of the resource.
        :returns: None: some values are not known yet.
        :raises TemplateError: a value does not fit.
        :raises PropertyError: the update policy does not fit.
        :raises SealError: a key is not there.
        """
        properties = self.known_properties(definition)
        if properties is None or self._unknown_sources(definition.update_policy):
            return None
        plugin = self._registry.get(definition.type)
        policy = evaluate(definition.update_policy, RowLookup(self._rows, self._unseal))
        update_policy = resolve_properties(plugin.update_policy_schema, policy)
        target = planned(definition, stack, properties, update_policy, row, self._unseal)
        if row is None:
            return target, frozenset(properties)
        schema = plugin.properties_schema
        before = properties_in_clear(plugin, row.properties, self._unseal)
        before, _ = self._respelled(row, schema, before, properties)
        return target, changed(schema, before, properties)

    def sealed_properties(self, definition: ResourceDefinition) -> Residual:
        """Return the properties that `known_properties` returns, with their secrets sealed."""
        return partial(definition.properties, SealedRowLookup(self._rows))

    # -- inside ------------------------------------------------------------------------------------

    def _updated(self, row: Resource, definition: ResourceDefinition) -> ResourceChange:
        effect, reason = self._effect(row, definition)
        verdict = {
            ChangeKind.UPDATED: UpdateDecision.IN_PLACE,
            ChangeKind.REPLACED: UpdateDecision.REPLACE,
        }.get(effect)
        word = None if verdict is None else RESTRICTED[verdict]
        if word in definition.settings.restricted_actions and not reason:
            reason = f"the update would fail: {word} is restricted for resource."
        return ResourceChange(row.name, effect, reason, row, definition)

    def _effect(self, row: Resource, definition: ResourceDefinition) -> tuple[ChangeKind, str]:
        if row.id in self._running:
            return ChangeKind.UPDATED, f"may be replaced: depends on how its {row.action} ends"
        if row.plugin != definition.type:
            return ChangeKind.REPLACED, ""
        if definition.external_id is not None:
            return ChangeKind.UNCHANGED, ""  # An update leaves it alone.
        plugin = self._registry.get(row.plugin)
        if row.status == Status.FAILED:
            if not survives_failure(plugin, action=row.failed_action, unhealthy=row.unhealthy):
                return ChangeKind.REPLACED, ""
            return ChangeKind.UPDATED, f"may be replaced: depends on what its failed {row.action} has left"
        return self._judged(plugin, row, definition)

    def _judged(
        self, plugin: ResourceType, row: Resource, definition: ResourceDefinition
    ) -> tuple[ChangeKind, str]:
        schema = plugin.properties_schema
        before = properties_in_clear(plugin, row.properties, self._unseal)
        unknown = self._unknown(definition, plugin)
        values = self._resolved(definition, plugin, unknown)
        after = {**values, **{name: before.get(name) for name in unknown}}
        before, open_pairs = self._respelled(row, schema, before, after)
        redefined = not same_goal(row.definition, _stored(definition))
        try:
            verdict = decide_update(plugin, before, after, redefined=redefined)
        except PermanentError as error:
            raise Unchangeable(f"resources.{row.name}: {error}") from error
        sources = sorted({source for names in unknown.values() for source in names})
        depends = f"depends on {', '.join(sources)}: values that are not known before the update"
        if verdict == UpdateDecision.REPLACE and unknown and not self._must(plugin, before, after):
            return ChangeKind.UPDATED, f"may be replaced: {depends}"
        if verdict == UpdateDecision.REPLACE and open_pairs:
            alike = respelled(schema, before, after, lambda kind, old, new: True)
            if decide_update(plugin, alike, after, redefined=redefined) != UpdateDecision.REPLACE:
                pairs = ", ".join(f"{old} and {new}" for old, new in open_pairs)
                return ChangeKind.UPDATED, f"may be replaced: depends on whether they are the same: {pairs}"
        if verdict == UpdateDecision.REPLACE:
            return ChangeKind.REPLACED, ""
        if may_replace(plugin, unknown):
            return ChangeKind.UPDATED, f"may be replaced: {depends}"
        self._in_place.add(row.name)
        if verdict == UpdateDecision.SAME:
            return (
                (ChangeKind.UPDATED, f"may stay unchanged: {depends}")
                if unknown
                else (ChangeKind.UNCHANGED, "")
            )
        return ChangeKind.UPDATED, ""

    def _respelled(
        self, row: Resource, schema: Mapping[str, Property], before: JsonMap, after: JsonMap
    ) -> tuple[dict[str, Json], list[tuple[str, str]]]:
        """Return the properties before the update in the words of those after it, where both name one thing.

        :returns: also the pairs of values of which only the cloud knows whether they name the same thing.
        """
        data = in_clear(row.data, self._unseal) or {}
        open_pairs: list[tuple[str, str]] = []

        def same(kind: str, old: str, new: str) -> bool:
            is_same = self._same(data, kind, old, new)
            if is_same is None:
                open_pairs.append((old, new))
            return bool(is_same)

        return respelled(schema, before, after, same), open_pairs

    def _explained(
        self, change: ResourceChange, row: Resource, definition: ResourceDefinition
    ) -> ResourceChange:
        """Return the change of a resource with those of its properties and the cause of a replacement."""
        if change.effect not in (ChangeKind.UPDATED, ChangeKind.REPLACED):
            return change
        changes = {}
        cause = ""
        if row.plugin == definition.type:
            changes = self._property_changes(row, definition)
        if change.effect == ChangeKind.REPLACED:
            cause = self._cause(row, definition, changes)
        return replace(change, property_changes=changes, cause=cause)

    def _property_changes(self, row: Resource, definition: ResourceDefinition) -> dict[str, PropertyChange]:
        if row.properties is None:
            return {}  # Its creation has not begun.
        plugin = self._registry.get(row.plugin)
        schema = plugin.properties_schema
        try:
            unknown = self._unknown(definition, plugin)
            old = properties_in_clear(plugin, row.properties, self._unseal)
            new = self._resolved(definition, plugin, unknown)
            old, _ = self._respelled(row, schema, old, new)
            tree = self._sealed_others(definition, unknown)
        except (TemplateError, SealError):
            return {}  # A replacement does not need the old values; its step refuses wrong new ones.
        before = GivenProperties(old, row.properties)
        after = GivenProperties(new, tree)
        hidden = self._hidden if self._registry.is_nested(row.plugin) else frozenset()
        return property_changes(schema, before, after, unknown=unknown, hidden=hidden)

    def _sealed_others(self, definition: ResourceDefinition, unknown: JsonMap) -> Json:
        """Return the properties whose values are known, with their secrets sealed."""
        properties = definition.properties
        if is_node(properties):
            return {} if unknown else self.sealed_properties(definition)
        lookup = SealedRowLookup(self._rows)
        return mapping(
            {name: partial(tree, lookup) for name, tree in properties.items() if name not in unknown}
        )

    def _cause(
        self, row: Resource, definition: ResourceDefinition, changes: Mapping[str, PropertyChange]
    ) -> str:
        if row.plugin != definition.type:
            return f"its type changes from {row.type} to {definition.declared_type}"
        if row.status == Status.FAILED:
            return f"its {row.action} failed"
        if forced := [name for name, change in changes.items() if change.requires_replacement]:
            return f"the change of {', '.join(forced)} requires a replacement"
        always = self._registry.get(row.plugin).always_replaced
        return "every update replaces a resource of this type" if always else ""

    def _must(self, plugin: ResourceType, old: JsonMap, after: JsonMap) -> bool:
        """Return whether the known values alone make a replacement necessary."""
        schema = plugin.properties_schema
        return plugin.always_replaced or bool(replacement_needed(schema, changed(schema, old, after)))

    def _unknown(self, definition: ResourceDefinition, plugin: ResourceType) -> dict[str, list[str]]:
        """Return the properties whose values are not known yet, each with the resources that provide them."""
        properties = definition.properties
        if is_node(properties):  # One function makes all of them.
            waits = self._unknown_sources(properties)
            return dict.fromkeys(plugin.properties_schema, waits) if waits else {}
        unknown = {name: self._unknown_sources(tree) for name, tree in properties.items()}
        return {name: waits for name, waits in unknown.items() if waits}

    def _unknown_sources(self, tree: Residual) -> list[str]:
        return [reference.resource for reference in references(tree) if not self._is_known(reference)]

    def _is_known(self, reference: Reference) -> bool:
        change = self._changes[reference.resource]
        if change.effect == ChangeKind.UNCHANGED:
            return not change.reason
        if reference.attribute is not None or reference.resource not in self._in_place or change.row is None:
            return False
        plugin = self._registry.get(change.row.plugin)
        return type(plugin).reference_id is ResourceType.reference_id

    def _resolved(
        self, definition: ResourceDefinition, plugin: ResourceType, unknown: JsonMap
    ) -> dict[str, Json]:
        """Return the properties whose values are known, resolved.

        :raises TemplateError: a value does not fit.
        """
        lookup = RowLookup(self._rows, self._unseal)
        path = ("resources", definition.name, "properties")
        if is_node(definition.properties):
            values = {} if unknown else evaluate(definition.properties, lookup)
            secret = set(values)
        else:
            secret = {name for name, tree in definition.properties.items() if is_deferred(tree)}
            values = {
                name: evaluate(tree, lookup)
                for name, tree in definition.properties.items()
                if name not in unknown
            }
        schema = {name: prop for name, prop in plugin.properties_schema.items() if name not in unknown}
        if definition.external_id is not None:
            return resolve_stored(schema, values)
        try:
            resolved = resolve_properties(schema, values, secret)
            if not unknown:
                plugin.validate(meanings(schema, resolved))
        except PropertyError as error:
            raise InvalidProperty(error.message, (*path, *error.path)) from error
        return resolved


def _stored(definition: ResourceDefinition) -> StoredDefinition:
    return TaskDefinition.of(definition).to_json()
