"""Planning an update: from the existing resources and the template to tasks and edges; pure.

A resource that is known to stay the same needs neither a message nor a task.  Only a step can decide whether
another resource is updated in place or replaced, because that depends on values that are not known before.
So an UPDATE task carries the id of a possible replacement.  A CLEANUP task deletes the resource if it was
replaced, after all that depend on it use the replacement.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace

from ...db.ids import ResourceId, TaskId
from ...db.rows import Resource, Task
from ...db.states import DELETING, Status, TaskKind
from ...resources.contract.errors import UnknownType
from ...resources.contract.plugin import ResourceType
from ...resources.registry import ResourceRegistry
from ...resources.update_decision import observable, survives_failure
from ...shapes import Json, JsonMap, StoredDefinition
from ...template.language import CompiledTemplate, ResourceDefinition
from .best_existing import best_existing, goal_of
from .plan import (
    Edges,
    Plan,
    PlannedTask,
    TraversalScope,
    delete_job,
    make_plan,
    needs_of,
    new_row,
    refresh_jobs,
    same_goal,
)


class TypeFacts:
    """Facts by a type's name; nothing is known of a type that is not installed any more."""

    def __init__(self, registry: ResourceRegistry) -> None:
        self._registry = registry

    def always_replaced(self, type_name: str) -> bool:
        """Return whether every update replaces it."""
        plugin = self._get(type_name)
        return plugin is not None and plugin.always_replaced

    def always_updated(self, type_name: str) -> bool:
        """Return whether every update updates it, because only the type can see a change."""
        plugin = self._get(type_name)
        return plugin is not None and plugin.always_updated

    def nested(self, type_name: str) -> bool:
        """Return whether its resources are stacks."""
        return self._registry.is_nested(type_name)

    def stored_here(self, type_name: str) -> bool:
        """Return whether its things, such as stacks, are rows of Stoker's own."""
        return self._registry.is_stored_here(type_name)

    def decided_by_step(self, row: Resource) -> bool:
        """Return whether only a step can replace a resource that failed or is to have another type.

        The resource's type then prepares replacements, or decides whether a failed resource can be kept.
        """
        plugin = self._get(row.plugin)
        if plugin is None:
            return False
        if type(plugin).prepare_for_replace is not ResourceType.prepare_for_replace:
            return True
        survives = survives_failure(plugin, action=row.failed_action, unhealthy=row.unhealthy)
        return row.status == Status.FAILED and survives

    def observable(self, row: Resource) -> bool:
        """Return whether the resource's type can compare the resource with the remote resource."""
        plugin = self._get(row.plugin)
        return plugin is not None and observable(plugin)

    def _get(self, type_name: str) -> ResourceType | None:
        try:
            return self._registry.get(type_name)
        except UnknownType:
            return None


