"""Events go to queues of a real Zaqar, whatever dies meanwhile."""

import pathlib
import typing
from collections.abc import Iterator

import pytest
from cloud import chaos
from harness.cloud.access import Cloud
from harness.cloud.project import Project
from harness.cloud.stacks import Stack, Stacks
from harness.deployment import Servers
from harness.etcd import Etcd
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ
from harness.waiting import wait_for
from harness.zaqar import TYPE, Zaqar

Json = typing.Any
HOSTS = ("one", "two", "three")
WITHIN = 180.0
KILLS = 3
"""How often conductors are killed at least."""


@pytest.fixture(scope="module")
def zaqar(cloud: Cloud) -> Iterator[Zaqar]:
    with Zaqar(cloud) as server, cloud.registered(TYPE, server.url):
        yield server


def template(count: int, **properties: Json) -> Json:
    resources = {f"r{i}": {"type": "OS::Heat::TestResource", "properties": properties} for i in range(count)}
    return {"heat_template_version": "2018-08-31", "resources": resources}


def sinks(queue: str, **more: Json) -> Json:
    return {"event_sinks": [{"type": "zaqar-queue", "target": queue, **more}]}


def recorded(stack: Stack) -> list[str]:
    """The ids of the events of a tree, as they were recorded."""
    events = stack.get("/events?nested_depth=5&sort_keys=event_time&sort_dir=asc")["events"]
    return [event["id"] for event in events]


def wait_for_all(zaqar: Zaqar, stack: Stack, queue: str) -> list[Json]:
    """Wait until a queue has all events of a stack; its messages."""
    project = stack.stacks.project

    def missing() -> set[str]:
        return set(recorded(stack)) - {message["id"] for message in zaqar.messages(project, queue)}

    wait_for(lambda: not missing(), WITHIN, lambda: f"{missing()} of {recorded(stack)}", pause=0.5)
    return zaqar.messages(project, queue)


def test_a_queue_gets_the_events_of_a_tree_as_heat_sends_them(
    zaqar: Zaqar, stacks: Stacks, project: Project
) -> None:
    outer = {
        "heat_template_version": "2018-08-31",
        "resources": {"group": {"type": "inner.yaml"}, "own": {"type": "OS::Heat::TestResource"}},
    }
    files = {"inner.yaml": str(template(1))}
    environment = sinks("watched", ttl=600)
    stack = stacks.create("s", outer, files=files, environment=environment)
    messages = wait_for_all(zaqar, stack, "watched")
    by_id = {message["id"]: message for message in messages}
    assert len(by_id) == len(messages)
    for event in stack.get("/events?nested_depth=5")["events"]:
        message = by_id[event["id"]]
        assert (message["type"], message["version"]) == ("os.heat.event", "0.1")
        assert message["timestamp"] == event["event_time"].rstrip("Z")
        payload = message["payload"]
        assert payload["resource_name"] == event["resource_name"]
        assert f"{payload['resource_action']}_{payload['resource_status']}" == event["resource_status"]
        assert payload["resource_status_reason"] == event["resource_status_reason"]
        assert payload["physical_resource_id"] == event["physical_resource_id"]
        assert payload["resource_properties"] == {}
    types = {message["payload"]["resource_type"] for message in messages}
    assert types == {"OS::Heat::Stack", "OS::Heat::TestResource", "inner.yaml"}
    assert len({message["payload"]["stack_id"] for message in messages}) == 2

    stack.start_delete()
    stack.wait_deleted()

    def last() -> Json:
        return zaqar.messages(project, "watched")[-1]["payload"]

    end = ("s", "DELETE", "COMPLETE")
    wait_for(
        lambda: (last()["resource_name"], last()["resource_action"], last()["resource_status"]) == end,
        WITHIN,
        lambda: str(last()),
        pause=0.5,
    )


def test_what_happens_while_zaqar_is_down_arrives_later(zaqar: Zaqar, stacks: Stacks) -> None:
    stack = stacks.create("s", template(2), environment=sinks("patient"))
    wait_for_all(zaqar, stack, "patient")
    zaqar.stop()
    stack.update(template(3), environment=sinks("patient"))
    zaqar.start()
    messages = wait_for_all(zaqar, stack, "patient")
    assert [message["id"] for message in messages] == recorded(stack)


def test_a_wrong_sink_is_refused_by_its_name(stacks: Stacks) -> None:
    body = {"stack_name": "s", "template": template(1), "environment": sinks("a queue")}
    answer = stacks.call("POST", "/stacks", body)
    assert answer.status == 400
    assert "environment.event_sinks.0.target" in answer.error["message"]


@pytest.mark.timeout(0)  # Each of its waits has a limit of its own.
def test_no_event_is_lost_with_conductors_that_are_killed(
    tmp_path: pathlib.Path,
    rabbitmq: RabbitMQ,
    postgresql: PostgreSQL,
    etcd: Etcd,
    zaqar: Zaqar,
    cloud: Cloud,
    project: Project,
) -> None:
    options = f"{cloud.stoker_options()}[stacks]\ntask_losses = 1000\n"
    with chaos.daemons(tmp_path, Servers(rabbitmq, postgresql, etcd), options, HOSTS) as deployment:
        killer = chaos.Killer(deployment, seed=3, pause=2.0, down=0.5)
        daemon_stacks = Stacks(chaos.DaemonsApi(deployment), project)
        stacks_created: list[Stack] = []
        with killer.at_work():
            for number in range(4 * KILLS):
                slow = template(8, action_wait_secs={"create": number % 4 + 1})
                stacks_created.append(
                    daemon_stacks.start(f"s{number}", slow, environment=sinks(f"q{number}"))
                )
                if number % 4 == 3:  # One more death for each four; in peace all of them come to their end.
                    wait_for(lambda: killer.kills > number // 4, WITHIN)  # noqa: B023
        for number, stack in enumerate(stacks_created):
            stack.wait("CREATE_COMPLETE")
            assert len(recorded(stack)) >= 18
            wait_for_all(zaqar, stack, f"q{number}")
