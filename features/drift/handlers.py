"""The handler and the route of a stack's drift."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy.engine import Connection

from ...api.collaborators import Columns
from ...api.operations import Operation, Request, Routes
from ...api.paths import STACK
from ...api.reply import Reply
from ...db.ids import StackId
from ...db.rows import Stack
from . import rows as drift
from .rows import DriftSettings, TreeDrift
from .views import drift_view

NOT_OBSERVED = (
    "this installation does not observe drift by itself: its operator has not set [drift] enabled; a check "
    "of the stack finds what is gone, and an update with converge repairs it"
)


def columns(conn: Connection, stack_ids: Sequence[StackId]) -> Columns:
    """Return the drift of stacks for a list; a stack that was not observed has none, as in Heat."""
    return {
        stack_id: {"drift_status": summary.state, "drifted_resources": summary.resources}
        for stack_id, summary in drift.summaries(conn, stack_ids).items()
    }


def show(request: Request) -> Reply:
    """Answer GET /stacks/NAME/ID/drift."""

    def read(conn: Connection) -> tuple[Stack, TreeDrift]:
        stack = request.find_stack(conn)
        return stack, drift.of_tree(conn, stack.id, stack.project_id)

    stack, observed = request.read(read)
    if not request.services.of(DriftSettings).enabled:
        observed = replace(observed, reasons=[*observed.reasons, NOT_OBSERVED])
    return Reply({"drift": drift_view(stack, observed)})


ROUTES: Routes = {f"{STACK}/drift": {"GET": Operation(show, "stacks:drift", shared=frozenset())}}
