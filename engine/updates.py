"""Updates of stacks: the new goal is compiled, then committed with its plan, then announced."""

import json
import typing
from collections.abc import Callable, Mapping

from ..db import content, resources, snapshots, stacks
from ..db.ids import ContentId, SnapshotId, StackId
from ..db.rows import Resource, Stack
from ..db.states import Status
from ..planning.plan import TooFewIds
from ..planning.preview import ResourceChange, Unchangeable
from ..planning.requests import EXISTING, Goal, UpdateRequest
from ..planning.type_facts import RegisteredTypeFacts
from ..planning.update import StillToBeAdopted, update_ids_needed
from ..sealing.sealer import BoundSealer
from ..sealing.stored import StoredLookup
from ..template.compile import Identity
from ..template.errors import TemplateError
from ..template.residual import evaluate, holds_secret
from . import cancel as ending
from .change import Change, check_updatable, start_update
from .compile import Compiled
from .context import EngineContext
from .errors import Changing, NotUpdatable
from .parent_resource import child_snapshot_id
from .previews import Previews
from .restore import Restoring
from .start import Started, announce_started

Json = typing.Any
TRIES = 20
CANCELLED = "User cancelled operation"
UNCANCELLED = ("DELETE",)
ROLLED_BACK = ("CREATE", "UPDATE")


