"""Rows of the release before get the values that it has written as texts; two unused columns go.

A row that is stored between the last batch and the end may keep NULL.  Then its text is read as before.
"""

import json
import typing

import sqlalchemy as sa
from alembic import op

revision = "0005_contract"
down_revision = "0005_expand"

BATCH = 1000
UNUSED = {"held", "reason"}
ABORTED = " aborted due to breakpoint on resource "

RESOURCE = sa.table(
    "resource",
    *(sa.column(name) for name in ("id", "action", "status", "reason", "replaces")),
    sa.column("cancelled", sa.Boolean()),
    sa.column("reinstated", sa.Boolean()),
)
STACK = sa.table(
    "stack", *(sa.column(name) for name in ("id", "status", "reason")), sa.column("failure_cause", sa.Text())
)


def move_batch(conn: sa.Connection) -> int:
    """Fill the columns of some rows; return how many.

    upgrade.py runs it in transactions of its own until none is left, so that nobody waits long for a row.
    """
    return _failed_resources(conn) + _reinstated_resources(conn) + _failed_stacks(conn)


def _failed_resources(conn: sa.Connection) -> int:
    r = RESOURCE.c
    left = sa.and_(r.status == "FAILED", r.cancelled.is_(None))
    rows = _locked(conn, RESOURCE, left, r.action, r.reason)
    for cancelled in (False, True):
        ids = [row.id for row in rows if row.reason.startswith(f"{row.action} aborted") == cancelled]
        if ids:
            conn.execute(sa.update(RESOURCE).where(r.id.in_(ids)).values(cancelled=cancelled))
    return len(rows)


def _reinstated_resources(conn: sa.Connection) -> int:
    r = RESOURCE.c
    rows = _locked(conn, RESOURCE, sa.and_(r.replaces > r.id, r.reinstated.is_(None)))
    if rows:
        ids = [row.id for row in rows]
        conn.execute(sa.update(RESOURCE).where(r.id.in_(ids)).values(reinstated=True))
    return len(rows)


def _failed_stacks(conn: sa.Connection) -> int:
    s = STACK.c
    rows = _locked(conn, STACK, sa.and_(s.status == "FAILED", s.failure_cause.is_(None)), s.reason)
    for row in rows:
        cause = sa.update(STACK).where(s.id == row.id).values(failure_cause=cause_of(row.reason))
        conn.execute(cause)
    return len(rows)


def _locked(
    conn: sa.Connection, table: sa.TableClause, left: sa.ColumnElement[bool], *columns: sa.ColumnElement[str]
) -> typing.Sequence[sa.Row[typing.Any]]:
    """Lock some rows that lack a value, and return them.

    They are found without locks, then locked by id: InnoDB would wait for each locked row that it walks over.
    """
    number = table.c.id
    ids = conn.execute(sa.select(number).where(left).order_by(number).limit(BATCH)).scalars().all()
    found = sa.select(number, *columns).where(number.in_(ids), left).order_by(number)
    return conn.execute(found.with_for_update()).all() if ids else []


def cause_of(reason: str) -> str:
    """Return the first cause that a stack's reason names, as it is stored.

    The reason reads ``Resource ACTION failed: KIND: resources.NAME…: MESSAGE``, or it names the resource at
    whose breakpoint the action ended.
    """
    cause = {"kind": "ResourceFailure", "path": "", "message": reason, "breakpoint": ""}
    _, found, rest = reason.partition(" failed: ")
    kind, _, rest = rest.partition(": ")
    path, separator, message = rest.partition(": ")
    if found and separator and reason.startswith("Resource ") and path.startswith("resources."):
        cause.update(kind=kind, path=path, message=message)
    else:
        cause["breakpoint"] = reason.partition(ABORTED)[2]
    return json.dumps(cause, separators=(",", ":"))


def upgrade() -> None:
    """Drop what is left of it; MariaDB keeps each statement at once.

    It locks no row.  On PostgreSQL, who drops a column waits for all transactions on its table, and these may
    wait for a row.
    """
    for name in sorted({column["name"] for column in sa.inspect(op.get_bind()).get_columns("task")} & UNUSED):
        op.drop_column("task", name)
