"""From a request's body to a goal."""

import re
import typing
from collections.abc import Mapping, Sequence

from ..planning.requests import CreateRequest, Goal, UpdateRequest
from ..template.budget import Budget, charged_at
from ..template.load import load_document
from .adoption import adoption
from .errors import bad_request
from .request import LARGEST, Request, shortened
from .schemas import CREATE, NAME_PATTERN, UPDATE

Json = typing.Any
ABORT = "abort_on_breakpoint"
TAGS = 100
"""Tags of a stack, at the most."""
_GOAL = (
    "template",
    "environment",
    "environment_files",
    "files",
    "parameters",
    "template_url",
    "files_container",
)
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}


def changes_nothing(body: Json) -> bool:
    """Whether a PATCH asks for the stack as it is, in Heat's sense: it says nothing but that."""
    given = body if isinstance(body, Mapping) else {}
    return not any(value for name, value in given.items() if name in _GOAL) and given.keys() <= {
        *_GOAL,
        "existing",
    }


def authorize_patch(call: Request) -> None:
    """:raises Fault: 403."""
    if changes_nothing(call.body):
        call.services.auth.authorize(call.caller, "stacks:update_no_change")
    else:
        call.services.auth.authorize(call.caller, "stacks:update_patch")


def goal(call: Request, body: Mapping[str, Json], *, template_needed: bool = True) -> Goal:
    """The goal of a body that fits its schema.

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
            environment = load_document(environment, "environment", Budget(call.services.limits.budget))
    return Goal(
        template=body.get("template") or {},
        environment=environment,
        environment_files=body.get("environment_files") or (),
        files=body.get("files") or {},
        parameters=body.get("parameters") or {},
        may_use=call.may_use,
    )


def create_request(call: Request) -> CreateRequest:
    """What POST /stacks and POST /stacks/preview ask for.

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
        delegator=call.caller.delegator,
    )


def update_request(call: Request, *, existing: bool) -> UpdateRequest:
    """What PUT and PATCH on a stack ask for.

    :param existing: PATCH.
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
        delegator=call.caller.delegator,
    )


def boolean(value: Json, name: str, *, default: bool) -> bool:
    """:raises Fault: 400, it is neither true nor false."""
    if value is None:
        return default
    if isinstance(value, bool):
        return value
    if str(value).lower() not in _BOOLEANS:
        raise bad_request(
            f'Unrecognized value "{shortened(str(value))}" for "{name}", acceptable values are: true, false'
        )
    return _BOOLEANS[str(value).lower()]


def timeout(value: Json) -> int | None:
    """Minutes; None: the service's default, which 0 stands for too, as with Heat.

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
