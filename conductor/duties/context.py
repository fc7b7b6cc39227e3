"""The context of every duty: the collaborators and the settings of the conductor."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from ...db.engine import Database
from ...db.ids import StackId
from ...db.rows import Stack
from ...engine.context import EngineContext, Hints
from ...engine.planning.plan import Defaults
from ...observe.recorder import SILENT, Recorder
from ...shapes import Json
from ..background import Background
from ..event_queues import Post
from ..settings import ConductorSettings, StackUpkeep
from ..slice import Ring
from ..steps.endpoints import Endpoints

FIRST_SHARD = 0
"""Its owner does the work that belongs to no stack."""


@dataclass(frozen=True)
class DutySettings:
    """Settings of the duties.

    :ivar host: name of the conductor, for events.
    :ivar cancel_grace: seconds in which a step may end after a cancel.
    :ivar patience: seconds after which an absent member counts as gone, although nobody saw it leave.
    :ivar keep_deleted: seconds that deleted stacks stay visible.
    :ivar keep_events: most events of a stack; 0: no limit.
    :ivar task_losses: conductors that a task may be lost with; then the task fails.
    """

    host: str
    cancel_grace: float = Defaults.cancel_grace
    patience: float = 15.0
    keep_deleted: float = ConductorSettings.keep_deleted
    keep_events: int = StackUpkeep.keep_events
    task_losses: int = StackUpkeep.task_losses


@dataclass(frozen=True)
class DutyServices:
    """The collaborators from which the duties of features make their own.

    :ivar host: name of the conductor, for events.
    """

    context: EngineContext
    host: str
    endpoints: Endpoints
    recorder: Recorder = SILENT


@dataclass(frozen=True)
class DutyContext:
    """Collaborators of all duties.

    :ivar ring: says which shards belong to the slice of this conductor.
    :ivar hints: announces tasks that a duty has made ready.
    :ivar clock: returns the database's time.
    :ivar settings: returns the settings of this moment; the operator may change some at run time.
    :ivar roll_back: plans the rollback of a stack; False: the stack has changed meanwhile.
    :ivar revoke: revokes a credential at Keystone; see keystone.delegations.
    :ivar post: sends messages to an event sink; see event_queues.Post.
    :ivar background: returns a pool for long work; the argument names the work in the log.
    :ivar monotonic: returns seconds that never jump.
    """

    database: Database
    ring: Ring
    hints: Hints
    clock: Callable[[], float]
    settings: Callable[[], DutySettings]
    roll_back: Callable[[Stack], bool]
    revoke: Callable[[StackId, Json], None]
    post: Post
    background: Callable[[str], Background]
    recorder: Recorder = SILENT
    monotonic: Callable[[], float] = time.monotonic


class CurrentSettings:
    """Settings that the operator may change at run time; any thread may read and replace them.

    :ivar value: the settings of this moment.
    """

    def __init__(self, value: DutySettings) -> None:
        self.value = value

    def __call__(self) -> DutySettings:
        """Return the settings of this moment."""
        return self.value
