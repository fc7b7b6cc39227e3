"""Alarms on a real Aodh, and groups that are scaled by what Gnocchi measures."""

import dataclasses
import typing
import uuid
from collections.abc import Mapping

import pytest
from harness.cloud.maker import Maker
from harness.cloud.project import Project
from harness.cloud.stacks import WITHIN, Stack, Stacks
from harness.step_driver import Driven
from harness.telemetry import METRIC, RESOURCE_TYPE, Telemetry
from harness.waiting import wait_for
from stoker.resources.contract.properties import changed, resolve_reported
from stoker.resources.contract.steps import Done

Json = typing.Any
pytestmark = pytest.mark.usefixtures("alarms")
SERVER, OTHER_SERVER = (str(uuid.UUID(int=number)) for number in (1, 2))
NIGHT = {"name": "night", "start": "0 23 * * *", "duration": 3600}
COMMON: Mapping[str, Json] = {
    "description": "too much of it",
    "enabled": True,
    "alarm_actions": ["http://a.test/1"],
    "ok_actions": ["http://a.test/2"],
    "insufficient_data_actions": ["http://a.test/3"],
    "repeat_actions": False,
    "severity": "critical",
}
GNOCCHI: Mapping[str, Json] = {
    "comparison_operator": "gt",
    "threshold": 80,
    "evaluation_periods": 2,
    "aggregation_method": "mean",
    "granularity": 60,
}
OF_ONE = {"metric": METRIC, "resource_id": SERVER, "resource_type": "generic", **GNOCCHI}
QUERY = '{"=": {"id": "x"}}'
PART = {"type": "gnocchi_resources_threshold", **OF_ONE}
CONDITION = {"field": "traits.id", "op": "eq", "value": "x"}


@dataclasses.dataclass(frozen=True)
class AlarmCase:
    """Alarms of a type.

    :ivar kind: the service's name of the type.
    :ivar properties: those of this type alone.
    :ivar rule: the part of the rule that they make.
    :ivar change: properties of an update.
    :ivar changed_rule: the part of the rule that these make.
    """

    kind: str
    properties: Json
    rule: Json
    change: Json
    changed_rule: Json


CASES: Mapping[str, AlarmCase] = {
    "OS::Aodh::GnocchiResourcesAlarm": AlarmCase(
        "gnocchi_resources_threshold", OF_ONE, OF_ONE, {"threshold": 90}, {**OF_ONE, "threshold": 90}
    ),
    "OS::Aodh::GnocchiAggregationByMetricsAlarm": AlarmCase(
        "gnocchi_aggregation_by_metrics_threshold",
        {"metrics": [SERVER], **GNOCCHI},
        {"metrics": [SERVER], **GNOCCHI},
        {"metrics": [SERVER, OTHER_SERVER]},
        {"metrics": [SERVER, OTHER_SERVER], **GNOCCHI},
    ),
    "OS::Aodh::GnocchiAggregationByResourcesAlarm": AlarmCase(
        "gnocchi_aggregation_by_resources_threshold",
        {"metric": METRIC, "query": QUERY, "resource_type": "generic", **GNOCCHI},
        {"metric": METRIC, "resource_type": "generic", **GNOCCHI},
        {"granularity": 300},
        {"metric": METRIC, "resource_type": "generic", **GNOCCHI, "granularity": 300},
    ),
    "OS::Aodh::PrometheusAlarm": AlarmCase(
        "prometheus",
        {"query": "up", "comparison_operator": "lt", "threshold": 1},
        {"query": "up", "comparison_operator": "lt", "threshold": 1},
        {"query": "up == 1"},
        {"query": "up == 1"},
    ),
    "OS::Aodh::EventAlarm": AlarmCase(
        "event",
        {"event_type": "compute.*", "query": [CONDITION]},
        {"event_type": "compute.*", "query": [{**CONDITION, "type": "string"}]},
        {"event_type": "volume.*"},
        {"event_type": "volume.*", "query": [{**CONDITION, "type": "string"}]},
    ),
    "OS::Aodh::LBMemberHealthAlarm": AlarmCase(
        "loadbalancer_member_health",
        {"pool": SERVER, "stack": "s", "autoscaling_group_id": "g"},
        {"pool_id": SERVER, "stack_id": "s", "autoscaling_group_id": "g"},
        {"autoscaling_group_id": "h"},
        {"autoscaling_group_id": "h"},
    ),
    "OS::Aodh::CompositeAlarm": AlarmCase(
        "composite",
        {"composite_rule": {"operator": "or", "rules": [PART, {"and": [PART, PART]}]}},
        {"or": [PART, {"and": [PART, PART]}]},
        {"composite_rule": {"operator": "and", "rules": [PART, PART]}},
        {"and": [PART, PART]},
    ),
}


