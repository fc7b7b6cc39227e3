"""The traversals that are stored as finish tasks move to their table.

The columns ``held`` and ``reason`` of ``task`` stay, which no other task uses: code of this release names
them.  The contract part of the next number drops them.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004_contract"
down_revision = "0004_expand"

BATCH = 500

VERSION = sa.table("alembic_version", sa.column("version_num"))
TASK = sa.table(
    "task",
    *(
        sa.column(name)
        for name in (
            *("id", "traversal", "stack_id", "shard", "kind", "state", "pending", "held", "reason", "hook"),
            *("hooks", "waits_on", "request", "due_at"),
        )
    ),
)
STACK = sa.table("stack", sa.column("id"), sa.column("traversal"), sa.column("action"))
COLUMNS = (
    *("id", "traversal", "stack_id", "shard", "action", "state", "open_tasks", "held_tasks", "failure"),
    *("aborted", "deadline_policy", "waits_for_paused_children", "request", "due_at"),
)
TRAVERSAL = sa.table("traversal", *(sa.column(name) for name in COLUMNS))


def move_batch(conn: sa.Connection) -> int:
    """Move some of the traversals that are left; return how many.

    upgrade.py runs it in transactions of its own until none is left, so that nobody waits long for a row.
    """
    t, s = TASK.c, STACK.c
    # Found without locks, then locked by id: InnoDB would wait for each locked row that it walks over.
    ids = conn.execute(sa.select(t.id).where(t.kind == "finish").order_by(t.id).limit(BATCH)).scalars().all()
    if not ids:
        return 0
    # Who counts a task of such a traversal down holds this row: the count is moved as they leave it.
    locked = sa.select(t.id).where(t.id.in_(ids), t.kind == "finish").order_by(t.id).with_for_update()
    found = conn.execute(locked).scalars().all()
    running = sa.and_(s.id == t.stack_id, s.traversal == t.traversal)
    values = (
        *(t.id, t.traversal, t.stack_id, t.shard),
        sa.select(s.action).where(running).scalar_subquery(),
        sa.case((t.state == "waiting", "running"), else_=t.state),
        *(t.pending, t.held, t.reason),
        sa.case((t.hook == "abort", sa.true()), else_=sa.false()),
        sa.case((t.hooks.is_not(None), "counts"), else_="pauses"),
        sa.case((t.waits_on == "children", sa.true()), else_=sa.false()),
        *(t.request, t.due_at),
    )
    rows = conn.execute(sa.select(*values).where(t.id.in_(found)).order_by(t.id)).all()
    if rows:
        named = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
        for row in named:
            row.update({name: bool(row[name]) for name in ("aborted", "waits_for_paused_children")})
        conn.execute(sa.insert(TRAVERSAL), named)
        conn.execute(sa.delete(TASK).where(t.id.in_(found)))
    return len(ids)


def upgrade() -> None:
    """Move the rest.

    A transaction that stores a traversal as a finish task holds the version's row until it is committed.
    So from here on there is none, and those that wait for the row then see that the schema is contracted.
    """
    conn = op.get_bind()
    conn.execute(sa.select(VERSION.c.version_num).with_for_update())
    while move_batch(conn):
        pass
