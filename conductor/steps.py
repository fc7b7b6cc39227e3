"""One step of one claimed task: call the plugin, and say what is to be stored."""

import logging
import threading
import typing
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ..db.claims import Claim, Claimant, resource_event
from ..db.commits import Outcome
from ..db.engine import Database
from ..db.sealing import Sealer, SealError
from ..db.states import Status, TaskKind, TaskState
from ..resources.catalogue import Catalogue
from ..resources.contract import Park, Poll, ResourceType, StackFacts, Step, Target
from ..resources.errors import Cancelled, Final, PropertyError, StepError, TryAgain, UnknownType
from ..resources.properties import changed, resolve_properties, resolve_stored
from ..template.errors import TemplateError
from ..template.residual import evaluate, is_deferred, partial
from ..traversal.definition import TaskDefinition
from .lookup import ClaimLookup, SealedLookup, open_sealed, seal_value, stored_properties
from .work import StepWork

LOG = logging.getLogger(__name__)
Json = typing.Any

RETRY_FIRST = 1.0
RETRY_MOST = 60.0


@dataclass(frozen=True)
class StepResult:
    """What a step came to.

    :ivar claim: with the resource as it is after the step, for the next look.
    :ivar outcome: to be stored; None: nothing has changed, only look again.
    :ivar look_after: seconds until the next look, for a task that this conductor keeps.
    :ivar progress: token for that look.
    """

    claim: Claim
    outcome: Outcome | None
    look_after: float | None = None
    progress: Json = None


