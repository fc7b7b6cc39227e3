"""The end of tasks that are done, with all that a transaction stores of it first, as one statement.

In a chain each link is a transaction of its own, and each statement costs it more than its rows do.  On
PostgreSQL one statement compares the fence and ends the tasks, stores the resources of those that it has
ended, and then locks their successors: in the order that all transactions keep to; see commit.py.

All its parts see the rows as they were when it began, or as they are once it has their locks.  So of a task's
successors it finds those that the claim knew.  Who adds another one locks the task: the row that is returned
names it, and the caller locks it then.

Of a task whose traversal was superseded not all changes count, so its resource is stored behind that, and
locked after the successors.  A transaction that meets this one in a circle is run again.
"""

import functools
import typing
from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .. import bulk, resources
from ..bulk import Write, WriteStatement
from ..ids import MemberId, ResourceId, TaskId
from ..rows import Outcome, Task
from ..schema import tables
from ..states import Standing
from . import transitions
from .countdown import waiting_tasks


@dataclass(frozen=True)
class Completion:
    """The tasks that a statement has ended.

    :ivar tasks: as they were while they ran.
    :ivar stored: those of them whose resources have the changes already.
    :ivar successors: tasks that wait for them, and that the claims knew, in the order of their ids; the rows
        are locked.
    """

    tasks: Sequence[Task] = ()
    stored: frozenset[TaskId] = frozenset()
    successors: Sequence[Task] = ()


def only_change(conn: Connection, outcomes: Sequence[Outcome], *, now: float) -> Write | None:
    """Return the one write of all that ended tasks change besides their rows and events, if there is one.

    Two outcomes of one resource are no such write: the fence may let one of them pass, and not the other.
    """
    if len(outcomes) > bulk.BATCH or any(outcome.remove or outcome.copy for outcome in outcomes):
        return None
    if len({outcome.resource_id for outcome in outcomes}) < len(outcomes):
        return None
    changed = [{**outcome.changes, "id": outcome.resource_id} for outcome in outcomes if outcome.changes]
    writes = resources.writes_of_changes(conn, changed, now=now)
    return writes[0] if len(writes) == 1 else None


def complete_and_store(
    conn: Connection, outcomes: Sequence[Outcome], change: Write, *, member: MemberId
) -> Completion:
    """End the tasks of outcomes that this attempt of the member still holds, and store their resources.

    Of the others nothing is changed; their successors may be locked.
    """
    resource_ids = {outcome.task_id: outcome.resource_id for outcome in outcomes}
    successor_ids = sorted({successor for outcome in outcomes for successor in outcome.successors})
    claimed = {"ids": sorted(resource_ids), "claimed_as": outcomes[0].attempt, "claimant": member}
    ending, values = bulk.by_ids(transitions.completing(sorted(resource_ids)), claimed)
    values = {**values, **bulk.named(change)}
    waiting = None
    if 0 < len(successor_ids) <= bulk.BATCH:
        waiting, successor_values = bulk.by_ids(_WAITING, {"successor_ids": successor_ids})
        values = {**values, **successor_values}
    rows = conn.execute(_statement(ending, change.statement, waiting), values).mappings().all()
    ended = [Task.while_claimed(dict(row), member) for row in rows if row["id"] in resource_ids]
    successors = [Task.of(dict(row)) for row in rows if row["id"] not in resource_ids]
    stored = (task.id for task in ended if _is_stored(task, resource_ids[task.id]))
    return Completion(ended, frozenset(stored), successors)


def _is_stored(task: Task, resource_id: ResourceId) -> bool:
    """Return whether the statement has stored the changes of the task's resource.

    Of a task whose traversal was superseded not all of them count; see commit.py.
    """
    return task.standing == Standing.OWN and task.resource_id == resource_id


_WAITING = waiting_tasks("successor_ids")


@functools.cache
def _statement(
    ending: sa.Update, change: WriteStatement, waiting: sa.Select[typing.Any] | None
) -> sa.Select[typing.Any] | sa.CompoundSelect[typing.Any]:
    """Return the statement of the parts, each of which waits for the one before."""
    ended = ending.cte("ended")
    assert isinstance(change, sa.Update)
    is_stored = sa.and_(ended.c.resource_id == tables.resource.c.id, ended.c.standing == Standing.OWN)
    stored = (
        change.where(sa.exists(sa.select(1).where(is_stored))).returning(sa.literal_column("1")).cte("stored")
    )
    if waiting is None:
        return sa.select(ended).add_cte(stored)
    # The query reads no row, and so locks none, before all rows are written: it waits for their number.
    is_written = sa.select(sa.func.count()).select_from(stored).scalar_subquery() >= 0
    successors = waiting.where(is_written).subquery("successors")
    return sa.union_all(sa.select(ended), sa.select(successors))
