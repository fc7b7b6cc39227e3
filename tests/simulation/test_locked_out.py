"""A result that another transaction locks out delays no other result, and is stored when it can be."""

import pathlib
import typing

import pytest
from simulation.test_update import ended, template
from simulation.world import World
from stoker.db import commits
from stoker.db.errors import RowLocked
from stoker.db.ids import ResourceId
from stoker.db.states import Status

Json = typing.Any


def test_others_go_on_while_one_is_locked_out(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, hosts=1, threads=8)
    made = [world.create(f"s{number}", template(a={"looks": 3, "after": 1})) for number in range(6)]
    t = commits.tables.resource
    rows = world.database.read(lambda conn: conn.execute(commits.sa.select(t.c.id, t.c.stack_id)).all())
    locked = {ResourceId(row.id) for row in rows if row.stack_id == made[2].id}
    real = commits.exchange

    def exchange(conn: Json, outcomes: Json, *args: Json, **options: Json) -> Json:
        if any(outcome.resource_id in locked for outcome in outcomes):
            raise RowLocked("somebody holds it")
        return real(conn, outcomes, *args, **options)

    monkeypatch.setattr(commits, "exchange", exchange)
    others = [*made[:2], *made[3:]]
    assert world.settle(lambda: all(ended(world, stack) for stack in others), within=30)
    assert not ended(world, made[2])
    locked.clear()
    assert world.settle(lambda: ended(world, made[2]), within=30)
    assert {world.stack(stack.id).status for stack in made} == {Status.COMPLETE}
    assert world.broken == []
    assert len(world.cloud.things) == len(made)
