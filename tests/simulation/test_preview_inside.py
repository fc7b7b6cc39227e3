"""Previews of updates inside of nested stacks, and that the updates do the same."""

import json
import pathlib
import typing
from collections import Counter

import pytest
import sqlalchemy as sa
from simulation.helpers import on, rows
from simulation.nested import INNER, child, children, created, group, hot, inner, server, settled, updated
from simulation.world import World
from stoker.db import resources
from stoker.db.ids import StackId
from stoker.db.rows import Stack
from stoker.engine.planning.requests import Goal, UpdateRequest
from stoker.features.preview import forecasts, updates
from stoker.features.preview.plan import ResourceChange
from stoker.features.preview.updates import preview_changes
from stoker.sealing.sealer import SealError

Json = typing.Any
OUTER = "file:///outer.yaml"
FILES = {INNER: inner()}


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4)


def flat(changes: typing.Iterable[ResourceChange], path: str = "") -> dict[str, str]:
    """The words for all levels, by paths; "?" where nothing can be said."""
    kinds: dict[str, str] = {}
    for item in changes:
        kinds[f"{path}{item.name}"] = item.effect.value
        for below in item.inside:
            inside = f"{path}{item.name}/"
            more = {f"{inside}*": "?"} if below.items is None else flat(below.items, inside)
            kinds.update({f"{n} again" if n in kinds else n: word for n, word in more.items()})
    return kinds


def previewed(world: World, stack: Stack, template: Json, files: Json = None) -> dict[str, str]:
    request = UpdateRequest(Goal(template, files=FILES if files is None else files))
    return flat(preview_changes(world.context, world.stack(stack.id), request, nested=True))


def ids(world: World, stack_id: str) -> dict[str, str | None]:
    resource_rows = world.database.read(lambda conn: resources.of_stack(conn, StackId(stack_id)))
    return {row.name: row.physical_id for row in resource_rows}


def test_it_stays_outside_unless_a_request_names_it(world: World) -> None:
    stack = created(world, hot({"n": child()}))
    (change,) = preview_changes(
        world.context, stack, UpdateRequest(Goal(hot({"n": child(value="x")}), files=FILES))
    )
    assert (change.effect.value, change.inside) == ("updated", ())


def test_a_nested_stack_finds_out_itself_what_is_the_same(world: World) -> None:
    stack = created(world, hot({"n": child(value="1")}))
    assert previewed(world, stack, hot({"n": child(value="1")})) == {"n": "updated", "n/s": "unchanged"}


def test_what_is_no_stack_costs_a_preview_no_transaction(world: World) -> None:
    begun: list[None] = []
    sa.event.listen(world.database.engine, "begin", lambda conn: begun.append(None))
    costs = []
    for count in (2, 20):
        document = hot({f"s{number}": server() for number in range(count)})
        stack = settled(world, world.create(f"of-{count}", document))
        begun.clear()
        previewed(world, stack, document)
        costs.append(len(begun))
    assert costs[0] == costs[1] > 0


def test_a_parameter_changes_what_is_inside(world: World) -> None:
    stack = created(world, hot({"n": child(value="1")}))
    document = hot({"n": child(value="2")})
    assert previewed(world, stack, document) == {"n": "updated", "n/s": "updated"}
    before = ids(world, children(world, stack)["n"].id)
    world.update(stack, document, files=FILES)
    settled(world, stack)
    assert ids(world, children(world, stack)["n"].id) == before


def test_another_file_changes_what_is_inside_of_what_stays(world: World) -> None:
    stack = created(world, hot({"n": child()}))
    changed = json.loads(inner())
    changed["resources"] = {"s": server(size=7), "t": server(needs=on("s"))}
    changes = previewed(world, stack, hot({"n": child()}), {INNER: json.dumps(changed)})
    assert changes == {"n": "updated", "n/s": "replaced", "n/t": "added"}
    before = ids(world, children(world, stack)["n"].id)
    world.update(stack, hot({"n": child()}), files={INNER: json.dumps(changed)})
    settled(world, stack)
    after = ids(world, children(world, stack)["n"].id)
    assert (set(after), after["s"] != before["s"]) == ({"s", "t"}, True)


def test_what_comes_and_what_goes_is_reported_with_all_that_is_in_it(world: World) -> None:
    files = {**FILES, OUTER: json.dumps(hot({"m": child()}))}
    deep = {"type": OUTER}
    stack = created(world, hot({"old": deep, "other": deep}), files=files)
    document = hot({"new": deep, "other": {"type": "OS::Heat::None"}})
    assert previewed(world, stack, document, files) == {
        "new": "added",
        "new/m": "added",
        "new/m/s": "added",
        "other": "replaced",
        "other/m": "deleted",
        "other/m/s": "deleted",
        "old": "deleted",
        "old/m": "deleted",
        "old/m/s": "deleted",
    }
    (row, *_) = rows(world, stack).values()
    assert row.physical_id is not None


