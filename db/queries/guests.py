"""Polls of the guests in servers: whether there is something new, and when each has asked."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .. import statements
from ..ids import ResourceId, StackId
from ..schema import tables


@dataclass(frozen=True)
class GuestServer:
    """A resource whose guest asks for its metadata, with the facts on which the answer depends.

    :ivar physical_id: id of the server, which its deployments name; None: the server is not created yet.
    :ivar deployments_changed_at: the `software_server.changed_at` of its deployments; None: no deployments.
    :ivar read_at: seconds since the epoch when its guest last asked, as far as it is stored; None: never.
    :ivar read_by: the transport by which its guest last asked.
    """

    id: ResourceId
    stack_id: StackId
    stack_name: str
    project_id: str
    root_id: StackId
    name: str
    type: str
    plugin: str
    action: str
    status: str
    reason: str
    physical_id: str | None
    generation: int
    updated_at: float
    deployments_changed_at: float | None
    read_at: float | None
    read_version: float | None
    read_by: str | None = None

    @property
    def version(self) -> str:
        """A text that changes whenever the metadata does."""
        return f"{self.generation}-{self.updated_at!r}-{self.deployments_changed_at!r}"

    @property
    def changed_at(self) -> float:
        """The time of the last change, in seconds since the epoch."""
        return max(self.updated_at, self.deployments_changed_at or 0.0)


@dataclass(frozen=True)
class GuestPoll:
    """A poll that is to be stored.

    :ivar version: the `changed_at` of the deployments that the guest has got; None: no deployments.
    :ivar transport: the transport by which the guest has asked.
    """

    server_id: str
    project_id: str
    at: float
    version: float | None
    transport: str


def _find_statement() -> sa.Select[tuple[object, ...]]:
    r = tables.resource
    s = tables.stack
    g = tables.software_server
    is_of_server = sa.and_(g.c.server_id == r.c.physical_id, g.c.project_id == s.c.project_id)
    return (
        sa.select(
            r.c.id,
            r.c.stack_id,
            s.c.name.label("stack_name"),
            s.c.project_id.label("project_id"),
            s.c.root_id,
            r.c.name,
            r.c.type,
            r.c.plugin,
            r.c.action,
            r.c.status,
            r.c.reason,
            r.c.physical_id,
            r.c.generation,
            r.c.updated_at,
            g.c.changed_at.label("deployments_changed_at"),
            g.c.read_at,
            g.c.read_version,
            g.c.read_by,
        )
        .select_from(r.join(s, s.c.id == r.c.stack_id).outerjoin(g, is_of_server))
        .where(
            r.c.id == sa.bindparam("row_id"),
            r.c.stack_id == sa.bindparam("stack_id"),
            r.c.snapshot_id.is_(None),
            s.c.deleted_at.is_(None),
        )
    )


_FIND = _find_statement()


def find(conn: Connection, stack_id: StackId, row: ResourceId) -> GuestServer | None:
    """Return the resource of a row, by its primary key; None: it is gone."""
    server = conn.execute(_FIND, {"row_id": row, "stack_id": stack_id}).mappings().first()
    if server is None:
        return None
    # 0: a row that was made by a poll, which must not change the version.
    return GuestServer(**{**server, "deployments_changed_at": server["deployments_changed_at"] or None})


def store_polls(conn: Connection, polls: Sequence[GuestPoll]) -> None:
    """Store when guests have asked, in the order of their keys.

    A server without deployments gets a row, which is purged when it has none for long.
    """
    s = tables.software_server
    for poll in sorted(polls, key=lambda poll: (poll.server_id, poll.project_id)):
        key = {"server_id": poll.server_id, "project_id": poll.project_id}
        values = {"read_at": poll.at, "read_version": poll.version, "read_by": poll.transport}
        is_key = sa.and_(*(s.c[name] == value for name, value in key.items()))
        if conn.execute(sa.update(s).where(is_key).values(values)).rowcount == 0:
            row = {**key, **values, "changed_at": 0.0, "unused_at": poll.at}
            conn.execute(statements.insert_or_update(conn, s, row, list(values)))


@dataclass(frozen=True)
class AwaitedGuest:
    """The guest whose signal ends a deployment.

    :ivar server_id: id of its server, as the deployment names it.
    :ivar asked_at: seconds since the epoch when it last asked, as far as it is stored; None: never.
    :ivar is_up_to_date: whether the guest has got all deployments of its server.
    """

    server_id: str
    asked_at: float | None
    is_up_to_date: bool


def awaited(conn: Connection, resource_ids: Collection[ResourceId]) -> dict[ResourceId, AwaitedGuest]:
    """Return the guests whose signals end the deployments of resources, by these resources."""
    d = tables.software_deployment.c
    g = tables.software_server.c
    of_server = sa.and_(g.server_id == d.server_id, g.project_id == d.project_id)
    query = (
        sa.select(d.resource_id, d.server_id, g.read_at, (g.read_version >= g.changed_at).label("is_read"))
        .join_from(tables.software_deployment, tables.software_server, of_server)
        .where(d.resource_id.in_(resource_ids))
    )
    return {
        ResourceId(row.resource_id): AwaitedGuest(row.server_id, row.read_at, bool(row.is_read))
        for row in conn.execute(query)
    }
