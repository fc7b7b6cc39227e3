"""Planning a traversal: from a compiled template, or from existing resources, to tasks and edges; pure."""

import typing
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..db.ids import ResourceId, StackId, TaskId, TraversalId, TraversalNumber
from ..db.rows import Resource, Task, Traversal
from ..db.states import REDELIVER_AFTER, DeadlinePolicy, Status, TaskKind, TaskState
from ..db.work.breakpoint_rules import BreakpointHit, partition
from ..template.language import CompiledTemplate, ResourceDefinition, ResourceSettings
from .breakpoints import PlannedBreakpoints
from .graph import Edges, without_cycles
from .task_definition import TaskDefinition

Json = typing.Any


@dataclass(frozen=True)
class Defaults:
    """The defaults where neither the environment nor the type sets a value.

    :ivar timeout: seconds one action of a resource may take; None: only the stack's deadline limits it.
    :ivar retries: how often a failed step is retried.
    :ivar clock_stands: a stack's deadline is paused while all unfinished tasks are held at breakpoints.
    :ivar cancel_grace: seconds in which a step that is asked to stop may end.
    """

    timeout: float | None = None
    retries: int = 5
    clock_stands: bool = True
    cancel_grace: float = 30.0


@dataclass(frozen=True)
class TraversalScope:
    """The traversal that a plan is for, and the block of ids reserved for it.

    :ivar first_id: first of a reserved block of ids.
    :ivar id_count: how many they are.
    :ivar request: the id of the user's request that it serves, if there is one.
    """

    stack_id: StackId
    traversal: TraversalId
    shard: int
    first_id: int
    id_count: int
    now: float
    defaults: Defaults = Defaults()
    breakpoints: PlannedBreakpoints = PlannedBreakpoints()
    request: str | None = None


class TooFewIds(Exception):
    """Rows were added since the ids were reserved; reserve again."""


@dataclass(frozen=True)
class Plan:
    """The tasks of a traversal, and the changes that its start makes.

    :ivar resources: rows to insert.
    :ivar tasks: to be inserted.
    :ivar traversal: to be inserted; its open tasks are these.
    :ivar after: (old task, new task): the new one waits until the old one, of an older traversal, has ended.
    :ivar settled: rows to delete at once: their resources were never created.
    :ivar changes: columns to set, by row.
    :ivar spared: old tasks that are not stopped, because their work is still needed.
    :ivar stop_by: deadline of the other old tasks that run; seconds since the epoch.
    """

    resources: Sequence[Resource]
    tasks: Sequence[Task]
    traversal: Traversal
    after: Sequence[tuple[Task, TaskId]] = ()
    settled: Sequence[ResourceId] = ()
    changes: Mapping[ResourceId, Mapping[str, Json]] = field(default_factory=dict)
    spared: Sequence[TaskId] = ()
    stop_by: float = 0.0

    @property
    def ready(self) -> list[TaskId]:
        """Return the tasks that can be claimed at once."""
        return [task.id for task in self.tasks if task.state == TaskState.READY]

    @property
    def held(self) -> list[BreakpointHit]:
        """Return the tasks that only a breakpoint keeps from being claimed at once, with the breakpoint."""
        return partition(t for t in self.tasks if t.state == TaskState.WAITING and not t.pending)[1]


@dataclass(frozen=True)
class PlannedTask:
    """A task to be planned.

    :ivar inputs: see Task.
    :ivar spare: see Task.spare_id.
    :ivar settings: of the resource, from the environment.
    """

    id: TaskId
    kind: TaskKind
    row: ResourceId
    definition: Json = None
    inputs: Mapping[str, ResourceId] = field(default_factory=dict)
    spare: ResourceId | None = None
    settings: ResourceSettings = ResourceSettings()


def make_plan(
    jobs: Sequence[PlannedTask],
    edges: Edges,
    running: Mapping[ResourceId, Task],
    number: TraversalNumber,
    scope: TraversalScope,
    **rows: typing.Any,
) -> Plan:
    """Return the plan of these jobs.

    :param running: tasks of older traversals that still run on a resource; its new task comes after them.
    :param rows: the plan's fields that concern rows.
    """
    after = [(old, job.id) for job in jobs if (old := running.get(job.row)) is not None]
    late = {task_id for _, task_id in after}
    return Plan(
        tasks=[_task(job, edges, number, scope, late=job.id in late) for job in jobs],
        traversal=Traversal(
            id=number,
            traversal=scope.traversal,
            stack_id=scope.stack_id,
            shard=scope.shard,
            open_tasks=len(jobs),
            deadline_policy=DeadlinePolicy.PAUSES if scope.defaults.clock_stands else DeadlinePolicy.COUNTS,
            request=scope.request,
        ),
        after=after,
        stop_by=scope.now + scope.defaults.cancel_grace,
        **rows,
    )


def _task(
    job: PlannedTask, edges: Edges, number: TraversalNumber, scope: TraversalScope, *, late: bool
) -> Task:
    pending = edges.count_before(job.id) + late
    settings, defaults = job.settings, scope.defaults
    task = Task(
        id=job.id,
        traversal=scope.traversal,
        stack_id=scope.stack_id,
        resource_id=job.row,
        spare_id=job.spare,
        kind=job.kind,
        state=TaskState.WAITING if pending else TaskState.READY,
        pending=pending,
        shard=scope.shard,
        due_at=None if pending else scope.now + REDELIVER_AFTER,
        timeout=settings.timeout if settings.timeout is not None else defaults.timeout,
        retries_left=settings.retries if settings.retries is not None else defaults.retries,
        finish_id=number,
        definition=job.definition,
        restricted=sorted(settings.restricted_actions) if job.kind == TaskKind.UPDATE else (),
        inputs=job.inputs,
        successors=edges.after(job.id),
        hooks=scope.breakpoints.of(job.kind, settings),
        request=scope.request,
    )
    free, _ = partition([task])
    return task if free else replace(task, state=TaskState.WAITING, due_at=None)


