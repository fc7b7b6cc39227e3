"""Notifications, as a consumer on a real broker sees them."""

import json
import pathlib
import threading
import typing
from collections.abc import Iterator

import pytest
from harness.listening import Heard, listening
from harness.rabbitmq import RabbitMQ
from harness.waiting import wait_for
from oslo_config import cfg
from oslo_db.exception import DBDeadlock
from simulation.helpers import ended, hooks, on, rest, template
from simulation.world import World
from sqlalchemy.engine import Connection
from stoker.cli.config import options
from stoker.cli.config.errors import WrongConfiguration
from stoker.cli.wiring.messaging import make_notifier
from stoker.db import notifications
from stoker.db.rows import Stack
from stoker.engine.breakpoints import continue_held
from stoker.engine.stacks import delete_stack
from stoker.engine.updates import cancel_action
from stoker.rpc.notifier import Notifier

Json = typing.Any
SECRET = "correct horse battery staple"


def configuration(folder: pathlib.Path, text: str) -> cfg.ConfigOpts:
    path = folder / "stoker.conf"
    path.write_text(text)
    cfg.CONF.reset()
    return options.load([], program="test", files=[path])


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    """oslo.messaging knows the process-wide configuration only."""
    yield
    cfg.CONF.reset()


@pytest.fixture
def conf(tmp_path: pathlib.Path, rabbitmq: RabbitMQ) -> cfg.ConfigOpts:
    url = rabbitmq.create_vhost()
    return configuration(
        tmp_path,
        f"[DEFAULT]\ntransport_url = {url}\nhost = h1\n"
        "[oslo_messaging_notifications]\ndriver = messagingv2\n",
    )


@pytest.fixture
def heard(conf: cfg.ConfigOpts) -> Iterator[Heard]:
    with listening(conf, conf.transport_url) as listener:
        yield listener


@pytest.fixture
def notifier(conf: cfg.ConfigOpts) -> Iterator[Notifier]:
    notifying = make_notifier(conf)
    assert notifying is not None
    notifying.notifier.start()
    yield notifying.notifier
    notifying.close()


@pytest.fixture
def world(tmp_path: pathlib.Path, notifier: Notifier) -> World:
    return World(tmp_path, hosts=2, listener=notifier.notify)


def events(heard: Heard, count: int) -> list[str]:
    wait_for(lambda: len(heard.all) >= count, 60, lambda: str(heard.all))
    return [event.removeprefix("orchestration.") for _, _, event, _ in heard.all]


def settled(world: World, stack: Stack) -> Stack:
    assert world.settle(lambda: ended(world, stack), within=60)
    return world.stack(stack.id)


def test_a_listener_hears_of_each_start_hold_clear_and_end_once(world: World, heard: Heard) -> None:
    environment = hooks(b="pre-create", c="post-create")
    stack = world.create(
        "s", template(a={}, b={"needs": on("a")}, c={}), environment=environment, tags=["x", "y"]
    )
    rest(world)
    continue_held(world.context, world.stack(stack.id))
    settled(world, stack)
    delete_stack(world.context, world.stack(stack.id))
    settled(world, stack)
    types = events(heard, 8)
    assert types[0] == "stack.create.start"
    assert sorted(types[1:5]) == ["breakpoint.cleared"] * 2 + ["breakpoint.reached"] * 2
    assert types[5:] == ["stack.create.end", "stack.delete.start", "stack.delete.end"]
    assert {(level, publisher) for level, publisher, _, _ in heard.all} == {("info", "orchestration.h1")}
    payloads = [payload for _, _, _, payload in heard.all]
    assert payloads[0] == {
        "tenant_id": stack.project_id,
        "user_id": stack.owner,
        "user_identity": None,
        "username": stack.owner,
        "stack_identity": stack.id,
        "stack_name": "s",
        "state": "CREATE_IN_PROGRESS",
        "state_reason": "Stack CREATE started",
        "create_at": "1970-01-12T13:46:40Z",
        "updated_at": None,
        "description": "No description",
        "tags": ["x", "y"],
    }
    assert (payloads[5]["state"], payloads[5]["state_reason"]) == (
        "CREATE_COMPLETE",
        "Stack CREATE completed successfully",
    )
    [held] = [p for p in heard.of("orchestration.breakpoint.reached") if p["resource_name"] == "b"]
    assert held["state_reason"] == "CREATE paused until Hook pre-create is cleared"
    assert (held["hook"], held["resource_type"], held["root_id"]) == ("pre-create", "Sim::Server", stack.id)
    names = [p["resource_name"] for p in heard.of("orchestration.breakpoint.cleared")]
    assert sorted(names) == ["b", "c"]


