"""Nested stacks: creating and updating them for the steps of their parents' resources."""

import typing
from collections.abc import Mapping

from ..db.errors import NameTaken
from ..db.ids import StackId
from ..db.rows import Stack
from ..planning.requests import AdoptedResource
from ..resources.context import ChildGoal
from ..resources.errors import PermanentError
from ..template.compile import Identity
from ..template.errors import TemplateError
from .change import Change, commit_update
from .children import goal_of_child
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
        compiled = self._compile(parent, nest, goal, Identity(nest.child_name, own, parent.project_id))
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
            change = Change(
                stack=child,
                compiled=self._compile(parent, nest, goal, Identity(child.name, child.id, child.project_id)),
                deadline=lambda now: self.deadline(parent, now, goal),
                columns={"abort_on_breakpoint": parent.abort_on_breakpoint},
                breakpoints_hold=self.breakpoints_hold(parent),
            )
            with refusal_is_permanent():
                done = commit_update(self._context, change, nest.guard)

    # -- inside ------------------------------------------------------------------------------------

    def _compile(self, parent: Stack, nest: ParentResource, goal: ChildGoal, identity: Identity) -> Compiled:
        sealer = self._context.sealer_of(parent)
        child_goal = goal_of_child(
            goal,
            (nest.resource_name, nest.resource_type),
            nest.facade,
            environment=self.content(parent.environment_id),
            files=typing.cast(Mapping[str, str], self.content(parent.files_id)),
            unseal=sealer.open,
        )
        try:
            return self._context.compiler.compile(child_goal, identity, sealer, tree=False)
        except TemplateError as error:
            raise PermanentError(str(error), kind="StackValidationFailed") from error
