"""Base of the types that create many resources of one definition: each is a member of one child.

A group is changed in steps, each an update of the child.  The progress token has the remaining steps.  So any
conductor continues with the next one, and none is done twice:

* ``{"child", "left"}``: a step is in progress; these follow it.
* ``{"child", "left", "after", "due"}``: the first of `left` is next, not before `due`; if the child's
  traversal is no longer `after`, a lost attempt has started it.
"""

import dataclasses
import typing
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...shapes import Json, JsonMap
from ...template.constraints import Range
from ..contract import (
    ChildGoal,
    ChildState,
    Done,
    GoalContext,
    GroupMember,
    Poll,
    Property,
    ReplaceNeeded,
    ResourceView,
    Step,
    StepContext,
)
from .base import NestedType, child_of, failure_of, wait_for_child
from .members import REFS_MAP, RequestedAttribute, member_bodies


@dataclass(frozen=True)
class Batch:
    """One step of a rolling update.

    :ivar size: members after it.
    :ivar updates: how many members get the new definition in it, new ones included.
    """

    size: int
    updates: int


def batch_schema(members: str) -> dict[str, Property]:
    """Return the properties of the policy of a rolling update.

    :param members: the service's word for the members of the group.
    """
    return {
        "max_batch_size": Property(
            "integer",
            f"Maximum number of {members} that are changed at once.",
            default=1,
            constraints=(Range(minimum=1),),
        ),
        "pause_time": Property(
            "number", "Pause between two batches, in seconds.", default=0, constraints=(Range(minimum=0),)
        ),
    }


def batches(
    target: int, current: int, *, most: int, in_service: int, surplus_counts: bool = True
) -> list[Batch]:
    """Return the steps from a group of `current` members to one of `target`, all of the new definition.

    The arithmetic is that of Heat (heat/scaling/rolling_update.py).

    :param most: members changed at once; at least 1.
    :param in_service: members that are not touched at any moment, as far as the group has that many.
    :param surplus_counts: extra members, created so that others can be changed, count as updated: they stay,
        and old ones are deleted.  False: the extra members are deleted again.
    """
    steps: list[Batch] = []
    updated = 0
    while updated < current or current != target:
        untouched = min(in_service, target, current)
        changes = min(most, max(target - updated, 0))
        size = changes + max(min(current, target - changes), untouched)
        steps.append(Batch(size, changes))
        surplus = 0 if surplus_counts else max(size - max(current, target), 0)
        updated += changes - surplus
        current = size
    return steps


@dataclass(frozen=True)
class Rollout:
    """The steps in which a group reaches its goal.

    :ivar steps: the batches in their order; None in the place of one: everything that is left, at once.
    :ivar pause: seconds between two steps.
    :ivar data: stored with the resource before the first step starts.
    """

    steps: Sequence[Batch | None] = (None,)
    pause: float = 0.0
    data: JsonMap = field(default_factory=dict)


