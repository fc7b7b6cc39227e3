"""Previews of updates inside of nested stacks, and that the updates do the same."""

import json
import pathlib
import typing

import pytest
from simulation.helpers import on, rows
from simulation.nested import INNER, child, children, created, hot, inner, server, settled
from simulation.world import World
from stoker.db import resources
from stoker.db.ids import StackId
from stoker.db.rows import Stack
from stoker.engine.planning.requests import Goal, UpdateRequest
from stoker.features.preview.plan import ResourceChange
from stoker.features.preview.updates import preview_changes

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


def test_of_a_group_it_is_said_that_nothing_can_be_said(world: World) -> None:
    def template_for(count: int) -> Json:
        group = {"count": count, "resource_def": server()}
        return hot({"g": {"type": "OS::Heat::ResourceGroup", "properties": group}})

    stack = created(world, template_for(1))
    assert previewed(world, stack, template_for(2)) == {"g": "updated", "g/*": "?"}
    assert previewed(world, stack, hot({})) == {"g": "deleted", "g/0": "deleted"}