class StillToBeAdopted(Exception):
    """An update would change a resource whose state is unknown until it is adopted; the text names it."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Resource {name} is still to be adopted, and this update would change it: update the "
            "stack with the template and parameters that it was adopted with first, or leave the resource out"
        )


class UpdatePlanner:
    """Makes one plan.

    :param running: tasks of older traversals that still run, by resource.
    :param observing: compare each resource with the remote resource first.
    :param rolling_back: use resources again that were replaced and still exist.
    """

    def __init__(
        self,
        existing: Sequence[Resource],
        compiled: CompiledTemplate,
        running: Mapping[ResourceId, Task],
        scope: TraversalScope,
        types: TypeFacts,
        *,
        rolling_back: bool = False,
        observing: bool = False,
    ) -> None:
        self._compiled = compiled
        self._running = running
        self._scope = scope
        self._types = types
        self._observing = observing
        self._ids = scope.ids
        self._unmade = {row.id for row in existing if row.id not in running and _is_unmade(row, types)}
        self._current = best_existing(existing, compiled, running, self._unmade, rolling_back=rolling_back)
        kept_ids = {row.id for row in self._current.values()}
        self._obsolete = [row for row in existing if row.id not in kept_ids]
        self._superseded = _by_name(self._obsolete)
        self._existing = {row.id: row for row in existing}
        self._remaining = {r.id: r for r in existing if r.id not in self._unmade}
        self._restored = {row.id for row in self._current.values() if row.replaced_by is not None}
        self._rows: dict[str, ResourceId] = {}
        self._jobs: dict[str, PlannedTask] = {}
        self._firsts: dict[str, PlannedTask] = {}
        self._changed: set[str] = set()
        self._deletions: dict[ResourceId, PlannedTask] = {}
        self._new: list[Resource] = []
        self._changes: dict[ResourceId, dict[str, Json]] = {}
        self._settled: list[ResourceId] = []
        self._spared: list[TaskId] = []

    def to_carry_over(self, *, environment_changed: bool) -> frozenset[TaskId]:
        """Return the older tasks that continue because they create a resource by its new definition.

        Their progress is stored, so nothing that they have created can be lost.

        :param environment_changed: the stack has other files or another environment now.  For a nested stack
            that may mean another template, so its update supersedes its task.
        """
        return frozenset(
            task.id
            for row in self._current.values()
            if (task := self._running.get(row.id)) is not None
            and task.kind == TaskKind.CREATE
            and task.definition == goal_of(self._compiled, row.name)
            and not (environment_changed and self._types.always_updated(row.plugin))
            and row.progress is not None
            and row.progress["task"] == task.id
        )

    def plan(self) -> Plan:
        """Return the plan."""
        for definition in self._compiled.resources.values():
            self._plan_resource(definition)
        for row in self._obsolete:
            self._plan_removal(row)
        self._set_requires()
        edges = self._edges()
        jobs = [*self._firsts.values(), *self._jobs.values(), *self._deletions.values()]
        jobs += refresh_jobs(self._ids, self._refreshed(), jobs, edges)
        return make_plan(
            jobs,
            edges,
            self._running,
            self._scope,
            resources=self._new,
            changes=self._changes,
            settled=self._settled,
            spared=self._spared,
        )

    # -- the needs of each resource ----------------------------------------------------------------

    def _plan_resource(self, definition: ResourceDefinition) -> None:
        row = self._current.get(definition.name)
        goal = goal_of(self._compiled, definition.name)
        if row is not None and row.id in self._unmade:
            if _is_adoptable(row, self._types) and row.plugin == definition.type:
                if not same_goal(row.definition, goal):
                    raise StillToBeAdopted(definition.name)
                self._adopt(row, definition, goal)
                return
            self._settled.append(row.id)
            row = None
        if row is None:
            self._create(definition, goal, replaces=None)
        elif self._is_surely_replaced(row, definition):
            self._create(definition, goal, replaces=row.id)
            self._obsolete.append(row)
        elif self._is_same(row, definition, goal):
            self._rows[definition.name] = row.id
        else:
            self._update(row, definition, goal)

    def _adopt(self, row: Resource, definition: ResourceDefinition, goal: JsonMap) -> None:
        """Adopt a resource as it is, and update it after that if a resource that it refers to changes."""
        inputs = {name: self._before(name) for name in definition.requires}
        task_id = self._ids.new(TaskId)
        adoption = PlannedTask(
            task_id,
            TaskKind.ADOPT,
            row.id,
            definition.type,
            goal,
            inputs=inputs,
            settings=definition.settings,
        )
        if _refers_to_any(definition, self._changed):
            self._update(row, definition, goal)
            self._firsts[row.name] = adoption
        else:
            self._rows[row.name] = row.id
            self._jobs[row.name] = adoption

    def _before(self, name: str) -> ResourceId:
        """Return the row that a resource has before the update."""
        row = self._current.get(name)
        return self._rows[name] if row is None or row.id in self._settled else row.id

    def _is_surely_replaced(self, row: Resource, definition: ResourceDefinition) -> bool:
        """Return whether the resource is replaced for any values, so no step has to decide it."""
        if row.id in self._running or "replace" in definition.settings.restricted_actions:
            return False
        is_unusable = row.plugin != definition.type or row.status == Status.FAILED
        return is_unusable and not self._types.decided_by_step(row)

    def _is_same(self, row: Resource, definition: ResourceDefinition, goal: JsonMap) -> bool:
        return (
            same_goal(row.definition, goal)
            and row.status != Status.FAILED
            and row.id not in self._running
            and row.id not in self._restored
            and not row.reinstated
            and not self._is_observed(row)
            and not self._types.always_replaced(definition.type)
            and not self._types.always_updated(definition.type)
            and not _refers_to_any(definition, self._jobs)
            and not _is_outdated(row, definition, map(self._before, definition.requires))
        )

    def _is_observed(self, row: Resource) -> bool:
        return self._observing and row.id not in self._running and self._types.observable(row)

    def _create(
        self, definition: ResourceDefinition, goal: StoredDefinition, *, replaces: ResourceId | None
    ) -> None:
        row_id = self._ids.new(ResourceId)
        self._changed.add(definition.name)
        self._rows[definition.name] = row_id
        if replaces is not None:
            self._changes.setdefault(replaces, {})["replaced_by"] = row_id
        self._supersede_others(definition.name, row_id)
        requires = sorted(self._required(definition))
        self._new.append(new_row(definition, goal, row_id, self._scope, requires=requires, replaces=replaces))
        self._jobs[definition.name] = self._job(definition, goal, TaskKind.CREATE, row_id)

    def _supersede_others(self, name: str, by: ResourceId) -> None:
        for superseded in self._superseded.get(name, ()):
            if superseded.replaced_by is None:
                self._changes.setdefault(superseded.id, {}).setdefault("replaced_by", by)

    def _job(
        self, definition: ResourceDefinition, goal: JsonMap, kind: TaskKind, row_id: ResourceId
    ) -> PlannedTask:
        # The template's resources come in the order of their requirements, so these rows are known.
        inputs = {name: self._rows[name] for name in definition.requires}
        task_id = self._ids.new(TaskId)
        return PlannedTask(
            task_id, kind, row_id, definition.type, goal, inputs=inputs, settings=definition.settings
        )

    def _update(self, row: Resource, definition: ResourceDefinition, goal: JsonMap) -> None:
        self._rows[definition.name] = row.id
        is_redefined = not same_goal(row.definition, goal)
        if is_redefined or row.status == Status.FAILED or _refers_to_any(definition, self._changed):
            self._changed.add(definition.name)
        if row.id in self._restored:
            self._supersede_others(row.name, row.id)
            again = {"replaced_by": None, "replaces": row.replaced_by, "reinstated": True}
            self._changes.setdefault(row.id, {}).update(again)
        job = self._job(definition, goal, TaskKind.UPDATE, row.id)
        replacement = row.replaced_by if row.id in self._restored else None
        self._jobs[definition.name] = replace(job, spare=self._ids.new(ResourceId), preceding=replacement)
        if self._is_observed(row):
            observe_id = self._ids.new(TaskId)
            self._firsts[row.name] = PlannedTask(
                observe_id, TaskKind.OBSERVE, row.id, row.plugin, settings=definition.settings
            )
        old = self._running.get(row.id)
        if old is not None and _still_needed(old, goal):
            self._spared.append(old.id)
        self._delete(row, TaskKind.CLEANUP)

    def _plan_removal(self, row: Resource) -> None:
        if row.id in self._unmade:
            self._settled.append(row.id)
            return
        old = self._running.get(row.id)
        if old is not None and old.kind in DELETING:
            self._spared.append(old.id)
        self._delete(row, TaskKind.DELETE)

    def _delete(self, row: Resource, kind: TaskKind) -> None:
        self._deletions[row.id] = delete_job(self._ids.new(TaskId), kind, row, self._remaining, self._scope)

    # -- dependencies ------------------------------------------------------------------------------

    def _set_requires(self) -> None:
        """Set the requirements of each row that stays: those of the past and of the new goal.

        A row that is updated keeps its old requirements until its step has ended, because it may fail.
        """
        for name, definition in self._compiled.resources.items():
            row = self._existing.get(self._rows[name])
            if row is None:
                continue  # A new one has its requirements from the beginning.
            required = self._required(definition)
            if not required <= (previous := {ResourceId(i) for i in row.requires}):
                self._changes.setdefault(row.id, {})["requires"] = sorted(required | previous)

    def _required(self, definition: ResourceDefinition) -> set[ResourceId]:
        """Return the rows that a resource requires, and their possible replacements; all are planned."""
        required: set[ResourceId] = set()
        for name in definition.requires:
            required.add(self._rows[name])
            if (job := self._jobs.get(name)) is not None and job.spare is not None:
                required.add(job.spare)
        return required

    def _refreshed(self) -> list[tuple[ResourceId, ResourceId | None]]:
        """Return the rows to refresh, each with its possible replacement."""
        jobs = {name: self._jobs.get(name) for name in self._compiled.refreshed}
        return [(self._rows[name], None if job is None else job.spare) for name, job in jobs.items()]

    def _edges(self) -> Edges:
        """Return the edges from each task to those that wait for it."""
        edges = Edges()
        self._add_first_steps(edges)
        self._add_requirements(edges)
        self._add_deletions(edges)
        return edges

    def _add_first_steps(self, edges: Edges) -> None:
        """Put an adoption or an observation before the update of its resource."""
        for name, first in self._firsts.items():
            edges.add(first.id, self._jobs[name].id)
            if first.kind == TaskKind.ADOPT:
                self._adopt_before_change(first, self._compiled.resources[name].requires, edges)

    def _add_requirements(self, edges: Edges) -> None:
        """Put each task after those of the resources that it requires, and before their clean-ups."""
        for name, job in self._jobs.items():
            for required in self._compiled.resources[name].requires:
                if required in self._jobs:
                    edges.add(self._jobs[required].id, job.id)
                # A task reads its inputs from the row that existed, even after that one was replaced.
                if (cleanup := self._deletions.get(self._rows[required])) is not None:
                    edges.add(job.id, cleanup.id)

    def _add_deletions(self, edges: Edges) -> None:
        """Put each deletion after the task of its own resource, and after all that needed the resource."""
        for row_id, deletion in self._deletions.items():
            if (job := self._jobs.get(self._existing[row_id].name)) is not None:
                edges.add(job.id, deletion.id)
        for row_id, required in needs_of(list(self._existing.values())).items():
            above = self._deletions.get(row_id)
            moved = self._jobs.get(self._existing[row_id].name)
            for deletion in (self._deletions[needed] for needed in required if needed in self._deletions):
                for before in (above, moved):
                    if before is not None:
                        edges.add(before.id, deletion.id)

    def _adopt_before_change(self, adoption: PlannedTask, requires: Iterable[str], edges: Edges) -> None:
        """Put an adoption after the adoptions of its requirements, and before their changes."""
        for job in (jobs[name] for name in requires for jobs in (self._firsts, self._jobs) if name in jobs):
            if job.kind == TaskKind.ADOPT:
                edges.add(job.id, adoption.id)
            elif job.kind != TaskKind.OBSERVE:
                edges.add(adoption.id, job.id)


def _by_name(rows: Iterable[Resource]) -> dict[str, list[Resource]]:
    by_name: dict[str, list[Resource]] = {}
    for row in rows:
        by_name.setdefault(row.name, []).append(row)
    return by_name


def _is_outdated(row: Resource, definition: ResourceDefinition, inputs: Iterable[ResourceId]) -> bool:
    """Return whether an older update changed a resource that this one refers to, but did not reach this one.

    Until it is updated it also requires possible replacements; see `_set_requires`.
    """
    return bool(definition.references) and not set(inputs).issuperset(row.requires)


def _refers_to_any(definition: ResourceDefinition, names: Container[str]) -> bool:
    return any(reference.resource in names for reference in definition.references)


def _is_unmade(row: Resource, types: TypeFacts) -> bool:
    """Return whether no task of it has begun but an adoption that was stopped.

    A stopped adoption has changed nothing, unless a nested stack continues it.
    """
    if row.action == "ADOPT" and row.was_cancelled:
        return row.physical_id is None or not types.nested(row.plugin)
    return row.is_untouched


def _is_adoptable(row: Resource, types: TypeFacts) -> bool:
    """Return whether the row names the resource to adopt, by its id, or by data if Stoker stores it."""
    return row.physical_id is not None or bool(row.data and types.stored_here(row.plugin))


def _still_needed(old: Task, goal: JsonMap) -> bool:
    """Return whether the work of a running step is still needed.

    An adoption always is: if it were stopped the resource would have to be replaced.
    """
    same_goal = old.kind in (TaskKind.CREATE, TaskKind.UPDATE) and old.definition == goal
    return same_goal or old.kind == TaskKind.ADOPT
