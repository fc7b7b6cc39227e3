"""The limits of resources that hold for a whole tree of stacks, and for a project.

A request counts what it knows.  The count of a group may be an attribute, so that only a step knows it, and
each such group may be in another one.  So the conductor counts again when it makes or grows a nested stack.
"""

from sqlalchemy.engine import Connection

from ..db import projects, trees
from ..db.rows import Stack
from ..template.errors import LimitExceeded
from .context import EngineSettings
from .quotas import QuotaName


def charge(conn: Connection, settings: EngineSettings, stack: Stack, *, is_limited: bool) -> None:
    """Count the tree of a nested stack whose goal was stored just now; the last part of the transaction.

    Two that grow a project's trees at the same moment count one after the other, by the project's lock, which
    the check of quotas takes, too.  What the request for the root has counted was admitted then.

    :param is_limited: whether the tree may be too large; False: it has not grown, or is rolled back.
    :raises LimitExceeded: it is too large; the transaction must not be committed.
    """
    if not is_limited:
        size = trees.size_of(conn, stack.root_id)
        if size.grown == size.excess:
            return
    projects.lock(conn, stack.project_id)
    size = trees.size_of(conn, stack.root_id)
    most = settings.limits.resources
    if is_limited and most and size.resources > most:
        raise LimitExceeded(
            f"the stack {stack.name} and those around it would have {size.resources} resources, above the "
            f"limit of {most} ([stacks] max_resources)"
        )
    if size.grown != size.excess:
        trees.store_growth(conn, stack.root_id, stack.project_id, size)
    if is_limited and settings.quotas is not None and size.grown > size.excess:
        settings.quotas.check(conn, stack.project_id, QuotaName.RESOURCES)
