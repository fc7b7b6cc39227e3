"""Breakpoints: where a stack stops, what runs besides, and every way to continue."""

import pathlib
import typing

import pytest
from simulation.helpers import created, ended, hooks, on, rest, rows, status, template, updated
from simulation.world import World
from stoker.db import events
from stoker.db.errors import NotFound
from stoker.db.events import EventQuery
from stoker.db.rows import Stack
from stoker.db.states import Status, TaskKind, TaskState
from stoker.db.work import breakpoints, tasks
from stoker.engine.breakpoints import clear_breakpoint, continue_held
from stoker.engine.errors import InvalidHook
from stoker.engine.snapshots import delete_snapshot, take_snapshot
from stoker.engine.stacks import act_on_stack, delete_stack
from stoker.engine.updates import cancel_action

Json = typing.Any
PATHS = template(a1={}, a2={"needs": on("a1")}, a3={"needs": on("a2")}, b1={}, b2={"needs": on("b1")}, c1={})


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4)


def states(world: World, stack: Stack) -> dict[str, str]:
    return {name: f"{row.action}_{row.status}" for name, row in rows(world, stack).items()}


def held(world: World, stack: Stack) -> list[tuple[str, str]]:
    held_items = world.held(world.stack(stack.id))
    return sorted((item.resource_name, item.hook) for item in held_items)


def reasons(world: World, stack: Stack, name: str) -> list[tuple[str, str]]:
    entries = world.database.read(lambda conn: events.list_events(conn, EventQuery(stack.id)))
    return [(f"{e.action}_{e.status}", e.reason) for e, _ in entries if e.resource_name == name]


def go_on(world: World, stack: Stack, **options: Json) -> list[str]:
    done = continue_held(world.context, world.stack(stack.id), **options)
    rest(world)
    return sorted(item.resource_name for item in done)


def test_what_is_behind_a_breakpoint_stops_and_everything_else_completes(world: World) -> None:
    stack = world.create("s", PATHS, environment=hooks(a2="pre-create", b1="post-create"))
    rest(world)
    assert states(world, stack) == {
        "a1": "CREATE_COMPLETE",
        "a2": "INIT_COMPLETE",
        "a3": "INIT_COMPLETE",
        "b1": "CREATE_COMPLETE",
        "b2": "INIT_COMPLETE",
        "c1": "CREATE_COMPLETE",
    }
    assert held(world, stack) == [("a2", "pre-create"), ("b1", "post-create")]
    assert world.stack(stack.id).reason in (
        "CREATE paused at breakpoints: pre-create on a2, post-create on b1",
        "CREATE paused at breakpoints: post-create on b1, pre-create on a2",
    )
    clear_breakpoint(world.context, world.stack(stack.id), "a2", "pre-create")
    rest(world)
    assert states(world, stack)["a3"] == "CREATE_COMPLETE"
    assert states(world, stack)["b2"] == "INIT_COMPLETE"
    assert world.stack(stack.id).reason == "CREATE paused at breakpoint: post-create on b1"
    clear_breakpoint(world.context, world.stack(stack.id), "b1", "post-create")
    rest(world)
    assert status(world, stack) == "CREATE_COMPLETE"
    assert reasons(world, stack, "a2") == [
        ("INIT_COMPLETE", "CREATE paused until Hook pre-create is cleared"),
        ("INIT_COMPLETE", "Hook pre-create is cleared"),
        ("CREATE_IN_PROGRESS", "state changed"),
        ("CREATE_COMPLETE", "state changed"),
    ]
    assert reasons(world, stack, "b1") == [
        ("CREATE_IN_PROGRESS", "state changed"),
        ("CREATE_COMPLETE", "state changed"),
        ("CREATE_COMPLETE", "CREATE paused until Hook post-create is cleared"),
        ("CREATE_COMPLETE", "Hook post-create is cleared"),
    ]
    assert len(world.cloud.physical_ids) == 6


