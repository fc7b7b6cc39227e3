"""Makes the results of one attempt at a task: states, columns, events and replacements to be stored."""

import logging
import typing
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace

from ...db.ids import WaitsOn
from ...db.rows import FailureCause, OrphanedCreate, Outcome, Resource
from ...db.states import SIGNALLED, SILENT, UNDECIDED, Status, TaskKind, TaskState, cancelled_reason
from ...db.work import breakpoint_rules, losses
from ...db.work.cancel import LOST
from ...db.work.claim import Claim, Claimant, action_of, resource_event
from ...engine.planning.plan import TaskDefinition
from ...resources.contract.errors import (
    OverQuota,
    PermanentError,
    RetryableError,
    StepError,
    StepTimedOut,
)
from ...resources.contract.steps import Park, Poll
from ...resources.nested.base import ChildFailed
from ...sealing.secrets import Secrets
from ...shapes import Json, JsonMap
from .results import StepResult

LOG = logging.getLogger(__name__)
RETRY_FIRST = 1.0
RETRY_MOST = 60.0
SHOWN_PAUSE = 5.0
"""Seconds of the pause before a retry that an event shows; nobody could read of a shorter one in time."""
STILL_GOOD = "Update status to COMPLETE for FAILED resource neither update nor replace."
"""Heat's words."""


class Restricted(StepError):
    """The environment forbids the change that the update needs; the resource stays as it is."""