class Updates:
    """Carries out updates.  Thread-safe."""

    def __init__(self, desk: EngineContext) -> None:
        self._desk = desk
        self._types = RegisteredTypeFacts(desk.catalogue)

    def update(self, stack: Stack, request: UpdateRequest) -> None:
        """Bring the stack to a new goal, at whatever moment; committed when this returns.

        :raises TemplateError: the goal is wrong.
        :raises NotUpdatable: see change.start_update.
        :raises DelegationRefused, KeystoneAway: the stack needs a new credential and cannot get one.
        """
        self._desk.delegations.renew(stack.root_id, request.delegator)
        self._insist(stack, lambda now: self._start(now, self._compile(now, request), request, "UPDATE"))

    def restore(self, stack: Stack, snapshot_id: SnapshotId) -> None:
        """Bring the stack back to what it was when a snapshot was taken, at whatever moment.

        :raises NotFound: the stack has no such snapshot.
        :raises TemplateError: the goal of that time is wrong today.
        :raises NotUpdatable: the snapshot is not complete; or see change.start_update.
        """
        self._insist(stack, lambda now: self._restore(now, snapshot_id))

    def _restore(self, stack: Stack, snapshot_id: SnapshotId) -> Started | None:
        database, sealer = self._desk.database, self._desk.sealer_of(stack)
        found = database.read(lambda conn: snapshots.get(conn, stack.id, snapshot_id))
        if (found.action, found.status) != ("CREATE", Status.COMPLETE):
            raise NotUpdatable("Restoring incomplete snapshot is not supported")
        copies = database.read(lambda conn: resources.copies(conn, stack.id, snapshot_id))
        restoring = Restoring(self._desk.catalogue, sealer.open, self._inside)
        goal = restoring.goal(self._stored(found.goal, sealer), copies)
        compiled = self._desk.compile(goal, _identity(stack), sealer)
        return self._start(stack, compiled, UpdateRequest(goal, existing=True), "RESTORE")

    def _inside(self, kept: Resource) -> list[Resource]:
        if kept.physical_id is None or kept.key is None or not self._desk.catalogue.is_nested(kept.plugin):
            return []
        child, snapshot_id = StackId(kept.physical_id), child_snapshot_id(kept.key)
        return self._desk.database.read(lambda conn: resources.copies(conn, child, snapshot_id))

    def _insist(self, stack: Stack, start: Callable[[Stack], Started | None]) -> None:
        """Try again as long as others change the stack meanwhile."""
        for _ in range(TRIES):
            begun = start(stack)
            if begun is not None:
                announce_started(self._desk.hints, begun)
                return
            stack = self._desk.database.read(lambda conn, key=stack.id: stacks.get(conn, key))  # type: ignore[misc]
        raise Changing(f"Stack {stack.name} is being changed by others all the time; try again")

    def preview(self, stack: Stack, request: UpdateRequest, *, inside: bool = False) -> list[ResourceChange]:
        """What the update would do; nothing is stored.

        :param inside: also to the resources of the stacks inside of it.
        :raises TemplateError: the goal is wrong.
        :raises NotUpdatable: see change.check_updatable; or a property would change that never may.
        """
        check_updatable(stack)
        compiled = self._compile(stack, request)
        try:
            return Previews(self._desk).foresee(compiled, stack, converge=request.converge, inside=inside)
        except (Unchangeable, StillToBeAdopted) as error:
            raise NotUpdatable(str(error)) from error

    def roll_back(self, stack: Stack, why: str = "") -> bool:
        """Bring the stack back to its last complete goal, or to nothing if there is none; False if somebody
        else has changed it meanwhile.

        :param why: added to the stack's reason.
        :raises TemplateError: the old goal is wrong today.
        :raises NotUpdatable: see change.start_update.
        """
        goal = self._previous(stack)
        compiled = self._desk.compile(goal, _identity(stack), self._desk.sealer_of(stack))
        begun = self._start(stack, compiled, UpdateRequest(goal, existing=True), "ROLLBACK", why)
        if begun is not None:
            announce_started(self._desk.hints, begun)
        return begun is not None

    def cancel(self, stack: Stack, *, rollback: bool, by: str | None = None) -> None:
        """Stop what the stack does; with `rollback` it then goes back to its last complete goal.

        :param by: name of the user, for the stack's reason and its event.
        :raises NotUpdatable: the stack does nothing that could be cancelled.
        :raises Changing: somebody else has changed it meanwhile.
        """
        state = f"{stack.action}_{stack.status}"
        if stack.status != Status.IN_PROGRESS or stack.action in UNCANCELLED:
            raise NotUpdatable(f"Cancelling update when stack is {state} is not supported.")
        if rollback and stack.action not in ROLLED_BACK:
            raise NotUpdatable(
                f"Cancelling update when stack is {state} is not supported: {stack.action} cannot be rolled "
                "back; cancel it without rollback"
            )
        why = f"{stack.action} cancelled by {by}" if by else CANCELLED
        if not (self.roll_back(stack, why) if rollback else self._stop(stack, why)):
            raise Changing(f"Stack {stack.name} was changed by somebody else meanwhile")

    def _stop(self, stack: Stack, why: str) -> bool:
        now, grace = self._desk.clock(), self._desk.settings.defaults.cancel_grace
        done = self._desk.database.write(lambda conn: ending.stop(conn, stack, why, now=now, grace=grace))
        if done is not None:
            ending.announce_timed_out(self._desk.hints, done)
        return done is not None

    def _start(
        self, stack: Stack, compiled: Compiled, request: UpdateRequest, action: str, why: str = ""
    ) -> Started | None:
        existing = self._desk.database.read(lambda conn: len(resources.of_stack(conn, stack.id)))
        # Replacements may add rows until the stack is locked.
        needed = update_ids_needed(2 * existing, len(compiled.plan.resources))
        timeout = request.timeout_mins if request.timeout_mins is not None else stack.timeout_mins
        scope = self._desk.scope(stack.id, needed)
        columns: dict[str, object] = {"timeout_mins": timeout}
        if why:
            columns["reason"] = f"Stack {action} started: {why}"
        if request.disable_rollback is not None:
            columns["disable_rollback"] = request.disable_rollback
        if request.abort_on_breakpoint is not None:
            columns["abort_on_breakpoint"] = request.abort_on_breakpoint
        change = Change(
            stack=stack,
            compiled=compiled,
            action=action,
            converge=request.converge,
            parameter_view=compiled.parameter_view(_identity(stack)),
            deadline_at=scope.now + self._desk.timeout(timeout),
            columns=columns,
            tags=request.tags if request.tags is not None or request.existing else (),
        )
        try:
            return self._desk.database.write(lambda conn: start_update(conn, change, scope, self._types))
        except TooFewIds:
            return None

    def _compile(self, stack: Stack, request: UpdateRequest) -> Compiled:
        goal = self._merged(stack, request) if request.existing else request.goal
        compiled = self._desk.compile(goal, _identity(stack), self._desk.sealer_of(stack))
        strings = compiled.parameter_view(_identity(stack))
        fixed = [
            name
            for name, parameter in compiled.plan.parameters.items()
            if parameter.immutable and stack.parameter_view.get(name, strings[name]) != strings[name]
        ]
        if fixed:
            raise TemplateError(
                f"The following parameters are immutable and may not be updated: {', '.join(sorted(fixed))}"
            )
        return compiled

    def _content(self, key: ContentId) -> Json:
        return self._desk.database.read(lambda conn: content.get(conn, key))

    def _previous(self, stack: Stack) -> Goal:
        """The stack's last complete goal; one without resources if there is none."""
        kept = stack.previous
        if not kept:
            template = self._content(stack.template_id)
            versions = ("heat_template_version", "HeatTemplateFormatVersion")
            return Goal({name: template[name] for name in versions if name in template})
        return self._stored(kept, self._desk.sealer_of(stack))

    def _stored(self, kept: Mapping[str, Json], sealer: BoundSealer) -> Goal:
        """A goal of which the contents' ids are stored."""
        lookup = StoredLookup(sealer.open)
        return Goal(
            template=self._content(kept["template"]),
            environment=evaluate(self._content(kept["environment"]), lookup),
            files=self._content(kept["files"]),
            parameters=evaluate(kept["parameters"], lookup),
            secret=_secret(kept["parameters"]),
        )

    def _merged(self, stack: Stack, request: UpdateRequest) -> Goal:
        """The goal with what it leaves out taken from what the stack has."""
        keys = (stack.template_id, stack.environment_id, stack.files_id)
        template, environment, files = map(self._content, keys)
        goal, lookup = request.goal, StoredLookup(self._desk.sealer_of(stack).open)
        cleared = set(request.clear_parameters)
        document = dict(evaluate(environment, lookup))
        document["parameters"] = _without(document.get("parameters") or {}, cleared)
        had = _without(evaluate(stack.parameters, lookup), cleared)
        return Goal(
            template=goal.template or template,
            environment=goal.environment,
            environment_files=(EXISTING, *goal.environment_files),
            files={**files, **goal.files, EXISTING: json.dumps(document)},
            parameters={**had, **goal.parameters},
            secret=_secret(stack.parameters),
            may_use=goal.may_use,
        )


def _identity(stack: Stack) -> Identity:
    return Identity(stack.name, stack.id, stack.tenant)


def _secret(parameters: Mapping[str, Json]) -> frozenset[str]:
    """Names of parameters that are hidden, as they are stored; so they stay, whatever a template says."""
    return frozenset(name for name, value in parameters.items() if holds_secret(value))


def _without(values: Mapping[str, Json], names: set[str]) -> dict[str, Json]:
    return {name: value for name, value in values.items() if name not in names}