def test_a_breakpoint_holds_although_no_conductor_is_up_and_none_works_while_it_holds(world: World) -> None:
    for host in list(world.conductors):
        world.kill(host)
    stack = world.create("s", template(a={}), environment=hooks(a="pre-create"))
    assert held(world, stack) == [("a", "pre-create")]
    assert world.bus.hints == []
    world.start("fresh")
    rest(world)
    assert held(world, stack) == [("a", "pre-create")]
    assert (world.bus.sent, [c.loop.in_progress for c in world.awake()]) == (0, [0])
    clear_breakpoint(world.context, world.stack(stack.id), "a", "pre-create")
    world.kill("fresh")
    world.start("other")
    rest(world)
    assert status(world, stack) == "CREATE_COMPLETE"


def test_both_breakpoints_of_one_resource_hold_one_after_the_other(world: World) -> None:
    environment = hooks(**{"*": ["pre-create", "post-create"]})
    stack = world.create("s", template(a={}, b={"needs": on("a")}), environment=environment)
    stops = []
    while status(world, stack) == "CREATE_IN_PROGRESS":
        rest(world)
        stops += held(world, stack)
        if held(world, stack):
            go_on(world, stack)
    assert stops == [("a", "pre-create"), ("a", "post-create"), ("b", "pre-create"), ("b", "post-create")]


@pytest.mark.parametrize(
    ("hook", "error"),
    [
        *(
            (hook, f'The "{hook}" hook is not defined on')
            for hook in ("pre-create", "post-create", "pre-update")
        ),
        ("nonsense", 'Invalid hook type "nonsense" for'),
    ],
)
def test_clearing_what_is_not_held_is_an_error_and_changes_nothing(
    world: World, hook: str, error: str
) -> None:
    stack = world.create("s", PATHS, environment=hooks(a2="pre-create"))
    rest(world)
    before = world.stack(stack.id), states(world, stack), len(reasons(world, stack, "a1"))
    with pytest.raises(InvalidHook, match=f'^{error} Server "a1"'):
        clear_breakpoint(world.context, world.stack(stack.id), "a1", hook)
    with pytest.raises(
        InvalidHook, match='No resource "x." of stack s is held at a breakpoint; held are: a2'
    ):
        continue_held(world.context, world.stack(stack.id), names=["a*", "x?"])
    assert held(world, stack) == [("a2", "pre-create")]
    assert (world.stack(stack.id), states(world, stack), len(reasons(world, stack, "a1"))) == before
    clear_breakpoint(world.context, world.stack(stack.id), "a2", "pre-create")
    with pytest.raises(InvalidHook, match='The "pre-create" hook is not defined on Server "a2" Stack "s"'):
        clear_breakpoint(world.context, world.stack(stack.id), "a2", "pre-create")
    rest(world)
    with pytest.raises(InvalidHook, match="Nothing of stack s is held at a breakpoint"):
        continue_held(world.context, world.stack(stack.id))


def test_who_continues_announces_the_tasks_at_once(world: World) -> None:
    stack = world.create("s", template(a={}, b={}), environment=hooks(**{"*": "pre-create"}))
    rest(world)
    clear_breakpoint(world.context, stack, "a", "pre-create")
    assert len(world.bus.hints) == 1
    continue_held(world.context, stack)
    assert len(world.bus.hints) == 2


def test_several_continue_by_wildcard_or_by_the_kind_of_breakpoint(world: World) -> None:
    document = template(web1={}, web2={}, db1={}, db2={})
    environment = hooks(**{"web*": "pre-create", "db1": "pre-create", "db2": "post-create"})
    stack = world.create("s", document, environment=environment)
    rest(world)
    assert go_on(world, stack, names=["web*"]) == ["web1", "web2"]
    assert go_on(world, stack, hook="post-create") == ["db2"]
    assert held(world, stack) == [("db1", "pre-create")]
    assert go_on(world, stack) == ["db1"]
    assert status(world, stack) == "CREATE_COMPLETE"


