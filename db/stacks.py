"""Rows of stacks: one compare-and-swap for each change of state."""

import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType

import sqlalchemy as sa
from oslo_db import exception as oslo_errors
from sqlalchemy.engine import Connection

from ..shapes import Json, JsonMap
from . import bulk, content, event_sinks, statements, usage
from .bulk import OneOf, Write, chunks
from .errors import NameTaken, NotFound, RetryTransaction
from .ids import ContentId, ResourceId, StackId, TraversalId
from .rows import GOAL, ListedStack, Stack
from .schema import tables
from .states import Status

S = typing.TypeVar("S", bound=ListedStack)


def insert(conn: Connection, stack: Stack, others: bulk.NewRows = MappingProxyType({})) -> None:
    """Store a new stack with its tags.

    :param others: new rows of other tables that are stored with it, as by `bulk.insert_new_together`.
    :raises NameTaken: a living stack of the project has the name, or a stack has the id, which is that of a
        nested stack; the transaction cannot continue.
    :raises RetryTransaction: a row has an id of the others.
    """
    writes = _insertions(conn, [stack], others)
    try:
        usage.write(conn, next(writes), usage.of_stacks([stack]))
    except oslo_errors.DBDuplicateEntry as error:
        if _is_of_stack(error):
            raise NameTaken(stack.name) from error
        raise RetryTransaction from error
    bulk.execute_new(conn, writes)


def _is_of_stack(error: oslo_errors.DBDuplicateEntry) -> bool:
    """Return whether the first write of `_insertions` has met another stack, and no row of another table.

    PostgreSQL says the table; on the others that write has the stack's row only.
    """
    cause: typing.Any = error.inner_exception
    diagnosis = getattr(getattr(cause, "orig", cause), "diag", None)
    return diagnosis is None or diagnosis.table_name in _OF_STACK


_OF_STACK = {table.name for table in (tables.stack, tables.stack_tag, tables.content_use)}
"""Names of tables whose rows of a new stack have its id."""


def insert_many(conn: Connection, stacks: Sequence[Stack]) -> None:
    """Store new stacks with their tags.

    :raises DBDuplicateEntry: a living stack of the project has a name; the transaction cannot continue.
    """
    if stacks:
        writes = _insertions(conn, stacks, {})
        usage.write(conn, next(writes), usage.of_stacks(stacks))
        for write in writes:
            conn.execute(*write)


def _insertions(conn: Connection, stacks: Sequence[Stack], others: bulk.NewRows) -> Iterator[Write]:
    rows: bulk.NewRows = {
        tables.stack: map(_row, stacks),
        tables.stack_tag: [row for stack in stacks for row in _tag_rows(stack, stack.tags)],
        tables.content_use: content.uses({stack.id: contents_of(vars(stack)) for stack in stacks}),
        **others,
    }
    return bulk.insertions(conn, rows)


def _row(stack: Stack) -> dict[str, Json]:
    cause = stack.failure_cause
    row = {**vars(stack), "failure_cause": None if cause is None else asdict(cause)}
    del row["tags"]
    return row


CONTENTS = ("template_id", "environment_id", "files_id", "previous")


def contents_of(row: Mapping[str, typing.Any]) -> set[ContentId]:
    """Return all contents that a stack refers to."""
    previous = row["previous"] or {}
    named = {row[name] for name in CONTENTS[:3]}
    return named | {previous[name] for name in GOAL if name in previous}


def rename_content(conn: Connection, stack_id: StackId, old: ContentId, new: ContentId) -> bool:
    """Replace one content of a stack by another; return False if there is no such stack."""
    s = tables.stack
    query = sa.select(*(s.c[name] for name in CONTENTS)).where(s.c.id == stack_id).with_for_update()
    row = conn.execute(query).mappings().first()
    if row is None:
        return False
    columns = {name: new if value == old else value for name, value in row.items()}
    if row["previous"]:
        columns["previous"] = content.renamed(row["previous"], old, new)
    conn.execute(sa.update(s).where(s.c.id == stack_id).values(**columns))
    content.set_uses(conn, stack_id, contents_of(columns))
    return True


def set_tags(conn: Connection, stack: Stack, tags: Sequence[str]) -> None:
    """Replace the tags of a stack, in their order."""
    t = tables.stack_tag
    conn.execute(sa.delete(t).where(t.c.stack_id == stack.id))
    bulk.insert(conn, t, _tag_rows(stack, tags))


