"""The view of the graph of a stack, and the graph as requests share it."""

import functools
import hashlib
import json
from dataclasses import dataclass

from ...db.ids import AwaitedKind, ResourceId, StackId, WaitsOn, host_of
from ...db.rows import Stack
from ...db.states import TaskState
from ...observe.instants import exact_or_none
from ...shapes import GraphView, Json, JsonMap
from .graphs import Graph, GraphResource, GraphStack, GraphTask

MOST_EDGES = 100_000
"""Edges that a graph shows at most: 10,000 resources may have many millions."""
_AWAITED = {AwaitedKind.RESOURCE: "signal", AwaitedKind.STACK: "stack"}


@dataclass(frozen=True)
class SharedGraph:
    """A graph, for whoever may see its stack.

    :ivar version: a value that differs when the tree has changed, while nothing in it is in progress.
    """

    stack: Stack
    graph: Graph
    version: tuple[object, ...]

    @functools.cached_property
    def change(self) -> str:
        """Return the change number: it differs whenever the view does, and is the same in all processes."""
        return hashlib.sha256(json.dumps(self._view, sort_keys=True).encode()).hexdigest()[:16]

    @functools.cached_property
    def _view(self) -> GraphView:
        return graph_view(self.stack, self.graph)

    @functools.cached_property
    def with_hosts(self) -> bytes:
        """Return the body for callers who may see hosts."""
        return _body(self.change, self._view)

    @functools.cached_property
    def without_hosts(self) -> bytes:
        """Return the body for all others."""
        resources = [
            {**item, "task": {k: v for k, v in item["task"].items() if k != "conductor"}}
            if item["task"]
            else item
            for item in self._view["resources"]
        ]
        return _body(self.change, {**self._view, "resources": resources})


def _body(change: str, view: JsonMap) -> bytes:
    return json.dumps({"graph": {"change": change, **view}}, separators=(",", ":")).encode("ascii")


def graph_view(stack: Stack, graph: Graph) -> GraphView:
    """Return the view of a graph, with the names of hosts."""
    names = {item.id: item.name for item in graph.resources}
    required: dict[ResourceId, list[str]] = {}
    edges = 0
    for item in graph.resources:
        for needed in item.requires:
            if needed in names and edges < MOST_EDGES:
                required.setdefault(needed, []).append(item.name)
                edges += 1
    tasks: dict[ResourceId, GraphTask] = {}
    for task in graph.tasks:  # Of two tasks at one resource the older one comes first.
        tasks.setdefault(task.resource_id, task)
    nested = {one.parent_resource_id: one.id for one in graph.stacks if one.parent_resource_id is not None}
    stack_ids = {item.stack_id for item in graph.resources}
    return {
        "stack": _stack(graph.stacks[0]) | {"project": stack.project_id},
        "nested_stacks": [_stack(one) for one in graph.stacks[1:] if one.id in stack_ids],
        "resources": [
            _resource(item, required.get(item.id, []), tasks.get(item.id), nested.get(item.id))
            for item in graph.resources
        ],
        "more_resources": graph.is_cut,
        "more_edges": edges >= MOST_EDGES,
    }


def _stack(item: GraphStack) -> dict[str, Json]:
    return {
        "id": item.id,
        "name": item.name,
        "parent": item.parent_id,
        "state": f"{item.action}_{item.status}",
        "reason": item.reason,
        "deadline": exact_or_none(item.deadline_at),
        "seconds_left": item.remaining,
        "creation_time": exact_or_none(item.created_at),
        "updated_time": exact_or_none(item.updated_at),
    }


def _resource(
    item: GraphResource, required_by: list[str], task: GraphTask | None, nested: StackId | None
) -> dict[str, Json]:
    return {
        "id": str(item.id),
        "stack": item.stack_id,
        "name": item.name,
        "type": item.type,
        "physical_resource_id": item.physical_id,
        "state": f"{item.action}_{item.status}",
        "reason": item.reason,
        "required_by": sorted(required_by),
        "nested": nested,
        "breakpoint": None if task is None else task.hook,
        "task": None if task is None else _task(task, item),
        "creation_time": exact_or_none(item.created_at),
        "updated_time": exact_or_none(item.updated_at),
    }


def _task(task: GraphTask, item: GraphResource) -> dict[str, Json]:
    running = task.state == TaskState.RUNNING
    return {
        "action": task.kind,
        "state": str(task.state),
        "attempt": task.attempt,
        "since": exact_or_none(item.updated_at if task.since is None else task.since),
        "waits_for": _awaited(task.state, task.waits_on),
        "retries_left": task.retries_left,
        "conductor": host_of(task.member) if running and task.member is not None else None,
    }


def _awaited(state: TaskState, awaited: WaitsOn | None) -> str | None:
    """Return the cause of a parked task's wait, in one word; None: it is not parked."""
    if state != TaskState.PARKED:
        return None
    return "retry" if awaited is None else _AWAITED.get(awaited.kind, "step")
