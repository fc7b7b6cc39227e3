"""Events of stacks go to their event sinks: each at least once, whatever fails, and nothing without sinks."""

import logging
import pathlib
import typing
from collections.abc import Sequence

import pytest
import sqlalchemy as sa
from simulation.nested import INNER, child, hot, inner, server
from simulation.world import SimConductor, World
from stoker.conductor.duties.event_delivery import FIRST_PAUSE, LONGEST_PAUSE, TOGETHER
from stoker.conductor.event_queues import RequestRefused, SendFailed
from stoker.db import credentials, events
from stoker.db.event_sinks import LINGER, SinkRow
from stoker.db.events import EventQuery
from stoker.db.rows import Stack
from stoker.db.schema import tables
from stoker.engine.signals import send_signal, set_health
from stoker.engine.stacks import delete_stack

Json = typing.Any


def sink(target: str = "q", **more: Json) -> Json:
    return {"type": "zaqar-queue", "target": target, **more}


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    world = World(tmp_path, hosts=2)
    world.sinks = [sink()]
    return world


def flat(count: int, **properties: Json) -> Json:
    return hot({f"r{i}": server(**properties) for i in range(count)})


def recorded(world: World, stack: Stack) -> list[str]:
    query = EventQuery(stack.id, nested_depth=-1)
    return [event.uuid for event, _ in world.database.read(lambda conn: events.list_events(conn, query))]


def received(world: World, queue: str = "q") -> list[str]:
    return [message["id"] for message in world.queues.get(queue, [])]


def count(world: World, table: sa.Table) -> int:
    query = sa.select(sa.func.count()).select_from(table)
    return int(world.database.read(lambda conn: conn.execute(query).scalar_one()))


def serve(world: World, seconds: float = 1.0) -> None:
    """Everything that can be done is done, and then each conductor reads once what is to be sent."""
    world.calm()
    world.pass_time(seconds)
    world.look_all()
    for conductor in world.awake():
        conductor.run_duty("EventDelivery")


def test_all_events_of_a_tree_arrive_in_their_order_and_in_heats_form(world: World) -> None:
    stack = world.create("s", hot({"n": child(), "r": server()}), files={INNER: inner()})
    world.settle(lambda: world.stack(stack.id).status == "COMPLETE", within=60)
    serve(world)
    assert len(received(world)) > 6
    assert received(world) == recorded(world, stack)
    query = EventQuery(stack.id, resource_name="r")
    entries = [event for event, _ in world.database.read(lambda conn: events.list_events(conn, query))]
    messages = {message["id"]: message for message in world.queues["q"]}
    assert messages[entries[-1].uuid] == {
        "timestamp": messages[entries[-1].uuid]["timestamp"],
        "version": "0.1",
        "type": "os.heat.event",
        "id": entries[-1].uuid,
        "payload": {
            "resource_name": "r",
            "physical_resource_id": entries[-1].physical_id,
            "stack_id": stack.id,
            "resource_action": "CREATE",
            "resource_status": "COMPLETE",
            "resource_status_reason": "state changed",
            "resource_type": "Sim::Server",
            "resource_properties": {},
            "version": "0.1",
        },
    }
    assert count(world, tables.event_delivery) == 0


def test_only_the_owner_of_the_root_sends_and_each_event_once(world: World) -> None:
    by: list[str] = []
    for conductor in world.awake():
        context = conductor.duty_context()
        conductor.duties["EventDelivery"]._context = context  # type: ignore[attr-defined]
    world.post = lambda sink, messages: by.append(world.acting.host if world.acting else "nobody")
    stack = world.create("s", flat(3))
    for _ in range(5):
        serve(world)
    [owner] = [c.host for c in world.awake() if c.ring.owns(stack.shard)]
    assert set(by) == {owner}