def _tag_rows(stack: Stack, tags: Sequence[str]) -> list[bulk.Row]:
    owner = {"stack_id": stack.id, "project_id": stack.project_id, "created_at": stack.created_at}
    return [{**owner, "tag": tag, "position": position} for position, tag in enumerate(dict.fromkeys(tags))]


def set_event_sinks(conn: Connection, stack: Stack, sinks: Sequence[tuple[str, int]], now: float) -> None:
    """Make these the event sinks of a stack, and of all stacks nested in it.

    Those of a nested stack are its root's, so nothing is done for one.

    :param stack: its row is locked, or new; the caller sets `has_sinks` in it.
    :param sinks: names of queues, each with the seconds that a message stays there.
    """
    if stack.parent_id is not None:
        return
    event_sinks.replace(conn, stack, sinks, now)
    s = tables.stack
    differs = s.c.has_sinks != bool(sinks)
    nested = sa.select(s.c.id).where(s.c.root_id == stack.id, s.c.id != stack.id, differs).order_by(s.c.id)
    if ids := conn.execute(nested).scalars().all():
        inside = sa.and_(s.c.id.in_(ids), s.c.root_id == stack.id)
        conn.execute(sa.update(s).where(inside).values(has_sinks=bool(sinks)))


_TAGS = (
    sa.select(tables.stack_tag.c.stack_id, tables.stack_tag.c.tag)
    .where(OneOf(tables.stack_tag.c.stack_id))
    .order_by(tables.stack_tag.c.stack_id, tables.stack_tag.c.position)
)


def with_tags(conn: Connection, rows: Iterable[Mapping[str, typing.Any]]) -> list[Stack]:
    """Return stacks made of rows of the table, their tags read by few queries."""
    return tagged(conn, [Stack.of(row) for row in rows])


def tagged(conn: Connection, stacks: Sequence[S]) -> list[S]:
    """Return the stacks with their tags, which are read by few queries."""
    tags: dict[str, list[str]] = {}
    for chunk in chunks(stack.id for stack in stacks):
        for stack_id, tag in conn.execute(_TAGS, {"ids": chunk}):
            tags.setdefault(stack_id, []).append(tag)
    return [replace(stack, tags=tuple(tags[stack.id])) if stack.id in tags else stack for stack in stacks]


_IS_TAGGED = sa.exists().where(tables.stack_tag.c.stack_id == tables.stack.c.id).label("is_tagged")
_LOCK = sa.select(*tables.STACK_COLUMNS).where(tables.stack.c.id == sa.bindparam("key")).with_for_update()
GET = sa.select(*tables.STACK_COLUMNS, _IS_TAGGED).where(tables.stack.c.id == sa.bindparam("key"))
"""Without a lock, for a transaction that waited for the row would see whether it had tags before."""
_LOCK_EACH = (
    sa.select(*tables.STACK_COLUMNS)
    .where(OneOf(tables.stack.c.id))
    .order_by(tables.stack.c.id)
    .with_for_update()
)
_COLUMNS = frozenset(GET.exported_columns.keys())


def get(conn: Connection, stack_id: StackId) -> Stack:
    """Return a stack, also a deleted one that is still stored.

    :raises NotFound: there is no such stack.
    """
    return get_with(conn, GET, stack_id)[0]


def get_with(conn: Connection, query: sa.Select[typing.Any], stack_id: StackId) -> tuple[Stack, JsonMap]:
    """Return a stack as `get` does, and the values of further columns by their names.

    :param query: GET with these columns.
    :raises NotFound: there is no such stack.
    """
    row = _one(conn, query, stack_id)
    others = {name: row.pop(name) for name in row.keys() - _COLUMNS}
    return _tagged_where_needed(conn, [row])[0], others


def _tagged_where_needed(conn: Connection, rows: Sequence[dict[str, typing.Any]]) -> list[Stack]:
    are_tagged = [row.pop("is_tagged") for row in rows]
    stacks = [Stack.of(row) for row in rows]
    return tagged(conn, stacks) if any(are_tagged) else stacks


def find_undeleted(conn: Connection, stack_id: StackId) -> Stack | None:
    """Return a stack; None: it is deleted, or never existed."""
    try:
        stack = get(conn, stack_id)
    except NotFound:
        return None
    return stack if stack.deleted_at is None else None


_CHILD = sa.select(*tables.STACK_COLUMNS, _IS_TAGGED).where(
    tables.stack.c.parent_id == sa.bindparam("stack"),
    tables.stack.c.parent_resource_id == sa.bindparam("resource"),
    tables.stack.c.deleted_at.is_(None),
)


