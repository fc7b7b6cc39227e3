"""Handlers that preview a creation or an update, and validate templates."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from ...api import stack_requests
from ...api.collaborators import Preflight
from ...api.errors import bad_request, shortened
from ...api.operations import Request
from ...api.reply import Reply, link, quoted
from ...api.schemas import VALIDATE
from ...api.views.stacks import NO_DESCRIPTION
from ...engine.planning.requests import Preview, PreviewedResource, PreviewedResources
from ...observe.instants import iso
from ...sealing.stored import masked
from ...shapes import Json, JsonMap
from ...template.language import ResourceDefinition
from .plan import ChangeKind, ResourceChange
from .updates import preview_changes
from .validation import preview_creation, validate_goal

NOT_SHOWN = "what becomes of the resources inside of it is not known before the update"

IGNORABLE = ("99001",)
"""Errors that a validation may ignore: a type, or the service that it needs, is unavailable."""


def create(request: Request) -> Reply:
    """Answer POST /stacks/preview."""
    checks_cloud = request.flag("check_cloud")
    creation = stack_requests.create_request(request)
    stack = _creation(request, preview_creation(request.services.context, creation))
    if not checks_cloud:
        return Reply({"stack": stack})
    return Reply(
        {"stack": stack, "findings": _preflight(request).of_creation(creation, request.caller.access)}
    )


def _preflight(request: Request) -> Preflight:
    preflight = request.services.preflight
    if preflight is None:
        raise bad_request("check_cloud is not supported: this installation has no preflight")
    return preflight


def _creation(request: Request, preview: Preview) -> dict[str, Json]:
    url = f"{request.base_url}/v1/{quoted(request.caller.project_id)}/stacks/{preview.name}/None"
    return {
        "id": "None",
        "stack_name": preview.name,
        "description": preview.description or NO_DESCRIPTION,
        "template_description": preview.description or NO_DESCRIPTION,
        "parameters": dict(preview.parameters),
        "timeout_mins": preview.timeout_mins,
        "disable_rollback": preview.disable_rollback,
        "tags": list(preview.tags),
        "links": [link(url)],
        "stack_owner": request.caller.user,
        "stack_user_project_id": request.caller.project_id,
        "parent": None,
        "capabilities": [],
        "notification_topics": [],
        "creation_time": None,
        "updated_time": None,
        "deletion_time": None,
        "resources": _previewed(request, preview.resources),
    }


def _previewed(request: Request, item: PreviewedResource | PreviewedResources) -> Json:
    """Return a resource, or the list of those of a nested stack, in Heat's shape."""
    if not isinstance(item, PreviewedResource):
        return [_previewed(request, one) for one in item]
    identity = _identity(request.caller.project_id, item.stack_name, "None")
    parent = {} if item.parent is None else {"parent_resource": item.parent}
    return {
        **parent,
        "resource_name": item.name,
        "resource_type": item.type,
        "resource_action": "INIT",
        "resource_status": "COMPLETE",
        "resource_status_reason": "",
        "resource_identity": {**identity, "path": f"/resources/{item.name}"},
        "stack_identity": identity,
        "stack_name": item.stack_name,
        "physical_resource_id": "",
        "creation_time": None,
        "updated_time": None,
        "properties": masked(item.properties),
        "metadata": masked(item.metadata),
        "attributes": dict.fromkeys(item.attributes),
        "description": item.description,
        "required_by": list(item.required_by),
    }


def validate(request: Request) -> Reply:
    """Answer POST /validate."""
    nested = request.flag("show_nested")
    body = request.valid(VALIDATE, optional=stack_requests.GOAL)
    if unknown := sorted(set(request.values("ignore_errors", split=True)) - set(IGNORABLE)):
        wrong = shortened(", ".join(unknown))
        names = ", ".join(IGNORABLE)
        raise bad_request(f"Invalid codes in ignore_errors: {wrong}; known: {names}")
    stack_requests.check_options(body)
    ignores_unavailable = bool(request.values("ignore_errors"))
    view = validate_goal(
        request.services.context,
        request.caller.project_id,
        stack_requests.goal(request, body),
        nested=nested,
        ignores_unavailable=ignores_unavailable,
    )
    return Reply(view)


