"""What all orders are carried out with."""

import functools
import typing
from collections.abc import Callable
from dataclasses import dataclass

from ..db.engine import Database
from ..db.ids import StackId
from ..db.rows import Stack
from ..keystone.delegated_auth import NO_DEFERRAL, Deferral
from ..keystone.delegations import Delegations
from ..observe.logs import current_request
from ..planning.plan import Defaults, TraversalScope
from ..planning.requests import Goal
from ..resources.registry import ResourceRegistry
from ..ring.shards import shard_of
from ..sealing.sealer import BoundSealer, Sealer
from ..template.compile import Identity, Limits
from .announce import Hints
from .compile import Compiled, compile_goal
from .signal_limits import SignalLimits
from .start import new_traversal, reserve

Json = typing.Any


@dataclass(frozen=True)
class EngineSettings:
    """:ivar stack_timeout: seconds an action of a stack may take where the user says nothing.
    :ivar shard_count: as the database was made with.
    :ivar max_snapshots: of one stack; 0: no limit.
    """

    shard_count: int
    limits: Limits = Limits()
    defaults: Defaults = Defaults()
    stack_timeout: float = 3600.0
    max_snapshots: int = 0
    signals: SignalLimits = SignalLimits()


@dataclass(frozen=True)
class EngineContext:
    """Collaborators of orders, updates and signals, and what all of them do with these.  Thread-safe."""

    database: Database
    catalogue: ResourceRegistry
    sealer: Sealer
    hints: Hints
    clock: Callable[[], float]
    settings: EngineSettings
    deferral: Deferral = NO_DEFERRAL

    def sealer_of(self, stack: Stack) -> BoundSealer:
        """Return the sealer for all that is stored of a stack."""
        return self.sealer.of_stack(stack.tenant, stack.root_id)

    def compile(self, goal: Goal, identity: Identity, sealer: BoundSealer, *, tree: bool = True) -> Compiled:
        """See compile_goal.

        :raises TemplateError: the goal is wrong.
        """
        return compile_goal(
            goal,
            identity=identity,
            catalogue=self.catalogue,
            limits=self.settings.limits,
            sealer=sealer,
            tree=tree,
        )

    def scope(self, stack_id: StackId, id_count: int) -> TraversalScope:
        """A new traversal of the stack, with a block of so many ids."""
        return TraversalScope(
            stack_id=stack_id,
            traversal=new_traversal(),
            shard=shard_of(stack_id, self.settings.shard_count),
            first_id=reserve(self.database, id_count),
            id_count=id_count,
            now=self.clock(),
            defaults=self.settings.defaults,
            request=current_request(),
        )

    @functools.cached_property
    def delegations(self) -> Delegations:
        """Credentials of users."""
        return Delegations(
            database=self.database, sealer=self.sealer, deferral=self.deferral, clock=self.clock
        )

    def timeout(self, timeout_mins: int | None) -> float:
        """Seconds an action of a stack may take."""
        return self.settings.stack_timeout if not timeout_mins else timeout_mins * 60.0