def of_resource(conn: Connection, stack_id: StackId, resource_id: ResourceId) -> Stack | None:
    """Return the nested stack of a resource; None: it has none.

    This is the only way from a resource to its stack.  The stack's own row names the resource, and is written
    only by a step of that resource.  The resource's physical id is shown and no more: documents can carry it.

    :param stack_id: the stack of the resource, in which the nested one must be, too.
    """
    row = conn.execute(_CHILD, {"stack": stack_id, "resource": resource_id}).mappings().first()
    return None if row is None else _tagged_where_needed(conn, [dict(row)])[0]


def lock(conn: Connection, stack_id: StackId) -> Stack:
    """Return a stack, whose row nobody else changes until the transaction ends.

    :raises NotFound: there is no such stack.
    """
    return with_tags(conn, [_one(conn, _LOCK, stack_id)])[0]


def lock_each(conn: Connection, stack_ids: Iterable[StackId]) -> dict[StackId, Stack]:
    """Lock stacks in the order of their ids; return them without their tags."""
    rows = conn.execute(_LOCK_EACH, {"ids": sorted(stack_ids)}).mappings()
    return {stack.id: stack for stack in (Stack.of(dict(row)) for row in rows)}


def _one(conn: Connection, query: sa.Select[typing.Any], key: str) -> dict[str, typing.Any]:
    row = conn.execute(query, {"key": key}).mappings().first()
    if row is None:
        raise NotFound("Stack", key)
    return dict(row)


def is_taken(conn: Connection, project_id: str, name: str) -> bool:
    """Return whether a living top-level stack of the project has the name."""
    s = tables.stack
    query = sa.select(s.c.id).where(s.c.project_id == project_id, s.c.live_name == name)
    return conn.execute(query).first() is not None


@dataclass(frozen=True)
class DueStack:
    """A stack whose deadline has passed."""

    id: StackId
    shard: int
    traversal: TraversalId
    deadline_at: float


def _due_statement() -> sa.Select[typing.Any]:
    s = tables.stack
    last_deadline: sa.BindParameter[float] = sa.bindparam("last_deadline")
    later = sa.or_(s.c.deadline_at > last_deadline, s.c.id > sa.bindparam("last_id"))
    return (
        sa.select(s.c.id, s.c.shard, s.c.traversal, s.c.deadline_at)
        .where(s.c.deadline_at <= sa.bindparam("now"), s.c.deadline_at >= last_deadline, later)
        .order_by(s.c.deadline_at, s.c.id)
        .limit(sa.bindparam("most"))
    )


_DUE = _due_statement()


def due(conn: Connection, now: float, *, limit: int, after: tuple[float, str] = (0.0, "")) -> list[DueStack]:
    """Return stacks with deadline_at <= now, the oldest deadline first, by the index on it.

    :param after: (deadline_at, id) of the last one of the page before.
    """
    last_deadline, last_id = after
    values = {"now": now, "last_deadline": last_deadline, "last_id": last_id, "most": limit}
    return [DueStack(**row) for row in conn.execute(_DUE, values).mappings()]


def in_progress_by_shard(conn: Connection) -> dict[int, int]:
    """Return how many stacks of each shard are in progress and have work.

    These are the stacks with a deadline.  The deadline of a stack that is held at breakpoints is paused, and
    such a stack costs nothing.
    """
    s = tables.stack
    rows = conn.execute(
        sa.select(s.c.shard, sa.func.count().label("stacks"))
        .where(s.c.deadline_at.is_not(None))
        .group_by(s.c.shard)
    )
    return {row.shard: row.stacks for row in rows}


@dataclass(frozen=True)
class LateStack:
    """A stack whose row is locked, because its deadline has passed."""

    id: StackId
    name: str
    traversal: TraversalId
    action: str
    status: str
    has_sinks: bool


_LATE = [tables.stack.c[name] for name in LateStack.__dataclass_fields__]


def lock_due(conn: Connection, stack_ids: Iterable[StackId], now: float) -> list[LateStack]:
    """Lock those of the stacks with deadline_at <= now that nobody else holds, in id order."""
    s = tables.stack
    rows = conn.execute(
        sa.select(*_LATE)
        .where(s.c.id.in_(sorted(stack_ids)), s.c.deadline_at <= now)
        .order_by(s.c.id)
        .with_for_update(skip_locked=True)
    ).mappings()
    return [LateStack(**row) for row in rows]


def lock_as_late(conn: Connection, stack_id: StackId) -> LateStack | None:
    """Lock a stack of which hardly a column is read; None: it does not exist."""
    s = tables.stack
    row = conn.execute(sa.select(*_LATE).where(s.c.id == stack_id).with_for_update()).mappings().first()
    return None if row is None else LateStack(**row)


