"""Steps that need a helper process while there is none."""

import pathlib
import typing

import pytest
from simulation.world import World
from stoker.db.states import Status
from stoker.template.sandbox import evaluator
from stoker.template.sandbox.errors import HelperUnavailable

Json = typing.Any


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4)


def test_a_step_that_finds_no_helper_is_done_a_little_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = 3
    evaluate = evaluator.current().yaql

    def yaql(*args: Json, **options: Json) -> Json:
        nonlocal busy
        busy -= 1
        if busy >= 0:
            raise HelperUnavailable("no helper process was free for 4 s")
        return evaluate(*args, **options)

    value = {"yaql": {"expression": "$.data.len()", "data": {"get_attr": ["r0", "output"]}}}
    resources = {
        "r0": {"type": "OS::Heat::TestResource", "properties": {"value": "four"}},
        "r1": {"type": "OS::Heat::TestResource", "properties": {"value": value}},
    }
    stack = world.create("s", {"heat_template_version": "2018-08-31", "resources": resources})
    monkeypatch.setattr(evaluator.current(), "yaql", yaql)
    since = world.clock.now
    assert world.settle(lambda: world.stack(stack.id).status != Status.IN_PROGRESS, within=60)
    assert world.stack(stack.id).status == Status.COMPLETE, world.stack(stack.id).status_reason
    assert busy < 0
    assert world.clock.now - since >= 6, "three times two seconds"
