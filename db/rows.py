"""The values of rows, and the outcomes of steps; free of SQLAlchemy, so pure code may use them.

The columns' meanings are written in ``schema/tables.py``, where each column is declared.
"""

import contextlib
import typing
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..shapes import Json, JsonMap, TypeIdentity
from .errors import DamagedRow
from .ids import (
    ContentId,
    MemberId,
    ResourceId,
    SnapshotId,
    StackId,
    TaskId,
    TraversalId,
    TraversalNumber,
    WaitsOn,
)
from .states import (
    TRANSITIONS,
    DeadlinePolicy,
    StackState,
    Standing,
    Status,
    TaskKind,
    TaskState,
    TraversalState,
)

GOAL = ("template", "environment", "files")
"""Keys of a stored goal whose values are ids of contents."""


@contextlib.contextmanager
def readable(table: str, row: Mapping[str, typing.Any]) -> Iterator[None]:
    """Surround the making of a value from a row.

    :raises DamagedRow: the row has a word, or a value, that this release does not know.
    """
    try:
        yield
    except (ValueError, TypeError) as error:
        raise DamagedRow(f"Row {row['id']} of {table} cannot be read: {error}") from error


@dataclass(frozen=True)
class FailureCause:
    """The first cause for which an action on a stack failed.

    :ivar kind: kind of the error, such as the name of its class.
    :ivar path: path of the resource that failed: ``resources.NAME…``; "" if the cause is no resource.
    :ivar message: the text of the error.
    :ivar breakpoint: the resource, ``NAME/…``, at whose breakpoint the action ended; "" if it was no
        breakpoint.
    """

    message: str
    kind: str = "ResourceFailure"
    path: str = ""
    breakpoint: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.path}: {self.message}"

    def reason(self, action: str) -> str:
        """Return the reason of a stack's failure, in Heat's words; a breakpoint's message is one."""
        return self.message if self.breakpoint else f"Resource {action} failed: {self}"


@dataclass(frozen=True, kw_only=True)
class ListedStack:
    """A stack as lists show it, without columns that may be long; see tables.py for their meanings.

    :ivar description, reason: the texts; in a list without details only their beginnings.
    """

    id: StackId
    project_id: str
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

    @property
    def state(self) -> StackState:
        """Return the action and its status."""
        return StackState(self.action, self.status)


@dataclass(frozen=True, kw_only=True)
class DetailedStack(ListedStack):
    """A stack as lists with details show it."""

    parameter_view: JsonMap = field(default_factory=dict)


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
    failure_cause: FailureCause | None = None
    parameters: JsonMap = field(default_factory=dict)
    previous: JsonMap | None = None
    outputs: JsonMap = field(default_factory=dict)
    goal_size: int = 0
    tree_resources: int = 0
    own_resources: int = 0
    excess_resources: int = 0
    abort_on_breakpoint: bool = False
    has_sinks: bool = False

    @classmethod
    def of(cls, row: JsonMap) -> "Stack":
        """Return the value of a row, without the tags."""
        with readable("stack", row):
            cause = FailureCause(**row["failure_cause"]) if row["status"] == Status.FAILED else None
            return cls(**{**row, "failure_cause": cause})


@dataclass(frozen=True)
class Resource:
    """A resource as stored; tables.py says the meanings of the columns.

    :ivar cancelled: whether its action FAILED because it was cancelled before its end.
    :ivar reinstated: whether it was replaced, and takes the place of its own replacement again; or room was
        made for a replacement that was not stored yet.
    :ivar unhealthy: whether a user has marked it unhealthy since its last action.
    """

    id: ResourceId
    stack_id: StackId
    name: str
    type: str
    plugin: TypeIdentity
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
    cancelled: bool = False
    reinstated: bool = False
    unhealthy: bool = False

    @property
    def template(self) -> str:
        """Return the name of the file that its type is; "": its type is no template."""
        return str((self.definition or {}).get("template", ""))

    @property
    def is_untouched(self) -> bool:
        """Return whether no action has begun on the resource.

        A check of it touches nothing and counts as cancelled.  A creation that has failed may have made
        something, also where nothing of it is stored.
        """
        return self.action == "INIT" or (
            self.action == "CHECK"
            and self.was_cancelled
            and self.properties is None
            and self.physical_id is None
        )

    @property
    def failed_action(self) -> str:
        """Return the action that has left the resource as it is; the check of a failed creation did nothing.

        A reference is stored when the creation is complete, or whatever completes it later.
        """
        is_check = self.action == "CHECK" and self.status == Status.FAILED
        is_unmade = is_check and self.reference_id is None and not self.is_untouched
        return "CREATE" if is_unmade else self.action

    @property
    def is_there(self) -> bool:
        """Return whether the resource was made, so that checks, suspensions and the like can act on it.

        A resource that was being deleted does not count: a cancelled deletion may yet take place, so only a
        replacement repairs it.
        """
        failed = self.failed_action in ("CREATE", "ADOPT") and self.status == Status.FAILED
        unmade = self.is_untouched or failed
        return not unmade and self.action != "DELETE"

    @property
    def was_cancelled(self) -> bool:
        """Return whether its last action was cancelled before its end."""
        return self.status == Status.FAILED and self.cancelled