def test_a_sink_that_fails_is_retried_with_growing_pauses_and_delays_no_other(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    tried: list[float] = []
    away = True

    def post(sink: SinkRow, messages: Sequence[Json]) -> None:
        if sink.target == "bad":
            tried.append(world.clock.now)
            if away:
                raise SendFailed("messaging 503: out of order")
        world.queues.setdefault(sink.target, []).extend(messages)

    world.post = post
    world.sinks = [sink("bad"), sink("good")]
    stack = world.create("s", flat(2))
    with caplog.at_level(logging.INFO, "stoker.conductor.duties.event_delivery"):
        for _ in range(1500):
            serve(world)
        assert world.stack(stack.id).status == "COMPLETE"
        assert received(world, "good") == recorded(world, stack)
        pauses = [later - before for before, later in zip(tried, tried[1:], strict=False)]
        assert all(FIRST_PAUSE <= pause <= LONGEST_PAUSE + 3 for pause in pauses)
        assert pauses[-1] > 8 * pauses[0]
        away = False
        for _ in range(310):
            serve(world)
    assert received(world, "bad") == recorded(world, stack)
    words = [f"Sending events of stack {stack.id} to queue bad failed, retrying: messaging 503: out of order"]
    words += [f"Queue bad gets the events of stack {stack.id} again"]
    records = [record for record in caplog.records if record.name == "stoker.conductor.duties.event_delivery"]
    assert [record.getMessage() for record in records] == words


def test_events_older_than_their_time_to_live_are_skipped_and_said(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.unsent = 1.0
    world.sinks = [sink(ttl=60)]
    stack = world.create("s", flat(1))
    serve(world)
    old = recorded(world, stack)
    world.queues.clear()
    world.pass_time(61)
    world.look_all()
    world.unsent = 0.0
    world.update(stack, flat(2))
    serve(world, 15.0)
    assert set(received(world)) == set(recorded(world, stack)) - set(old) != set()
    assert (
        f"{len(old)} events of stack {stack.id} are older than 60 s, and are not sent to queue q"
        in caplog.text
    )


def test_a_request_that_is_too_large_is_divided_and_one_message_alone_stops_no_other(world: World) -> None:
    bad: set[str] = set()

    def post(sink: SinkRow, messages: Sequence[Json]) -> None:
        if len(messages) > 4 or any(message["id"] in bad for message in messages):
            raise RequestRefused("messaging 400: too large")
        world.queues.setdefault(sink.target, []).extend(messages)

    world.post = post
    stack = world.create("s", flat(TOGETHER))
    world.calm()
    bad.add(recorded(world, stack)[1])
    serve(world)
    for _ in range(4):
        serve(world, 3.0)
    assert set(recorded(world, stack)) - set(received(world)) == bad
    bad.clear()
    serve(world, 10.0)
    assert sorted(recorded(world, stack)) == sorted(received(world))


def test_an_update_changes_the_sinks_and_what_was_recorded_before_still_arrives(world: World) -> None:
    stack = world.create("s", hot({"n": child()}), files={INNER: inner()})
    world.settle(lambda: world.stack(stack.id).status == "COMPLETE", within=60)
    before = recorded(world, stack)
    world.queues.clear()
    world.sinks = [sink("new"), sink("new")]
    world.update(stack, hot({"n": child(), "r": server()}), files={INNER: inner()})
    serve(world)
    assert received(world, "new") == recorded(world, stack)[len(before) :]
    world.sinks = []
    world.update(stack, hot({"n": child()}), files={INNER: inner()})
    after = recorded(world, stack)
    serve(world)
    assert len(recorded(world, stack)) > len(after) - 1
    assert len(received(world, "new")) < len(recorded(world, stack)) - len(before)
    serve(world, LINGER)
    assert (count(world, tables.event_sink), count(world, tables.event_delivery)) == (0, 0)


def test_the_last_message_is_that_of_the_deletion_and_the_credential_waits_for_it(world: World) -> None:
    stack = world.create("s", flat(1))
    serve(world)
    world.database.write(lambda conn: credentials.put(conn, stack.id, {}, world.clock.now))
    world.unsent = 1.0
    delete_stack(world.context, world.stack(stack.id))
    serve(world)
    serve(world, LINGER)

    def unused() -> int:
        now = world.clock.now
        return len(world.database.read(lambda conn: credentials.unused(conn, now, limit=9)))

    assert (world.stack(stack.id).status, unused()) == ("COMPLETE", 0)
    world.unsent = 0.0
    serve(world, LONGEST_PAUSE)
    last = world.queues["q"][-1]["payload"]
    assert (last["resource_name"], last["resource_action"], last["resource_status"]) == (
        "s",
        "DELETE",
        "COMPLETE",
    )
    serve(world, LINGER)
    assert (count(world, tables.event_sink), unused()) == (0, 1)


def test_a_signal_and_an_action_without_resources_are_sent_too(world: World) -> None:
    template = hot({"w": {"type": "OS::Heat::WaitConditionHandle"}})
    stack = world.create("s", template)
    serve(world)
    before = len(received(world))
    send_signal(world.context, world.stack(stack.id), "w", {"status": "SUCCESS", "id": "1"})
    set_health(world.context, world.stack(stack.id), "w", unhealthy=True, reason="broken")
    serve(world)
    actions = [message["payload"]["resource_action"] for message in world.queues["q"][before:]]
    assert actions == ["SIGNAL", "CHECK"]


def test_a_breakpoint_is_sent_too(world: World) -> None:
    entries = {"resources": {"r0": {"hooks": "pre-create"}}}
    stack = world.create("s", flat(1), environment={"resource_registry": entries})
    serve(world)
    assert received(world) == recorded(world, stack)
    assert "Hook pre-create" in world.queues["q"][-1]["payload"]["resource_status_reason"]


def rolled_back(world: World, stack: Stack) -> bool:
    now = world.stack(stack.id)
    return (now.action, now.status) == ("ROLLBACK", "COMPLETE")


def test_a_rollback_of_a_creation_is_watched_to_its_end(world: World) -> None:
    stack = world.create("s", flat(1, fail=True), disable_rollback=False)
    world.settle(lambda: rolled_back(world, stack), within=120)
    for _ in range(3):
        serve(world)
    assert received(world) == recorded(world, stack)
    assert rolled_back(world, stack)


def test_stacks_without_sinks_cost_no_statement(tmp_path: pathlib.Path) -> None:
    """The statements of a stack's life, and of a round of the duty."""
    world = World(tmp_path, hosts=1)
    statements: list[str] = []
    sa.event.listen(
        world.database.engine, "before_cursor_execute", lambda *args: statements.append(str(args[2]))
    )
    stack = world.create("s", hot({"n": child(), "r": server()}), files={INNER: inner()})
    world.settle(lambda: world.stack(stack.id).status == "COMPLETE", within=60)
    world.update(stack, flat(2))
    world.calm()
    delete_stack(world.context, world.stack(stack.id))
    world.calm()
    assert world.stack(stack.id).status == "COMPLETE"
    touched = [text for text in statements if "event_sink" in text or "event_delivery" in text]
    of_duties = ("SELECT event_delivery.sink_id", "SELECT credential.root_id")
    assert all(text.startswith(of_duties) for text in touched), touched
    statements.clear()
    [conductor] = world.awake()
    run_once(conductor)
    assert len([text for text in statements if text.startswith("SELECT")]) == 1


def run_once(conductor: SimConductor) -> None:
    conductor.run_duty("EventDelivery")
