"""The values and collaborators that all use cases share, and the start and announcement of a traversal.

An announcement is a hint to conductors, and a line in the log.
"""

import logging
import typing
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy.engine import Connection

from ..db.engine import Database
from ..db.ids import MemberId, StackId, TaskId, TraversalId
from ..db.rows import Resource, Stack
from ..db.settings import DEFAULT_SHARD_COUNT
from ..keystone.delegations import Delegations
from ..observe.logs import about, current_request
from ..resources.registry import ResourceRegistry
from ..ring.hashring import shard_of
from ..sealing.sealer import BoundSealer, Sealer
from ..settings import Seconds, setting
from ..shapes import JsonMap
from ..template.budget import json_size
from ..template.compile import Identity, Limits
from ..template.errors import TemplateError
from ..template.language import CompiledTemplate
from .planning.plan import Defaults, TraversalScope
from .planning.requests import Goal, NestedChild
from .quotas import Quotas, SoftwareLimits
from .signal_limits import SignalLimits
from .stored_resource import StoredResource, facts_of
from .tree_budget import TreeLimits

LOG = logging.getLogger(__name__)
BATCH = 16
"""Task ids in one hint: enough to make the message cheap compared with the tasks, few enough that a wide
graph spreads over all conductors."""
LARGEST_BATCH = 256
BATCHES = 64
"""Hints in which many tasks are announced."""
R = typing.TypeVar("R")


class Hints(typing.Protocol):
    """The messages that point conductors to work.

    A hint may be lost, doubled, late or out of order.
    """

    def run_tasks(self, traversal: TraversalId, task_ids: Sequence[TaskId]) -> None:
        """Cast to any one conductor; never raises for an unavailable broker: the hint is lost then."""

    def cancel(self, traversal: TraversalId, spared: Sequence[TaskId] = ()) -> None:
        """Fan out to all conductors: stop the steps of this superseded traversal.

        :param spared: tasks of it that continue, because their work is still needed.
        """

    def stop_tasks(self, member: MemberId, claims: Sequence[tuple[TaskId, int]]) -> None:
        """Cast to one conductor: stop these tasks (with attempt), which it has not answered for."""


@dataclass(frozen=True)
class Started:
    """A traversal that was committed.

    :ivar ready: tasks to announce: its own, and those of parents that the end of an empty plan has woken.
    :ivar superseded: older traversals of which tasks still run: the conductors are to stop them.
    :ivar spared: tasks of superseded traversals that continue.
    """

    stack: Stack
    ready: list[TaskId]
    superseded: Sequence[TraversalId] = ()
    spared: Sequence[TaskId] = ()


