"""Groups of servers of a launch configuration: made, scaled by signals, and changed in batches."""

import json
import pathlib
import typing

import pytest
from harness.resource_types import types_of
from simulation.helpers import rows
from simulation.nested import busiest, children, created, hot, server, settled, updated
from simulation.test_scaling import scaled, signal
from simulation.world import World
from stoker.db.rows import Stack
from stoker.db.states import Status
from stoker.engine.planning.requests import Goal, UpdateRequest
from stoker.engine.stacks import delete_stack
from stoker.features.preview.updates import preview_changes
from stoker.template.errors import TemplateError

RESOURCE_TYPES = types_of("openstack.nova")

Json = typing.Any
GIVEN = ("ImageId", "InstanceType", "KeyName", "UserData", "SubnetId")
SERVER = "file:///server.yaml"
"""The template that the members are made of: its server holds what the launch configuration says."""
FILES = {
    SERVER: json.dumps(
        hot(
            {"s": server(value={"list_join": ["/", [{"get_param": name} for name in GIVEN]]})},
            parameters={
                **{name: {"type": "string", "default": ""} for name in GIVEN},
                "Tags": {"type": "json", "default": []},
                "SecurityGroups": {"type": "json", "default": []},
            },
            outputs={
                "PublicIp": {"value": {"get_attr": ["s", "address"]}},
                "tags": {"value": {"get_param": "Tags"}},
            },
        )
    )
}
TYPES = {name: item for name, item in RESOURCE_TYPES.items() if not name.startswith("OS::Nova::")}
MAPPED = {"resource_registry": {"AWS::EC2::Instance": SERVER}}


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=3, threads=4, types=TYPES)


def launch(image: str = "old", **body: Json) -> Json:
    properties = {"ImageId": image, "InstanceType": "small", **body.pop("properties", {})}
    return {"type": "AWS::AutoScaling::LaunchConfiguration", "properties": properties, **body}


def scaling(least: int = 1, most: int = 5, policy: Json = None, **properties: Json) -> Json:
    values = {
        "AvailabilityZones": ["nova"],
        "LaunchConfigurationName": {"get_resource": "launch"},
        "MinSize": least,
        "MaxSize": most,
        **properties,
    }
    body = {"type": "AWS::AutoScaling::AutoScalingGroup", "properties": values}
    return {**body, "update_policy": {"AutoScalingRollingUpdate": policy}} if policy else body


def instances(size: int, policy: Json = None, **properties: Json) -> Json:
    values = {
        "AvailabilityZones": [],
        "LaunchConfigurationName": {"get_resource": "launch"},
        "Size": size,
        **properties,
    }
    body = {"type": "OS::Heat::InstanceGroup", "properties": values}
    return {**body, "update_policy": {"RollingUpdate": policy}} if policy else body


def policy(by: int, kind: str = "ChangeInCapacity", **properties: Json) -> Json:
    values = {"AutoScalingGroupName": {"get_resource": "g"}, "ScalingAdjustment": by, "AdjustmentType": kind}
    return {"type": "AWS::AutoScaling::ScalingPolicy", "properties": {**values, **properties}}


def create_stack(world: World, resources: Json, **sections: Json) -> Stack:
    stack = created(world, hot(resources, **sections), files=FILES, environment=MAPPED)
    assert stack.status == Status.COMPLETE, stack.reason
    return stack


def changed(world: World, stack: Stack, resources: Json, **sections: Json) -> Stack:
    return updated(world, stack, hot(resources, **sections), files=FILES, environment=MAPPED)


def held(world: World) -> list[str]:
    return sorted(item.value for item in world.cloud.objects.values())


def members(world: World, stack: Stack) -> dict[str, Json]:
    return {row.name: row for row in rows(world, children(world, stack)["g"]).values()}


ADDRESSES = {"addresses": {"value": {"get_attr": ["g", "InstanceList"]}}}