class ListedResource(typing.NamedTuple):
    """A resource as lists show it: a tuple, for a list may have ten thousand; see tables.py for the meanings.

    :ivar stack_name: the name of its stack.
    :ivar definition, properties, attributes: None in a list without details.
    """

    id: ResourceId
    stack_id: StackId
    name: str
    type: str
    plugin: TypeIdentity
    action: str
    status: str
    reason: str
    created_at: float
    updated_at: float
    physical_id: str | None
    requires: Sequence[ResourceId]
    replaced_by: ResourceId | None
    stack_name: str
    definition: Json = None
    properties: Json = None
    attributes: Json = None


@dataclass(frozen=True)
class Snapshot:
    """A snapshot as stored; tables.py says the meanings of the columns."""

    id: SnapshotId
    stack_id: StackId
    name: str | None
    action: str
    status: str
    reason: str
    traversal: TraversalId
    goal: JsonMap
    tags: Sequence[str]
    created_at: float
    goal_size: int = 0

    @property
    def contents(self) -> list[ContentId]:
        """Return the ids of template, environment and files, in this order."""
        return [ContentId(self.goal[name]) for name in GOAL]


@dataclass(frozen=True, slots=True)
class Task:
    """One vertex of a traversal's graph; with slots, for there may be tens of thousands, with 31 fields each.

    :ivar pending: number of unfinished predecessors.
    :ivar spare_id: the id of a resource that the task may create: the replacement, if an update needs one, or
        the copy of the resource that a snapshot keeps.
    :ivar attempt: number of claims so far; a result counts only if it carries the latest one.
    :ivar restricted: forbidden actions of an update on the resource: update, replace.
    :ivar timeout: seconds the action may take over all its attempts' polls; None: no limit.
    :ivar inputs: resource name -> resource id, for all that the resource needs.
    :ivar hooks: breakpoints still ahead, with their options.
    :ivar hook: the breakpoint at which it is held now.
    :ivar stepped: whether the user single-steps: the task is held before it starts, even without hooks.
    :ivar finish_id: id of the traversal's row; None: no traversal counts the task.
    :ivar waits_on: the row or step that a parked task waits for; None: only for `due_at`.
    :ivar request: the id of the user's request that it belongs to; None: a duty started it.
    :ivar losses: record of the conductors that were lost with the task; see losses.py.
    """

    id: TaskId
    traversal: TraversalId
    stack_id: StackId
    kind: TaskKind
    state: TaskState
    pending: int
    shard: int
    resource_id: ResourceId
    spare_id: ResourceId | None = None
    attempt: int = 0
    member: MemberId | None = None
    ready_at: float | None = None
    claimed_at: float | None = None
    due_at: float | None = None
    expires_at: float | None = None
    stop_by: float | None = None
    timeout: float | None = None
    retries_left: int = 0
    redelivered: int = 0
    finish_id: TraversalNumber | None = None
    definition: Json = None
    standing: Standing = Standing.OWN
    restricted: Sequence[str] = ()
    inputs: Mapping[str, ResourceId] = field(default_factory=dict)
    successors: Sequence[TaskId] = ()
    waits_on: WaitsOn | None = None
    hooks: JsonMap | None = None
    hook: str | None = None
    stepped: bool = False
    request: str | None = None
    losses: Json = None

    @property
    def inherited(self) -> bool:
        """Return whether it began in a superseded traversal, and continues for a newer one."""
        return self.standing == Standing.CARRIED_OVER

    @classmethod
    def of(cls, row: Mapping[str, typing.Any]) -> "Task":
        """Return the value of a row."""
        words: dict[str, typing.Any] = {"kind": TaskKind, "state": TaskState, "standing": Standing}
        values = {name: row[name] for name in cls.__dataclass_fields__}
        if row["waits_on"] is not None:
            words["waits_on"] = WaitsOn.parse
        with readable("task", row):
            return cls(**{**values, **{name: kind(row[name]) for name, kind in words.items()}})

    @classmethod
    def while_claimed(cls, row: Mapping[str, typing.Any], member: MemberId) -> "Task":
        """Return the value of a row as it was while the member held the task, which has ended since."""
        return cls.of({**row, "state": TaskState.RUNNING, "member": member})

    def to_row(self) -> dict[str, typing.Any]:
        """Return the columns that store the value."""
        row = {name: getattr(self, name) for name in self.__dataclass_fields__}
        if self.waits_on is not None:
            row["waits_on"] = str(self.waits_on)
        return row


