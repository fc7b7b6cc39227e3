"""Each task says which user's request it is for, so that what a conductor logs of it names the request."""

import pathlib
import typing

import pytest
import sqlalchemy as sa
from simulation.helpers import ended
from simulation.nested import INNER, child, hot, inner, server
from simulation.world import World
from stoker.db.rows import Stack
from stoker.db.schema import tables
from stoker.engine.stacks import delete_stack
from stoker.observe.logs import about, current_request

Json = typing.Any


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=3, threads=4)


def requests(world: World) -> dict[str, set[str | None]]:
    """Return the request ids of tasks by the names of their stacks; ``s-`` for all nested in ``s``."""
    t = tables.task
    s = tables.stack
    query = sa.select(s.c.name, t.c.request).join(s, s.c.id == t.c.stack_id)
    requests: dict[str, set[str | None]] = {}
    for name, request in world.database.read(lambda conn: conn.execute(query).all()):
        requests.setdefault(name.partition("-")[0] + ("-" if "-" in name else ""), set()).add(request)
    return requests


def created(world: World, request: str) -> Stack:
    with about(request=request):
        stack = world.create("s", hot({"a": server(), "inner": child()}), files={INNER: inner()})
    assert world.settle(lambda: ended(world, stack), within=60)
    return world.stack(stack.id)


def test_tasks_are_for_the_request_that_caused_them_also_in_nested_stacks(world: World) -> None:
    stack = created(world, "req-1")
    assert requests(world) == {"s": {"req-1"}, "s-": {"req-1"}}
    with about(request="req-2", project="p"):
        delete_stack(world.context, stack)
    world.calm()
    assert requests(world)["s"] >= {"req-2"}


def test_what_no_user_wants_is_for_no_request(world: World) -> None:
    created(world, "trv-1")
    assert requests(world) == {"s": {None}, "s-": {None}}


def test_the_request_of_a_thread_is_the_last_one_that_was_set() -> None:
    assert current_request() is None
    with about(request="req-1"):
        with about(stack="s"):
            assert current_request() == "req-1"
        with about(request="trv-7"):
            assert current_request() is None
        assert current_request() == "req-1"
    assert current_request() is None