class StepRunner:
    """Runs steps; holds no state, so that all threads of the pool share it.

    :param api_url: root under which signals reach the API.
    """

    def __init__(
        self,
        *,
        catalogue: Catalogue,
        sealer: Sealer,
        database: Database,
        clock: Callable[[], float],
        api_url: str,
    ) -> None:
        self._catalogue = catalogue
        self._sealer = sealer
        self._database = database
        self._clock = clock
        self._api_url = api_url

    def run(self, claim: Claim, progress: Json, stop: threading.Event, who: Claimant) -> StepResult:
        """Do the next step of the claim.  Called in a thread of the pool; never raises.

        :param progress: the token to look with; None: what is stored, or start if nothing is.
        """
        work = StepWork(claim, database=self._database, clock=self._clock, stop=stop, api_url=self._api_url)
        attempt = _Attempt(claim, who, self._clock)
        try:
            return self._run(claim, progress, work, attempt)
        except TryAgain as error:
            return attempt.again(error)
        except Cancelled:
            return attempt.cancelled()
        except (StepError, PropertyError, TemplateError, SealError, UnknownType) as error:
            return attempt.failed(error)
        except Exception as error:  # top of a thread: a plugin's bug fails its resource, not the conductor
            LOG.exception("Resource %s of stack %s: a step broke", claim.resource.name, claim.task.stack_id)
            return attempt.failed(error)

    def cancelled(self, claim: Claim, who: Claimant) -> StepResult:
        """What a task comes to that is stopped between two looks."""
        return _Attempt(claim, who, self._clock).cancelled()

    def _run(self, claim: Claim, progress: Json, work: StepWork, attempt: "_Attempt") -> StepResult:
        expires_at = claim.task.expires_at
        if expires_at is not None and self._clock() >= expires_at:
            raise Final(f"{claim.task.kind.upper()} timed out", kind="Timeout")
        work.checkpoint()
        if progress is None and claim.begun:
            progress = claim.resource.progress["token"]
        definition = TaskDefinition.from_json(claim.task.definition)
        if claim.task.kind == TaskKind.DELETE and definition.retain:
            return attempt.deleted()
        plugin = self._catalogue.get(claim.resource.plugin)
        if claim.task.kind == TaskKind.DELETE and self._never_made(claim, plugin):
            return attempt.deleted()
        target, stored = self._target(claim, plugin, definition)
        if progress is None:
            target = _adopted(plugin, claim, target, work)
        step = _call(plugin, claim.task.kind, target, progress, work)
        if isinstance(step, Poll) and progress is not None and _nothing_new(step, progress):
            return StepResult(claim, None, look_after=step.after, progress=step.progress)
        after = replace(
            target,
            physical_id=step.physical_id if step.physical_id is not None else target.physical_id,
            data=step.data if step.data is not None else target.data,
        )
        return self._result(plugin, step, after, stored, attempt)

    def _target(
        self, claim: Claim, plugin: ResourceType, definition: TaskDefinition
    ) -> tuple[Target, dict[str, Json]]:
        """The resource as the step sees it, and the columns that record what it was given."""
        resource, lookup = claim.resource, ClaimLookup(claim, self._sealer)
        schema = plugin.properties_schema
        before = self._properties_before(claim, plugin)
        stored: dict[str, Json] = {}
        properties, metadata = before, resource.metadata or {}
        if claim.task.kind in (TaskKind.CREATE, TaskKind.UPDATE):
            kept = partial(definition.properties, SealedLookup(claim, self._sealer))
            secret = {name for name, value in kept.items() if is_deferred(value)}
            properties = resolve_properties(schema, evaluate(definition.properties, lookup), secret)
            plugin.validate(properties)
            stored = {"definition": claim.task.definition, "properties": kept}
            if stored["definition"] == resource.definition:
                del stored["definition"]
            if resource.metadata is None:
                metadata = evaluate(definition.metadata, lookup)
                stored["metadata"] = partial(definition.metadata, SealedLookup(claim, self._sealer))
        target = Target(
            id=resource.id,
            name=resource.name,
            type=resource.plugin,
            stack=StackFacts(id=claim.task.stack_id, name=claim.stack_name, tenant=claim.tenant),
            properties=properties,
            previous=before if claim.task.kind == TaskKind.UPDATE else {},
            key=_key(claim),
            physical_id=resource.physical_id,
            metadata=metadata,
            data=open_sealed(resource.data, self._sealer) or {},
        )
        return target, stored

    def _properties_before(self, claim: Claim, plugin: ResourceType) -> Mapping[str, Json]:
        """The properties that were last given to the plugin.

        A creation of which nothing was stored may yet have made something: what it was given follows from
        its definition again, for all it refers to is still there.
        """
        resource, schema = claim.resource, plugin.properties_schema
        if resource.properties is None and claim.task.kind == TaskKind.DELETE:
            begun_with = TaskDefinition.from_json(resource.definition).properties
            kept = partial(begun_with, SealedLookup(claim, self._sealer))
            secret = {name for name, value in kept.items() if is_deferred(value)}
            return resolve_properties(schema, evaluate(begun_with, ClaimLookup(claim, self._sealer)), secret)
        return resolve_stored(schema, stored_properties(resource.properties, self._sealer))

    def _never_made(self, claim: Claim, plugin: ResourceType) -> bool:
        """Whether the creation failed before the plugin was called: what it refers to cannot be resolved."""
        if claim.resource.properties is not None or claim.resource.physical_id is not None:
            return False
        try:
            self._properties_before(claim, plugin)
        except (Final, PropertyError, TemplateError):
            return True
        return False

    def _result(
        self, plugin: ResourceType, step: Step, target: Target, stored: dict[str, Json], attempt: "_Attempt"
    ) -> StepResult:
        secret = any(attribute.sensitive for attribute in plugin.attributes_schema.values())
        changes = {**stored, "physical_id": target.physical_id}
        if step.data is not None:
            changes["data"] = seal_value(dict(step.data), self._sealer) if secret else dict(step.data)
        if isinstance(step, Poll):
            return attempt.looks_again(step, changes)
        if isinstance(step, Park):
            return attempt.parked(step, changes)
        if attempt.claim.task.kind == TaskKind.DELETE:
            return attempt.deleted()
        return attempt.done({**changes, **self._values(plugin, target)}, target.physical_id)

    def _values(self, plugin: ResourceType, target: Target) -> dict[str, Json]:
        """What others may refer to."""
        values = plugin.attribute_values(target)
        hidden = [name for name, item in plugin.attributes_schema.items() if item.sensitive]
        secrets = [values[name] for name in hidden if values.get(name) is not None]
        shown = {
            name: seal_value(value, self._sealer) if name in hidden else value
            for name, value in values.items()
        }
        reference = plugin.reference_id(target)
        if reference in secrets:
            reference = seal_value(reference, self._sealer)
        return {"attributes": shown, "reference_id": reference}


def _call(plugin: ResourceType, kind: TaskKind, target: Target, progress: Json, work: StepWork) -> Step:
    action = kind.value
    if progress is not None:
        look: Callable[..., Step] = getattr(plugin, f"check_{action}_complete")
        return look(target, progress, work)
    start: Callable[..., Step] = getattr(plugin, f"handle_{action}")
    if kind == TaskKind.UPDATE:
        names = changed(plugin.properties_schema, target.previous, target.properties)
        return start(target, names, work)
    return start(target, work)


def _adopted(plugin: ResourceType, claim: Claim, target: Target, work: StepWork) -> Target:
    """With the physical id of what an attempt has made that was lost before its result was stored."""
    begun_before = claim.task.kind == TaskKind.DELETE or claim.task.attempt > 1
    if target.physical_id is not None or not claim.resource.key or not begun_before:
        return target
    return replace(target, physical_id=plugin.adopt(claim.resource.key, target, work))