def alarm_view(project: Project, alarm: str) -> Json:
    """The alarm as its owner sees it."""
    return project.connection.alarm.get(f"/alarms/{alarm}").json()


def changed_properties(alarm: Driven) -> set[str]:
    """The properties that an update with ``converge`` would set again."""
    schema = alarm.plugin.properties_schema
    expected = alarm.target.properties
    live = alarm.plugin.live_properties(alarm.target, alarm.context)
    assert "description" in live or expected["description"] is None
    resolved = resolve_reported(schema, live, expected, ())
    return set(changed(schema, expected, resolved) & live.keys())


def test_alarms_are_as_they_are_declared(subtests: pytest.Subtests, make: Maker, project: Project) -> None:
    for name, case in CASES.items():
        with subtests.test(name):
            check_life(make(name, **case.properties, **COMMON, time_constraints=[NIGHT]), case, project)
    assert project.leftovers() == {}


def check_life(alarm: Driven, case: AlarmCase, project: Project) -> None:
    """Check a new alarm, and its changes, actions and deletion."""
    view = alarm_view(project, alarm.id)
    assert {field: view[field] for field in ("type", *COMMON)} == {"type": case.kind, **COMMON}
    [time] = view["time_constraints"]
    assert time.items() >= NIGHT.items()
    rule = f"{case.kind}_rule"
    assert view[rule].items() >= case.rule.items()

    assert alarm.update(**case.change, severity="low", ok_actions=[]) == "updated"
    view = alarm_view(project, alarm.id)
    assert (view["severity"], view["ok_actions"]) == ("low", [])
    assert view["alarm_actions"] == COMMON["alarm_actions"]
    assert view[rule].items() >= case.changed_rule.items()

    for action, enabled in (("suspend", False), ("check", False), ("resume", True)):
        assert alarm_view(project, alarm.act(action).id)["enabled"] is enabled
    after = alarm_view(project, alarm.id)
    assert after == view | {name: after[name] for name in ("timestamp", "evaluate_timestamp")}
    assert changed_properties(alarm) == set()
    alarm.delete()
    alarm.delete()


def test_a_query_that_somebody_changed_is_reported(make: Maker, project: Project) -> None:
    name = "OS::Aodh::GnocchiAggregationByResourcesAlarm"
    case = CASES[name]
    alarm = make(name, **case.properties)
    view = alarm_view(project, alarm.id)
    view[f"{case.kind}_rule"]["query"] = '{"=": {"id": "y"}}'
    project.connection.alarm.put(f"/alarms/{alarm.id}", json={**view, "severity": "critical"})
    assert changed_properties(alarm) == {"query", "severity"}
    alarm.delete()


def test_an_alarm_with_a_queue_has_one_trust(make: Maker, project: Project) -> None:
    """Aodh writes to the queue in the name of the user, who may have trusts of earlier tests' stacks."""
    earlier = trusts(project)
    alarm = make("OS::Aodh::EventAlarm", alarm_queues=["orders"], alarm_actions=["http://a.test/1"])
    actions = ["http://a.test/1", "trust+zaqar:?queue_name=orders"]
    assert alarm_view(project, alarm.id)["alarm_actions"] == actions
    [trust] = trusts(project) - earlier
    alarm.update(severity="critical")
    alarm.act("suspend").act("resume")
    assert alarm_view(project, alarm.id)["alarm_actions"] == actions
    assert trusts(project) - earlier == {trust}
    alarm.delete()
    assert trusts(project) - earlier == set()


