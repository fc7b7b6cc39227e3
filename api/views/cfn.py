"""Answers in the shapes of Amazon's CloudFormation API."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from xml.etree import ElementTree

from ...db.queries.guests import GuestServer
from ...observe.instants import iso
from ...shapes import Json, JsonMap
from ..errors import FAULTS, Fault, fault_of
from ..reply import Reply
from ..request import HttpRequest
from ..signed import parameters

XML = "application/xml"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def resource_detail(server: GuestServer, stack_arn: str) -> dict[str, str]:
    """Return the fields of a resource in DescribeStackResource, but for its metadata."""
    return {
        "StackId": stack_arn,
        "StackName": server.stack_name,
        "LogicalResourceId": server.name,
        "PhysicalResourceId": server.physical_id or "",
        "ResourceType": server.type,
        "ResourceStatus": f"{server.action}_{server.status}",
        "ResourceStatusReason": server.reason,
        "LastUpdatedTimestamp": iso(server.updated_at),
        "Description": "",
    }


def described(detail: Mapping[str, str], metadata: str, *, as_json: bool) -> Reply:
    """Return the answer to DescribeStackResource.

    :param metadata: the metadata as JSON text, which stays a text in XML.
    """
    action = "DescribeStackResource"
    if as_json:
        inner: Json = {**detail, "Metadata": json.loads(metadata)}
        return Reply({f"{action}Response": {f"{action}Result": {"StackResourceDetail": inner}}})
    inner = {**detail, "Metadata": metadata}
    return _xml(f"{action}Response", {f"{action}Result": {"StackResourceDetail": inner}})


def result(action: str, value: JsonMap, request_id: str, *, as_json: bool) -> Reply:
    """Return the answer to an action of a user.

    :param value: the action's result; fields that are None are left out.
    """
    answer = {f"{action}Result": _without_nulls(value), "ResponseMetadata": {"RequestId": request_id}}
    if as_json:
        return Reply({f"{action}Response": answer})
    return _xml(f"{action}Response", answer)


def _without_nulls(value: Json) -> Json:
    if isinstance(value, Mapping):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


_DENIED = (401, 403)
_THROTTLING = "Throttling"
_CODES = {
    "StackExists": "AlreadyExists",
    "ActionInProgress": "InvalidAction",
    "RequestLimitExceeded": "RequestLimitExceeded",
    "TooManyRequests": _THROTTLING,
}
"""Amazon's names of errors, as Heat gives them, by Stoker's; most others are InvalidParameterValue."""
_OWN = frozenset({"InvalidAction", "MissingParameter", "InvalidParameterCombination"})


def amazons(fault: Fault) -> Fault:
    """Return an error of the Orchestration API with Amazon's name and status, as in Heat."""
    if fault.status in _DENIED:
        return Fault(403, "AccessDenied", fault.message)
    if fault.status >= 500:
        kind = "ServiceUnavailable" if fault.status == 503 else "InternalFailure"
        return Fault(fault.status, kind, fault.message)
    kind = fault.kind if fault.kind in _OWN else _CODES.get(fault.kind, "InvalidParameterValue")
    return Fault(400, kind, fault.message)


def signalled(resource: str) -> Reply:
    """Return the answer to a signal of a wait condition."""
    return _xml("resource", {"resource": resource})


def error_reply(fault: Fault, request_id: str, *, as_json: bool) -> Reply:
    """Return an error in Amazon's shape."""
    side = "Sender" if fault.status < 500 else "Receiver"
    code = _THROTTLING if fault.kind == "TooManyRequests" else fault.kind
    inner = {"Error": {"Type": side, "Code": code, "Message": fault.message}, "RequestId": request_id}
    if as_json:
        return Reply({"ErrorResponse": inner}, fault.status, fault.headers)
    return replace(_xml("ErrorResponse", inner, fault.status), headers=fault.headers)


KNOWN: tuple[type[Exception], ...] = (Fault, *FAULTS)
"""Errors that have an answer of their own."""


def answered(request: HttpRequest, answer: Callable[[], Reply]) -> Reply:
    """Return the answer, or an error that clients of Amazon's API understand."""
    try:
        return answer()
    except KNOWN as error:
        fault = fault_of(error)
        assert fault is not None
        return error_reply(fault, request.request_id, as_json=wants_json(request))


def wants_json(request: HttpRequest) -> bool:
    """Return whether a client of Amazon's API asks for JSON in the place of XML."""
    return parameters(request.signed).get("ContentType") == "JSON"


def _xml(root: str, value: Json, status: int = 200) -> Reply:
    element = ElementTree.Element(root)
    _fill(element, value)
    return Reply(None, status, text=ElementTree.tostring(element), content_type=XML)


def _fill(element: ElementTree.Element, value: Json) -> None:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            _fill(ElementTree.SubElement(element, name), inner)
    elif isinstance(value, list):
        for inner in value:
            _fill(ElementTree.SubElement(element, "member"), inner)
    else:
        text = value if isinstance(value, str) else json.dumps(value)
        element.text = _NOT_XML.sub("�", text)
