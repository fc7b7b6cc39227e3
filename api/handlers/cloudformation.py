"""The actions of Amazon's CloudFormation API, as views of the operations of the Orchestration API.

A user signs them with EC2 credentials of Keystone's.
"""

import json
import re
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection

from ...db import events as event_rows
from ...db import resources as resource_rows
from ...db.events import EventQuery
from ...db.ids import StackId
from ...keystone.delegated_auth import DelegationRefused
from ...sandbox.evaluator import charged_to
from ...template.compile import Identity
from .. import parse
from ..context import Handler, Request
from ..ec2 import is_guests, signer
from ..errors import Fault, bad_request, fault_of, not_found
from ..request import Reply
from ..signed import parameters
from ..stack_names import ARN, named
from ..views import cfn
from ..views import cfn_stacks as views

Json = typing.Any
PAGE = 100
"""Most stacks or events of one answer: each described stack takes queries of its own."""
COST = "https://en.wikipedia.org/wiki/Gratis"
"""The cost of every template, as in Heat."""
_NO_TRUST = (
    "Keystone does not let the stack act for you by a trust. Current versions refuse that to "
    "requests that are signed with EC2 credentials: create the stack through the Orchestration API"
)
_MEMBER = re.compile(r"([A-Za-z]+)\.member\.([0-9]{1,9})(?:\.([A-Za-z]+))?")
_READS = ("Describe", "Estimate", "Get", "List", "Validate")
"""First words of the actions that change nothing."""
_ROLLBACK = {"DO_NOTHING": True, "ROLLBACK": False, "DELETE": False}


@dataclass(frozen=True)
class Operations:
    """The operations that actions are views of.

    :ivar guest: answers an action that a guest has signed.
    :ivar versions: answers who asks for no action.
    """

    guest: Handler
    versions: Handler
    create: Handler
    delete: Handler
    show: Handler
    index: Handler
    template: Handler
    validate: Handler
    resources: Handler
    resource: Handler
    metadata: Handler


@dataclass(frozen=True)
class Asked:
    """An action that a user asks for, with its parameters."""

    given: Mapping[str, str]
    operations: Operations

    def get(self, name: str) -> str | None:
        """Return a parameter; None where it is not given, or empty."""
        return self.given.get(name) or None

    def required(self, name: str) -> str:
        """Return a parameter.

        :raises Fault: 400, it is not given.
        """
        if not self.given.get(name):
            raise Fault(400, "MissingParameter", f"{name} parameter is required")
        return self.given[name]

    def members(self, prefix: str) -> Iterator[dict[str, str]]:
        """Yield the entries of a list, in their order; a plain value under the key ""."""
        found: dict[int, dict[str, str]] = {}
        for name, value in self.given.items():
            if (match := _MEMBER.fullmatch(name)) and match[1] == prefix:
                found.setdefault(int(match[2]), {})[match[3] or ""] = value
        yield from (found[index] for index in sorted(found))


