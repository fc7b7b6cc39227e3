"""Makes Heat's rows of one stack."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ....db.ids import ResourceId
from ....db.rows import Resource, Stack
from ....resources.contract.errors import UnknownType
from ....resources.nested.groups import GroupResource
from ....resources.registry import ResourceRegistry
from ....sealing.stored import Unseal, in_clear, metadata_in_clear
from ....shapes import JsonMap
from ..heat.rows import HeatResource, HeatStack, HeatTemplate, Refused
from ..heat.type_names import ADDED_METADATA
from ..mapping.columns import RESOURCE, STACK
from ..mapping.names import name_of, uuid_named, uuid_of
from .goals import has_secret_defaults, heat_template, resource_names
from .references import NAMED_TYPES, HeatLookup, HeatNames, HeatProperties, properties_of
from .stoker_rows import StokerTree
from .type_data import ResourceKeys, heat_data, notes_of, physical_id_of

SECRET_DEFAULTS = (
    "its environment has hidden values among the parameter_defaults, which Heat always stores in clear: give "
    "them as parameters"
)


@dataclass(frozen=True)
class OutgoingStack:
    """The rows of one stack.

    :ivar templates: its templates by their ids.
    :ivar children: names of the stacks nested in it, by their ids.
    """

    stack: HeatStack
    templates: Mapping[int, HeatTemplate] = field(repr=False)
    children: Mapping[str, str]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class _HeatPlace:
    """The place of a resource among Heat's rows.

    :ivar ids: numbers of the stack's resources by Stoker's ids.
    :ivar match: Heat's row of the same remote resource; None: it has none.
    """

    uuid: str
    template_id: int
    ids: Mapping[ResourceId, int]
    match: HeatResource | None


class HeatStackBuilder:
    """Builds the stacks of one tree.  For one thread.

    :param unseal: opens secrets of the tree.
    :param stored_stacks: the stacks that Heat's database has of it, by their ids.
    :ivar accounts: ids of stacks, each with the name of a resource whose account Heat has made.
    """

    def __init__(
        self,
        tree: StokerTree,
        registry: ResourceRegistry,
        unseal: Unseal,
        stored_stacks: Mapping[str, HeatStack],
    ) -> None:
        self._tree = tree
        self._registry = registry
        self._unseal = unseal
        self._before = stored_stacks
        self._children = {stack.parent_resource_id: stack for stack in tree.stacks}
        self._keys = _keys_of(tree, unseal)
        rows = [row for of_stack in tree.resources.values() for row in of_stack]
        self._rows = {row.id: row for row in rows}
        self.accounts: set[tuple[str, str]] = {
            (row.stack_id, row.name) for row in rows if row.id in self._keys
        }
        self.accounts |= {
            (stack.id, row.name)
            for stack in stored_stacks.values()
            for row in stack.resources
            if row.data.get("secret_key") or row.data.get("user_id")
        }

    def build(self, stack: Stack, name: str, *, first_template: int) -> OutgoingStack:
        """Return the rows of a stack, still without events and snapshots.

        :param name: its name in Heat.
        :param first_template: id of its template; the number below is that of the template before.
        :raises Refused: a resource belongs to no template that Stoker has.
        """
        templates = self._templates(stack, first_template)
        rows = self._tree.resources[stack.id]
        present = {row.name: row for row in rows if row.replaced_by is None}
        stored_stack = self._before.get(stack.id)
        matches = _matches(rows, () if stored_stack is None else stored_stack.resources)
        uuids = {row.id: self._uuid(row, name, matches.get(row.id)) for row in rows}
        names = HeatNames(stack.project_id, name, {row.name: uuids[row.id] for row in present.values()})
        lookup = HeatLookup(present, self._unseal, names)
        ids = {row.id: _number(row.id) for row in rows}
        notes: list[str] = []
        resources = []
        for row in rows:
            template_id = _template_of(row, stack, templates)
            place = _HeatPlace(uuids[row.id], template_id, ids, matches.get(row.id))
            properties = properties_of(row, present, lookup)
            resources.append(self._resource(row, properties, place))
            notes += notes_of(row, properties.values or {}, self._keys.get(row.id, ResourceKeys()))
        if has_secret_defaults(self._tree.contents[stack.environment_id]):
            notes.append(SECRET_DEFAULTS)
        return OutgoingStack(
            self._stack(stack, name, resources, first_template, list(templates)),
            templates,
            self._names_of_children(rows, name, uuids),
            notes,
        )

    def _templates(self, stack: Stack, first: int) -> dict[int, HeatTemplate]:
        """Return the stack's template, and that before an update which has not succeeded."""
        parent = self._rows.get(stack.parent_resource_id or ResourceId(0))
        is_generated = parent is not None and self._is_group(parent)
        contents = self._tree.contents_of(stack)
        templates = {
            first: heat_template(contents, stack.parameters, self._unseal, is_generated=is_generated)
        }
        if stack.previous:
            goal = stack.previous
            stored = self._tree.contents
            contents = (stored[goal["template"]], stored[goal["environment"]], stored[goal["files"]])
            templates[first - 1] = heat_template(
                contents, goal["parameters"], self._unseal, is_generated=is_generated
            )
        return templates

    def _is_group(self, row: Resource) -> bool:
        try:
            return isinstance(self._registry.get(row.plugin), GroupResource)
        except UnknownType:
            return False

    def _uuid(self, row: Resource, stack_name: str, match: HeatResource | None) -> str:
        """Return the UUID of a resource: one with which Heat makes the name that it has already."""
        if match is not None:
            return match.uuid
        child = self._children.get(row.id)
        name = row.physical_id if row.plugin in NAMED_TYPES else child.name if child is not None else None
        named = None if name is None else uuid_named(name, stack_name, row.name)
        return named or uuid_of(row.stack_id, row.id)

    def _names_of_children(
        self, rows: Sequence[Resource], name: str, uuids: Mapping[ResourceId, str]
    ) -> dict[str, str]:
        return {
            self._children[row.id].id: name_of(name, row.name, uuids[row.id])
            for row in rows
            if row.id in self._children
        }

    def _stack(
        self,
        stack: Stack,
        name: str,
        resources: Sequence[HeatResource],
        template_id: int,
        template_ids: Sequence[int],
    ) -> HeatStack:
        stored_stack = self._before.get(stack.id)
        root_before = self._before.get(self._tree.root.id)
        parent = self._rows.get(stack.parent_resource_id or ResourceId(0))
        return HeatStack(
            id=stack.id,
            name=name,
            template_id=template_id,
            previous_template_id=template_ids[1] if len(template_ids) > 1 else None,
            owner_id=stack.parent_id,
            parent_resource_name=None if parent is None else parent.name,
            user_project_id=None if root_before is None else root_before.user_project_id,
            traversal=stack.traversal,
            creds_id=None if stored_stack is None else stored_stack.creds_id,
            tags=stack.tags,
            resources=resources,
            **STACK.to_heat(stack),
        )

    def _resource(self, row: Resource, properties: HeatProperties, place: _HeatPlace) -> HeatResource:
        match = place.match
        ids = place.ids
        data: JsonMap = in_clear(row.data, self._unseal) or {}
        values = heat_data(row, data, self._keys.get(row.id, ResourceKeys()))
        is_same = match is not None and int(match.updated_at) == int(row.updated_at)
        return HeatResource(
            id=ids[row.id],
            uuid=place.uuid,
            stack_id=row.stack_id,
            physical_id=physical_id_of(row),
            metadata=self._metadata(row, match),
            properties=properties.values,
            attributes=match.attributes if match is not None and is_same else {},
            is_secret=properties.is_secret or (match is not None and match.is_secret),
            data=values if match is None else {**match.data, **values},
            requires=[ids[key] for key in row.requires if key in ids],
            replaces=ids.get(row.replaces or ResourceId(0)),
            replaced_by=ids.get(row.replaced_by or ResourceId(0)),
            template_id=place.template_id,
            **RESOURCE.to_heat(row),
        )

    def _metadata(self, row: Resource, match: HeatResource | None) -> JsonMap:
        """Return the metadata, with what Heat has added for the guest of a server."""
        metadata = metadata_in_clear(row, self._unseal)
        added = {} if match is None else match.metadata or {}
        return {**{name: added[name] for name in ADDED_METADATA if name in added}, **metadata}