class ReadyTasks(dict[TraversalId, list[TaskId]]):
    """Tasks that became ready, by their traversals: to be announced by hints once that is committed."""

    def add(self, traversal: TraversalId, *task_ids: TaskId) -> None:
        """Add tasks of one traversal."""
        self.setdefault(traversal, []).extend(task_ids)

    def merge(self, other: Mapping[TraversalId, Sequence[TaskId]]) -> None:
        """Add tasks of several traversals."""
        for traversal, task_ids in other.items():
            self.add(traversal, *task_ids)


@dataclass(frozen=True)
class Traversal:
    """One attempt to bring a stack to one goal.

    :ivar id: `finish_id` of its tasks.
    :ivar action: its action on the stack; None: no action, it only brings the purge of a task.
    :ivar open_tasks: number of its tasks that are not final.
    :ivar held_tasks: number of its tasks that are held at breakpoints.
    :ivar failure: first reason; None: nothing has failed yet.
    :ivar failure_cause: the cause that the reason names.
    :ivar aborted: whether the failure is a breakpoint that ends the action, so that nothing is rolled back.
    :ivar waits_for_paused_children: whether the deadline of a nested stack that it waits for was paused.
    :ivar request: the id of the user's request that it belongs to; None: a duty started it.
    :ivar due_at: the instant from which the purge may take it; None: the traversal is running.
    """

    id: TraversalNumber
    traversal: TraversalId
    stack_id: StackId
    shard: int
    open_tasks: int
    action: str | None = None
    state: TraversalState = TraversalState.RUNNING
    held_tasks: int = 0
    failure: str | None = None
    failure_cause: FailureCause | None = None
    aborted: bool = False
    deadline_policy: DeadlinePolicy = DeadlinePolicy.PAUSES
    waits_for_paused_children: bool = False
    request: str | None = None
    due_at: float | None = None

    @property
    def may_pause(self) -> bool:
        """Return whether a task is held, here or in a nested stack, so that the deadline may pause."""
        return self.held_tasks > 0 or self.waits_for_paused_children

    @classmethod
    def of(cls, row: Mapping[str, typing.Any]) -> "Traversal":
        """Return the value of a row; not all databases have booleans."""
        words: dict[str, typing.Any] = {
            "state": TraversalState,
            "deadline_policy": DeadlinePolicy,
            "aborted": bool,
            "waits_for_paused_children": bool,
        }
        with readable("traversal", row):
            cause = None if row["failure"] is None else FailureCause(**row["failure_cause"])
            typed = {name: kind(row[name]) for name, kind in words.items()}
            return cls(**{**row, **typed, "failure_cause": cause})


class ShownResource(typing.Protocol):
    """The columns of a resource that its events show."""

    @property
    def stack_id(self) -> StackId:
        """Id of its stack."""

    @property
    def name(self) -> str:
        """Name in the template."""

    @property
    def type(self) -> str:
        """Type as the template declares it."""

    @property
    def physical_id(self) -> str | None:
        """Id of the remote object; None: there is none."""