def trusts(project: Project) -> set[str]:
    """Ids of the trusts that the project's user has made."""
    identity = project.connection.identity
    return {trust.id for trust in identity.trusts(trustor_user_id=project.user_id)}


def test_a_lost_creation_is_found_again(make: Maker) -> None:
    alarm = make.new("OS::Aodh::EventAlarm")
    step = alarm.plugin.handle_create(alarm.target, alarm.context)
    assert isinstance(step, Done)
    plugin = alarm.plugin
    assert plugin.find_created(alarm.target.key, alarm.target, alarm.context) == step.physical_id
    assert plugin.find_created(str(uuid.uuid4()), alarm.target, alarm.context) is None
    alarm.take(step)
    alarm.delete()


def resource(kind: str, **properties: Json) -> Json:
    return {"type": f"OS::{kind}", "properties": properties}


def policy(change: int) -> Json:
    group = {"get_resource": "group"}
    kind = "change_in_capacity"
    return resource(
        "Heat::ScalingPolicy",
        auto_scaling_group_id=group,
        adjustment_type=kind,
        scaling_adjustment=change,
        cooldown=0,
    )


def threshold(operator: str, value: float, action: str) -> Json:
    query = {"str_replace": {"template": '{"=": {"server_group": "ID"}}', "params": {"ID": STACK_ID}}}
    return resource(
        "Aodh::GnocchiAggregationByResourcesAlarm",
        metric=METRIC,
        aggregation_method="rate:mean",
        granularity=1,
        evaluation_periods=1,
        resource_type=RESOURCE_TYPE,
        query=query,
        comparison_operator=operator,
        threshold=value,
        alarm_actions=[{"get_attr": [action, "alarm_url"]}],
    )


STACK_ID = {"get_param": "OS::stack_id"}
SECOND = 1e9
"""Nanoseconds."""
SCALED: Json = {
    "heat_template_version": "2018-08-31",
    "resources": {
        "group": resource(
            "Heat::AutoScalingGroup", min_size=1, max_size=3, resource={"type": "OS::Heat::RandomString"}
        ),
        "up": policy(1),
        "down": policy(-1),
        "busy": threshold("gt", 0.8 * SECOND, "up"),
        "idle": threshold("lt", 0.2 * SECOND, "down"),
    },
    "outputs": {"size": {"value": {"get_attr": ["group", "current_size"]}}},
}


def reasons_of_signals(stack: Stack, name: str) -> list[str]:
    """Reasons of the events of a resource's signals."""
    events = stack.get(f"/resources/{name}/events")["events"]
    return [event["resource_status_reason"] for event in events if "SIGNAL" in event["resource_status"]]


def test_a_group_grows_and_shrinks_by_what_its_members_do(stacks: Stacks, telemetry: Telemetry) -> None:
    stack = stacks.create("scaled", SCALED)
    stack_id = stack.show()["id"]
    member = str(uuid.uuid4())

    def has_size_with_load(size: int, nanoseconds: float) -> bool:
        telemetry.report([member], stack_id, nanoseconds)
        return bool(stack.outputs()["size"] == size)

    assert stack.outputs()["size"] == 1
    wait_for(lambda: has_size_with_load(3, SECOND), WITHIN, lambda: str(stack.show()), pause=0.5)
    wait_for(lambda: has_size_with_load(1, 0.0), WITHIN, lambda: str(stack.show()), pause=0.5)
    for name in ("up", "down"):
        reasons = reasons_of_signals(stack, name)
        assert all(reason.startswith("alarm state changed from ") for reason in reasons), reasons
        assert any(" to alarm (Transition to alarm due to 1 samples" in reason for reason in reasons), reasons
    stack.delete()
    assert stacks.project.leftovers() == {}
