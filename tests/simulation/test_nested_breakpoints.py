"""Breakpoints in nested stacks: the tasks they hold, the clocks of all levels, every way to continue."""

import json
import pathlib
import typing

import pytest
import sqlalchemy as sa
from simulation.helpers import ended, rest, rows, status
from simulation.nested import INNER, child, children, hot, server
from simulation.world import World
from stoker.db.ids import StackId
from stoker.db.rows import Stack
from stoker.db.schema import tables
from stoker.db.states import ACTIVE
from stoker.db.work import clear_breakpoints, tasks
from stoker.engine.breakpoints import clear_breakpoint, continue_held
from stoker.engine.errors import InvalidHook
from stoker.engine.stacks import delete_stack
from stoker.engine.updates import cancel_action

Json = typing.Any
MIDDLE = "file:///middle.yaml"
FILES = {
    INNER: json.dumps(hot({"s": server(), "t": {**server(), "depends_on": "s"}})),
    MIDDLE: json.dumps(hot({"n": child(), "side": server()})),
}


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=3, threads=4)


def inside(path: str, hook: Json) -> Json:
    """An environment with a breakpoint at the path."""
    *above, name = path.split("/")
    entry: Json = {name: {"hooks": hook}}
    for resource in reversed(above):
        entry = {resource: entry}
    return {"resource_registry": {"resources": entry}}


def create(world: World, resources: Json, environment: Json, **fields: Json) -> Stack:
    files = fields.pop("files", FILES)
    return world.create("s", hot(resources), files=files, environment=environment, **fields)


def below(world: World, stack: Stack, *path: str) -> Stack:
    for name in path:
        stack = world.stack(StackId(children(world, stack)[name].id))
    return stack


def clock(world: World, stack: Stack) -> str:
    """Return whether it is paused, runs, or is there no more."""
    current = world.stack(stack.id)
    assert current.remaining is None or current.deadline_at is None
    return (
        "stands" if current.remaining is not None else "goes" if current.deadline_at is not None else "over"
    )


def held(world: World, stack: Stack) -> list[tuple[str, str]]:
    held = world.held(world.stack(stack.id))
    return sorted((item.path, item.hook) for item in held)


def active(world: World, *which: Stack) -> int:
    """Tasks of which something runs, or will: those that a duty will read."""
    stored_tasks = [
        t for s in which for t in world.database.read(lambda c, s=s: tasks.of_traversal(c, s.traversal))
    ]
    return sum(task.state in ACTIVE and task.due_at is not None for task in stored_tasks)


@pytest.mark.parametrize(
    ("path", "hook"),
    [
        ("n/s", "pre-create"),
        ("n/s", "post-create"),
        ("n/*", "post-create"),
        ("*/s", "pre-create"),
        ("n*/s*", "pre-create"),
    ],
)
def test_a_breakpoint_inside_holds_the_childs_resource_and_all_clocks_pause(
    world: World, path: str, hook: str
) -> None:
    stack = create(
        world,
        {"n": child(), "after": {**server(), "depends_on": "n"}, "side": server(after=20)},
        inside(path, hook),
        timeout_mins=2,
    )
    began = world.clock.now
    world.calm()
    inner = below(world, stack, "n")
    assert (clock(world, inner), clock(world, stack)) == ("stands", "goes"), "the side runs still"
    rest(world)
    assert (clock(world, inner), clock(world, stack)) == ("stands", "stands")
    left = world.stack(stack.id).remaining
    assert left is not None
    assert 90 <= left <= 100, "of 120 the side has taken 20"
    action = "INIT" if hook == "pre-create" else "CREATE"
    assert {n: row.action for n, row in rows(world, inner).items()} == {"s": action, "t": "INIT"}
    assert {n: row.action for n, row in rows(world, stack).items()} == {
        "n": "CREATE",
        "after": "INIT",
        "side": "CREATE",
    }
    sent = world.bus.sent
    world.settle(lambda: False, within=1100)
    assert (world.bus.sent, active(world, stack, inner)) == (sent, 0), "it costs nothing"
    assert world.clock.now > began + 1000
    clear_breakpoint(world.context, world.stack(inner.id), "s", hook)
    assert world.stack(stack.id).deadline_at == world.clock.now + left
    assert (clock(world, inner), clock(world, stack)) == ("goes", "goes")
    while not ended(world, stack):
        rest(world)
        for item in world.held(world.stack(inner.id)):
            clear_breakpoint(world.context, world.stack(inner.id), item.resource_name, item.hook)
    assert status(world, stack) == "CREATE_COMPLETE"
    assert clock(world, stack) == "over"


