"""The cost of a resource does not follow the size of its stack (I12).

It is counted in statements and in SQLite's own steps, which do not depend on the machine's other work.
"""

import pathlib
import typing
from collections.abc import Callable

import pytest
import sqlalchemy as sa
from simulation.helpers import chain
from simulation.helpers import template_of as template
from simulation.world import World
from stoker.db.rows import Stack
from stoker.db.states import Status, TaskKind
from stoker.engine.planning.requests import Goal, UpdateRequest
from stoker.engine.snapshots import take_snapshot
from stoker.engine.stacks import act_on_stack, delete_stack
from stoker.engine.updates import update_stack

Json = typing.Any
SMALL = 40
LARGE = 400
ROUGHLY = 1.2
"""The target of the design; indexes are deeper in a larger table."""
GRAIN = 50


class Meter:
    """Counts what the database does.

    :ivar statements: executed.
    :ivar steps: of SQLite's virtual machine, in units of GRAIN.
    """

    def __init__(self, world: World) -> None:
        self.statements = self.steps = 0
        world.database.engine.dispose()
        sa.event.listen(world.database.engine, "connect", self._watch)
        sa.event.listen(world.database.engine, "before_cursor_execute", self._count)

    def _watch(self, dbapi: Json, record: object) -> None:
        dbapi.set_progress_handler(self._step, GRAIN)

    def _step(self) -> int:
        self.steps += 1
        return 0

    def _count(self, *_: object) -> None:
        self.statements += 1


def cost(folder: pathlib.Path, goal: Json, count: int) -> tuple[float, float]:
    """(statements, steps) for each resource of a stack that is created."""
    folder.mkdir()
    world = World(folder, hosts=1, threads=4)
    stack = world.create("s", goal)
    meter = Meter(world)
    world.calm()
    assert world.stack(stack.id).status == Status.COMPLETE
    return meter.statements / count, meter.steps / count


def wide(count: int) -> Json:
    return template(**{f"r{index}": {"after": 0} for index in range(count)})


@pytest.mark.parametrize("shape", [chain, wide])
def test_a_resource_costs_the_same_in_a_stack_of_any_size(tmp_path: pathlib.Path, shape: Json) -> None:
    small = cost(tmp_path / "small", shape(SMALL), SMALL)
    large = cost(tmp_path / "large", shape(LARGE), LARGE)
    assert large[0] <= ROUGHLY * small[0], f"statements: {large} and {small}"
    assert large[1] <= ROUGHLY * small[1], f"steps: {large} and {small}"


def test_a_request_writes_in_one_transaction(tmp_path: pathlib.Path) -> None:
    world = World(tmp_path, hosts=1, threads=4)
    writes: list[None] = []
    world.database.observers.append(lambda: writes.append(None))
    stack = world.create("s", chain(3))
    assert len(writes) == 1
    requests: list[Callable[[Stack], object]] = [
        lambda now: update_stack(world.context, now, UpdateRequest(Goal(wide(4)))),
        lambda now: act_on_stack(world.context, now, TaskKind.CHECK),
        lambda now: take_snapshot(world.context, now, None),
        lambda now: delete_stack(world.context, now),
    ]
    for request in requests:
        assert world.settle(lambda: world.stack(stack.id).status == Status.COMPLETE, within=60)
        writes.clear()
        request(world.stack(stack.id))
        assert len(writes) == 1
