"""Planning a traversal: from a compiled template, or from existing resources, to tasks and edges; pure.

Each task carries its breakpoints, and its definition: the part of the template that its worker needs.
"""

import functools
import typing
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...db.errors import DamagedRow
from ...db.id_source import IdSource
from ...db.ids import ResourceId, StackId, TaskId, TraversalId, TraversalNumber
from ...db.rows import Resource, Task, Traversal
from ...db.states import REDELIVER_AFTER, DeadlinePolicy, Status, TaskKind, TaskState
from ...db.work.breakpoint_rules import BreakpointHit, partition
from ...settings import Seconds, setting
from ...shapes import Json, JsonMap, StoredDefinition, TypeIdentity
from ...template.environment import Environment, settings_for
from ...template.language import CompiledTemplate, ResourceDefinition, ResourceSettings, is_template_name
from .graph import without_cycles

_CREATION = ("pre-create", "post-create")
_DELETION = ("pre-delete", "post-delete")
REACHED_BY: Mapping[TaskKind, tuple[str, ...]] = {
    TaskKind.CREATE: _CREATION,
    # An update becomes a creation where the resource has to be replaced.
    TaskKind.UPDATE: ("pre-update", "post-update", *_CREATION),
    TaskKind.DELETE: _DELETION,
    TaskKind.CLEANUP: _DELETION,
}


REFRESHING = ResourceSettings(timeout=60.0, retries=1)
"""Settings of a refresh: the stack's end waits for it, although all resources have ended."""


@dataclass(frozen=True)
class PlannedBreakpoints:
    """The breakpoints that a traversal observes.

    :ivar registry: the registry of the stack's own environment, for resources that its template does not have
        any more.
    :ivar abort: whether reaching any breakpoint ends the stack's action.
    :ivar active: whether breakpoints are observed; not in a rollback, which nobody watches.
    :ivar may_abort: whether a breakpoint may end the action; if not, the breakpoint holds it instead.  A
        deletion that was ended and is requested again must be able to complete, because it allows no update.
    """

    registry: JsonMap = field(default_factory=dict)
    abort: bool = False
    active: bool = True
    may_abort: bool = True

    def settings_of(self, name: str) -> ResourceSettings:
        """Return the environment's settings, timeout and retries too, of a resource that is deleted."""
        return settings_for(self._environment, (name,))

    @functools.cached_property
    def _environment(self) -> Environment:
        return Environment(registry=self.registry)

    def of(self, kind: TaskKind, settings: ResourceSettings) -> dict[str, Json] | None:
        """Return the breakpoints that a task of that kind reaches, with their options, as stored."""
        if not self.active:
            return None
        hooks = [hook for hook in REACHED_BY.get(kind, ()) if hook in settings.hooks]
        return {hook: self._options(settings.hook_options.get(hook, {})) for hook in hooks} or None

    def _options(self, values: JsonMap) -> dict[str, Json]:
        options = {name: value for name, value in values.items() if name != "abort"}
        aborts = self.may_abort and (self.abort or values.get("abort"))
        return {**options, "abort": True} if aborts else options


