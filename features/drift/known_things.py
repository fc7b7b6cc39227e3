"""The facts by which things of the cloud are compared with the rows of a project."""

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ...db.ids import ResourceId, StackId
from ...db.schema import tables


@dataclass(frozen=True)
class ThingOfRow:
    """The thing that a resource has made, or may have made.

    :ivar key: idempotency key of its creation; None: nothing was begun.
    :ivar physical_id: None: it is not known.
    :ivar is_resource: whether the row is a resource of a living stack: neither a snapshot's copy nor deleted.
    """

    resource_id: ResourceId
    key: str | None
    physical_id: str | None
    stack_id: StackId
    stack_name: str
    name: str
    is_resource: bool


def of_project(conn: Connection, project_id: str, *, after: ResourceId, limit: int) -> list[ThingOfRow]:
    """Return the things of a project's rows, copies of snapshots included, in the order of the rows' ids.

    :param after: id of the last row of the page before; 0: the first page.
    """
    r = tables.resource
    s = tables.stack
    is_resource = sa.and_(r.c.snapshot_id.is_(None), s.c.deleted_at.is_(None))
    query = (
        sa.select(
            *(r.c.id.label("resource_id"), r.c.key, r.c.physical_id, r.c.stack_id, r.c.name),
            *(s.c.name.label("stack_name"), is_resource.label("is_resource")),
        )
        .join(s, s.c.id == r.c.stack_id)
        .where(s.c.project_id == project_id, r.c.id > after)
        .order_by(r.c.id)
        .limit(limit)
    )
    rows = conn.execute(query).mappings()
    return [ThingOfRow(**{**row, "is_resource": bool(row["is_resource"])}) for row in rows]


def living_roots(conn: Connection, project_id: str, limit: int) -> list[StackId]:
    """Return the newest stacks of a project without a parent, with whose rights its services are asked."""
    s = tables.stack
    query = (
        sa.select(s.c.id)
        .where(s.c.project_id == project_id, s.c.parent_id.is_(None), s.c.deleted_at.is_(None))
        .order_by(s.c.created_at.desc(), s.c.id)
        .limit(limit)
    )
    return list(conn.execute(query).scalars())
