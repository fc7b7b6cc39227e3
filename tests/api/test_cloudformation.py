"""The CloudFormation API through boto3, which signs with an access key that names the project."""

import json
import re
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
from client.serving import Service, fault
from harness.waiting import wait_for

Json = typing.Any
TEMPLATE = {
    "AWSTemplateFormatVersion": "2010-09-09",
    "Description": "A shop & more",
    "Parameters": {
        "word": {"Type": "String", "Default": "hello", "Description": "Said"},
        "secret": {"Type": "String", "Default": "hush-hush", "NoEcho": "true"},
    },
    "Resources": {
        "first": {
            "Type": "OS::Heat::TestResource",
            "Metadata": {"key": ["<&>"]},
            "Properties": {"value": {"Ref": "word"}},
        },
        "second": {"Type": "OS::Heat::TestResource", "DependsOn": "first"},
    },
    "Outputs": {
        "said": {"Description": "What it says", "Value": {"Fn::GetAtt": ["first", "output"]}},
        "list": {"Value": [1, {"a:b": "ü"}]},
    },
}
ALONE = {"AWSTemplateFormatVersion": "2010-09-09"}
SLOW = {
    **ALONE,
    "Resources": {
        "r": {"Type": "OS::Heat::TestResource", "Properties": {"action_wait_secs": {"create": 600}}}
    },
}


def client(service: Service, project: str, **options: Json) -> Json:
    return boto3.client(
        "cloudformation",
        endpoint_url=f"{service.url}/v1",
        region_name="RegionOne",
        aws_access_key_id=project,
        aws_secret_access_key="any",
        config=botocore.config.Config(retries={"total_max_attempts": 1}, **options),
    )


@pytest.fixture
def cfn(service: Service, tenant: str) -> Iterator[Json]:
    cfn_client = client(service, tenant)
    yield cfn_client
    cfn_client.close()


def parameters(**values: str) -> list[dict[str, str]]:
    return [{"ParameterKey": name, "ParameterValue": value} for name, value in values.items()]


def create(cfn: Json, name: str = "shop", template: Json = TEMPLATE, **arguments: Json) -> str:
    answer = cfn.create_stack(StackName=name, TemplateBody=json.dumps(template), **arguments)
    return str(answer["StackId"])


