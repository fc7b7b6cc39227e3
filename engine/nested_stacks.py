"""Nested stacks: the operations that steps of the parents' resources request."""

import contextlib
import typing
from collections.abc import Callable, Mapping

from sqlalchemy.engine import Connection

from ..db import content, resources, snapshots, stacks
from ..db.errors import NameTaken, NotFound
from ..db.ids import ContentId, ResourceId, StackId
from ..db.rows import Resource, Snapshot, Stack
from ..db.states import TaskKind
from ..resources.contract.children import ChildGoal, ChildInputs
from ..resources.contract.errors import ChildGone, PermanentError
from ..shapes import Json, JsonMap
from ..template.compile import Identity
from ..template.contents import same_content
from ..template.environment import map_type, nested_environment
from ..template.errors import ImmutableParameter, LimitExceeded, TemplateError
from ..template.language import is_template_name
from .actions import start_action, start_delete
from .change import Change, commit_update
from .children import definitions_inside, goal_of_child, inputs_of_child, opened_environment
from .context import Compiled, EngineContext, Started, announce_started
from .errors import ActionInProgress, NotUpdatable
from .goals import check_immutable_parameters
from .parent_resource import ParentResource, child_id, child_snapshot_id
from .planning.plan import TraversalScope
from .planning.requests import AdoptedResource, CreateRequest, Goal, Nesting
from .snapshots import SnapshotRequest, start_snapshot, start_snapshot_deletion
from .stacks import store_stack


def refuse_address(url: str) -> str:
    """Refuse to fetch a template.

    :raises PermanentError: always.
    """
    raise PermanentError(f"Could not fetch remote template '{url:.300}': no host is allowed")


class _Family(typing.NamedTuple):
    """The stacks around a resource.

    :ivar any_child: the nested stack that the resource has; None: it has none.
    """

    parent: Stack
    root: Stack
    any_child: Stack | None

    @property
    def is_rolled_back(self) -> bool:
        """Return whether the tree returns to what it was: no limit keeps it from that."""
        return self.root.action == "ROLLBACK"

    @property
    def breakpoints_hold(self) -> bool:
        """Return whether breakpoints hold: a rollback stops at none, on no level."""
        return not self.is_rolled_back

    @property
    def child(self) -> Stack:
        """Return the nested stack.

        :raises ChildGone: there is none.
        """
        if self.any_child is None:
            raise ChildGone
        return self.any_child


