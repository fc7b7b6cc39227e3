"""The stacks that requests ask for: their bodies as the values that the use cases take."""

import json
import re
from collections.abc import Mapping, Sequence

from ..engine.planning.requests import EXISTING, AdoptedResource, CreateRequest, Goal, UpdateRequest
from ..shapes import Json, JsonMap
from ..template.budget import Budget, charged_at
from ..template.errors import TemplateError
from ..template.load import load_document
from ..template.sections import check_outline
from .bodies import check_depth, check_texts
from .collaborators import Downloads
from .errors import bad_request, shortened
from .request import HttpRequest, boolean, whole_number
from .schemas import ADOPTED, CREATE, NAME_PATTERN, UPDATE, validated

ABORT = "abort_on_breakpoint"
TAGS = 100
"""Most tags of a stack."""
GOAL = (
    "template",
    "environment",
    "environment_files",
    "files",
    "parameters",
    "template_url",
    "files_container",
)
"""The fields that define the desired state of a stack."""


def changes_nothing(body: Json) -> bool:
    """Return whether a PATCH asks for the stack as it is, in Heat's sense: it says nothing else."""
    fields = body if isinstance(body, Mapping) else {}
    return not any(value for name, value in fields.items() if name in GOAL) and fields.keys() <= {
        *GOAL,
        "existing",
    }


def authorize_patch(request: HttpRequest) -> None:
    """Check that the caller may do the update of a PATCH; Heat has two rules for that.

    :raises Fault: 403.
    """
    if changes_nothing(request.body):
        request.auth.authorize(request.caller, "stacks:update_no_change")
    else:
        request.auth.authorize(request.caller, "stacks:update_patch")


def keeps_name(request: HttpRequest) -> bool:
    """Return whether the body has no other name for the stack of the path than its own."""
    return request.body.get("stack_name") in (None, request.path["stack_name"], request.path["stack_id"])


def goal(request: HttpRequest, body: JsonMap, *, template_needed: bool = True) -> Goal:
    """Return the goal of a body that fits its schema.

    :raises Fault: 400, there is no template.
    """
    template = body.get("template")
    files = body.get("files") or {}
    if not template and body.get("template_url"):
        template = _downloads(request, "template_url").template(body["template_url"])
    if template_needed and not template:
        raise bad_request("No template specified")
    if container := body.get("files_container"):
        fetched = _downloads(request, "files_container").files(request.caller.access, container, files)
        files = {**fetched, **files}
    environment = body.get("environment") or {}
    if isinstance(environment, str):
        with charged_at("environment"):
            environment = load_document(environment, "environment", Budget(request.limits.budget))
    return Goal(
        template=template or {},
        environment=environment,
        environment_files=body.get("environment_files") or (),
        files=files,
        parameters=body.get("parameters") or {},
        may_use=request.may_use,
        cloud=request.cloud,
    )


def _downloads(request: HttpRequest, key: str) -> Downloads:
    if request.downloads is None:
        raise bad_request(f"{key} is not supported: send the template and the files in the request")
    return request.downloads


def create_request(request: HttpRequest) -> CreateRequest:
    """Return the creation that POST /stacks or POST /stacks/preview asks for.

    :raises Fault: 400, with the right form.
    """
    if isinstance(request.body, Mapping) and "stack_name" not in request.body:
        raise bad_request("No stack name specified")
    body = request.valid(CREATE, optional=GOAL)
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
        project_id=request.caller.project_id,
        owner=request.caller.user,
        name=name,
        goal=goal(request, body),
        timeout_mins=timeout(body.get("timeout_mins") or body.get("timeout")),
        disable_rollback=boolean(body.get("disable_rollback"), "disable_rollback", default=True),
        abort_on_breakpoint=boolean(body.get(ABORT), ABORT, default=False),
        tags=tags(body.get("tags")),
        adopted=adopted,
        trustor=request.caller.trustor,
        is_limited=not request.caller.everywhere,
    )


