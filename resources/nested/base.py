"""Base of the resource types whose resources are nested stacks."""

import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ...shapes import Json, JsonMap
from ...template.language import ResourceDefinition
from ..contract import (
    Adjustment,
    ChildFailure,
    ChildGoal,
    ChildGone,
    ChildState,
    Done,
    GoalContext,
    NotSupported,
    Park,
    PermanentError,
    PolledAlike,
    ReplaceNeeded,
    ResourceView,
    Scaling,
    Step,
    StepContext,
)

ADOPTED = "adopted"
"""Key in the data of a resource that is adopted: the document of the nested stack."""
OUTPUT_ERRORS = "output_errors"
"""Key in the data: the errors of those outputs of the child that can never be computed, by name."""
INNER = "inner"
"""Key in the data: the attributes of resources of the child that others refer to."""
RESOURCE = "resource."
"""Beginning of an attribute that reads a resource of a nested stack: ``resource.NAME``."""
BACKSTOP = 300.0
"""Seconds after which a parent polls its child without being woken."""


class ChildFailed(PermanentError):
    """The action of the nested stack failed.

    :ivar path: the resource in the child that failed first: ``resources.NAME…``; "" if none did.
    :ivar stopped_at: the resource in the child, ``NAME/…``, at whose breakpoint the action ended; "" if it
        failed for another reason.
    """

    def __init__(self, failure: ChildFailure) -> None:
        super().__init__(failure.message, kind=failure.kind)
        self.path = failure.path
        self.stopped_at = failure.breakpoint


