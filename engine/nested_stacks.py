"""Nested stacks: creating, changing and deleting them for the steps of their parents' resources."""

import contextlib
import typing
from collections.abc import Callable, Mapping

from sqlalchemy.engine import Connection

from ..db.errors import NameTaken, NotFound
from ..db.ids import StackId
from ..db.rows import Stack
from ..db.states import TaskKind
from ..planning.plan import TraversalScope
from ..planning.requests import AdoptedResource
from ..resources.context import ChildGoal
from ..resources.errors import PermanentError
from ..template.compile import Identity
from ..template.errors import TemplateError
from .actions import count_ids_to_act, start_action
from .announce import Started, announce_started
from .change import Change, commit_update
from .children import goal_of_child
from .compiled import Compiled
from .creation import NewStack, create_stack
from .delete import count_ids_to_delete, start_delete
from .errors import ActionInProgress, NotUpdatable
from .nested_reads import NestedStackReader
from .parent_resource import ParentResource, child_id, child_snapshot_id
from .snapshots import (
    SnapshotRequest,
    count_ids_to_delete_snapshot,
    start_snapshot,
    start_snapshot_deletion,
)

Json = typing.Any


class NestedStacks(NestedStackReader):
    """Carries out what steps ask of nested stacks.  Thread-safe."""

    def create(
        self, nest: ParentResource, goal: ChildGoal, adopted: Mapping[str, Json] | None = None
    ) -> StackId:
        """Begin to create the child, or find it if an earlier attempt did.

        :param adopted: see Children.
        :raises PermanentError: the goal is wrong, or too deep.
        """
        own = child_id(nest.key)
        if self.find(own, nest.stack_id) is not None:
            return own
        parent = self.stack(nest.stack_id)
        deepest = self._context.settings.limits.depth
        if deepest and parent.depth + 1 > deepest:
            raise PermanentError(f"stacks may be nested {deepest} levels deep", kind="StackValidationFailed")
        compiled = self._compile(parent, nest, goal, Identity(nest.child_name, own, parent.tenant))
        things = (adopted or {}).items()
        new = NewStack(
            id=own,
            name=nest.child_name,
            project_id=parent.tenant,
            username=parent.owner,
            deadline=lambda now: self._deadline(parent, now, goal),
            abort_on_breakpoint=parent.abort_on_breakpoint,
            breakpoints_hold=self._breakpoints_hold(parent),
            adopted=None if adopted is None else {n: AdoptedResource.of(entry or {}) for n, entry in things},
            parent=parent,
            parent_resource_id=nest.resource_id,
        )
        try:
            create_stack(self._context, new, compiled, nest.guard)
        except NameTaken:  # By itself: an attempt beside this one was faster.
            if self.find(own, nest.stack_id) is None:
                raise
        return own

    def update(self, nest: ParentResource, key: StackId, goal: ChildGoal) -> None:
        """Bring the child to another goal, whatever it does now.

        :raises PermanentError: the goal is wrong, or the child is being deleted, or suspended.
        """
        parent, done = self.parent(nest, key), False
        while not done:
            child = self.stack(key)
            change = Change(
                stack=child,
                compiled=self._compile(parent, nest, goal, Identity(child.name, child.id, child.tenant)),
                deadline=lambda now: self._deadline(parent, now, goal),
                columns={"abort_on_breakpoint": parent.abort_on_breakpoint},
                breakpoints_hold=self._breakpoints_hold(parent),
            )
            with _refused():
                done = commit_update(self._context, change, nest.guard)

    def delete(self, nest: ParentResource, key: StackId) -> None:
        """Delete the child, whatever it does now."""
        parent = self.parent(nest, key)
        hold = self._breakpoints_hold(parent)

        def start(conn: Connection, scope: TraversalScope) -> Started | None:
            timeout = max(0.0, self._deadline(parent, scope.now) - scope.now)
            return start_delete(conn, scope, timeout=timeout, breakpoints_hold=hold)

        self._start(nest, key, lambda conn: count_ids_to_delete(conn, key), start)

    def act(self, nest: ParentResource, key: StackId, kind: TaskKind) -> None:
        """Check, suspend or resume the child.

        :raises PermanentError: it is not in a state for it.
        """
        parent = self.parent(nest, key)

        def start(conn: Connection, scope: TraversalScope) -> Started:
            return start_action(conn, kind, scope, deadline_at=self._deadline(parent, scope.now))

        self._start(nest, key, lambda conn: count_ids_to_act(conn, key), start)

    def snapshot(self, nest: ParentResource, key: StackId) -> None:
        """Begin a snapshot of the child, or find the one that an earlier attempt has begun.

        :raises PermanentError: the child is not in a state for it.
        """
        parent = self.parent(nest, key)

        def start(conn: Connection, scope: TraversalScope) -> Started:
            wanted = SnapshotRequest(None, self._deadline(parent, scope.now), id=child_snapshot_id(nest.key))
            return start_snapshot(conn, wanted, scope)[0]

        if self.snapshot_of(nest, key) is not None:
            return
        try:
            self._start(nest, key, lambda conn: count_ids_to_act(conn, key), start)
        except ActionInProgress as error:
            raise PermanentError(str(error)) from error

    def delete_snapshot(self, nest: ParentResource, key: StackId) -> None:
        """Delete that snapshot, whatever the child does.

        :raises PermanentError: it is being taken.
        """
        found = self.snapshot_of(nest, key)
        if found is None:
            return
        snapshot_id, timeout = found.id, self._context.settings.stack_timeout
        with contextlib.suppress(NotFound):
            self._start(
                nest,
                key,
                lambda conn: count_ids_to_delete_snapshot(conn, key, snapshot_id),
                lambda conn, scope: start_snapshot_deletion(conn, snapshot_id, scope, timeout=timeout),
            )

    # -- inside ------------------------------------------------------------------------------------

    def _start(
        self,
        nest: ParentResource,
        key: StackId,
        count_ids: Callable[[Connection], int],
        start: Callable[[Connection, TraversalScope], Started | None],
    ) -> None:
        def guarded(conn: Connection, scope: TraversalScope) -> Started | None:
            nest.guard(conn)
            return start(conn, scope)

        with _refused():
            started = self._context.start_traversal(key, count_ids, guarded)
        if started is not None:
            announce_started(self._context.hints, started)

    def _breakpoints_hold(self, parent: Stack) -> bool:
        """Return whether breakpoints hold: a rollback stops at none, on no level."""
        return self.stack(parent.root_id).action != "ROLLBACK"

    def _deadline(self, parent: Stack, now: float, goal: ChildGoal | None = None) -> float:
        """Return the parent's deadline, or an earlier one where the child has a timeout of its own."""
        of_parent = parent.deadline_at or now + self._context.timeout(parent.timeout_mins)
        return of_parent if goal is None or goal.timeout is None else min(of_parent, now + goal.timeout)

    def _compile(self, parent: Stack, nest: ParentResource, goal: ChildGoal, identity: Identity) -> Compiled:
        sealer = self._context.sealer_of(parent)
        wanted = goal_of_child(
            goal,
            nest.resource_name,
            nest.facade,
            environment=self.content(parent.environment_id),
            files=typing.cast(Mapping[str, str], self.content(parent.files_id)),
            unseal=sealer.open,
        )
        try:
            return self._context.compiler.compile(wanted, identity, sealer, tree=False)
        except TemplateError as error:
            raise PermanentError(str(error), kind="StackValidationFailed") from error


@contextlib.contextmanager
def _refused() -> typing.Iterator[None]:
    """Turn the refusal of an action into an error of the step.

    :raises PermanentError: the stack is not in a state for the action.
    """
    try:
        yield
    except NotUpdatable as error:
        raise PermanentError(str(error), kind="NotSupported") from error