def test_the_servers_are_those_of_the_launch_configuration_and_signals_scale_them(world: World) -> None:
    resources = {
        "launch": launch(properties={"UserData": "#!/bin/sh", "KeyName": "ours"}),
        "g": scaling(DesiredCapacity=2, VPCZoneIdentifier=["inner"], Tags=[{"Key": "a", "Value": "b"}]),
        "up": policy(2),
        "down": policy(1, "ExactCapacity"),
    }
    stack = create_stack(world, resources, outputs=ADDRESSES)
    assert held(world) == ["old/small/ours/#!/bin/sh/inner"] * 2
    group = rows(world, stack)["g"]
    tags = [{"Key": "a", "Value": "b"}]
    tags += [
        {"Key": f"metering.{key}", "Value": group.reference_id}
        for key in ("groupname", "AutoScalingGroupName")
    ]
    assert [row.attributes["tags"] for row in members(world, stack).values()] == [tags, tags]
    assert group.reference_id.startswith("s-g-")
    addresses = {f"at-{key}" for key in world.cloud.objects}
    assert set(group.attributes["InstanceList"].split(",")) == addresses
    before = set(world.cloud.objects)
    scaled(world, stack)
    assert (len(world.cloud.objects), before <= set(world.cloud.objects)) == (4, True)
    assert set(rows(world, stack)["g"].attributes["InstanceList"].split(",")) >= addresses
    newest = set(world.cloud.objects) - before
    scaled(world, stack, "down")
    assert len(world.cloud.objects) == 1
    assert set(world.cloud.objects) < newest, "the oldest go first"


def test_a_cooldown_and_the_bounds_hold(world: World) -> None:
    resources = {
        "launch": launch(),
        "g": scaling(most=2, Cooldown=60),
        "up": policy(100, "PercentChangeInCapacity"),
    }
    stack = create_stack(world, resources)
    signal(world, stack)
    assert world.settle(lambda: len(world.cloud.objects) == 1, within=5)
    world.clock.now += 61
    scaled(world, stack)
    assert len(world.cloud.objects) == 2
    world.clock.now += 61
    scaled(world, stack)
    assert len(world.cloud.objects) == 2


def test_another_launch_configuration_changes_the_servers_in_batches(world: World) -> None:
    rolling = {"MaxBatchSize": 2, "MinInstancesInService": 3, "PauseTime": "PT1M30S"}
    stack = create_stack(world, {"launch": launch(), "g": scaling(4, 6, rolling)})
    begun = world.clock.now
    world.update(
        stack, hot({"launch": launch("new"), "g": scaling(4, 6, rolling)}), files=FILES, environment=MAPPED
    )
    assert busiest(world, stack) <= 2
    assert world.stack(stack.id).status == Status.COMPLETE, world.stack(stack.id).reason
    assert held(world) == ["new/small///"] * 4
    assert world.clock.now - begun >= 180, "a pause of 90 seconds is between three batches"
    assert world.cloud.wrong == []


def test_without_a_policy_present_servers_stay_as_they_are_and_new_ones_are_new(world: World) -> None:
    stack = create_stack(world, {"launch": launch(), "g": instances(2)})
    changed(world, stack, {"launch": launch("new"), "g": instances(3)})
    assert held(world) == ["new/small///", "old/small///", "old/small///"]
    changed(world, stack, {"launch": launch("new"), "g": instances(1)})
    assert held(world) == ["new/small///"], "the oldest go first"
    changed(world, stack, {"launch": launch("newer"), "g": instances(1, {"MaxBatchSize": 1})})
    assert held(world) == ["newer/small///"]
    changed(world, stack, {"launch": launch("newer"), "g": instances(0, {"MaxBatchSize": 1})})
    assert held(world) == []


def test_servers_that_a_signal_makes_are_those_of_the_present_configuration(world: World) -> None:
    resources = {"launch": launch(), "g": scaling(), "up": policy(1)}
    stack = create_stack(world, resources)
    changed(world, stack, {**resources, "launch": launch("new")})
    scaled(world, stack)
    assert held(world) == ["new/small///", "old/small///"]


def test_metadata_of_a_launch_configuration_are_those_of_its_servers(world: World) -> None:
    rolling = {"MaxBatchSize": 5}
    stack = create_stack(world, {"launch": launch(metadata={"a": 1}), "g": instances(1, rolling)})
    assert [row.metadata for row in members(world, stack).values()] == [{"a": 1}]
    before = rows(world, stack)["launch"].physical_id
    changed(world, stack, {"launch": launch(metadata={"a": 2}), "g": instances(1, rolling)})
    assert rows(world, stack)["launch"].physical_id != before, "it is replaced, so that its groups change"
    assert [row.metadata for row in members(world, stack).values()] == [{"a": 2}]