def test_steps_stop_before_whatever_comes_next(world: World) -> None:
    stack = world.create("s", PATHS, environment=hooks(**{"?1": "pre-create"}))
    rest(world)
    assert held(world, stack) == [("a1", "pre-create"), ("b1", "pre-create"), ("c1", "pre-create")]
    assert go_on(world, stack, step=True) == ["a1", "b1", "c1"]
    assert held(world, stack) == [("a2", "pre-create"), ("b2", "pre-create")]
    assert go_on(world, stack, names=["a2"], step=True) == ["a2"]
    assert held(world, stack) == [("a3", "pre-create"), ("b2", "pre-create")]
    for host in list(world.conductors):
        world.kill(host)
    world.start("fresh")
    assert go_on(world, stack, step=True) == ["a3", "b2"]
    assert status(world, stack) == "CREATE_COMPLETE"


def test_continue_ends_going_step_by_step(world: World) -> None:
    document = template(a={}, b={"needs": on("a")}, c={"needs": on("b")}, d={"needs": on("c")})
    stack = world.create("s", document, environment=hooks(a="pre-create", d="pre-create"))
    rest(world)
    go_on(world, stack, step=True)
    assert held(world, stack) == [("b", "pre-create")]
    clear_breakpoint(world.context, world.stack(stack.id), "b", "pre-create")
    rest(world)
    assert held(world, stack) == [("c", "pre-create")], "one cleared by itself does not end it"
    go_on(world, stack)
    assert held(world, stack) == [("d", "pre-create")], "a breakpoint of its own still counts"
    go_on(world, stack)
    assert status(world, stack) == "CREATE_COMPLETE"


@pytest.mark.parametrize("choice", [{"names": ["b"]}, {"hook": "pre-create"}])
def test_who_continues_some_does_not_end_going_step_by_step(world: World, choice: Json) -> None:
    document = template(a={}, b={"needs": on("a")}, c={"needs": on("b")})
    stack = world.create("s", document, environment=hooks(a="pre-create"))
    rest(world)
    go_on(world, stack, step=True)
    assert go_on(world, stack, **choice) == ["b"]
    assert held(world, stack) == [("c", "pre-create")]


def test_an_update_stops_only_where_there_is_something_to_do(world: World) -> None:
    def template_for(value: str, size: int) -> Json:
        return template(
            same={}, follows={"needs": on("changed")}, changed={"value": value}, new={"size": size}
        )

    stack = created(world, template_for("1", 1))
    environment = hooks(**{"*": ["pre-update", "post-update"]})
    world.update(stack, template_for("2", 2), environment=environment)
    rest(world)
    assert held(world, stack) == [("changed", "pre-update"), ("new", "pre-update")]
    assert states(world, stack)["changed"] == "CREATE_COMPLETE"
    go_on(world, stack)
    assert held(world, stack) == [("changed", "post-update")], "the other one was replaced"
    assert states(world, stack)["changed"] == "UPDATE_COMPLETE"
    go_on(world, stack)
    assert status(world, stack) == "UPDATE_COMPLETE"
    assert reasons(world, stack, "changed")[-1] == ("UPDATE_COMPLETE", "Hook post-update is cleared")
    assert len(world.cloud.objects) == 4


def test_a_replacement_stops_before_its_creation_and_before_its_cleanup(world: World) -> None:
    def template_for(size: int) -> Json:
        return template(a={"size": size}, b={"needs": on("a")})

    stack = created(world, template_for(1))
    old = rows(world, stack)["a"].physical_id
    world.update(
        stack,
        template_for(2),
        environment=hooks(a=["pre-create", "pre-delete", "post-delete"], b="pre-delete"),
    )
    rest(world)
    assert held(world, stack) == [("a", "pre-create")]
    assert (states(world, stack)["a"], rows(world, stack)["a"].physical_id) == ("INIT_COMPLETE", None)
    go_on(world, stack)
    assert held(world, stack) == [("a", "pre-delete")], "b was not replaced, so nothing of it is cleaned up"
    assert states(world, stack) == {"a": "CREATE_COMPLETE", "b": "UPDATE_COMPLETE"}
    assert old in world.cloud.objects
    clear_breakpoint(world.context, world.stack(stack.id), "a", "pre-delete")
    rest(world)
    assert held(world, stack) == [("a", "post-delete")]
    assert old not in world.cloud.objects
    go_on(world, stack)
    assert status(world, stack) == "UPDATE_COMPLETE"
    assert len(world.cloud.objects) == 2
    assert world.cloud.wrong == []


