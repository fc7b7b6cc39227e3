"""The handler of a stack's drift."""

from sqlalchemy.engine import Connection

from ...db import drift
from ...db.drift import TreeDrift
from ...db.rows import Stack
from ..operations import Request
from ..reply import Reply
from ..views.drift import drift_view


def show(request: Request) -> Reply:
    """Answer GET /stacks/NAME/ID/drift."""

    def read(conn: Connection) -> tuple[Stack, TreeDrift]:
        stack = request.find_stack(conn)
        return stack, drift.of_tree(conn, stack.id, stack.project_id)

    return Reply({"drift": drift_view(*request.read(read))})
