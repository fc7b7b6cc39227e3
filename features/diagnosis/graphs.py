"""Reads for the graph of a stack: its resources, their edges and tasks, in few and narrow statements."""

import typing
from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ...db import statements
from ...db.ids import MemberId, ResourceId, StackId, WaitsOn
from ...db.schema import tables
from ...db.states import FINAL, Status, TaskState

REASON = 200
"""Characters of a reason that are read."""


@dataclass(frozen=True)
class GraphStack:
    """A stack of a graph.

    :ivar parent_resource_id: id of the resource that it is; None: it is no nested stack.
    :ivar remaining: seconds left when its deadline was paused; None: the deadline is not paused.
    """

    id: StackId
    name: str
    parent_id: StackId | None
    parent_resource_id: ResourceId | None
    depth: int
    action: str
    status: str
    reason: str
    deadline_at: float | None
    remaining: float | None
    created_at: float
    updated_at: float | None


@dataclass(frozen=True)
class GraphResource:
    """A resource of a graph.

    :ivar physical_id: its id in the cloud; None: it has none yet.
    :ivar reason: its first characters.
    :ivar requires: ids of the resources that it needs.
    """

    id: ResourceId
    stack_id: StackId
    name: str
    physical_id: str | None
    type: str
    action: str
    status: str
    reason: str
    requires: Sequence[ResourceId]
    created_at: float
    updated_at: float


@dataclass(frozen=True)
class GraphTask:
    """The task that is at a resource now.

    :ivar since: the instant at which it came to its state, or was claimed; None: the instant in the row of
        its resource.
    """

    resource_id: ResourceId
    kind: str
    state: TaskState
    attempt: int
    member: MemberId | None
    since: float | None
    hook: str | None
    waits_on: WaitsOn | None
    retries_left: int


@dataclass(frozen=True)
class Graph:
    """The graph of a stack.

    :ivar stacks: its own, and those nested in it down to a level below the last one of the resources.
    :ivar is_cut: there are more resources than were to be read.
    """

    stacks: Sequence[GraphStack]
    resources: Sequence[GraphResource]
    tasks: Sequence[GraphTask]
    is_cut: bool

    @property
    def in_progress(self) -> bool:
        """Return whether anything in it is in progress."""
        return any(stack.status == Status.IN_PROGRESS for stack in self.stacks)


def last_event(conn: Connection, stack_id: StackId) -> int:
    """Return the number of the last event of a stack and of those nested in it; 0: there is none.

    It changes with each change of a tree in which nothing is in progress.  Of each stack the last entry of an
    index is read, and not all of its events.
    """
    e = tables.event.c
    tree = statements.below(stack_id).subquery("tree")
    newest = sa.select(e.id).where(e.stack_id == tree.c.id).order_by(e.id.desc())
    # A literal: PostgreSQL takes a parameter for a tenth of the rows, and may walk over all events then.
    last = newest.limit(sa.literal_column("1")).scalar_subquery()
    return int(conn.execute(sa.select(sa.func.max(last)).select_from(tree)).scalar() or 0)


def read(conn: Connection, stack_id: StackId, *, deepest: int, most: int) -> Graph:
    """Return the graph of a stack, by three statements.

    :param deepest: depth, counted from the root, of the last level whose resources are read.
    :param most: resources that are read at most; those of outer stacks come first.
    """
    stacks = _stacks(conn, stack_id, deepest, most + 1)
    rows = _resources(conn, stack_id, deepest, most + 1)
    busy = any(stack.status == Status.IN_PROGRESS for stack in stacks)
    tasks = _tasks(conn, stack_id, deepest) if busy else []
    return Graph(stacks, rows[:most], tasks, is_cut=len(rows) > most)


def _stacks(conn: Connection, stack_id: StackId, deepest: int, limit: int) -> list[GraphStack]:
    s = tables.stack
    columns = [s.c[name] for name in GraphStack.__dataclass_fields__]
    query = sa.select(*columns).where(s.c.id.in_(statements.below(stack_id, deepest + 1)))
    living = sa.or_(s.c.deleted_at.is_(None), s.c.id == stack_id)
    query = query.where(living).order_by(s.c.depth, s.c.created_at, s.c.id).limit(limit)
    rows = conn.execute(query).mappings()
    return [GraphStack(**{**row, "reason": row["reason"][:REASON]}) for row in rows]


def _resources(conn: Connection, stack_id: StackId, deepest: int, limit: int) -> list[GraphResource]:
    r = tables.resource
    s = tables.stack
    columns = [r.c[name] for name in GraphResource.__dataclass_fields__ if name != "reason"]
    query = (
        sa.select(*columns, sa.func.substr(r.c.reason, 1, REASON).label("reason"))
        .join(s, s.c.id == r.c.stack_id)
        .where(
            r.c.stack_id.in_(statements.below(stack_id, deepest)),
            r.c.replaced_by.is_(None),
            r.c.snapshot_id.is_(None),
        )
        .order_by(s.c.depth, r.c.id)
        .limit(limit)
    )
    return [GraphResource(**row) for row in conn.execute(query).mappings()]


def _tasks(conn: Connection, stack_id: StackId, deepest: int) -> list[GraphTask]:
    """Return the tasks that are neither final nor waiting for others, the oldest first."""
    t = tables.task
    s = tables.stack
    names = ("resource_id", "kind", "state", "attempt", "member", "hook", "waits_on", "retries_left")
    query = (
        sa.select(*(t.c[name] for name in (*names, "ready_at", "claimed_at")))
        .join(s, sa.and_(s.c.id == t.c.stack_id, s.c.traversal == t.c.traversal))
        .where(
            t.c.stack_id.in_(statements.below(stack_id, deepest)),
            t.c.state.not_in([*FINAL, TaskState.WAITING]),
            t.c.resource_id.is_not(None),
        )
        .order_by(t.c.id)
    )
    return [_task(row) for row in conn.execute(query).mappings()]


def _task(row: typing.Any) -> GraphTask:
    state = TaskState(row["state"])
    since = None
    if state == TaskState.RUNNING:
        since = row["claimed_at"]
    elif state == TaskState.READY:
        since = row["ready_at"]
    return GraphTask(
        resource_id=row["resource_id"],
        kind=row["kind"],
        state=state,
        attempt=row["attempt"],
        member=row["member"],
        since=since,
        hook=row["hook"],
        waits_on=None if row["waits_on"] is None else WaitsOn.parse(row["waits_on"]),
        retries_left=row["retries_left"],
    )
