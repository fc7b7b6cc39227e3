"""What an update would do, also inside of the stacks that the stack's resources are; nothing is stored."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..db import resources, stacks, tasks
from ..db.ids import ResourceId, StackId, TraversalId
from ..db.resources import Resource
from ..db.stacks import Stack
from ..db.tasks import Task
from ..resources.children import ChildGoal
from ..resources.errors import UnknownType
from ..resources.lifting import lifted
from ..resources.nesting import NestedType
from ..template.compile import Identity
from ..template.environment import as_document, is_template_name, nested_environment, parse_environment
from ..template.errors import TemplateError
from ..template.model import ResourceDefinition
from ..template.residual import evaluate
from .compiling import Compiled
from .desk import Desk
from .foresight import Effect, Foreseen, Foresight, Inside, Unchangeable
from .planning import Scope
from .requests import Goal
from .start import by_resource
from .stored import StoredLookup
from .type_facts import CatalogueFacts
from .updating import StillToBeAdopted, UpdatePlanner, update_ids_needed


class Previews:
    """Reads plans without beginning them.  Thread-safe."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._types = CatalogueFacts(desk.catalogue)

    def foresee(
        self, compiled: Compiled, stack: Stack, *, converge: bool = False, inside: bool = False
    ) -> list[Foreseen]:
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
    ) -> list[Foreseen]:
        catalogue, unseal = self._desk.catalogue, self._desk.sealer.open
        scope = Scope(
            stack_id=StackId(owner.stack_id),
            traversal=TraversalId(""),
            shard=0,
            first_id=max((row.id for row in rows), default=0) + 1,
            id_count=update_ids_needed(len(rows), len(compiled.plan.resources)),
            now=self._desk.clock(),
        )
        planner = UpdatePlanner(rows, compiled.plan, running, scope, self._types, observing=converge)
        foresight = Foresight(compiled.plan, rows, running, catalogue=catalogue, unseal=unseal)
        found = foresight.read(planner.plan())
        if not inside:
            return found
        return [replace(item, inside=self._inside(item, foresight, compiled, owner)) for item in found]

    def _inside(
        self, item: Foreseen, foresight: Foresight, compiled: Compiled, owner: Identity
    ) -> Sequence[Inside]:
        """Of the stack that the resource is now, and of that which it will be."""
        had = self._child(item.row)
        will = item.definition is not None and self._desk.catalogue.is_nested(item.definition.type)
        found: list[Inside] = []
        if had is not None and item.effect in (Effect.REPLACED, Effect.DELETED):
            found.append(Inside(had.id, had.name, self._all_deleted(had)))
        if not will or item.definition is None or item.effect == Effect.DELETED:
            return found
        stays = had if item.effect in (Effect.UNCHANGED, Effect.UPDATED) else None
        name = f"{owner.stack_name}-{item.name}" if stays is None else stays.name
        child = Identity(name, StackId("") if stays is None else stays.id, owner.project_id)
        goal = self._compiled(item.definition, foresight, compiled, child)
        return [*found, Inside(StackId(child.stack_id), name, self._of_child(stays, goal, child))]

    def _of_child(
        self, child: Stack | None, goal: Compiled | None, identity: Identity
    ) -> list[Foreseen] | None:
        if goal is None:
            return None
        if child is None:
            return self._read(goal, identity, [], {})
        try:
            return self.foresee(goal, child, inside=True)
        except (Unchangeable, StillToBeAdopted):
            return None

    def _all_deleted(self, stack: Stack) -> list[Foreseen]:
        rows = self._desk.database.read(lambda conn: resources.of_stack(conn, stack.id))
        gone = [Foreseen(row.name, Effect.DELETED, row=row) for row in rows if row.replaced_by is None]
        children = [(item, self._child(item.row)) for item in gone]
        return [
            item
            if child is None
            else replace(item, inside=[Inside(child.id, child.name, self._all_deleted(child))])
            for item, child in children
        ]

    def _child(self, row: Resource | None) -> Stack | None:
        if row is None or row.physical_id is None or not self._desk.catalogue.is_nested(row.plugin):
            return None
        key = StackId(row.physical_id)
        return self._desk.database.read(lambda conn: stacks.living(conn, key))

    def _compiled(
        self, definition: ResourceDefinition, foresight: Foresight, parent: Compiled, identity: Identity
    ) -> Compiled | None:
        """What the child will be; None: that hangs on values which are not known yet."""
        try:
            goal = self._goal(definition, foresight, parent)
            if goal is None:
                return None
            goal = lifted(goal, None)
            document = evaluate(parent.environment, StoredLookup(self._desk.sealer.open))
            environment = nested_environment(parse_environment(document), definition.name)
            wanted = Goal(
                template=goal.template,
                environment=as_document(environment),
                files=parent.files,
                parameters=goal.parameters,
                facade={"metadata": {}, "deletion_policy": definition.deletion_policy, "update_policy": {}},
                generated=goal.generated,
            )
            return self._desk.compile(wanted, identity, tree=False)
        except TemplateError:
            return None

    def _goal(
        self, definition: ResourceDefinition, foresight: Foresight, parent: Compiled
    ) -> ChildGoal | None:
        try:
            plugin = self._desk.catalogue.get(definition.type)
        except UnknownType:
            return None
        if not isinstance(plugin, NestedType) or not plugin.foreseeable:
            return None
        known = foresight.known(definition)
        if known is None:
            return None
        if is_template_name(definition.type):
            given = {name: value for name, value in known.items() if value is not None}
            return ChildGoal(parent.files[definition.type], given)
        return plugin.static_goal(known, definition)
