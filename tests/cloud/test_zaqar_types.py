"""Types of the messaging service on a real Zaqar."""

import dataclasses
import json
import pathlib
import typing
import urllib.parse
import uuid
from collections.abc import Iterator

import pytest
import requests
from cloud import type_templates
from harness.cloud.access import Cloud
from harness.cloud.maker import Maker
from harness.cloud.project import Project
from harness.cloud.stacks import WITHIN, Stacks
from harness.cloud.stoker import stoker_on
from harness.waiting import wait_for
from harness.zaqar import TYPE, Zaqar
from stoker.resources.contract.errors import PermanentError
from stoker.resources.contract.steps import Poll
from stoker.resources.openstack.service import Conflict, service_of

Json = typing.Any
QUEUE = "OS::Zaqar::Queue"
SUBSCRIPTION = "OS::Zaqar::Subscription"


@pytest.fixture(scope="module")
def zaqar(cloud: Cloud) -> Iterator[Zaqar]:
    with Zaqar(cloud) as server, cloud.registered(TYPE, server.url):
        yield server


@pytest.fixture
def messages(zaqar: Zaqar, project: Project) -> Zaqar:
    """Zaqar, which the project's tokens know."""
    project.connection.session.invalidate()
    return zaqar


def get(zaqar: Zaqar, project: Project, path: str, **headers: str) -> requests.Response:
    all_headers = {"X-Auth-Token": project.token, "Client-ID": str(uuid.uuid4()), **headers}
    return requests.get(f"{zaqar.url}/v2{path}", headers=all_headers, timeout=120)


def names(zaqar: Zaqar, project: Project) -> list[str]:
    return [each["name"] for each in get(zaqar, project, "/queues").json()["queues"]]


def test_a_queue(messages: Zaqar, make: Maker, project: Project) -> None:
    queue = make(QUEUE, name="orders", metadata={"colour": "blue", "old": 1})
    assert names(messages, project) == ["orders"]
    assert queue.attribute("href") == f"{messages.url}/v2/queues/orders"
    assert queue.update(metadata={"colour": "red", "new": [1]}) == "updated"
    metadata = get(messages, project, "/queues/orders").json()
    assert {name: metadata.get(name) for name in ("colour", "new", "old")} == {
        "colour": "red",
        "new": [1],
        "old": None,
    }
    live = queue.plugin.live_properties(queue.target, queue.context)
    assert live == {"metadata": {"colour": "red", "new": [1]}}
    lost = dataclasses.replace(queue.target, physical_id=None, key=queue.target.creation_key, attempt=2)
    assert queue.plugin.find_created(lost.key, lost, queue.context) == "orders"
    assert queue.plugin.find_created(str(uuid.uuid4()), lost, queue.context) is None
    with pytest.raises(Conflict, match="another queue has the name orders"):
        make(QUEUE, name="orders")
    queue.delete()
    queue.delete()
    assert names(messages, project) == []


def test_a_subscription(messages: Zaqar, make: Maker, project: Project) -> None:
    queue = make(QUEUE)
    properties = {"queue_name": queue.id, "subscriber": "http://a.test/b", "ttl": 3600}
    subscription = make(SUBSCRIPTION, **properties, options={"from": "x"})
    path = f"/queues/{queue.id}/subscriptions"

    def listed() -> Json:
        return [
            (each["subscriber"], each["ttl"]) for each in get(messages, project, path).json()["subscriptions"]
        ]

    assert listed() == [("http://a.test/b", 3600)]
    with pytest.raises(Conflict, match="has a subscription of this subscriber"):
        make(SUBSCRIPTION, **properties)
    assert subscription.update(subscriber="http://a.test/c", ttl=7200) == "updated"
    assert listed() == [("http://a.test/c", 7200)]
    subscription.act("check")
    subscription.delete()
    subscription.delete()
    assert listed() == []
    with pytest.raises(PermanentError, match="message 404"):
        subscription.act("check")
    queue.delete()


