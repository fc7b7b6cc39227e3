"""Nested stacks: the operations that steps of the parents' resources request."""

import contextlib
import typing
from collections.abc import Callable, Mapping

from sqlalchemy.engine import Connection

from ..db import content, resources, snapshots, stacks
from ..db.errors import NameTaken, NotFound
from ..db.ids import ContentId, StackId
from ..db.rows import Resource, Snapshot, Stack
from ..db.states import TaskKind
from ..planning.plan import TraversalScope
from ..planning.requests import AdoptedResource
from ..resources.contract.children import ChildGoal, ChildInputs
from ..resources.errors import ChildGone, PermanentError
from ..resources.nested.parameterize import restore_values
from ..sealing.stored import StoredLookup
from ..shapes import Json, JsonMap
from ..template.compile import Identity
from ..template.errors import TemplateError
from ..template.language import is_template_name
from ..template.residual import evaluate
from .actions import start_action, start_delete
from .change import Change, commit_update
from .children import goal_of_child, inputs_of_child, opened_environment
from .context import Compiled, EngineContext, Started, announce_started
from .errors import ActionInProgress, NotUpdatable
from .parent_resource import ParentResource, child_id, child_snapshot_id
from .snapshots import SnapshotRequest, start_snapshot, start_snapshot_deletion
from .stacks import NewStack, create_stack


def refuse_address(url: str) -> str:
    """Refuse to fetch a template.

    :raises PermanentError: always.
    """
    raise PermanentError(f"Could not fetch remote template '{url:.300}': no host is allowed")


class _Family(typing.NamedTuple):
    """The stacks around a resource.

    :ivar child: the nested stack that the resource has; None: it has none.
    """

    parent: Stack
    root: Stack
    child: Stack | None


