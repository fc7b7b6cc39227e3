"""Rolling back what has failed, where the user wishes it."""

import functools
import logging
from collections.abc import Callable

from ...db import stacks
from ...db.engine import Database
from ...db.ids import StackId
from ...db.rows import Stack
from ...db.stacks import FailedStack
from ...db.work import endings
from ...engine.errors import NotUpdatable
from ...engine.updates import Updates
from ...observe.logs import about
from ...resources.errors import UnknownType
from ...sealing.sealer import SealError
from ...template.errors import TemplateError
from ..background import Background
from ..slice import Ring

LOG = logging.getLogger(__name__)
PAGE = 100


class Rollbacks:
    """Plans the rollback of each stack of the slice that has failed and waits for one.  That it waits is a
    column, written with the failure: so no rollback is lost with a conductor.

    :param background: compiles and plans; what it has no room for is found again by the next round.
    """

    interval = 0.5

    def __init__(
        self,
        *,
        database: Database,
        ring: Ring,
        clock: Callable[[], float],
        updates: Updates,
        background: Background,
    ) -> None:
        self._database = database
        self._ring = ring
        self._clock = clock
        self._updates = updates
        self._background = background

    def run(self) -> None:
        """One round over all that wait."""
        after = (0.0, "")
        while True:
            page = self._read(after)
            for stack in page:
                if self._ring.owns(stack.shard):
                    self._background.submit(stack.id, functools.partial(self._roll_back, stack.id))
            if len(page) < PAGE:
                return
            after = (page[-1].rollback_at, page[-1].id)

    def _read(self, after: tuple[float, str]) -> list[FailedStack]:
        return self._database.read(lambda conn: stacks.to_roll_back(conn, limit=PAGE, after=after))

    def _roll_back(self, stack_id: StackId) -> None:
        stack = self._database.read(lambda conn: stacks.get(conn, stack_id))
        if stack.rollback_at is not None:
            with about(project=stack.tenant, stack=stack_id):
                self._begin(stack)

    def _begin(self, stack: Stack) -> None:
        try:
            if self._updates.roll_back(stack):
                LOG.info("The stack is rolled back")
        except (TemplateError, UnknownType, NotUpdatable, SealError) as error:
            why = str(error)
            LOG.warning("The stack cannot be rolled back: %s", why)
            now = self._clock()
            give_up = functools.partial(endings.give_up_rollback, seen=stack, why=why, by=None, now=now)
            self._database.write(give_up)