def test_a_cleanup_that_continues_under_an_update_leaves_nothing_to_be_held(world: World) -> None:
    stack = created(world, template(a={"hangs": ["delete"]}))
    world.update(stack, template(a={"hangs": ["delete"], "size": 2}))
    world.calm()
    [conductor] = [each for each in world.awake() if each.hanging]
    world.update(
        stack, template(a={"hangs": ["delete"], "size": 2, "value": "x"}), environment=hooks(a="pre-delete")
    )
    world.calm()
    conductor.go_on()
    assert world.settle(lambda: ended(world, stack), within=8), "before the step would be given up"
    assert (status(world, stack), held(world, stack)) == ("UPDATE_COMPLETE", [])
    assert len(world.cloud.objects) == 1


def test_a_deletion_stops_before_and_behind_its_resources(world: World) -> None:
    document = template(a={}, b={"needs": on("a")}, c={})
    environment = hooks(b=["pre-delete", "post-delete"])
    stack = world.create("s", document, environment=environment)
    rest(world)
    delete_stack(world.context, world.stack(stack.id))
    rest(world)
    assert held(world, stack) == [("b", "pre-delete")]
    assert states(world, stack) == {"a": "CREATE_COMPLETE", "b": "CREATE_COMPLETE"}
    go_on(world, stack)
    assert held(world, stack) == [("b", "post-delete")]
    assert states(world, stack) == {"a": "CREATE_COMPLETE", "b": "DELETE_COMPLETE"}
    go_on(world, stack)
    assert status(world, stack) == "DELETE_COMPLETE"
    assert world.cloud.objects == {}


@pytest.mark.parametrize("hook", ["pre-delete", "post-delete"])
def test_a_deletion_that_is_held_can_time_out_and_be_requested_again(world: World, hook: str) -> None:
    stack = world.create("s", template(a={}, b={"needs": on("a"), "looks": 3}), environment=hooks(a=hook))
    rest(world)
    delete_stack(world.context, world.stack(stack.id))
    rest(world)
    assert held(world, stack) == [("a", hook)]
    delete_stack(world.context, world.stack(stack.id))
    rest(world)
    assert held(world, stack) == [("a", hook)], "it is being deleted, so it stays as it is"
    go_on(world, stack)
    assert status(world, stack) == "DELETE_COMPLETE"
    assert world.cloud.objects == {}


def test_an_update_continues_from_a_breakpoint_with_another_template(world: World) -> None:
    stack = world.create("s", PATHS, environment=hooks(a2="pre-create", b1="post-create"))
    rest(world)
    before = rows(world, stack)
    updated(world, stack, template(a1={}, a2={"value": "changed", "needs": on("a1")}, b1={}, d={}))
    after = rows(world, stack)
    assert set(after) == {"a1", "a2", "b1", "d"}
    assert {n: after[n].physical_id for n in ("a1", "b1")} == {n: before[n].physical_id for n in ("a1", "b1")}
    assert len(world.cloud.objects) == 4


def test_a_new_update_sets_a_cleared_breakpoint_again(world: World) -> None:
    environment = hooks(a2="pre-create")
    stack = world.create("s", PATHS, environment=environment)
    rest(world)
    world.update(stack, PATHS, environment=environment)
    rest(world)
    assert held(world, stack) == [("a2", "pre-create")]
    go_on(world, stack)
    assert status(world, stack) == "UPDATE_COMPLETE"


def test_a_cleared_breakpoint_does_not_return_when_the_action_is_tried_again(world: World) -> None:
    environment = hooks(a=["pre-create", "post-create"])
    stack = world.create("s", template(a={"flaky": 2}), environment=environment)
    rest(world)
    go_on(world, stack)
    assert held(world, stack) == [("a", "post-create")]
    assert [reason for _, reason in reasons(world, stack, "a")].count(
        "CREATE paused until Hook pre-create is cleared"
    ) == 1
    go_on(world, stack)
    assert status(world, stack) == "CREATE_COMPLETE"