def ids_inside(conn: Connection, stack_ids: Sequence[StackId]) -> list[StackId]:
    """Return the ids of the stacks nested in these, without orphaned creates, in the order of locks."""
    return sorted(conn.execute(statements.inside(stack_ids)).scalars())


def lock_inside(conn: Connection, stack_ids: Sequence[StackId]) -> list[LateStack]:
    """Lock the stacks in progress that are nested in these, on all levels, in id order."""
    s = tables.stack
    rows = conn.execute(
        sa.select(*_LATE)
        .where(s.c.id.in_(statements.inside(stack_ids)), s.c.status == Status.IN_PROGRESS)
        .order_by(s.c.id)
        .with_for_update()
    ).mappings()
    return [LateStack(**row) for row in rows]


def skip_rollback(conn: Connection, stack_id: StackId) -> None:
    """Take the mark for rollback off a stack that nobody can roll back."""
    s = tables.stack
    conn.execute(sa.update(s).where(s.c.id == stack_id).values(rollback_at=None))


@dataclass(frozen=True)
class FailedStack:
    """A stack that waits to be rolled back."""

    id: StackId
    shard: int
    rollback_at: float


def _to_roll_back() -> sa.Select[typing.Any]:
    s = tables.stack
    last_at = sa.bindparam("last_at", type_=sa.Float)
    later = sa.or_(s.c.rollback_at > last_at, s.c.id > sa.bindparam("last_id"))
    return (
        sa.select(s.c.id, s.c.shard, s.c.rollback_at)
        .where(s.c.rollback_at >= last_at, later)
        .order_by(s.c.rollback_at, s.c.id)
        .limit(sa.bindparam("most"))
    )


_TO_ROLL_BACK = _to_roll_back()


def to_roll_back(conn: Connection, *, limit: int, after: tuple[float, str] = (0.0, "")) -> list[FailedStack]:
    """Return the stacks that wait for their rollback, the longest waiting first.

    :param after: (rollback_at, id) of the last one of the page before.
    """
    rows = conn.execute(_TO_ROLL_BACK, {"most": limit, "last_at": after[0], "last_id": after[1]}).mappings()
    return [FailedStack(**row) for row in rows]


@dataclass(frozen=True)
class DeletedStack:
    """A stack that was deleted, and is still stored."""

    id: StackId
    shard: int
    deleted_at: float


def deleted_before(
    conn: Connection, moment: float, *, limit: int, after: tuple[float, str] = (0.0, "")
) -> list[DeletedStack]:
    """Return stacks that were deleted before a moment, the oldest first.

    :param after: (deleted_at, id) of the last one of the page before.
    """
    s = tables.stack
    (last_at, last_id) = after
    later = sa.or_(s.c.deleted_at > last_at, s.c.id > last_id)
    rows = conn.execute(
        sa.select(s.c.id, s.c.shard, s.c.deleted_at)
        .where(s.c.deleted_at < moment, s.c.deleted_at >= last_at, later)
        .order_by(s.c.deleted_at, s.c.id)
        .limit(limit)
    )
    return [DeletedStack(**row) for row in rows.mappings()]


def purge(conn: Connection, stack_ids: Sequence[StackId]) -> None:
    """Delete the rows of deleted stacks, and all that belongs to them."""
    snapshot_ids = sa.select(tables.snapshot.c.id).where(tables.snapshot.c.stack_id.in_(sorted(stack_ids)))
    conn.execute(sa.delete(tables.content_use).where(tables.content_use.c.holder_id.in_(snapshot_ids)))
    for table, column in (
        (tables.drift_resource, tables.drift_resource.c.stack_id),
        (tables.drift_stack, tables.drift_stack.c.stack_id),
        (tables.event, tables.event.c.stack_id),
        (tables.task, tables.task.c.stack_id),
        (tables.traversal, tables.traversal.c.stack_id),
        (tables.content_use, tables.content_use.c.holder_id),
        (tables.stack_tag, tables.stack_tag.c.stack_id),
        (tables.imported_key, tables.imported_key.c.stack_id),
        (tables.resource, tables.resource.c.stack_id),
    ):
        conn.execute(sa.delete(table).where(column.in_(sorted(stack_ids))))
    # Nothing of a deleted stack counts any more.
    for table, column in ((tables.snapshot, tables.snapshot.c.stack_id), (tables.stack, tables.stack.c.id)):
        usage.write(conn, Write(sa.delete(table).where(column.in_(sorted(stack_ids))), {}), ())
