"""Observes the stacks of a project, a page at a time, by the lists of its things."""

import functools
import logging
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...db.ids import ResourceId, StackId
from ...engine.planning.plan import TaskDefinition
from ...engine.stored_resource import outline, properties_in_clear
from ...observe.logs import about
from ...resources.contract.errors import StepError
from ...resources.contract.plugin import ResourceType
from ...resources.contract.views import StackFacts
from ...sealing.sealer import SealError
from ...sealing.secrets import Secrets
from ...template.drift import DriftPolicy
from . import metrics
from . import rows as drift
from .context import DriftServices
from .judgement import GONE, Difference, judge
from .lists import ProjectLists
from .records import Differing, DriftRecords, Observation
from .rows import DriftKind, ObservedResource, QuietStack, ResourceDrift

LOG = logging.getLogger(__name__)
STACKS = 1000
"""Stacks that one query reads."""
TOGETHER = 100
"""Stacks whose resources are read, and whose outcomes are stored, together."""
RESOURCES = 500
"""Resources that one query reads."""


@dataclass
class _Page:
    """Some stacks of a project that are observed together.

    :ivar observations: what is seen of each stack, by its id.
    :ivar stored: resources that differed at the observation before, by their ids.
    :ivar secrets: the opened secrets of each tree, by the id of its root.
    """

    observations: Mapping[StackId, Observation]
    stored: Mapping[ResourceId, ResourceDrift]
    secrets: dict[StackId, Secrets] = field(default_factory=dict)


class ProjectObserver:
    """Observes projects.  Thread-safe, for one project by one thread at a time.

    A stack is observed while it does nothing.  Its outcome is stored only if it has done nothing from before
    the lists were read until then, so that no list is older than the stack's last action.
    """

    def __init__(self, services: DriftServices, records: DriftRecords) -> None:
        self._services = services
        self._records = records
        self._unlisted: dict[str, set[ResourceId]] = {}

    @functools.cached_property
    def _types(self) -> Mapping[str, ResourceType]:
        return self._services.registry.listed

    def observe(self, project_id: str) -> None:
        """Observe all stacks of a project that do nothing, and store what differs.

        :raises Unavailable: the database does not answer.
        """
        services = self._services
        began = services.clock()
        stacks = list(self._quiet_stacks(project_id))
        unlisted = self._unlisted.setdefault(project_id, set())
        lists = ProjectLists(project_id, services, unlisted)
        with about(project=project_id):
            for start in range(0, len(stacks), TOGETHER):
                self._observe(stacks[start : start + TOGETHER], lists)
        now = services.clock()
        if not stacks:
            services.database.write(lambda conn: drift.forget_project(conn, project_id))
        services.database.write(lambda conn: drift.observed(conn, project_id, now))
        services.recorder.observe(metrics.SECONDS, value=now - began)

    def _quiet_stacks(self, project_id: str) -> Iterator[QuietStack]:
        after = (0.0, "")
        while True:
            read = functools.partial(drift.quiet_stacks, project_id=project_id, limit=STACKS, after=after)
            page = self._services.database.read(read)
            yield from page
            if len(page) < STACKS:
                return
            after = (page[-1].created_at, page[-1].id)

    def _observe(self, stacks: Sequence[QuietStack], lists: ProjectLists) -> None:
        database = self._services.database
        stack_ids = [stack.id for stack in stacks]
        stored = database.read(lambda conn: drift.differences(conn, stack_ids))
        page = _Page(
            {stack.id: Observation(stack) for stack in stacks}, {row.resource_id: row for row in stored}
        )
        for row in self._resources(stack_ids):
            self._look(row, page, lists)
        self._records.store(list(page.observations.values()), page.stored)

    def _resources(self, stack_ids: Sequence[StackId]) -> Iterator[ObservedResource]:
        after = ResourceId(0)
        plugins = sorted(self._types)
        while True:
            read = functools.partial(
                drift.to_observe, stack_ids=stack_ids, plugins=plugins, limit=RESOURCES, after=after
            )
            rows = self._services.database.read(read)
            yield from rows
            if len(rows) < RESOURCES:
                return
            after = rows[-1].id

    def _look(self, row: ObservedResource, page: _Page, lists: ProjectLists) -> None:
        """Compare a resource with its thing, and put down the outcome."""
        observation = page.observations[row.stack_id]
        definition = TaskDefinition.from_json(row.definition)
        if definition.external_id is not None:
            return  # The thing is not the stack's own: no update would change it.
        stack = observation.stack
        if stack.root_id not in page.secrets:
            sealer = self._services.sealer.of_stack(stack.project_id, stack.root_id)
            page.secrets[stack.root_id] = Secrets(sealer)
        secrets = page.secrets[stack.root_id]
        policy = DriftPolicy.of(definition.drift)
        observation.observed += 1
        outcome = "unknown"
        try:
            before = page.stored.get(row.id)
            was_gone = before is not None and before.kind is DriftKind.GONE
            difference = self._compare(row, stack, lists, policy, secrets, was_gone=was_gone)
        except (StepError, SealError) as error:
            observation.unknown[row.id] = str(error)
        except Exception:  # noqa: BLE001 - a plugin's bug hides its own resource only
            text = secrets.redact(traceback.format_exc())
            LOG.error("Drift of resource %s/%s is not known\n%s", row.stack_id, row.name, text)
            observation.unknown[row.id] = f"the type {row.plugin} cannot compare {row.name}"
        else:
            outcome = "in_sync" if difference is None else difference.kind.lower()
            if difference is not None:
                observation.differing.append(Differing(row, difference, policy))
        self._services.recorder.add(metrics.OBSERVED, outcome)

    def _compare(
        self,
        row: ObservedResource,
        stack: QuietStack,
        lists: ProjectLists,
        policy: DriftPolicy,
        secrets: Secrets,
        *,
        was_gone: bool,
    ) -> Difference | None:
        plugin = self._types[row.plugin]
        facts = StackFacts(id=stack.id, name=stack.name, project_id=stack.project_id)
        target = outline(row, facts, properties_in_clear(plugin, row.properties, secrets.open))
        remote = lists.thing(stack, plugin, target, was_gone=was_gone)
        if remote is None:
            return GONE
        reported = plugin.reported_properties(target, remote, lists.context_of(stack))
        return judge(plugin, target, row.properties, reported, policy, secrets)
