"""A stack of another project beside those of a test, with a task in each state: nobody touches its rows."""

import typing
from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from services.db.rows import NOW, Graph, a_stack, set_task, store_graph
from stoker.db.engine import Database
from stoker.db.ids import ResourceId
from stoker.db.schema import tables
from stoker.db.states import Standing, Status, TaskState

FAR = NOW + 1e9
MEMBER = "elsewhere/1"
_RUNS = {"state": TaskState.RUNNING, "member": MEMBER, "attempt": 1, "claimed_at": NOW, "expires_at": FAR}
TASKS: Mapping[str, Mapping[str, typing.Any]] = {
    "ready": {},
    "runs": _RUNS,
    "waits": {"due_at": None},
    "stops": {**_RUNS, "stop_by": FAR},
    "parked": {"state": TaskState.PARKED, "attempt": 1},
    "retries": {"state": TaskState.PARKED, "attempt": 2, "retries_left": 1},
    "held": {"state": TaskState.HELD, "hook": "pre-create", "due_at": None},
    "steps": {"state": TaskState.HELD, "hook": "pre-create", "stepped": True, "due_at": None},
    "done": {"state": TaskState.DONE, "attempt": 1, "due_at": None},
    "failed": {"state": TaskState.FAILED, "attempt": 1, "due_at": None},
    "cancelled": {"state": TaskState.CANCELLED, "due_at": None},
    "unanswered": {"state": TaskState.CANCELLED, "member": MEMBER, "attempt": 1},
    "carried over": {**_RUNS, "standing": Standing.CARRIED_OVER},
    "superseded": {**_RUNS, "standing": Standing.SUPERSEDED},
}
"""Names of tasks -> columns in which each differs from a new one."""
NEEDS = {name: ["runs"] if name == "waits" else [] for name in TASKS}
Rows = dict[str, list[dict[str, typing.Any]]]


class Bystander:
    """The stack, and its rows as they were stored."""

    def __init__(self, database: Database) -> None:
        stack = a_stack(project_id="elsewhere", name="bystander", shard=4000)
        self._database = database
        self._graph = store_graph(database, NEEDS, stack=stack)
        for name, columns in TASKS.items():
            set_task(database, self._graph.tasks[name], **{"due_at": FAR, **columns})
            if "attempt" in columns:
                self._begin(self._graph.resources[name])
        self._stored = self._rows()

    def _begin(self, resource_id: ResourceId) -> None:
        r = tables.resource
        begun = sa.update(r).where(r.c.id == resource_id).values(action="CREATE", status=Status.IN_PROGRESS)
        self._database.write(lambda conn: conn.execute(begun))

    def _rows(self) -> Rows:
        return self._database.read(lambda conn: _rows_of(conn, self._graph))

    def check(self) -> None:
        """Fail if anything of it has changed."""
        assert self._rows() == self._stored


def _rows_of(conn: sa.Connection, graph: Graph) -> Rows:
    queries: Sequence[tuple[sa.Table, sa.ColumnElement[bool]]] = [
        (tables.stack, tables.stack.c.id == graph.stack.id),
        *(
            (each, each.c.stack_id == graph.stack.id)
            for each in (tables.resource, tables.task, tables.traversal)
        ),
    ]
    return {
        table.name: [
            dict(row) for row in conn.execute(sa.select(table).where(own).order_by(table.c.id)).mappings()
        ]
        for table, own in queries
    }
