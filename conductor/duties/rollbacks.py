"""Rolls back failed stacks whose users asked for it."""

import functools
import logging

from sqlalchemy.engine import Connection

from ...db import stacks
from ...db.errors import DamagedRow
from ...db.ids import StackId
from ...db.rows import Stack
from ...db.stacks import FailedStack
from ...db.work import endings
from ...engine.errors import NotUpdatable
from ...observe.logs import about
from ...resources.contract.errors import UnknownType
from ...sealing.sealer import SealError
from ...template.errors import TemplateError
from .context import DutyContext
from .slice_scan import SliceScan

LOG = logging.getLogger(__name__)
PAGE = 100


class Rollbacks:
    """Plans the pending rollback of each failed stack of the slice.

    A column, written in the transaction of the failure, marks a rollback as pending.  So no rollback is lost
    with a conductor.  Compiling and planning take long, so the background pool does it; the next round finds
    again what the pool had no room for.
    """

    interval = 0.5

    def __init__(self, context: DutyContext) -> None:
        self._context = context
        self._scan = SliceScan(context, "Failed stack")
        self._background = context.background("The rollback")

    def run(self) -> None:
        """Submit all pending rollbacks of the slice to the pool."""

        def read(conn: Connection, after: tuple[float, str]) -> list[FailedStack]:
            return stacks.to_roll_back(conn, limit=PAGE, after=after)

        pages = self._scan.pages(
            read, start=(0.0, ""), position=lambda stack: (stack.rollback_at, stack.id), size=PAGE
        )
        for page in pages:
            for stack in page:
                if self._context.ring.owns(stack.shard):
                    self._background.submit(stack.id, functools.partial(self._roll_back, stack.id))

    def _roll_back(self, stack_id: StackId) -> None:
        try:
            stack = self._context.database.read(lambda conn: stacks.get(conn, stack_id))
        except DamagedRow as error:
            LOG.error("Stack %s is not rolled back, its row cannot be read: %s", stack_id, error)
            self._context.database.write(lambda conn: stacks.skip_rollback(conn, stack_id))
            return
        if stack.rollback_at is not None:
            with about(project=stack.project_id, stack=stack_id):
                self._start(stack)

    def _start(self, stack: Stack) -> None:
        try:
            if self._context.roll_back(stack):
                LOG.info("Rolling back stack %s (%s)", stack.name, stack.id)
        except (TemplateError, UnknownType, NotUpdatable, SealError) as error:
            why = str(error)
            LOG.warning("Rollback of stack %s (%s) failed: %s", stack.name, stack.id, why)
            now = self._context.clock()
            fail = functools.partial(endings.fail_rollback, expected=stack, why=why, by=None, now=now)
            self._context.database.write(fail)