@pytest.mark.usefixtures("workflows")
def test_messages_begin_a_workflow(messages: Zaqar, make: Maker, project: Project) -> None:
    """Zaqar makes a trust, and keeps the request that begins an execution."""
    queue = make(QUEUE)
    workflow = make("OS::Mistral::Workflow", type="direct", tasks=[{"name": "rest", "action": "std.noop"}])
    trigger = make("OS::Zaqar::MistralTrigger", queue_name=queue.id, workflow_id=workflow.id)

    def view() -> Json:
        [subscription] = get(messages, project, f"/queues/{queue.id}/subscriptions").json()["subscriptions"]
        return subscription

    assert view()["subscriber"] == f"trust+{service_of(make.context, 'workflow').address()}/executions"
    assert view()["options"]["trust_id"]
    request = json.loads(view()["options"]["post_data"])
    assert request["workflow_id"] == workflow.id
    assert request["params"] == {"env": {"notification": "$zaqar_message$"}}
    assert trigger.update(input={"x": 1}) == "updated"
    assert json.loads(view()["options"]["post_data"])["input"] == {"x": 1}
    trigger.act("check")
    for driven in (trigger, workflow, queue):
        driven.delete()


def test_a_lost_subscription_is_found_again(messages: Zaqar, make: Maker) -> None:
    driven = make.new(SUBSCRIPTION, queue_name="q", subscriber="http://a.test/b")
    step = driven.plugin.handle_create(driven.target, driven.context)
    assert isinstance(step, Poll)
    driven.take(step)
    created = driven.plugin.check_create_complete(driven.target, step.progress, driven.context)
    assert driven.plugin.find_created(driven.target.key, driven.target, driven.context) == created.physical_id
    driven.target = dataclasses.replace(driven.target, attempt=2)
    again = driven.plugin.check_create_complete(driven.target, step.progress, driven.context)
    assert again.physical_id == created.physical_id
    driven.take(again)
    driven.delete()


def test_a_signed_address(messages: Zaqar, make: Maker, project: Project) -> None:
    queue = make(QUEUE)
    signed = make("OS::Zaqar::SignedQueueURL", queue=queue.id, ttl=600, methods=["GET", "POST"])
    query = dict(urllib.parse.parse_qsl(signed.attribute("query_str")))
    assert (query["project_id"], query["queue_name"], query["methods"]) == (project.id, queue.id, "GET,POST")
    headers = {
        "URL-Signature": query["signature"],
        "URL-Expires": query["expires"],
        "URL-Methods": query["methods"],
        "URL-Paths": query["paths"],
        "X-Project-ID": query["project_id"],
        "Client-ID": str(uuid.uuid4()),
    }
    path = f"{messages.url}/v2/queues/{queue.id}"
    assert requests.get(f"{path}/messages", headers=headers, timeout=120).status_code == 200
    assert requests.get(f"{path}/subscriptions", headers=headers, timeout=120).status_code != 200
    signed.delete()
    queue.delete()


@pytest.mark.usefixtures("messages", "alarms")
def test_an_alarm_writes_to_a_queue_where_trusts_may_make_others(
    cloud: Cloud, project: Project, tmp_path: pathlib.Path
) -> None:
    """Aodh makes a trust with the token of the stack's."""
    alarm = {"type": "OS::Aodh::EventAlarm", "properties": {"alarm_queues": [{"get_resource": "queue"}]}}
    resources = {"queue": {"type": QUEUE}, "alarm": alarm}
    connection = project.connection

    def trusts() -> set[str]:
        return {trust.id for trust in connection.identity.trusts(trustor_user_id=project.user_id)}

    earlier = trusts()  # Those of other stacks of this user may be revoked yet.

    with stoker_on(cloud, tmp_path, "[stacks]\nallow_trusts_redelegation = true\n") as service:
        template = {"heat_template_version": "2018-08-31", "resources": resources}
        stack = Stacks(service, project).create("queues", template)
        view = connection.alarm.get(f"/alarms/{stack.physical_id('alarm')}").json()
        query = urllib.parse.urlencode({"queue_name": stack.physical_id("queue")})
        assert view["alarm_actions"] == [f"trust+zaqar:?{query}"]
        new = trusts() - earlier
        assert len(new) == 2
        stack.delete()
        wait_for(lambda: not trusts() & new, WITHIN)  # The stack's own is revoked after its end.


@pytest.mark.usefixtures("messages")
def test_the_template_of_the_examples_of_types(stacks: Stacks) -> None:
    type_templates.live(stacks, "messages")
