"""Rows of the credentials that users hand over to stacks: one for each stack that has no parent."""

import typing
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from . import tables, upserts
from .ids import StackId

Json = typing.Any


@dataclass(frozen=True)
class Unused:
    """A credential whose stack is gone.

    :ivar body: sealed.
    """

    root_id: StackId
    body: Json


def put(conn: Connection, root_id: StackId, body: Json, now: float) -> None:
    """Store a credential, in the place of another one that the stack may have.

    :param body: sealed.
    """
    row = {"root_id": root_id, "body": body, "created_at": now}
    conn.execute(upserts.insert_or_update(conn, tables.credential, row, ["body", "created_at"]))


def of_stack(conn: Connection, stack_id: StackId) -> Json:
    """That of the stack, or of the one that it is nested in, sealed; None: there is none."""
    c, s = tables.credential, tables.stack
    found = sa.select(c.c.body).join(s, s.c.root_id == c.c.root_id).where(s.c.id == stack_id)
    return conn.execute(found).scalar()


def release(conn: Connection, stack_id: StackId, now: float) -> None:
    """The stack is deleted; called in the transaction that makes it so."""
    c = tables.credential
    conn.execute(sa.update(c).where(c.c.root_id == stack_id).values(unused_at=now))


def unused(conn: Connection, now: float, *, limit: int) -> list[Unused]:
    """Credentials that may be given back now, the oldest first; not while something nested in the stack is
    still being cleaned up."""
    c, s = tables.credential, tables.stack
    lives = sa.exists().where(s.c.root_id == c.c.root_id, s.c.deleted_at.is_(None))
    rows = conn.execute(
        sa.select(c.c.root_id, c.c.body)
        .where(c.c.unused_at <= now, ~lives)
        .order_by(c.c.unused_at)
        .limit(limit)
    )
    return [Unused(StackId(root_id), body) for root_id, body in rows]


def postpone(conn: Connection, root_id: StackId, until: float) -> None:
    """Try to give it back later."""
    c = tables.credential
    conn.execute(sa.update(c).where(c.c.root_id == root_id).values(unused_at=until))


def forget(conn: Connection, root_id: StackId) -> None:
    """It was given back."""
    conn.execute(sa.delete(tables.credential).where(tables.credential.c.root_id == root_id))
