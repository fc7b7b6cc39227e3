"""Rows of resources."""

import typing
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..shapes import Json, JsonMap
from . import bulk, statements
from .bulk import OneOf, Writes, chunks
from .errors import NotFound
from .ids import ResourceId, SnapshotId, StackId
from .rows import ListedResource, ListedStack, Resource, Task
from .schema import tables
from .states import Status


def insert_many(conn: Connection, resources: Sequence[Resource]) -> None:
    """Store new resources; their ids are the transaction's own."""
    bulk.insert_new(conn, tables.resource, map(vars, resources))


def _with_ending(columns: JsonMap) -> JsonMap:
    """Return columns in which a failure without a word about it was not cancelled."""
    is_failure = columns.get("status") == Status.FAILED
    return {"cancelled": False, **columns} if is_failure else columns


def get(conn: Connection, resource_id: ResourceId) -> Resource:
    """Return a resource.

    :raises NotFound: no such resource.
    """
    rows = by_ids(conn, [resource_id])
    if resource_id not in rows:
        raise NotFound("Resource", resource_id)
    return rows[resource_id]


_BY_IDS = sa.select(tables.resource).where(OneOf(tables.resource.c.id))


def by_ids(conn: Connection, ids: Iterable[ResourceId]) -> dict[ResourceId, Resource]:
    """Return the resources that exist, by their ids."""
    rows_by_id: dict[ResourceId, Resource] = {}
    for chunk in chunks(ids):
        rows = conn.execute(_BY_IDS, {"ids": chunk}).mappings()
        rows_by_id.update((row["id"], Resource(**row)) for row in rows)
    return rows_by_id


def of_tasks(conn: Connection, tasks: Iterable[Task]) -> dict[ResourceId, Resource]:
    """Return the resources of tasks, as far as they exist, by their ids."""
    return by_ids(conn, {task.resource_id for task in tasks})


class StackLabel(typing.NamedTuple):
    """The facts about a stack that events and logs of its resources show.

    :ivar has_sinks: whether its root has event sinks.
    """

    name: str
    project_id: str
    root_id: StackId
    has_sinks: bool


@dataclass
class ClaimedRows:
    """Resources that were read to be claimed.

    :ivar locked: ids of those to claim that another transaction has locked.
    :ivar stacks: the stacks of all of them, by their ids.
    """

    resources: dict[ResourceId, Resource] = field(default_factory=dict)
    locked: set[ResourceId] = field(default_factory=set)
    stacks: dict[StackId, StackLabel] = field(default_factory=dict)


_FIELDS = tuple(Resource.__dataclass_fields__)


def _skipping() -> sa.Select[typing.Any]:
    r = tables.resource
    s = tables.stack
    claimed = r.alias("claimed")
    query = sa.select(claimed.c.id).where(OneOf(claimed.c.id, "claimed_ids"))
    # PostgreSQL runs what locks in a CTE once.  A subquery it may run again for each resource of the list, if
    # it takes the table for small: 1,200 resources took more than a minute.
    free = query.with_for_update(skip_locked=True, key_share=True).cte("free")
    joined = r.outerjoin(free, free.c.id == r.c.id).join(s, s.c.id == r.c.stack_id)
    label = (s.c[name] for name in StackLabel._fields)
    columns = (*(r.c[name] for name in _FIELDS), free.c.id.label("free_id"), *label)
    return sa.select(*columns).select_from(joined).where(OneOf(r.c.id))


_SKIPPING = _skipping()


def lock_free(conn: Connection, ids: Iterable[ResourceId], claimed: Set[ResourceId]) -> ClaimedRows:
    """Read resources with their stacks' labels, and lock some of them, without waiting for locks.

    One statement does it all, because a second one would make each claim slower.

    :param claimed: ids of the resources to lock, all of them among `ids`.
    """
    rows = ClaimedRows()
    count = len(_FIELDS)
    for chunk in chunks(ids):
        claimed_ids = [i for i in chunk if i in claimed]
        for row in conn.execute(*bulk.by_ids(_SKIPPING, {"ids": chunk, "claimed_ids": claimed_ids})).all():
            resource = Resource(*row[:count])
            rows.resources[resource.id] = resource
            if row.free_id is None and resource.id in claimed:
                rows.locked.add(resource.id)
            if resource.stack_id not in rows.stacks:
                rows.stacks[resource.stack_id] = StackLabel(*row[count + 1 :])
    return rows


