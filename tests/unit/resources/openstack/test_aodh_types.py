"""Alarms on scripted answers of the alarming service."""

import json
import typing

import pytest
from harness.fake_context import run, target_of
from harness.resource_types import types_of
from harness.scripted_context import ScriptedContext
from harness.scripted_service import Answer, ScriptedService
from stoker.resources.contract.plugin import ResourceType

RESOURCE_TYPES = types_of("openstack.aodh")

Json = typing.Any
ALARM = RESOURCE_TYPES["OS::Aodh::GnocchiAggregationByResourcesAlarm"]()
EVENT = RESOURCE_TYPES["OS::Aodh::EventAlarm"]()
COMPOSITE = RESOURCE_TYPES["OS::Aodh::CompositeAlarm"]()
MEMBERS = RESOURCE_TYPES["OS::Aodh::LBMemberHealthAlarm"]()
PROPERTIES = {"metric": "cpu", "query": "{}", "resource_type": "instance", "threshold": 80}
URL = "http://stoker.test/signal?Signature=hush"
USUAL = {
    "enabled": True,
    "repeat_actions": True,
    "severity": "low",
    "time_constraints": [],
    "ok_actions": [],
    "insufficient_data_actions": [],
}


def has_alarm(scripted: ScriptedService, **fields: Json) -> Json:
    alarm = {"alarm_id": "a", "name": "n", "state": "ok", "alarm_actions": [URL], **fields}
    scripted.answers |= {
        "POST /alarms": Answer(201, alarm),
        "GET /alarms/a": Answer(200, alarm),
        "PUT /alarms/a": Answer(200, alarm),
        "DELETE /alarms/a": Answer(204),
    }
    return alarm


def test_an_alarm_has_its_rule_and_its_actions(scripted: ScriptedService, context: ScriptedContext) -> None:
    has_alarm(scripted)
    properties = {**PROPERTIES, "alarm_actions": [URL, ""], "alarm_queues": ["q 1"], "evaluation_periods": 2}
    target = run(ALARM, "create", target_of(ALARM, properties), context)
    [body] = [each for each in scripted.sent if each]
    assert body == {
        **USUAL,
        "name": target.physical_name,
        "type": "gnocchi_aggregation_by_resources_threshold",
        "gnocchi_aggregation_by_resources_threshold_rule": {**PROPERTIES, "evaluation_periods": 2},
        "alarm_actions": [URL, "trust+zaqar://?queue_name=q+1"],
    }
    assert target.physical_id == "a"
    assert "hush" not in str(target.data), "its actions carry signatures"
    run(ALARM, "delete", target, context)
    assert scripted.requests[-1] == "DELETE /alarms/a"


def test_a_change_sends_the_whole_alarm(scripted: ScriptedService, context: ScriptedContext) -> None:
    has_alarm(scripted, project_id="p", enabled=False)
    target = target_of(ALARM, {**PROPERTIES, "threshold": 90}, physical_id="a")
    run(ALARM, "update", target, context, changed=frozenset({"threshold"}))
    [body] = [each for each in scripted.sent if each]
    assert (body["project_id"], body["name"], body["enabled"]) == ("p", "n", True)
    assert body["gnocchi_aggregation_by_resources_threshold_rule"]["threshold"] == 90


def test_a_suspended_alarm_is_not_evaluated(scripted: ScriptedService, context: ScriptedContext) -> None:
    has_alarm(scripted)
    target = target_of(ALARM, PROPERTIES, physical_id="a")
    for action in ("suspend", "resume"):
        run(ALARM, action, target, context)
    run(ALARM, "resume", target_of(ALARM, {**PROPERTIES, "enabled": False}, physical_id="a"), context)
    bodies = [each for each in scripted.sent if each]
    assert [body["enabled"] for body in bodies] == [False, True, False]
    assert {tuple(body["alarm_actions"]) for body in bodies} == {(URL,)}


RULE = "gnocchi_aggregation_by_resources_threshold_rule"


