"""How work runs when nothing goes wrong outside: order, waiting, failing, trying again."""

import pathlib
import typing

import pytest
from simulation.helpers import chain, template_of
from simulation.world import World
from stoker.db import events, resources
from stoker.db.events import EventQuery
from stoker.db.rows import Event, Resource, Stack
from stoker.db.states import Status
from stoker.engine.stacks import delete_stack

Json = typing.Any


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4)


def ended(world: World, stack: Stack) -> bool:
    return world.stack(stack.id).status != Status.IN_PROGRESS


def rows_of(world: World, stack: Stack) -> dict[str, Resource]:
    rows = world.database.read(lambda conn: resources.of_stack(conn, stack.id))
    return {row.name: row for row in rows}


def events_of(world: World, stack: Stack) -> list[Event]:
    entries = world.database.read(lambda conn: events.list_events(conn, EventQuery(stack.id)))
    return [event for event, _ in entries]


def test_a_chain_stays_where_it_began_and_needs_one_hint(world: World) -> None:
    stack = world.create("s", chain(12))
    world.calm()
    assert world.stack(stack.id).status == Status.COMPLETE
    assert world.bus.sent == 1
    assert len({event.conductor for event in events_of(world, stack) if event.conductor}) == 1


def test_a_wide_graph_is_shared_by_all_conductors(world: World) -> None:
    stack = world.create("s", template_of(**{f"r{i}": {} for i in range(64)}))
    assert world.settle(lambda: ended(world, stack), within=60)
    assert {event.conductor for event in events_of(world, stack)} >= {"host0", "host1"}


def test_no_wait_holds_a_thread(world: World) -> None:
    stack = world.create("s", template_of(**{f"r{i}": {"after": 100} for i in range(200)}))
    world.calm()
    held = [conductor.loop.in_progress for conductor in world.awake()]
    assert sum(held) == 200, "all are begun although there are 8 threads"
    assert [conductor.loop.busy for conductor in world.awake()] == [0, 0]
    assert world.settle(lambda: ended(world, stack), within=120)


def test_no_more_is_claimed_than_threads_can_take_soon(world: World) -> None:
    world.create("s", template_of(**{f"r{i}": {} for i in range(100)}))
    one = world.conductors["host0"]
    while world.bus.hints:
        world.deliver(0, "host0")
    one.run_once()
    assert len(one.steps) <= world.threads + 4


def test_a_failure_starts_nothing_more_and_is_reported_when_running_work_has_ended(world: World) -> None:
    stack = world.create(
        "s",
        template_of(
            slow={"after": 30, "looks": 2},
            bad={"fail": True},
            behind={"needs": [{"get_resource": "bad"}]},
            beside={"needs": [{"get_resource": "slow"}]},
        ),
    )
    world.calm()
    assert world.stack(stack.id).status == Status.IN_PROGRESS, "the slow one still runs"
    assert world.settle(lambda: ended(world, stack), within=120)
    current = world.stack(stack.id)
    assert (current.action, current.status) == ("CREATE", Status.FAILED)
    assert current.reason == "Resource CREATE failed: ResourceFailure: resources.bad: told to fail"
    rows = rows_of(world, stack)
    states = {name: (row.action, row.status) for name, row in rows.items()}
    assert states == {
        "slow": ("CREATE", Status.COMPLETE),
        "bad": ("CREATE", Status.FAILED),
        "behind": ("INIT", Status.COMPLETE),
        "beside": ("INIT", Status.COMPLETE),
    }
    names = [event.resource_name for event in events_of(world, stack)]
    assert names[-1] == "s"
    assert "behind" not in names


def test_what_may_work_later_is_tried_again_with_growing_pauses(world: World) -> None:
    stack = world.create("s", template_of(r={"flaky": 3, "after": 0}))
    began = world.clock.now
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.stack(stack.id).status == Status.COMPLETE
    assert world.clock.now - began >= 1 + 2 + 4
    assert len(world.cloud.physical_ids) == 1


def test_a_failure_after_a_success_costs_no_retry(world: World) -> None:
    limit = {"resource_registry": {"resources": {"r": {"retries": 1}}}}
    stack = world.create("s", template_of(r={"stumbles": True, "looks": 5}), environment=limit)
    assert world.settle(lambda: ended(world, stack), within=290)
    assert world.stack(stack.id).status == Status.COMPLETE, world.stack(stack.id).reason
    assert max(world.cloud.tries.values()) >= 10, "four failures, where one in a row is allowed"