_OF_STACK = (
    sa.select(tables.resource)
    .where(tables.resource.c.stack_id == sa.bindparam("key"), tables.resource.c.snapshot_id.is_(None))
    .order_by(tables.resource.c.id)
)


def of_stack(conn: Connection, stack_id: StackId) -> list[Resource]:
    """Return all rows of a stack, replaced ones too, in id order; without the copies that snapshots keep."""
    return [Resource(**row) for row in conn.execute(_OF_STACK, {"key": stack_id}).mappings()]


def copies(conn: Connection, stack_id: StackId, snapshot_id: SnapshotId | None = None) -> list[Resource]:
    """Return the copies that the stack's snapshots, or one of them, keep of its resources, in id order."""
    r = tables.resource
    which = r.c.snapshot_id.is_not(None) if snapshot_id is None else r.c.snapshot_id == snapshot_id
    query = sa.select(r).where(r.c.stack_id == stack_id, which)
    return [Resource(**row) for row in conn.execute(query.order_by(r.c.id)).mappings()]


def by_name(conn: Connection, stack_id: StackId, name: str) -> Resource:
    """Return the resource of that name that was not replaced.

    :raises NotFound: there is none.
    """
    r = tables.resource
    row = (
        conn.execute(
            sa.select(r)
            .where(
                r.c.stack_id == stack_id,
                r.c.name == name,
                r.c.replaced_by.is_(None),
                r.c.snapshot_id.is_(None),
            )
            .order_by(r.c.id.desc())
            .limit(1)
        )
        .mappings()
        .first()
    )
    if row is None:
        raise NotFound("Resource", name)
    return Resource(**row)


def with_physical_id(conn: Connection, stack_id: StackId, physical_id: str) -> Resource | None:
    """Return the newest resource of a stack with this physical id; None: there is none."""
    r = tables.resource
    query = sa.select(r).where(
        r.c.stack_id == stack_id, r.c.physical_id == physical_id, r.c.snapshot_id.is_(None)
    )
    row = conn.execute(query.order_by(r.c.id.desc()).limit(1)).mappings().first()
    return None if row is None else Resource(**row)


def complete_requiring(conn: Connection, source: Resource, plugins: Collection[str]) -> list[ResourceId]:
    """Return the complete resources of some types, in the stack of `source`, that refer to it."""
    r = tables.resource.c
    query = sa.select(r.id, r.requires).where(
        r.stack_id == source.stack_id,
        r.plugin.in_(sorted(plugins)),
        r.status == Status.COMPLETE,
        r.replaced_by.is_(None),
        r.snapshot_id.is_(None),
    )
    return [row_id for row_id, required_ids in conn.execute(query) if source.id in (required_ids or ())]


def types_in(conn: Connection, stack_id: StackId) -> list[str]:
    """Return the types of a tree's resources after the environment's mapping, sorted."""
    r = tables.resource
    query = sa.select(r.c.plugin).where(r.c.stack_id.in_(statements.below(stack_id))).distinct()
    return sorted(conn.execute(query).scalars())


def stacks_with_object(conn: Connection, project_id: str, physical_id: str) -> list[StackId]:
    """Return the living stacks of a project that have a resource of this physical id, at most two."""
    r = tables.resource
    s = tables.stack
    query = (
        sa.select(s.c.id)
        .join(r, r.c.stack_id == s.c.id)
        .where(
            s.c.project_id == project_id,
            s.c.deleted_at.is_(None),
            r.c.physical_id == physical_id,
            r.c.snapshot_id.is_(None),
        )
        .distinct()
        .limit(2)
    )
    return list(conn.execute(query).scalars())


DETAILS = ("definition", "properties", "attributes")
"""Columns of a list with details, whose values may be long."""
_DETAILED = [
    tables.stack.c.name.label(name) if name == "stack_name" else tables.resource.c[name]
    for name in ListedResource._fields
]
_LISTED = [sa.null().label(column.key) if column.key in DETAILS else column for column in _DETAILED]