@pytest.mark.parametrize("held_at", ["pre-create", "post-create"])
def test_a_stack_is_deleted_while_it_is_held(world: World, held_at: str) -> None:
    stack = world.create("s", PATHS, environment=hooks(a2=held_at))
    rest(world)
    delete_stack(world.context, world.stack(stack.id))
    assert world.settle(lambda: ended(world, stack), within=60)
    assert status(world, stack) == "DELETE_COMPLETE"
    assert world.cloud.objects == {}


def test_a_stack_is_cancelled_while_it_is_held(world: World) -> None:
    stack = created(world, PATHS)
    changed = template(
        **{**{n: dict(r["properties"]) for n, r in PATHS["resources"].items()}, "a1": {"value": "2"}}
    )
    world.update(stack, changed, environment=hooks(a1="pre-update"))
    rest(world)
    assert held(world, stack) == [("a1", "pre-update")]
    cancel_action(world.context, world.stack(stack.id), rollback=True)
    assert world.settle(lambda: ended(world, stack), within=60)
    assert status(world, stack) == "ROLLBACK_COMPLETE"
    assert states(world, stack)["a1"] == "CREATE_COMPLETE"


def test_a_rollback_stops_nowhere(world: World) -> None:
    every = ["pre-create", "post-create", "pre-update", "pre-delete", "post-delete"]
    stack = world.create("s", template(a={"size": 1}, b={}), environment=hooks(**{"*": every}))
    while status(world, stack) == "CREATE_IN_PROGRESS":
        rest(world)
        if held(world, stack):
            go_on(world, stack)
    world.update(stack, template(a={"size": 2}, b={"fail": True, "value": "x"}), disable_rollback=False)
    assert world.settle(lambda: world.stack(stack.id).action == "ROLLBACK" and ended(world, stack), within=60)
    assert status(world, stack) == "ROLLBACK_COMPLETE"


def test_a_failure_beside_a_held_resource_ends_the_action(world: World) -> None:
    stack = world.create(
        "s", template(a={}, b={"fail": True}, c={}), environment=hooks(a="pre-create", c="post-create")
    )
    assert world.settle(lambda: ended(world, stack), within=60)
    assert status(world, stack) == "CREATE_FAILED"
    assert states(world, stack)["a"] == "INIT_COMPLETE"
    assert held(world, stack) == []


# -- time ------------------------------------------------------------------------------------------


def test_the_clock_pauses_while_all_that_is_unfinished_is_held(world: World) -> None:
    document = template(a={}, b={"needs": on("a")}, c={"after": 20})
    stack = world.create("s", document, environment=hooks(a="pre-create"), timeout_mins=1)
    began = world.clock.now
    world.calm()
    assert world.stack(stack.id).deadline_at == began + 60, "c still runs"
    rest(world)
    current = world.stack(stack.id)
    assert current.deadline_at is None
    assert current.remaining is not None
    assert 30 <= current.remaining <= 40
    world.settle(lambda: False, within=1000)
    assert status(world, stack) == "CREATE_IN_PROGRESS"
    now = world.clock.now
    clear_breakpoint(world.context, world.stack(stack.id), "a", "pre-create")
    assert world.stack(stack.id).deadline_at == now + current.remaining
    assert world.settle(lambda: ended(world, stack), within=20)
    current = world.stack(stack.id)
    assert (current.status, current.deadline_at, current.remaining) == (Status.COMPLETE, None, None)


def test_the_clock_pauses_although_a_snapshot_is_being_deleted(world: World) -> None:
    slow = {"after": 5}
    stack = created(world, template(a=slow))
    snapshot = take_snapshot(world.context, stack, None)
    assert world.settle(lambda: ended(world, stack), within=20)
    delete_snapshot(world.context, world.stack(stack.id), snapshot.id)
    world.calm()
    assert sum(conductor.loop.in_progress for conductor in world.awake()) == 1
    world.update(stack, template(a=slow, b={}), environment=hooks(b="pre-create"))
    world.calm()
    assert held(world, stack) == [("b", "pre-create")]
    assert world.stack(stack.id).remaining is not None


