"""Requests of Amazon's CloudFormation API, in the place of those of the Orchestration API.

Without Keystone the access key of a request is the name of its project, and nobody compares the signature.
"""

import json
import typing

Json = typing.Any


def can_have(body: Json) -> bool:
    """Return whether an action can hold a goal: one that has neither files nor an environment."""
    return not body["files"] and not body["environment"]


def goal_query(action: str, stack: str, body: Json) -> dict[str, str]:
    """Return the fields of CreateStack or UpdateStack.

    :param stack: the name, or the ARN.
    :param body: the request as the Orchestration API takes it.
    """
    query = {
        **_query(action),
        "StackName": stack,
        "TemplateBody": json.dumps(body["template"]),
        "TimeoutInMinutes": str(body["timeout_mins"]),
        "DisableRollback": str(body["disable_rollback"]).lower(),
    }
    for number, (name, value) in enumerate(body["parameters"].items(), 1):
        query |= {f"Parameters.member.{number}.ParameterKey": name}
        query |= {f"Parameters.member.{number}.ParameterValue": str(value)}
    return query


def stack_query(action: str, arn: str) -> dict[str, str]:
    """Return the fields of an action on a stack."""
    return {**_query(action), "StackName": arn}


def arn_of(path: str) -> str:
    """Return the ARN of the stack at a path, ``/v1/PROJECT/stacks/NAME/ID``."""
    _, _, project, _, name, stack = path.split("/")
    return f"arn:openstack:heat::{project}:stacks/{name}/{stack}"


def signed(query: dict[str, str], project: str) -> dict[str, str]:
    """Return fields with the key of a project."""
    signature = {"SignatureMethod": "HmacSHA256", "SignatureVersion": "2", "Signature": "none"}
    return {**query, "AWSAccessKeyId": project, **signature}


def _query(action: str) -> dict[str, str]:
    return {"Action": action, "ContentType": "JSON", "Version": "2010-05-15"}
