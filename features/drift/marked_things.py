"""Things of the cloud with a mark of Stoker's that no row has, as after a restored backup.

A thing whose key a resource has is given to that resource.  The others get rows of their own: a stack that is
nested in one of their project deletes them, as an orphaned create is deleted, by tasks like any other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ...db import events, resources, stacks, traversals
from ...db.id_source import ids_of
from ...db.ids import ResourceId, StackId, TaskId, TraversalNumber
from ...db.rows import Event, Resource, Stack, Task, Traversal
from ...db.schema import tables
from ...db.states import Status, TaskKind, TaskState
from ...db.work import tasks
from ...db.work.orphans import INSISTS, keeper_of
from ...shapes import TypeIdentity

RETRIES = 30
"""Tries of a deletion: a thing may be in use until another one is deleted."""


@dataclass(frozen=True)
class MarkedThing:
    """A thing that no row has.

    :ivar type: its resource type.
    :ivar key: the idempotency key of its creation, which its mark says.
    """

    type: str
    physical_id: str
    key: str


class StackBusy(Exception):
    """A stack that works on its resources, or is deleted: nothing may be given to it now."""


def adopt(
    conn: Connection, thing: MarkedThing, resource_id: ResourceId, before: str | None, *, now: float
) -> bool:
    """Give a thing to the resource whose creation has made it; return False where the resource has changed.

    :param before: the physical id that the resource has, of a thing that is gone; None: it has none.
    :raises StackBusy: an action of the stack is in progress.
    """
    row = resources.by_ids(conn, [resource_id]).get(resource_id)
    if row is None:
        return False
    stack = _lock_quiet(conn, row.stack_id)
    row = resources.by_ids(conn, [resource_id]).get(resource_id)
    if row is None or (row.key, row.physical_id) != (thing.key, before):
        return False
    values = {"physical_id": thing.physical_id, "updated_at": now}
    if before is not None and row.reference_id == before:
        values["reference_id"] = thing.physical_id
    resources.change_many(conn, {resource_id: values})
    events.add_many(conn, [_adoption(stack, row, thing, now)])
    return True


def _adoption(stack: Stack, row: Resource, thing: MarkedThing, now: float) -> Event:
    reason = f"Its creation has made {thing.physical_id}, which it has from now on"
    adopted = replace(row, physical_id=thing.physical_id)
    return Event.at_resource(adopted, (row.action, row.status), reason, now, has_sinks=stack.has_sinks)


def remove(conn: Connection, stack_id: StackId, things: Sequence[MarkedThing], *, now: float) -> Stack | None:
    """Begin to delete things; return the stack that does, which is nested in a stack of the project.

    Those that rows have by now are left out; None: there is none left.

    :param stack_id: the stack with whose user's rights they are deleted.
    :raises StackBusy: an action of that stack is in progress.
    """
    stack = _lock_quiet(conn, stack_id)
    things = _of_nobody(conn, things)
    if not things:
        return None
    ids = ids_of(conn)
    number = ids.new(TraversalNumber)
    keeper = keeper_of(stack, f"-unknown-{number}", "Removes what no resource has", now=now)
    stacks.insert(conn, keeper)
    rows = [_row_of(thing, ids.new(ResourceId), keeper, now) for thing in things]
    resources.insert_many(conn, rows)
    deletions = [
        Task(
            id=ids.new(TaskId),
            kind=TaskKind.DELETE,
            state=TaskState.READY,
            pending=0,
            resource_id=row.id,
            ready_at=now,
            due_at=now,
            retries_left=RETRIES,
            finish_id=number,
            definition=INSISTS,
            traversal=keeper.traversal,
            stack_id=keeper.id,
            shard=keeper.shard,
        )
        for row in rows
    ]
    tasks.insert_many(conn, deletions)
    traversals.insert(
        conn,
        Traversal(
            id=number,
            open_tasks=len(deletions),
            action="DELETE",
            traversal=keeper.traversal,
            stack_id=keeper.id,
            shard=keeper.shard,
        ),
    )
    return keeper


def _lock_quiet(conn: Connection, stack_id: StackId) -> Stack:
    """Lock a stack that does nothing.

    :raises StackBusy: it does something, or is deleted.
    """
    stack = stacks.lock(conn, stack_id)
    is_running = tasks.running_of_stack(conn, stack.id) or traversals.get_running(conn, stack.id)
    if stack.deleted_at is not None or stack.status == Status.IN_PROGRESS or is_running:
        raise StackBusy(f"stack {stack.name} ({stack.id}) is {stack.action}_{stack.status}")
    return stack


def _of_nobody(conn: Connection, things: Sequence[MarkedThing]) -> Sequence[MarkedThing]:
    """Return the things that no row has, by key or by physical id."""
    r = tables.resource
    keys = [thing.key for thing in things]
    ids = [thing.physical_id for thing in things]
    taken_keys = set(conn.execute(sa.select(r.c.key).where(r.c.key.in_(keys))).scalars())
    taken_ids = set(conn.execute(sa.select(r.c.physical_id).where(r.c.physical_id.in_(ids))).scalars())
    return [thing for thing in things if thing.key not in taken_keys and thing.physical_id not in taken_ids]


def _row_of(thing: MarkedThing, row_id: ResourceId, keeper: Stack, now: float) -> Resource:
    return Resource(
        id=row_id,
        stack_id=keeper.id,
        name=thing.physical_id,
        type=thing.type,
        plugin=TypeIdentity(thing.type),  # A service has made it, so it is no template.
        action="CREATE",
        status=Status.FAILED,
        reason="No resource has it",
        created_at=now,
        updated_at=now,
        physical_id=thing.physical_id,
        properties={},
        data={},
        key=thing.key,
    )