def of_tree(
    conn: Connection, stack: ListedStack, depth: int, *, details: bool = False
) -> list[ListedResource]:
    """Return the resources of a stack and of those nested in it.

    Replaced resources are left out.

    :param depth: levels below the stack; 0: its own resources only.
    :param details: whether the columns named in DETAILS are read, too; they are None else.
    """
    r = tables.resource
    s = tables.stack
    rows = conn.execute(
        sa.select(*(_DETAILED if details else _LISTED))
        .join_from(r, s, s.c.id == r.c.stack_id)
        .where(
            s.c.id.in_(statements.below(stack.id, stack.depth + depth)),
            r.c.replaced_by.is_(None),
            r.c.snapshot_id.is_(None),
        )
        .order_by(s.c.depth, r.c.id)
    )
    return list(map(ListedResource._make, rows.all()))


def set_metadata(
    conn: Connection, resource_id: ResourceId, *, generation: int, metadata: Json, now: float
) -> bool:
    """Change the metadata; return False if its generation is not `generation` any more."""
    r = tables.resource
    done = conn.execute(
        sa.update(r)
        .where(r.c.id == resource_id, r.c.generation == generation)
        .values(metadata=metadata, generation=generation + 1, updated_at=now)
    )
    return done.rowcount == 1


def advance_generation(conn: Connection, resource_id: ResourceId) -> None:
    """Lock a resource, and let the tasks that wait for it see a change, as `set_metadata` does."""
    r = tables.resource
    conn.execute(sa.update(r).where(r.c.id == resource_id).values(generation=r.c.generation + 1))


def set_status(
    conn: Connection,
    resource_id: ResourceId,
    *,
    action: str,
    status: str,
    reason: str,
    now: float,
    unhealthy: bool = False,
) -> None:
    """Change the status of a resource that no task works on.

    :param unhealthy: whether a user marks it unhealthy.
    """
    r = tables.resource
    values = {
        **{"action": action, "status": status, "reason": reason},
        **{"unhealthy": unhealthy, "updated_at": now},
    }
    conn.execute(sa.update(r).where(r.c.id == resource_id).values(_with_ending(values)))


def delete_many(conn: Connection, ids: Iterable[ResourceId]) -> None:
    """Delete rows."""
    bulk.in_chunks(conn, _DELETE, ids)


_DELETE = sa.delete(tables.resource).where(OneOf(tables.resource.c.id))


def change_many(conn: Connection, changes: Mapping[ResourceId, JsonMap]) -> None:
    """Set columns of rows."""
    for group in _grouped({**_with_ending(columns), "id": row_id} for row_id, columns in changes.items()):
        bulk.update(conn, tables.resource, group)


def store_changes(conn: Connection, rows: Iterable[JsonMap], *, now: float) -> None:
    """Set columns of rows, and the instant of their change; rows with equal columns share a statement.

    :param rows: columns and their values, ``id`` among them.
    """
    for group in _changed(rows, now):
        bulk.update(conn, tables.resource, group)


def writes_of_changes(conn: Connection, rows: Iterable[JsonMap], *, now: float) -> Writes:
    """Return the writes on PostgreSQL of what `store_changes` stores."""
    return [bulk.update_records(conn, tables.resource, group) for group in _changed(rows, now)]


def _changed(rows: Iterable[JsonMap], now: float) -> list[list[JsonMap]]:
    return _grouped({**_with_ending(row), "updated_at": now} for row in rows)


def _grouped(rows: Iterable[JsonMap]) -> list[list[JsonMap]]:
    """Return the rows, those with equal columns together, with these in the same order."""
    by_columns: dict[tuple[str, ...], list[JsonMap]] = {}
    for row in rows:
        columns = tuple(sorted(row))
        by_columns.setdefault(columns, []).append({name: row[name] for name in columns})
    return [group for _, group in sorted(by_columns.items())]


def replace_by(conn: Connection, resource_id: ResourceId, new: Resource) -> None:
    """Store the replacement of a resource that cannot be updated.

    :raises DBDuplicateEntry: a row has its id.  That was made with the task, so to run the transaction again
        would not help: the result counts as one that cannot be stored, and the task fails.
    """
    r = tables.resource
    conn.execute(sa.insert(r).values(vars(new)))
    conn.execute(sa.update(r).where(r.c.id == resource_id).values(replaced_by=new.id))