def limited(query: Json) -> str:
    """The query as the service keeps it, within a condition of its own."""
    return json.dumps({"and": [{"=": {"created_by_project_id": "p"}}, query]})


def test_a_suspension_sends_the_query_of_the_template(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    has_alarm(scripted, **{RULE: {**PROPERTIES, "query": limited({})}})
    for action in ("suspend", "resume"):
        run(ALARM, action, target_of(ALARM, PROPERTIES, physical_id="a"), context)
    assert [body[RULE]["query"] for body in scripted.sent if body] == ["{}", "{}"]


@pytest.mark.parametrize(
    ("query", "reported"),
    [
        (limited({"=": {"a": 1}}), '{"=":{"a":1}}'),
        (limited(json.loads(limited({"=": {"a": 1}}))), '{"=":{"a":1}}'),
        ('{"=": {"a": 1}}', '{"=":{"a":1}}'),
        (limited({"=": {"a": 2}}), limited({"=": {"a": 2}})),
        ("{", "{"),
        (None, None),
    ],
    ids=["limited", "limited twice", "as it is", "another", "unreadable", "missing"],
)
def test_a_query_is_compared_without_the_conditions_of_the_service(
    scripted: ScriptedService, context: ScriptedContext, query: str | None, reported: str | None
) -> None:
    has_alarm(scripted, time_constraints=[], **{RULE: {**PROPERTIES, "query": query}})
    target = target_of(ALARM, {**PROPERTIES, "query": '{"=":{"a":1}}'}, physical_id="a")
    assert ALARM.live_properties(target, context)["query"] == reported


def test_times_are_compared_without_what_the_service_fills_in(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    time = {"name": "night", "start": "0 23 * * *", "duration": 60}
    target = target_of(EVENT, {"time_constraints": [time]}, physical_id="a")
    has_alarm(scripted, time_constraints=[{**time, "description": "every night", "timezone": ""}])
    assert EVENT.live_properties(target, context)["time_constraints"] == [time]
    has_alarm(scripted, time_constraints=[time, time])
    assert EVENT.live_properties(target, context)["time_constraints"] == [time, time]


def test_a_lost_creation_is_found_by_the_name(scripted: ScriptedService, context: ScriptedContext) -> None:
    target = target_of(ALARM, PROPERTIES)
    name = target.physical_name
    alarms = [{"alarm_id": "a", "name": name}]
    scripted.answers[f"GET /alarms?q.field=name&q.op=eq&q.value={name}"] = Answer(200, alarms)
    assert ALARM.find_created(target.key, target, context) == "a"
    scripted.answers[f"GET /alarms?q.field=name&q.op=eq&q.value={name}"] = Answer(200, [])
    assert ALARM.find_created(target.key, target, context) is None


POOL = "11111111-2222-4333-8444-555555555555"


@pytest.mark.parametrize(
    ("plugin", "properties", "kind", "rule"),
    [
        (
            EVENT,
            {"event_type": "compute.*", "query": [{"field": "traits.id", "op": "eq", "value": "x"}]},
            "event",
            {
                "event_type": "compute.*",
                "query": [{"field": "traits.id", "type": "string", "op": "eq", "value": "x"}],
            },
        ),
        (
            COMPOSITE,
            {"composite_rule": {"operator": "or", "rules": [{"type": "a"}, {"and": []}]}},
            "composite",
            {"or": [{"type": "a"}, {"and": []}]},
        ),
        (
            MEMBERS,
            {"pool": POOL, "stack": "s", "autoscaling_group_id": "g"},
            "loadbalancer_member_health",
            {"pool_id": POOL, "stack_id": "s", "autoscaling_group_id": "g"},
        ),
    ],
)
def test_rules_of_other_alarms(
    scripted: ScriptedService,
    context: ScriptedContext,
    plugin: ResourceType,
    properties: Json,
    kind: str,
    rule: Json,
) -> None:
    has_alarm(scripted)
    run(plugin, "create", target_of(plugin, properties), context)
    [body] = [each for each in scripted.sent if each]
    assert (body["type"], body[f"{kind}_rule"]) == (kind, rule)
