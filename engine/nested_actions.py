"""Nested stacks: deleting them, and actions on all of their resources, for the steps of their parents."""

import contextlib
import typing
from collections.abc import Callable

from sqlalchemy.engine import Connection

from ..db.errors import NotFound
from ..db.ids import StackId
from ..db.rows import Stack
from ..db.states import TaskKind
from ..planning.plan import TraversalScope
from ..resources.context import ChildGoal
from ..resources.errors import PermanentError
from .actions import start_action
from .context import Started, announce_started
from .delete import start_delete
from .errors import ActionInProgress, NotUpdatable
from .nested_reads import NestedStackReader
from .parent_resource import ParentResource, child_snapshot_id
from .snapshots import SnapshotRequest, start_snapshot, start_snapshot_deletion


class NestedStackActions(NestedStackReader):
    """Carries out actions that leave a nested stack's goal alone.  Thread-safe."""

    def delete(self, nest: ParentResource, key: StackId) -> None:
        """Delete the child, whatever it does now."""
        parent = self.parent(nest, key)
        hold = self.breakpoints_hold(parent)

        def start(conn: Connection, scope: TraversalScope) -> Started | None:
            timeout = max(0.0, self.deadline(parent, scope.now) - scope.now)
            return start_delete(conn, scope, timeout=timeout, breakpoints_hold=hold)

        self._start(nest, key, start)

    def act(self, nest: ParentResource, key: StackId, kind: TaskKind) -> None:
        """Check, suspend or resume the child.

        :raises PermanentError: it is not in a state for it.
        """
        parent = self.parent(nest, key)

        def start(conn: Connection, scope: TraversalScope) -> Started | None:
            return start_action(conn, kind, scope, deadline_at=self.deadline(parent, scope.now))

        self._start(nest, key, start)

    def snapshot(self, nest: ParentResource, key: StackId) -> None:
        """Begin a snapshot of the child, or find the one that an earlier attempt has begun.

        :raises PermanentError: the child is not in a state for it.
        """
        parent = self.parent(nest, key)

        def start(conn: Connection, scope: TraversalScope) -> Started:
            request = SnapshotRequest(None, self.deadline(parent, scope.now), id=child_snapshot_id(nest.key))
            return start_snapshot(conn, request, scope)[0]

        if self.snapshot_of(nest, key) is not None:
            return
        try:
            self._start(nest, key, start)
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
                lambda conn, scope: start_snapshot_deletion(conn, snapshot_id, scope, timeout=timeout),
            )

    # -- inside ------------------------------------------------------------------------------------

    def _start(
        self,
        nest: ParentResource,
        key: StackId,
        start: Callable[[Connection, TraversalScope], Started | None],
    ) -> None:
        def guarded(conn: Connection, scope: TraversalScope) -> Started | None:
            nest.guard(conn)
            return start(conn, scope)

        with refusal_is_permanent():
            started = self._context.start_traversal(key, guarded)
        if started is not None:
            announce_started(self._context.hints, started)

    def breakpoints_hold(self, parent: Stack) -> bool:
        """Return whether breakpoints hold: a rollback stops at none, on no level."""
        return self.stack(parent.root_id).action != "ROLLBACK"

    def deadline(self, parent: Stack, now: float, goal: ChildGoal | None = None) -> float:
        """Return the parent's deadline, or an earlier one where the child has a timeout of its own."""
        of_parent = parent.deadline_at or now + self._context.timeout(parent.timeout_mins)
        return of_parent if goal is None or goal.timeout is None else min(of_parent, now + goal.timeout)


@contextlib.contextmanager
def refusal_is_permanent() -> typing.Iterator[None]:
    """Turn the refusal of an action into an error of the step.

    :raises PermanentError: the stack is not in a state for the action.
    """
    try:
        yield
    except NotUpdatable as error:
        raise PermanentError(str(error), kind="NotSupported") from error
