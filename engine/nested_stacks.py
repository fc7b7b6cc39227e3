"""Nested stacks: creating and updating them for the steps of their parents' resources."""

import typing
from collections.abc import Callable, Mapping

from ..db.errors import NameTaken
from ..db.ids import StackId
from ..db.rows import Stack
from ..planning.requests import AdoptedResource
from ..resources.context import ChildGoal, ChildInputs
from ..resources.errors import PermanentError
from ..template.compile import Identity
from ..template.errors import TemplateError
from ..template.language import is_template_name
from .change import Change, commit_update
from .children import goal_of_child, inputs_of_child, opened_environment
from .context import Compiled
from .nested_actions import NestedStackActions, refusal_is_permanent
from .parent_resource import ParentResource, child_id
from .stacks import NewStack, create_stack

Json = typing.Any


class NestedStacks(NestedStackActions):
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
        identity = Identity(nest.child_name, own, parent.project_id)
        compiled = self._compile(parent, nest, goal, identity, self._files(parent))
        entries = (adopted or {}).items()
        new = NewStack(
            id=own,
            name=nest.child_name,
            project_id=parent.project_id,
            username=parent.owner,
            deadline=lambda now: self.deadline(parent, now, goal),
            abort_on_breakpoint=parent.abort_on_breakpoint,
            breakpoints_hold=self.breakpoints_hold(parent),
            adopted=None if adopted is None else {n: AdoptedResource.of(entry or {}) for n, entry in entries},
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
        """Return what a child of a resource would get; see `inputs_of_child`."""
        stack = self.stack(stack_id)
        stored = self.content(stack.environment_id)
        return inputs_of_child(self._context, stored, self._files(stack), resource, unseal)

    # -- inside ------------------------------------------------------------------------------------

    def _files(self, stack: Stack) -> Mapping[str, str]:
        return typing.cast(Mapping[str, str], self.content(stack.files_id))

    def _files_of_update(self, parent: Stack, child: Stack, goal: ChildGoal) -> Mapping[str, str]:
        """Return the files for a child's new goal: those of the stack around it.

        In a rolling update members whose turn has not come may be stacks of a template that only the child
        still has.  So it keeps its files, with what that template needs of them, until none of them is left.
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
