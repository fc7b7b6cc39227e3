"""Rows of stacks and their events, and what a tree collects while its stacks are built."""

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ....db import content
from ....db.ids import ContentId, ResourceId, StackId, TraversalId
from ....db.imported_keys import ImportedKey
from ....db.rows import Event, FailureCause, Resource, Stack
from ....db.states import Status
from ....engine.context import Compiled, EngineContext
from ....resources.contract.plugin import ResourceType
from ....resources.nested.base import NestedType
from ....ring.hashring import shard_of
from ....sealing.sealer import BoundSealer
from ....shapes import Json
from ....template.residual import sealed
from ..heat.rows import HeatResource, HeatStack
from ..mapping.columns import STACK
from ..mapping.software import makes_software
from .built import BuiltStack
from .event_rows import event_rows
from .project_software import ProjectSoftware
from .snapshot_rows import SnapshotRows, snapshot_rows
from .type_data import keys_of

_CAUSE = re.compile(r"Resource [A-Z]+ failed: (\w+): (resources[^:]*): (.*)", re.DOTALL)


@dataclass
class TreeParts:
    """The parts of a tree that are collected while its stacks are built.

    :ivar nested: nested stacks by their ids.
    :ivar software: the configs and deployments that resources may have.
    :ivar parents: numbers of the resources that nested stacks are, by the stacks' ids: each stack is one.
    """

    sealer: BoundSealer
    shard_count: int
    nested: Mapping[str, HeatStack]
    software: ProjectSoftware
    parents: dict[str, int] = field(default_factory=dict)
    contents: dict[ContentId, Json] = field(default_factory=dict)
    keys: list[ImportedKey] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    snapshots: list[SnapshotRows] = field(default_factory=list)

    def put(self, body: Json) -> ContentId:
        """Note a content to be stored; return its id."""
        key = content.content_id(body)
        self.contents[key] = body
        return key

    def add_keys(self, resource: HeatResource, row: Resource, stack: HeatStack) -> None:
        """Note the keys and the account by which guests and clients act for a resource."""
        place = (StackId(stack.id), row.id)
        if keys := keys_of(resource):
            secret = sealed(self.sealer.seal(keys.secret))
            self.keys.append(ImportedKey.of_resource(keys.access, *place, secret))
        if user_id := resource.data.get("user_id"):
            self.keys.append(ImportedKey.of_resource(user_id, *place))

    def with_own(self, resource: HeatResource, plugin: ResourceType) -> HeatResource:
        """Return a resource without the id of a stack, config or deployment that is not its own.

        Heat's row may name any: what lies in Stoker's own tables belongs to one resource of its project.
        """
        if resource.physical_id is None or resource.action == "INIT":
            return resource
        if isinstance(plugin, NestedType):
            is_own = self.child_of(resource) is not None
            text = f"{resource.name}: no stack is nested in it: it is moved without one"
        elif makes_software(plugin):
            is_own = self.software.has(resource, plugin)
            text = (
                f"{resource.name}: {resource.physical_id} is not a software config or deployment of its own: "
                "it is moved without one"
            )
        else:
            return resource
        if is_own:
            return resource
        self.notes.append(text)
        return replace(resource, physical_id=None)

    def child_of(self, resource: HeatResource) -> HeatStack | None:
        """Return the nested stack that a resource is; None: the stack that it names is not nested in it."""
        child = self.nested.get(resource.physical_id or "")
        if child is None or child.owner_id != resource.stack_id:
            return None
        if child.parent_resource_name not in (None, resource.name):
            return None
        return child if self.parents.setdefault(child.id, resource.id) == resource.id else None

    def add_snapshots(self, stack: HeatStack, built: BuiltStack, context: EngineContext) -> None:
        """Note the snapshots of a stack."""
        snapshots, notes = snapshot_rows(stack, built, self.put, self.sealer, context)
        self.snapshots += snapshots
        self.notes += notes

    def add_events(
        self, stack: HeatStack, compiled: Compiled, rows: Mapping[str, Resource], now: float
    ) -> None:
        """Note the events of a stack; see event_rows."""
        self.events += event_rows(stack, compiled, rows, now)


@dataclass(frozen=True)
class ParentOf:
    """The place of a nested stack: the stack around it, and the resource that it is."""

    stack: Stack
    resource_id: ResourceId


def stack_row(stack: HeatStack, compiled: Compiled, parent: ParentOf | None, parts: TreeParts) -> Stack:
    """Return the row of a stack, still without the goal that it had before.

    :param parent: its place; None: it is a root.
    """
    put = parts.put
    is_root = parent is None
    return Stack(
        id=StackId(stack.id),
        name=stack.name,
        live_name=stack.name if is_root and stack.deleted_at is None else None,
        parent_id=None if parent is None else parent.stack.id,
        parent_resource_id=None if parent is None else parent.resource_id,
        root_id=StackId(stack.id) if parent is None else parent.stack.root_id,
        depth=0 if parent is None else parent.stack.depth + 1,
        failure_cause=_failure_cause(stack.reason) if stack.status == Status.FAILED else None,
        traversal=TraversalId(stack.traversal or str(uuid.uuid4())),
        shard=shard_of(stack.id, parts.shard_count),
        template_id=put(compiled.template),
        environment_id=put(compiled.environment),
        files_id=put(dict(compiled.files)),
        parameters=compiled.parameters,
        own_resources=len(compiled.plan.resources),
        parameter_view=compiled.parameter_view,
        outputs=compiled.outputs,
        description=compiled.plan.description,
        has_sinks=bool(compiled.event_sinks) if parent is None else parent.stack.has_sinks,
        tags=tuple(stack.tags),
        **STACK.to_stoker(stack),
    )


def _failure_cause(reason: str) -> FailureCause:
    """Return the cause that the reason of a failed stack names."""
    match = _CAUSE.fullmatch(reason)
    if match is None:
        return FailureCause(reason)
    kind, path, message = match.groups()
    return FailureCause(message, kind, path)
