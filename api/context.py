"""What the handlers work with."""

import typing
from collections.abc import Callable
from dataclasses import dataclass, field

from ..db.engine import Database
from ..engine.breakpoints import BreakpointOperations
from ..engine.exports import Exports
from ..engine.previews import Previews
from ..engine.signals import Signals
from ..engine.snapshots import Snapshots
from ..engine.stacks import StackOperations
from ..engine.updates import Updates
from ..engine.validate import Validation
from ..resources.registry import ResourceRegistry
from ..ring.observer import GroupStatus
from ..sealing.sealer import Sealer
from ..sealing.signal_urls import SignalAddresses
from ..template.budget import BudgetLimits
from .auth import Authenticator
from .request_log import RequestLog


@dataclass(frozen=True)
class ApiLimits:
    """:ivar body_bytes: of a request's body, at the most.
    :ivar page: entries of a list at the most, also where the user asks for more; 0: no limit.
    :ivar budget: what the documents and the shown outputs of one request may cost.
    """

    body_bytes: int = 8 * 1024 * 1024
    page: int = 1000
    budget: BudgetLimits = BudgetLimits()


@dataclass(frozen=True)
class Services:
    """Collaborators of the handlers, made in cli/.

    :ivar watch: keeps what is to be told of the requests; None: nobody looks.
    :ivar ailment: why the service cannot do its work; None: it can.
    :ivar figures: text for ``/metrics``; None: there is no such path.
    :ivar roll: who of the conductors is in their group; or why that cannot be known.
    :ivar draining: whether the service is about to end.
    """

    database: Database
    orders: StackOperations
    updates: Updates
    validation: Validation
    previews: Previews
    signals: Signals
    addresses: SignalAddresses
    snapshots: Snapshots
    exports: Exports
    breakpoints: BreakpointOperations
    catalogue: ResourceRegistry
    sealer: Sealer
    auth: Authenticator
    clock: Callable[[], float]
    limits: ApiLimits = ApiLimits()
    build: typing.Mapping[str, str] = field(default_factory=dict)
    watch: RequestLog | None = None
    ailment: Callable[[], str | None] = lambda: None
    figures: Callable[[], bytes] | None = None
    roll: Callable[[], GroupStatus | str] = lambda: "the group is not read"
    draining: Callable[[], bool] = lambda: False
