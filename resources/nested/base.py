"""Base of the resource types whose things are stacks."""

import typing
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...template.model import ResourceDefinition
from ..context import ChildGoal, ChildState, Json, ResourceView, StepContext
from ..errors import ChildGone, NotSupported, PermanentError
from ..plugin import ResourceType
from ..signals import Adjustment, Scaling
from ..steps import Done, Park, Step

ABORTED = " aborted due to breakpoint on resource "
"""Part of the reason of a stack whose action a breakpoint has ended, before the resource's name."""
ADOPTED = "adopted"
"""In the data of a resource that is to be adopted: the document of the stack that it was."""
BACKSTOP = 300.0
"""Seconds after which a parent looks at its child even if nobody has woken it."""


class ChildFailed(PermanentError):
    """The child came to a failure.

    :ivar path: of the resource inside of the child that failed first: ``resources.NAME…``; "" if none did.
    :ivar stopped_at: the resource inside of the child, ``NAME/…``, at whose breakpoint its action ended; ""
        if that was not why.
    """

    def __init__(self, reason: str, *, kind: str, path: str, stopped_at: str = "") -> None:
        super().__init__(reason, kind=kind)
        self.path = path
        self.stopped_at = stopped_at


class NestedType(ResourceType):
    """Base of the types whose things are stacks."""

    always_updated = True
    #: Attributes are those of the child's resources: the child has an output for each that is asked for.
    has_member_attributes: typing.ClassVar[bool] = False

    #: Whether `static_goal` says all of what the child will be, where it says anything.
    previewable: typing.ClassVar[bool] = True

    def child_goal(self, target: ResourceView, work: StepContext) -> ChildGoal:
        """What the child shall be."""
        raise NotImplementedError

    def static_goal(self, known: Mapping[str, Json], definition: ResourceDefinition) -> ChildGoal | None:
        """What the child will be, as far as the properties are known at plan time; None: not enough of them
        are.

        :param known: as ResourceType.validate gets them.
        :param definition: holds the properties as they are, with residuals in them.
        """
        return None

    def member_attribute(self, attribute: str, path: Sequence[str | int]) -> Sequence[str | int] | None:
        """Return what of the members is asked for, of a type that `has_member_attributes`.

        It becomes one of `ResourceView.requested_attributes`, and an attribute by that name, its parts
        joined by ", ".  None: it is the resource's own.

        :raises LookupError: nothing can be told of that; the text says why.
        """
        return None

    def plan_scaling(self, target: ResourceView, wanted: Adjustment, now: float) -> Scaling:
        """What an adjustment by a signal comes to, for a group that takes them.

        :raises NoAction: nothing is to be done now; says why.
        :raises NotSupported: the type cannot be scaled.
        """
        raise NotSupported(f"Resource {target.name} of type {target.type} cannot be scaled")

    def handle_scale(self, target: ResourceView, scaling: Scaling, work: StepContext) -> Step:
        """Begin to bring the group to another size, beside whatever traversals its stack had."""
        raise NotSupported(f"Resource {target.name} of type {target.type} cannot be scaled")

    def check_scale_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """See what the child has come to."""
        return self._look(target, progress, work)

    def handle_create(self, target: ResourceView, work: StepContext) -> Step:
        """Begin the child."""
        child = target.physical_id or work.children.create(target.key, self.child_goal(target, work))
        return wait_for_child(child)

    def check_create_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """See what the child has come to."""
        return self._look(target, progress, work)

    def handle_update(self, target: ResourceView, changed: frozenset[str], work: StepContext) -> Step:
        """Let the child find out what has changed."""
        child = target.physical_id
        if child is None:
            raise PermanentError("the nested stack was never made")
        work.children.update(child, self.child_goal(target, work))
        return wait_for_child(child)

    def check_update_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """See what the child has come to."""
        return self._look(target, progress, work)

    def handle_delete(self, target: ResourceView, work: StepContext) -> Step:
        """Begin to delete the child."""
        child = target.physical_id
        if child is None or work.children.state(child) is None:
            return Done()
        work.children.delete(child)
        return wait_for_child(child)

    def check_delete_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """See whether it is gone."""
        state = work.children.state(progress["child"])
        return Done() if state is None else self._wait_or_fail(state, progress)

    def handle_suspend(self, target: ResourceView, work: StepContext) -> Step:
        """Suspend the child."""
        return self._act(target, "suspend", work)

    def check_suspend_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """See what the child has come to."""
        return self._look(target, progress, work)

    def handle_resume(self, target: ResourceView, work: StepContext) -> Step:
        """Resume the child."""
        return self._act(target, "resume", work)

    def check_resume_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """See what the child has come to."""
        return self._look(target, progress, work)

    def handle_check(self, target: ResourceView, work: StepContext) -> Step:
        """Check the child."""
        return self._act(target, "check", work)

    def check_check_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """See what the child has come to."""
        return self._look(target, progress, work)

    def handle_snapshot(self, target: ResourceView, work: StepContext) -> Step:
        """Begin a snapshot of the child."""
        child, _ = child_of(target, work)
        work.children.snapshot(child, target.key)
        return wait_for_child(child)

    def check_snapshot_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """See what the snapshot has come to."""
        child = progress["child"]
        taken, state = work.children.snapshot_state(child, target.key), work.children.state(child)
        if taken is None or state is None:
            raise PermanentError("the snapshot of the nested stack is gone")
        if taken.status == "COMPLETE":
            return Done()
        if taken.status == "IN_PROGRESS":
            return wait_for_child(child)
        raise failure_of(state) if state.status == "FAILED" else PermanentError(taken.reason)

    def handle_delete_snapshot(self, target: ResourceView, work: StepContext) -> Step:
        """Let the child delete its snapshot; nobody waits for that."""
        child = target.physical_id
        if child is not None and work.children.state(child) is not None:
            work.children.delete_snapshot(child, target.key)
        return Done()

    def handle_adopt(self, target: ResourceView, work: StepContext) -> Step:
        """Begin a child that takes over what the other one had."""
        child, data = target.physical_id, dict(target.data)
        document = data.pop(ADOPTED, None)
        if child is None and document is None:
            raise PermanentError("The document says nothing of the stack that it was.", kind="Exception")
        target = replace(target, data=data)
        if child is None:
            goal = self.adopted_goal(target, document, work)
            child = work.children.create(target.key, goal, document["resources"])
        return self.wait_for_adoption(target, child)

    def check_adopt_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """See what the child has come to."""
        return self.check_create_complete(target, progress, work)

    def adopted_goal(
        self, target: ResourceView, document: Mapping[str, Json], work: StepContext
    ) -> ChildGoal:
        """What a child shall be that takes over what another one had.

        :param document: of that one: its ``template`` and ``resources``, as it was exported.
        """
        return self.child_goal(target, work)

    def wait_for_adoption(self, target: ResourceView, child: str) -> Step:
        """Until the child has taken over all."""
        return replace(wait_for_child(child), data=target.data)

    def find_created(self, key: str, target: ResourceView, work: StepContext) -> str | None:
        """The child of a lost step."""
        return work.children.find(key)

    def needs_replace_failed(self, target: ResourceView, work: StepContext) -> bool:
        """A child that failed is repaired by an update of its own, as long as it is there."""
        return target.physical_id is None or work.children.state(target.physical_id) is None

    def attribute_values(self, target: ResourceView) -> Mapping[str, Json]:
        """Its outputs, each by its name and all as ``outputs``."""
        outputs = target.data.get("outputs") or {}
        return {**outputs, "outputs": outputs}

    def child_data(
        self, target: ResourceView, child: str, state: ChildState, work: StepContext
    ) -> Mapping[str, Json]:
        """What the resource remembers of a child whose action has ended well."""
        return {"outputs": dict(work.children.outputs(child)), "name": state.name}

    def _act(self, target: ResourceView, action: str, work: StepContext) -> Step:
        child, state = child_of(target, work)
        if action != "check" and (state.action, state.status) == (action.upper(), "COMPLETE"):
            return Done()
        work.children.act(child, action)
        return wait_for_child(child)

    def _look(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        state = state_of(progress["child"], work)
        if state.is_over and state.status == "COMPLETE":
            return Done(data=self.child_data(target, progress["child"], state, work))
        return self._wait_or_fail(state, progress)

    def _wait_or_fail(self, state: ChildState, progress: Json) -> Step:
        if not state.is_over:
            return wait_for_child(progress["child"])
        raise failure_of(state)


def child_of(target: ResourceView, work: StepContext) -> tuple[str, ChildState]:
    """The stack that the resource stands for.

    :raises ChildGone: it is not there.
    """
    if target.physical_id is None:
        raise ChildGone
    return target.physical_id, state_of(target.physical_id, work)


def state_of(child: str, work: StepContext) -> ChildState:
    """:raises ChildGone: the child is not there."""
    state = work.children.state(child)
    if state is None:
        raise ChildGone
    return state


def wait_for_child(child: str) -> Park:
    """Until somebody ends the child, or a long time has passed."""
    return Park({"child": child}, f"stack:{child}", after=BACKSTOP, physical_id=child)


def failure_of(state: ChildState) -> ChildFailed:
    """What a failed child tells: the first cause, with the path to it.

    A stack's reason reads ``Resource ACTION failed: KIND: resources.NAME…: MESSAGE``.
    """
    _, found, rest = state.reason.partition(" failed: ")
    kind, _, rest = rest.partition(": ")
    path, separator, message = rest.partition(": ")
    if found and separator and state.reason.startswith("Resource ") and path.startswith("resources."):
        return ChildFailed(message, kind=kind, path=path)
    _, _, stopped_at = state.reason.partition(ABORTED)
    return ChildFailed(state.reason, kind="ResourceFailure", path="", stopped_at=stopped_at)