def test_a_secret_in_a_launch_configuration_stays_sealed(world: World) -> None:
    parameters = {"word": {"type": "string", "hidden": True}}
    resources = {"launch": launch(properties={"UserData": {"get_param": "word"}}), "g": instances(1)}
    stack = created(
        world,
        hot(resources, parameters=parameters),
        files=FILES,
        environment={**MAPPED, "parameters": {"word": "s3cret-word"}},
    )
    assert stack.status == Status.COMPLETE, stack.reason
    assert held(world) == ["old/small//s3cret-word/"]
    for name, row in rows(world, stack).items():
        assert "s3cret-word" not in str(row), name


@pytest.mark.parametrize(
    ("group", "text"),
    [
        (scaling(3, 2), "MinSize can not be greater than MaxSize"),
        (scaling(-1, 2), "can not be less than zero"),
        (scaling(DesiredCapacity=9), "DesiredCapacity must be between MinSize and MaxSize"),
        (scaling(VPCZoneIdentifier=["a", "b"]), "Anything other than one VPCZoneIdentifier"),
        (scaling(InstanceId="one", LaunchConfigurationName="two"), "Either 'InstanceId' or 'Launch"),
        (scaling(LoadBalancerNames=["lb"]), "no load balancer follows a group"),
        (scaling(LaunchConfigurationName="launch"), "requires a reference to the configuration"),
        (scaling(LaunchConfigurationName="lost"), "(lost) reference can not be found"),
        (
            scaling(LaunchConfigurationName={"get_resource": "up"}),
            "is a resource of the type OS::Heat::Value",
        ),
        (scaling(policy={"PauseTime": "PT1H1S"}), "Maximum PauseTime is 1 hour."),
        (scaling(policy={"PauseTime": "90"}), "Only ISO 8601 duration format"),
        (scaling(policy={"MinSuccessfulInstancesPercent": 1}), "Unknown Property"),
        (instances(-1), "can not be less than zero"),
        (instances(1, LoadBalancerNames=["lb"]), "no load balancer follows a group"),
    ],
)
def test_what_a_group_cannot_do_is_refused_at_the_request(world: World, group: Json, text: str) -> None:
    resources = {
        "launch": launch(),
        "up": {"type": "OS::Heat::Value", "properties": {"value": 1}},
        "g": group,
    }
    with pytest.raises(TemplateError) as raised:
        world.create("s", hot(resources), files=FILES, environment=MAPPED)
    assert text in str(raised.value)


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"ImageId": ""}, "ImageId and InstanceType are required"),
        ({"BlockDeviceMappings": [{"DeviceName": "vdb"}]}, "Ebs is missing"),
        (
            {"BlockDeviceMappings": [{"DeviceName": "vdb", "Ebs": {"VolumeSize": "1"}}]},
            "SnapshotId is missing",
        ),
    ],
)
def test_a_launch_configuration_says_what_servers_need(world: World, properties: Json, text: str) -> None:
    with pytest.raises(TemplateError) as raised:
        world.create("s", hot({"launch": launch(properties=properties)}), files=FILES, environment=MAPPED)
    assert text in str(raised.value)


def test_a_deleted_group_leaves_nothing(world: World) -> None:
    stack = create_stack(world, {"launch": launch(), "g": scaling(3)})
    assert len(world.cloud.objects) == 3
    delete_stack(world.context, stack)
    settled(world, stack)
    assert world.cloud.objects == {}


def test_a_preview_names_the_servers_that_another_size_adds_unless_their_launch_changes(
    world: World,
) -> None:
    stack = create_stack(world, {"launch": launch(), "g": instances(2)})

    def kinds(image: str = "old") -> list[str] | None:
        template = hot({"launch": launch(image), "g": instances(4)})
        request = UpdateRequest(Goal(template, files=FILES, environment=MAPPED))
        changes = preview_changes(world.context, world.stack(stack.id), request, nested=True)
        [inside] = [item.inside for item in changes if item.name == "g"]
        items = inside[0].items
        return None if items is None else sorted(item.effect.value for item in items)

    assert kinds() == ["added", "added", "updated", "updated"]
    assert kinds("new") is None