@dataclass(frozen=True)
class TaskDefinition:
    """The definition of one resource.

    :ivar type: the type that the template names; `plugin`: the type to which the environment maps it, and
        `template` the name of the file that this is, if it is a template.
    :ivar properties: properties as residuals; see template/residual.py.
    :ivar retries_permanent: a permanent failure is retried too, because no user would see it.
    :ivar requested_attributes: the attributes of a group's members that others read; see ResourceDefinition.
    :ivar retain: a deletion keeps the physical resource.
    :ivar drift: settings for drift; see template/drift.py.
    """

    type: str = ""
    plugin: TypeIdentity = TypeIdentity("")
    template: str = ""
    properties: JsonMap = field(default_factory=dict)
    metadata: Json = field(default_factory=dict)
    update_policy: JsonMap = field(default_factory=dict)
    deletion_policy: str = "Delete"
    external_id: Json = None
    description: str = ""
    retain: bool = False
    retries_permanent: bool = False
    requested_attributes: Sequence[Sequence[str | int]] = field(default_factory=list)
    drift: JsonMap = field(default_factory=dict)

    @classmethod
    def of(cls, definition: ResourceDefinition) -> "TaskDefinition":
        """Return the definition of a resource of a compiled template."""
        return cls(
            type=definition.declared_type,
            plugin=definition.type,
            template=definition.template,
            properties=definition.properties,
            metadata=definition.metadata,
            update_policy=definition.update_policy,
            deletion_policy=definition.deletion_policy,
            external_id=definition.external_id,
            description=definition.description,
            requested_attributes=[list(parts) for parts in definition.requested_attributes],
            drift=definition.settings.drift,
        )

    def to_json(self) -> StoredDefinition:
        """Return the definition as it is stored: without fields that have their default value."""
        fields = ((name, getattr(self, name), default) for name, default in _DEFAULTS.items())
        changed = {name: value for name, value, default in fields if value != default}
        return typing.cast(StoredDefinition, changed)

    @classmethod
    def from_json(cls, stored: StoredDefinition | JsonMap | None) -> "TaskDefinition":
        """Return a definition from its stored form.

        :raises DamagedRow: it has fields that this release does not know.
        """
        try:
            return cls(**(stored or {}))
        except TypeError as error:
            raise DamagedRow(f"A stored definition cannot be read: {error}") from error


_DEFAULTS: Mapping[str, Json] = vars(TaskDefinition())


def same_goal(first: JsonMap | None, second: JsonMap | None) -> bool:
    """Return whether two stored definitions say the same, whatever the address of a nested template."""
    if first == second:
        return True
    if not first or not second or "template" not in first or "template" not in second:
        return False
    return _placeless(first) == _placeless(second)


def _placeless(stored: JsonMap) -> JsonMap:
    """Return the stored definition of a nested stack without the name of its template."""
    named_by_place = is_template_name(stored.get("type", ""))
    return {
        name: value
        for name, value in stored.items()
        if name != "template" and not (name == "type" and named_by_place)
    }


def task_key(task_id: TaskId) -> str:
    """Return the idempotency key of a task's action: the same for every attempt."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"stoker-task-{task_id}"))


@dataclass
class Edges:
    """Which tasks wait for which; an edge that is added twice counts once."""

    _after: dict[TaskId, dict[TaskId, None]] = field(default_factory=dict)
    _before: dict[TaskId, int] = field(default_factory=dict)

    def add(self, first: TaskId, then: TaskId) -> None:
        """Let `then` wait for `first`."""
        successors = self._after.setdefault(first, {})
        if then not in successors:
            successors[then] = None
            self._before[then] = self._before.get(then, 0) + 1

    def after(self, task_id: TaskId) -> list[TaskId]:
        """Return the tasks that wait for this one."""
        return list(self._after.get(task_id, ()))

    def around(self, task_id: TaskId) -> tuple[int, list[TaskId]]:
        """Return how many tasks this one waits for, and the tasks that wait for this one."""
        return self._before.get(task_id, 0), list(self._after.get(task_id, ()))


@dataclass(frozen=True)
class Defaults:
    """The times of resources' actions where an environment says nothing else."""

    timeout: Seconds | None = setting(
        "resource_timeout",
        None,
        "Seconds that a resource's action may take when its environment sets no timeout; unset: as its type "
        "says, and where that says nothing, only the stack's timeout applies.",
        least=0.001,
    )
    retries: int = setting(
        "resource_retries",
        8,
        "Number of retries in a row of a step that failed with a retryable error, when the environment sets "
        "none. The pauses grow from one second to a minute: 8 survive an outage of three minutes, each "
        "further one a minute more. Fewer report a failure sooner.",
        least=0,
    )
    quota_wait: Seconds = setting(
        "quota_wait",
        60.0,
        "Seconds for which a step waits for a quota of its project, with an attempt each 20 seconds. Longer "
        "suits users who delete stacks while others wait; shorter fails these sooner. 0: no wait.",
        least=0,
    )
    held_time: str = setting(
        "held_time",
        "stands",
        "Effect on a stack's timeout while all of its unfinished resources are held at breakpoints, or wait "
        "for those.",
        choices={
            "stands": "the timeout is paused, so users can inspect the stack without haste",
            "counts": "the timeout continues, so that a forgotten stack ends",
        },
    )
    cancel_grace: Seconds = setting(
        "cancel_grace",
        30.0,
        "Seconds that a cancelled step, or one whose resource timed out, gets to end. Then the stack "
        "continues without it, and its thread is detached. Longer lets calls end by themselves, shorter "
        "lets the stack continue sooner.",
        least=0,
    )

    @property
    def deadline_policy(self) -> DeadlinePolicy:
        """Return what a stack's deadline does while all unfinished tasks are held at breakpoints."""
        return DeadlinePolicy.PAUSES if self.held_time == "stands" else DeadlinePolicy.COUNTS


