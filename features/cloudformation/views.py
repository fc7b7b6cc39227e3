"""Stacks, resources and events in the shapes of Amazon's CloudFormation API, made of Heat's."""

import json

from ...db.rows import Event, ListedStack
from ...observe.instants import iso
from ...shapes import Json, JsonMap


def text(value: Json) -> str | None:
    """Return a value as Amazon's API has it: a string, or JSON in a string; None stays None."""
    return value if isinstance(value, str | None) else json.dumps(value)


def summary(arn: str, view: JsonMap) -> dict[str, Json]:
    """Return a stack of ListStacks.

    :param view: the view of the stack in lists of the Orchestration API.
    """
    return {
        "StackId": arn,
        "StackName": view["stack_name"],
        "TemplateDescription": view["description"],
        "CreationTime": view["creation_time"],
        "LastUpdatedTime": view["updated_time"],
        "DeletionTime": view["deletion_time"],
        "StackStatus": view["stack_status"],
        "StackStatusReason": view["stack_status_reason"],
    }


def stack(arn: str, view: JsonMap) -> dict[str, Json]:
    """Return a stack of DescribeStacks.

    :param view: the view of the Orchestration API, with outputs.
    """
    described = summary(arn, view)
    described["Description"] = described.pop("TemplateDescription")
    outputs = view.get("outputs") or []
    return {
        **described,
        "DisableRollback": view["disable_rollback"],
        "TimeoutInMinutes": view["timeout_mins"],
        "Parameters": [
            {"ParameterKey": name, "ParameterValue": text(value)}
            for name, value in view["parameters"].items()
        ],
        "Outputs": [
            {
                "OutputKey": output["output_key"],
                "OutputValue": text(output.get("output_value")),
                "Description": output["description"],
            }
            for output in outputs
        ],
        "Capabilities": [],
        "NotificationARNs": [],
    }


def resource(view: JsonMap, time_name: str) -> dict[str, Json]:
    """Return a resource without its stack.

    :param view: the view of the Orchestration API.
    :param time_name: Amazon's name of the time of its last change, which differs between actions.
    """
    return {
        "LogicalResourceId": view["resource_name"],
        "PhysicalResourceId": view["physical_resource_id"],
        "ResourceType": view["resource_type"],
        "ResourceStatus": view["resource_status"],
        "ResourceStatusReason": view["resource_status_reason"],
        time_name: view["updated_time"],
    }


def event(arn: str, home: ListedStack, item: Event) -> dict[str, Json]:
    """Return an event of DescribeStackEvents."""
    return {
        "EventId": item.uuid,
        "StackId": arn,
        "StackName": home.name,
        "LogicalResourceId": item.resource_name,
        "PhysicalResourceId": item.physical_id,
        "ResourceType": item.resource_type,
        "ResourceStatus": f"{item.action}_{item.status}",
        "ResourceStatusReason": item.reason,
        "Timestamp": iso(item.at),
    }


def parameter(name: str, described: JsonMap) -> dict[str, Json]:
    """Return a parameter of ValidateTemplate.

    :param described: the parameter in the view of ``template validate``.
    """
    return {
        "ParameterKey": name,
        "DefaultValue": text(described.get("Default", "")),
        "Description": described.get("Description", ""),
        "NoEcho": described.get("NoEcho", "false"),
    }