def test_the_clock_does_not_pause_while_a_deletion_waits_for_that_of_a_snapshot(world: World) -> None:
    stack = created(world, template(a={}))
    snapshot = take_snapshot(world.context, stack, None)
    assert world.settle(lambda: ended(world, stack), within=20)
    world.update(stack, template(a={}, b={}), environment=hooks(b="pre-delete"))
    assert world.settle(lambda: ended(world, stack), within=20)
    delete_snapshot(world.context, world.stack(stack.id), snapshot.id)
    world.deliver(0, "host0")
    world.conductors["host0"].run_once()
    assert len(world.conductors["host0"].steps) == 1, "it is taken, and has not begun"
    delete_stack(world.context, world.stack(stack.id))
    while world.bus.hints:
        world.deliver(0, "host1")
    world.conductors["host1"].run_once()
    assert held(world, stack) == [("b", "pre-delete")]
    assert world.stack(stack.id).remaining is None, "a's deletion goes on by itself"
    world.calm()
    assert list(rows(world, stack)) == ["b"]
    assert world.stack(stack.id).remaining is not None


def test_a_clock_that_has_continued_ends_the_action_after_the_time_that_was_left(world: World) -> None:
    document = template(a={"endless": True, "after": 2})
    stack = world.create("s", document, environment=hooks(a="pre-create"), timeout_mins=1)
    world.settle(lambda: False, within=500)
    cleared_at = world.clock.now
    clear_breakpoint(world.context, world.stack(stack.id), "a", "pre-create")
    assert world.settle(lambda: ended(world, stack), within=100)
    assert world.stack(stack.id).reason == "Create timed out"
    assert 60 <= world.clock.now - cleared_at <= 69


def test_a_parked_task_keeps_the_clock_going(world: World) -> None:
    document = template(a={}, b={"flaky": 100})
    environment = hooks(a="pre-create")
    environment["resource_registry"]["resources"]["b"] = {"retries": 100}
    stack = world.create("s", document, environment=environment, timeout_mins=1)
    assert world.settle(lambda: ended(world, stack), within=80)
    assert world.stack(stack.id).reason == "Create timed out"
    assert states(world, stack)["a"] == "INIT_COMPLETE"


def test_a_task_that_is_parked_until_a_retry_keeps_the_clock_going_when_another_is_held(world: World) -> None:
    document = template(a={}, slow={"after": 40}, z={"needs": on("slow")}, b={"flaky": 100})
    environment = hooks(z="pre-create")
    environment["resource_registry"]["resources"]["b"] = {"retries": 100}
    stack = world.create("s", document, environment=environment, timeout_mins=10)
    assert world.settle(lambda: held(world, stack) == [("z", "pre-create")], within=80)
    stored_tasks = world.database.read(lambda conn: tasks.of_traversal(conn, stack.traversal))
    assert TaskState.PARKED in {task.state for task in stored_tasks}, "b waits for its next try"
    assert world.stack(stack.id).deadline_at is not None


def test_the_clock_counts_on_where_the_operator_requests_it(tmp_path: pathlib.Path) -> None:
    world = World(tmp_path, hosts=1, held_time="counts")
    stack = world.create("s", template(a={}), environment=hooks(a="pre-create"), timeout_mins=1)
    assert world.settle(lambda: ended(world, stack), within=80)
    assert world.stack(stack.id).reason == "Create timed out"
    assert states(world, stack) == {"a": "INIT_COMPLETE"}


def test_the_clock_pauses_only_when_work_of_an_older_traversal_has_ended(world: World) -> None:
    slow = {"after": 10, "looks": 2}
    stack = world.create("s", template(a=slow))
    world.calm()
    document = template(a={**slow, "needs": on("b")}, b={})
    world.update(stack, document, environment=hooks(b="pre-create"), timeout_mins=1)
    world.bus.cancels.clear()
    world.calm()
    assert held(world, stack) == [("b", "pre-create")]
    assert world.stack(stack.id).deadline_at is not None, (
        "the old task still runs, and the new one waits for it"
    )
    world.settle(lambda: False, within=40)
    assert world.stack(stack.id).deadline_at is None
    go_on(world, stack)
    assert status(world, stack) == "UPDATE_COMPLETE"


