"""The rules that hold after every transaction, whoever made it.

The database and the cloud are asked, not the code that is tested.

The names of the invariants are those of the design.
"""

import pathlib
import sqlite3
import typing
from collections import Counter
from collections.abc import Callable, Sequence

import sqlalchemy as sa
from simulation.cloud import Cloud
from simulation.coverage import Arrow
from simulation.world import World
from sqlalchemy.engine import Connection
from stoker.db.engine import Database
from stoker.db.ids import TaskId
from stoker.db.rows import Outcome
from stoker.db.stack_states import ARROWS, Actor
from stoker.db.states import FINAL, TRANSITIONS, UNSTARTED, TaskState
from stoker.db.work import commit
from stoker.db.work.claim import Claimant
from stoker.db.work.commit import Exchange

PER_TURN = 40
PER_TASK = 16
"""Statements of one transaction of the work loop: so many, and so many for each result and each claim.  What
a statement of the work loop touches does not follow the stack's size either: see test_cost.py."""

ADOPTED = """
SELECT physical_id FROM resource
WHERE (action NOT IN ('INIT', 'ADOPT') OR (action = 'ADOPT' AND status = 'COMPLETE')) AND snapshot_id IS NULL
"""
OWNERS = "SELECT key, physical_id FROM resource WHERE snapshot_id IS NULL"
"""A snapshot's copy of a resource names the physical resource, too, but does not own it."""
OWNED = """
SELECT 1 FROM resource JOIN stack ON stack.id = resource.stack_id
WHERE resource.physical_id = ? AND resource.snapshot_id IS NULL
AND (stack.parent_id IS NULL OR stack.parent_resource_id IS NOT NULL)
"""
"""A stack that is nested and no resource's only removes what late calls have made."""

PATIENCE = 60
"""Events of the schedule."""


def _sql(states: typing.Iterable[TaskState]) -> str:
    return ", ".join(f"'{state}'" for state in sorted(states))


