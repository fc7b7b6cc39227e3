"""The nested stacks that resources would be after an update; the members of a group as its type decides."""

import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...db.rows import Resource, Stack
from ...db.states import Status
from ...engine.context import Compiled, EngineContext
from ...engine.stored_resource import note_properties
from ...resources.contract.children import ChildGoal, GroupMember
from ...resources.contract.plugin import ResourceType
from ...resources.contract.views import StackFacts
from ...resources.nested.groups import GroupResource
from ...resources.nested.members import group_goal
from ...resources.nested.parameterize import parameterize
from ...sealing.secrets import Secrets
from ...template.budget import Budget
from ...template.compile import Identity
from ...template.errors import LimitExceeded
from ...template.language import ResourceDefinition
from .child import compile_goal, compile_previewed_child
from .members import UNKNOWABLE, batches_of, present_members
from .plan import Turn, UpdatePreview


@dataclass(frozen=True)
class ChildForecast:
    """The goals of a nested stack during an update.

    :ivar last: the goal that it comes to.
    :ivar passing: a goal with the members of a group that exist only meanwhile; None: there are none.
    :ivar turns: the batches in which members of a group change, by name; empty: all change at once.
    """

    last: Compiled
    passing: Compiled | None = None
    turns: Mapping[str, Turn] = field(default_factory=dict)


def is_group(plugin: ResourceType) -> typing.TypeGuard[GroupResource]:
    """Return whether the resources of a type are groups, which may have many members."""
    return isinstance(plugin, GroupResource)


@dataclass(frozen=True)
class ChildForecasts:
    """Forecasts for the nested stacks of one stack.

    :ivar preview: preview of the stack.
    :ivar parent: the goal of the stack.
    :ivar work: budget of all that is compiled for the preview.
    """

    context: EngineContext
    preview: UpdatePreview
    parent: Compiled
    work: Budget

    def of(
        self, definition: ResourceDefinition, row: Resource | None, child: Stack | None, identity: Identity
    ) -> ChildForecast | None:
        """Return the forecast for the nested stack of a resource.

        :param row: the resource as it is; None: it is new.
        :param child: its nested stack; None: that does not exist yet.
        :returns: None: it depends on values which are not known before the update, or the update would fail.
        :raises LimitExceeded: the preview takes too much work.
        """
        plugin = self.context.registry.get(definition.type)
        if is_group(plugin):
            return self._of_group(plugin, definition, row, child, identity)
        last = compile_previewed_child(
            self.context, definition, self.preview, self.parent, identity, self.work
        )
        return None if last is None else ChildForecast(last)

    def _of_group(
        self,
        plugin: GroupResource,
        definition: ResourceDefinition,
        row: Resource | None,
        child: Stack | None,
        identity: Identity,
    ) -> ChildForecast | None:
        if child is not None and child.status == Status.IN_PROGRESS:
            return None  # Its members change at this moment.
        around = self.parent.identity
        facts = StackFacts(around.stack_id, around.stack_name, around.project_id)
        secrets = Secrets(self.parent.sealer)
        try:
            target_and_changed = self.preview.target_of(definition, row, facts)
            if target_and_changed is None or not plugin.foresees(*target_and_changed):
                return None
            target, changed = target_and_changed
            if child is None:
                members: Sequence[GroupMember] = []
                goals = [plugin.whole_goal(target)]
            else:
                members = present_members(self.context, child, secrets)
                goals = plugin.steps_ahead(target, changed, members)
            note_properties(self.preview.sealed_properties(definition), target.properties, secrets)
            if row is not None:
                secrets.open_value(row.data)  # Definitions of members may be made of it.

            def compiled(goal: ChildGoal) -> Compiled:
                sealed = parameterize(goal, secrets.holds, secrets.hides)
                return compile_goal(self.context, definition, sealed, self.parent, identity, self.work)

            turns, passing = batches_of({member.name: member.definition for member in members}, goals)
            return ChildForecast(
                compiled(goals[-1]), compiled(group_goal(passing, {})) if passing else None, turns
            )
        except LimitExceeded:
            raise
        except UNKNOWABLE:
            return None
