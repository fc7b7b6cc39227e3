"""The CloudFormation API behind a real Keystone: requests signed with a user's EC2 credentials."""

import json
import pathlib
import typing
from collections.abc import Iterator

import boto3
import botocore.config
import pytest
import requests
from botocore.auth import SigV2Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from client.serving import Service
from harness.keystone import PASSWORD, Keystone
from harness.waiting import wait_for

Json = typing.Any
TEMPLATE = json.dumps(
    {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Resources": {"r": {"Type": "OS::Heat::TestResource", "Properties": {"value": "x"}}},
    }
)


class Cloud:
    """Two Stokers behind Keystone, and two projects with users.

    Stacks of the one act for their users by trusts, those of the other for nobody.
    """

    def __init__(self, keystone: Keystone, folder: pathlib.Path) -> None:
        configs = {name: folder / f"{name}.conf" for name in ("trusts", "none")}
        for name, config in configs.items():
            config.write_text(
                f"[stacks]\ndeferred_auth_method = {name}\n[api]\nauth_strategy = keystone\n"
                f"[keystone_authtoken]\nauth_type = password\nauth_url = {keystone.url}\nusername = admin\n"
                f"password = {PASSWORD}\nproject_name = admin\n"
                "user_domain_id = default\nproject_domain_id = default\n"
            )
        self._keystone = keystone
        self.project = keystone.make("project", name="aws", domain_id="default")
        self.other = keystone.make("project", name="aws-other", domain_id="default")
        for name in ("trusting", "plain"):
            (folder / name).mkdir()
        self.trusting = Service(folder / "trusting", config=configs["trusts"])
        self.service = Service(folder / "plain", config=configs["none"])

    def keys(self, user: str, role: str, project: str) -> Credentials:
        """A user with a role in a project, and EC2 credentials of theirs for it."""
        keystone = self._keystone
        user_id = keystone.make("user", name=user, domain_id="default", password=PASSWORD)
        keystone.grant(user_id, project, role)
        headers = {"X-Auth-Token": keystone.token("admin", "admin")}
        url = f"{keystone.url}/users/{user_id}/credentials/OS-EC2"
        answer = requests.post(url, json={"tenant_id": project}, headers=headers, timeout=30)
        assert answer.status_code == 201, answer.text
        credential = answer.json()["credential"]
        return Credentials(credential["access"], credential["secret"])

    def client(self, keys: Credentials, service: Service | None = None) -> Json:
        return boto3.client(
            "cloudformation",
            endpoint_url=f"{(service or self.service).url}/v1",
            region_name="RegionOne",
            aws_access_key_id=keys.access_key,
            aws_secret_access_key=keys.secret_key,
            config=botocore.config.Config(retries={"total_max_attempts": 1}),
        )


@pytest.fixture(scope="module")
def cloud(keystone: Keystone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    started = Cloud(keystone, tmp_path_factory.mktemp("cloudformation"))
    yield started
    started.service.stop()
    started.trusting.stop()


@pytest.fixture(scope="module")
def member(cloud: Cloud) -> Credentials:
    return cloud.keys("aws-member", "member", cloud.project)


def refused(request: typing.Callable[[], Json]) -> tuple[int, str]:
    with pytest.raises(ClientError) as caught:
        request()
    answer = caught.value.response
    return answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Code"]


def test_a_user_makes_a_stack_in_the_project_of_their_key(cloud: Cloud, member: Credentials) -> None:
    cfn = cloud.client(member)
    arn = cfn.create_stack(StackName="signed", TemplateBody=TEMPLATE)["StackId"]
    assert arn.startswith(f"arn:openstack:heat::{cloud.project}:stacks/signed/")

    def now() -> str:
        return str(cfn.describe_stacks(StackName="signed")["Stacks"][0]["StackStatus"])

    wait_for(lambda: now() == "CREATE_COMPLETE", 120, now)
    resources = cfn.describe_stack_resources(StackName=arn)["StackResources"]
    assert [item["LogicalResourceId"] for item in resources] == ["r"]


def test_stacks_that_need_a_trust_are_created_elsewhere_and_continued_here(
    cloud: Cloud, member: Credentials, keystone: Keystone
) -> None:
    """Keystone lets nobody delegate what a signed request gives them."""
    cfn = cloud.client(member, cloud.trusting)
    with pytest.raises(ClientError, match="create the stack through the Orchestration API"):
        cfn.create_stack(StackName="refused", TemplateBody=TEMPLATE)
    assert cfn.list_stacks()["StackSummaries"] == []
    body = {"stack_name": "made", "template": json.loads(TEMPLATE)}
    token = {"X-Auth-Token": keystone.token("aws-member", "aws")}
    answer = cloud.trusting.call("POST", f"/v1/{cloud.project}/stacks", body, headers=token)
    assert answer.status == 201, answer

    def becomes(status: str) -> None:
        wait_for(lambda: cfn.describe_stacks(StackName="made")["Stacks"][0]["StackStatus"] == status, 120)

    becomes("CREATE_COMPLETE")
    cfn.update_stack(StackName="made", TemplateBody=TEMPLATE.replace('"x"', '"y"'))
    becomes("UPDATE_COMPLETE")
    cfn.delete_stack(StackName="made")
    wait_for(lambda: cfn.list_stacks()["StackSummaries"] == [], 120)


def test_version_2_of_the_signature_is_as_good(cloud: Cloud, member: Credentials) -> None:
    url = f"{cloud.service.url}/v1/"
    request = AWSRequest("POST", url, data={"Action": "ListStacks"})
    SigV2Auth(member).add_auth(request)
    answer = requests.post(url, data=request.data, timeout=30)
    assert answer.status_code == 200, answer.text
    assert "<ListStacksResponse>" in answer.text
    changed = {**request.data, "Action": "DescribeStacks"}
    answer = requests.post(url, data=changed, timeout=30)
    assert (answer.status_code, "<Code>AccessDenied</Code>" in answer.text) == (403, True)


def test_a_wrong_key_or_secret_is_refused(cloud: Cloud, member: Credentials) -> None:
    for keys in (Credentials(member.access_key, "0" * 32), Credentials("0" * 32, member.secret_key)):
        assert refused(cloud.client(keys).list_stacks) == (403, "AccessDenied")
    assert cloud.client(member).list_stacks()["StackSummaries"] is not None


def test_the_policy_decides(cloud: Cloud, member: Credentials) -> None:
    reader = cloud.client(cloud.keys("aws-reader", "reader", cloud.project))
    assert isinstance(reader.list_stacks()["StackSummaries"], list)
    assert refused(lambda: reader.create_stack(StackName="x", TemplateBody=TEMPLATE)) == (403, "AccessDenied")
    stranger = cloud.client(cloud.keys("aws-stranger", "member", cloud.other))
    arn = cloud.client(member).create_stack(StackName="mine", TemplateBody=TEMPLATE)["StackId"]
    assert stranger.list_stacks()["StackSummaries"] == []
    assert refused(lambda: stranger.delete_stack(StackName=arn)) == (400, "InvalidParameterValue")
