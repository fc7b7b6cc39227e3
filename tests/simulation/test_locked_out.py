"""A result that another transaction locks out delays no other result, and is stored when it can be."""

import pathlib
import typing

import pytest
import sqlalchemy as sa
from simulation.helpers import ended, on, template
from simulation.world import World
from stoker.conductor.worker.faults import LockedOut
from stoker.db import resources
from stoker.db.errors import RowLocked
from stoker.db.ids import ResourceId
from stoker.db.schema import tables
from stoker.db.states import REDELIVER_AFTER, Status
from stoker.db.work import commit, member_claims

Json = typing.Any


def test_others_continue_while_one_is_locked_out(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, hosts=1, threads=8)
    stacks = [world.create(f"s{number}", template(a={"looks": 3, "after": 1})) for number in range(6)]
    t = tables.resource
    rows = world.database.read(lambda conn: conn.execute(sa.select(t.c.id, t.c.stack_id)).all())
    locked = {ResourceId(row.id) for row in rows if row.stack_id == stacks[2].id}
    real = commit.exchange

    def exchange(conn: Json, outcomes: Json, *args: Json, **options: Json) -> Json:
        if any(outcome.resource_id in locked for outcome in outcomes):
            raise RowLocked("somebody holds it")
        return real(conn, outcomes, *args, **options)

    monkeypatch.setattr(commit, "exchange", exchange)
    others = [*stacks[:2], *stacks[3:]]
    assert world.settle(lambda: all(ended(world, stack) for stack in others), within=30)
    assert not ended(world, stacks[2])
    locked.clear()
    assert world.settle(lambda: ended(world, stacks[2]), within=30)
    assert {world.stack(stack.id).status for stack in stacks} == {Status.COMPLETE}
    assert world.broken == []
    assert len(world.cloud.objects) == len(stacks)


def test_others_continue_while_a_claims_resource_is_locked(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, hosts=1, threads=8)
    stacks = [world.create(f"s{number}", template(a={}, b={"needs": on("a")})) for number in range(6)]
    t = tables.resource
    rows = world.database.read(lambda conn: conn.execute(sa.select(t.c.id, t.c.stack_id)).all())
    locked = {ResourceId(row.id) for row in rows if row.stack_id == stacks[2].id}
    real = resources.lock_free
    tries = []

    def lock_free(conn: Json, ids: Json, member: Json) -> Json:
        rows = real(conn, ids, member)
        if member & locked:
            tries.append(world.clock.now)
        rows.locked = member & locked
        return rows

    monkeypatch.setattr(resources, "lock_free", lock_free)
    others = [*stacks[:2], *stacks[3:]]
    assert world.settle(lambda: all(ended(world, stack) for stack in others), within=30)
    world.settle(lambda: False, within=60)
    assert not ended(world, stacks[2])
    assert 2 < len(tries) < 200, "it is retried, and seldom"
    locked.clear()
    assert world.settle(lambda: ended(world, stacks[2]), within=30)
    assert {world.stack(stack.id).status for stack in stacks} == {Status.COMPLETE}
    assert world.broken == []


def test_what_is_requeued_does_not_wait_for_what_is_locked(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, hosts=1, threads=8)
    first, second = (world.create(name, template(a={"looks": 3, "after": 1})) for name in ("s0", "s1"))
    t = tables.task
    rows = world.database.read(lambda conn: conn.execute(sa.select(t.c.id, t.c.stack_id)).all())
    locked = {row.id for row in rows if row.stack_id == first.id}
    real = member_claims.release
    released: list[int] = []

    def release(conn: Json, claims: Json, **options: Json) -> Json:
        if any(task_id in locked for task_id, _ in claims):
            raise RowLocked("somebody holds it")
        released.extend(task_id for task_id, _ in claims)
        return real(conn, claims, **options)

    monkeypatch.setattr(member_claims, "release", release)
    waits = LockedOut[tuple[int, int]](lambda: world.clock.now, lambda claim: claim)

    def give_back(*claims: tuple[int, int]) -> None:
        for _ in waits.run(
            world.database, claims, lambda conn, part: member_claims.release(conn, part, now=0.0)
        ):
            pass

    ids = sorted(row.id for row in rows)
    give_back(*[(i, 99) for i in ids])
    assert set(released) == set(ids) - locked
    assert waits.retries.entries
    give_back()
    assert set(released) == set(ids) - locked, "not before its pause is over"
    locked.clear()
    world.settle(lambda: False, within=1)
    give_back()
    assert (sorted(released), waits.retries.entries) == (ids, [])
    assert world.settle(lambda: ended(world, first) and ended(world, second), within=60)


def test_a_claim_that_met_a_short_lock_does_not_wait_for_the_next_hint(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, hosts=1, threads=8)
    real = resources.lock_free
    tries = []

    def lock_free(conn: Json, ids: Json, member: Json) -> Json:
        rows = real(conn, ids, member)
        tries.append(world.clock.now)
        rows.locked = member if len(tries) < 3 else set()
        return rows

    monkeypatch.setattr(resources, "lock_free", lock_free)
    stack = world.create("s", template(a={}))
    assert world.settle(lambda: ended(world, stack), within=30)
    assert tries[2] - tries[0] < REDELIVER_AFTER / 2