@dataclass(frozen=True)
class TraversalScope:
    """The traversal that a plan is for.

    :ivar ids: makes the ids of the plan's rows.
    :ivar request: the id of the user's request that the traversal serves, if there is one.
    :ivar type_timeouts: seconds that an action may take, by the type that says so.
    :ivar last_timeout: seconds where nothing else sets a timeout; None: only the stack's deadline limits it.
    """

    stack_id: StackId
    traversal: TraversalId
    shard: int
    ids: IdSource
    now: float
    defaults: Defaults = Defaults()
    breakpoints: PlannedBreakpoints = PlannedBreakpoints()
    request: str | None = None
    type_timeouts: Mapping[str, float] = field(default_factory=dict)
    last_timeout: float | None = None


@dataclass(frozen=True)
class Plan:
    """The tasks of a traversal, and the changes that its start makes.

    :ivar resources: rows to insert.
    :ivar tasks: rows to insert.
    :ivar traversal: the row to insert; its open tasks are `tasks`.
    :ivar after: (old task, new task): the new one waits until the old one, of an older traversal, has ended.
    :ivar settled: rows to delete at once: their resources were never created.
    :ivar changes: columns to set, by row.
    :ivar spared: old tasks that are not stopped, because their work is still needed.
    :ivar stop_by: deadline of the other old tasks that run; seconds since the epoch.
    :ivar held: tasks that only a breakpoint keeps from being claimed at once, with the breakpoint.
    """

    resources: Sequence[Resource]
    tasks: Sequence[Task]
    traversal: Traversal
    after: Sequence[tuple[Task, TaskId]] = ()
    settled: Sequence[ResourceId] = ()
    changes: Mapping[ResourceId, JsonMap] = field(default_factory=dict)
    spared: Sequence[TaskId] = ()
    stop_by: float = 0.0
    held: Sequence[BreakpointHit] = ()


@dataclass(frozen=True)
class PlannedTask:
    """A task to be planned.

    :ivar plugin: the resource's type.
    :ivar inputs: the rows that the task reads, by the names of their resources.
    :ivar spare: the row of a possible replacement.
    :ivar preceding: a row whose running task comes first: the replacement of which this row takes the place.
    :ivar settings: the environment's settings of the resource.
    """

    id: TaskId
    kind: TaskKind
    row: ResourceId
    plugin: TypeIdentity
    definition: JsonMap | None = None
    inputs: Mapping[str, ResourceId] = field(default_factory=dict)
    spare: ResourceId | None = None
    preceding: ResourceId | None = None
    settings: ResourceSettings = ResourceSettings()


class PlanRows(typing.TypedDict, total=False):
    """The fields of a Plan for rows."""

    resources: typing.Required[Sequence[Resource]]
    settled: Sequence[ResourceId]
    changes: Mapping[ResourceId, JsonMap]
    spared: Sequence[TaskId]


