"""Rows of the credentials that users delegate to stacks.

Each stack without a parent has one, and so has each delegation that has begun and whose stack is not stored
yet, see keystone/delegations.py.
"""

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..shapes import Json
from . import statements
from .ids import StackId
from .schema import tables


@dataclass(frozen=True)
class Unused:
    """A credential whose stack is deleted, or was never stored.

    :ivar root_id: id of the stack, or key of the delegation.
    :ivar body: the credential, or the document by which a duty finds it; sealed.
    """

    root_id: StackId
    body: Json


def put(conn: Connection, root_id: StackId, body: Json, now: float, *, user_id: str | None = None) -> None:
    """Store a credential, and replace the one that the stack may have.

    :param body: the credential, sealed.
    :param user_id: the user whose rights it gives; None: not known.
    """
    row = {"root_id": root_id, "body": body, "user_id": user_id, "created_at": now}
    changed = ["body", "user_id", "created_at"]
    conn.execute(statements.insert_or_update(conn, tables.credential, row, changed))


def insert(conn: Connection, root_id: StackId, body: Json, now: float, *, user_id: str | None) -> None:
    """Store the first credential of a stack; the arguments are those of `put`.

    :raises DBDuplicateEntry: there is one by its id, which is perhaps still to be revoked.
    """
    row = {"root_id": root_id, "body": body, "user_id": user_id, "created_at": now}
    conn.execute(sa.insert(tables.credential).values(row))


def intend(conn: Connection, key: StackId, body: Json, until: float, now: float) -> None:
    """Store that a delegation begins, before Keystone is asked for it.

    :param key: key of the delegation; no stack has it.
    :param body: sealed document by which a duty finds the credential that Keystone may have made.
    :param until: the instant at which the delegation counts as lost unless it is confirmed; a whole number,
        which each database compares exactly.
    """
    row = {"root_id": key, "body": body, "created_at": now, "unused_at": until}
    conn.execute(sa.insert(tables.credential).values(row))


def confirm(conn: Connection, key: StackId, until: float) -> bool:
    """End a delegation, in the transaction that stores its credential.

    :returns: False: it counts as lost, and its trust is being revoked.
    """
    c = tables.credential
    return bool(conn.execute(sa.delete(c).where(c.c.root_id == key, c.c.unused_at == until)).rowcount)


def withdraw(conn: Connection, key: StackId, body: Json, due: float, now: float) -> None:
    """Store the credential of a delegation as one to revoke; from then on nobody can confirm it.

    :param body: the credential, sealed.
    :param due: the instant at which a duty revokes it if nobody else has.
    """
    row = {"root_id": key, "body": body, "created_at": now, "unused_at": due}
    conn.execute(statements.insert_or_update(conn, tables.credential, row, ["body", "unused_at"]))


def of_stack(conn: Connection, stack_id: StackId) -> Json:
    """Return the credential of the stack, or of its root, sealed; None: there is none."""
    c = tables.credential
    s = tables.stack
    query = sa.select(c.c.body).join(s, s.c.root_id == c.c.root_id).where(s.c.id == stack_id)
    return conn.execute(query).scalar()


def of_root(conn: Connection, root_id: StackId) -> Json:
    """Return the credential of a root stack, which may be purged already, sealed; None: there is none."""
    c = tables.credential
    return conn.execute(sa.select(c.c.body).where(c.c.root_id == root_id)).scalar()


def release(conn: Connection, stack_ids: Collection[StackId], now: float) -> None:
    """Mark the credentials of stacks as unused, in the transaction that deletes the stacks."""
    c = tables.credential
    conn.execute(sa.update(c).where(c.c.root_id.in_(sorted(stack_ids))).values(unused_at=now))


def unused(conn: Connection, now: float, *, limit: int) -> list[Unused]:
    """Return the credentials that may be revoked now, the oldest first.

    None is returned while a stack nested in its stack is still being deleted, or events of the stack are
    still to be sent to its event sinks.
    """
    c = tables.credential
    s = tables.stack
    k = tables.event_sink
    sends = sa.exists().where(k.c.root_id == c.c.root_id)
    lives = sa.exists().where(s.c.root_id == c.c.root_id, s.c.deleted_at.is_(None))
    rows = conn.execute(
        sa.select(c.c.root_id, c.c.body)
        .where(c.c.unused_at <= now, ~lives, ~sends)
        .order_by(c.c.unused_at)
        .limit(limit)
    )
    return [Unused(StackId(root_id), body) for root_id, body in rows]


def take(conn: Connection, root_id: StackId, now: float, until: float) -> bool:
    """Take a credential to revoke it; it is due again at `until` unless it is deleted before.

    From then on nobody can confirm a delegation with this key.

    :returns: False: the row is not due any more, because another duty has taken it, or its stack was stored.
    """
    c = tables.credential
    due = sa.update(c).where(c.c.root_id == root_id, c.c.unused_at <= now)
    return bool(conn.execute(due.values(unused_at=until)).rowcount)


def forget(conn: Connection, root_id: StackId) -> None:
    """Delete a credential, which was revoked."""
    conn.execute(sa.delete(tables.credential).where(tables.credential.c.root_id == root_id))