def _number(resource_id: ResourceId) -> int:
    """Return the number that stands for a resource until Heat's database gives it one."""
    return -resource_id


def _matches(rows: Sequence[Resource], stored_rows: Sequence[HeatResource]) -> dict[ResourceId, HeatResource]:
    """Return Heat's rows of the same remote resources, each at most once, by the ids of Stoker's rows."""
    free = {(row.name, row.physical_id): row for row in stored_rows}
    matches = {}
    for row in sorted(rows, key=lambda row: row.replaced_by is not None):
        match = free.pop((row.name, physical_id_of(row)), None)
        if match is not None:
            matches[row.id] = match
    return matches


def _template_of(row: Resource, stack: Stack, templates: Mapping[int, HeatTemplate]) -> int:
    """Return the id of the template to which a resource was last brought.

    :raises Refused: no template that Stoker has declares it.
    """
    declaring = [key for key, template in templates.items() if row.name in resource_names(template)]
    is_older = row.replaced_by is not None or row.updated_at < (stack.updated_at or 0.0)
    if not declaring:
        raise Refused(
            f"stack {stack.name}: resource {row.name} is in no template that Stoker has: update the stack "
            "until that succeeds"
        )
    return declaring[-1] if is_older else declaring[0]


def _keys_of(tree: StokerTree, unseal: Unseal) -> dict[ResourceId, ResourceKeys]:
    """Return the keys that Heat has made, by the ids of the resources."""
    keys: dict[ResourceId, ResourceKeys] = {}
    for key in tree.keys:
        existing = keys.get(key.resource_id, ResourceKeys())
        if key.secret is None:
            keys[key.resource_id] = ResourceKeys(existing.access, existing.secret, key.key)
        else:
            secret = str(in_clear(key.secret, unseal))
            keys[key.resource_id] = ResourceKeys(key.key, secret, existing.user_id)
    return keys