class GroupResource(NestedType):
    """Base of the groups."""

    has_member_attributes = True
    #: Attributes of the group itself, not of its members.
    own_attributes: typing.ClassVar[frozenset[str]] = frozenset()
    #: Attributes whose path names the attribute of the members.
    path_attributes: typing.ClassVar[frozenset[str]] = frozenset()

    def create_rollout(self, target: ResourceView) -> Rollout:
        """Return the steps that create a group."""
        return Rollout()

    def update_rollout(
        self, target: ResourceView, changed: frozenset[str], members: Sequence[GroupMember]
    ) -> Rollout:
        """Return the steps from these members to the group that the properties describe."""
        return Rollout()

    def step_goal(
        self, target: ResourceView, step: Batch | None, members: Sequence[GroupMember]
    ) -> ChildGoal:
        """Return the goal of the child for a step.

        :param target: its data is that of the rollout.
        :param members: members of the child now.
        """
        raise NotImplementedError

    def foresees(self, target: ResourceView, changed: frozenset[str]) -> bool:
        """Return whether its members follow from its properties and stored data, before a step runs.

        :param changed: the properties that change; of a new group all.
        """
        return True

    def whole_goal(self, target: ResourceView) -> ChildGoal:
        """Return the goal of the child at the end of a creation."""
        rollout = self.create_rollout(target)
        return self.step_goal(dataclasses.replace(target, data={**target.data, **rollout.data}), None, ())

    def steps_ahead(
        self, target: ResourceView, changed: frozenset[str], members: Sequence[GroupMember]
    ) -> list[ChildGoal]:
        """Return the goals of the child for all steps of an update, in their order.

        Each step finds what the one before it has left, without failures.

        :param members: members of the child now, in their order.
        """
        rollout = self.update_rollout(target, changed, members)
        target = dataclasses.replace(target, data={**target.data, **rollout.data})
        goals = []
        for step in rollout.steps:
            goal = self.step_goal(target, step, members)
            present = {member.name: member for member in members}
            members = [
                dataclasses.replace(
                    present.get(name, GroupMember(name, None)), definition=body, is_failed=False
                )
                for name, body in member_bodies(goal).items()
            ]
            goals.append(goal)
        return goals

    def member_attribute(self, attribute: str, path: Sequence[str | int]) -> RequestedAttribute | None:
        if attribute in self.path_attributes and not path:
            raise LookupError(f"{attribute} needs the name of an attribute of the members behind it")
        return None if attribute in self.own_attributes else [attribute, *path]

    def child_goal(self, target: ResourceView, context: GoalContext) -> ChildGoal:
        """Return the goal of all steps at once."""
        return self.step_goal(target, None, ())

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Create the child with the first step."""
        rollout = self.create_rollout(target)
        target = dataclasses.replace(target, data={**target.data, **rollout.data})
        first, *steps = rollout.steps
        child = context.children.create(target.key, self.step_goal(target, first, ()))
        return _in_progress(child, _stored(steps), rollout.pause, data=target.data)

    def check_create_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Continue with the next step, if the last one is complete."""
        return self._continue(target, progress, context)

    def adopted_goal(self, target: ResourceView, document: JsonMap, context: StepContext) -> ChildGoal:
        """Return a goal with the members of the other group."""
        template = document.get("template") or {}
        members = [GroupMember(name, body) for name, body in (template.get("resources") or {}).items()]
        return self.step_goal(target, None, members)

    def wait_for_adoption(self, target: ResourceView, child: str) -> Step:
        return _in_progress(child, [], 0.0, data={**self.create_rollout(target).data, **target.data})

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Decide on the steps, which are stored before the first one starts.

        :raises ReplaceNeeded: somebody has deleted the child.
        """
        state = context.children.state()
        if state is None:
            raise ReplaceNeeded
        rollout = self.update_rollout(target, changed, context.children.members())
        return self.start_rollout(target, state, rollout, context)

    def start_rollout(
        self, target: ResourceView, state: ChildState, rollout: Rollout, context: StepContext
    ) -> Step:
        """Return the step that stores the rollout before its first step starts."""
        data = {**target.data, **rollout.data}
        return _next(state, _stored(rollout.steps), rollout.pause, due=context.now(), data=data)

    def check_update_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Continue with the next step, if the last one is complete."""
        return self._continue(target, progress, context)

    def child_data(self, target: ResourceView, state: ChildState, context: GoalContext) -> JsonMap:
        """Add the names of the members that did not fail, oldest first."""
        names = [member.name for member in context.children.members() if not member.is_failed]
        return {**target.data, **super().child_data(target, state, context), "names": names}

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the requested attributes, and the references of the members."""
        outputs = dict(target.data.get("outputs") or {})
        references = outputs.get(REFS_MAP) or {}
        names = [name for name in target.data.get("names") or [] if name in references]
        return {**outputs, "refs": [references[name] for name in names], REFS_MAP: references}

    def _continue(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        steps = progress["left"]
        pause = progress["pause"]
        state = child_of(context)
        if "after" in progress:
            if state.traversal == progress["after"]:
                if progress["due"] > context.now():
                    return Poll(progress, after=progress["due"] - context.now())
                goal = self.step_goal(target, _step(steps[0]), context.children.members())
                context.children.update(goal)
            return _in_progress(state.id, steps[1:], pause)
        if not state.is_over:
            return _in_progress(state.id, steps, pause)
        if state.status != "COMPLETE":
            raise failure_of(state)
        if steps:
            return _next(state, steps, pause, due=context.now() + pause)
        return Done(data=self.child_data(target, state, context))


def _stored(steps: Sequence[Batch | None]) -> list[Json]:
    return [None if step is None else [step.size, step.updates] for step in steps]


def _step(stored: Json) -> Batch | None:
    return None if stored is None else Batch(*stored)


def _in_progress(child: str, steps: Sequence[Json], pause: float, data: JsonMap | None = None) -> Step:
    progress = {"child": child, "left": steps, "pause": pause}
    return dataclasses.replace(wait_for_child(child), progress=progress, data=data)


def _next(
    state: ChildState,
    steps: Sequence[Json],
    pause: float,
    *,
    due: float,
    data: JsonMap | None = None,
) -> Step:
    progress = {"child": state.id, "left": steps, "pause": pause, "after": state.traversal, "due": due}
    return Poll(progress, after=pause if data is None else 0.0, data=data)
