"""Stores the outcomes of observations, records what has changed since the last ones, and begins to heal."""

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy.engine import Connection

from ...db import events, notifications, resources, stacks
from ...db.ids import ResourceId
from ...db.notifications import DriftFact
from ...db.rows import Event, Resource, Stack
from ...db.states import Status
from ...engine.errors import NotUpdatable
from ...observe.logs import about
from ...resources.contract.errors import UnknownType
from ...sealing.sealer import SealError
from ...template.drift import DriftPolicy
from ...template.errors import TemplateError
from . import metrics
from . import rows as drift
from .context import DriftServices
from .judgement import Difference
from .rows import DriftState, ObservedResource, QuietStack, ResourceDrift, StackDrift

LOG = logging.getLogger(__name__)
TOGETHER = 20
"""Stacks whose rows one transaction locks."""
MOST_REASONS = 3
"""Reasons for which the state of a stack is unknown that are stored."""
ACTION = "DRIFT"
DETECTED = "DETECTED"
RESOLVED = "RESOLVED"
Heal = Callable[[Stack, Callable[[Connection], None]], bool]
"""Begins the update that repairs a stack; see engine.updates.heal_stack."""


@dataclass(frozen=True)
class Differing:
    """A resource that differs from its thing, and its policy."""

    resource: ObservedResource
    difference: Difference
    policy: DriftPolicy


@dataclass
class Observation:
    """All that is seen of one stack.

    :ivar observed: number of resources that were observed, or should have been.
    :ivar unknown: reasons why the state of resources is not known, by their ids.
    """

    stack: QuietStack
    differing: list[Differing] = field(default_factory=list)
    unknown: dict[ResourceId, str] = field(default_factory=dict)
    observed: int = 0

    def may_heal(self) -> bool:
        """Return whether one update repairs all differences, and nothing forbids it."""
        is_complete = self.stack.status == Status.COMPLETE and self.stack.action != "SUSPEND"
        may_heal = all(one.difference.may_heal(one.policy) for one in self.differing)
        return is_complete and bool(self.differing) and may_heal and not self.unknown


class _HealedLately(Exception):
    """The stack began to heal itself less than an interval ago."""