_ALLOWED = " OR ".join(
    f"(OLD.state = '{old}' AND NEW.state IN ({_sql([*new, old])}))" for old, new in TRANSITIONS.items()
)
_STACKS = ", ".join(
    f"('{source or ''}', '{target}')"
    for (source, target), actors in ARROWS.items()
    if actors != {Actor.OPERATOR}
)
TRIGGERS = f"""
CREATE TABLE violation (text TEXT);
CREATE VIEW attempt AS SELECT id, traversal, state = 'running' AS runs, open_tasks FROM traversal;
CREATE TABLE aborted (traversal TEXT);
CREATE TRIGGER aborted AFTER UPDATE OF aborted ON traversal WHEN NEW.aborted BEGIN
    INSERT INTO aborted VALUES (NEW.traversal);
END;
CREATE TRIGGER claimed AFTER UPDATE OF state ON task
WHEN NEW.state = 'running' AND OLD.state <> 'running' BEGIN
    INSERT INTO violation SELECT 'I1: task ' || NEW.id || ' of a traversal that is over was begun'
    WHERE NEW.kind <> 'delete_snapshot' AND NOT EXISTS (
        SELECT 1 FROM stack WHERE id = NEW.stack_id AND traversal = NEW.traversal AND status = 'IN_PROGRESS'
    );
    INSERT INTO violation SELECT 'I2: task ' || NEW.id || ' was claimed without a new attempt'
    WHERE NEW.attempt <> OLD.attempt + 1;
    INSERT INTO violation SELECT 'I3: task ' || NEW.id || ' was begun before task ' || before.id
    FROM task AS before, json_each(before.successors) AS successor
    WHERE before.stack_id = NEW.stack_id AND successor.value = NEW.id AND before.state NOT IN ({_sql(FINAL)});
END;
CREATE TABLE unwatched (uuid TEXT PRIMARY KEY);
CREATE TRIGGER unwatched AFTER INSERT ON event BEGIN
    INSERT INTO unwatched SELECT NEW.uuid FROM stack
    JOIN stack AS root ON root.id = stack.root_id JOIN content ON content.id = root.environment_id
    WHERE stack.id = NEW.stack_id AND ifnull(json_array_length(content.body, '$.event_sinks'), 0) = 0
    AND (root.action <> 'ROLLBACK' OR NOT root.has_sinks);
    INSERT OR IGNORE INTO unwatched SELECT NEW.uuid WHERE (
        SELECT event.uuid FROM stack JOIN stack AS root ON root.id = stack.root_id
        JOIN event ON event.stack_id = root.id AND event.resource_name = root.name
        WHERE stack.id = NEW.stack_id AND event.status = 'IN_PROGRESS' AND event.at <= NEW.at
        ORDER BY event.at DESC, event.id DESC LIMIT 1
    ) IN (SELECT uuid FROM unwatched);
END;
CREATE TABLE retained (physical_id TEXT);
CREATE TRIGGER retained AFTER UPDATE OF action ON resource
WHEN OLD.action = 'ADOPT' AND NEW.action = 'DELETE' BEGIN
    INSERT INTO retained SELECT NEW.physical_id FROM stack
    WHERE id = NEW.stack_id AND action = 'ROLLBACK' AND ifnull(previous, 'null') IN ('null', '{{}}');
END;
CREATE TABLE adopted (resource_id INTEGER);
CREATE TRIGGER adopted AFTER UPDATE OF action ON resource WHEN NEW.action = 'ADOPT' BEGIN
    INSERT INTO adopted VALUES (NEW.id);
END;
CREATE TABLE doubtful (resource_id INTEGER);
CREATE TRIGGER doubtful AFTER UPDATE OF action ON resource
WHEN OLD.action = 'UPDATE' AND OLD.status = 'FAILED' AND NEW.action NOT IN ('UPDATE', 'DELETE') BEGIN
    INSERT INTO doubtful VALUES (NEW.id);
END;
CREATE TABLE unread (resource_id INTEGER);
CREATE TRIGGER unread AFTER UPDATE OF state ON task
WHEN NEW.kind = 'refresh' AND NEW.state = 'done' AND OLD.claimed_at >= OLD.expires_at BEGIN
    INSERT INTO unread VALUES (NEW.resource_id);
END;
CREATE TABLE arrow (source TEXT, target TEXT, count INTEGER, PRIMARY KEY (source, target));
CREATE TRIGGER counted AFTER UPDATE OF state ON task WHEN NEW.state <> OLD.state BEGIN
    INSERT INTO arrow VALUES (OLD.state, NEW.state, 1)
    ON CONFLICT (source, target) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER moved AFTER UPDATE OF state ON task
WHEN NOT ({_ALLOWED}) BEGIN
    INSERT INTO violation VALUES ('I2: task ' || NEW.id || ' went from ' || OLD.state || ' to ' || NEW.state);
END;
CREATE TRIGGER stack_moved AFTER UPDATE OF action, status ON stack
WHEN (OLD.action || '_' || OLD.status, NEW.action || '_' || NEW.status) NOT IN (VALUES {_STACKS}) BEGIN
    INSERT INTO violation VALUES (
        'S1: stack ' || NEW.name || ' went from ' || OLD.action || '_' || OLD.status || ' to ' || NEW.action
        || '_' || NEW.status
    );
END;
CREATE TRIGGER stack_stored AFTER INSERT ON stack
WHEN ('', NEW.action || '_' || NEW.status) NOT IN (VALUES {_STACKS}) BEGIN
    INSERT INTO violation VALUES (
        'S1: stack ' || NEW.name || ' began as ' || NEW.action || '_' || NEW.status
    );
END;
CREATE TRIGGER repeated AFTER UPDATE OF state ON task
WHEN OLD.state IN ({_sql(FINAL)}) BEGIN
    INSERT INTO violation VALUES ('I2: task ' || NEW.id || ' had ended and ended again');
END;
"""

