"""Previews of updates, and that the updates do the same."""

import pathlib
import random
import typing

import pytest
from simulation.helpers import created, ended, history, on, previewed, rows
from simulation.restrictions import restricted, server, template, volume
from simulation.world import World
from stoker.db.states import Status, TaskKind
from stoker.engine.errors import NotUpdatable
from stoker.engine.planning.requests import Goal, UpdateRequest
from stoker.engine.stacks import act_on_stack
from stoker.engine.updates import cancel_action
from stoker.features.preview.updates import preview_changes
from stoker.template.errors import TemplateError

Json = typing.Any


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4)


def test_each_kind_of_change_is_history(world: World) -> None:
    stack = created(world, template(same=server(), up=server(), other=server(), kind=server(), gone=server()))
    document = template(
        same=server(),
        up=server(value="new"),
        other=server(size=2),
        kind={"type": "OS::Heat::None"},
        more=server(needs=on("same")),
    )
    assert previewed(world, stack, document) == {
        "same": ("unchanged", ""),
        "up": ("updated", ""),
        "other": ("replaced", ""),
        "kind": ("replaced", ""),
        "more": ("added", ""),
        "gone": ("deleted", ""),
    }


def test_values_and_causes_are_shown_as_far_as_they_are_known(world: World) -> None:
    stack = created(world, template(a=server(value="m"), b=server(value={"get_attr": ["a", "value"]})))
    goal = Goal(template(a=server(value="n"), b=server(value={"get_attr": ["a", "value"]}, size=2)))
    a, b = preview_changes(world.context, world.stack(stack.id), UpdateRequest(goal))
    assert {name: (change.old, change.new) for name, change in a.property_changes.items()} == {
        "value": ("m", "n")
    }
    assert list(b.property_changes) == ["size"], "its value is not known yet"
    assert b.property_changes["size"].requires_replacement
    assert (a.cause, b.cause) == ("", "the change of size requires a replacement")
    failed = world.create("failed", template(a=server(fail=True)))
    assert world.settle(lambda: ended(world, failed), within=60)
    goal = Goal(template(a=server(value="n")))
    (a,) = preview_changes(world.context, world.stack(failed.id), UpdateRequest(goal))
    assert a.cause == "its CREATE failed"
    assert a.property_changes == {}, "it never was given any"
    slow = world.create("slow", template(a=server(value="m", endless=True, after=9)))
    world.calm()
    (a,) = preview_changes(world.context, world.stack(slow.id), UpdateRequest(goal))
    assert a.reason.startswith("may be replaced")
    assert a.property_changes["value"].old == "m"


def test_a_preview_changes_nothing(world: World) -> None:
    stack = created(world, template(a=server()))
    before = rows(world, stack)
    events = history(world, stack)
    sent = world.bus.sent
    writes: list[None] = []
    world.database.observers.append(lambda: writes.append(None))
    previewed(world, stack, template(a=server(size=2), b=server()))
    assert writes == []
    assert (rows(world, stack), history(world, stack), world.bus.sent) == (before, events, sent)
    assert world.stack(stack.id).traversal == stack.traversal


def test_what_hangs_on_a_value_to_come_is_said_not_guessed(world: World) -> None:
    def template_for(value: str, size: int) -> Json:
        attribute = {"get_attr": ["a", "value"]}
        return template(
            a=server(value=value, size=size),
            place=server(needs=on("a")),
            text=server(value=attribute),
            fixed={"type": "OS::Heat::RandomString", "properties": {"salt": attribute}},
            after=server(needs=on("text")),
        )

    stack = created(world, template_for("1", 1))
    reason = "depends on a: values that are not known before the update"
    assert previewed(world, stack, template_for("2", 1)) == {
        "a": ("updated", ""),
        "place": ("unchanged", ""),
        "text": ("updated", f"may stay unchanged: {reason}"),
        "fixed": ("updated", f"may be replaced: {reason}"),
        "after": ("unchanged", ""),
    }
    replaced = previewed(world, stack, template_for("1", 2))
    assert replaced["a"] == ("replaced", "")
    assert replaced["place"] == ("updated", f"may stay unchanged: {reason}")
    assert replaced["fixed"] == ("updated", f"may be replaced: {reason}")