def test_a_breakpoint_lets_go_by_itself_after_its_limit(world: World) -> None:
    environment = hooks(a={"pre-create": {"timeout": 100, "then": "continue"}})
    stack = world.create("s", template(a={}, b={"needs": on("a")}), environment=environment)
    world.settle(lambda: False, within=90)
    assert held(world, stack) == [("a", "pre-create")]
    assert world.settle(lambda: ended(world, stack), within=30)
    assert status(world, stack) == "CREATE_COMPLETE"
    assert [reason for _, reason in reasons(world, stack, "a")][:2] == [
        "CREATE paused until Hook pre-create is cleared",
        "Hook pre-create is cleared",
    ]


@pytest.mark.parametrize("hook", ["pre-create", "post-create"])
def test_a_breakpoint_ends_the_action_after_its_limit(world: World, hook: str) -> None:
    environment = hooks(a={hook: {"timeout": 30, "then": "fail"}}, c={"pre-create": {"timeout": 30}})
    stack = world.create("s", template(a={}, b={"needs": on("a")}, c={}), environment=environment)
    assert world.settle(lambda: ended(world, stack), within=60)
    current = world.stack(stack.id)
    assert (status(world, stack), current.reason) == (
        "CREATE_FAILED",
        "CREATE aborted due to breakpoint on resource a",
    )
    state = "INIT_COMPLETE" if hook == "pre-create" else "CREATE_COMPLETE"
    assert states(world, stack) == {"a": state, "b": "INIT_COMPLETE", "c": "INIT_COMPLETE"}


# -- abort -----------------------------------------------------------------------------------------


def test_a_breakpoint_ends_the_action_where_that_is_requested_after_running_work(world: World) -> None:
    document = template(slow={"after": 20}, a={}, b={"needs": on("a")}, c={"needs": on("b")})
    stack = world.create(
        "s", document, environment=hooks(b="pre-create"), abort_on_breakpoint=True, disable_rollback=False
    )
    world.calm()
    world.settle(lambda: False, within=8)
    assert status(world, stack) == "CREATE_IN_PROGRESS", "the slow one still runs"
    assert world.settle(lambda: ended(world, stack), within=60)
    rest(world)
    assert status(world, stack) == "CREATE_FAILED", "it is not rolled back"
    assert world.stack(stack.id).reason == "CREATE aborted due to breakpoint on resource b"
    assert states(world, stack) == {
        "slow": "CREATE_COMPLETE",
        "a": "CREATE_COMPLETE",
        "b": "INIT_COMPLETE",
        "c": "INIT_COMPLETE",
    }
    updated(world, stack, document)
    assert len(world.cloud.objects) == len(world.cloud.physical_ids) == 4


@pytest.mark.parametrize(
    ("hook", "state"), [("pre-create", "INIT_COMPLETE"), ("post-create", "CREATE_COMPLETE")]
)
def test_the_first_resource_may_end_the_action(world: World, hook: str, state: str) -> None:
    stack = world.create(
        "s", template(a={}, b={"needs": on("a")}), environment=hooks(a=hook), abort_on_breakpoint=True
    )
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.stack(stack.id).reason == "CREATE aborted due to breakpoint on resource a"
    assert states(world, stack) == {"a": state, "b": "INIT_COMPLETE"}


@pytest.mark.parametrize(
    ("hook", "size"),
    [("pre-update", 1), ("post-update", 1), ("pre-update", 2), ("pre-create", 2), ("pre-delete", 2)],
)
def test_an_update_is_ended_by_a_breakpoint_and_the_next_continues(
    world: World, hook: str, size: int
) -> None:
    def template_for(number: int) -> Json:
        return template(a={"size": 1 if number == 1 else size, "value": str(number)}, b={"needs": on("a")})

    stack = created(world, template_for(1))
    environment = hooks(a={hook: {"abort": True}})
    world.update(stack, template_for(2), environment=environment)
    assert world.settle(lambda: ended(world, stack), within=60)
    assert (status(world, stack), world.stack(stack.id).reason.partition(" ")[2]) == (
        "UPDATE_FAILED",
        "aborted due to breakpoint on resource a",
    )
    assert {row.status for row in rows(world, stack).values()} == {"COMPLETE"}
    updated(world, stack, template_for(2))
    assert len(world.cloud.objects) == 2
    assert world.cloud.wrong == []


