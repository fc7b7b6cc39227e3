"""Types of CloudFormation's, of which none calls another service here."""

import json

from client.serving import Json, Service
from harness.templates import template
from harness.waiting import wait_for

MEMBER = {
    "AWSTemplateFormatVersion": "2010-09-09",
    "Parameters": {
        "ImageId": {"Type": "String"},
        "InstanceType": {"Type": "String"},
        "Tags": {"Type": "CommaDelimitedList"},
    },
    "Resources": {"Server": {"Type": "OS::Heat::TestResource", "Properties": {"value": {"Ref": "ImageId"}}}},
    "Outputs": {
        "PublicIp": {"Value": {"Fn::GetAtt": ["Server", "output"]}},
        "Tags": {"Value": {"Fn::Join": ["|", {"Ref": "Tags"}]}},
    },
}
GROUP = {
    "AWSTemplateFormatVersion": "2010-09-09",
    "Resources": {
        "Launch": {
            "Type": "AWS::AutoScaling::LaunchConfiguration",
            "Properties": {"ImageId": "fedora", "InstanceType": "small"},
        },
        "Group": {
            "Type": "AWS::AutoScaling::AutoScalingGroup",
            "Properties": {
                "AvailabilityZones": {"Fn::GetAZs": ""},
                "LaunchConfigurationName": {"Ref": "Launch"},
                "MinSize": "1",
                "MaxSize": "3",
            },
        },
        "Up": {
            "Type": "AWS::AutoScaling::ScalingPolicy",
            "Properties": {
                "AutoScalingGroupName": {"Ref": "Group"},
                "AdjustmentType": "ChangeInCapacity",
                "ScalingAdjustment": "2",
            },
        },
    },
    "Outputs": {
        "Servers": {"Value": {"Fn::GetAtt": ["Group", "InstanceList"]}},
        "Url": {"Value": {"Fn::GetAtt": ["Up", "AlarmUrl"]}},
        "Reference": {"Value": {"Ref": "Up"}},
    },
}
MAPPED = {
    "files": {"server.template": json.dumps(MEMBER)},
    "environment": {"resource_registry": {"AWS::EC2::Instance": "server.template"}},
}


def outputs(service: Service, path: str) -> dict[str, Json]:
    return {item["output_key"]: item["output_value"] for item in service.get(path)["stack"]["outputs"]}


def test_a_post_to_the_alarm_url_scales_the_group(service: Service) -> None:
    path = service.created("launched", "web", GROUP, **MAPPED)
    values = outputs(service, path)
    assert values["Servers"] == "fedora"
    assert values["Url"] == values["Reference"]
    assert service.call("POST", values["Url"].split("?")[0]).status in (401, 403)
    assert service.call("POST", values["Url"]).status == 200
    wait_for(lambda: outputs(service, path)["Servers"] == "fedora,fedora,fedora", 60)
    [member, *_] = service.get(f"{path}/resources?nested_depth=1")["resources"][-3:]
    inner = {link["rel"]: link["href"] for link in member["links"]}["nested"]
    assert outputs(service, inner)["Tags"].startswith(
        ".member.0.Key=metering.groupname|.member.0.Value=web-Group-"
    )
    group = service.get(f"{path}/resources/Group")["resource"]
    assert group["attributes"]["InstanceList"] == "fedora,fedora,fedora"


def test_the_types_are_listed_and_shown(service: Service) -> None:
    listed = set(service.get("/v1/types/resource_types")["resource_types"])
    names = {
        "AWS::AutoScaling::AutoScalingGroup": "LaunchConfigurationName",
        "AWS::AutoScaling::LaunchConfiguration": "InstanceType",
        "AWS::AutoScaling::ScalingPolicy": "AdjustmentType",
        "AWS::CloudFormation::Stack": "TemplateURL",
        "AWS::EC2::Instance": "ImageId",
        "OS::Heat::InstanceGroup": "Size",
    }
    assert names.keys() <= listed
    for name, prop in names.items():
        assert prop in service.get(f"/v1/types/resource_types/{name}")["properties"]


def test_a_conductor_fetches_templates_of_nested_stacks_by_the_rules_of_requests(service: Service) -> None:
    nested = {"type": "AWS::CloudFormation::Stack", "properties": {"TemplateURL": "https://h.test/t.yaml"}}
    path = service.create("fetching", "outer", template({"n": nested}))
    stack = service.settled(path)
    assert stack["stack_status"] == "CREATE_FAILED"
    reason = service.get(f"{path}/resources/n")["resource"]["resource_status_reason"]
    assert "Could not fetch remote template 'https://h.test/t.yaml': template_url is not supported" in reason