def test_what_failed_or_is_still_being_made_or_is_restricted_is_shown_so(world: World) -> None:
    stack = world.create(
        "s", template(bad=server(fail=True, after=1), slow=server(endless=True, after=9), v=volume())
    )
    world.calm()
    document = template(bad=server(), slow=server(), v=volume())
    changes = previewed(world, stack, document)
    assert changes["bad"] == ("replaced", "")
    assert changes["slow"] == ("updated", "may be replaced: depends on how its CREATE ends")
    cancel_action(world.context, world.stack(stack.id), rollback=False)
    assert world.settle(lambda: ended(world, stack), within=60)
    world.update(stack, document)
    assert world.settle(lambda: ended(world, stack), within=60)
    world.update(stack, template(bad=server(), slow=server(), v=volume(fail=True)))
    assert world.settle(lambda: ended(world, stack), within=60)
    both = restricted(bad="update", slow="replace")
    assert previewed(
        world, stack, template(bad=server(value="x"), slow=server(size=2), v=volume()), both
    ) == {
        "bad": ("updated", "the update would fail: update is restricted for resource."),
        "slow": ("replaced", "the update would fail: replace is restricted for resource."),
        "v": ("updated", "may be replaced: depends on what its failed UPDATE has left"),
    }


def test_what_an_update_would_refuse_its_preview_refuses_too(world: World) -> None:
    stack = created(world, template(a=server(value="x"), b=server(value={"get_attr": ["a", "value"]})))
    with pytest.raises(TemplateError, match="Sim::Serv"):
        previewed(world, stack, template(a={"type": "Sim::Serv"}))
    sized = {"type": "Sim::Server", "properties": {"size": {"get_attr": ["b", "value"]}}}
    document = template(a=server(value="x"), b=server(value={"get_attr": ["a", "value"]}), c=sized)
    assert previewed(world, stack, document)["c"] == ("added", "")
    act_on_stack(world.context, world.stack(stack.id), TaskKind.SUSPEND)
    assert world.settle(lambda: ended(world, stack), within=60)
    with pytest.raises(NotUpdatable, match="suspended"):
        previewed(world, stack, document)


def some_template(dice: random.Random) -> Json:
    resources: dict[str, Json] = {}
    for name in dice.sample("abcdef", dice.randint(1, 6)):
        before = list(resources)
        value: Json = dice.choice(["1", "2", *({"get_attr": [other, "value"]} for other in before)])
        needs = on(*dice.sample(before, min(len(before), dice.randint(0, 2))))
        kind = server if dice.random() < 0.8 else volume
        resources[name] = kind(value=value, needs=needs, size=dice.choice([1, 1, 1, 2]))
    return template(**resources)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_foretold_comes_so(world: World, seed: int) -> None:
    dice = random.Random(seed)
    stack = created(world, some_template(dice))
    for _ in range(12):
        document = some_template(dice)
        before = rows(world, stack)
        count = len(history(world, stack))
        changes = previewed(world, stack, document)
        world.update(stack, document)
        assert world.settle(lambda: ended(world, stack), within=60)
        assert world.stack(stack.id).status == Status.COMPLETE, world.stack(stack.id).reason
        after = rows(world, stack)
        events = history(world, stack)[count:]
        assert set(changes) == set(before) | set(after)
        for name, (effect, reason) in changes.items():
            came = "unchanged"
            if name not in before or name not in after:
                came = "added" if name in after else "deleted"
            elif before[name].physical_id != after[name].physical_id:
                came = "replaced"
            elif (name, "UPDATE", "COMPLETE") in events:
                came = "updated"
            possible = {effect}
            if reason:
                possible |= {"unchanged", "replaced" if reason.startswith("may be replaced") else effect}
            assert came in possible, (name, came, effect, reason, document)