@pytest.mark.parametrize("hook", ["pre-delete", "post-delete"])
def test_a_deletion_is_ended_by_a_breakpoint_and_the_next_continues(world: World, hook: str) -> None:
    stack = world.create(
        "s", template(a={}, b={"needs": on("a")}), environment=hooks(b={hook: {"abort": True}})
    )
    rest(world)
    delete_stack(world.context, world.stack(stack.id))
    assert world.settle(lambda: ended(world, stack), within=60)
    assert status(world, stack) == "DELETE_FAILED"
    assert set(states(world, stack)) == ({"a", "b"} if hook == "pre-delete" else {"a"})
    delete_stack(world.context, world.stack(stack.id))
    rest(world)
    if hook == "pre-delete":
        assert held(world, stack) == [("b", hook)], "ended again it could never be deleted"
        go_on(world, stack)
    assert status(world, stack) == "DELETE_COMPLETE"
    assert world.cloud.objects == {}


# -- what else must hold ---------------------------------------------------------------------------


def test_two_who_clear_at_once_do_not_both_succeed(world: World) -> None:
    stack = world.create("s", template(a={}), environment=hooks(a="pre-create"))
    current = world.stack(stack.id)
    clear_breakpoint(world.context, current, "a", "pre-create")
    with pytest.raises(InvalidHook):
        clear_breakpoint(world.context, current, "a", "pre-create")
    rest(world)
    assert [r for _, r in reasons(world, stack, "a")].count("Hook pre-create is cleared") == 1


def test_who_continues_what_another_has_continued_meanwhile_reads_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = world.create("s", template(a={}), environment=hooks(a="pre-create"))
    with pytest.raises(NotFound, match="nobody"):
        clear_breakpoint(world.context, stack, "nobody", "pre-create")
    read = world.database.read(lambda conn: breakpoints.held_in_tree(conn, stack.id))
    continue_held(world.context, stack)
    # Where transactions do not see each other's rows, both read that the task is held.
    monkeypatch.setattr(breakpoints, "held_in_tree", lambda conn, stack_id: read)
    with pytest.raises(InvalidHook, match="Stack s continued meanwhile; read where it is held now"):
        continue_held(world.context, stack)


def test_a_check_stops_nowhere(world: World) -> None:
    stack = world.create("s", template(a={}), environment=hooks(a="pre-update"))
    rest(world)
    act_on_stack(world.context, world.stack(stack.id), TaskKind.CHECK)
    assert world.settle(lambda: ended(world, stack), within=60)
    assert status(world, stack) == "CHECK_COMPLETE"


def test_a_held_resource_has_its_whole_time_when_it_continues(world: World) -> None:
    environment = hooks(a="pre-update")
    # Without retries, for the next try would have a time of its own.
    environment["resource_registry"]["resources"]["a"] |= {"timeout": 20, "retries": 0}
    stack = created(world, template(a={}))
    world.update(stack, template(a={"value": "x", "after": 10}), environment=environment)
    world.settle(lambda: False, within=100)
    assert held(world, stack) == [("a", "pre-update")]
    go_on(world, stack)
    assert status(world, stack) == "UPDATE_COMPLETE"


def test_no_retries_leave_a_failure_as_it_happened(world: World) -> None:
    environment = {"resource_registry": {"resources": {"*": {"stoker": {"retries": 0}}}}}
    stack = world.create("s", template(a={"flaky": 1}), environment=environment)
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.stack(stack.id).reason == "Resource CREATE failed: ResourceFailure: resources.a: try 1"
    stored_tasks = world.database.read(lambda conn: tasks.of_traversal(conn, stack.traversal))
    assert [task.state for task in stored_tasks if task.resource_id] == [TaskState.FAILED]
