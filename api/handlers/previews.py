"""Handlers that say what an update would do."""

import typing
from collections.abc import Mapping, Sequence

from ...planning.preview import ChangeKind, ResourceChange
from ...sealing.sealer import BoundSealer
from ...template.model import ResourceDefinition
from .. import parse
from ..request import Reply, Request
from ..views import stacks

Json = typing.Any
NOT_SHOWN = "what becomes of the resources inside of it is not known before the update"


def update(call: Request) -> Reply:
    """PUT …/preview"""
    return _preview(call, existing=False)


def update_existing(call: Request) -> Reply:
    """PATCH …/preview"""
    return _preview(call, existing=True)


def _preview(call: Request, *, existing: bool) -> Reply:
    inside = call.flag("show_nested")
    stack = call.living_stack()
    request = parse.update_request(call, existing=existing)
    changes: dict[str, list[Json]] = {effect.value: [] for effect in ChangeKind}
    identity = _identity(stack.tenant, stack.name, stack.id)
    found = call.services.previews.preview(stack, request, nested=inside)
    _show((call, call.sealer_of(stack)), identity, found, changes)
    return Reply({"resource_changes": changes})


def _show(
    around: tuple[Request, BoundSealer],
    identity: Mapping[str, str],
    found: Sequence[ResourceChange],
    changes: Mapping[str, list[Json]],
) -> None:
    """A stack's resources and, flat beside them, those inside of it."""
    required_by = _required_by([item.definition for item in found if item.definition is not None])
    for item in found:
        shown = _resource(around, identity, item, required_by.get(item.name, []))
        if any(child.items is None for child in item.inside):
            reasons = [shown["resource_status_reason"], NOT_SHOWN]
            shown["resource_status_reason"] = "; ".join(reason for reason in reasons if reason)
        changes[item.effect.value].append(shown)
        for child in item.inside:
            below = _identity(identity["tenant"], child.stack_name, child.stack_id)
            _show(around, below, child.items or (), changes)


def _required_by(definitions: Sequence[ResourceDefinition]) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for definition in definitions:
        for name in definition.requires:
            found.setdefault(name, []).append(definition.name)
    return found


def _resource(
    around: tuple[Request, BoundSealer],
    identity: Mapping[str, str],
    item: ResourceChange,
    required_by: Sequence[str],
) -> dict[str, Json]:
    """In Heat's shape: what is new in it as nothing was made yet, all else as it is."""
    (call, sealer), definition = around, item.definition
    row = None if item.effect in (ChangeKind.ADDED, ChangeKind.REPLACED) else item.row
    description = definition.description if definition is not None else ""
    metadata = definition.metadata if definition is not None else {}
    declared = definition.declared_type if definition is not None else ""
    now = stacks.iso(call.services.clock())
    if row is not None:
        description = description or (row.definition or {}).get("description", "")
        metadata = row.metadata or {}
        declared = row.type
    attributes = {} if row is None else stacks.StackLookup([row], sealer).attribute(row.name, "")
    return {
        "resource_name": item.name,
        "resource_type": declared,
        "resource_action": "INIT" if row is None else row.action,
        "resource_status": "COMPLETE" if row is None else row.status,
        "resource_status_reason": item.reason or ("" if row is None else row.reason),
        "resource_identity": {**identity, "path": f"/resources/{item.name}"},
        "stack_identity": identity,
        "stack_name": identity["stack_name"],
        "physical_resource_id": "" if row is None else row.physical_id or "",
        "creation_time": now if row is None else stacks.iso(row.created_at),
        "updated_time": now if row is None else stacks.iso(row.updated_at),
        "metadata": stacks.masked(metadata),
        "attributes": attributes,
        "description": description,
        "required_by": sorted(required_by),
    }


def _identity(tenant: str, name: str, stack_id: str) -> dict[str, str]:
    return {"tenant": tenant, "stack_name": name, "stack_id": stack_id, "path": ""}
