"""Builds the rows of stacks, the nested ones before the resources that they are."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ....db.ids import ResourceId
from ....db.rows import Resource, Stack
from ....engine.context import Compiled, EngineContext
from ....resources.contract.errors import UnknownType
from ....resources.contract.plugin import ResourceType
from ....resources.contract.views import ResourceView, StackFacts
from ....resources.nested.base import NestedType
from ....sealing.secrets import Secrets
from ....shapes import JsonMap
from ....template.language import CompiledTemplate, ResourceDefinition
from ..heat.rows import STACK_TYPE, HeatResource, HeatStack, Refused
from ..mapping.data import removed_members
from .built import BuiltStack
from .goals import GoalMaker
from .group_goals import NestedResource
from .launches import launch_data
from .resource_rows import (
    ResourcePlace,
    reference_in_clear,
    resource_row,
    view_of_row,
    with_values,
)
from .stack_rows import ParentOf, TreeParts, stack_row
from .step_context import ReadChildren, ReadContext
from .type_data import Neighbours, TypeData, cloud_data, is_handle, notes_of, type_data


@dataclass(frozen=True)
class _Around:
    """The surroundings of a resource.

    :ivar compiled: the goal of its stack.
    :ivar stack: the row of its stack.
    :ivar secrets: the secrets of the resource.
    """

    compiled: Compiled
    stack: Stack
    secrets: Secrets
    neighbours: Neighbours


class StackBuilder:
    """Builds the stacks of one tree."""

    def __init__(
        self, context: EngineContext, parts: TreeParts, goals: GoalMaker, neighbours: Neighbours
    ) -> None:
        self._context = context
        self._goals = goals
        self._parts = parts
        self._near = neighbours

    def build(self, stack: HeatStack, compiled: Compiled, parent: ParentOf | None) -> BuiltStack:
        """Build a stack with all that is nested in it.

        :raises Refused: it cannot be moved.
        """
        remaining = [row for row in stack.resources if (row.action, row.status) != ("DELETE", "COMPLETE")]
        definitions = self._definitions(stack, compiled, remaining)
        resources = [row for row in remaining if row.id in definitions]
        ids = {row.id: self._context.database.ids.new(ResourceId) for row in resources}
        # A template's reference means the present resource of a name, not one that is replaced.
        by_name = {row.name: ids[row.id] for row in resources if row.replaced_by not in ids}
        row_of_stack = stack_row(stack, compiled, parent, self._parts)
        # Only a root is rolled back by itself; its nested stacks follow it.
        if parent is None:
            row_of_stack = replace(row_of_stack, previous=self._previous(stack))
        facts = StackFacts(id=stack.id, name=stack.name, project_id=stack.project_id)
        neighbours = self._near
        rows: dict[str, Resource] = {}
        replaced: list[Resource] = []
        children: list[BuiltStack] = []
        for resource in _in_order(resources, compiled.plan):
            definition = definitions[resource.id]
            secrets = Secrets(self._parts.sealer)
            place = ResourcePlace(facts, definition, self._plugin(definition), rows, ids, by_name)
            row, child = self._resource(resource, place, _Around(compiled, row_of_stack, secrets, neighbours))
            children += [] if child is None else [child]
            if is_handle(row.plugin):
                metadata = resource.metadata or {}
                neighbours = replace(
                    neighbours, handles={**neighbours.handles, reference_in_clear(row, secrets): metadata}
                )
            self._parts.add_keys(resource, row, stack)
            if resource.replaced_by in ids:
                replaced.append(row)
            else:
                rows[row.name] = row
        self._parts.add_events(stack, compiled, rows, self._context.clock())
        built = BuiltStack(row_of_stack, compiled, [*replaced, *rows.values()], children)
        self._parts.add_snapshots(stack, built, self._context)
        return built

    # -- resources ---------------------------------------------------------------------------------

    def _definitions(
        self, stack: HeatStack, compiled: Compiled, resources: Sequence[HeatResource]
    ) -> dict[int, ResourceDefinition]:
        """Return the definitions to which the resources were last brought, some of them of older templates.

        A resource that was never begun, and was removed from the template, has none.

        :raises Refused: a resource belongs to a template that Heat has deleted.
        """
        older: dict[int, CompiledTemplate] = {stack.template_id: compiled.plan}
        definitions = {}
        for resource in resources:
            template_id = resource.template_id or stack.template_id
            if template_id not in older and resource.action != "INIT":
                older[template_id] = self._goals.of_template(stack, template_id).plan
            plan = older.get(template_id, compiled.plan)
            definition = plan.resources.get(resource.name) or compiled.plan.resources.get(resource.name)
            if definition is not None:
                definitions[resource.id] = definition
            elif resource.action != "INIT":
                raise Refused(
                    f"stack {stack.name}: resource {resource.name} is in no template that Heat has: update "
                    "the stack in Heat until that succeeds"
                )
        return definitions

    def _plugin(self, definition: ResourceDefinition) -> ResourceType:
        try:
            return self._context.registry.get(definition.type)
        except UnknownType as error:
            raise Refused(f"resource {definition.name}: {error}") from error

    def _previous(self, stack: HeatStack) -> JsonMap | None:
        """Return the last complete goal of a stack whose update has not succeeded."""
        if stack.previous_template_id is None or stack.is_complete:
            return None
        compiled = self._goals.of_template(stack, stack.previous_template_id)
        return {
            "template": self._parts.put(compiled.template),
            "environment": self._parts.put(compiled.environment),
            "files": self._parts.put(dict(compiled.files)),
            "parameters": compiled.parameters,
        }

    def _resource(
        self, resource: HeatResource, place: ResourcePlace, surroundings: _Around
    ) -> tuple[Resource, BuiltStack | None]:
        """Return the row of a resource with its data and values, and the nested stack that it is."""
        resource = self._parts.with_own(resource, place.plugin)
        row = resource_row(resource, place, surroundings.secrets)
        # Nothing was begun: there is neither data nor a stack inside.
        if row.is_untouched:
            return row, None
        self._parts.notes += notes_of(resource)
        target = view_of_row(row, place, surroundings.secrets, {})
        child: BuiltStack | None = None
        if isinstance(place.plugin, NestedType):
            data, child = self._nested(resource, row, target, place, surroundings)
            imported = TypeData(data)
        elif (launch := self._launch(target, place, surroundings)) is not None:
            imported = TypeData(launch)
        elif place.plugin.service is not None:
            imported = cloud_data(row.plugin, resource, target, surroundings.neighbours)
        else:
            imported = type_data(place.plugin, resource, target, surroundings.neighbours)
        # Before the row gets its values: what is a secret there is sealed, wherever it occurs.
        for secret in imported.secrets:
            surroundings.secrets.add(secret)
        target = replace(target, data=imported.data, metadata=dict(resource.metadata or {}))
        row = with_values(row, target, place.plugin, surroundings.secrets, imported.attributes)
        self._parts.software.take(resource, place.plugin, row, surroundings.secrets.found_in)
        return row, child

    def _launch(self, target: ResourceView, place: ResourcePlace, surroundings: _Around) -> JsonMap | None:
        return launch_data(place.plugin, target, self._read_context(place, surroundings))

    def _read_context(
        self,
        place: ResourcePlace,
        surroundings: _Around,
        *,
        child: BuiltStack | None = None,
        template: str = "",
    ) -> ReadContext:
        named = (place.definition.name, place.definition.declared_type)
        children = ReadChildren(
            self._context, surroundings.secrets, surroundings.compiled, named, child=child, template=template
        )
        return ReadContext(0.0, place.rows, surroundings.secrets, children)

    def _nested(
        self,
        resource: HeatResource,
        row: Resource,
        target: ResourceView,
        place: ResourcePlace,
        surroundings: _Around,
    ) -> tuple[JsonMap, BuiltStack | None]:
        """Build the nested stack of a resource; return the resource's data, and the stack.

        :raises Refused: it cannot be moved.
        """
        plugin = place.plugin
        assert isinstance(plugin, NestedType), "it is asked for nested types only"
        if row.plugin == STACK_TYPE:
            raise Refused(
                f"resource {row.name} of type {STACK_TYPE} is a root stack of its own in Heat: there "
                "give it deletion_policy: retain, then take it out of the template, each by an update; that "
                "root stack is moved by itself"
            )
        stack = self._parts.child_of(resource)
        if stack is None:
            return {}, None
        data = removed_members(resource.data)
        data.update(self._launch(target, place, surroundings) or {})
        target = replace(target, data=data)
        nested = NestedResource(
            place.definition, plugin, target, surroundings.compiled, place.rows, row.properties, stack
        )
        template = self._goals.heat_template(stack)
        reading = self._read_context(place, surroundings, template=template)
        compiled = self._goals.of_nested(nested, surroundings.secrets, reading)
        child = self.build(stack, compiled, ParentOf(surroundings.stack, row.id))
        child = replace(child, resizing=self._goals.resizing(nested))
        context = self._read_context(place, surroundings, child=child)
        state = context.children.state()
        assert state is not None, "the child is built"
        values = dict(plugin.child_data(target, state, context))
        # A move is no scaling, so it starts no cooldown.
        if "cooldown_end" in values:
            values["cooldown_end"] = 0.0
        return values, child


def _in_order(resources: Sequence[HeatResource], plan: CompiledTemplate) -> Iterator[HeatResource]:
    """Yield the resources in an order in which those that another one refers to come first.

    The order is that of the present template.  Replaced ones, and those that were removed from it, come
    before the present one of their name, in the order of their ids.
    """
    places = {name: number for number, name in enumerate(plan.resources)}
    yield from sorted(resources, key=lambda row: (places.get(row.name, -1), row.id))
