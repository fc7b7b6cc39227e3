"""Children: the stacks inside of a stack, begun and changed by the steps of their parent's resources."""

import contextlib
import typing
from collections.abc import Callable, Mapping
from dataclasses import replace

from sqlalchemy.engine import Connection

from ..db import content, resources, snapshots, stacks
from ..db.errors import NameTaken, NotFound
from ..db.ids import ContentId, StackId
from ..db.rows import Resource, Snapshot, Stack
from ..db.states import Status, TaskKind
from ..planning.adopt import adopting
from ..planning.breakpoints import PlannedBreakpoints
from ..planning.plan import TooFewIds, TraversalScope, ids_needed, plan_create
from ..planning.requests import AdoptedResource
from ..planning.type_facts import RegisteredTypeFacts
from ..planning.update import update_ids_needed
from ..resources.errors import ChildGone, PermanentError
from ..resources.nested.children import ChildGoal
from ..resources.nested.parameterize import restore_values
from ..sealing.stored import StoredLookup
from ..template.compile import Identity
from ..template.errors import TemplateError
from ..template.residual import evaluate
from .actions import start_action
from .change import Change, start_update
from .compile import Compiled
from .context import EngineContext
from .errors import ActionInProgress, NotUpdatable
from .parent_resource import ParentResource, child_id, child_snapshot_id
from .parents import compiled_from
from .snapshots import SnapshotRequest, deletion_scope, start_deletion, start_snapshot
from .start import Started, announce_started, start_delete, store_new_stack

Json = typing.Any
UNSTORED = ContentId("")


