"""What an update would do, also inside of the stacks that the stack's resources are; nothing is stored."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..db import resources
from ..db.ids import ResourceId, StackId, TraversalId
from ..db.rows import Resource, Stack, Task
from ..db.work import tasks
from ..planning.nested_check import static_facade, static_goal
from ..planning.plan import TraversalScope
from ..planning.preview import ChangeKind, NestedChanges, ResourceChange, Unchangeable, UpdatePreview
from ..planning.type_facts import RegisteredTypeFacts
from ..planning.update import StillToBeAdopted, UpdatePlanner, update_ids_needed
from ..resources.nested.base import NestedType
from ..resources.nested.parameterize import parameterize
from ..template.compile import Identity
from ..template.errors import TemplateError
from ..template.model import ResourceDefinition
from .compile import Compiled
from .context import EngineContext
from .hidden_parameters import secret_parameters
from .parents import compiled_from, living_child
from .start import by_resource


class Previews:
    """Reads plans without beginning them.  Thread-safe."""

    def __init__(self, desk: EngineContext) -> None:
        self._desk = desk
        self._types = RegisteredTypeFacts(desk.catalogue)

    def foresee(
        self, compiled: Compiled, stack: Stack, *, converge: bool = False, inside: bool = False
    ) -> list[ResourceChange]:
        """What an update of the stack to a goal would do.

        :param converge: what is really there would be looked at first.
        :param inside: also what it would do to the stacks inside of it.
        :raises TemplateError: a value that is known by now does not fit.
        :raises Unchangeable, StillToBeAdopted: it would be refused, or fail.
        """
        rows, running = self._desk.database.read(
            lambda conn: (
                resources.of_stack(conn, stack.id),
                tasks.running_of_stack(conn, stack.id, lock=False),
            )
        )
        owner = Identity(stack.name, stack.id, stack.tenant)
        return self._read(compiled, owner, rows, by_resource(running), converge=converge, inside=inside)

    # -- inside ------------------------------------------------------------------------------------

    def _read(
        self,
        compiled: Compiled,
        owner: Identity,
        rows: Sequence[Resource],
        running: Mapping[ResourceId, Task],
        *,
        converge: bool = False,
        inside: bool = True,
    ) -> list[ResourceChange]:
        catalogue, unseal = self._desk.catalogue, compiled.sealer.open
        scope = TraversalScope(
            stack_id=StackId(owner.stack_id),
            traversal=TraversalId(""),
            shard=0,
            first_id=max((row.id for row in rows), default=0) + 1,
            id_count=update_ids_needed(len(rows), len(compiled.plan.resources)),
            now=self._desk.clock(),
        )
        planner = UpdatePlanner(rows, compiled.plan, running, scope, self._types, observing=converge)
        foresight = UpdatePreview(compiled.plan, rows, running, catalogue=catalogue, unseal=unseal)
        found = foresight.read(planner.plan())
        if not inside:
            return found
        return [replace(item, inside=self._inside(item, foresight, compiled, owner)) for item in found]

    def _inside(
        self, item: ResourceChange, foresight: UpdatePreview, compiled: Compiled, owner: Identity
    ) -> Sequence[NestedChanges]:
        """Of the stack that the resource is now, and of that which it will be."""
        had, definition = self._child(item.row), item.definition
        stays = had is not None and item.effect in (ChangeKind.UNCHANGED, ChangeKind.UPDATED)
        found = [] if had is None or stays else [self._gone(had)]
        if definition is None or not self._desk.catalogue.is_nested(definition.type):
            return found
        child = had if stays else None
        name = f"{owner.stack_name}-{item.name}" if child is None else child.name
        own = Identity(name, StackId("") if child is None else child.id, owner.project_id)
        goal = self._compiled(definition, foresight, compiled, own)
        return [*found, NestedChanges(StackId(own.stack_id), name, self._of_child(child, goal, own))]

    def _of_child(
        self, child: Stack | None, goal: Compiled | None, identity: Identity
    ) -> list[ResourceChange] | None:
        if goal is None:
            return None
        if child is None:
            return self._read(goal, identity, [], {})
        try:
            return self.foresee(goal, child, inside=True)
        except (Unchangeable, StillToBeAdopted):
            return None

    def _gone(self, stack: Stack) -> NestedChanges:
        rows = self._desk.database.read(lambda conn: resources.of_stack(conn, stack.id))
        items = []
        for row in rows:
            if row.replaced_by is None:
                child = self._child(row)
                inside = () if child is None else [self._gone(child)]
                items.append(ResourceChange(row.name, ChangeKind.DELETED, row=row, inside=inside))
        return NestedChanges(stack.id, stack.name, items)

    def _child(self, row: Resource | None) -> Stack | None:
        if row is None:
            return None
        return self._desk.database.read(lambda conn: living_child(conn, row, self._desk.catalogue))

    def _compiled(
        self, definition: ResourceDefinition, foresight: UpdatePreview, parent: Compiled, identity: Identity
    ) -> Compiled | None:
        """What the child will be; None: that hangs on values which are not known yet."""
        plugin = self._desk.catalogue.get(definition.type)
        if not isinstance(plugin, NestedType) or not plugin.foreseeable:
            return None
        try:
            known = foresight.known(definition)
            goal = None if known is None else static_goal(definition, plugin, known, parent.files)
            if goal is None:
                return None
            kept = foresight.kept(definition)
            secret = secret_parameters(goal.parameters, kept, lambda value: False)
            wanted = compiled_from(
                replace(parameterize(goal, None), secret=secret),
                definition.name,
                static_facade(definition),
                environment=parent.environment,
                files=parent.files,
                unseal=parent.sealer.open,
            )
            return self._desk.compile(wanted, identity, parent.sealer, tree=False)
        except TemplateError:
            return None
