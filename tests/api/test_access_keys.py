"""AWS::IAM::User and AWS::IAM::AccessKey: who has a key reads what the policies of its user allow."""

import json
import urllib.parse
from xml.etree import ElementTree

import pytest
import requests
from client.serving import Json, Service
from keystoneclient.contrib.ec2.utils import Ec2Signer

KEY = {"Type": "AWS::IAM::AccessKey", "Properties": {"UserName": {"Ref": "User"}}}


def template(*policies: Json) -> Json:
    """Two resources with metadata, a policy for one of them, and a user with these policies."""
    properties = {"Policies": list(policies)} if policies else {}
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Resources": {
            "Web": {"Type": "OS::Heat::None", "Metadata": {"AWS::CloudFormation::Init": {"config": "web"}}},
            "Store": {"Type": "OS::Heat::None", "Metadata": {"config": "store"}},
            "Policy": {"Type": "OS::Heat::AccessPolicy", "Properties": {"AllowedResources": ["Web"]}},
            "User": {"Type": "AWS::IAM::User", "Properties": properties},
            "Key": KEY,
        },
        "Outputs": {
            "Key": {"Value": {"Ref": "Key"}},
            "Secret": {"Value": {"Fn::GetAtt": ["Key", "SecretAccessKey"]}},
            "Name": {"Value": {"Fn::GetAtt": ["Key", "UserName"]}},
            "User": {"Value": {"Ref": "User"}},
        },
    }


def outputs(service: Service, path: str) -> dict[str, str]:
    return {item["output_key"]: item["output_value"] for item in service.get(path)["stack"]["outputs"]}


def described(service: Service, path: str, name: str, **changes: str) -> requests.Response:
    """The answer to DescribeStackResource, signed as heat-cfntools do."""
    values = outputs(service, path)
    params = {
        "Action": "DescribeStackResource",
        "StackName": path.split("/")[4],
        "LogicalResourceId": name,
        "AWSAccessKeyId": values["Key"],
        "SignatureVersion": "2",
        **changes,
    }
    host = urllib.parse.urlsplit(service.url).netloc
    signed = {"params": params, "verb": "GET", "host": host, "path": "/v1/"}
    params["Signature"] = Ec2Signer(values["Secret"]).generate(signed)
    return requests.get(f"{service.url}/v1/", params=params, timeout=120)


def status(answer: requests.Response) -> int | Json:
    """The metadata, or the status of a refusal."""
    text = ElementTree.fromstring(answer.text).findtext(".//Metadata")
    return answer.status_code if text is None else json.loads(text)


@pytest.mark.parametrize(
    ("policies", "store"),
    [((), {"config": "store"}), (({"Ref": "Policy"},), 403), ((["ignored"],), {"config": "store"})],
)
def test_a_key_reads_what_the_policies_of_its_user_allow(
    service: Service, tenant: str, policies: Json, store: Json
) -> None:
    path = service.created(tenant, "guarded", template(*policies))
    assert status(described(service, path, "Web")) == {"AWS::CloudFormation::Init": {"config": "web"}}
    assert status(described(service, path, "Store")) == store
    values = outputs(service, path)
    assert (
        values["Name"]
        == values["User"]
        == service.get(f"{path}/resources/User")["resource"]["physical_resource_id"]
    )


def test_a_key_reads_nothing_else(service: Service, tenant: str) -> None:
    path = service.created(tenant, "guarded", template())
    other = service.created(f"{tenant}x", "other", template())
    assert status(described(service, path, "Web", StackName="other")) == 403
    assert status(described(service, path, "Nothing")) == 403
    assert status(described(service, path, "Web", AWSAccessKeyId=outputs(service, other)["Key"])) == 403
    assert status(described(service, path, "Web", Action="DescribeStacks")) == 400


def test_a_key_is_invalid_when_it_is_deleted(service: Service, tenant: str) -> None:
    body = template()
    path = service.created(tenant, "guarded", body)
    assert status(described(service, path, "Web")) != 403
    before = outputs(service, path)
    body["Resources"]["Key"]["Properties"]["UserName"] = {"Fn::Join": ["", [{"Ref": "User"}]]}
    body["Resources"]["User"]["Properties"] = {"Path": "/"}
    assert service.call("PUT", path, {"template": body}).status == 202
    service.settled(path)
    assert outputs(service, path)["Key"] != before["Key"]
    assert status(described(service, path, "Web", AWSAccessKeyId=before["Key"])) == 403


@pytest.mark.parametrize("policy", ["Web", "nobody"])
def test_a_policy_that_is_none_is_refused(service: Service, tenant: str, policy: str) -> None:
    answer = service.call("POST", f"/v1/{tenant}/stacks", {"stack_name": "s", "template": template(policy)})
    assert answer.status == 400
    assert "The Referenced Attribute (User Policies) is incorrect." in answer.error["message"]


def test_a_key_of_nobody_fails(service: Service, tenant: str) -> None:
    body = template()
    body["Resources"]["Key"] = {**KEY, "Properties": {"UserName": "nobody"}}
    path = service.create(tenant, "orphan", body)
    assert service.settled(path)["stack_status"] == "CREATE_FAILED"
    reason = service.get(f"{path}/resources/Key")["resource"]["resource_status_reason"]
    assert "could not find user nobody" in reason


def test_the_secret_is_not_stored_in_clear(service: Service, tenant: str) -> None:
    path = service.created(tenant, "guarded", template())
    secret = outputs(service, path)["Secret"]
    stored = b"".join(file.read_bytes() for file in service.data.glob("stoker.sqlite*"))
    assert b"AllowedResources" in stored
    assert secret.encode() not in stored