def announce(hints: Hints, ready: Mapping[TraversalId, Sequence[TaskId]]) -> None:
    """Cast hints for the tasks of some traversals, in batches.

    Many tasks make larger batches: there are enough of them for each conductor to get its share.
    """
    for traversal, task_ids in ready.items():
        size = min(LARGEST_BATCH, max(BATCH, len(task_ids) // BATCHES))
        for start in range(0, len(task_ids), size):
            hints.run_tasks(traversal, task_ids[start : start + size])


def announce_started(hints: Hints, started: Started) -> None:
    """Log and announce a committed traversal; the log's line joins the request's id and the traversal's."""
    stack = started.stack
    with about(project=stack.project_id, stack=stack.id):
        LOG.info("Stack %s (%s): %s started as trv-%s", stack.name, stack.id, stack.action, stack.traversal)
    for traversal in started.superseded:
        hints.cancel(traversal, started.spared)
    announce(hints, {stack.traversal: started.ready})


@dataclass(frozen=True)
class Compiled:
    """A goal that was compiled and passed all checks.

    :ivar identity: the stack it was compiled for.
    :ivar environment: the environment as stored: the values of hidden parameters sealed.
    :ivar parameters: parameters of the request, as stored.
    :ivar parameter_view: every parameter as the API shows it, with the pseudo parameters.
    :ivar outputs: outputs as they are stored on the stack.
    :ivar resources: number of resources, with those of nested stacks as far as they are known.
    :ivar sealer: sealer of the tree of stacks, which has sealed the hidden values.
    :ivar nested: the stacks that its resources are, by name, where the goal asks for them.
    :ivar event_sinks: names of queues, each with the seconds that a message stays there; those of a root
        stack count for its whole tree.
    :ivar note: an addition to the reason with which the stack's action begins; "": there is none.
    :ivar warnings: problems that need not keep the stack from being made; its steps find out.
    """

    identity: Identity
    template: JsonMap
    environment: JsonMap
    files: Mapping[str, str]
    parameters: JsonMap
    parameter_view: Mapping[str, str]
    outputs: JsonMap
    plan: CompiledTemplate
    sealer: BoundSealer
    resources: int = 0
    nested: Mapping[str, NestedChild] = field(default_factory=dict)
    event_sinks: Sequence[tuple[str, int]] = ()
    warnings: Sequence[TemplateError] = ()
    note: str = ""

    @property
    def size(self) -> int:
        """Return the bytes of the goal, as JSON."""
        return json_size([self.template, self.environment, dict(self.files), self.parameters])


Review = Callable[[Compiled], str]
"""Looks at a goal before anything of it is stored; returns the note for the stack's reason.

An error that it raises keeps the action from being begun.
"""


class Compiler(typing.Protocol):
    """Turns a goal into its stored form and the template to plan."""

    def compile(self, goal: Goal, identity: Identity, sealer: BoundSealer, *, tree: bool = True) -> Compiled:
        """Compile a goal and check it against the resource types.

        :param sealer: sealer of the tree of stacks to which the stack belongs.
        :param tree: whether the stacks nested in it are checked, too; False for a child, which was checked
            with its root.
        :raises TypeForbidden: the request may not use a type.
        :raises TemplateError: a part of the goal is wrong; the error says where, and the right form.
        """


@dataclass(frozen=True)
class EngineSettings:
    """Settings of the use cases.

    :ivar shard_count: number of shards with which the database was created.
    :ivar quotas: quotas of projects; None: projects have none.
    """

    shard_count: int = DEFAULT_SHARD_COUNT
    quotas: Quotas | None = None
    stack_timeout: Seconds = setting(
        "timeout",
        3600.0,
        "Seconds that a stack's action may take when the user sets no timeout.",
        least=1,
    )
    defaults: Defaults = Defaults()
    limits: Limits = Limits()
    tree: TreeLimits = TreeLimits()
    hidden_tags: Sequence[str] = setting(
        "hidden_stack_tags",
        (),
        "Tags, separated by commas, whose stacks lists omit, unless the user asks for hidden stacks, too "
        "(`--hidden`). They hide nothing else: such a stack can be shown and changed by its name.",
    )
    max_snapshots: int = setting(
        "max_snapshots",
        32,
        "Maximum number of snapshots of a stack; 0: no limit.",
        least=0,
    )
    software: SoftwareLimits = SoftwareLimits()
    signals: SignalLimits = SignalLimits()


@dataclass(frozen=True)
class EngineContext:
    """The collaborators of all use cases.  Thread-safe.

    A use case is a function that takes it first, and may be called from any thread.

    :ivar clock: seconds since the epoch, UTC, as the database has them.
    :ivar delegations: credentials of users.
    """

    database: Database
    registry: ResourceRegistry
    sealer: Sealer
    hints: Hints
    clock: Callable[[], float]
    settings: EngineSettings
    compiler: Compiler
    delegations: Delegations

    def sealer_of(self, stack: Stack) -> BoundSealer:
        """Return the sealer for all that is stored of a stack."""
        return self.sealer.of_stack(stack.project_id, stack.root_id)

    def stored_resource(self, stack: Stack, row: Resource) -> StoredResource:
        """Return a row of a stack as its type reads it."""
        return StoredResource(row, facts_of(stack), self.registry.get(row.plugin), self.sealer_of(stack).open)

    def timeout(self, timeout_mins: int | None) -> float:
        """Return the seconds that an action of a stack may take."""
        return self.settings.stack_timeout if not timeout_mins else timeout_mins * 60.0

    def scope(self, stack_id: StackId) -> TraversalScope:
        """Return a new traversal of the stack."""
        return TraversalScope(
            stack_id=stack_id,
            traversal=TraversalId(str(uuid.uuid4())),
            shard=shard_of(stack_id, self.settings.shard_count),
            ids=self.database.ids,
            now=self.clock(),
            defaults=self.settings.defaults,
            request=current_request(),
            type_timeouts=self.registry.default_timeouts,
        )

    def start_traversal(self, stack_id: StackId, start: Callable[[Connection, TraversalScope], R]) -> R:
        """Start a traversal of a stack in one transaction.

        :param start: makes the plan, with new ids each time that the transaction is run, and stores it.
        """
        scope = self.scope(stack_id)
        return self.database.write(lambda conn: start(conn, scope))