class NestedStacks:
    """Carries out what resources ask of their children.  Thread-safe."""

    def __init__(self, desk: EngineContext) -> None:
        self._desk = desk
        self._types = RegisteredTypeFacts(desk.catalogue)

    def create(
        self, nest: ParentResource, goal: ChildGoal, adopted: Mapping[str, Json] | None = None
    ) -> StackId:
        """Begin the child, or find it if an earlier attempt did.

        :param adopted: see Children.
        :raises Final: the goal is wrong, or too deep.
        """
        own = child_id(nest.key)
        if self.look(own, nest.stack_id) is not None:
            return own
        parent = self._stack(nest.stack_id)
        deepest = self._desk.settings.limits.depth
        if deepest and parent.depth + 1 > deepest:
            raise PermanentError(f"stacks may be nested {deepest} levels deep", kind="StackValidationFailed")
        identity = Identity(nest.child_name, own, parent.tenant)
        compiled = self._compile(parent, nest, goal, identity)
        scope = self._desk.scope(own, ids_needed(len(compiled.plan.resources)))
        active = adopted is None and self._stops(parent)
        scope = replace(
            scope, breakpoints=PlannedBreakpoints(abort=parent.abort_on_breakpoint, active=active)
        )
        plan = plan_create(compiled.plan, scope)
        child = _new_child(parent, nest, compiled, scope, identity)
        child = replace(child, deadline_at=self._deadline(parent, scope.now, goal))
        if adopted is not None:
            things = {name: AdoptedResource.of(entry or {}) for name, entry in adopted.items()}
            plan = adopting(plan, things, compiled.sealer.seal, self._desk.catalogue)
            child = replace(child, action="ADOPT", reason="Stack ADOPT started")

        def store(conn: Connection) -> Started:
            nest.guard(conn)
            return store_new_stack(conn, child, compiled, plan)

        try:
            announce_started(self._desk.hints, self._desk.database.write(store))
        except NameTaken:  # By itself: an attempt beside this one was faster.
            if self.look(own, nest.stack_id) is None:
                raise
        return own

    def update(self, nest: ParentResource, key: StackId, goal: ChildGoal) -> None:
        """Bring the child to another goal, whatever it does now.

        :raises Final: the goal is wrong, or the child is being deleted, or suspended.
        """
        parent = self._parent(nest, key)
        while True:
            child = self._stack(key)
            identity = Identity(child.name, child.id, child.tenant)
            compiled = self._compile(parent, nest, goal, identity)
            existing = self._count(key)
            scope = self._desk.scope(key, update_ids_needed(2 * existing, len(compiled.plan.resources)))
            change = Change(
                stack=child,
                compiled=compiled,
                parameter_view=compiled.parameter_view(identity),
                deadline_at=self._deadline(parent, scope.now, goal),
                columns={"abort_on_breakpoint": parent.abort_on_breakpoint},
                stops=self._stops(parent),
            )
            begun = self._begin(
                nest,
                lambda conn, c=change, s=scope: start_update(conn, c, s, self._types),  # type: ignore[misc]
            )
            if begun is not None:
                return announce_started(self._desk.hints, begun)

    def delete(self, nest: ParentResource, key: StackId) -> None:
        """Delete the child, whatever it does now."""
        parent = self._parent(nest, key)
        stops = self._stops(parent)

        def start(conn: Connection, scope: TraversalScope) -> Started | None:
            timeout = max(0.0, self._deadline(parent, scope.now) - scope.now)
            return start_delete(conn, scope, timeout=timeout, stops=stops)

        self._insist(nest, start, lambda: self._scope(key, copies=True))

    def act(self, nest: ParentResource, key: StackId, kind: TaskKind) -> None:
        """Check, suspend or resume the child.

        :raises Final: it is not in a state for it.
        """
        parent = self._parent(nest, key)

        def start(conn: Connection, scope: TraversalScope) -> Started:
            return start_action(conn, kind, scope, deadline_at=self._deadline(parent, scope.now))

        self._insist(nest, start, lambda: self._scope(key))

    def snapshot(self, nest: ParentResource, key: StackId) -> None:
        """Begin a snapshot of the child, or find the one that an earlier attempt has begun.

        :raises Final: the child is not in a state for it.
        """
        parent = self._parent(nest, key)

        def start(conn: Connection, scope: TraversalScope) -> Started | None:
            wanted = SnapshotRequest(None, self._deadline(parent, scope.now), id=child_snapshot_id(nest.key))
            return start_snapshot(conn, wanted, scope)[0]

        if self._snapshot(nest, key) is not None:
            return
        try:
            self._insist(nest, start, lambda: self._scope(key))
        except ActionInProgress as error:
            raise PermanentError(str(error)) from error

    def snapshot_of(self, nest: ParentResource, key: StackId) -> Snapshot | None:
        """The child's snapshot that a step with the nest's key has begun."""
        self._parent(nest, key)
        return self._snapshot(nest, key)

    def delete_snapshot(self, nest: ParentResource, key: StackId) -> None:
        """Delete that snapshot, whatever the child does.

        :raises Final: it is being taken.
        """
        found = self.snapshot_of(nest, key)
        if found is None:
            return
        snapshot_id = found.id
        with contextlib.suppress(NotFound):
            self._insist(
                nest,
                lambda conn, scope: start_deletion(conn, snapshot_id, scope),
                lambda: deletion_scope(self._desk, key, snapshot_id),
            )

    def look(self, key: StackId, stack_id: StackId) -> Stack | None:
        """The child of a resource of the stack; None: it is deleted, or was never there, or belongs to
        another tree.  (What a step has left behind stands beside the stack that it was for.)"""
        found = self._desk.database.read(lambda conn: stacks.living(conn, key))
        return found if found is not None and _same_tree(found, self._stack(stack_id)) else None

    def rows(self, key: StackId) -> list[Resource]:
        """The child's resources."""
        return self._desk.database.read(lambda conn: resources.of_stack(conn, key))

    def bodies(self, child: Stack, unseal: Callable[[str], Json]) -> Mapping[str, Mapping[str, Json]]:
        """What the generated template of a child says of its resources, in clear.

        :param unseal: opens the token of a secret.
        """
        given = evaluate(child.parameters, StoredLookup(unseal))
        return restore_values(self._content(child.template_id), given)

    def file(self, stack_id: StackId, name: str) -> str:
        """:raises Final: the stack has no such file."""
        files = self._content(self._stack(stack_id).files_id)
        if name not in files:
            raise PermanentError(
                f"the file {name} is not among those of the stack", kind="StackValidationFailed"
            )
        return str(files[name])

    # -- inside ------------------------------------------------------------------------------------

    def _begin(self, nest: ParentResource, start: Callable[[Connection], Started | None]) -> Started | None:
        def work(conn: Connection) -> Started | None:
            nest.guard(conn)
            return start(conn)

        try:
            return self._desk.database.write(work)
        except NotUpdatable as error:
            raise PermanentError(str(error), kind="NotSupported") from error

    def _insist(
        self,
        nest: ParentResource,
        start: Callable[[Connection, TraversalScope], Started | None],
        scope: Callable[[], TraversalScope],
    ) -> None:
        """Try again as long as others give the child more resources meanwhile than there are ids for."""
        while True:
            part = scope()
            try:
                begun = self._begin(nest, lambda conn, p=part: start(conn, p))  # type: ignore[misc]
            except TooFewIds:
                continue
            if begun is not None:
                announce_started(self._desk.hints, begun)
            return

    def _scope(self, key: StackId, *, copies: bool = False) -> TraversalScope:
        return self._desk.scope(key, ids_needed(self._count(key, copies=copies)))

    def _parent(self, nest: ParentResource, key: StackId) -> Stack:
        """:raises Final: the child is none of its tree's."""
        parent = self._stack(nest.stack_id)
        if not _same_tree(self._stack(key), parent):
            raise ChildGone
        return parent

    def _snapshot(self, nest: ParentResource, key: StackId) -> Snapshot | None:
        try:
            return self._desk.database.read(lambda c: snapshots.get(c, key, child_snapshot_id(nest.key)))
        except NotFound:
            return None

    def _stops(self, parent: Stack) -> bool:
        """Whether breakpoints hold: a rollback stops nowhere, on no level."""
        return self._stack(parent.root_id).action != "ROLLBACK"

    def _stack(self, key: StackId) -> Stack:
        return self._desk.database.read(lambda conn: stacks.get(conn, key))

    def _content(self, key: ContentId) -> Mapping[str, Json]:
        found: Mapping[str, Json] = self._desk.database.read(lambda conn: content.get(conn, key))
        return found

    def _count(self, key: StackId, *, copies: bool = False) -> int:
        def count(conn: Connection) -> int:
            return len(resources.of_stack(conn, key)) + (len(resources.copies(conn, key)) if copies else 0)

        return self._desk.database.read(count)

    def _deadline(self, parent: Stack, now: float, goal: ChildGoal | None = None) -> float:
        """What remains of the parent's time, or less where the child has a timeout of its own."""
        of_parent = parent.deadline_at or now + self._desk.timeout(parent.timeout_mins)
        return of_parent if goal is None or goal.timeout is None else min(of_parent, now + goal.timeout)

    def _compile(self, parent: Stack, nest: ParentResource, goal: ChildGoal, identity: Identity) -> Compiled:
        sealer = self._desk.sealer_of(parent)
        wanted = compiled_from(
            goal,
            nest.resource_name,
            nest.facade,
            environment=self._content(parent.environment_id),
            files=self._content(parent.files_id),
            unseal=sealer.open,
        )
        try:
            return self._desk.compile(wanted, identity, sealer, tree=False)
        except TemplateError as error:
            raise PermanentError(str(error), kind="StackValidationFailed") from error


def _same_tree(one: Stack, other: Stack) -> bool:
    return one.root_id == other.root_id


def _new_child(
    parent: Stack, nest: ParentResource, compiled: Compiled, scope: TraversalScope, identity: Identity
) -> Stack:
    return Stack(
        id=scope.stack_id,
        tenant=parent.tenant,
        name=identity.stack_name,
        root_id=parent.root_id,
        parent_id=parent.id,
        parent_resource_id=nest.resource_id,
        depth=parent.depth + 1,
        owner=parent.owner,
        action="CREATE",
        status=Status.IN_PROGRESS,
        reason="Stack CREATE started",
        traversal=scope.traversal,
        shard=scope.shard,
        template_id=UNSTORED,
        environment_id=UNSTORED,
        files_id=UNSTORED,
        parameters=compiled.parameters,
        parameter_view=compiled.parameter_view(identity),
        outputs=compiled.outputs,
        description=compiled.plan.description,
        disable_rollback=True,
        abort_on_breakpoint=parent.abort_on_breakpoint,
        created_at=scope.now,
    )