def update(request: Request) -> Reply:
    """Answer PUT …/preview."""
    return _preview(request, existing=False)


def update_existing(request: Request) -> Reply:
    """Answer PATCH …/preview."""
    return _preview(request, existing=True)


def _preview(request: Request, *, existing: bool) -> Reply:
    inside = request.flag("show_nested")
    checks_cloud = request.flag("check_cloud")
    stack = request.living_stack()
    update = stack_requests.update_request(request, existing=existing)
    changes: dict[str, list[Json]] = {effect.value: [] for effect in ChangeKind}
    identity = _identity(stack.project_id, stack.name, stack.id)
    resource_changes = preview_changes(request.services.context, stack, update, nested=inside)
    _show(request, identity, resource_changes, changes)
    if not checks_cloud:
        return Reply({"resource_changes": changes})
    findings = _preflight(request).of_update(stack, update, request.caller.access)
    return Reply({"resource_changes": changes, "findings": findings})


def _show(
    request: Request,
    identity: Mapping[str, str],
    resource_changes: Sequence[ResourceChange],
    changes: Mapping[str, list[Json]],
    parent: str | None = None,
) -> None:
    """Show a stack's resources and, flat beside them, those of its nested stacks.

    :param parent: the name of the resource that the stack belongs to.
    """
    required_by = _required_by([item.definition for item in resource_changes if item.definition is not None])
    for item in resource_changes:
        view = _resource(request, identity, item, required_by.get(item.name, []))
        if item.effect in (ChangeKind.UPDATED, ChangeKind.REPLACED):
            view["property_changes"] = {name: asdict(one) for name, one in item.property_changes.items()}
        if parent is not None:
            view["parent_resource"] = parent
        if any(child.items is None for child in item.inside):
            reasons = [view["resource_status_reason"], NOT_SHOWN]
            view["resource_status_reason"] = "; ".join(reason for reason in reasons if reason)
        changes[item.effect.value].append(view)
        for child in item.inside:
            below = _identity(identity["tenant"], child.stack_name, child.stack_id)
            _show(request, below, child.items or (), changes, item.name)


def _required_by(definitions: Sequence[ResourceDefinition]) -> Mapping[str, list[str]]:
    names: dict[str, list[str]] = {}
    for definition in definitions:
        for name in definition.requires:
            names.setdefault(name, []).append(definition.name)
    return names


def _resource(
    request: Request,
    identity: Mapping[str, str],
    item: ResourceChange,
    required_by: Sequence[str],
) -> dict[str, Json]:
    """Return the view of a resource, in Heat's shape: of a new one as if nothing was made yet."""
    definition = item.definition
    row = None if item.effect in (ChangeKind.ADDED, ChangeKind.REPLACED) else item.row
    description = definition.description if definition is not None else ""
    metadata = definition.metadata if definition is not None else {}
    declared = definition.declared_type if definition is not None else ""
    attributes: JsonMap = {}
    now = iso(request.services.clock())
    if row is not None:
        description = description or (row.definition or {}).get("description", "")
        metadata = row.metadata or {}
        declared = row.type
        attributes = masked(dict(row.attributes or {})) if row.replaced_by is None else {}
    return {
        "resource_name": item.name,
        "resource_type": declared,
        "resource_action": "INIT" if row is None else row.action,
        "resource_status": "COMPLETE" if row is None else row.status,
        "resource_status_reason": _reason(item) or ("" if row is None else row.reason),
        "resource_identity": {**identity, "path": f"/resources/{item.name}"},
        "stack_identity": identity,
        "stack_name": identity["stack_name"],
        "physical_resource_id": "" if row is None else row.physical_id or "",
        "creation_time": now if row is None else iso(row.created_at),
        "updated_time": now if row is None else iso(row.updated_at),
        "metadata": masked(metadata),
        "attributes": attributes,
        "description": description,
        "required_by": sorted(required_by),
    }


def _reason(item: ResourceChange) -> str:
    return "; ".join(text for text in (item.cause, item.reason) if text)


def _identity(project_id: str, name: str, stack_id: str) -> dict[str, str]:
    return {"tenant": project_id, "stack_name": name, "stack_id": stack_id, "path": ""}
