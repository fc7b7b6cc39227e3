"""The watch of counted rows sees who writes them without the counters."""

import pathlib

import pytest
import sqlalchemy as sa
from harness.counted_rows import CountWatch
from harness.templates import flat
from simulation.world import World
from stoker.db import bulk, projects
from stoker.db.schema import tables

S = tables.stack.c


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize(
    "statement",
    [
        sa.update(tables.stack).where(S.traversal == "x").values(reason="r", goal_size=1),
        sa.update(tables.stack).where(S.traversal == "x").values({S.live_name: None}),
        sa.delete(tables.stack).where(S.traversal == "x"),
        sa.delete(tables.snapshot).where(tables.snapshot.c.stack_id == "x"),
        sa.insert(tables.software_config).from_select(["id"], sa.select(S.id).where(S.traversal == "x")),
        sa.update(tables.project).values(stacks=1),
    ],
)
def test_a_write_that_no_counter_follows_is_seen(
    world: World, uncounted: CountWatch, statement: sa.Insert | sa.Update
) -> None:
    world.database.write(lambda conn: bulk.run(conn, [bulk.Write(statement, {})]))
    assert len(uncounted.offences) == 1
    uncounted.offences.clear()


def test_other_writes_are_left_alone(world: World, uncounted: CountWatch) -> None:
    renamed = sa.update(tables.stack).where(S.traversal == "x").values(reason="r")
    world.database.write(lambda conn: bulk.run(conn, [bulk.Write(renamed, {})]))
    world.database.write(lambda conn: projects.lock(conn, "tenant"))
    world.create("s", flat(1))
    assert uncounted.offences == set()