class NestedStacks:
    """Reads nested stacks, and carries out the requests of steps.  Thread-safe.

    All that change something check in their transaction, by `ParentResource.guard`, whether the step may act.
    """

    def __init__(self, context: EngineContext, templates: Callable[[str], str] = refuse_address) -> None:
        """Keep the collaborators.

        :param templates: returns the template at an address, or raises PermanentError.
        """
        self._context = context
        self._templates = templates
        self._contents = content.ContentCache()

    # -- reads -------------------------------------------------------------------------------------

    def find(self, stack_id: StackId, resource_id: ResourceId) -> Stack | None:
        """Return the child of a resource; None: it has none.

        :param stack_id: the stack of the resource.
        """
        return self._context.database.read(lambda conn: stacks.of_resource(conn, stack_id, resource_id))

    def rows(self, key: StackId) -> list[Resource]:
        """Return the child's resources."""
        return self._context.database.read(lambda conn: resources.of_stack(conn, key))

    def bodies(self, child: Stack, unseal: Callable[[str], Json]) -> Mapping[str, JsonMap]:
        """Return the resources' bodies in the generated template of a child, in clear.

        :param unseal: opens the token of a secret.
        """
        return definitions_inside(child, self.content(child.template_id), unseal)

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

    def snapshot_of(self, nest: ParentResource) -> Snapshot | None:
        """Return the child's snapshot that a step with the parent resource's key has begun."""
        snapshot_id = child_snapshot_id(nest.key)
        return self._context.database.read(lambda conn: snapshots.of_nested(conn, nest.stack_id, snapshot_id))

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
        """Begin to create the child, or find the one that an attempt with any key has created.

        :param adopted: existing resources to adopt, by name; None: all are created.
        :raises ChildGone: a child of the same key was deleted meanwhile.
        :raises PermanentError: the goal is wrong, or too deep.
        """
        family = self._family(nest)
        if family.any_child is not None:
            return family.any_child.id
        stack_id = child_id(nest.key)
        parent = family.parent
        deepest = self._context.settings.limits.deepest
        if parent.depth + 1 > deepest:
            raise PermanentError(
                f"stacks may be nested {deepest} levels deep ([stacks] max_depth)",
                kind="StackValidationFailed",
            )
        identity = Identity(nest.child_name, stack_id, parent.project_id)
        child_goal = self._goal(parent, nest, goal, self._files(parent))
        entries = (adopted or {}).items()
        request = CreateRequest(
            project_id=parent.project_id,
            name=nest.child_name,
            goal=child_goal,
            owner=parent.owner,
            abort_on_breakpoint=parent.abort_on_breakpoint,
            adopted=None if adopted is None else {n: AdoptedResource.of(entry or {}) for n, entry in entries},
            is_limited=not family.is_rolled_back,
            nesting=Nesting(
                parent,
                nest.resource_id,
                lambda now: self.deadline(parent, now, goal),
                breakpoints_hold=family.breakpoints_hold,
            ),
        )
        compiled = self._compile(parent, child_goal, identity)
        try:
            with refusal_is_permanent():
                store_stack(self._context, request, compiled, nest.guard)
        except NameTaken as error:  # By itself: an attempt beside this one was faster.
            if self.find(nest.stack_id, nest.resource_id) is None:
                raise ChildGone from error
        return stack_id

    def update(self, nest: ParentResource, goal: ChildGoal) -> StackId:
        """Bring the child to another goal, also during an action.

        :raises ChildGone: there is none.
        :raises PermanentError: the goal is wrong, or the child is being deleted, or suspended.
        """
        done = False
        while not done:
            change = self._change(nest, self._family(nest), goal)
            with refusal_is_permanent():
                done = commit_update(self._context, change, nest.guard)
        return change.stack.id

    def _change(self, nest: ParentResource, family: _Family, goal: ChildGoal) -> Change:
        parent = family.parent
        child = family.child
        identity = Identity(child.name, child.id, child.project_id)
        files = self._files_of_update(parent, child, goal)
        compiled = self._compile(parent, self._goal(parent, nest, goal, files), identity)
        if not goal.generated:
            try:
                check_immutable_parameters(self._context, child, compiled)
            except ImmutableParameter as error:
                raise PermanentError(str(error), kind=error.code) from error
        return Change(
            stack=child,
            compiled=compiled,
            deadline=lambda now: self.deadline(parent, now, goal),
            columns={"abort_on_breakpoint": parent.abort_on_breakpoint, "has_sinks": parent.has_sinks},
            breakpoints_hold=family.breakpoints_hold,
            is_limited=not family.is_rolled_back,
        )

    def inputs(
        self, stack_id: StackId, resource: tuple[str, str], unseal: Callable[[str], Json]
    ) -> ChildInputs:
        """Return the inputs of a possible child of a resource; see `inputs_of_child`."""
        stack = self.stack(stack_id)
        stored = self.content(stack.environment_id)
        return inputs_of_child(self._context, stored, self._files(stack), resource, unseal)

    def has_template(
        self,
        child: Stack,
        member: Resource,
        resource: tuple[str, str],
        type_name: str,
        unseal: Callable[[str], Json],
    ) -> bool:
        """Return whether a type's name leads to the template that a member of a group has.

        :param child: the group's stack, in which the member's template is still known by its old name.
        :param resource: the group's name, and its type as declared.
        :param type_name: the type in the group's new definition, by the environment of the stack around it.
        """
        if child.parent_id is None or not member.template:
            return False
        parent = self.stack(child.parent_id)
        files, old_files = self._files(parent), self._files(child)
        stored = self.content(parent.environment_id)
        parent_environment = opened_environment(self._context, stored, files, unseal)
        below = nested_environment(parent_environment, *resource)
        new = map_type(below, [member.name], type_name).name
        if (operator := self._context.registry.operator) is not None:
            files, old_files = operator.with_templates(files), operator.with_templates(old_files)
        return is_template_name(new) and same_content(member.template, old_files, new, files)

    # -- other actions -----------------------------------------------------------------------------

    def delete(self, nest: ParentResource) -> None:
        """Delete the child, also during an action; nothing happens where there is none."""
        family = self._family(nest)
        if family.any_child is None:
            return

        def start(conn: Connection, scope: TraversalScope) -> Started | None:
            timeout = max(0.0, self.deadline(family.parent, scope.now) - scope.now)
            return start_delete(conn, scope, timeout=timeout, breakpoints_hold=family.breakpoints_hold)

        self._start(nest, family.child.id, start)

    def act(self, nest: ParentResource, kind: TaskKind) -> StackId:
        """Check, suspend or resume the child.

        :raises ChildGone: there is none.
        :raises PermanentError: the child's state does not allow the action.
        """
        family = self._family(nest)

        def start(conn: Connection, scope: TraversalScope) -> Started | None:
            return start_action(conn, kind, scope, deadline_at=self.deadline(family.parent, scope.now))

        self._start(nest, family.child.id, start)
        return family.child.id

    def snapshot(self, nest: ParentResource) -> StackId:
        """Begin a snapshot of the child, or find the one that an earlier attempt has begun.

        :raises ChildGone: there is none.
        :raises PermanentError: the child's state does not allow a snapshot.
        """
        family = self._family(nest)

        def start(conn: Connection, scope: TraversalScope) -> Started:
            deadline_at = self.deadline(family.parent, scope.now)
            request = SnapshotRequest(None, deadline_at, id=child_snapshot_id(nest.key))
            return start_snapshot(conn, request, scope)[0]

        child = family.child
        if self.snapshot_of(nest) is not None:
            return child.id
        try:
            self._start(nest, child.id, start)
        except ActionInProgress as error:
            raise PermanentError(str(error)) from error
        return child.id

    def delete_snapshot(self, nest: ParentResource) -> None:
        """Delete that snapshot, also during an action of the child.

        :raises PermanentError: the snapshot is being taken.
        """
        snapshot = self.snapshot_of(nest)
        if snapshot is None:
            return
        snapshot_id = snapshot.id
        timeout = self._context.settings.stack_timeout
        with contextlib.suppress(NotFound):
            self._start(
                nest,
                snapshot.stack_id,
                lambda conn, scope: start_snapshot_deletion(conn, snapshot_id, scope, timeout=timeout),
            )

    # -- inside ------------------------------------------------------------------------------------

    def _family(self, nest: ParentResource) -> _Family:
        """Read the child of a resource, the stack around it, and the root.

        :raises NotFound: there is no stack around it.
        """

        def read(conn: Connection) -> _Family:
            parent = stacks.get(conn, nest.stack_id)
            root = parent if parent.root_id == parent.id else stacks.get(conn, parent.root_id)
            return _Family(parent, root, stacks.of_resource(conn, parent.id, nest.resource_id))

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

    def _goal(self, parent: Stack, nest: ParentResource, goal: ChildGoal, files: Mapping[str, str]) -> Goal:
        sealer = self._context.sealer_of(parent)
        stored = self.content(parent.environment_id)
        environment = opened_environment(self._context, stored, files, sealer.open)
        resource = nest.resource_name, nest.resource_type
        return goal_of_child(goal, resource, nest.facade, environment=environment, files=files)

    def _compile(self, parent: Stack, goal: Goal, identity: Identity) -> Compiled:
        try:
            return self._context.compiler.compile(goal, identity, self._context.sealer_of(parent), tree=False)
        except TemplateError as error:
            raise PermanentError(str(error), kind="StackValidationFailed") from error


@contextlib.contextmanager
def refusal_is_permanent() -> typing.Iterator[None]:
    """Turn the refusal of an action into an error of the step.

    :raises PermanentError: the stack is not in a state for the action, or its tree would be too large.
    """
    try:
        yield
    except NotUpdatable as error:
        raise PermanentError(str(error), kind="NotSupported") from error
    except LimitExceeded as error:
        raise PermanentError(error.message, kind=error.code) from error
