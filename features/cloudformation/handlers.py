"""The actions of Amazon's CloudFormation API, as views of the operations of the Orchestration API.

A user signs them with EC2 credentials of Keystone's.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection

from ...api import stack_requests
from ...api.ec2 import is_guests, signer
from ...api.errors import Fault, bad_request, fault_of, not_found
from ...api.operations import Handler, Request
from ...api.reply import Reply
from ...api.signed import parameters
from ...api.stack_names import ARN, named
from ...api.views import cfn
from ...db import events as event_rows
from ...db import resources as resource_rows
from ...db.events import EventQuery
from ...db.ids import StackId
from ...engine.stacks import create_stack
from ...engine.updates import cancel_action, update_stack
from ...keystone.delegated_auth import DelegationRefused
from ...shapes import Json, JsonMap
from ...template.compile import Identity
from ...template.sandbox.evaluator import charged_to
from . import views as views

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
    :ivar resources: the function that returns the views of the resources that a request lists.
    """

    guest: Handler
    versions: Handler
    delete: Handler
    show: Handler
    index: Handler
    template: Handler
    validate: Handler
    resources: Callable[[Request], Iterable[JsonMap]]
    resource: Handler
    metadata: Handler


@dataclass(frozen=True)
class ActionQuery:
    """An action that a user asks for, with its parameters."""

    values: Mapping[str, str]
    operations: Operations

    def get(self, name: str) -> str | None:
        """Return a parameter; None where it is not given, or empty."""
        return self.values.get(name) or None

    def required(self, name: str) -> str:
        """Return a parameter.

        :raises Fault: 400, the parameter is missing.
        """
        if not self.values.get(name):
            raise Fault(400, "MissingParameter", f"{name} parameter is required")
        return self.values[name]

    def members(self, prefix: str) -> Iterator[dict[str, str]]:
        """Yield the entries of a list, in their order; a plain value under the key ""."""
        entries: dict[int, dict[str, str]] = {}
        for name, value in self.values.items():
            if (match := _MEMBER.fullmatch(name)) and match[1] == prefix:
                entries.setdefault(int(match[2]), {})[match[3] or ""] = value
        yield from (entries[index] for index in sorted(entries))


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
        by_guest = is_guests(request.signed, request.services.guests, request.attempt)
        return self._operations.guest(request) if by_guest else self._perform(request)

    def _perform(self, request: Request) -> Reply:
        """Answer an action of the user who has signed the request.

        :raises Fault: an error of the action, with Amazon's name.
        """
        query = ActionQuery(parameters(request.signed), self._operations)
        action = query.get("Action") or ""
        if action not in ACTIONS:
            raise Fault(400, "InvalidAction", f"The action {action[:100]} is not valid for this endpoint")
        if request.services.ec2 is None and request.method != "POST" and not action.startswith(_READS):
            # Nothing proves who signed it, and any web page can have a browser send a GET.
            raise Fault(405, "HTTPMethodNotAllowed", f"{action} must be sent by POST")
        if any("\0" in part for pair in query.values.items() for part in pair):
            raise Fault(400, "InvalidParameterValue", "A parameter must not hold a NUL character")
        caller = signer(request.signed, request.auth, request.services.ec2, request.attempt)
        cloud = None if caller.access is None else request.services.cloud(caller.access)
        user = replace(request, caller=caller, cloud=cloud, query={}, path={}, body=None)
        try:
            request.services.count_request(caller.project_id)
            request.auth.authorize(caller, f"cloudformation:{action}")
            with charged_to(caller.project_id):
                result = ACTIONS[action](user, query)
        except DelegationRefused as error:
            raise Fault(403, "AccessDenied", f"{_NO_TRUST}: {error}") from error
        except cfn.KNOWN as error:
            fault = fault_of(error)
            assert fault is not None
            raise cfn.amazons(fault) from error
        return cfn.result(action, result, request.request_id, as_json=cfn.wants_json(request))


# -- parameters of actions -------------------------------------------------------------------------


def _template(query: ActionQuery) -> dict[str, Json]:
    """Return the template, or its address, as the Orchestration API has it.

    :raises Fault: 400, there is neither.
    """
    address = query.get("TemplateURL") or query.get("TemplateUrl")
    if address is not None and not query.get("TemplateBody"):
        return {"template_url": address}
    return {"template": query.required("TemplateBody")}


