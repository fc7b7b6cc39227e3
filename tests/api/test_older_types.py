"""The sample etc/older_types: an operator lets users have types whose services are gone."""

import pathlib
from collections.abc import Iterator

import pytest
import yaml
from client.serving import Json, Service
from harness.templates import template
from stoker.resources.heat_types import HEAT_TYPES, MAPPED

SAMPLE = pathlib.Path(__file__).parents[2] / "etc" / "older_types"
TEMPLATES = SAMPLE / "templates"
OPTIONS = f"[stacks]\nenvironment_dir = {SAMPLE}/environment.d\ntemplate_dir = {TEMPLATES}\n"
ALARM = {
    "meter_name": "cpu_util",
    "threshold": 50,
    "comparison_operator": "gt",
    "statistic": "avg",
    "period": 60,
    "evaluation_periods": 1,
    "alarm_actions": ["http://a.test/b?c=d"],
    "matching_metadata": {"metadata.user_metadata.stack": {"get_param": "OS::stack_id"}},
    "repeat_actions": True,
}
GNOCCHI = {"threshold": 5, "alarm_actions": []}
PROPERTIES: dict[str, Json] = {
    "OS::Neutron::LBaaS::LoadBalancer": {"vip_subnet": "s", "admin_state_up": True},
    "OS::Neutron::LBaaS::Listener": {"protocol": "HTTP", "protocol_port": 80, "loadbalancer": "b"},
    "OS::Neutron::LBaaS::Pool": {"lb_algorithm": "ROUND_ROBIN", "protocol": "HTTP", "listener": "l"},
    "OS::Neutron::LBaaS::PoolMember": {"pool": "p", "address": "10.0.0.3", "protocol_port": 80},
    "OS::Neutron::LBaaS::HealthMonitor": {
        "pool": "p",
        "type": "HTTP",
        "delay": 3,
        "timeout": 3,
        "max_retries": 3,
    },
    "OS::Neutron::LBaaS::L7Policy": {"action": "REJECT", "listener": "l"},
    "OS::Neutron::LBaaS::L7Rule": {
        "l7policy": "p",
        "type": "PATH",
        "compare_type": "EQUAL_TO",
        "value": "x",
    },
    "OS::Ceilometer::GnocchiResourcesAlarm": {
        **GNOCCHI,
        "metric": "m",
        "resource_id": "r",
        "resource_type": "t",
    },
    "OS::Ceilometer::GnocchiAggregationByMetricsAlarm": {**GNOCCHI, "metrics": ["m"]},
    "OS::Ceilometer::GnocchiAggregationByResourcesAlarm": {
        **GNOCCHI,
        "metric": "m",
        "query": "{}",
        "resource_type": "t",
    },
    "OS::Ceilometer::Alarm": ALARM,
    "OS::Aodh::Alarm": ALARM,
    "OS::Metering::Alarm": ALARM,
    "AWS::CloudWatch::Alarm": {
        "AlarmDescription": "Scale up.",
        "MetricName": "cpu_util",
        "Namespace": "system/linux",
        "Statistic": "Average",
        "Period": 60,
        "EvaluationPeriods": 1,
        "Threshold": 50,
        "AlarmActions": ["http://a.test/b?c=d"],
        "Dimensions": [{"Name": "AutoScalingGroupName", "Value": {"get_param": "OS::stack_id"}}],
        "ComparisonOperator": "GreaterThanThreshold",
    },
    "OS::Nova::FloatingIP": {"pool": "public"},
    "OS::Nova::FloatingIPAssociation": {"server_id": "s", "floating_ip": "f"},
    "OS::Designate::Domain": {"name": "a.test.", "email": "a@a.test", "ttl": 60},
    "OS::Designate::Record": {
        "name": "a.test.",
        "type": "MX",
        "data": "b.test.",
        "domain": "a.test.",
        "priority": 10,
    },
}
ATTRIBUTES = {"OS::Nova::FloatingIP": ["ip", "pool"], "OS::Neutron::LBaaS::LoadBalancer": ["vip_address"]}


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    directory: pathlib.Path = tmp_path_factory.mktemp("sampled")
    config = directory / "sample.conf"
    config.write_text(OPTIONS)
    running = Service(directory, conductors=1, config=config)
    try:
        yield running
    finally:
        running.stop()


def of_type(name: str, properties: Json) -> Json:
    attributes = {each: {"value": {"get_attr": ["old", each]}} for each in ATTRIBUTES.get(name, ())}
    outputs = {"reference": {"value": {"get_resource": "old"}}, **attributes}
    return template({"old": {"type": name, "properties": properties}}, outputs=outputs)


def test_the_sample_maps_what_a_refusal_says() -> None:
    registry = yaml.safe_load((SAMPLE / "environment.d/older_types.yaml").read_text())["resource_registry"]

    def is_mapped(name: str) -> bool:
        return any(name.startswith(key[:-1]) if key.endswith("*") else name == key for key in registry)

    assert {name for name in HEAT_TYPES if is_mapped(name)} == set(MAPPED) == set(PROPERTIES)
    files = {target for target in registry.values() if target.endswith(".yaml")}
    assert files == {file.name for file in TEMPLATES.iterdir()}


def test_templates_with_these_types_are_valid(sampled: Service) -> None:
    answers = {}
    for name, properties in PROPERTIES.items():
        answer = sampled.call("POST", "/v1/t/validate", {"template": of_type(name, properties)})
        if answer.status != 200:
            answers[name] = answer.error["message"]
    assert answers == {}


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("OS::Nova::FloatingIP", "pol"), ("OS::Ceilometer::Alarm", "meter"), ("OS::Designate::Record", "dat")],
)
def test_wrong_properties_are_refused(sampled: Service, name: str, wrong: str) -> None:
    body = of_type(name, {**PROPERTIES[name], wrong: "x"})
    answer = sampled.call("POST", "/v1/t/validate", {"template": body})
    assert (answer.status, wrong in answer.error["message"]) == (400, True)


@pytest.mark.parametrize("name", sorted(PROPERTIES))
def test_without_the_sample_the_successor_is_named(service: Service, name: str) -> None:
    answer = service.call("POST", "/v1/t/validate", {"template": of_type(name, PROPERTIES[name])})
    assert answer.status == 400
    assert f"Use {MAPPED[name]}, or ask the operator to map it" in answer.error["message"]