def test_failures_cancels_and_timeouts_are_errors(world: World, heard: Heard) -> None:
    settled(world, world.create("bad", template(a={"fail": True})))
    stuck = world.create("stuck", template(a={"looks": 1000, "after": 100}))
    world.calm()
    cancel_action(world.context, world.stack(stuck.id), rollback=False)
    late = world.create("late", template(a={"looks": 1000, "after": 100}), timeout_mins=1)
    assert world.settle(lambda: ended(world, late), within=90)
    events(heard, 6)
    errors = [(e, p["stack_name"]) for level, _, e, p in heard.all if level == "error"]
    assert errors == [("orchestration.stack.create.error", name) for name in ("bad", "stuck", "late")]


def test_no_secret_is_in_a_notification(world: World, heard: Heard) -> None:
    secret = {"p": {"type": "string", "hidden": True}}
    source = {
        **template(a={"value": {"get_param": "p"}}, b={"fail": True}),
        "parameters": secret,
        "outputs": {"o": {"value": {"get_param": "p"}}},
    }
    stack = world.create("s", source, parameters={"p": SECRET}, environment=hooks(a="post-create"))
    settled(world, stack)
    events(heard, 2)
    assert any(stored.value == SECRET for stored in world.cloud.objects.values()), "it was used"
    text = json.dumps(heard.all)
    assert SECRET not in text
    assert "$fn" not in text, "nor sealed"


def test_what_did_not_happen_is_not_reported(world: World, heard: Heard) -> None:
    def begin_and_break(conn: Connection) -> None:
        broken.append(conn)
        notifications.about_stacks(conn, [stack.id])
        raise (DBDeadlock() if len(broken) < 3 else KeyError("a bug"))

    broken: list[Connection] = []
    stack = world.create("s", template(a={}))
    with pytest.raises(KeyError):
        world.database.write(begin_and_break)
    assert len(broken) == 3
    settled(world, stack)
    assert events(heard, 2) == ["stack.create.start", "stack.create.end"]


def test_a_broker_that_takes_nothing_delays_nothing(tmp_path: pathlib.Path) -> None:
    stuck = threading.Event()
    began = threading.Event()

    class Slow:
        def info(self, context: Json, event: str, payload: Json) -> None:
            began.set()
            stuck.wait(600)

    notifier = Notifier(Slow())
    notifier.start()
    world = World(tmp_path, hosts=1, listener=notifier.notify)
    assert settled(world, world.create("s", template(a={}))).status == "COMPLETE"
    assert began.wait(120)
    assert not stuck.is_set()
    stuck.set()
    notifier.stop()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "transport_url = local:\n[oslo_messaging_notifications]\ndriver = messagingv2",
            "oslo_messaging_notifications. transport_url: driver messagingv2 needs a broker",
        ),
        (
            "transport_url = local:\n[oslo_messaging_notifications]\ndriver = carrier-pigeon",
            "oslo_messaging_notifications. driver: unknown: carrier-pigeon; known: .*messagingv2",
        ),
    ],
)
def test_a_wrong_configuration_names_the_option(tmp_path: pathlib.Path, text: str, message: str) -> None:
    with pytest.raises(WrongConfiguration, match=message):
        make_notifier(configuration(tmp_path, f"[DEFAULT]\n{text}\n"))


def test_without_a_driver_there_is_none_and_a_log_needs_no_broker(tmp_path: pathlib.Path) -> None:
    assert make_notifier(configuration(tmp_path, "[DEFAULT]\ntransport_url = local:\n")) is None
    logged = "[DEFAULT]\ntransport_url = local:\n[oslo_messaging_notifications]\ndriver = log\n"
    notifying = make_notifier(configuration(tmp_path, logged))
    assert notifying is not None
    notifying.transport.cleanup()