_COUNTS = f"""
SELECT 'I3: task ' || task.id || ' waits for ' || task.pending || ', there are ' || count(before.id)
FROM task LEFT JOIN (
    SELECT task.id, successor.value AS after FROM task, json_each(task.successors) AS successor
    WHERE task.state NOT IN ({_sql(FINAL)})
) AS before ON before.after = task.id
WHERE task.state = 'waiting'
GROUP BY task.id HAVING task.pending <> count(before.id) OR task.pending = 0
"""
_ENDS = f"""
SELECT 'I4: stack ' || stack.name || ' waits for ' || ifnull(attempt.open_tasks, 'nothing') || ', there are '
    || count(task.id)
FROM stack
LEFT JOIN attempt ON attempt.traversal = stack.traversal AND attempt.runs
LEFT JOIN task
    ON task.traversal = stack.traversal AND task.state NOT IN ({_sql(FINAL)})
WHERE stack.status = 'IN_PROGRESS' AND stack.rollback_at IS NULL
GROUP BY stack.id HAVING attempt.open_tasks IS NULL OR attempt.open_tasks <> count(task.id)
"""
_OVER = f"""
SELECT 'I1: task ' || task.id || ' is ' || task.state || ' in a traversal that is over'
FROM task JOIN stack ON stack.id = task.stack_id
WHERE task.kind <> 'delete_snapshot' AND task.state IN ({_sql(UNSTARTED)})
AND (stack.traversal <> task.traversal OR stack.status <> 'IN_PROGRESS')
"""
_FORGOTTEN = """
SELECT 'I4: nobody will look at task ' || id || ', which is ' || state FROM task
WHERE (state = 'ready' AND due_at IS NULL) OR (state = 'running' AND member IS NULL)
OR (state = 'parked' AND due_at IS NULL AND waits_on IS NULL)
"""
_SHOWN = """
SELECT 'H1: stack ' || name || ' is ' || action || '_FAILED, and is to be rolled back: ' || reason FROM stack
WHERE status = 'FAILED' AND NOT disable_rollback AND action IN ('CREATE', 'UPDATE', 'ADOPT', 'RESTORE')
AND reason NOT LIKE '%cancelled%' AND reason NOT LIKE 'Stopped with%' AND NOT EXISTS (
    SELECT 1 FROM aborted WHERE aborted.traversal = stack.traversal
)
"""
"""But those that a user has cancelled, or a breakpoint has ended, nobody may see as failed before the
rollback has ended: who polls stops there."""
_PENDING = """
SELECT 'H2: the rollback of stack ' || name || ' is ' || action || '_' || status || ' before it is planned'
FROM stack WHERE rollback_at IS NOT NULL
AND (action <> 'ROLLBACK' OR status <> 'IN_PROGRESS' OR deadline_at IS NULL)
"""
_USED = """
WITH root AS (SELECT * FROM stack WHERE live_name IS NOT NULL),
kept AS (SELECT snapshot.*, root.tenant AS owner FROM snapshot JOIN root ON root.id = snapshot.stack_id),
used AS (
    SELECT tenant AS id, 'stacks' AS counter, 1 AS number FROM root
    UNION ALL SELECT tenant, 'resources', tree_resources + excess_resources FROM root
    UNION ALL SELECT tenant, 'goal_bytes', goal_size FROM root
    UNION ALL SELECT owner, 'goal_bytes', goal_size FROM kept
    UNION ALL SELECT owner, 'snapshots', 1 FROM kept
    UNION ALL SELECT project_id, 'software_configs', 1 FROM software_config
    UNION ALL SELECT project_id, 'software_bytes', size FROM software_config
    UNION ALL SELECT project_id, 'software_deployments', 1 FROM software_deployment
    UNION ALL SELECT project_id, 'software_bytes', input_size + output_size FROM software_deployment
    UNION ALL SELECT id, 'stacks', -stacks FROM project
    UNION ALL SELECT id, 'resources', -resources FROM project
    UNION ALL SELECT id, 'snapshots', -snapshots FROM project
    UNION ALL SELECT id, 'goal_bytes', -goal_bytes FROM project
    UNION ALL SELECT id, 'software_configs', -software_configs FROM project
    UNION ALL SELECT id, 'software_deployments', -software_deployments FROM project
    UNION ALL SELECT id, 'software_bytes', -software_bytes FROM project
)
SELECT 'Q1: project ' || id || ' has ' || sum(number) || ' ' || counter || ' more than its row says'
FROM used GROUP BY id, counter HAVING sum(number) <> 0
"""
"""The counters of quotas against the sums of all rows."""
CHECKS = ("SELECT text FROM violation", _COUNTS, _ENDS, _OVER, _FORGOTTEN, _SHOWN, _PENDING, _USED)