def settled(cfn: Json, name: str, status: str) -> Json:
    def now() -> str:
        return str(cfn.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"])

    wait_for(lambda: now() == status, 120, now)
    return cfn.describe_stacks(StackName=name)["Stacks"][0]


def code(caught: pytest.ExceptionInfo[ClientError]) -> tuple[int, str, str]:
    answer = caught.value.response
    error = answer["Error"]
    return answer["ResponseMetadata"]["HTTPStatusCode"], error["Code"], error["Message"]


def test_a_stack_is_created_described_updated_and_deleted(cfn: Json, tenant: str) -> None:
    arn = create(cfn, Parameters=parameters(word="bye"), TimeoutInMinutes=7, DisableRollback=True)
    assert re.fullmatch(rf"arn:openstack:heat::{tenant}:stacks/shop/[0-9a-f-]+", arn)
    stack = settled(cfn, "shop", "CREATE_COMPLETE")
    assert (stack["StackId"], stack["Description"], stack["TimeoutInMinutes"]) == (arn, "A shop & more", 7)
    assert stack["DisableRollback"] is True
    values = {item["ParameterKey"]: item["ParameterValue"] for item in stack["Parameters"]}
    assert (values["word"], values["secret"], values["AWS::StackId"]) == ("bye", "******", arn)
    outputs = {item["OutputKey"]: item for item in stack["Outputs"]}
    assert (outputs["said"]["OutputValue"], outputs["said"]["Description"]) == ("bye", "What it says")
    assert json.loads(outputs["list"]["OutputValue"]) == [1, {"a:b": "ü"}]
    for name in (arn, arn.rpartition("/")[2]):
        assert cfn.describe_stacks(StackName=name)["Stacks"] == [stack]
    assert cfn.get_template(StackName="shop")["TemplateBody"] == TEMPLATE

    changed = {**TEMPLATE, "Description": "Changed"}
    done = cfn.update_stack(StackName=arn, TemplateBody=json.dumps(changed))
    assert done["StackId"] == arn
    stack = settled(cfn, "shop", "UPDATE_COMPLETE")
    assert stack["Description"] == "Changed"
    assert {"ParameterKey": "word", "ParameterValue": "hello"} in stack["Parameters"]
    assert stack["LastUpdatedTime"] >= stack["CreationTime"]

    cfn.delete_stack(StackName="shop")
    cfn.get_waiter("stack_delete_complete").wait(StackName=arn, WaiterConfig={"Delay": 1, "MaxAttempts": 600})
    [deleted] = cfn.list_stacks(StackStatusFilter=["DELETE_COMPLETE"])["StackSummaries"]
    assert (deleted["StackId"], deleted["StackStatus"]) == (arn, "DELETE_COMPLETE")
    assert deleted["DeletionTime"] >= deleted["CreationTime"]
    assert cfn.list_stacks()["StackSummaries"] == []


def test_previous_values_are_kept(cfn: Json) -> None:
    create(cfn, Parameters=parameters(word="kept", secret="changed-it"))
    settled(cfn, "shop", "CREATE_COMPLETE")
    previous = [{"ParameterKey": "word", "UsePreviousValue": True}]
    cfn.update_stack(
        StackName="shop", UsePreviousTemplate=True, Parameters=[*previous, *parameters(secret="x")]
    )
    stack = settled(cfn, "shop", "UPDATE_COMPLETE")
    assert {"ParameterKey": "word", "ParameterValue": "kept"} in stack["Parameters"]
    assert cfn.get_template(StackName="shop")["TemplateBody"] == TEMPLATE


def test_resources_are_listed_and_described(cfn: Json) -> None:
    arn = create(cfn)
    settled(cfn, "shop", "CREATE_COMPLETE")
    listed = cfn.list_stack_resources(StackName="shop")["StackResourceSummaries"]
    assert [item["LogicalResourceId"] for item in listed] == ["first", "second"]
    assert {item["ResourceType"] for item in listed} == {"OS::Heat::TestResource"}
    assert {item["ResourceStatus"] for item in listed} == {"CREATE_COMPLETE"}
    described = cfn.describe_stack_resources(StackName=arn)["StackResources"]
    assert [item["PhysicalResourceId"] for item in described] == [
        item["PhysicalResourceId"] for item in listed
    ]
    assert {(item["StackId"], item["StackName"]) for item in described} == {(arn, "shop")}
    [resource] = cfn.describe_stack_resources(StackName="shop", LogicalResourceId="second")["StackResources"]
    assert resource == described[1]
    by_object = cfn.describe_stack_resources(PhysicalResourceId=listed[0]["PhysicalResourceId"])
    assert by_object["StackResources"] == described
    detail = cfn.describe_stack_resource(StackName="shop", LogicalResourceId="first")["StackResourceDetail"]
    assert json.loads(detail["Metadata"]) == {"key": ["<&>"]}
    assert (detail["StackId"], detail["PhysicalResourceId"]) == (arn, listed[0]["PhysicalResourceId"])
    assert detail["LastUpdatedTimestamp"]


def test_events_come_newest_first_page_by_page(cfn: Json) -> None:
    template = {
        "HeatTemplateFormatVersion": "2012-12-12",
        "Resources": {f"r{n}": {"Type": "OS::Heat::None"} for n in range(70)},
    }
    arn = create(cfn, "many", template)
    settled(cfn, "many", "CREATE_COMPLETE")
    first = cfn.describe_stack_events(StackName="many")
    assert len(first["StackEvents"]) == 100
    pages = cfn.get_paginator("describe_stack_events").paginate(StackName="many")
    events = [event for page in pages for event in page["StackEvents"]]
    assert len({event["EventId"] for event in events}) == len(events) == 142
    assert {event["StackId"] for event in events} == {arn}
    newest = events[0]
    oldest = events[-1]
    assert (newest["LogicalResourceId"], newest["ResourceStatus"]) == ("many", "CREATE_COMPLETE")
    assert (oldest["LogicalResourceId"], oldest["ResourceStatus"]) == ("many", "CREATE_IN_PROGRESS")
    assert {event["ResourceType"] for event in events} == {"OS::Heat::Stack", "OS::Heat::None"}


def test_stacks_are_listed_and_described_page_by_page(cfn: Json) -> None:
    empty = {"HeatTemplateFormatVersion": "2012-12-12"}
    arns = {create(cfn, f"s{n}", empty) for n in range(103)}
    for n in range(103):
        settled(cfn, f"s{n}", "CREATE_COMPLETE")
    assert len(cfn.list_stacks()["StackSummaries"]) == 100
    pages = cfn.get_paginator("list_stacks").paginate(StackStatusFilter=["CREATE_COMPLETE"])
    assert {item["StackId"] for page in pages for item in page["StackSummaries"]} == arns
    pages = cfn.get_paginator("describe_stacks").paginate()
    assert {item["StackId"] for page in pages for item in page["Stacks"]} == arns
    assert cfn.list_stacks(StackStatusFilter=["UPDATE_COMPLETE"])["StackSummaries"] == []


def test_an_update_is_cancelled(cfn: Json) -> None:
    create(cfn)
    settled(cfn, "shop", "CREATE_COMPLETE")
    with pytest.raises(ClientError) as caught:
        cfn.cancel_update_stack(StackName="shop")
    assert code(caught)[:2] == (400, "InvalidParameterValue")
    cfn.update_stack(StackName="shop", TemplateBody=json.dumps(SLOW))
    cfn.cancel_update_stack(StackName="shop")
    settled(cfn, "shop", "ROLLBACK_COMPLETE")
    assert cfn.get_template(StackName="shop")["TemplateBody"] == TEMPLATE


@pytest.mark.parametrize(
    ("word", "status"), [("ROLLBACK", "ROLLBACK_COMPLETE"), ("DO_NOTHING", "CREATE_FAILED")]
)
def test_on_failure_decides_about_a_failed_stack(cfn: Json, word: str, status: str) -> None:
    failing = {"Type": "OS::Heat::TestResource", "Properties": {"fail": True}}
    create(cfn, template={**TEMPLATE, "Resources": {"r": failing}, "Outputs": {}}, OnFailure=word)
    settled(cfn, "shop", status)


def test_a_template_is_validated_and_costs_nothing(cfn: Json) -> None:
    validation = cfn.validate_template(TemplateBody=json.dumps(TEMPLATE))
    assert validation["Description"] == "A shop & more"
    by_key = {item["ParameterKey"]: item for item in validation["Parameters"]}
    assert by_key["word"] == {
        "ParameterKey": "word",
        "DefaultValue": "hello",
        "NoEcho": False,
        "Description": "Said",
    }
    assert by_key["secret"]["NoEcho"] is True
    assert cfn.estimate_template_cost(TemplateBody="{}")["Url"].startswith("https://")


def refusals(cfn: Json) -> list[tuple[typing.Callable[[], Json], tuple[int, str], str]]:
    body = json.dumps(TEMPLATE)
    wrong = json.dumps({**ALONE, "Resources": {"r": {"Type": "OS::Heat::TestResorce"}}})
    return [
        (lambda: cfn.describe_stacks(StackName="none"), (400, "InvalidParameterValue"), "none"),
        (lambda: cfn.create_stack(StackName="shop", TemplateBody=body), (400, "AlreadyExists"), "shop"),
        (lambda: cfn.create_stack(StackName="1", TemplateBody=body), (400, "InvalidParameterValue"), "alpha"),
        (lambda: cfn.create_stack(StackName="x"), (400, "MissingParameter"), "TemplateBody"),
        (
            lambda: cfn.create_stack(StackName="x", TemplateURL="http://x/y"),
            (400, "InvalidParameterValue"),
            "template_url is not supported",
        ),
        (
            lambda: cfn.create_stack(StackName="x", TemplateBody=wrong),
            (400, "InvalidParameterValue"),
            "Resources.r.Type",
        ),
        (
            lambda: create(cfn, "x", Parameters=parameters(wrod="a")),
            (400, "InvalidParameterValue"),
            'did you mean "word"',
        ),
        (
            lambda: create(cfn, "x", OnFailure="DELETE", DisableRollback=True),
            (400, "InvalidParameterCombination"),
            "together",
        ),
        (
            lambda: cfn.describe_stack_resource(StackName="shop", LogicalResourceId="x"),
            (400, "InvalidParameterValue"),
            "x",
        ),
        (
            lambda: cfn.describe_stack_resources(PhysicalResourceId="none"),
            (400, "InvalidParameterValue"),
            "none",
        ),
        (
            lambda: cfn.describe_stack_events(StackName="shop", NextToken="none"),
            (400, "InvalidParameterValue"),
            "none",
        ),
        (lambda: cfn.list_exports(), (400, "InvalidAction"), "ListExports"),
    ]


def test_errors_have_amazons_shape(cfn: Json) -> None:
    create(cfn)
    for request, kind, word in refusals(cfn):
        with pytest.raises(ClientError) as caught:
            request()
        status, name, message = code(caught)
        assert (status, name) == kind, message
        assert word in message
        assert caught.value.response["ResponseMetadata"]["RequestId"].startswith("req-")
    assert [item["StackName"] for item in cfn.list_stacks()["StackSummaries"]] == ["shop"]


def test_another_projects_stacks_do_not_exist(cfn: Json, service: Service, tenant: str) -> None:
    arn = create(cfn)
    other_client = client(service, f"{tenant}x")
    physical = settled(cfn, "shop", "CREATE_COMPLETE") and cfn.list_stack_resources(StackName="shop")
    object_id = physical["StackResourceSummaries"][0]["PhysicalResourceId"]
    for request in (
        lambda: other_client.describe_stacks(StackName=arn),
        lambda: other_client.delete_stack(StackName=arn.rpartition("/")[2]),
        lambda: other_client.get_template(StackName=arn.replace(f":{tenant}:", f":{tenant}x:")),
        lambda: other_client.describe_stack_resources(PhysicalResourceId=object_id),
    ):
        with pytest.raises(ClientError) as caught:
            request()
        assert code(caught)[:2] == (400, "InvalidParameterValue")
    assert other_client.list_stacks()["StackSummaries"] == []
    assert len(cfn.list_stacks()["StackSummaries"]) == 1


def test_an_answer_may_be_json(cfn: Json, service: Service, tenant: str) -> None:
    create(cfn)
    url = cfn.generate_presigned_url("list_stacks", HttpMethod="GET")
    assert "Signature=" in url
    assert requests.get(url, timeout=120).headers["Content-Type"] == "application/xml"
    fields = {"Action": "ListStacks", "ContentType": "JSON"}
    request = AWSRequest("POST", f"{service.url}/v1/", data=fields)
    SigV2Auth(Credentials(tenant, "any")).add_auth(request)
    answer = requests.post(f"{service.url}/v1/", data=request.data, timeout=120)
    assert answer.headers["Content-Type"] == "application/json"
    inner = answer.json()["ListStacksResponse"]["ListStacksResult"]["StackSummaries"]
    assert [item["StackName"] for item in inner] == ["shop"]


def test_unsigned_requests_are_refused(service: Service) -> None:
    answer = service.call("GET", "/v1/?Action=ListStacks")
    assert answer.status == 403
    assert "<Code>MissingAuthenticationToken</Code>" in answer.body
    assert fault(service.call("GET", "/v1/none/stacks/none"))[0] == 404


def test_a_value_with_nul_is_refused(cfn: Json) -> None:
    with pytest.raises(ClientError) as caught:
        create(cfn, Parameters=parameters(word="a\0b"))
    assert code(caught)[:2] == (400, "InvalidParameterValue")