@dataclass(frozen=True)
class Outcomes:
    """Makes the results of one attempt.

    :ivar secrets: values that were unsealed for the attempt; no text of its results holds one of them.
    :ivar quota_wait: seconds for which a quota is waited for; 0: it is not waited for.
    """

    claim: Claim
    who: Claimant
    clock: Callable[[], float]
    secrets: Secrets
    quota_wait: float

    @property
    def _observes(self) -> bool:
        """Return whether only failures are shown."""
        return self.claim.task.kind in (TaskKind.OBSERVE, TaskKind.REFRESH)

    def _outcome(self, state: TaskState, **fields: typing.Any) -> Outcome:
        task = self.claim.task
        if task.kind == TaskKind.SIGNAL and state != TaskState.DONE:
            # An action on the resource may be in progress.
            fields.pop("changes", None)
        return Outcome(
            task_id=task.id,
            attempt=task.attempt,
            state=state,
            resource_id=self.claim.resource.id,
            successors=task.successors,
            **fields,
        )

    @property
    def _shows_start(self) -> bool:
        """Return whether this step shows the action's start: it has found that there is something to do."""
        return self.claim.task.kind in UNDECIDED and not self.claim.begun and not self._observes

    def _begun(self) -> dict[str, typing.Any]:
        """Return the event of the action's start, where this step shows it and no earlier attempt has."""
        if not self._shows_start:
            return {}
        resource = self.claim.resource
        state = (resource.action, resource.status)
        is_repeated = self.claim.task.attempt > 1 and resource.reason != LOST
        if is_repeated and state == (action_of(self.claim.task.kind), Status.IN_PROGRESS):
            return {}
        return {"begun": self._event(Status.IN_PROGRESS, "state changed", resource.physical_id)}

    def _status_columns(self, status: Status, reason: str) -> dict[str, Json]:
        if self.claim.task.kind in SILENT:
            return {}
        action = action_of(self.claim.task.kind)
        columns: dict[str, Json] = {"action": action, "status": status, "reason": reason}
        return {**columns, "unhealthy": False} if self.claim.resource.unhealthy else columns

    def _event(self, status: Status, reason: str, physical_id: str | None) -> typing.Any:
        kind = self.claim.task.kind
        if kind in SILENT and not (kind in SIGNALLED and status == Status.FAILED):
            return None
        return resource_event(self.claim, physical_id, status, reason, self.who, self.clock())

    def done(self, changes: JsonMap, physical_id: str | None, reason: str = "state changed") -> StepResult:
        """Complete the task: the action ended well."""
        values = {**changes, **self._status_columns(Status.COMPLETE, reason), "progress": None}
        event = self._event(Status.COMPLETE, reason, physical_id)
        return self._ended_well(changes=values, event=event)

    def _ended_well(self, **fields: typing.Any) -> StepResult:
        """Complete the task, or hold it at a breakpoint behind the action."""
        task = self.claim.task
        hook = breakpoint_rules.stop_at(task, breakpoint_rules.POST) if task.hooks else None
        if hook is None:
            ending: dict[str, Json] = {"state": TaskState.DONE}
        elif breakpoint_rules.aborts(task, hook):
            ending = self._aborted(hook)
        else:
            ending = {"state": TaskState.HELD, "hook": hook}
        return StepResult(self.claim, self._outcome(**ending, **fields, **self._begun()))

    def _aborted(self, hook: str) -> dict[str, Json]:
        cause = breakpoint_rules.aborted(hook, self.claim.resource.name)
        return {"state": TaskState.FAILED, "reason": cause.message, "cause": cause, "aborts": True}

    def held(self) -> StepResult | None:
        """Hold the task at a breakpoint before its action; return None if there is no breakpoint."""
        hook = breakpoint_rules.stop_at(self.claim.task, breakpoint_rules.PRE)
        if hook is None:
            return None
        if breakpoint_rules.aborts(self.claim.task, hook):
            return StepResult(self.claim, self._outcome(**self._aborted(hook)))
        return StepResult(self.claim, self._outcome(TaskState.HELD, hook=hook))

    def nothing_to_do(self, changes: JsonMap) -> StepResult:
        """Complete the task: the resource is as the goal has it.

        There is an event only where users see another status than before.
        """
        resource = self.claim.resource
        if self.claim.task.kind != TaskKind.UPDATE or resource.status == Status.COMPLETE:
            return StepResult(self.claim, self._outcome(TaskState.DONE, changes=changes))
        reason = STILL_GOOD if resource.status == Status.FAILED else "state changed"
        event = replace(self._event(Status.COMPLETE, reason, resource.physical_id), action=resource.action)
        changes = {**changes, "status": Status.COMPLETE, "reason": reason}
        return StepResult(self.claim, self._outcome(TaskState.DONE, changes=changes, event=event))

    def refused(self, error: Exception) -> StepResult:
        """Fail the task, and leave the resource as it is: the environment forbids the action."""
        event = self._event(Status.FAILED, str(error), self.claim.resource.physical_id)
        cause = FailureCause(str(error), "ResourceActionRestricted", f"resources.{self.claim.resource.name}")
        return StepResult(self.claim, self._outcome(TaskState.FAILED, **self._why(cause), event=event))

    def _why(self, cause: FailureCause) -> dict[str, Json]:
        reason = cause.reason(action_of(self.claim.task.kind))
        return {"reason": reason, "cause": cause, "aborts": bool(cause.breakpoint)}

    def replaced(self) -> StepResult:
        """Continue the task with the creation of another resource, for this one cannot be updated.

        The creation starts at once, or when the breakpoint before it is cleared.
        """
        creation = replace(self.claim.task, kind=TaskKind.CREATE, stepped=False)
        hook = breakpoint_rules.stop_at(creation, breakpoint_rules.PRE)
        if hook is not None and breakpoint_rules.aborts(creation, hook):
            return StepResult(self.claim, self._outcome(**self._aborted(hook)))
        old = self.claim.resource
        now = self.clock()
        definition = TaskDefinition.from_json(self.claim.task.definition)
        assert self.claim.task.spare_id is not None
        new = Resource(
            id=self.claim.task.spare_id,
            stack_id=old.stack_id,
            name=old.name,
            type=definition.type or old.type,
            plugin=definition.plugin or old.plugin,
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
        """Complete the task and remove the resource's row: the thing is gone."""
        event = self._event(Status.COMPLETE, "state changed", self.claim.resource.physical_id)
        # The row is shown while a breakpoint behind the deletion holds the task.
        columns = {
            **self._status_columns(Status.COMPLETE, "state changed"),
            "physical_id": None,
            "progress": None,
        }
        return self._ended_well(remove=True, changes=columns, event=event)

    def poll_later(self, step: Poll, changes: JsonMap) -> StepResult:
        """Keep the task in this conductor until its next poll."""
        values = {**changes, "progress": {"task": self.claim.task.id, "token": step.progress}}
        if self._shows_start:
            values.update(self._status_columns(Status.IN_PROGRESS, "state changed"))
        outcome = self._outcome(TaskState.RUNNING, changes=values, **self._begun())
        after = replace(self.claim, resource=replace(self.claim.resource, **values))
        return StepResult(after, outcome, poll_after=step.after, progress=step.progress, keeps_claim=True)

    def run_again(self, changes: JsonMap, progress: Json) -> StepResult:
        """Store columns of the resource, and run the task's next step at once."""
        outcome = self._outcome(TaskState.RUNNING, changes=changes)
        after = replace(self.claim, resource=replace(self.claim.resource, **changes))
        return StepResult(after, outcome, poll_after=0.0, progress=progress, keeps_claim=True)

    def park(self, step: Park, changes: JsonMap) -> StepResult:
        """Let the task wait in the database."""
        moments = [self.claim.task.expires_at]
        moments.append(None if step.after is None else self.clock() + step.after)
        due_moments = [moment for moment in moments if moment is not None]
        values = {**changes, "progress": {"task": self.claim.task.id, "token": step.progress}}
        if self._shows_start:
            values.update(self._status_columns(Status.IN_PROGRESS, "state changed"))
        outcome = self._outcome(
            TaskState.PARKED,
            changes=values,
            **self._begun(),
            due_at=min(due_moments) if due_moments else None,
            waits_on=WaitsOn.parse(step.waits_on),
            seen=step.seen,
        )
        return StepResult(self.claim, outcome)

    def retry(
        self, error: RetryableError, *, after_success: bool = False, has_begun: bool = False
    ) -> StepResult:
        """Retry the task after a pause, or fail it if it has no retries left.

        An event shows a long pause, once for each reason: who follows the stack's events learns what it waits
        for.

        :param after_success: a step of this claim has succeeded before.  Such a failure is the first in a
            row and costs no retry: what is polled for an hour meets more of them than are allowed in a row.
        :param has_begun: the type has been called to start the action.  The service may have carried it out
            although there is no answer.  So the start is shown, and a cancel fails the resource: if it stayed
            COMPLETE with its former properties, an update back to these would leave it alone.
        """
        retries_left = self.claim.task.retries_left
        physical_id = self.claim.resource.physical_id
        is_first = after_success and not isinstance(error, StepTimedOut)
        is_over = self.claim.task.kind == TaskKind.REFRESH and isinstance(error, StepTimedOut)
        done_before = 0 if is_first else max(0, self.claim.task.attempt - 1)
        backoff = max(error.at_least, min(RETRY_MOST, RETRY_FIRST * 2 ** min(done_before, 10)))
        pause = backoff if error.after is None else error.after
        if isinstance(error, OverQuota):  # As long as each of the attempts before has met it, too.
            is_over = done_before * pause >= self.quota_wait
        if is_over or (retries_left <= 0 and not is_first):
            return self.failed(error)
        changes: dict[str, Json] = {}
        event = None
        if self.claim.task.kind != TaskKind.REFRESH:
            reason = self.secrets.redact(f"will be tried again: {error}")
            is_start = has_begun and self._shows_start
            changes = self._status_columns(Status.IN_PROGRESS, reason) if is_start else {"reason": reason}
            if pause >= SHOWN_PAUSE and reason != self.claim.resource.reason and not self._observes:
                event = self._event(Status.IN_PROGRESS, f"{reason}; next try in {pause:.0f} s", physical_id)
        if isinstance(error, StepTimedOut) or self._retries_permanent:
            changes["progress"] = None
        outcome = self._outcome(
            TaskState.PARKED,
            changes=changes,
            due_at=self.clock() + pause,
            retries_left=retries_left if is_first else retries_left - 1,
            event=event,
            **(self._begun() if has_begun else {}),
        )
        return StepResult(self.claim, outcome, timed_out=isinstance(error, StepTimedOut))

    def stopped(self) -> StepResult:
        """End a task that was asked to stop and did: its own time was over, or it was cancelled."""
        return self.retry(self._late()) if self._expired() else self._cancelled()

    def detached(self, leftover: OrphanedCreate | None) -> StepResult:
        """End a task whose step was asked to stop and did not.

        :param leftover: the resource that the step may still make; None: there is none.
        """
        text = f"the step on {self.who.host} did not stop when it was asked to"
        result = self.retry(self._late(text)) if self._expired() else self._cancelled(text)
        assert result.outcome is not None
        return replace(result, outcome=replace(result.outcome, leftover=leftover), detached=True)

    def lost_too_often(self) -> StepResult:
        """Fail a task with which too many conductors died or went silent."""
        hosts = losses.hosts(self.claim.task)
        action = action_of(self.claim.task.kind)
        text = f"{action} was running on {len(hosts)} conductors that died or went silent"
        return self.failed(PermanentError(f"{text} ({', '.join(hosts)}); it is not tried again"))

    def _expired(self) -> bool:
        expires_at = self.claim.task.expires_at
        return expires_at is not None and self.clock() >= expires_at

    def _late(self, why: str = "") -> StepTimedOut:
        text = f"{action_of(self.claim.task.kind)} timed out"
        return StepTimedOut(f"{text}: {why}" if why else text)

    def _cancelled(self, why: str = "") -> StepResult:
        if self._observes:
            return StepResult(self.claim, self._outcome(TaskState.CANCELLED))
        reason = cancelled_reason(action_of(self.claim.task.kind))
        reason = f"{reason}: {why}" if why else reason
        event = self._event(Status.FAILED, reason, self.claim.resource.physical_id)
        changes = self._status_columns(Status.FAILED, reason)
        if changes:
            changes["cancelled"] = True
        outcome = self._outcome(TaskState.CANCELLED, changes=changes, event=event, **self._begun())
        return StepResult(self.claim, outcome)

    @property
    def _retries_permanent(self) -> bool:
        return TaskDefinition.from_json(self.claim.task.definition).retries_permanent

    def failed(self, error: Exception, kept: JsonMap | None = None) -> StepResult:
        """Fail the task; a cleanup that no user would see is retried as long as it has retries left.

        :param kept: columns of what the action has made.
        """
        if self._retries_permanent and self.claim.task.retries_left > 0:
            return self.retry(RetryableError(str(error)))
        kind = error.kind if isinstance(error, PermanentError) else _kind(error)
        inside = f".{error.path}" if isinstance(error, ChildFailed) and error.path else ""
        path = f"resources.{self.claim.resource.name}{inside}"
        cause = FailureCause(*map(self.secrets.redact, (str(error), kind, path)))
        reason = str(cause)
        event = self._event(Status.FAILED, reason, self.claim.resource.physical_id)
        changes = {**(kept or {}), **self._status_columns(Status.FAILED, reason), "progress": None}
        if self.claim.task.kind == TaskKind.OBSERVE and isinstance(error, PermanentError):
            return StepResult(self.claim, self._outcome(TaskState.DONE, changes=changes, event=event))
        if self._observes:
            where = f"{self.claim.task.stack_id}/{self.claim.resource.name}"
            LOG.warning("Resource %s: its %s failed: %s", where, self.claim.task.kind, reason)
            return StepResult(self.claim, self._outcome(TaskState.DONE, changes={"progress": None}))
        if isinstance(error, ChildFailed) and error.stopped_at:
            stopped_at = f"{self.claim.resource.name}/{error.stopped_at}"
            cause = breakpoint_rules.abort_at(action_of(self.claim.task.kind), stopped_at)
        fields = {"changes": changes, "event": event, **self._why(cause)}
        failed = self._outcome(TaskState.FAILED, **fields, **self._begun())
        return StepResult(self.claim, failed, timed_out=isinstance(error, StepTimedOut))


def _kind(error: Exception) -> str:
    if isinstance(error, StepTimedOut):
        return "Timeout"
    return "ResourceFailure" if isinstance(error, StepError) else type(error).__name__