class Audit:
    """Watches.

    :ivar wrong: what must never happen and did; the cloud's own findings, too.
    """

    def __init__(self, database: Database, path: pathlib.Path, cloud: Cloud) -> None:
        self._cloud = cloud
        self.wrong = cloud.wrong
        self._statements = 0
        self._leaked: dict[str, int] = {}
        self._exchange: Callable[..., Exchange] = commit.exchange
        self._own = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._own.executescript(TRIGGERS)
        cloud.is_owned = lambda physical: self._own.execute(OWNED, (physical,)).fetchone() is not None
        self._engine = database.engine
        sa.event.listen(self._engine, "before_cursor_execute", self._count)

    def _count(self, *_: object) -> None:
        self._statements += 1

    def close(self) -> None:
        """The database is left."""
        sa.event.remove(self._engine, "before_cursor_execute", self._count)
        self._own.close()

    def after_commit(self) -> None:
        """Somebody has changed something."""
        for query in CHECKS:
            self.wrong += [text for (text,) in self._own.execute(query)]

    def after_event(self, world: World) -> None:
        """Something has happened.  What was made belongs to a row once its maker had the time to say so."""
        adopted = self._own.execute(ADOPTED).fetchall() if self._cloud.lent else ()
        self._cloud.lent.difference_update(physical for (physical,) in adopted)
        if any(conductor.hanging or conductor.paused for conductor in world.conductors.values()):
            return
        rows = self._own.execute(OWNERS).fetchall()
        keys = {key for key, _ in rows}
        held = {physical for _, physical in rows}
        leaked = {n: t for n, t in self._cloud.objects.items() if t.key not in keys and n not in held}
        if leaked:
            owned_by_nobody = self._cloud.lent | self.retained()
            leaked = {n: t for n, t in leaked.items() if n not in owned_by_nobody}
        self._leaked = {physical: self._leaked.get(physical, 0) + 1 for physical in leaked}
        self.wrong += [
            f"I7: {leaked[physical].resource} ({physical}) belongs to no row"
            for physical, count in self._leaked.items()
            if count == PATIENCE
        ]

    def unsettled(self) -> set[str]:
        """Ids of the stacks that are not final, or wait to be rolled back."""
        query = "SELECT id FROM stack WHERE status = 'IN_PROGRESS' OR rollback_at IS NOT NULL"
        return self._column(query)

    def in_progress(self) -> set[str]:
        """Actions that stacks are in."""
        query = "SELECT DISTINCT action FROM stack WHERE status = 'IN_PROGRESS'"
        return self._column(query)

    def unwatched(self) -> set[str]:
        """Ids of events of stacks that had no event sinks then, or when the action began that it is of.

        A rollback to nothing has no environment, and keeps the sinks that there were.
        """
        return self._column("SELECT uuid FROM unwatched")

    def unread(self) -> set[int]:
        """Ids of resources whose refresh ended without a try: its time was over when it was claimed again."""
        return self._column("SELECT resource_id FROM unread")

    def retained(self) -> set[str]:
        """Physical ids of adopted things that a rollback to nothing has left to their owners."""
        return self._column("SELECT physical_id FROM retained")

    def adopted(self) -> set[int]:
        """Ids of resources that were adopted as they were."""
        return self._column("SELECT resource_id FROM adopted")

    def doubtful(self) -> set[int]:
        """Ids of resources whose update failed before another action, such as a check, was complete.

        As with Heat they count as what they were before the update.
        """
        return self._column("SELECT resource_id FROM doubtful")

    def _column(self, query: str) -> set[typing.Any]:
        return {value for (value,) in self._own.execute(query)}

    def arrows(self) -> Counter[Arrow]:
        """How often tasks went from one state to another."""
        rows = self._own.execute("SELECT source, target, count FROM arrow").fetchall()
        return Counter({Arrow(source, target): count for source, target, count in rows})

    def stacks(self) -> list[tuple[str, str, str, str]]:
        """(name, traversal, action, status) of all."""
        return self._own.execute("SELECT name, traversal, action, status FROM stack").fetchall()

    def exchange(
        self,
        conn: Connection,
        outcomes: Sequence[Outcome],
        expected: Sequence[TaskId],
        *,
        who: Claimant,
        now: float,
        slots: int,
        others: int = 0,
    ) -> Exchange:
        """Replaces db.commits.exchange: does the same, and checks the accepted outcomes."""
        attempts = {
            outcome.task_id: conn.exec_driver_sql(
                "SELECT state, attempt, member FROM task WHERE id = ?", (outcome.task_id,)
            ).first()
            for outcome in outcomes
        }
        before = self._statements
        done = self._exchange(conn, outcomes, expected, who=who, now=now, slots=slots, others=others)
        spent = self._statements - before
        refused = {outcome.task_id for outcome in done.refused}
        for outcome in outcomes:
            latest = tuple(attempts[outcome.task_id] or ())
            is_latest = latest == (TaskState.RUNNING, outcome.attempt, who.member)
            if is_latest == (outcome.task_id in refused):
                verb = "refused" if is_latest else "accepted"
                self.wrong.append(f"I2: {outcome.task_id} of {who.member} was {verb}: {outcome} {latest}")
        most = PER_TURN + PER_TASK * (len(outcomes) + len(done.claims))
        if spent > most:
            self.wrong.append(f"I12: {spent} statements, {len(outcomes)} results, {len(done.claims)} claims")
        return done