def make_plan(
    jobs: Sequence[PlannedTask],
    edges: Edges,
    running: Mapping[ResourceId, Task],
    scope: TraversalScope,
    **rows: typing.Unpack[PlanRows],
) -> Plan:
    """Return the plan of these jobs.

    :param running: tasks of older traversals that still run on a resource; its new task comes after them.
    :param rows: the plan's fields for rows.
    """
    number = scope.ids.new(TraversalNumber)
    pairs = ((row, job.id) for job in jobs for row in (job.row, job.preceding) if row is not None)
    after = [(running[row], task_id) for row, task_id in pairs if row in running]
    late = Counter(task_id for _, task_id in after)
    tasks = [_task(job, edges, number, scope, late=late[job.id]) for job in jobs]
    at_breakpoint = [task for task in tasks if task.state == TaskState.WAITING and not task.pending]
    return Plan(
        tasks=tasks,
        traversal=Traversal(
            id=number,
            traversal=scope.traversal,
            stack_id=scope.stack_id,
            shard=scope.shard,
            open_tasks=len(jobs),
            deadline_policy=scope.defaults.deadline_policy,
            request=scope.request,
        ),
        after=after,
        stop_by=scope.now + scope.defaults.cancel_grace,
        held=partition(at_breakpoint)[1] if at_breakpoint else (),
        **rows,
    )


def _task(
    job: PlannedTask, edges: Edges, number: TraversalNumber, scope: TraversalScope, *, late: int
) -> Task:
    before, successors = edges.around(job.id)
    pending = before + late
    settings = job.settings
    defaults = scope.defaults
    # The environment knows the resource and the operator the cloud; the type's author knows neither.
    timeout = (
        settings.timeout or defaults.timeout or scope.type_timeouts.get(job.plugin) or scope.last_timeout
    )
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
        ready_at=None if pending else scope.now,
        due_at=None if pending else scope.now + REDELIVER_AFTER,
        timeout=timeout,
        retries_left=settings.retries if settings.retries is not None else defaults.retries,
        finish_id=number,
        definition=job.definition,
        restricted=sorted(settings.restricted_actions) if job.kind == TaskKind.UPDATE else (),
        inputs=job.inputs,
        successors=successors,
        hooks=scope.breakpoints.of(job.kind, settings) if settings.hooks else None,
        request=scope.request,
    )
    is_held = task.hooks and partition([task])[1]
    return replace(task, state=TaskState.WAITING, due_at=None) if is_held else task


def refresh_jobs(
    ids: IdSource,
    rows: Iterable[tuple[ResourceId, ResourceId | None]],
    jobs: Iterable[PlannedTask],
    edges: Edges,
) -> list[PlannedTask]:
    """Return tasks that read attributes again after all other tasks.

    The first of them waits for all tasks that nothing waits for, and the others wait for the first one.  So
    there are as many edges as tasks.

    :param rows: the resources to read, each with its possible replacement.
    :param jobs: all other tasks.
    """
    last = [job.id for job in jobs if not edges.after(job.id)]
    refreshes = [
        PlannedTask(
            ids.new(TaskId), TaskKind.REFRESH, row, TypeIdentity(""), spare=spare, settings=REFRESHING
        )
        for row, spare in rows
    ]
    for index, refresh in enumerate(refreshes):
        for before in last if index == 0 else [refreshes[0].id]:
            edges.add(before, refresh.id)
    return refreshes


def tasks_by_resource(tasks: Iterable[Task]) -> dict[ResourceId, Task]:
    """Return tasks by the resource that they are for."""
    return {task.resource_id: task for task in tasks}


def plan_create(compiled: CompiledTemplate, scope: TraversalScope) -> Plan:
    """Plan the creation of every resource, each after all it requires."""
    rows = {name: scope.ids.new(ResourceId) for name in compiled.resources}
    task_of = {name: scope.ids.new(TaskId) for name in compiled.resources}
    edges = Edges()
    jobs = []
    new = []
    for name, definition in compiled.resources.items():
        needed = {required: rows[required] for required in definition.requires}
        stored = TaskDefinition.of(definition).to_json()
        row = new_row(definition, stored, rows[name], scope, requires=list(needed.values()))
        new.append(row)
        jobs.append(
            PlannedTask(
                task_of[name],
                TaskKind.CREATE,
                row.id,
                row.plugin,
                row.definition,
                inputs=needed,
                settings=definition.settings,
            )
        )
        for required in definition.requires:
            edges.add(task_of[required], task_of[name])
    if compiled.refreshed:
        refreshed = [(rows[name], None) for name in compiled.refreshed]
        jobs += refresh_jobs(scope.ids, refreshed, jobs, edges)
    return make_plan(jobs, edges, {}, scope, resources=new)


