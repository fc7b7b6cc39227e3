"""The limit of the stacks of one project."""

from sqlalchemy.engine import Connection

from ..db import projects
from ..template.errors import LimitExceeded


def check_room(conn: Connection, project_id: str, most: int) -> None:
    """Check that a project may have one more stack; another request may take the place before this one.

    :param most: 0: no limit.
    :raises LimitExceeded: it has as many as it may have.
    """
    if most and projects.count_stacks(conn, project_id) >= most:
        raise _exceeded(most)


def check_new_stack(conn: Connection, project_id: str, most: int) -> None:
    """Check that a project has no more stacks than it may have, with the one that was stored just now.

    It is the last thing that the transaction does.  From here to its end no other one of the project counts,
    so of two requests at the same moment only one gets the last place.

    :raises LimitExceeded: it has more; the transaction must not be committed.
    """
    projects.lock(conn, project_id)
    if projects.count_stacks(conn, project_id) > most:
        raise _exceeded(most)


def _exceeded(most: int) -> LimitExceeded:
    reached = f"You have reached the maximum stacks per tenant, {most}."  # prose: Heat's words
    return LimitExceeded(f"Request limit exceeded: {reached} Please delete some stacks.")
