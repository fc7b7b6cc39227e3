"""Turns the bodies of requests into the values that the use cases take."""

import json
import re
import typing
from collections.abc import Mapping, Sequence

from ..planning.requests import EXISTING, AdoptedResource, CreateRequest, Goal, UpdateRequest
from ..template.budget import Budget, charged_at
from ..template.errors import TemplateError
from ..template.load import load_document
from .body import check_depth, check_texts
from .errors import bad_request
from .request import LARGEST, HttpRequest, boolean_word, shortened, validated
from .schemas import ADOPTED, CREATE, NAME_PATTERN, UPDATE

Json = typing.Any
ABORT = "abort_on_breakpoint"
TAGS = 100
"""Most tags of a stack."""
_GOAL = (
    "template",
    "environment",
    "environment_files",
    "files",
    "parameters",
    "template_url",
    "files_container",
)


def changes_nothing(body: Json) -> bool:
    """Return whether a PATCH asks for the stack as it is, in Heat's sense: it says nothing else."""
    given = body if isinstance(body, Mapping) else {}
    return not any(value for name, value in given.items() if name in _GOAL) and given.keys() <= {
        *_GOAL,
        "existing",
    }


def authorize_patch(call: HttpRequest) -> None:
    """Check that the caller may do what the PATCH asks for; Heat has two rules for that.

    :raises Fault: 403.
    """
    if changes_nothing(call.body):
        call.auth.authorize(call.caller, "stacks:update_no_change")
    else:
        call.auth.authorize(call.caller, "stacks:update_patch")


def goal(call: HttpRequest, body: Mapping[str, Json], *, template_needed: bool = True) -> Goal:
    """Return the goal of a body that fits its schema.

    :raises Fault: 400, there is no template.
    """
    for key in ("template_url", "files_container"):
        if body.get(key):
            raise bad_request(f"{key} is not supported: send the template and the files in the request")
    if template_needed and not body.get("template"):
        raise bad_request("No template specified")
    environment = body.get("environment") or {}
    if isinstance(environment, str):
        with charged_at("environment"):
            environment = load_document(environment, "environment", Budget(call.limits.budget))
    return Goal(
        template=body.get("template") or {},
        environment=environment,
        environment_files=body.get("environment_files") or (),
        files=body.get("files") or {},
        parameters=body.get("parameters") or {},
        may_use=call.may_use,
    )


def create_request(call: HttpRequest) -> CreateRequest:
    """Return what POST /stacks and POST /stacks/preview ask for.

    :raises Fault: 400, with what would be right.
    """
    body = call.valid(CREATE)
    adopted = None
    if body.get("adopt_stack_data"):
        body, adopted = adoption(body)
    name = body["stack_name"]
    if not re.fullmatch(NAME_PATTERN, name):
        raise bad_request(
            f'Invalid stack name {shortened(name)} must contain only alphanumeric or "_-." characters, '
            f"must start with alpha and must be 255 characters or less.",
            "StackValidationFailed",
        )
    return CreateRequest(
        tenant=call.caller.tenant,
        owner=call.caller.user,
        name=name,
        goal=goal(call, body),
        timeout_mins=timeout(body.get("timeout_mins") or body.get("timeout")),
        disable_rollback=boolean(body.get("disable_rollback"), "disable_rollback", default=True),
        abort_on_breakpoint=boolean(body.get(ABORT), ABORT, default=False),
        tags=tags(body.get("tags")),
        adopted=adopted,
        trustor=call.caller.trustor,
    )


def adoption(body: Mapping[str, Json]) -> tuple[dict[str, Json], dict[str, AdoptedResource]]:
    """Return the body of a creation with the goal of the adopted document, and the resources to adopt.

    The document is what abandon and export give.  As in Heat, the template is the document's; environment,
    parameters and files are the document's with the request's on top.

    :raises Fault: 400, the document cannot be adopted.
    """
    document = _document(body["adopt_stack_data"])
    files = {**(document.get("files") or {}), **(body.get("files") or {})}
    files[EXISTING] = json.dumps(document.get("environment") or {})
    goal = {
        **body,
        "template": document["template"],
        "files": files,
        "environment_files": [EXISTING, *(body.get("environment_files") or ())],
    }
    things = document.get("resources") or {}
    return goal, {name: AdoptedResource.of(entry or {}) for name, entry in things.items()}


def _document(given: Json) -> Mapping[str, Json]:
    try:
        document = load_document(given, "adopt_stack_data") if isinstance(given, str) else given
    except TemplateError as error:
        raise bad_request(f"Invalid adopt data: {error}") from error
    check_depth(document)
    check_texts({"adopt_stack_data": document})
    checked: Mapping[str, Json] = validated(document, ADOPTED, "Invalid adopt data: ")
    return checked


def update_request(call: HttpRequest, *, existing: bool) -> UpdateRequest:
    """Return what PUT and PATCH on a stack ask for.

    :param existing: it is a PATCH: what the request leaves out stays.
    :raises Fault: 400, with what would be right.
    """
    body = call.valid(UPDATE)
    rollback, abort = body.get("disable_rollback"), body.get(ABORT)
    return UpdateRequest(
        goal=goal(call, body, template_needed=not existing),
        existing=existing,
        converge=boolean(body.get("converge"), "converge", default=False),
        clear_parameters=body.get("clear_parameters") or (),
        timeout_mins=timeout(body.get("timeout_mins")),
        disable_rollback=None if rollback is None else boolean(rollback, "disable_rollback", default=True),
        abort_on_breakpoint=None if abort is None else boolean(abort, ABORT, default=False),
        tags=tags(body["tags"]) if body.get("tags") is not None else None,
        trustor=call.caller.trustor,
    )


def boolean(value: Json, name: str, *, default: bool) -> bool:
    """Return a boolean of a body, which may also be a word.

    :raises Fault: 400, it is neither true nor false.
    """
    if value is None:
        return default
    if isinstance(value, bool):
        return value
    return boolean_word(str(value), name)


def timeout(value: Json) -> int | None:
    """Return a timeout in minutes; None: the service's default, also for 0, as in Heat.

    :raises Fault: 400, it is no whole number.
    """
    if value is None or value == "":
        return None
    text = str(value)
    if isinstance(value, bool) or not re.fullmatch("[0-9]{1,10}", text) or int(text) > LARGEST:
        raise bad_request(
            f"Invalid timeout value {shortened(text)}: timeout_mins must be a whole number from 1 to "
            f"{LARGEST}, or 0 for the service's default"
        )
    return int(text) or None


def tags(value: Json) -> Sequence[str]:
    """Return each tag once, in the order given.

    :raises Fault: 400, one is too long or has a comma, or there are too many.
    """
    if not value:
        return ()
    given = [tag.strip() for tag in value.split(",")] if isinstance(value, str) else value
    found = list(dict.fromkeys(given))
    if len(found) > TAGS:
        raise bad_request(f"Invalid tags, {len(found)} of them are above the limit of {TAGS} for a stack")
    for tag in found:
        if not tag:
            raise bad_request("Invalid tag, it must not be empty")
        if len(tag) > 80:
            raise bad_request(f'Invalid tag, "{shortened(tag)}" is longer than 80 characters')
        if "," in tag:
            raise bad_request(f'Invalid tag, "{tag}" contains a comma')
    return found
