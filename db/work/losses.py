"""The losses of a task: conductors that died or went silent while they held it.

A step that kills or freezes its process would fell one conductor after the other.  So the task's row keeps
the hosts that were lost with it, in ``task.losses``: ``{"hosts": ["a", "b"], "step": 7}``; NULL is usual.

The first loss counts for each task that the conductor held: nobody knows which of them it was, for no step is
announced in the database.  As soon as a step of a task ends, all its losses are forgotten.  So a later loss
counts only for the few tasks of which no step has ended since.  Where the conductor's process rejoins, it
was only silent, and its loss is forgiven.  The last loss before the limit has to be certain: such a task
runs its step while no other of its kind runs, and announces it ("step": the attempt) before.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..bulk import chunks
from ..ids import MemberId, TaskId
from ..rows import Task
from ..schema import tables
from ..states import TaskState


@dataclass(frozen=True)
class Loss:
    """A conductor that is gone, not in an orderly stop.

    :ivar host: its name.
    :ivar most: losses at which a task fails.
    """

    host: str
    most: int


def hosts(task: Task) -> Sequence[str]:
    """Return the hosts that were lost with the task, one entry for each loss."""
    return tuple(task.losses["hosts"]) if task.losses else ()


def is_last_chance(task: Task, most: int) -> bool:
    """Return whether the next loss makes the task fail."""
    return len(hosts(task)) == most - 1


def count(conn: Connection, lost: Sequence[Task], loss: Loss) -> None:
    """Count the loss for tasks whose rows the caller has locked."""
    t = tables.task
    changed: dict[str, list[TaskId]] = {}
    for task in lost:
        announced = (task.losses or {}).get("step") == task.attempt
        known_hosts = hosts(task)
        if len(known_hosts) < loss.most - 1 or (len(known_hosts) == loss.most - 1 and announced):
            changed.setdefault(json.dumps([*known_hosts, loss.host]), []).append(task.id)
    for names, ids in sorted(changed.items()):
        for chunk in chunks(ids):
            conn.execute(sa.update(t).where(t.c.id.in_(chunk)).values(losses={"hosts": json.loads(names)}))


def forgive(conn: Connection, task_ids: Iterable[TaskId], host: str) -> None:
    """Take back one loss of a host for these tasks: its process lives."""
    t = tables.task
    for chunk in chunks(task_ids):
        rows = conn.execute(
            sa.select(t.c.id, t.c.losses)
            .where(t.c.id.in_(chunk), t.c.losses.is_not(None))
            .order_by(t.c.id)
            .with_for_update()
        ).all()
        for row in rows:
            if host in (remaining := list(row.losses["hosts"])):
                remaining.remove(host)
                losses = {**row.losses, "hosts": remaining} if remaining else None
                conn.execute(sa.update(t).where(t.c.id == row.id).values(losses=losses))


def announce(conn: Connection, task: Task, member: MemberId) -> bool:
    """Store that the attempt's step begins now; False: the claim does not hold any more."""
    t = tables.task
    done = conn.execute(
        sa.update(t)
        .where(
            t.c.id == task.id,
            t.c.attempt == task.attempt,
            t.c.member == member,
            t.c.state == TaskState.RUNNING,
        )
        .values(losses={"hosts": list(hosts(task)), "step": task.attempt})
    )
    return done.rowcount > 0


def forget(conn: Connection, task_ids: Iterable[TaskId], member: MemberId | None = None) -> None:
    """Forget all losses of tasks.

    :param member: the member whose tasks alone are changed; None: all of the tasks.
    """
    t = tables.task
    is_of_member = () if member is None else (t.c.member == member,)
    for chunk in chunks(task_ids):
        conn.execute(sa.update(t).where(t.c.id.in_(chunk), *is_of_member).values(losses=None))