def _nothing_new(step: Poll, progress: Json) -> bool:
    return step.progress == progress and step.physical_id is None and step.data is None


def _key(claim: Claim) -> str:
    """The creation's key is the resource's own; other actions get one each, the same for every attempt."""
    if claim.task.kind == TaskKind.CREATE and claim.resource.key:
        return claim.resource.key
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"stoker-task-{claim.task.id}"))


@dataclass(frozen=True)
class _Attempt:
    """Makes the outcomes of one attempt."""

    claim: Claim
    who: Claimant
    clock: Callable[[], float]

    def _outcome(self, state: TaskState, **fields: typing.Any) -> Outcome:
        task = self.claim.task
        return Outcome(
            task_id=task.id,
            attempt=task.attempt,
            state=state,
            resource_id=self.claim.resource.id,
            **fields,
        )

    def _event(self, status: Status, reason: str, physical_id: str | None) -> typing.Any:
        resource = replace(self.claim.resource, physical_id=physical_id)
        return resource_event(resource, self.claim.task.kind, status, reason, self.who, self.clock())

    def _progress(self, token: Json) -> Json:
        return {"task": self.claim.task.id, "token": token}

    def done(self, changes: Mapping[str, Json], physical_id: str | None) -> StepResult:
        """The action ended well."""
        values = {**changes, "status": Status.COMPLETE, "reason": "state changed", "progress": None}
        event = self._event(Status.COMPLETE, "state changed", physical_id)
        return StepResult(self.claim, self._outcome(TaskState.DONE, changes=values, event=event))

    def deleted(self) -> StepResult:
        """The thing is gone, so is its row."""
        event = self._event(Status.COMPLETE, "state changed", self.claim.resource.physical_id)
        return StepResult(self.claim, self._outcome(TaskState.DONE, remove=True, event=event))

    def looks_again(self, step: Poll, changes: Mapping[str, Json]) -> StepResult:
        """Between two looks the task stays with this conductor."""
        values = {**changes, "progress": self._progress(step.progress)}
        outcome = self._outcome(TaskState.RUNNING, changes=values)
        after = replace(self.claim, resource=replace(self.claim.resource, **values))
        return StepResult(after, outcome, look_after=step.after, progress=step.progress)

    def parked(self, step: Park, changes: Mapping[str, Json]) -> StepResult:
        """The task waits in the database."""
        moments = [self.claim.task.expires_at]
        moments.append(None if step.after is None else self.clock() + step.after)
        known = [moment for moment in moments if moment is not None]
        outcome = self._outcome(
            TaskState.PARKED,
            changes={**changes, "progress": self._progress(step.progress)},
            due_at=min(known) if known else None,
            waits_on=step.waits_on,
            seen=step.seen,
        )
        return StepResult(self.claim, outcome)

    def again(self, error: TryAgain) -> StepResult:
        """Try again after a while, if the task may."""
        left = self.claim.task.retries_left
        if left <= 0:
            return self.failed(error)
        done_before = max(0, self.claim.task.attempt - 1)
        backoff = min(RETRY_MOST, RETRY_FIRST * 2 ** min(done_before, 10))
        outcome = self._outcome(
            TaskState.PARKED,
            changes={"reason": f"will be tried again: {error}"},
            due_at=self.clock() + (backoff if error.after is None else error.after),
            retries_left=left - 1,
        )
        return StepResult(self.claim, outcome)

    def cancelled(self) -> StepResult:
        """The step was asked to stop and did."""
        reason = f"{self.claim.task.kind.upper()} aborted"
        event = self._event(Status.FAILED, reason, self.claim.resource.physical_id)
        changes = {"status": Status.FAILED, "reason": reason}
        outcome = self._outcome(TaskState.CANCELLED, changes=changes, event=event)
        return StepResult(self.claim, outcome)

    def failed(self, error: Exception) -> StepResult:
        """The action failed for good."""
        kind = error.kind if isinstance(error, Final) else _kind(error)
        reason = f"{kind}: resources.{self.claim.resource.name}: {error}"
        event = self._event(Status.FAILED, reason, self.claim.resource.physical_id)
        changes = {"status": Status.FAILED, "reason": reason, "progress": None}
        if self.claim.resource.definition is None:
            changes["definition"] = self.claim.task.definition
        outcome = self._outcome(
            TaskState.FAILED,
            changes=changes,
            reason=f"Resource {self.claim.task.kind.upper()} failed: {reason}",
            event=event,
        )
        return StepResult(self.claim, outcome)


def _kind(error: Exception) -> str:
    return "ResourceFailure" if isinstance(error, StepError) else type(error).__name__
