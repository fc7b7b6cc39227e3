"""Plans of what an action makes and deletes, stack by stack of a tree; pure."""

import typing
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...db.ids import StackId
from ...db.rows import Resource
from ...engine.planning.plan import is_copied
from ...engine.planning.requests import NestedChild
from ...resources.contract.errors import UnknownType
from ...resources.contract.known_stack import KnownResource, KnownStack
from ...resources.contract.plugin import ResourceType
from ...resources.contract.preflight import PlannedStack
from ...resources.registry import ResourceRegistry
from ...shapes import JsonMap
from ...template.language import CompiledTemplate, Path, ResourceDefinition
from ..preview.plan import ChangeKind, NestedChanges, ResourceChange, Turn


class GroupTurn(typing.NamedTuple):
    """The batches of a group in which a resource changes.

    :ivar group: the path of the group's stack.
    """

    group: Path
    turn: Turn


NO_BATCHES: Mapping[str, GroupTurn] = {}
NO_THINGS = frozenset[str]()
STAYING = (ChangeKind.UNCHANGED, ChangeKind.UPDATED)


@dataclass(frozen=True)
class PlannedPart:
    """One stack of a tree.

    :ivar path: the path of the stack in the root's template, such as ``("resources", "group")``.
    :ivar types: the types of its resources by name, also of those that it has now.
    :ivar before: its resources as they are now, of those that the action changes or deletes.
    :ivar gone: the things that the action deletes, by name of the resource: its type, and the physical id.
    :ivar copied: the names of those of which a copy is kept.
    :ivar stored: the stored data of the resources that the action changes in place, by name.
    :ivar open: names of nested stacks of which nothing is known before the action.
    :ivar changing: types of the resources that the action makes or changes.
    :ivar unsure: types of the resources that are not certain to be there.
    :ivar copies: number of equal stacks that it stands for.
    :ivar batches: of resources that change in the batches of a group, the batches, by name.
    :ivar is_passing: whether the action deletes at its end what it makes here.
    """

    path: Path
    stack: PlannedStack
    types: Mapping[str, ResourceType]
    before: Mapping[str, KnownResource] = field(default_factory=dict)
    gone: Mapping[str, tuple[ResourceType, str]] = field(default_factory=dict)
    copied: frozenset[str] = frozenset()
    stored: Mapping[str, JsonMap] = field(default_factory=dict)
    open: Sequence[str] = ()
    changing: frozenset[str] = frozenset()
    unsure: frozenset[str] = frozenset()
    copies: int = 1
    batches: Mapping[str, GroupTurn] = field(default_factory=dict)
    is_passing: bool = False

    @property
    def after(self) -> Mapping[str, KnownResource]:
        """Return the resources as they shall be, each after all that it requires."""
        return self.stack.known.resources


def parts_of_creation(
    plan: CompiledTemplate, children: Mapping[str, NestedChild], registry: ResourceRegistry
) -> Iterator[PlannedPart]:
    """Yield the stacks of a tree that is to be created, the root first.

    :param children: the nested stacks by the names of their resources, with their compiled templates.
    """
    return _together(list(_created(plan, children, registry, (), 1)))


def parts_of_update(
    changes: Sequence[ResourceChange], registry: ResourceRegistry, things: frozenset[str] = NO_THINGS
) -> Iterator[PlannedPart]:
    """Yield the stacks of a tree that an update changes, the root first.

    :param changes: the changes of one stack, with those inside of its nested stacks.
    :param things: ids of the things of the nested stacks whose changes are not known.
    """
    return _together(list(_updated(changes, registry, ())), things)


def stacks_to_read(changes: Sequence[ResourceChange]) -> list[StackId]:
    """Return the nested stacks whose things have to be read, because their changes do not name them.

    Who has what matters for what is made or deleted: another update needs none of them.
    """
    tree = list(_everywhere(changes))
    if all(item.effect in STAYING for item in tree):
        return []
    inside = [child for item in tree for child in item.inside]
    return [child.stack_id for child in inside if child.items is None and child.stack_id]


def _everywhere(changes: Sequence[ResourceChange]) -> Iterator[ResourceChange]:
    for item in changes:
        yield item
        for child in item.inside:
            yield from _everywhere([*(child.items or ()), *child.passing])


def _together(parts: Sequence[PlannedPart], things: frozenset[str] = NO_THINGS) -> Iterator[PlannedPart]:
    """Yield the stacks of a tree, each with what its rules have to know of the others."""
    own = things.union(*(planned.stack.own for planned in parts))
    changing = Counter(name for planned in parts for name in planned.changing | planned.unsure)
    is_open = any(planned.open for planned in parts)
    for planned in parts:
        # One of several equal stacks has the others beside it.
        own_types = planned.changing if planned.copies == 1 else frozenset()
        others = planned.unsure.union(name for name, count in changing.items() if count > (name in own_types))
        stack = replace(planned.stack, own=own, elsewhere=None if is_open else others)
        yield replace(planned, stack=stack)