def _goal(query: ActionQuery) -> dict[str, Json]:
    """Return the common parameters of CreateStack and UpdateStack as a body of the Orchestration API."""
    if query.get("DisableRollback") and query.get("OnFailure"):
        text = "DisableRollback and OnFailure may not be used together"
        raise Fault(400, "InvalidParameterCombination", text)
    pairs = [pair for pair in query.members("Parameters") if "ParameterKey" in pair]
    body: dict[str, Json] = {
        "parameters": {
            pair["ParameterKey"]: pair["ParameterValue"] for pair in pairs if "ParameterValue" in pair
        }
    }
    if query.get("TimeoutInMinutes"):
        body["timeout_mins"] = query.required("TimeoutInMinutes")
    if query.get("DisableRollback"):
        body["disable_rollback"] = query.required("DisableRollback")
    if query.get("OnFailure"):
        if query.required("OnFailure") not in _ROLLBACK:
            raise bad_request(f"OnFailure must be one of: {', '.join(_ROLLBACK)}")
        body["disable_rollback"] = _ROLLBACK[query.required("OnFailure")]
    return body


# -- stacks ----------------------------------------------------------------------------------------


def _arn(request: Request, name: str, stack_id: str) -> str:
    return Identity(name, stack_id, request.caller.project_id).arn


def _at(request: Request, query: ActionQuery) -> Request:
    """Return a request for the stack that StackName names, by its name, id or ARN.

    :raises Fault: 404, also for another project's.
    """
    name = query.required("StackName")
    if (match := ARN.fullmatch(name)) is not None:
        project_id, stack_name, stack_id, _ = match.groups()
        if project_id != request.caller.project_id:
            raise not_found("Stack", name)
        return replace(request, path={"stack_name": stack_name, "stack_id": stack_id})
    listed = request.read(lambda conn: named(conn, request, name))
    return replace(request, path={"stack_name": listed.name, "stack_id": listed.id})


def _own_arn(request: Request) -> str:
    return _arn(request, request.path["stack_name"], request.path["stack_id"])


def _create(request: Request, query: ActionQuery) -> dict[str, Json]:
    name = query.required("StackName")
    body = {"stack_name": name, **_template(query), **_goal(query)}
    # Without a preflight, like an update: the answer has no place for findings, nor the request for a mode.
    stack = create_stack(request.services.context, stack_requests.create_request(replace(request, body=body)))
    return {"StackId": _arn(request, name, stack.id)}


def _update(request: Request, query: ActionQuery) -> dict[str, Json]:
    """Update a stack; template and values that the request calls previous stay, as with ``--existing``."""
    previous_values = [pair for pair in query.members("Parameters") if pair.get("UsePreviousValue") == "true"]
    previous = query.get("UsePreviousTemplate") == "true"
    body = _goal(query) if previous else {**_goal(query), **_template(query)}
    of_stack = replace(_at(request, query), body=body)
    update = stack_requests.update_request(of_stack, existing=previous or bool(previous_values))
    update_stack(request.services.context, of_stack.stack(), update)
    return {"StackId": _own_arn(of_stack)}


def _delete(request: Request, query: ActionQuery) -> dict[str, Json]:
    query.operations.delete(_at(request, query))
    return {}


def _cancel_update(request: Request, query: ActionQuery) -> dict[str, Json]:
    cancel_action(
        request.services.context, _at(request, query).stack(), rollback=True, by=request.caller.user
    )
    return {}


def _listed(request: Request, action: ActionQuery, statuses: list[str]) -> tuple[list[Json], str | None]:
    """Return one page of the project's stacks, and the token of the next one."""
    query = {
        "limit": [str(PAGE)],
        "marker": [action.get("NextToken") or ""],
        "status": statuses,
        "show_deleted": ["true" if "DELETE_COMPLETE" in statuses else "false"],
    }
    body = action.operations.index(replace(request, query=query)).body
    summaries = body["stacks"]
    return summaries, summaries[-1]["id"] if "links" in body else None


def _list_stacks(request: Request, query: ActionQuery) -> dict[str, Json]:
    statuses = [entry.get("", "") for entry in query.members("StackStatusFilter")]
    summaries, token = _listed(request, query, statuses)
    members = [views.summary(_arn(request, item["stack_name"], item["id"]), item) for item in summaries]
    return {"StackSummaries": members, "NextToken": token}