class CloudFormation:
    """The handlers of ``/v1``: it answers guests, and users with EC2 credentials."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    def root(self, request: Request) -> Reply:
        """Answer GET /v1: an action, or the versions of the Orchestration API."""
        return self.query(request) if "Action" in request.query else self._operations.versions(request)

    def query(self, request: Request) -> Reply:
        """Answer GET and POST /v1?Action=…."""
        return cfn.answered(request, lambda: self._answer(request))

    def _answer(self, request: Request) -> Reply:
        return self._operations.guest(request) if is_guests(request.signed) else self._perform(request)

    def _perform(self, request: Request) -> Reply:
        """Answer an action of the user who has signed the request.

        :raises Fault: with Amazon's name of the error.
        """
        asked = Asked(parameters(request.signed), self._operations)
        action = asked.get("Action") or ""
        if action not in ACTIONS:
            raise Fault(400, "InvalidAction", f"The action {action[:100]} is not valid for this endpoint")
        if request.services.ec2 is None and request.method != "POST" and not action.startswith(_READS):
            # Nothing proves who signed it, and any web page can have a browser send a GET.
            raise Fault(405, "HTTPMethodNotAllowed", f"{action} must be sent by POST")
        if any("\0" in part for pair in asked.given.items() for part in pair):
            raise Fault(400, "InvalidParameterValue", "A parameter must not hold a NUL character")
        caller = signer(request.signed, request.auth, request.services.ec2)
        cloud = None if caller.access is None else request.services.cloud(caller.access)
        user = replace(request, caller=caller, cloud=cloud, query={}, path={}, body=None)
        try:
            request.services.count_request(caller.project_id)
            request.auth.authorize(caller, f"cloudformation:{action}")
            with charged_to(caller.project_id):
                found = ACTIONS[action](user, asked)
        except DelegationRefused as error:
            raise Fault(403, "AccessDenied", f"{_NO_TRUST}: {error}") from error
        except cfn.KNOWN as error:
            fault = fault_of(error)
            assert fault is not None
            raise cfn.amazons(fault) from error
        return cfn.result(action, found, request.request_id, as_json=cfn.wants_json(request))


# -- parameters of actions -------------------------------------------------------------------------


def _template(asked: Asked) -> dict[str, Json]:
    """Return the template, or its address, as the Orchestration API has it.

    :raises Fault: 400, there is neither.
    """
    address = asked.get("TemplateURL") or asked.get("TemplateUrl")
    if address is not None and not asked.get("TemplateBody"):
        return {"template_url": address}
    return {"template": asked.required("TemplateBody")}


def _goal(asked: Asked) -> dict[str, Json]:
    """Return what CreateStack and UpdateStack have in common, as a body of the Orchestration API."""
    if asked.get("DisableRollback") and asked.get("OnFailure"):
        text = "DisableRollback and OnFailure may not be used together"
        raise Fault(400, "InvalidParameterCombination", text)
    given = [pair for pair in asked.members("Parameters") if "ParameterKey" in pair]
    body: dict[str, Json] = {
        "parameters": {
            pair["ParameterKey"]: pair["ParameterValue"] for pair in given if "ParameterValue" in pair
        }
    }
    if asked.get("TimeoutInMinutes"):
        body["timeout_mins"] = asked.required("TimeoutInMinutes")
    if asked.get("DisableRollback"):
        body["disable_rollback"] = asked.required("DisableRollback")
    if asked.get("OnFailure"):
        if asked.required("OnFailure") not in _ROLLBACK:
            raise bad_request(f"OnFailure must be one of: {', '.join(_ROLLBACK)}")
        body["disable_rollback"] = _ROLLBACK[asked.required("OnFailure")]
    return body


# -- stacks ----------------------------------------------------------------------------------------


def _arn(request: Request, name: str, stack_id: str) -> str:
    return Identity(name, stack_id, request.caller.project_id).arn


def _at(request: Request, asked: Asked) -> Request:
    """Return a request for the stack that StackName names, by its name, id or ARN.

    :raises Fault: 404, also for another project's.
    """
    name = asked.required("StackName")
    if (found := ARN.fullmatch(name)) is not None:
        project_id, stack_name, stack_id, _ = found.groups()
        if project_id != request.caller.project_id:
            raise not_found("Stack", name)
        return replace(request, path={"stack_name": stack_name, "stack_id": stack_id})
    listed = request.read(lambda conn: named(conn, request, name))
    return replace(request, path={"stack_name": listed.name, "stack_id": listed.id})


def _own_arn(request: Request) -> str:
    return _arn(request, request.path["stack_name"], request.path["stack_id"])


def _create(request: Request, asked: Asked) -> dict[str, Json]:
    name = asked.required("StackName")
    body = {"stack_name": name, **_template(asked), **_goal(asked)}
    made = asked.operations.create(replace(request, body=body)).body["stack"]["id"]
    return {"StackId": _arn(request, name, made)}


def _update(request: Request, asked: Asked) -> dict[str, Json]:
    """Update a stack; what the request calls previous stays, as with ``--existing``."""
    kept = [pair for pair in asked.members("Parameters") if pair.get("UsePreviousValue") == "true"]
    previous = asked.get("UsePreviousTemplate") == "true"
    body = _goal(asked) if previous else {**_goal(asked), **_template(asked)}
    there = replace(_at(request, asked), body=body)
    update = parse.update_request(there, existing=previous or bool(kept))
    request.services.updates.update(there.stack(), update)
    return {"StackId": _own_arn(there)}


def _delete(request: Request, asked: Asked) -> dict[str, Json]:
    asked.operations.delete(_at(request, asked))
    return {}


def _cancel_update(request: Request, asked: Asked) -> dict[str, Json]:
    request.services.updates.cancel(_at(request, asked).stack(), rollback=True, by=request.caller.user)
    return {}


def _listed(request: Request, asked: Asked, statuses: list[str]) -> tuple[list[Json], str | None]:
    """Return one page of the project's stacks, and the token of the next one."""
    query = {
        "limit": [str(PAGE)],
        "marker": [asked.get("NextToken") or ""],
        "status": statuses,
        "show_deleted": ["true" if "DELETE_COMPLETE" in statuses else "false"],
    }
    body = asked.operations.index(replace(request, query=query)).body
    shown = body["stacks"]
    return shown, shown[-1]["id"] if "links" in body else None


def _list_stacks(request: Request, asked: Asked) -> dict[str, Json]:
    statuses = [entry.get("", "") for entry in asked.members("StackStatusFilter")]
    shown, token = _listed(request, asked, statuses)
    found = [views.summary(_arn(request, item["stack_name"], item["id"]), item) for item in shown]
    return {"StackSummaries": found, "NextToken": token}


