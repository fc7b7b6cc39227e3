"""Subscriptions on scripted answers: rules, and executions of workflows."""

import json
import types

import pytest
from harness.fake_context import run, target_of
from harness.resource_types import types_of
from harness.scripted_context import ScriptedContext
from harness.scripted_service import Answer, ScriptedService
from stoker.resources.contract.errors import PropertyError
from stoker.resources.contract.properties import resolve_properties

RESOURCE_TYPES = types_of("openstack.zaqar")

SUBSCRIPTION = RESOURCE_TYPES["OS::Zaqar::Subscription"]()
TRIGGER = RESOURCE_TYPES["OS::Zaqar::MistralTrigger"]()


def test_a_subscriber_has_a_scheme_that_the_service_knows() -> None:
    properties = resolve_properties(
        SUBSCRIPTION.properties_schema, {"queue_name": "q", "subscriber": "ftp://a"}
    )
    with pytest.raises(PropertyError, match="must be one of: http, https, mailto"):
        SUBSCRIPTION.validate(properties)


def test_a_message_begins_a_workflow(
    scripted: ScriptedService, context: ScriptedContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = types.SimpleNamespace(get_project_id=lambda: "p")
    monkeypatch.setattr(context, "session", lambda: session)
    scripted.answers["GET /queues/q/subscriptions"] = Answer(200, {"subscriptions": []})
    scripted.answers["POST /queues/q/subscriptions"] = Answer(201, {"subscription_id": "s"})
    properties = {
        "queue_name": "q",
        "workflow_id": "w",
        "params": {"env": {"a": 1}},
        "input": {"b": 2},
        "ttl": 60,
    }
    target = run(TRIGGER, "create", target_of(TRIGGER, properties), context)
    assert target.physical_id == "s"
    [body] = [each for each in scripted.sent if each]
    assert (body["subscriber"], body["ttl"]) == (f"trust+{scripted.url}/executions", 60)
    assert json.loads(body["options"]["post_data"]) == {
        "workflow_id": "w",
        "params": {"env": {"a": 1, "notification": "$zaqar_message$"}},
        "input": {"b": 2},
    }