def new_row(
    definition: ResourceDefinition,
    stored: StoredDefinition,
    row_id: ResourceId,
    scope: TraversalScope,
    *,
    requires: Sequence[ResourceId] = (),
    replaces: ResourceId | None = None,
) -> Resource:
    """Return the row of a resource that is not created yet.

    :param stored: its definition as it is stored.
    """
    return Resource(
        id=row_id,
        stack_id=scope.stack_id,
        name=definition.name,
        type=definition.declared_type,
        plugin=definition.type,
        action="INIT",
        status=Status.COMPLETE,
        reason="",
        definition=stored,
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

    :param running: tasks of older traversals that still run, by resource.
    :param copies: the copies of resources that snapshots keep; each is deleted before its resource.
    """
    settled = [r.id for r in existing if r.is_untouched and r.id not in running]
    deleted = set(settled)
    rows = [resource for resource in existing if resource.id not in deleted]
    task_of = {row.id: scope.ids.new(TaskId) for row in [*rows, *copies]}
    edges = Edges()
    by_name: dict[str, list[TaskId]] = {}
    for row in rows:
        by_name.setdefault(row.name, []).append(task_of[row.id])
    for copy in copies:
        for task_id in by_name.get(copy.name, ()):
            edges.add(task_of[copy.id], task_id)
    remaining = {row.id: row for row in rows}
    for row_id, required in needs_of(rows).items():
        for required_id in required:
            edges.add(task_of[row_id], task_of[required_id])
    jobs = [delete_job(task_of[row.id], TaskKind.DELETE, row, remaining, scope) for row in rows]
    jobs += [PlannedTask(task_of[copy.id], TaskKind.DELETE_SNAPSHOT, copy.id, copy.plugin) for copy in copies]
    return make_plan(jobs, edges, running, scope, resources=[], settled=settled)


def needs_of(rows: Sequence[Resource]) -> dict[ResourceId, list[ResourceId]]:
    """Return which of these rows each of them needs, without cycles."""
    return without_cycles({row.id: [ResourceId(i) for i in row.requires] for row in rows})


def is_copied(row: Resource) -> bool:
    """Return whether a copy of a resource's thing is kept when it is deleted."""
    # There may be nothing to copy of a resource whose creation failed.
    is_made = (row.failed_action, row.status) != ("CREATE", Status.FAILED)
    return is_made and TaskDefinition.from_json(row.definition).deletion_policy == "Snapshot"


def delete_job(
    task_id: TaskId,
    kind: TaskKind,
    row: Resource,
    remaining: Mapping[ResourceId, Resource],
    scope: TraversalScope,
) -> PlannedTask:
    """Return the deletion of a resource.

    A creation may have begun before its properties were stored.  To find the remote resource that it may have
    created, the deletion resolves them again, so it gets the rows that the resource refers to.

    :param remaining: the stack's resources, without those that are deleted at once.
    """
    stored = TaskDefinition.from_json(row.definition)
    definition = TaskDefinition(
        retain=stored.deletion_policy == "Retain", deletion_policy="Snapshot" if is_copied(row) else "Delete"
    ).to_json()
    required = [] if row.properties is not None else [remaining[i] for i in row.requires if i in remaining]
    # Of several rows with one name, the creation had the values of one that exists.  It comes last, and so
    # wins in `inputs`.
    required.sort(key=lambda resource: (resource.attributes is not None, resource.id))
    return PlannedTask(
        task_id,
        kind,
        row.id,
        row.plugin,
        definition,
        inputs={resource.name: resource.id for resource in required},
        settings=scope.breakpoints.settings_of(row.name),
    )
