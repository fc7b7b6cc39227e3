"""AWS::EC2::Instance: its properties as those of the compute service's servers."""

import pytest
from harness.fake_context import FakeContext, target_of
from harness.resource_types import types_of
from stoker.resources.contract.errors import PermanentError, PropertyError
from stoker.resources.contract.properties import resolve_properties, validate_properties
from stoker.resources.contract.steps import Done
from stoker.resources.openstack.nova.launched_groups import seconds

RESOURCE_TYPES = types_of("openstack.nova")
CINDER = types_of("openstack.cinder")
NEUTRON = types_of("openstack.neutron")

INSTANCE = RESOURCE_TYPES["AWS::EC2::Instance"]()
GIVEN = {"ImageId": "image", "InstanceType": "small"}


def inside(**properties):
    return INSTANCE.inside(target_of(INSTANCE, {**GIVEN, **properties})).properties


def test_a_server_has_what_the_instance_says():
    properties = inside(
        KeyName="key",
        AvailabilityZone="zone",
        SecurityGroups=["a"],
        SecurityGroupIds=["b"],
        UserData="#!/bin/sh",
        Tags=[{"Key": "tier", "Value": "web"}],
        SubnetId="subnet",
    )
    expected = {
        "image": "image",
        "flavor": "small",
        "key_name": "key",
        "availability_zone": "zone",
        "security_groups": ["a", "b"],
        "user_data": "#!/bin/sh",
        "user_data_format": "HEAT_CFNTOOLS",
        "metadata": {"tier": "web"},
    }
    assert {name: properties[name] for name in expected} == expected
    [network] = properties["networks"]
    assert {name: value for name, value in network.items() if value is not None} == {"subnet": "subnet"}
    assert inside()["networks"] is None


def test_the_interfaces_are_in_the_order_of_their_places_and_go_before_the_subnet():
    entries = [
        {"NetworkInterfaceId": "second", "DeviceIndex": "1"},
        {"NetworkInterfaceId": "first", "DeviceIndex": 0},
    ]
    networks = inside(NetworkInterfaces=entries, SubnetId="subnet")["networks"]
    assert [entry["port"] for entry in networks] == ["first", "second"]
    assert [entry["port"] for entry in inside(NetworkInterfaces=["a", "b"])["networks"]] == ["a", "b"]


def test_hints_that_are_given_twice_are_lists():
    entries = [{"Key": key, "Value": value} for key, value in (("a", "1"), ("b", "2"), ("a", "3"))]
    assert inside(NovaSchedulerHints=entries)["scheduler_hints"] == {"a": ["1", "3"], "b": "2"}


def test_snapshots_and_volumes_are_further_disks():
    mapping = {"DeviceName": "vdb", "Ebs": {"SnapshotId": "snapshot", "VolumeSize": "3"}}
    properties = inside(BlockDeviceMappings=[mapping], Volumes=[{"Device": "/dev/vdc", "VolumeId": "volume"}])
    disks = [
        {name: value for name, value in disk.items() if value is not None}
        for disk in properties["block_device_mapping_v2"]
    ]
    assert disks == [
        {
            "device_name": "vdb",
            "snapshot_id": "snapshot",
            "volume_size": 3,
            "delete_on_termination": True,
            "boot_index": -1,
        },
        {
            "device_name": "/dev/vdc",
            "volume_id": "volume",
            "delete_on_termination": False,
            "boot_index": -1,
        },
    ]


def test_without_an_address_the_attributes_are_heats():
    target = target_of(INSTANCE, {**GIVEN, "AvailabilityZone": "zone"}, physical_id="id", data={"thing": {}})
    attributes = INSTANCE.attribute_values(target)
    assert (attributes["PublicIp"], attributes["PrivateIp"], attributes["AvailabilityZone"]) == (
        "0.0.0.0",
        "0.0.0.0",
        "zone",
    )
    server = {
        "addresses": {"a": [{"addr": "10.0.0.1"}], "b": [{"addr": "10.0.0.2"}]},
        "OS-EXT-AZ:availability_zone": "other",
    }
    attributes = INSTANCE.attribute_values(
        target_of(INSTANCE, GIVEN, physical_id="id", data={"thing": server})
    )
    assert (attributes["PublicDnsName"], attributes["AvailabilityZone"]) == ("10.0.0.2", "other"), (
        "the last network's"
    )


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"NetworkInterfaces": ["a"], "SecurityGroups": ["b"]}, "at the same time"),
        ({"NetworkInterfaces": [{"NetworkInterfaceId": "a", "DeviceIndex": "x"}]}, "DeviceIndex, a number"),
        ({"NetworkInterfaces": [7]}, "is the id of a port, or a map"),
        ({"BlockDeviceMappings": [{"DeviceName": "vdb", "Ebs": {}}]}, "SnapshotId is missing"),
    ],
)
def test_what_contradicts_itself_is_refused(properties, text):
    values = validate_properties(INSTANCE.properties_schema, {**GIVEN, **properties})
    with pytest.raises(PropertyError, match=text):
        INSTANCE.validate(values)
    with pytest.raises(PropertyError, match=text):
        INSTANCE.validate(resolve_properties(INSTANCE.properties_schema, {**GIVEN, **properties}))