class NestedStacks:
    """Reads nested stacks, and carries out the requests of steps.  Thread-safe."""

    def __init__(self, context: EngineContext, templates: Callable[[str], str] = refuse_address) -> None:
        """Keep the collaborators.

        :param templates: returns the template at an address, or raises PermanentError.
        """
        self._context = context
        self._templates = templates
        self._contents = content.ContentCache()

    # -- reads -------------------------------------------------------------------------------------

    def find(self, key: StackId, root_id: StackId) -> Stack | None:
        """Return the child of a resource of a tree.

        None: it is deleted, or never existed, or belongs to another tree.  (An orphaned child is in another
        tree than the stack that it was created for.)
        """
        child = self._context.database.read(lambda conn: stacks.find_undeleted(conn, key))
        return child if child is not None and child.root_id == root_id else None

    def rows(self, key: StackId) -> list[Resource]:
        """Return the child's resources."""
        return self._context.database.read(lambda conn: resources.of_stack(conn, key))

    def bodies(self, child: Stack, unseal: Callable[[str], Json]) -> Mapping[str, JsonMap]:
        """Return the resources' bodies in the generated template of a child, in clear.

        :param unseal: opens the token of a secret.
        """
        parameters = evaluate(child.parameters, StoredLookup(unseal))
        return restore_values(self.content(child.template_id), parameters)

    def file(self, stack_id: StackId, name: str) -> str:
        """Return the text of a file of the stack.

        :raises PermanentError: the stack has no such file.
        """
        files: Mapping[str, str] = self.content(self.stack(stack_id).files_id)
        if (operator := self._context.registry.operator) is not None:
            files = operator.with_templates(files)
        if name not in files:
            raise PermanentError(
                f"the file {name} is not among those of the stack", kind="StackValidationFailed"
            )
        return str(files[name])

    def template(self, url: str) -> str:
        """Return the text of a template at an address.

        :raises PermanentError: the template cannot be fetched.
        """
        return self._templates(url)

    def snapshot_of(self, nest: ParentResource, key: StackId) -> Snapshot | None:
        """Return the child's snapshot that a step with the parent resource's key has begun."""
        self.parent(nest, key)
        snapshot_id = child_snapshot_id(nest.key)
        try:
            return self._context.database.read(lambda conn: snapshots.get(conn, key, snapshot_id))
        except NotFound:
            return None

    def parent(self, nest: ParentResource, key: StackId) -> Stack:
        """Return the stack around a child.

        :raises ChildGone: the child does not belong to its tree.
        """
        parent = self.stack(nest.stack_id)
        if not _same_tree(self.stack(key), parent):
            raise ChildGone
        return parent

    def stack(self, key: StackId) -> Stack:
        """Return a stack.

        :raises NotFound: there is none.
        """
        return self._context.database.read(lambda conn: stacks.get(conn, key))

    def content(self, key: ContentId) -> JsonMap:
        """Return a stored template, environment or set of files."""
        body: JsonMap = self._contents.get(self._context.database.read, key)
        return body

    # -- a goal ------------------------------------------------------------------------------------

    def create(self, nest: ParentResource, goal: ChildGoal, adopted: JsonMap | None = None) -> StackId:
        """Begin to create the child, or find it if an earlier attempt did.

        :param adopted: existing resources to adopt, by name; None: all are created.
        :raises PermanentError: the goal is wrong, or too deep.
        """
        stack_id = child_id(nest.key)
        family = self._family(nest, stack_id)
        if family.child is not None:
            return stack_id
        parent = family.parent
        deepest = self._context.settings.limits.depth
        if deepest and parent.depth + 1 > deepest:
            raise PermanentError(f"stacks may be nested {deepest} levels deep", kind="StackValidationFailed")
        identity = Identity(nest.child_name, stack_id, parent.project_id)
        compiled = self._compile(parent, nest, goal, identity, self._files(parent))
        entries = (adopted or {}).items()
        new = NewStack(
            id=stack_id,
            name=nest.child_name,
            project_id=parent.project_id,
            username=parent.owner,
            deadline=lambda now: self.deadline(parent, now, goal),
            abort_on_breakpoint=parent.abort_on_breakpoint,
            breakpoints_hold=family.root.action != "ROLLBACK",
            adopted=None if adopted is None else {n: AdoptedResource.of(entry or {}) for n, entry in entries},
            parent=parent,
            parent_resource_id=nest.resource_id,
        )
        try:
            create_stack(self._context, new, compiled, nest.guard)
        except NameTaken:  # By itself: an attempt beside this one was faster.
            if self.find(stack_id, parent.root_id) is None:
                raise
        return stack_id

    def update(self, nest: ParentResource, key: StackId, goal: ChildGoal) -> None:
        """Bring the child to another goal, also during an action.

        :raises PermanentError: the goal is wrong, or the child is being deleted, or suspended.
        """
        parent = self.parent(nest, key)
        done = False
        while not done:
            child = self.stack(key)
            identity = Identity(child.name, child.id, child.project_id)
            change = Change(
                stack=child,
                compiled=self._compile(
                    parent, nest, goal, identity, self._files_of_update(parent, child, goal)
                ),
                deadline=lambda now: self.deadline(parent, now, goal),
                columns={"abort_on_breakpoint": parent.abort_on_breakpoint, "has_sinks": parent.has_sinks},
                breakpoints_hold=self.breakpoints_hold(parent),
            )
            with refusal_is_permanent():
                done = commit_update(self._context, change, nest.guard)

    def inputs(
        self, stack_id: StackId, resource: tuple[str, str], unseal: Callable[[str], Json]
    ) -> ChildInputs:
        """Return the inputs of a possible child of a resource; see `inputs_of_child`."""
        stack = self.stack(stack_id)
        stored = self.content(stack.environment_id)
        return inputs_of_child(self._context, stored, self._files(stack), resource, unseal)

    # -- other actions -----------------------------------------------------------------------------

    def delete(self, nest: ParentResource, key: StackId) -> None:
        """Delete the child, also during an action."""
        parent = self.parent(nest, key)
        hold = self.breakpoints_hold(parent)

        def start(conn: Connection, scope: TraversalScope) -> Started | None:
            timeout = max(0.0, self.deadline(parent, scope.now) - scope.now)
            return start_delete(conn, scope, timeout=timeout, breakpoints_hold=hold)

        self._start(nest, key, start)

    def act(self, nest: ParentResource, key: StackId, kind: TaskKind) -> None:
        """Check, suspend or resume the child.

        :raises PermanentError: the child's state does not allow the action.
        """
        parent = self.parent(nest, key)

        def start(conn: Connection, scope: TraversalScope) -> Started | None:
            return start_action(conn, kind, scope, deadline_at=self.deadline(parent, scope.now))

        self._start(nest, key, start)

    def snapshot(self, nest: ParentResource, key: StackId) -> None:
        """Begin a snapshot of the child, or find the one that an earlier attempt has begun.

        :raises PermanentError: the child's state does not allow a snapshot.
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
        """Delete that snapshot, also during an action of the child.

        :raises PermanentError: the snapshot is being taken.
        """
        snapshot = self.snapshot_of(nest, key)
        if snapshot is None:
            return
        snapshot_id = snapshot.id
        timeout = self._context.settings.stack_timeout
        with contextlib.suppress(NotFound):
            self._start(
                nest,
                key,
                lambda conn, scope: start_snapshot_deletion(conn, snapshot_id, scope, timeout=timeout),
            )

    # -- inside ------------------------------------------------------------------------------------

    def _family(self, nest: ParentResource, key: StackId) -> _Family:
        """Read a possible child of a resource, the stack around it, and the root.

        :raises NotFound: there is no stack around it.
        """

        def read(conn: Connection) -> _Family:
            rows = stacks.get_each(conn, [key, nest.stack_id])
            parent = rows.get(nest.stack_id) or stacks.get(conn, nest.stack_id)
            root = parent if parent.root_id == parent.id else stacks.get(conn, parent.root_id)
            child = rows.get(key)
            is_child = child is not None and child.deleted_at is None and _same_tree(child, parent)
            return _Family(parent, root, child if is_child else None)

        return self._context.database.read(read)

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

    def _files(self, stack: Stack) -> Mapping[str, str]:
        return typing.cast(Mapping[str, str], self.content(stack.files_id))

    def _files_of_update(self, parent: Stack, child: Stack, goal: ChildGoal) -> Mapping[str, str]:
        """Return the files for a child's new goal: those of the stack around it.

        In a rolling update members whose turn has not come may be stacks of a template that only the child
        still has.  So it keeps its files, those of that template among them, until no such member is left.
        """
        files = self._files(parent)
        if not goal.generated or not isinstance(goal.template, Mapping):
            return files
        types = {body["type"] for body in goal.template.get("resources", {}).values()}
        old = {name for name in types - files.keys() if is_template_name(name)}
        return {**self._files(child), **files} if old else files

    def _compile(
        self,
        parent: Stack,
        nest: ParentResource,
        goal: ChildGoal,
        identity: Identity,
        files: Mapping[str, str],
    ) -> Compiled:
        sealer = self._context.sealer_of(parent)
        child_goal = goal_of_child(
            goal,
            (nest.resource_name, nest.resource_type),
            nest.facade,
            environment=opened_environment(
                self._context, self.content(parent.environment_id), files, sealer.open
            ),
            files=files,
        )
        try:
            return self._context.compiler.compile(child_goal, identity, sealer, tree=False)
        except TemplateError as error:
            raise PermanentError(str(error), kind="StackValidationFailed") from error


def _same_tree(first: Stack, second: Stack) -> bool:
    return first.root_id == second.root_id


@contextlib.contextmanager
def refusal_is_permanent() -> typing.Iterator[None]:
    """Turn the refusal of an action into an error of the step.

    :raises PermanentError: the stack is not in a state for the action.
    """
    try:
        yield
    except NotUpdatable as error:
        raise PermanentError(str(error), kind="NotSupported") from error