def test_three_levels_pause_and_continue_together_and_a_sibling_of_them_holds_its_own(world: World) -> None:
    environment = inside("m/n/s", "pre-create")
    environment["resource_registry"]["resources"]["other"] = {"t": {"hooks": "pre-create"}}
    stack = create(world, {"m": {"type": MIDDLE}, "other": child()}, environment, timeout_mins=1)
    rest(world)
    levels = [stack, below(world, stack, "m"), below(world, stack, "m", "n"), below(world, stack, "other")]
    assert [clock(world, level) for level in levels] == ["stands"] * 4
    world.settle(lambda: False, within=500)
    clear_breakpoint(world.context, world.stack(levels[2].id), "s", "pre-create")
    assert [clock(world, level) for level in levels] == ["goes", "goes", "goes", "stands"]
    rest(world)
    assert [clock(world, level) for level in levels] == ["stands", "over", "over", "stands"]
    clear_breakpoint(world.context, world.stack(levels[3].id), "t", "pre-create")
    rest(world)
    assert status(world, stack) == "CREATE_COMPLETE"


def test_a_child_that_continues_times_out_with_its_parents(world: World) -> None:
    files = {INNER: json.dumps(hot({"s": server(endless=True, after=2)}))}
    stack = create(world, {"n": child()}, inside("n/s", "pre-create"), files=files, timeout_mins=1)
    world.settle(lambda: False, within=500)
    inner = below(world, stack, "n")
    cleared_at = world.clock.now
    clear_breakpoint(world.context, inner, "s", "pre-create")
    assert world.settle(lambda: ended(world, stack), within=100)
    assert world.stack(stack.id).reason == "Create timed out"
    assert 55 <= world.clock.now - cleared_at <= 70
    assert status(world, inner) == "CREATE_FAILED"


def test_what_is_nested_has_its_whole_time_when_it_continues(world: World) -> None:
    environment = inside("n/s", "pre-create")
    environment["resource_registry"]["resources"]["n"]["timeout"] = 30
    files = {INNER: json.dumps(hot({"s": server(after=20)}))}
    stack = create(world, {"n": child()}, environment, files=files)
    world.settle(lambda: False, within=200)
    clear_breakpoint(world.context, below(world, stack, "n"), "s", "pre-create")
    assert world.settle(lambda: ended(world, stack), within=60)
    assert status(world, stack) == "CREATE_COMPLETE"


def test_the_time_of_what_is_nested_is_over_when_it_hangs_after_it_continued(world: World) -> None:
    environment = inside("n/s", "pre-create")
    environment["resource_registry"]["resources"]["n"] |= {"timeout": 30, "retries": 0}
    files = {INNER: json.dumps(hot({"s": server(endless=True, after=5)}))}
    stack = create(world, {"n": child()}, environment, files=files, timeout_mins=60)
    world.settle(lambda: False, within=200)
    clear_breakpoint(world.context, below(world, stack, "n"), "s", "pre-create")
    assert world.settle(lambda: ended(world, stack), within=60)
    assert "CREATE timed out" in world.stack(stack.id).reason


def test_a_limit_inside_that_fails_lets_the_parents_clock_continue(world: World) -> None:
    stack = create(
        world,
        {"n": child(), "slow": server(after=400)},
        inside("n/s", {"pre-create": {"timeout": 100, "then": "fail"}}),
        timeout_mins=60,
    )
    assert world.settle(lambda: clock(world, below(world, stack, "n")) == "stands", within=50)
    assert world.settle(lambda: ended(world, stack), within=500)
    assert world.stack(stack.id).reason == "CREATE aborted due to breakpoint on resource n/s"
    assert clock(world, stack) == "over"


def test_a_paused_parent_continues_when_its_child_ends_as_failed(world: World) -> None:
    fails = {"pre-create": {"timeout": 100, "then": "fail"}}
    stack = create(world, {"n": child()}, inside("n/s", fails), timeout_mins=1)
    rest(world)
    [item] = world.held(world.stack(stack.id))
    assert item.until is not None
    assert clock(world, stack) == "stands"
    world.database.write(lambda conn: clear_breakpoints.expire(conn, [item.id], by=None, now=item.until))
    assert below(world, stack, "n").status == "FAILED"
    left = world.stack(stack.id).deadline_at
    assert left is not None
    assert 50 <= left - item.until <= 60
    assert world.settle(lambda: ended(world, stack), within=150)


