"""The watch of written states sees who leaves out the tables of transitions."""

import pathlib

import pytest
import sqlalchemy as sa
from harness.state_writers import StateWatch
from simulation.world import World
from stoker.db import bulk
from stoker.db.ids import TaskId
from stoker.db.schema import tables
from stoker.db.states import TaskState
from stoker.db.work import transitions

STATE = {"state": TaskState.READY}


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize(
    "statement",
    [
        sa.update(tables.task).where(tables.task.c.id == 1).values(due_at=1, state="ready"),
        sa.update(tables.task).values({tables.task.c.state: "ready"}),
        sa.update(tables.task).ordered_values((tables.task.c.state, "ready")),
        sa.update(tables.stack).where(tables.stack.c.traversal == "x").values(status="FAILED"),
        sa.update(tables.stack).where(tables.stack.c.traversal == "x").values(action="DELETE"),
    ],
)
def test_an_update_of_a_state_is_seen(world: World, written_states: StateWatch, statement: sa.Update) -> None:
    world.database.write(lambda conn: bulk.run(conn, [bulk.Write(statement, {})]))
    assert len(written_states.offences) == 1
    written_states.offences.clear()


def test_an_update_of_many_states_is_seen(world: World, written_states: StateWatch) -> None:
    world.database.write(lambda conn: bulk.update(conn, tables.task, [{"id": 1, **STATE}]))
    assert len(written_states.offences) == 1
    written_states.offences.clear()


def test_other_updates_are_left_alone(world: World, written_states: StateWatch) -> None:
    t = tables.task
    late = sa.update(t).where(t.c.state == "ready").values(due_at=1)
    world.database.write(lambda conn: bulk.run(conn, [bulk.Write(late, {})]))
    world.database.write(lambda conn: bulk.update(conn, t, [{"id": 1, "due_at": 2}]))
    world.database.write(lambda conn: transitions.fail(conn, [TaskId(1)]))
    assert written_states.offences == set()
