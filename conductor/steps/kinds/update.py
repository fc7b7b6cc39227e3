"""Steps of updates: the first one decides how the resource is updated."""

import functools
from collections.abc import Mapping
from dataclasses import replace

from ....db.states import Status
from ....engine.named_things import check_found, same_thing
from ....engine.planning.plan import TaskDefinition, same_goal
from ....resources.contract.errors import PermanentError, ReplaceNeeded
from ....resources.contract.plugin import ResourceType
from ....resources.contract.properties import changed, respelled
from ....resources.contract.steps import Done, Poll, Step
from ....resources.contract.views import ResourceView
from ....resources.update_decision import (
    RESTRICTED,
    UpdateDecision,
    decide_update,
    repairable,
    survives_failure,
)
from ....shapes import Json, JsonMap
from ..outcomes import Restricted
from ..results import StepResult
from ..returned import kept_values
from ..target import is_same_type
from .base import TaskStep

REPAIR = "repair"
"""Key of the progress of a repair, which precedes the update; null: it has not begun."""
GOAL = ("definition", "type", "properties", "metadata", "generation", "requires")
"""Columns with the goal that a resource was brought to."""


class UpdateStep(TaskStep):
    """A step of an update."""

    action = "update"

    def prepare(self) -> StepResult | None:
        """Decide how the resource is updated, once all values are known.

        :raises Restricted: the environment forbids it.
        :raises PermanentError: a property has changed that never may.
        """
        # What a property names is compared, not the words for it.
        schema = self.plugin.properties_schema
        same = same_thing(self.context, self.target.data)
        previous = respelled(schema, self.target.previous, self.target.properties, same)
        self.target = replace(self.target, previous=previous)
        if self.progress is not None:
            return None
        if self._is_external():
            return self.outcomes.nothing_to_do(self.stored)
        if self.claim.resource.reinstated and not self._makes_room:
            try:
                waits = self.plugin.restore_after_replace(self.target, self.context)
            except ReplaceNeeded as error:
                return self.replace(error)
            if waits is not None:
                return self._call_again(waits)
        # Once room is made, nothing else is left to decide: the resource may be lost by that.
        decision = UpdateDecision.REPLACE if self._makes_room else self._decide()
        self._check_allowed(decision)
        if decision == UpdateDecision.SAME and not self._completes_creation:
            return self._unchanged()
        if (held := self.outcomes.held()) is not None:
            return held
        return self._replace() if decision == UpdateDecision.REPLACE else None

    def start(self) -> Step:
        """Start the update of the properties that have changed; a repair comes first."""
        if self._completes_creation:
            return self.plugin.handle_create(self._as_created, self.context)
        # The progress is stored first: once the update has begun, nothing else shows that a check has failed.
        return Poll(progress={REPAIR: None}, after=0.0) if self._repairs else self._change()

    def _change(self) -> Step:
        plugin = self.plugin
        if not (self._names or plugin.always_updated or plugin.updated_when_redefined):
            return Done()
        new = {name: self.target.properties.get(name) for name in self._names}
        check_found(self.context, plugin.properties_schema, new)
        return self.plugin.handle_update(self.target, self._names, self.context)

    def poll(self) -> Step:
        """Poll the update once, or the creation that it completes."""
        if self._completes_creation:
            return self.plugin.check_create_complete(self._as_created, self.progress, self.context)
        if isinstance(self.progress, Mapping) and REPAIR in self.progress:
            return self._repair(self.progress[REPAIR])
        return super().poll()

    def _repair(self, progress: Json) -> Step:
        """Begin or poll the repair; start the update at its end.

        :param progress: progress of the type's own steps; None: it has not begun.
        """
        if progress is None:
            step = self.plugin.handle_repair(self.target, self.context)
        else:
            step = self.plugin.check_repair_complete(self.target, progress, self.context)
        if not isinstance(step, Done):
            return replace(step, progress={REPAIR: step.progress})
        self.take(step)
        change = self._change()
        return replace(change, data=step.data) if change.data is None else change

    def replace(self, error: ReplaceNeeded) -> StepResult:
        """Replace the resource: its type has found out that it cannot change it.

        :raises Restricted: the environment forbids it.
        """
        self._check_allowed(UpdateDecision.REPLACE)
        return self._replace()

    def store(self, step: Step, changes: JsonMap) -> StepResult:
        """Store the goal with the end only: until then a second try has to see the difference."""
        if not isinstance(step, Done):
            changes = {name: value for name, value in changes.items() if name not in GOAL}
        return super().store(step, changes)

    @functools.cached_property
    def _names(self) -> frozenset[str]:
        """Return the names of the properties that have changed."""
        return changed(self.plugin.properties_schema, self.target.previous, self.target.properties)

    @property
    def _repairs(self) -> bool:
        """Return whether the thing may have to be repaired: its check has failed, or an update after that.

        An update that has changed nothing else has failed in its repair, or the repair is due still.
        """
        if self.plugin.replaced_when_check_failed or not repairable(self.plugin):
            return False
        resource = self.claim.resource
        action = resource.failed_action
        is_left = action == "CHECK" or (action == "UPDATE" and not self._names)
        return is_left and resource.status != Status.COMPLETE and not resource.unhealthy

    @property
    def _completes_creation(self) -> bool:
        """Return whether the update completes a creation that failed halfway, for nothing has changed since.

        The thing is there and was found good enough to be kept.  But whatever the creation had still to do
        is not done, nobody has waited for its end, and no value that others refer to is stored.
        """
        resource = self.claim.resource
        is_halfway = resource.status != Status.COMPLETE and resource.reference_id is None
        was_created_here = bool(resource.key) and resource.physical_id is not None
        return is_halfway and was_created_here and not self._names and not self.plugin.always_updated

    @property
    def _as_created(self) -> ResourceView:
        """Return the view as the steps of the resource's creation had it."""
        return replace(self.target, key=str(self.claim.resource.key), previous={})

    def _unchanged(self) -> StepResult:
        """Complete the task; one that failed before others could refer to it gets its values."""
        changes = self.stored
        if self.claim.resource.reference_id is None:
            values = kept_values(self.plugin, self.target, self.context, self.secrets)
            changes = {**changes, **values}
        return self.outcomes.nothing_to_do(changes)

    @property
    def _makes_room(self) -> bool:
        """Return whether an earlier step of this task has stored that it makes room for the replacement."""
        resource = self.claim.resource
        return resource.reinstated and resource.replaces == self.claim.task.spare_id

    def _replace(self) -> StepResult:
        """Let the type make room for the replacement, then create that.

        That room is made is stored first.  After a crash, or where a newer update keeps the resource, nobody
        would know otherwise that something has to be taken back.
        """
        if type(self.plugin).prepare_for_replace is not ResourceType.prepare_for_replace:
            if not self._makes_room:
                # As if the resource had been replaced, and took its place again.
                stored = {"replaces": self.claim.task.spare_id, "reinstated": True}
                return self.outcomes.run_again(stored, self.progress)
            waits = self.plugin.prepare_for_replace(self.target, self.context)
            if waits is not None:
                return self._call_again(waits)
        return self.outcomes.replaced()

    def _call_again(self, waits: Poll) -> StepResult:
        """Return the result of a step that is repeated later; nothing is stored."""
        return StepResult(self.claim, None, poll_after=waits.after, progress=self.progress)

    def _decide(self) -> UpdateDecision:
        """Decide as Heat does: a resource whose last action failed is replaced, unless its type knows better.

        Nobody else knows its state.
        """
        resource = self.claim.resource
        if not is_same_type(self.claim):
            return UpdateDecision.REPLACE
        if resource.status == Status.FAILED:
            survives = survives_failure(
                self.plugin, action=resource.failed_action, unhealthy=resource.unhealthy
            )
            if not survives or self.plugin.needs_replace_failed(self.target, self.context):
                return UpdateDecision.REPLACE
        redefined = not same_goal(resource.definition, self.claim.task.definition)
        return decide_update(
            self.plugin, self.target.previous, self.target.properties, redefined=redefined or self._repairs
        )

    def _check_allowed(self, decision: UpdateDecision) -> None:
        word = RESTRICTED.get(decision)
        if word in self.claim.task.restricted:
            raise Restricted(f"{word} is restricted for resource.")

    def _is_external(self) -> bool:
        """Return whether the thing is not the stack's own, so that an update leaves it alone.

        :raises PermanentError: it would be another thing.
        """
        before = TaskDefinition.from_json(self.claim.resource.definition).external_id
        if self.definition.external_id != before:
            text = f"Update to property external_id of {self.target.name} ({self.target.type_name})"
            raise PermanentError(f"{text} is not supported.", kind="NotSupported")
        return before is not None