def test_a_failure_beside_a_child_that_is_held_waits_for_it(world: World) -> None:
    stack = create(world, {"n": child(), "bad": server(fail=True)}, inside("n/s", "pre-create"))
    rest(world)
    assert (status(world, stack), clock(world, stack)) == ("CREATE_IN_PROGRESS", "stands")
    continue_held(world.context, world.stack(stack.id))
    rest(world)
    assert world.stack(stack.id).reason.endswith("resources.bad: told to fail")


def test_abort_on_breakpoint_reaches_into_the_children_and_nothing_is_rolled_back(world: World) -> None:
    stack = create(
        world,
        {"m": {"type": MIDDLE}},
        inside("m/n/t", "pre-create"),
        abort_on_breakpoint=True,
        disable_rollback=False,
    )
    assert world.settle(lambda: ended(world, stack), within=60)
    rest(world)
    assert status(world, stack) == "CREATE_FAILED"
    assert world.stack(stack.id).reason == "CREATE aborted due to breakpoint on resource m/n/t"
    assert {item.resource for item in world.cloud.objects.values()} == {"s", "side"}
    world.update(stack, hot({"m": {"type": MIDDLE}}), files=FILES)
    assert world.settle(lambda: ended(world, stack), within=60)
    assert status(world, stack) == "UPDATE_COMPLETE"
    assert len(world.cloud.objects) == len(world.cloud.physical_ids) == 3


def test_a_child_that_is_updated_by_itself_lets_its_parents_clock_continue(world: World) -> None:
    stack = create(world, {"n": child()}, inside("n/t", "pre-create"))
    rest(world)
    inner = below(world, stack, "n")
    delete_stack(world.context, inner)
    assert status(world, inner) == "DELETE_IN_PROGRESS", "there is something to delete"
    assert clock(world, stack) == "goes"


@pytest.mark.parametrize("how", ["delete", "cancel", "update", "roll back"])
def test_a_tree_that_is_held_inside_can_be_ended(world: World, how: str) -> None:
    stack = create(world, {"n": child()}, inside("n/s", "pre-create"))
    rest(world)
    assert clock(world, stack) == "stands"
    if how == "delete":
        delete_stack(world.context, world.stack(stack.id))
    elif how == "update":
        world.update(stack, hot({"n": child()}), files=FILES)
    else:
        cancel_action(world.context, world.stack(stack.id), rollback=how == "roll back")
    assert world.settle(lambda: ended(world, stack), within=60)
    expected = {"delete": "DELETE_COMPLETE", "cancel": "CREATE_FAILED", "update": "UPDATE_COMPLETE"}
    assert status(world, stack) == expected.get(how, "ROLLBACK_COMPLETE")
    assert len(world.cloud.objects) == (2 if how == "update" else 0)


def test_a_rollback_stops_nowhere_inside(world: World) -> None:
    every = ["pre-create", "post-create", "pre-update", "pre-delete", "post-delete"]
    files = {INNER: json.dumps(hot({"s": server(size=1)}))}
    stack = create(world, {"n": child()}, inside("n/s", every), files=files)
    while status(world, stack) == "CREATE_IN_PROGRESS":
        rest(world)
        if held(world, stack):
            continue_held(world.context, world.stack(stack.id))
    more = {INNER: json.dumps(hot({"s": server(size=2)}))}
    world.update(
        stack,
        hot({"n": child(), "bad": {**server(fail=True), "depends_on": "n"}}),
        files=more,
        environment=inside("n/s", every),
        disable_rollback=False,
    )
    while status(world, stack) == "UPDATE_IN_PROGRESS":
        rest(world)
        if held(world, stack):
            continue_held(world.context, world.stack(stack.id))
    assert world.settle(lambda: world.stack(stack.id).action == "ROLLBACK" and ended(world, stack), within=60)
    assert status(world, stack) == "ROLLBACK_COMPLETE"


def test_deletions_are_held_inside_too(world: World) -> None:
    stack = create(world, {"n": child()}, inside("n/t", ["pre-delete", "post-delete"]))
    assert world.settle(lambda: ended(world, stack), within=60)
    delete_stack(world.context, world.stack(stack.id))
    rest(world)
    assert (held(world, stack), clock(world, stack)) == ([("n/t", "pre-delete")], "stands")
    continue_held(world.context, world.stack(stack.id))
    rest(world)
    assert held(world, stack) == [("n/t", "post-delete")]
    continue_held(world.context, world.stack(stack.id))
    rest(world)
    assert status(world, stack) == "DELETE_COMPLETE"


