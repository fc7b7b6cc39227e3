"""The rows of a new stack and of its first traversal: on PostgreSQL one statement if they are few."""

from sqlalchemy.engine import Connection

from . import events, notifications, stacks
from .bulk import NewRows
from .rows import Event, Stack


def insert(conn: Connection, stack: Stack, event: Event, rows: NewRows) -> None:
    """Store a new stack with its first event and the rows of its traversal, and notify of its start.

    :param rows: see `traversals.new_rows`.
    :raises NameTaken: a living stack of the project has the name; the transaction cannot continue.
    :raises RetryTransaction: a row has an id of the new ones.
    """
    stacks.insert(conn, stack, {**events.new_rows([event]), **rows})
    if event.has_sinks:
        events.put_down(conn, [event])
    notifications.about_stacks(conn, [stack.id])
