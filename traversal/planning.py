"""Pure planning: from a compiled template, or from the resources there are, to tasks and edges."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..db.ids import ResourceId, StackId, TaskId, TraversalId
from ..db.resources import Resource
from ..db.states import Status, TaskKind, TaskState
from ..db.tasks import REDELIVER_AFTER, Task
from ..template.model import CompiledTemplate, ResourceDefinition
from .definition import TaskDefinition
from .edges import without_cycles


@dataclass(frozen=True)
class Defaults:
    """What holds where neither the environment nor the type says otherwise.

    :ivar timeout: seconds one action of a resource may take; None: only the stack's deadline limits it.
    :ivar retries: how often a step that may work later is tried again.
    """

    timeout: float | None = None
    retries: int = 5


@dataclass(frozen=True)
class Scope:
    """The traversal a plan is for, and where its ids begin.

    :ivar first_id: first of a reserved block of ids.
    :ivar id_count: how many they are.
    """

    stack_id: StackId
    traversal: TraversalId
    shard: int
    first_id: int
    id_count: int
    now: float
    defaults: Defaults = Defaults()


class TooFewIds(Exception):
    """Rows have come since the ids were reserved; reserve again."""


@dataclass(frozen=True)
class Plan:
    """Rows to insert.

    :ivar ready: tasks that can be claimed at once.
    :ivar finish: the traversal's last task; its `pending` is the number of the others.
    :ivar settled: ids of resource rows that need no work and go at once (deletion only).
    """

    resources: Sequence[Resource]
    tasks: Sequence[Task]
    finish: Task
    settled: Sequence[ResourceId] = ()

    @property
    def ready(self) -> list[TaskId]:
        """See the class."""
        return [task.id for task in self.tasks if task.state == TaskState.READY]


def ids_needed(count: int) -> int:
    """Ids a plan for `count` resources takes: resources, their tasks, and the finish task."""
    return 2 * count + 1


def task_ids(scope: Scope, count: int) -> tuple[list[TaskId], TaskId]:
    """Ids for so many tasks, after as many for resources, and for the finish task.

    :raises TooFewIds: fewer are reserved.
    """
    if ids_needed(count) > scope.id_count:
        raise TooFewIds
    first = scope.first_id + count
    return [TaskId(first + index) for index in range(count)], TaskId(first + count)


def finish_task(scope: Scope, finish_id: TaskId, pending: int) -> Task:
    """The traversal's last task."""
    return Task(
        id=finish_id,
        traversal=scope.traversal,
        stack_id=scope.stack_id,
        kind=TaskKind.FINISH,
        state=TaskState.WAITING,
        pending=pending,
        shard=scope.shard,
    )


def plan_create(compiled: CompiledTemplate, scope: Scope) -> Plan:
    """Tasks that create every resource, each after all it requires."""
    names = list(compiled.resources)
    rows = {name: ResourceId(scope.first_id + index) for index, name in enumerate(names)}
    ids, finish_id = task_ids(scope, len(names))
    task_of = dict(zip(names, ids, strict=True))
    successors: dict[str, list[TaskId]] = {name: [] for name in names}
    for name, definition in compiled.resources.items():
        for required in definition.requires:
            successors[required].append(task_of[name])
    return Plan(
        resources=[_new_resource(compiled.resources[name], rows, scope) for name in names],
        tasks=[
            _create_task(compiled.resources[name], task_of[name], rows, scope, finish_id, successors[name])
            for name in names
        ],
        finish=finish_task(scope, finish_id, len(names)),
    )


def _new_resource(definition: ResourceDefinition, rows: Mapping[str, ResourceId], scope: Scope) -> Resource:
    return Resource(
        id=rows[definition.name],
        stack_id=scope.stack_id,
        name=definition.name,
        type=definition.declared_type,
        plugin=definition.type,
        action="INIT",
        status=Status.COMPLETE,
        reason="",
        definition=TaskDefinition.of(definition).to_json(),
        requires=[rows[name] for name in definition.requires],
        key=str(uuid.uuid4()),
        created_at=scope.now,
        updated_at=scope.now,
    )


def _create_task(
    definition: ResourceDefinition,
    task_id: TaskId,
    rows: Mapping[str, ResourceId],
    scope: Scope,
    finish_id: TaskId,
    successors: Sequence[TaskId],
) -> Task:
    settings, pending = definition.settings, len(definition.requires)
    return Task(
        id=task_id,
        traversal=scope.traversal,
        stack_id=scope.stack_id,
        resource_id=rows[definition.name],
        kind=TaskKind.CREATE,
        state=TaskState.WAITING if pending else TaskState.READY,
        pending=pending,
        shard=scope.shard,
        due_at=None if pending else scope.now + REDELIVER_AFTER,
        timeout=settings.timeout if settings.timeout is not None else scope.defaults.timeout,
        retries_left=settings.retries if settings.retries is not None else scope.defaults.retries,
        finish_id=finish_id,
        definition=TaskDefinition.of(definition).to_json(),
        inputs={name: rows[name] for name in definition.requires},
        successors=successors,
    )


def plan_delete(existing: Sequence[Resource], awaited: Mapping[ResourceId, Task], scope: Scope) -> Plan:
    """Tasks that delete every resource, each before all that it requires.

    :param awaited: tasks of older traversals that still run on a resource; its deletion comes after them.
        The caller adds the deletion to their successors.
    """
    settled = [r.id for r in existing if r.action == "INIT" and r.id not in awaited]
    gone = set(settled)
    rows = [resource for resource in existing if resource.id not in gone]
    ids, finish_id = task_ids(scope, len(rows))
    task_of = {resource.id: task_id for resource, task_id in zip(rows, ids, strict=True)}
    names = {resource.id: resource.name for resource in rows}
    dependents = dict.fromkeys(task_of, 0)
    needs: dict[ResourceId, list[TaskId]] = {}
    required = without_cycles({r.id: [ResourceId(i) for i in r.requires] for r in rows})
    for resource in rows:
        wanted = sorted(set(required[resource.id]))
        needs[resource.id] = [task_of[i] for i in wanted]
        for i in wanted:
            dependents[i] += 1
    tasks = []
    for resource in rows:
        pending = dependents[resource.id] + (1 if resource.id in awaited else 0)
        tasks.append(
            Task(
                id=task_of[resource.id],
                traversal=scope.traversal,
                stack_id=scope.stack_id,
                resource_id=resource.id,
                kind=TaskKind.DELETE,
                state=TaskState.WAITING if pending else TaskState.READY,
                pending=pending,
                shard=scope.shard,
                due_at=None if pending else scope.now + REDELIVER_AFTER,
                timeout=scope.defaults.timeout,
                retries_left=scope.defaults.retries,
                finish_id=finish_id,
                definition=_delete_definition(resource),
                inputs=_delete_inputs(resource, names),
                successors=needs[resource.id],
            )
        )
    return Plan(resources=[], tasks=tasks, finish=finish_task(scope, finish_id, len(tasks)), settled=settled)


def _delete_inputs(resource: Resource, names: Mapping[ResourceId, str]) -> dict[str, ResourceId]:
    """What a resource refers to whose creation may have begun without leaving a trace of its properties: to
    find what it may have made, they are resolved once more."""
    if resource.properties is not None:
        return {}
    required = [ResourceId(i) for i in resource.requires]
    return {names[i]: i for i in required if i in names}


def _delete_definition(resource: Resource) -> object:
    stored = TaskDefinition.from_json(resource.definition)
    return TaskDefinition(retain=stored.deletion_policy == "Retain").to_json()