def tasks_by_resource(found: Iterable[Task]) -> dict[ResourceId, Task]:
    """Return tasks by the resource that they are for."""
    return {ResourceId(task.resource_id): task for task in found if task.resource_id is not None}


def ids_needed(count: int) -> int:
    """Return how many ids a plan for `count` resources needs: rows, tasks, and the traversal."""
    return 2 * count + 1


def task_ids(scope: TraversalScope, count: int) -> tuple[list[TaskId], TraversalNumber]:
    """Return ids for so many tasks, after as many for resources, and for the traversal's row.

    :raises TooFewIds: fewer are reserved.
    """
    if ids_needed(count) > scope.id_count:
        raise TooFewIds
    first = scope.first_id + count
    return [TaskId(first + index) for index in range(count)], TraversalNumber(first + count)


def plan_create(compiled: CompiledTemplate, scope: TraversalScope) -> Plan:
    """Plan the creation of every resource, each after all it requires."""
    names = list(compiled.resources)
    rows = {name: ResourceId(scope.first_id + index) for index, name in enumerate(names)}
    ids, number = task_ids(scope, len(names))
    task_of, edges = dict(zip(names, ids, strict=True)), Edges()
    jobs, new = [], []
    for name, definition in compiled.resources.items():
        needed = {other: rows[other] for other in definition.requires}
        row = new_row(definition, rows[name], scope, requires=list(needed.values()))
        new.append(row)
        jobs.append(
            PlannedTask(
                task_of[name],
                TaskKind.CREATE,
                row.id,
                row.definition,
                inputs=needed,
                settings=definition.settings,
            )
        )
        for other in definition.requires:
            edges.add(task_of[other], task_of[name])
    return make_plan(jobs, edges, {}, number, scope, resources=new)


def new_row(
    definition: ResourceDefinition,
    row_id: ResourceId,
    scope: TraversalScope,
    *,
    requires: Sequence[ResourceId] = (),
    replaces: ResourceId | None = None,
) -> Resource:
    """Return the row of a resource that is not created yet."""
    return Resource(
        id=row_id,
        stack_id=scope.stack_id,
        name=definition.name,
        type=definition.declared_type,
        plugin=definition.type,
        action="INIT",
        status=Status.COMPLETE,
        reason="",
        definition=TaskDefinition.of(definition).to_json(),
        requires=requires,
        replaces=replaces,
        key=str(uuid.uuid4()),
        created_at=scope.now,
        updated_at=scope.now,
    )


def plan_delete(
    existing: Sequence[Resource],
    running: Mapping[ResourceId, Task],
    scope: TraversalScope,
    copies: Sequence[Resource] = (),
) -> Plan:
    """Plan the deletion of every resource, each before all that it requires.

    :param running: see make_plan.
    :param copies: what snapshots keep of the resources; deleted before the resource itself.
    """
    settled = [r.id for r in existing if r.action == "INIT" and r.id not in running]
    gone = set(settled)
    rows = [resource for resource in existing if resource.id not in gone]
    ids, number = task_ids(scope, len(rows) + len(copies))
    task_of = {row.id: task_id for row, task_id in zip([*rows, *copies], ids, strict=True)}
    edges = Edges()
    by_name: dict[str, list[TaskId]] = {}
    for row in rows:
        by_name.setdefault(row.name, []).append(task_of[row.id])
    for copy in copies:
        for task_id in by_name.get(copy.name, ()):
            edges.add(task_of[copy.id], task_id)
    others = {row.id: row for row in rows}
    for row_id, required in needs_of(rows).items():
        for other in required:
            edges.add(task_of[row_id], task_of[other])
    jobs = [delete_job(task_of[row.id], TaskKind.DELETE, row, others, scope) for row in rows]
    jobs += [PlannedTask(task_of[copy.id], TaskKind.DELETE_SNAPSHOT, copy.id) for copy in copies]
    return make_plan(jobs, edges, running, number, scope, resources=[], settled=settled)


def needs_of(rows: Sequence[Resource]) -> dict[ResourceId, list[ResourceId]]:
    """Return which of these rows each of them needs, without cycles."""
    return without_cycles({row.id: [ResourceId(i) for i in row.requires] for row in rows})


def delete_job(
    task_id: TaskId,
    kind: TaskKind,
    row: Resource,
    others: Mapping[ResourceId, Resource],
    scope: TraversalScope,
) -> PlannedTask:
    """Return the deletion of a resource.

    A creation may have begun before its properties were stored.  To find what it may have created, the
    deletion resolves them again, so it gets what the resource refers to.

    :param others: the stack's resources, without those that are deleted at once.
    """
    stored = TaskDefinition.from_json(row.definition)
    definition = TaskDefinition(retain=stored.deletion_policy == "Retain").to_json()
    required = [] if row.properties is not None else [others[i] for i in row.requires if i in others]
    # Of several rows with one name, the creation was given the values of one that exists.
    required.sort(key=lambda other: (other.attributes is not None, other.id))
    return PlannedTask(
        task_id,
        kind,
        row.id,
        definition,
        inputs={other.name: other.id for other in required},
        settings=scope.breakpoints.settings_of(row.name),
    )
