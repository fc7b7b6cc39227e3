"""Rows of snapshots.

A snapshot's copies of resources are rows of the table of resources, see `resources.copies`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..shapes import Json
from . import bulk, content, usage
from .bulk import Write
from .errors import NotFound
from .ids import ContentId, SnapshotId, StackId, TraversalId
from .rows import GOAL, Snapshot, Stack
from .schema import tables
from .states import Status
from .usage import UsageChange

CONCERNED = ("SNAPSHOT", "DELETE")
"""Actions of a stack that change its snapshots."""


def insert(conn: Connection, stack: Stack, snapshot: Snapshot) -> None:
    """Store a new snapshot of a stack."""
    insert_many(conn, stack, [snapshot])


def insert_many(conn: Connection, stack: Stack, snapshots: Sequence[Snapshot]) -> None:
    """Store new snapshots of a stack."""
    if snapshots:
        rows = bulk.insertion(conn, tables.snapshot, [asdict(snapshot) for snapshot in snapshots])
        size = sum(snapshot.goal_size for snapshot in snapshots)
        more = UsageChange(stack.project_id, {"snapshots": len(snapshots), "goal_bytes": size})
        usage.write(conn, rows, [] if stack.live_name is None else [more])
    content.add_uses(conn, {snapshot.id: snapshot.contents for snapshot in snapshots})


def rename_content(conn: Connection, snapshot_id: SnapshotId, old: ContentId, new: ContentId) -> bool:
    """Let a snapshot refer to the new content instead of the old one; return False if it does not exist."""
    s = tables.snapshot
    query = sa.select(s.c.goal).where(s.c.id == snapshot_id).with_for_update()
    goal = conn.execute(query).scalar()
    if goal is None:
        return False
    goal = content.renamed(goal, old, new)
    conn.execute(sa.update(s).where(s.c.id == snapshot_id).values(goal=goal))
    content.set_uses(conn, snapshot_id, [ContentId(goal[name]) for name in GOAL])
    return True


def get(conn: Connection, stack_id: StackId, snapshot_id: SnapshotId) -> Snapshot:
    """Return a snapshot of a stack.

    :raises NotFound: the stack has no such snapshot.
    """
    s = tables.snapshot
    query = sa.select(s).where(s.c.id == snapshot_id, s.c.stack_id == stack_id)
    row = conn.execute(query).mappings().first()
    if row is None:
        raise NotFound("Snapshot", snapshot_id)
    return Snapshot(**dict(row))


def of_nested(conn: Connection, parent_id: StackId, snapshot_id: SnapshotId) -> Snapshot | None:
    """Return a snapshot of a stack that is nested in another one directly; None: there is none.

    :param parent_id: the stack around it.
    """
    p = tables.snapshot
    s = tables.stack.c
    query = (
        sa.select(p)
        .join(tables.stack, s.id == p.c.stack_id)
        .where(p.c.id == snapshot_id, s.parent_id == parent_id, s.deleted_at.is_(None))
    )
    row = conn.execute(query).mappings().first()
    return None if row is None else Snapshot(**dict(row))


def of_stack(conn: Connection, stack_id: StackId) -> list[Snapshot]:
    """Return all snapshots of a stack, the oldest first."""
    s = tables.snapshot
    rows = conn.execute(sa.select(s).where(s.c.stack_id == stack_id).order_by(s.c.created_at, s.c.id))
    return [Snapshot(**dict(row)) for row in rows.mappings()]


def list_page(
    conn: Connection, stack_id: StackId, *, limit: int | None, marker: SnapshotId | None
) -> list[Snapshot]:
    """Return snapshots of a stack, the oldest first.

    :param marker: id of the last snapshot already seen.
    :raises NotFound: the marker is no snapshot of the stack.
    """
    s = tables.snapshot
    query = sa.select(s).where(s.c.stack_id == stack_id)
    if marker is not None:
        last = get(conn, stack_id, marker)
        same = sa.and_(s.c.created_at == last.created_at, s.c.id > last.id)
        query = query.where(sa.or_(s.c.created_at > last.created_at, same))
    rows = conn.execute(query.order_by(s.c.created_at, s.c.id).limit(limit))
    return [Snapshot(**dict(row)) for row in rows.mappings()]


def begin_deletion(
    conn: Connection, snapshot: Snapshot, traversal: TraversalId, reason: str
) -> Snapshot | None:
    """Let the traversal delete the snapshot; return None if it is not as `snapshot` any more."""
    s = tables.snapshot
    columns: dict[str, Json] = {
        "action": "DELETE",
        "status": Status.IN_PROGRESS,
        "reason": reason,
        "traversal": traversal,
    }
    done = conn.execute(
        sa.update(s)
        .where(
            s.c.id == snapshot.id,
            s.c.stack_id == snapshot.stack_id,
            s.c.traversal == snapshot.traversal,
            s.c.action == snapshot.action,
            s.c.status == snapshot.status,
        )
        .values(**columns)
    )
    return replace(snapshot, **columns) if done.rowcount == 1 else None


def take_over(conn: Connection, stack_id: StackId, traversal: TraversalId) -> list[TraversalId]:
    """Let the deletion of a stack, whose row the caller has locked, delete all its snapshots.

    :returns: traversals that delete single snapshots, which it supersedes.
    """
    snapshots = of_stack(conn, stack_id)
    for snapshot in snapshots:
        begin_deletion(conn, snapshot, traversal, "Stack DELETE started")
    return [snapshot.traversal for snapshot in snapshots if snapshot.status == Status.IN_PROGRESS]


def end(conn: Connection, traversals: Iterable[TraversalId], *, reason: str, failed: bool) -> None:
    """End the actions of traversals on snapshots, in the transaction that ends the traversals.

    Snapshots that were being deleted are deleted unless that has failed.
    """
    s = tables.snapshot
    ids = sorted(set(traversals))
    running = (s.c.traversal.in_(ids), s.c.status == Status.IN_PROGRESS)
    if not failed:
        _forget(conn, sa.and_(*running, s.c.action == "DELETE"))
    status = Status.FAILED if failed else Status.COMPLETE
    conn.execute(sa.update(s).where(*running).values(status=status, reason=reason))


def _forget(conn: Connection, condition: sa.ColumnElement[bool]) -> None:
    """Delete snapshots, whose stacks' rows the caller has locked."""
    n = tables.snapshot
    s = tables.stack.c
    query = sa.select(n.c.id, n.c.goal_size, s.project_id, s.live_name).join(
        tables.stack, s.id == n.c.stack_id
    )
    rows = conn.execute(query.where(condition)).all()
    for row in rows:
        content.set_uses(conn, SnapshotId(row.id), [])
    forgotten = Write(sa.delete(n).where(n.c.id.in_([row.id for row in rows]), condition), {})
    less = (
        UsageChange(row.project_id, {"snapshots": -1, "goal_bytes": -row.goal_size})
        for row in rows
        if row.live_name is not None
    )
    usage.write(conn, forgotten, less)