@pytest.mark.parametrize(
    ("text", "expected"), [("PT0S", 0), ("PT", 0), ("PT5S", 5), ("PT2M", 120), ("PT1H1M1S", 3661)]
)
def test_durations(text, expected):
    assert seconds(text) == expected


def test_a_group_needs_the_launch_configuration_to_be_there():
    group = RESOURCE_TYPES["OS::Heat::InstanceGroup"]()
    properties = {"AvailabilityZones": [], "LaunchConfigurationName": "lost", "Size": 1}
    with pytest.raises(PermanentError, match=r"\(lost\) reference can not be found"):
        group.handle_create(target_of(group, properties), FakeContext())


def test_a_launch_configuration_keeps_what_is_given_and_nothing_else():
    launch = RESOURCE_TYPES["AWS::AutoScaling::LaunchConfiguration"]()
    mapping = {"DeviceName": "vdb", "Ebs": {"SnapshotId": "s"}}
    properties = {**GIVEN, "BlockDeviceMappings": [mapping]}
    step = launch.handle_create(
        target_of(launch, properties, name="launch", metadata={"a": 1}), FakeContext()
    )
    assert isinstance(step, Done)
    ebs = {"SnapshotId": "s", "DeleteOnTermination": True}
    assert step.data["launch"] == {
        "type": "AWS::EC2::Instance",
        "properties": {**GIVEN, "BlockDeviceMappings": [{**mapping, "Ebs": ebs}]},
        "metadata": {"a": 1},
    }


def translated(name, registry, **properties):
    """Return the properties that the inner type gets of a type, without those that have no value."""
    plugin = registry[name]()
    inner = plugin.inside(target_of(plugin, properties)).properties
    return {key: value for key, value in inner.items() if value not in (None, {}, [])}


def test_a_volume_has_its_tags_as_metadata_and_its_snapshot_is_a_backup():
    tags = [{"Key": "a", "Value": "1"}, {"Key": "a", "Value": "2"}]
    properties = {"AvailabilityZone": "zone", "SnapshotId": "backup", "Tags": tags}
    inner = translated("AWS::EC2::Volume", CINDER, **properties)
    assert (inner["availability_zone"], inner["backup_id"], inner["metadata"]) == (
        "zone",
        "backup",
        {"a": "2"},
    )
    plugin = CINDER["AWS::EC2::Volume"]()
    with pytest.raises(PropertyError, match="Size is needed"):
        plugin.validate(resolve_properties(plugin.properties_schema, {"AvailabilityZone": "zone"}))


def test_rules_of_a_security_group():
    ingress = [
        {"IpProtocol": "-1", "CidrIp": "10.0.0.0/8"},
        {"IpProtocol": "tcp", "FromPort": "1", "ToPort": "2", "CidrIp": "10.0.0.0/8"},
        {"IpProtocol": "tcp", "FromPort": "1", "ToPort": "2", "SourceSecurityGroupName": "other"},
    ]
    egress = [{"IpProtocol": "udp", "FromPort": "-1", "ToPort": "-1", "CidrIp": "0.0.0.0/0"}]
    properties = {"GroupDescription": "d", "SecurityGroupIngress": ingress, "SecurityGroupEgress": egress}
    inner = translated("AWS::EC2::SecurityGroup", NEUTRON, **properties)
    names = (
        "direction",
        "protocol",
        "port_range_min",
        "port_range_max",
        "remote_ip_prefix",
        "remote_group_id",
    )
    assert [tuple(rule[name] for name in names) for rule in inner["rules"]] == [
        ("ingress", None, None, None, "10.0.0.0/8", None),
        ("ingress", "tcp", 1, 2, "10.0.0.0/8", None),
        ("ingress", "tcp", 1, 2, None, "other"),
        ("egress", "udp", None, None, "0.0.0.0/0", None),
    ]
    plugin = NEUTRON["AWS::EC2::SecurityGroup"]()
    wrong = {"GroupDescription": "d", "SecurityGroupIngress": [{"FromPort": "http"}]}
    with pytest.raises(PropertyError, match="http is not a number"):
        plugin.validate(resolve_properties(plugin.properties_schema, wrong))
