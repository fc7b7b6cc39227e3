"""The values of rows: frozen, and free of SQLAlchemy, so that pure code may take and return them.

The columns' meanings are written in ``schema/tables.py``, where each column is declared.
"""

import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .ids import ContentId, MemberId, ResourceId, SnapshotId, StackId, TaskId, TraversalId
from .states import Standing, Status, TaskKind, TaskState, stopped_reason

Json = typing.Any

GOAL = ("template", "environment", "files")
"""What of a goal that is stored as JSON are ids of contents."""


@dataclass(frozen=True, kw_only=True)
class ListedStack:
    """A stack as lists show it: without what may be long; see tables.py for what the columns mean."""

    id: StackId
    tenant: str
    name: str
    action: str
    status: str
    traversal: TraversalId
    created_at: float
    root_id: StackId
    reason: str = ""
    parent_id: StackId | None = None
    depth: int = 0
    owner: str | None = None
    timeout_mins: int | None = None
    description: str = ""
    disable_rollback: bool = True
    updated_at: float | None = None
    deleted_at: float | None = None
    tags: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class DetailedStack(ListedStack):
    """A stack as lists with details show it."""

    parameter_view: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Stack(DetailedStack):
    """A stack as stored."""

    shard: int
    template_id: ContentId
    environment_id: ContentId
    files_id: ContentId
    live_name: str | None = None
    parent_resource_id: ResourceId | None = None
    deadline_at: float | None = None
    remaining: float | None = None
    rollback_at: float | None = None
    parameters: Mapping[str, Json] = field(default_factory=dict)
    previous: Mapping[str, Json] | None = None
    outputs: Mapping[str, Json] = field(default_factory=dict)
    abort_on_breakpoint: bool = False


@dataclass(frozen=True)
class Resource:
    """A resource as stored; see tables.py for what the columns mean."""

    id: ResourceId
    stack_id: StackId
    name: str
    type: str
    plugin: str
    action: str
    status: str
    reason: str
    created_at: float
    updated_at: float
    physical_id: str | None = None
    reference_id: Json = None
    definition: Json = None
    properties: Json = None
    attributes: Json = None
    metadata: Json = None
    data: Json = None
    requires: Sequence[ResourceId] = ()
    replaces: ResourceId | None = None
    replaced_by: ResourceId | None = None
    progress: Json = None
    key: str | None = None
    generation: int = 0
    snapshot_id: SnapshotId | None = None

    @property
    def is_there(self) -> bool:
        """Whether checks, suspensions and the like have something to act on: whether it was made.

        What was being deleted is not there either: a deletion that was given up may yet take place, so
        nothing makes the resource sound again but its replacement.
        """
        unmade = self.action == "INIT" or (
            self.action in ("CREATE", "ADOPT") and self.status == Status.FAILED
        )
        return not unmade and self.action != "DELETE"

    @property
    def was_stopped(self) -> bool:
        """Whether its action was stopped before its end."""
        return self.status == Status.FAILED and self.reason.startswith(stopped_reason(self.action))


@dataclass(frozen=True)
class Snapshot:
    """A snapshot as stored; see tables.py for what the columns mean."""

    id: SnapshotId
    stack_id: StackId
    name: str | None
    action: str
    status: str
    reason: str
    traversal: TraversalId
    goal: Mapping[str, Json]
    tags: Sequence[str]
    created_at: float

    @property
    def contents(self) -> list[ContentId]:
        """Template, environment and files, in this order."""
        return [ContentId(self.goal[name]) for name in GOAL]


@dataclass(frozen=True)
class Task:
    """One vertex of a traversal's graph.

    :ivar pending: unfinished predecessors; for the finish task all unfinished tasks of the traversal.
    :ivar spare_id: for an update: the id of the resource's replacement, should it need one; for a snapshot:
        of the copy that it keeps of the resource.
    :ivar attempt: grows with each claim; a result counts only if it carries the latest one.
    :ivar restricted: what an update of the resource must not do: update, replace.
    :ivar timeout: seconds the action may take over all its attempts' polls; None: no limit.
    :ivar inputs: resource name -> resource id, for all that the resource needs.
    :ivar hooks: breakpoints still ahead, with their options.
    :ivar hook: the breakpoint at which it is held now.
    :ivar stepped: it is held before it begins, whatever `hooks` says.
    :ivar held: for the finish task: how many tasks of the traversal are held.
    :ivar waits_on: what a parked task waits for; see tables.py, also for the finish task.
    :ivar request: the id of the user's request that wanted it, if one did.
    :ivar losses: see losses.py.
    """

    id: TaskId
    traversal: TraversalId
    stack_id: StackId
    kind: TaskKind
    state: TaskState
    pending: int
    shard: int
    resource_id: ResourceId | None = None
    spare_id: ResourceId | None = None
    attempt: int = 0
    member: MemberId | None = None
    claimed_at: float | None = None
    due_at: float | None = None
    expires_at: float | None = None
    stop_by: float | None = None
    timeout: float | None = None
    retries_left: int = 0
    redelivered: int = 0
    finish_id: TaskId | None = None
    definition: Json = None
    standing: Standing = Standing.OWN
    restricted: Sequence[str] = ()
    inputs: Mapping[str, ResourceId] = field(default_factory=dict)
    successors: Sequence[TaskId] = ()
    waits_on: str | None = None
    hooks: Mapping[str, Json] | None = None
    hook: str | None = None
    stepped: bool = False
    held: int = 0
    reason: str | None = None
    request: str | None = None
    losses: Json = None

    @property
    def inherited(self) -> bool:
        """It was begun by a traversal that was superseded, and goes on for another one."""
        return self.standing == Standing.CARRIED_OVER

    @classmethod
    def of(cls, row: Mapping[str, typing.Any]) -> "Task":
        """From a row of the table."""
        words = {"kind": TaskKind, "state": TaskState, "standing": Standing}
        return cls(**{**row, **{name: kind(row[name]) for name, kind in words.items()}})


COUNTS = {"clock": "counts"}
"""`hooks` of a finish task whose traversal's deadline counts on."""
