"""An update that first reads what is really there."""

import pathlib
import typing

import pytest
from simulation.helpers import created, ended, history, on, previewed, rows
from simulation.restrictions import restricted, server, state, template, update, volume
from simulation.world import World
from stoker.db.states import Status
from stoker.engine.stacks import delete_stack
from stoker.resources.contract.errors import RetryableError

Json = typing.Any


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4)


def test_what_is_gone_is_made_again_and_what_is_there_stays(world: World) -> None:
    document = template(a=server(), b=server(needs=on("a")), c=server(), n={"type": "OS::Heat::None"})
    stack = created(world, document)
    before = rows(world, stack)
    count = len(history(world, stack))
    del world.cloud.objects[str(before["a"].physical_id)]
    assert state(update(world, stack, document)) == ("UPDATE", "COMPLETE")
    assert rows(world, stack)["a"].physical_id == before["a"].physical_id, "nobody has looked"
    assert state(update(world, stack, document, converge=True)) == ("UPDATE", "COMPLETE")
    after = rows(world, stack)
    assert after["a"].physical_id != before["a"].physical_id
    assert {n: after[n].physical_id for n in "bcn"} == {n: before[n].physical_id for n in "bcn"}
    assert world.cloud.objects[str(after["b"].physical_id)].needs == (after["a"].physical_id,)
    events = [event for event in history(world, stack)[count:] if event[0] in "abcn"]
    assert events[0] == ("a", "CHECK", "FAILED")
    assert {name for name, _, _ in events} == {"a", "b"}
    assert (after["c"].action, after["c"].status) == ("CREATE", Status.COMPLETE)


def test_what_somebody_has_changed_is_set_right_or_replaced(world: World) -> None:
    document = template(a=volume(value="x"), b=volume(size=1))
    stack = created(world, document)
    before = rows(world, stack)
    world.cloud.live[str(before["a"].physical_id)] = {"value": "changed", "unknown": 1}
    world.cloud.live[str(before["b"].physical_id)] = {"size": "2"}
    update(world, stack, document, converge=True)
    after = rows(world, stack)
    assert after["a"].physical_id == before["a"].physical_id
    assert "update 1" in world.cloud.calls
    assert after["a"].properties == before["a"].properties
    assert after["b"].physical_id != before["b"].physical_id
    world.cloud.live.clear()
    count = len(history(world, stack))
    update(world, stack, document, converge=True)
    assert {name for name, _, _ in history(world, stack)[count:]} == {"s"}, "all is as it shall be now"


def test_what_cannot_be_seen_is_not_condemned(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    document = template(a=server(), b=server())
    stack = created(world, document)
    before = rows(world, stack)

    def blind(target: Json, context: Json) -> Json:
        raise (
            RetryableError("the cloud does not answer", after=1) if target.name == "a" else ZeroDivisionError
        )

    monkeypatch.setattr(world.registry.get("Sim::Server"), "handle_check", blind)
    assert state(update(world, stack, document, converge=True)) == ("UPDATE", "COMPLETE")
    after = rows(world, stack)
    assert {n: (r.id, r.action, r.status) for n, r in after.items()} == {
        n: (r.id, r.action, r.status) for n, r in before.items()
    }


def test_a_look_that_is_superseded_harms_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    document = template(a=server())
    stack = created(world, document)
    before = rows(world, stack)["a"]

    def away(target: Json, context: Json) -> Json:
        raise RetryableError("later", after=30)

    with monkeypatch.context() as patched:
        patched.setattr(world.registry.get("Sim::Server"), "handle_check", away)
        world.update(stack, document, converge=True)
        world.calm()
    assert state(update(world, stack, document)) == ("UPDATE", "COMPLETE")
    assert rows(world, stack)["a"].id == before.id
    world.update(stack, document, converge=True)
    world.calm_once()
    delete_stack(world.context, world.stack(stack.id))
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.cloud.objects == {}


def test_what_is_gone_is_not_made_again_where_that_is_restricted(world: World) -> None:
    document = template(a=server())
    stack = created(world, document)
    world.cloud.objects.clear()
    updated = update(world, stack, document, restricted(a="replace"), converge=True)
    assert "resources.a: replace is restricted" in updated.reason


def test_its_preview_says_that_it_looks_first(world: World) -> None:
    document = template(a=server(), b=server(needs=on("a")), n={"type": "OS::Heat::None"})
    stack = created(world, document)
    looked = "may be updated or replaced: depends on what really exists, which is compared first"
    waits = "may stay unchanged: depends on a: values that are not known before the update"
    assert previewed(world, stack, document, converge=True) == {
        "a": ("unchanged", looked),
        "b": ("updated", waits),
        "n": ("unchanged", ""),
    }