def _describe_stacks(request: Request, query: ActionQuery) -> dict[str, Json]:
    if query.get("StackName"):
        places = [_at(request, query)]
        token = None
    else:
        summaries, token = _listed(request, query, [])
        paths = [{"stack_name": item["stack_name"], "stack_id": item["id"]} for item in summaries]
        places = [replace(request, path=path) for path in paths]
    described = [views.stack(_own_arn(place), query.operations.show(place).body["stack"]) for place in places]
    return {"Stacks": described, "NextToken": token}


def _get_template(request: Request, query: ActionQuery) -> dict[str, Json]:
    return {"TemplateBody": json.dumps(query.operations.template(_at(request, query)).body)}


def _validate(request: Request, query: ActionQuery) -> dict[str, Json]:
    validation = query.operations.validate(replace(request, body=_template(query))).body
    return {
        "Description": validation["Description"],
        "Parameters": [views.parameter(name, item) for name, item in validation["Parameters"].items()],
        "Capabilities": [],
    }


def _estimate(request: Request, query: ActionQuery) -> dict[str, Json]:
    return {"Url": COST}


# -- resources and events --------------------------------------------------------------------------


def _describe_resource(request: Request, query: ActionQuery) -> dict[str, Json]:
    of_stack = _at(request, query)
    of_stack = replace(of_stack, path={**of_stack.path, "resource_name": query.required("LogicalResourceId")})
    view = query.operations.resource(of_stack).body["resource"]
    detail = {
        **views.resource(view, "LastUpdatedTimestamp"),
        "StackId": _own_arn(of_stack),
        "StackName": of_stack.path["stack_name"],
        "Description": view["description"],
        "Metadata": json.dumps(query.operations.metadata(of_stack).body["metadata"]),
    }
    return {"StackResourceDetail": detail}


def _describe_resources(request: Request, query: ActionQuery) -> dict[str, Json]:
    if query.get("StackName") and query.get("PhysicalResourceId"):
        text = "Use `StackName` or `PhysicalResourceId` but not both"
        raise Fault(400, "InvalidParameterCombination", text)
    of_stack = _with_object(request, query) if query.get("PhysicalResourceId") else _at(request, query)
    name = query.get("LogicalResourceId")
    about = {"StackId": _own_arn(of_stack), "StackName": of_stack.path["stack_name"]}
    members = [
        {**about, **views.resource(item, "Timestamp")}
        for item in query.operations.resources(of_stack)
        if name in (None, item["resource_name"])
    ]
    return {"StackResources": members}


def _with_object(request: Request, query: ActionQuery) -> Request:
    """Return a request for the stack of the resource with a physical id.

    :raises Fault: 404, there is none, or there are several.
    """
    physical_id = query.required("PhysicalResourceId")
    project_id = request.caller.project_id

    def find(conn: Connection) -> list[StackId]:
        return resource_rows.stacks_with_object(conn, project_id, physical_id)

    stack = request.read(find)
    if len(stack) > 1:
        raise bad_request(f"Several stacks have a resource with the physical id {physical_id:.300}")
    if not stack:
        raise not_found("Resource", physical_id)
    listed = request.read(lambda conn: named(conn, request, stack[0]))
    return replace(request, path={"stack_name": listed.name, "stack_id": listed.id})


def _list_resources(request: Request, query: ActionQuery) -> dict[str, Json]:
    summaries = query.operations.resources(_at(request, query))
    return {"StackResourceSummaries": [views.resource(item, "LastUpdatedTimestamp") for item in summaries]}


def _events(request: Request, action: ActionQuery) -> dict[str, Json]:
    """Return events, the newest first, as Amazon does."""
    of_stack = _at(request, action)

    def read(conn: Connection) -> dict[str, Json]:
        stack = of_stack.find_stack(conn)
        marker = action.get("NextToken")
        if marker is not None:
            event_rows.get(conn, marker, stack.id)
        query = EventQuery(stack.id, limit=PAGE, marker=marker, descending=True)
        entries = event_rows.list_events(conn, query)
        members = [views.event(_own_arn(of_stack), stack, item) for item, _ in entries]
        return {"StackEvents": members, "NextToken": entries[-1][0].uuid if len(entries) == PAGE else None}

    return request.read(read)


ACTIONS: Mapping[str, Callable[[Request, ActionQuery], dict[str, Json]]] = {
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