def test_all_that_is_held_in_the_tree_continues_by_path_by_wildcard_and_all(world: World) -> None:
    environment = {
        "resource_registry": {
            "resources": {"top": {"hooks": "pre-create"}, "*": {"*": {"hooks": "pre-create"}}}
        }
    }
    stack = create(world, {"n": child(), "o": child(), "top": server()}, environment)
    rest(world)
    assert held(world, stack) == [(path, "pre-create") for path in ("n/s", "o/s", "top")]
    done = continue_held(world.context, world.stack(stack.id), names=["n/*"])
    assert [item.path for item in done] == ["n/s"]
    rest(world)
    assert [path for path, _ in held(world, stack)] == ["n/t", "o/s", "top"]
    before = held(world, stack)
    with pytest.raises(
        InvalidHook, match='No resource "x/s" of stack s is held at a breakpoint; held are: n/t'
    ):
        continue_held(world.context, world.stack(stack.id), names=["top", "x/s"])
    for other_level in ("s", "n", "o/s/t"):
        with pytest.raises(InvalidHook, match=f'No resource "{other_level}"'):
            continue_held(world.context, world.stack(stack.id), names=[other_level])
    assert held(world, stack) == before
    done = continue_held(world.context, world.stack(stack.id), names=["*/s", "t*"])
    assert sorted(item.path for item in done) == ["o/s", "top"]
    rest(world)
    continue_held(world.context, world.stack(stack.id))
    rest(world)
    assert status(world, stack) == "CREATE_COMPLETE"


def test_steps_continue_inside_and_around_until_all_may(world: World) -> None:
    stack = create(world, {"n": child(), "z": {**server(), "depends_on": "n"}}, inside("n/s", "pre-create"))
    stops = []
    for _ in range(3):
        rest(world)
        stops += [path for path, _ in held(world, stack)]
        continue_held(world.context, world.stack(stack.id), step=True)
    rest(world)
    assert stops == ["n/s", "n/t", "z"]
    assert status(world, stack) == "CREATE_COMPLETE"


def test_continuing_with_all_ends_the_steps_on_every_level(world: World) -> None:
    stack = create(world, {"n": child(), "z": {**server(), "depends_on": "n"}}, inside("n/s", "pre-create"))
    rest(world)
    continue_held(world.context, world.stack(stack.id), step=True)
    rest(world)
    assert held(world, stack) == [("n/t", "pre-create")]
    continue_held(world.context, world.stack(stack.id))
    rest(world)
    assert status(world, stack) == "CREATE_COMPLETE"


def test_where_the_operator_lets_the_clock_count_it_counts_on_all_levels(tmp_path: pathlib.Path) -> None:
    world = World(tmp_path, hosts=1, held_time="counts")
    stack = create(world, {"n": child()}, inside("n/s", "pre-create"), timeout_mins=1)
    assert world.settle(lambda: ended(world, stack), within=80)
    assert world.stack(stack.id).reason == "Create timed out"


def test_a_child_is_held_while_the_step_that_made_it_has_not_said_so(world: World) -> None:
    """The child is paused before its parent's task is parked."""
    stack = create(world, {"n": child()}, inside("n/s", "pre-create"))
    world.deliver(0, "host0")
    world.conductors["host0"].run_once()
    world.conductors["host0"].run_step()
    inner = below(world, stack, "n")
    assert (clock(world, inner), clock(world, stack)) == ("stands", "goes")
    world.conductors["host0"].run_once()
    assert clock(world, stack) == "stands"


def test_conductors_die_while_a_tree_is_held(world: World) -> None:
    stack = create(world, {"m": {"type": MIDDLE}}, inside("m/n/s", "pre-create"))
    rest(world)
    for host in list(world.conductors):
        world.kill(host)
    world.start("fresh")
    rest(world)
    assert held(world, stack) == [("m/n/s", "pre-create")]
    continue_held(world.context, world.stack(stack.id))
    rest(world)
    assert status(world, stack) == "CREATE_COMPLETE"
    t = tables.task.c
    left = sa.select(t.id).where(t.state.in_(sorted(ACTIVE)))
    assert world.database.read(lambda conn: conn.execute(left).all()) == []
