"""What one attempt at a task can come to."""

import logging
import typing
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ...db.rows import Resource
from ...db.states import SILENT, UNDECIDED, Status, TaskKind, TaskState, stopped_reason
from ...db.work import breakpoint_rules, losses
from ...db.work.claim import Claim, Claimant, action_of, resource_event
from ...db.work.commit import Outcome
from ...db.work.orphans import OrphanedCreate
from ...planning.task_definition import TaskDefinition
from ...resources.errors import PermanentError, RetryableError, StepError, StepTimedOut
from ...resources.nested.base import ABORTED, ChildFailed
from ...resources.steps import Park, Poll
from .results import StepResult
from .secrets import Secrets

LOG = logging.getLogger(__name__)
Json = typing.Any
RETRY_FIRST = 1.0
RETRY_MOST = 60.0
STILL_GOOD = "Update status to COMPLETE for FAILED resource neither update nor replace."
"""Heat's words."""


@dataclass(frozen=True)
class Outcomes:
    """Makes the outcomes of one attempt.

    :ivar secrets: what was unsealed for it; no text of its outcomes tells it.
    """

    claim: Claim
    who: Claimant
    clock: Callable[[], float]
    secrets: Secrets

    @property
    def _observes(self) -> bool:
        """Only what is wrong is told."""
        return self.claim.task.kind == TaskKind.OBSERVE

    def _outcome(self, state: TaskState, **fields: typing.Any) -> Outcome:
        task = self.claim.task
        return Outcome(
            task_id=task.id,
            attempt=task.attempt,
            state=state,
            resource_id=self.claim.resource.id,
            **fields,
        )

    def _begun(self) -> dict[str, typing.Any]:
        """The event of the beginning, where this step is the one that found that there is something to do."""
        if self.claim.task.kind not in UNDECIDED or self.claim.begun or self._observes:
            return {}
        return {"begun": self._event(Status.IN_PROGRESS, "state changed", self.claim.resource.physical_id)}

    def _shown(self, status: Status, reason: str) -> dict[str, Json]:
        if self.claim.task.kind in SILENT:
            return {}
        return {"action": action_of(self.claim.task.kind), "status": status, "reason": reason}

    def _event(self, status: Status, reason: str, physical_id: str | None) -> typing.Any:
        kind = self.claim.task.kind
        if kind in SILENT and (kind, status) != (TaskKind.SCALE, Status.FAILED):
            return None
        resource = replace(self.claim.resource, physical_id=physical_id)
        return resource_event(resource, self.claim.task.kind, status, reason, self.who, self.clock())

    def _progress(self, token: Json) -> Json:
        return {"task": self.claim.task.id, "token": token}

    def done(
        self, changes: Mapping[str, Json], physical_id: str | None, reason: str = "state changed"
    ) -> StepResult:
        """The action ended well."""
        values = {**changes, **self._shown(Status.COMPLETE, reason), "progress": None}
        event = self._event(Status.COMPLETE, reason, physical_id)
        return self._ended_well(changes=values, event=event)

    def _ended_well(self, **fields: typing.Any) -> StepResult:
        """Done; or held behind the action, where the user wishes it."""
        hook = breakpoint_rules.stop_at(self.claim.task, breakpoint_rules.POST)
        if hook is None:
            ending: dict[str, Json] = {"state": TaskState.DONE}
        elif breakpoint_rules.aborts(self.claim.task, hook):
            ending = self._aborted(hook)
        else:
            ending = {"state": TaskState.HELD, "hook": hook}
        return StepResult(self.claim, self._outcome(**ending, **fields, **self._begun()))

    def _aborted(self, hook: str) -> dict[str, Json]:
        reason = breakpoint_rules.abort_reason(hook, self.claim.resource.name)
        return {"state": TaskState.FAILED, "reason": reason, "aborts": True}

    def held(self) -> StepResult | None:
        """The task waits at a breakpoint before it begins; None: there is none."""
        hook = breakpoint_rules.stop_at(self.claim.task, breakpoint_rules.PRE)
        if hook is None:
            return None
        if breakpoint_rules.aborts(self.claim.task, hook):
            return StepResult(self.claim, self._outcome(**self._aborted(hook)))
        return StepResult(self.claim, self._outcome(TaskState.HELD, hook=hook))

    def nothing_to_do(self, changes: Mapping[str, Json]) -> StepResult:
        """The resource is as it shall be; nobody is told."""
        if self.claim.task.kind == TaskKind.UPDATE and self.claim.resource.status == Status.FAILED:
            changes = {**changes, "status": Status.COMPLETE, "reason": STILL_GOOD}
        return StepResult(self.claim, self._outcome(TaskState.DONE, changes=changes))

    def refused(self, error: Exception) -> StepResult:
        """The action must not be; the resource stays as it is, and the stack fails."""
        event = self._event(Status.FAILED, str(error), self.claim.resource.physical_id)
        where = f"ResourceActionRestricted: resources.{self.claim.resource.name}: {error}"
        reason = f"Resource {action_of(self.claim.task.kind)} failed: {where}"
        return StepResult(self.claim, self._outcome(TaskState.FAILED, reason=reason, event=event))

    def replaced(self) -> StepResult:
        """The resource cannot be updated: the task goes on by creating another one in its place, at once or
        when the breakpoint before that is cleared."""
        creation = replace(self.claim.task, kind=TaskKind.CREATE, stepped=False)
        hook = breakpoint_rules.stop_at(creation, breakpoint_rules.PRE)
        if hook is not None and breakpoint_rules.aborts(creation, hook):
            return StepResult(self.claim, self._outcome(**self._aborted(hook)))
        old, now = self.claim.resource, self.clock()
        wanted = TaskDefinition.from_json(self.claim.task.definition)
        assert self.claim.task.spare_id is not None
        new = Resource(
            id=self.claim.task.spare_id,
            stack_id=old.stack_id,
            name=old.name,
            type=wanted.type or old.type,
            plugin=wanted.plugin or old.plugin,
            action="INIT",
            status=Status.COMPLETE,
            reason="",
            definition=self.claim.task.definition,
            requires=old.requires,
            replaces=old.id,
            key=str(uuid.uuid4()),
            created_at=now,
            updated_at=now,
        )
        state = TaskState.READY if hook is None else TaskState.HELD
        return StepResult(self.claim, self._outcome(state, due_at=now, hook=hook, replacement=new))

    def deleted(self) -> StepResult:
        """The thing is gone, so is its row."""
        event = self._event(Status.COMPLETE, "state changed", self.claim.resource.physical_id)
        # As it is shown while it is held behind this.
        shown = {**self._shown(Status.COMPLETE, "state changed"), "physical_id": None, "progress": None}
        return self._ended_well(remove=True, changes=shown, event=event)

    def looks_again(self, step: Poll, changes: Mapping[str, Json]) -> StepResult:
        """Between two looks the task stays with this conductor."""
        values = {**changes, "progress": self._progress(step.progress)}
        if begun := self._begun():
            values.update(self._shown(Status.IN_PROGRESS, "state changed"))
        outcome = self._outcome(TaskState.RUNNING, changes=values, **begun)
        after = replace(self.claim, resource=replace(self.claim.resource, **values))
        return StepResult(after, outcome, poll_after=step.after, progress=step.progress)

    def parked(self, step: Park, changes: Mapping[str, Json]) -> StepResult:
        """The task waits in the database."""
        moments = [self.claim.task.expires_at]
        moments.append(None if step.after is None else self.clock() + step.after)
        known = [moment for moment in moments if moment is not None]
        values = {**changes, "progress": self._progress(step.progress)}
        if begun := self._begun():
            values.update(self._shown(Status.IN_PROGRESS, "state changed"))
        outcome = self._outcome(
            TaskState.PARKED,
            changes=values,
            **begun,
            due_at=min(known) if known else None,
            waits_on=step.waits_on,
            seen=step.seen,
        )
        return StepResult(self.claim, outcome)

    def again(self, error: RetryableError) -> StepResult:
        """Try again after a while, if the task may."""
        left = self.claim.task.retries_left
        if left <= 0:
            return self.failed(error)
        done_before = max(0, self.claim.task.attempt - 1)
        backoff = min(RETRY_MOST, RETRY_FIRST * 2 ** min(done_before, 10))
        changes: dict[str, Json] = {"reason": self.secrets.redact(f"will be tried again: {error}")}
        if isinstance(error, StepTimedOut) or self._insists:
            changes["progress"] = None
        outcome = self._outcome(
            TaskState.PARKED,
            changes=changes,
            due_at=self.clock() + (backoff if error.after is None else error.after),
            retries_left=left - 1,
        )
        return StepResult(self.claim, outcome, timed_out=isinstance(error, StepTimedOut))

    def stopped(self) -> StepResult:
        """The step was asked to stop and did: because its own time was over, or because it was cancelled."""
        return self.again(self._late()) if self._expired() else self._cancelled()

    def detached(self, leftover: OrphanedCreate | None) -> StepResult:
        """The step was asked to stop and did not."""
        told = f"the step on {self.who.host} did not stop when it was asked to"
        result = self.again(self._late(told)) if self._expired() else self._cancelled(told)
        assert result.outcome is not None
        return replace(result, outcome=replace(result.outcome, leftover=leftover), detached=True)

    def lost_too_often(self) -> StepResult:
        """Too many conductors died or went silent while the task ran."""
        hosts, action = losses.hosts(self.claim.task), action_of(self.claim.task.kind)
        told = f"{action} was running on {len(hosts)} conductors that died or went silent"
        return self.failed(PermanentError(f"{told} ({', '.join(hosts)}); it is not tried again"))

    def _expired(self) -> bool:
        expires_at = self.claim.task.expires_at
        return expires_at is not None and self.clock() >= expires_at

    def _late(self, told: str = "") -> StepTimedOut:
        text = f"{action_of(self.claim.task.kind)} timed out"
        return StepTimedOut(f"{text}: {told}" if told else text)

    def _cancelled(self, told: str = "") -> StepResult:
        if self._observes:
            return StepResult(self.claim, self._outcome(TaskState.CANCELLED))
        reason = stopped_reason(action_of(self.claim.task.kind))
        reason = f"{reason}: {told}" if told else reason
        event = self._event(Status.FAILED, reason, self.claim.resource.physical_id)
        changes = self._shown(Status.FAILED, reason)
        outcome = self._outcome(TaskState.CANCELLED, changes=changes, event=event, **self._begun())
        return StepResult(self.claim, outcome)

    @property
    def _insists(self) -> bool:
        return TaskDefinition.from_json(self.claim.task.definition).insists

    def failed(self, error: Exception) -> StepResult:
        """The action failed for good."""
        if self._insists and self.claim.task.retries_left > 0:
            return self.again(RetryableError(str(error)))
        kind = error.kind if isinstance(error, PermanentError) else _kind(error)
        inside = f".{error.path}" if isinstance(error, ChildFailed) and error.path else ""
        reason = self.secrets.redact(f"{kind}: resources.{self.claim.resource.name}{inside}: {error}")
        event = self._event(Status.FAILED, reason, self.claim.resource.physical_id)
        changes = {**self._shown(Status.FAILED, reason), "progress": None}
        if self._observes and isinstance(error, PermanentError):
            return StepResult(self.claim, self._outcome(TaskState.DONE, changes=changes, event=event))
        if self._observes:
            where = f"{self.claim.task.stack_id}/{self.claim.resource.name}"
            LOG.warning("Resource %s: what is really there cannot be seen: %s", where, reason)
            return StepResult(self.claim, self._outcome(TaskState.DONE, changes={"progress": None}))
        action = action_of(self.claim.task.kind)
        told, aborts = f"Resource {action} failed: {reason}", False
        if isinstance(error, ChildFailed) and error.stopped_at:
            told, aborts = f"{action}{ABORTED}{self.claim.resource.name}/{error.stopped_at}", True
        fields = {"changes": changes, "reason": told, "event": event, "aborts": aborts}
        failed = self._outcome(TaskState.FAILED, **fields, **self._begun())
        return StepResult(self.claim, failed, timed_out=isinstance(error, StepTimedOut))


def _kind(error: Exception) -> str:
    if isinstance(error, StepTimedOut):
        return "Timeout"
    return "ResourceFailure" if isinstance(error, StepError) else type(error).__name__