@dataclass(frozen=True)
class Event:
    """An event of a stack or a resource.

    :ivar id: id of the row; None before it is stored.
    :ivar at: seconds since the epoch.
    :ivar attempt: the attempt of the task that recorded it; None: no task did.
    :ivar ready_at: the moment when that attempt became ready to be claimed; None: no task did.
    :ivar claimed_at: the moment when that attempt was claimed; None: no task did.
    :ivar has_sinks: the root of its stack has event sinks, which get it.  It is not stored.
    """

    stack_id: StackId
    resource_name: str
    resource_type: str
    physical_id: str | None
    action: str
    status: str
    reason: str
    at: float
    conductor: str | None = None
    attempt: int | None = None
    ready_at: float | None = None
    claimed_at: float | None = None
    properties: Json = None
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    id: int | None = None
    has_sinks: bool = False

    @classmethod
    def at_resource(
        cls,
        row: ShownResource,
        state: tuple[str, str],
        reason: str,
        at: float,
        *,
        conductor: str | None = None,
        has_sinks: bool = False,
    ) -> "Event":
        """Return an event of a resource, but one of a task.

        :param state: the action and the status that it shows.
        """
        action, status = state
        return cls(
            stack_id=row.stack_id,
            resource_name=row.name,
            resource_type=row.type,
            physical_id=row.physical_id,
            action=action,
            status=status,
            reason=reason,
            at=at,
            conductor=conductor,
            has_sinks=has_sinks,
        )


@dataclass(frozen=True)
class OrphanedCreate:
    """A create whose step was detached: it may still make something.

    :ivar task: the task as its conductor, which still runs the step, has claimed it.
    :ivar resource: the resource with its key, and with the properties that the step got.
    """

    task: Task
    resource: Resource

    @property
    def step(self) -> WaitsOn:
        """Return the step whose end the deletion of the orphan waits for."""
        return WaitsOn.step(self.task.id, self.task.attempt)


@dataclass(frozen=True)
class Outcome:
    """The result of a step of a claimed task.

    :ivar state: the task's next state.
    :ivar changes: columns of the resource's row to set.
    :ivar remove: whether the resource's row is deleted, because a deletion has succeeded.
    :ivar due_at: the instant at which a duty attends to the task next, for states that are not final.
    :ivar waits_on: the row or step that a PARKED task waits for; see `resources.steps.Park`.
    :ivar seen: the generation of a resource's metadata that the step saw, for a task PARKED on that resource.
    :ivar reason: the reason that the stack shows, for FAILED.
    :ivar cause: the cause that the reason names, for FAILED.
    :ivar hook: the breakpoint of a HELD task.
    :ivar aborts: whether a breakpoint ends the stack's action, for FAILED.
    :ivar begun: the event of the action's start, where only the step could find that it starts.
    :ivar event: the event of the action's end.
    :ivar copy: columns to set of a snapshot's copy of the resource, with the copy's id as ``row_id``.
    :ivar leftover: the create of a step that did not stop, and may still make something; recorded if the task
        is final.
    :ivar successors: ids of the task's successors, as its claim knew them; it may have more.
    :ivar replacement: the new resource that replaces `resource_id`, and with whose creation a READY or HELD
        task continues.
    """

    task_id: TaskId
    attempt: int
    state: TaskState
    resource_id: ResourceId
    changes: JsonMap = field(default_factory=dict)
    remove: bool = False
    due_at: float | None = None
    waits_on: WaitsOn | None = None
    seen: int = 0
    retries_left: int | None = None
    reason: str | None = None
    cause: FailureCause | None = None
    hook: str | None = None
    aborts: bool = False
    begun: Event | None = None
    event: Event | None = None
    replacement: Resource | None = None
    copy: JsonMap = field(default_factory=dict)
    leftover: OrphanedCreate | None = None
    successors: Sequence[TaskId] = ()

    def __post_init__(self) -> None:
        if self.state not in TRANSITIONS[TaskState.RUNNING]:
            raise ValueError(f"a running task never becomes {self.state}")
        if (self.state == TaskState.HELD) != (self.hook is not None):
            raise ValueError("a task is held at a breakpoint")