class NestedType(PolledAlike):
    """Base of the types whose resources are nested stacks."""

    always_updated = True
    stored_here = True
    #: Attributes are those of the child's resources: the child has an output for each requested one.
    has_member_attributes: typing.ClassVar[bool] = False
    #: Its attribute ``resource.NAME`` and the path behind it read a resource of the child, as in Heat.
    shows_resources: typing.ClassVar[bool] = False

    #: Keys of the stored data that `with_past` reads.
    remembered: typing.ClassVar[Sequence[str]] = ()

    def child_goal(self, target: ResourceView, context: GoalContext) -> ChildGoal:
        """Return the goal of the child."""
        raise NotImplementedError

    def static_goal(self, values: JsonMap, definition: ResourceDefinition) -> ChildGoal | None:
        """Return the goal as far as it is known at plan time, None if too few properties are known.

        :param values: properties as ResourceType.validate gets them.
        :param definition: has the properties with residuals.
        """
        return None

    def with_past(self, values: JsonMap, data: Callable[[], JsonMap]) -> JsonMap:
        """Return the properties as they count for a resource that exists; for `static_goal`.

        :param values: as of `static_goal`.
        :param data: reads what the resource has stored of `remembered`; {} where it does not exist.
        """
        return values

    def expanded(self, goal: ChildGoal, values: JsonMap, definition: ResourceDefinition) -> ChildGoal:
        """Return a group's static goal with all members in place of one for all; for previews.

        :param values, definition: as of `static_goal`.
        """
        return goal

    def member_attribute(self, attribute: str, path: Sequence[str | int]) -> Sequence[str | int] | None:
        """Return the attribute of the members that a group's attribute reads.

        It is called on a type that `has_member_attributes`.

        It becomes one of `ResourceView.requested_attributes`, and an attribute by that name, its parts
        joined by ", ".  None: it is the resource's own.

        :raises LookupError: there is no such attribute; the text says why.
        """
        return [attribute, *path] if attribute.startswith(RESOURCE) else None

    def plan_scaling(self, target: ResourceView, adjustment: Adjustment, now: float) -> Scaling:
        """Return the new size of a group that a signal adjusts.

        :raises NoAction: nothing is to do now; the text says why.
        :raises NotSupported: the type cannot be scaled.
        """
        raise NotSupported(f"Resource {target.name} of type {target.type_name} cannot be scaled")

    def handle_scale(self, target: ResourceView, scaling: Scaling, context: StepContext) -> Step:
        """Start to scale the group, independently of the traversals of its stack."""
        raise NotSupported(f"Resource {target.name} of type {target.type_name} cannot be scaled")

    def check_scale_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll the child."""
        return self.poll(target, progress, context)

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        return wait_for_child(context.children.create(target.key, self.child_goal(target, context)))

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Update the child, which detects the changes.

        :raises ReplaceNeeded: somebody has deleted the child.
        """
        try:
            return wait_for_child(context.children.update(self.child_goal(target, context)))
        except ChildGone as error:
            raise ReplaceNeeded from error

    def poll(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        state = child_of(context)
        if state.is_over and state.status == "COMPLETE":
            return Done(data=self.child_data(target, state, context))
        return self._wait_or_fail(state)

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        state = context.children.state()
        if state is None:
            return Done()
        context.children.delete()
        return wait_for_child(state.id)

    def check_delete_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        state = context.children.state()
        return Done() if state is None else self._wait_or_fail(state)

    def handle_suspend(self, target: ResourceView, context: StepContext) -> Step:
        return self._act("suspend", context)

    def handle_resume(self, target: ResourceView, context: StepContext) -> Step:
        return self._act("resume", context)

    def handle_check(self, target: ResourceView, context: StepContext) -> Step:
        return self._act("check", context)

    def handle_snapshot(self, target: ResourceView, context: StepContext) -> Step:
        """Start a snapshot of the child."""
        return wait_for_child(context.children.snapshot(target.key))

    def check_snapshot_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        snapshot = context.children.snapshot_state(target.key)
        state = context.children.state()
        if snapshot is None or state is None:
            raise PermanentError("the snapshot of the nested stack is gone")
        if snapshot.status == "COMPLETE":
            return Done()
        if snapshot.status == "IN_PROGRESS":
            return wait_for_child(state.id)
        raise failure_of(state) if state.status == "FAILED" else PermanentError(snapshot.reason)

    def handle_delete_snapshot(self, target: ResourceView, context: StepContext) -> Step:
        """Delete the child's snapshot, without waiting for it."""
        context.children.delete_snapshot(target.key)
        return Done()

    def handle_adopt(self, target: ResourceView, context: StepContext) -> Step:
        """Create a child that adopts the resources of another stack.

        An id in the document, or an ``external_id``, is ignored: nobody takes over a stack that exists.
        """
        data = dict(target.data)
        document = data.pop(ADOPTED, None)
        state = context.children.state()
        if state is None and document is None:
            raise PermanentError("The document says nothing of the stack that it was.", kind="Exception")
        target = replace(target, data=data)
        if state is not None:
            return self.wait_for_adoption(target, state.id)
        goal = self.adopted_goal(target, document, context)
        child = context.children.create(target.key, goal, document["resources"])
        return self.wait_for_adoption(target, child)

    def check_adopt_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        return self.check_create_complete(target, progress, context)

    def adopted_goal(self, target: ResourceView, document: JsonMap, context: StepContext) -> ChildGoal:
        """Return the goal of a child that adopts the resources of another stack.

        :param document: the export of that stack, with ``template`` and ``resources``.
        """
        return self.child_goal(target, context)

    def wait_for_adoption(self, target: ResourceView, child: str) -> Step:
        """Return the step that waits for the adoption."""
        return replace(wait_for_child(child), data=target.data)

    def find_created(self, key: str, target: ResourceView, context: StepContext) -> str | None:
        """Return the child that a lost step created; a later attempt has another key."""
        state = context.children.state()
        return None if state is None else state.id

    def needs_replace_failed(self, target: ResourceView, context: StepContext) -> bool:
        """Return whether the child is gone; a failed one is repaired by an update of its own."""
        return context.children.state() is None

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the outputs, each by its name and all as ``outputs``."""
        outputs = target.data.get("outputs") or {}
        return {**(target.data.get(INNER) or {}), **outputs, "outputs": outputs}

    def child_data(self, target: ResourceView, state: ChildState, context: GoalContext) -> JsonMap:
        """Return the data that the resource stores of a child whose action succeeded."""
        errors = dict(context.children.output_errors())
        data: dict[str, Json] = {"outputs": dict(context.children.outputs()), "name": state.name}
        if self.shows_resources and target.requested_attributes:
            data[INNER] = dict(context.children.inner_values(target.requested_attributes))
        return {**data, OUTPUT_ERRORS: errors} if errors else data

    def _act(self, action: str, context: StepContext) -> Step:
        state = child_of(context)
        if action != "check" and (state.action, state.status) == (action.upper(), "COMPLETE"):
            return Done()
        return wait_for_child(context.children.act(action))

    def _wait_or_fail(self, state: ChildState) -> Step:
        if not state.is_over:
            return wait_for_child(state.id)
        raise failure_of(state)


def output_error(resource: str, data: Json, output: str) -> str | None:
    """Return Heat's text for an output of a nested stack that can never be computed; None: it can be.

    :param data: values that the resource's type has stored, in clear.
    """
    errors = data.get(OUTPUT_ERRORS) if isinstance(data, Mapping) else None
    text = errors.get(output) if isinstance(errors, Mapping) else None
    return None if text is None else f"Error in {resource} output {output}: {text}"


def child_of(context: StepContext) -> ChildState:
    """Return the state of the resource's child.

    :raises ChildGone: the child does not exist.
    """
    state = context.children.state()
    if state is None:
        raise ChildGone
    return state


def wait_for_child(child: str) -> Park:
    """Return the step that waits for the end of the child's action."""
    return Park({"child": child}, f"stack:{child}", after=BACKSTOP, physical_id=child)


def failure_of(state: ChildState) -> ChildFailed:
    """Return the error of a failed child: the first cause, with the path to it."""
    return ChildFailed(state.failure or ChildFailure(state.reason))