def _created(
    plan: CompiledTemplate,
    children: Mapping[str, NestedChild],
    registry: ResourceRegistry,
    path: Path,
    copies: int,
) -> Iterator[PlannedPart]:
    definitions = [item for name, item in plan.resources.items() if name not in plan.uncertain]
    created = [item for item in definitions if item.external_id is None]
    types: dict[str, ResourceType] = {item.type: registry.get(item.type) for item in created}
    # Others may add to what a nested stack makes: the stack around it, for one.
    is_new = not path and len(created) == len(plan.resources)
    stack = KnownStack({item.name: _known(item, types[item.type]) for item in created}, is_new=is_new)
    unknown = [item.name for item in created if registry.is_nested(item.type) and item.name not in children]
    planned = PlannedStack(stack, frozenset(stack.resources), present=_external_ids(definitions))
    changing = frozenset(item.type for item in created)
    unsure = frozenset(plan.resources[name].type for name in plan.uncertain if name in plan.resources)
    yield PlannedPart(path, planned, types, open=unknown, changing=changing, unsure=unsure, copies=copies)
    for name, child in children.items():
        if child.stack.plan is not None:
            below = (*path, "resources", name)
            yield from _created(
                child.stack.plan, child.stack.children, registry, below, copies * child.copies
            )


def _external_ids(definitions: Iterable[ResourceDefinition]) -> dict[str, str]:
    """Return the ids of existing things that a template names, as far as they are known."""
    return {item.name: item.external_id for item in definitions if isinstance(item.external_id, str)}


def _updated(
    changes: Sequence[ResourceChange],
    registry: ResourceRegistry,
    path: Path,
    batches: Mapping[str, GroupTurn] = NO_BATCHES,
    *,
    is_passing: bool = False,
) -> Iterator[PlannedPart]:
    """Yield the parts of a stack and of those below it.

    :param batches, is_passing: attributes of the part.
    """
    kinds = {item.name: item.effect for item in changes}
    types: dict[str, ResourceType] = {}
    after: dict[str, KnownResource] = {}
    before: dict[str, KnownResource] = {}
    gone: dict[str, tuple[ResourceType, str]] = {}
    copied: set[str] = set()
    for item in changes:
        definition = item.definition
        if definition is not None and definition.external_id is None:
            types[definition.type] = registry.get(definition.type)
            after[item.name] = _known(definition, types[definition.type])
        if item.row is not None and item.effect not in (ChangeKind.ADDED, ChangeKind.UNCHANGED):
            _add_present(item.row, registry, before, types)
            if item.name in before and item.effect is not ChangeKind.UPDATED and _is_deleted(item.row):
                gone[item.name] = (types[item.row.plugin], str(item.row.physical_id))
                if is_copied(item.row):
                    copied.add(item.name)
    rows = [item.row for item in changes if item.row is not None]
    ids = {row.name: row.physical_id for row in rows if row.physical_id is not None}
    planned = PlannedStack(
        KnownStack(after),
        created=frozenset(name for name in after if kinds[name] is ChangeKind.ADDED),
        replaced=frozenset(name for name in after if kinds[name] is ChangeKind.REPLACED),
        present={
            **{name: ids[name] for name in after if kinds[name] in STAYING and name in ids},
            **_external_ids(item.definition for item in changes if item.definition is not None),
        },
        own=own_ids((row.plugin, row.physical_id) for row in rows),
    )
    changing = frozenset(after[name].type for name in after if kinds[name] is not ChangeKind.UNCHANGED)
    unknown = [item.name for item in changes if any(child.items is None for child in item.inside)]
    stored = {
        item.name: item.row.data
        for item in changes
        if item.effect is ChangeKind.UPDATED and item.row is not None and item.row.data is not None
    }
    yield PlannedPart(
        path,
        planned,
        types,
        before,
        gone,
        frozenset(copied),
        stored,
        unknown,
        changing,
        batches=batches,
        is_passing=is_passing,
    )
    for item in changes:
        for child in item.inside:
            below = (*path, "resources", item.name)
            yield from _inside(child, registry, below, batches.get(item.name), is_passing=is_passing)


def _inside(
    child: NestedChanges, registry: ResourceRegistry, path: Path, batch: GroupTurn | None, *, is_passing: bool
) -> Iterator[PlannedPart]:
    """Yield the parts of a nested stack, which changes with the resource that it is.

    :param batch: the batches of a group around it in which that resource changes.
    """
    for items, is_brief in ((child.items, is_passing), (child.passing, True)):
        if items:
            own = {name: GroupTurn(path, turn) for name, turn in child.turns.items()}
            batches = own if batch is None else {item.name: batch for item in items}
            yield from _updated(items, registry, path, batches, is_passing=is_brief)


def own_ids(things: Iterable[tuple[str, str | None]]) -> frozenset[str]:
    """Return the ids by which types know that things are the stack's, from their types and physical ids."""
    return frozenset(text for kind, key in things if key is not None for text in (key, f"{kind}:{key}"))


def _known(definition: ResourceDefinition, plugin: ResourceType) -> KnownResource:
    return KnownResource.of(definition, plugin.properties_schema, plugin.service)


def _add_present(
    row: Resource,
    registry: ResourceRegistry,
    before: dict[str, KnownResource],
    types: dict[str, ResourceType],
) -> None:
    """Add a resource as it is now, unless it has no thing, or nobody knows its type any more."""
    try:
        plugin = registry.get(row.plugin)
    except UnknownType:
        return
    is_named = (row.definition or {}).get("external_id") is not None
    if row.properties is not None and row.physical_id is not None and not is_named:
        types[row.plugin] = plugin
        before[row.name] = KnownResource(
            row.name, row.plugin, plugin.properties_schema, row.properties, service=plugin.service
        )


def _is_deleted(row: Resource) -> bool:
    """Return whether the thing of a resource goes with it."""
    policy = (row.definition or {}).get("deletion_policy", "Delete")
    return bool(policy != "Retain")