def _describe_stacks(request: Request, asked: Asked) -> dict[str, Json]:
    if asked.get("StackName"):
        places, token = [_at(request, asked)], None
    else:
        shown, token = _listed(request, asked, [])
        paths = [{"stack_name": item["stack_name"], "stack_id": item["id"]} for item in shown]
        places = [replace(request, path=path) for path in paths]
    described = [views.stack(_own_arn(there), asked.operations.show(there).body["stack"]) for there in places]
    return {"Stacks": described, "NextToken": token}


def _get_template(request: Request, asked: Asked) -> dict[str, Json]:
    return {"TemplateBody": json.dumps(asked.operations.template(_at(request, asked)).body)}


def _validate(request: Request, asked: Asked) -> dict[str, Json]:
    found = asked.operations.validate(replace(request, body=_template(asked))).body
    return {
        "Description": found["Description"],
        "Parameters": [views.parameter(name, item) for name, item in found["Parameters"].items()],
        "Capabilities": [],
    }


def _estimate(request: Request, asked: Asked) -> dict[str, Json]:
    return {"Url": COST}


# -- resources and events --------------------------------------------------------------------------


def _describe_resource(request: Request, asked: Asked) -> dict[str, Json]:
    there = _at(request, asked)
    there = replace(there, path={**there.path, "resource_name": asked.required("LogicalResourceId")})
    shown = asked.operations.resource(there).body["resource"]
    detail = {
        **views.resource(shown, "LastUpdatedTimestamp"),
        "StackId": _own_arn(there),
        "StackName": there.path["stack_name"],
        "Description": shown["description"],
        "Metadata": json.dumps(asked.operations.metadata(there).body["metadata"]),
    }
    return {"StackResourceDetail": detail}


def _describe_resources(request: Request, asked: Asked) -> dict[str, Json]:
    if asked.get("StackName") and asked.get("PhysicalResourceId"):
        text = "Use `StackName` or `PhysicalResourceId` but not both"
        raise Fault(400, "InvalidParameterCombination", text)
    there = _with_object(request, asked) if asked.get("PhysicalResourceId") else _at(request, asked)
    wanted = asked.get("LogicalResourceId")
    about = {"StackId": _own_arn(there), "StackName": there.path["stack_name"]}
    found = [
        {**about, **views.resource(item, "Timestamp")}
        for item in asked.operations.resources(there).body["resources"]
        if wanted in (None, item["resource_name"])
    ]
    return {"StackResources": found}


def _with_object(request: Request, asked: Asked) -> Request:
    """Return a request for the stack of the resource with a physical id.

    :raises Fault: 404, there is none, or there are several.
    """
    physical_id, project_id = asked.required("PhysicalResourceId"), request.caller.project_id

    def find(conn: Connection) -> list[StackId]:
        return resource_rows.stacks_with_object(conn, project_id, physical_id)

    found = request.read(find)
    if len(found) > 1:
        raise bad_request(f"Several stacks have a resource with the physical id {physical_id:.300}")
    if not found:
        raise not_found("Resource", physical_id)
    listed = request.read(lambda conn: named(conn, request, found[0]))
    return replace(request, path={"stack_name": listed.name, "stack_id": listed.id})


def _list_resources(request: Request, asked: Asked) -> dict[str, Json]:
    shown = asked.operations.resources(_at(request, asked)).body["resources"]
    return {"StackResourceSummaries": [views.resource(item, "LastUpdatedTimestamp") for item in shown]}


def _events(request: Request, asked: Asked) -> dict[str, Json]:
    """Return events, the newest first, as Amazon does."""
    there = _at(request, asked)

    def read(conn: Connection) -> dict[str, Json]:
        stack = there.find_stack(conn)
        marker = asked.get("NextToken")
        if marker is not None and event_rows.get(conn, marker).stack_id != stack.id:
            raise not_found("Event", marker)
        query = EventQuery(stack.id, limit=PAGE, marker=marker, descending=True)
        found = event_rows.list_events(conn, query)
        shown = [views.event(_own_arn(there), stack, item) for item, _ in found]
        return {"StackEvents": shown, "NextToken": found[-1][0].uuid if len(found) == PAGE else None}

    return request.read(read)


ACTIONS: Mapping[str, Callable[[Request, Asked], dict[str, Json]]] = {
    "CancelUpdateStack": _cancel_update,
    "CreateStack": _create,
    "DeleteStack": _delete,
    "DescribeStackEvents": _events,
    "DescribeStackResource": _describe_resource,
    "DescribeStackResources": _describe_resources,
    "DescribeStacks": _describe_stacks,
    "EstimateTemplateCost": _estimate,
    "GetTemplate": _get_template,
    "ListStackResources": _list_resources,
    "ListStacks": _list_stacks,
    "UpdateStack": _update,
    "ValidateTemplate": _validate,
}
"""Each action by its name, which is also that of its policy rule, ``cloudformation:NAME``."""