def test_what_hangs_on_values_that_are_not_known_yet_is_not_guessed(world: World) -> None:
    def template_for(size: int) -> Json:
        return hot({"a": server(size=size), "n": child(value={"get_attr": ["a", "address"]})})

    stack = created(world, template_for(1))
    assert previewed(world, stack, template_for(2)) == {"a": "replaced", "n": "updated", "n/*": "?"}


def test_a_group_has_the_members_after_its_update_that_its_preview_names(world: World) -> None:
    stack = created(world, hot({"g": group(2)}))
    assert previewed(world, stack, hot({"g": group(2)})) == {
        "g": "updated",
        "g/0": "unchanged",
        "g/1": "unchanged",
    }
    fewer = {"removal_policies": [{"resource_list": ["0"]}]}
    larger = hot({"g": group(3, **fewer), "new": group(1)})
    assert previewed(world, stack, larger) == {
        "g": "updated",
        "g/1": "unchanged",
        "g/2": "added",
        "g/3": "added",
        "g/0": "deleted",
        "new": "added",
        "new/0": "added",
    }
    updated(world, stack, larger)
    assert set(ids(world, children(world, stack)["g"].id)) == {"1", "2", "3"}
    # Names that were removed once are not used again.
    assert previewed(world, stack, hot({"g": group(4), "new": group(1, member={"size": 7})})) == {
        "g": "updated",
        **{f"g/{name}": "unchanged" for name in "123"},
        "g/4": "added",
        "new": "updated",
        "new/0": "replaced",
    }
    assert previewed(world, stack, hot({})) == {
        "g": "deleted",
        **{f"g/{name}": "deleted" for name in "123"},
        "new": "deleted",
        "new/0": "deleted",
    }


@pytest.mark.parametrize(
    ("desired", "size"),
    [({"desired_capacity": 3}, 3), ({}, 2), ({"min_size": 5}, 5), ({"desired_capacity": 1}, 1)],
)
def test_a_scaling_group_is_previewed_at_the_size_that_its_update_brings_it_to(
    world: World, desired: Json, size: int
) -> None:
    def template_for(**properties: Json) -> Json:
        body = {"min_size": 1, "max_size": 9, "resource": server(), **properties}
        return hot({"g": {"type": "OS::Heat::AutoScalingGroup", "properties": body}})

    stack = created(world, template_for(desired_capacity=2))
    kinds = Counter(previewed(world, stack, template_for(**desired)).values())
    assert kinds["added"] == max(0, size - 2)
    assert kinds["deleted"] == max(0, 2 - size)
    updated(world, stack, template_for(**desired))
    assert len(ids(world, children(world, stack)["g"].id)) == size


def test_the_members_of_a_group_are_not_known_while_they_change_or_wait_for_others(world: World) -> None:
    def template_for(size: int, count: int = 1) -> Json:
        return hot({"a": server(size=size), "g": group(count, member={"value": {"get_resource": "a"}})})

    stack = created(world, template_for(1))
    assert previewed(world, stack, template_for(2, 2)) == {"a": "replaced", "g": "updated", "g/*": "?"}
    assert previewed(world, stack, template_for(1, 2))["g/1"] == "added"


def test_a_group_whose_members_no_key_opens_costs_no_preview(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_key(*arguments: object) -> typing.NoReturn:
        raise SealError("its key is not configured")

    stack = created(world, hot({"g": group(count=2), "s": server()}))
    monkeypatch.setattr(forecasts, "present_members", without_key)
    after = previewed(world, stack, hot({"g": group(count=3), "s": server()}))
    assert after == {"g": "updated", "g/*": "?", "s": "unchanged"}


def test_a_secret_in_a_member_is_no_text_of_a_preview(world: World) -> None:
    def template_for(count: int, value: str) -> Json:
        parameters = {"p": {"type": "string", "hidden": True, "default": value}}
        return hot({"g": group(count, member={"value": {"get_param": "p"}})}, parameters=parameters)

    stack = created(world, template_for(1, "s3cret"))
    request = UpdateRequest(Goal(template_for(2, "an0ther")))
    (change,) = preview_changes(world.context, world.stack(stack.id), request, nested=True)
    ((zero, one),) = [below.items or () for below in change.inside]
    assert (zero.effect.value, list(zero.property_changes)) == ("updated", ["value"])
    assert one.effect.value == "added"
    texts = repr([zero.property_changes, one.definition, zero.definition])
    assert "s3cret" not in texts
    assert "an0ther" not in texts


def test_a_group_that_is_too_large_to_look_at_costs_no_preview(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The update itself compiles one member for all."""
    monkeypatch.setattr(updates, "GROUPS_WITHIN", 1e-9)
    files = {INNER: json.dumps(hot({"s": server(value="x" * 3000)}))}
    resources = {"g": group(1), "n": {"type": INNER}}
    stack = created(world, hot(resources), files=files)
    resources["g"] = group(3000)
    assert previewed(world, stack, hot(resources), files) == {
        "g": "updated",
        "g/*": "?",
        "n": "updated",
        "n/s": "unchanged",
    }