def adoption(body: JsonMap) -> tuple[dict[str, Json], dict[str, AdoptedResource]]:
    """Return the body of a creation with the goal of the adopted document, and the resources to adopt.

    The document is the output of abandon or export.  As in Heat, the template is the document's; environment,
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
    entries = document.get("resources") or {}
    return goal, {name: AdoptedResource.of(entry or {}) for name, entry in entries.items()}


def _document(value: Json) -> JsonMap:
    try:
        document = load_document(value, "adopt_stack_data") if isinstance(value, str) else value
    except TemplateError as error:
        raise bad_request(f"Invalid adopt data: {error}") from error
    check_depth(document)
    check_texts({"adopt_stack_data": document})
    checked: JsonMap = validated(document, ADOPTED, "Invalid adopt data: ")
    stacks: list[tuple[tuple[str, ...], JsonMap]] = [((), checked)]
    while stacks:  # A step stores those of nested stacks, and nobody waits for its answer.
        path, stack = stacks.pop()
        entries = (stack.get("resources") or {}).items()
        nested = [((*path, "resources", name), entry) for name, entry in entries if entry]
        stacks += [(inner, entry) for inner, entry in nested if _checked_stack(inner, entry)]
    return checked


def _checked_stack(path: Sequence[str], entry: JsonMap) -> bool:
    """Check an entry as the stack that it may be, and return whether it has resources.

    :raises Fault: 400, with the path of what is wrong.
    """
    if template := entry.get("template"):
        try:
            check_outline(template)
        except TemplateError as error:
            inside = error.moved(lambda place: (*path, "template", *place))
            raise bad_request(f"Invalid adopt data: {inside}") from error
    if not entry.get("resources"):
        return False
    context = f"Invalid adopt data: {shortened('.'.join(path))}."
    validated({"template": {}, "resources": entry["resources"]}, ADOPTED, context)
    return True


def update_request(request: HttpRequest, *, existing: bool) -> UpdateRequest:
    """Return the update that PUT or PATCH on a stack asks for.

    :param existing: whether values that the request leaves out stay: it is a PATCH.  As in Heat, a PUT may
        ask for that in its body.
    :raises Fault: 400, with the right form.
    """
    body = request.valid(UPDATE, optional=GOAL)
    if not boolean(body.get("existing"), "existing", default=True) and existing:
        raise bad_request("existing: a PATCH keeps what it leaves out; send a PUT")
    existing = existing or boolean(body.get("existing"), "existing", default=False)
    rollback = body.get("disable_rollback")
    abort = body.get(ABORT)
    return UpdateRequest(
        goal=goal(request, body, template_needed=not existing),
        existing=existing,
        converge=boolean(body.get("converge"), "converge", default=False),
        clear_parameters=body.get("clear_parameters") or (),
        timeout_mins=timeout(body.get("timeout_mins")),
        disable_rollback=None if rollback is None else boolean(rollback, "disable_rollback", default=True),
        abort_on_breakpoint=None if abort is None else boolean(abort, ABORT, default=False),
        tags=tags(body["tags"]) if body.get("tags") is not None else None,
        trustor=request.caller.trustor,
        is_limited=not request.caller.everywhere,
    )


def check_options(body: JsonMap) -> None:
    """Check the options of a body that a validation gets: a creation would refuse wrong ones.

    :raises Fault: 400, with the right form.
    """
    timeout(body.get("timeout_mins"))
    tags(body.get("tags"))
    for name in ("disable_rollback", ABORT):
        boolean(body.get(name), name, default=False)


def timeout(value: Json) -> int | None:
    """Return a timeout in minutes; None: the service's default, also for 0, as in Heat.

    :raises Fault: 400, the value is no whole number.
    """
    if value is None or value == "":
        return None
    return whole_number(str(value), "timeout_mins") or None


def tags(value: Json) -> Sequence[str]:
    """Return each tag once, in the order given.

    :raises Fault: 400, one is too long or has a comma, or there are too many.
    """
    if not value:
        return ()
    names = [tag.strip() for tag in value.split(",")] if isinstance(value, str) else value
    tag_names = list(dict.fromkeys(names))
    if len(tag_names) > TAGS:
        raise bad_request(f"Invalid tags, {len(tag_names)} of them are above the limit of {TAGS} for a stack")
    for tag in tag_names:
        if not tag:
            raise bad_request("Invalid tag, it must not be empty")
        if len(tag) > 80:
            raise bad_request(f'Invalid tag, "{shortened(tag)}" is longer than 80 characters')
        if "," in tag:
            raise bad_request(f'Invalid tag, "{tag}" contains a comma')
    return tag_names