def test_what_never_works_fails_after_its_last_try(world: World) -> None:
    stack = world.create("s", template_of(r={"flaky": 1000}))
    assert world.settle(lambda: ended(world, stack), within=290)
    assert world.stack(stack.id).reason.endswith("resources.r: try 9"), "8 retries after the first try"
    assert world.stack(stack.id).status == Status.FAILED


def test_a_deletion_goes_against_the_order_and_leaves_nothing(world: World) -> None:
    stack = world.create("s", chain(6))
    world.calm()
    assert len(world.cloud.objects) == 6
    delete_stack(world.context, world.stack(stack.id))
    world.calm()
    current = world.stack(stack.id)
    assert (current.action, current.status) == ("DELETE", Status.COMPLETE)
    assert world.cloud.objects == {}
    assert world.cloud.wrong == []
    assert rows_of(world, stack) == {}


def test_a_deletion_in_the_middle_of_a_creation_stops_it(world: World) -> None:
    stack = world.create("s", template_of(a={"endless": True}, b={"needs": [{"get_resource": "a"}]}))
    world.calm()
    delete_stack(world.context, world.stack(stack.id))
    assert world.settle(lambda: ended(world, stack), within=10)
    assert world.stack(stack.id).action == "DELETE"
    assert world.cloud.objects == {}
    assert "b" not in [event.resource_name for event in events_of(world, stack)]


def test_a_stack_without_resources_ends_at_once_with_no_conductor(world: World) -> None:
    for host in list(world.conductors):
        world.kill(host)
    stack = world.create("s", template_of())
    assert world.stack(stack.id).status == Status.COMPLETE


def test_values_of_one_resource_reach_those_that_refer_to_it(world: World) -> None:
    document = template_of(
        a={"value": "first"},
        b={"value": {"list_join": ["-", [{"get_attr": ["a", "value"]}, {"get_attr": ["a", "address"]}]]}},
    )
    stack = world.create("s", document)
    assert world.settle(lambda: ended(world, stack), within=10)
    rows = rows_of(world, stack)
    assert rows["b"].attributes is not None
    assert rows["b"].attributes["value"] == f"first-at-{rows['a'].physical_id}"


def test_a_secret_is_nowhere_in_the_database(world: World, tmp_path: pathlib.Path) -> None:
    word = "correct-horse-battery"
    document = {
        "heat_template_version": "2018-08-31",
        "parameters": {"word": {"type": "string", "hidden": True}},
        "resources": {
            "kept": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "word"}}},
            "random": {"type": "OS::Heat::RandomString", "properties": {"length": 32}},
            "joined": {
                "type": "Sim::Server",
                "properties": {"value": {"list_join": ["+", [{"get_attr": ["random", "value"]}, "x"]]}},
            },
        },
        "outputs": {"word": {"value": {"get_attr": ["kept", "value"]}}},
    }
    stack = world.create("s", document, parameters={"word": word})
    assert world.settle(lambda: ended(world, stack), within=10)
    assert world.stack(stack.id).status == Status.COMPLETE, world.stack(stack.id).reason
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("sim.sqlite*"))
    assert word.encode() not in stored
    random = rows_of(world, stack)["random"]
    assert random.attributes is not None
    opened = world.context.sealer_of(stack).open(random.attributes["value"]["args"][0])
    assert len(opened) == 32
    assert opened.encode() not in stored


def test_an_error_that_tells_a_secret_is_shown_without_it(world: World) -> None:
    document = {
        "heat_template_version": "2018-08-31",
        "parameters": {"word": {"type": "string", "hidden": True}},
        "resources": {
            "bad": {
                "type": "Sim::Server",
                "properties": {"value": {"get_param": "word"}, "fail_with_value": True},
            }
        },
    }
    stack = world.create("s", document, parameters={"word": "correct-horse-battery"})
    assert world.settle(lambda: ended(world, stack), within=10)
    assert world.stack(stack.id).reason.endswith("resources.bad: cannot use ******")
    assert "correct-horse" not in str(events_of(world, stack))


def test_a_conductor_that_was_silent_for_a_moment_still_claims_what_hints_name(
    tmp_path: pathlib.Path,
) -> None:
    """Otherwise each lapse costs the time until the hint is repeated, which grows up to a minute."""
    world = World(tmp_path, hosts=1)
    world.conductors["host0"].run_once()
    stack = world.create("s", template_of(a={}))
    world.deliver(0, "host0")
    world.group.pop("host0")
    world.look_all()
    world.conductors["host0"].run_once()
    assert len(world.conductors["host0"].steps) == 1
    assert world.settle(lambda: ended(world, stack), within=20)