class DriftRecords:
    """Stores outcomes.  Thread-safe.

    :param interval: seconds between two observations of a stack, and least between two healings.
    :param heal: begins the update that repairs a stack; None: no stack heals itself.
    """

    def __init__(self, services: DriftServices, *, interval: float, heal: Heal | None) -> None:
        self._services = services
        self._interval = interval
        self._heal = heal

    def store(self, observations: Sequence[Observation], earlier: Mapping[ResourceId, ResourceDrift]) -> None:
        """Store the outcomes that have changed, then heal the stacks that ask for it.

        :param earlier: the resources of the stacks that differed at the observation before.
        """
        database = self._services.database
        stack_ids = [observation.stack.id for observation in observations]
        stored = database.read(lambda conn: drift.of_stacks(conn, stack_ids))
        changed = list[tuple[StackDrift, list[ResourceDrift], Observation]]()
        for observation in observations:
            old = stored.get(observation.stack.id)
            rows = [row for row in earlier.values() if row.stack_id == observation.stack.id]
            outcome, differing = self._outcome(observation, old, rows)
            is_observed = old is not None or observation.observed > 0
            if is_observed and (_essence(outcome) != _essence(old) or differing != rows):
                changed.append((outcome, differing, observation))
        for start in range(0, len(changed), TOGETHER):
            write = functools.partial(self._write, chunk=changed[start : start + TOGETHER], earlier=earlier)
            database.write(write)
        for observation in observations:
            if self._heal is not None and observation.may_heal():
                self._begin_healing(observation.stack)

    def _outcome(
        self, observation: Observation, old: StackDrift | None, earlier: Sequence[ResourceDrift]
    ) -> tuple[StackDrift, list[ResourceDrift]]:
        now = self._services.clock()
        stack = observation.stack
        since = {(row.resource_id, row.kind): row.since for row in earlier}
        differing = [
            ResourceDrift(
                one.resource.id,
                stack.id,
                one.difference.kind,
                since.get((one.resource.id, one.difference.kind), now),
                one.difference.properties,
            )
            for one in observation.differing
        ]
        # Where a service does not answer, what it said before is all that is known.
        differing += [row for row in earlier if row.resource_id in observation.unknown]
        differing.sort(key=lambda row: row.resource_id)
        state = DriftState.IN_SYNC
        if differing:
            state = DriftState.DRIFTED
        elif observation.unknown:
            state = DriftState.UNKNOWN
        reasons = sorted(set(observation.unknown.values()))[:MOST_REASONS]
        same_since = old.since if old is not None and old.state is state else now
        reason = "; ".join(reasons)
        return StackDrift(stack.id, stack.root_id, stack.traversal, state, reason, same_since), differing

    def _write(
        self,
        conn: Connection,
        chunk: Sequence[tuple[StackDrift, list[ResourceDrift], Observation]],
        earlier: Mapping[ResourceId, ResourceDrift],
    ) -> None:
        """Store outcomes of stacks that have done nothing meanwhile, and record what has changed."""
        locked = stacks.lock_each(conn, [outcome.stack_id for outcome, _, _ in chunk])
        for outcome, differing, observation in chunk:
            stack = locked.get(outcome.stack_id)
            if stack is None or stack.traversal != outcome.traversal or stack.deleted_at is not None:
                continue
            drift.store(conn, outcome, differing)
            self._record(conn, observation, differing, earlier)

    def _record(
        self,
        conn: Connection,
        observation: Observation,
        differing: Sequence[ResourceDrift],
        earlier: Mapping[ResourceId, ResourceDrift],
    ) -> None:
        """Record an event, and a notification, of each resource that begins to differ, or ends to."""
        stack = observation.stack
        remaining = {row.resource_id for row in differing}
        recorded = [
            self._event(stack, one.resource, DETECTED, one.difference.text(one.policy))
            for one in observation.differing
            if (old := earlier.get(one.resource.id)) is None
            or (old.kind, old.properties) != (one.difference.kind, one.difference.properties)
        ]
        ended = [row.resource_id for row in earlier.values() if row.stack_id == stack.id]
        rows = resources.by_ids(conn, [key for key in ended if key not in remaining])
        recorded += [
            self._event(stack, row, RESOLVED, "It is as in the template again, or was replaced")
            for row in rows.values()
        ]
        events.add_many(conn, recorded)
        notifications.about_drift(conn, stack.id, [_fact(event) for event in recorded])

    def _event(self, stack: QuietStack, row: ObservedResource | Resource, status: str, reason: str) -> Event:
        services = self._services
        return Event.at_resource(
            row,
            (ACTION, status),
            reason,
            services.clock(),
            conductor=services.host,
            has_sinks=stack.has_sinks,
        )

    def _begin_healing(self, seen: QuietStack) -> None:
        assert self._heal is not None
        database = self._services.database
        now = self._services.clock()

        def take(conn: Connection) -> None:
            if not drift.take_healing(conn, seen.id, now, now - self._interval):
                raise _HealedLately

        stack = database.read(lambda conn: stacks.get(conn, seen.id))
        if stack.traversal != seen.traversal:
            return
        with about(stack=stack.id):
            try:
                if self._heal(stack, take):
                    self._services.recorder.add(metrics.HEALED)
                    LOG.info("Stack %s (%s) has drifted, healing it by an update", stack.name, stack.id)
            except _HealedLately:
                LOG.info("Stack %s (%s) has drifted, and was healed lately", stack.name, stack.id)
            except (TemplateError, UnknownType, NotUpdatable, SealError) as error:
                LOG.warning("Healing stack %s (%s) failed: %s", stack.name, stack.id, error)


def _essence(outcome: StackDrift | None) -> tuple[object, ...] | None:
    """Return the part of an outcome whose change is worth a row."""
    return None if outcome is None else (outcome.traversal, outcome.state, outcome.reason)


def _fact(event: Event) -> DriftFact:
    return DriftFact(
        event.uuid, event.resource_name, event.resource_type, event.physical_id, event.status, event.reason
    )
