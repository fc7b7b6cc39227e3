"""Bodies of answers that several handlers share, in Heat's shapes."""

import logging
import typing
import urllib.parse
from collections.abc import Callable, Iterable, Mapping

from ...db.events import Event
from ...db.ids import host_of
from ...db.rows import DetailedStack, ListedStack, Resource, Stack
from ...db.work.breakpoint_rules import paused_reason, reached_reason
from ...db.work.breakpoints import HeldTask
from ...db.work.cancel import Unanswered
from ...observe import instants
from ...resources.context import physical_name
from ...sealing.sealer import BoundSealer, SealError
from ...sealing.stored import MASK, in_clear
from ...sealing.stored import masked as masked
from ...template.budget import Budget
from ...template.errors import TemplateError
from ...template.residual import evaluate
from ..request import Request

Json = typing.Any
LOG = logging.getLogger(__name__)

NO_DESCRIPTION = "No description"
"""What Heat shows of a template that has none."""


def iso(moment: float | None) -> str | None:
    """Return an instant as Heat writes it; None for none."""
    return None if moment is None else instants.iso(moment)


def quoted(part: str) -> str:
    """One segment of a path."""
    return urllib.parse.quote(part, safe="")


def stack_url(call: Request, stack: ListedStack, *more: str) -> str:
    """The URL of a stack, or of something below it."""
    parts = ("v1", stack.tenant, "stacks", stack.name, stack.id, *more)
    return "/".join([call.base_url, *(quoted(part) for part in parts)])


def link(url: str, rel: str = "self") -> dict[str, str]:
    """One link."""
    return {"href": url, "rel": rel}


def stack_summary(call: Request, stack: ListedStack, *, project: bool = False) -> dict[str, Json]:
    """A stack in a list."""
    shown: dict[str, Json] = {
        "id": stack.id,
        "links": [link(stack_url(call, stack))],
        "stack_name": stack.name,
        "description": stack.description,
        "stack_status": f"{stack.action}_{stack.status}",
        "stack_status_reason": stack.reason,
        "creation_time": iso(stack.created_at),
        "updated_time": iso(stack.updated_at),
        "deletion_time": iso(stack.deleted_at),
        "stack_owner": stack.owner,
        "parent": stack.parent_id,
        "stack_user_project_id": stack.tenant,
        "tags": list(stack.tags) or None,
    }
    if project:
        shown["project"] = stack.tenant
    return shown


def with_breakpoints(body: Mapping[str, Json], stack: Stack, held: Iterable[HeldTask]) -> dict[str, Json]:
    """A stack that is shown, with what Heat's has not; where nothing of it is used it looks as Heat's."""
    shown = dict(body)
    if stack.abort_on_breakpoint:
        shown["abort_on_breakpoint"] = True
    held = list(held)
    if held:
        shown["breakpoints"] = [breakpoint_view(item) for item in held]
        # What is stored names those of the stack's own resources.
        shown["stack_status_reason"] = paused_reason(
            stack.action, [(h.hook, h.path) for h in held], len(held)
        )
    return shown


def stack_detail(call: Request, stack: DetailedStack) -> dict[str, Json]:
    """A stack that is shown; outputs are added by the caller."""
    return {
        **stack_summary(call, stack),
        "description": stack.description or NO_DESCRIPTION,
        "template_description": stack.description or NO_DESCRIPTION,
        "parameters": dict(stack.parameter_view),
        "capabilities": [],
        "notification_topics": [],
        "disable_rollback": stack.disable_rollback,
        "timeout_mins": stack.timeout_mins,
    }


def breakpoint_view(item: HeldTask) -> dict[str, Json]:
    """A breakpoint at which a resource is held."""
    return {
        "resource_name": item.resource_name,
        "resource_path": item.path,
        "hook": item.hook,
        "resource_type": item.resource_type,
        "physical_resource_id": item.physical_id or "",
        "until": iso(item.until),
    }


def held_summary(view: Mapping[str, Json], item: HeldTask | None) -> dict[str, Json]:
    """A resource's view, with the breakpoint at which it is held."""
    if item is None:
        return dict(view)
    return {**view, "resource_status_reason": reached_reason(item.hook), "breakpoint": item.hook}


def not_stopped(step: Unanswered) -> dict[str, Json]:
    """A step that was cancelled and has not ended; Stoker's own addition to a stack that is shown."""
    return {
        "resource_name": step.resource,
        "conductor": host_of(step.member),
        "given_up_at": iso(step.stop_by),
    }


class StackLookup:
    """Implements template.residual.Lookup on the stored resources of a stack.

    What cannot be opened, for its key is lost or it was sealed for another stack, is masked.
    """

    def __init__(self, resources: Iterable[Resource], sealer: BoundSealer) -> None:
        self._resources = {item.name: item for item in resources if item.replaced_by is None}
        self.unseal = unsealer(sealer)

    def reference_id(self, resource: str) -> Json:
        """None until the resource is created."""
        found = self._resources.get(resource)
        return None if found is None else in_clear(found.reference_id, self.unseal)

    def attribute(self, resource: str, name: str) -> Json:
        """None until the resource is created."""
        found = self._resources.get(resource)
        if found is None:
            return None
        values = found.attributes or {}
        if name == "":
            return {key: in_clear(value, self.unseal) for key, value in values.items()}
        return in_clear(values.get(name), self.unseal)


def unsealer(sealer: BoundSealer) -> Callable[[str], Json]:
    """Return what opens tokens for an answer: one that cannot be opened is masked, and told in the log."""

    def unseal(token: str) -> Json:
        try:
            return sealer.open(token)
        except SealError as error:
            LOG.warning("A sealed value is shown as %s: %s", MASK, error)
            return MASK

    return unseal


def output(
    name: str, definition: Mapping[str, Json], lookup: StackLookup | None, budget: Budget | None = None
) -> dict[str, Json]:
    """An output; with its value if a lookup is given.

    :param budget: of all outputs that one answer shows; None: one of its own.
    """
    shown: dict[str, Json] = {
        "output_key": name,
        "description": definition["description"] or "No description given",
    }
    if lookup is None:
        return shown
    try:
        shown["output_value"] = evaluate(definition["value"], lookup, budget)
    except TemplateError as error:
        shown["output_value"] = None
        shown["output_error"] = str(error)
    return shown


def outputs(call: Request, stack: Stack, lookup: StackLookup) -> list[dict[str, Json]]:
    """Return all outputs with their values; one budget is for all of them."""
    budget = Budget(call.services.limits.budget)
    return [output(name, definition, lookup, budget) for name, definition in stack.outputs.items()]


def nested_links(call: Request, stack: ListedStack, item: Resource) -> list[dict[str, str]]:
    """To the stack that a resource consists of, under the name that it was made with."""
    if item.physical_id is None or not call.services.catalogue.is_nested(item.plugin):
        return []
    name = physical_name(stack.name, item.name, item.key or "")
    parts = ("v1", stack.tenant, "stacks", name, item.physical_id)
    return [link("/".join([call.base_url, *(quoted(part) for part in parts)]), "nested")]


def resource_summary(
    call: Request,
    stack: ListedStack,
    item: Resource,
    required_by: Iterable[str],
    *,
    stack_name: str | None = None,
) -> dict[str, Json]:
    """A resource in a list."""
    own = stack_url(call, stack, "resources", item.name)
    shown: dict[str, Json] = {
        "resource_name": item.name,
        "logical_resource_id": item.name,
        "physical_resource_id": item.physical_id or "",
        "resource_type": item.type,
        "resource_status": f"{item.action}_{item.status}",
        "resource_status_reason": item.reason,
        "creation_time": iso(item.created_at),
        "updated_time": iso(item.updated_at),
        "required_by": sorted(required_by),
        "links": [link(own), link(stack_url(call, stack), "stack"), *nested_links(call, stack, item)],
    }
    if stack_name is not None:
        shown["stack_name"] = stack_name
    return shown


def event_summary(call: Request, stack: ListedStack, item: Event) -> dict[str, Json]:
    """An event in a list."""
    resource = stack_url(call, stack, "resources", item.resource_name)
    own = f"{resource}/events/{item.uuid}"
    return {
        "id": item.uuid,
        "resource_name": item.resource_name,
        "logical_resource_id": item.resource_name,
        "physical_resource_id": item.physical_id,
        "resource_status": f"{item.action}_{item.status}",
        "resource_status_reason": item.reason,
        "event_time": iso(item.at),
        "links": [link(own), link(resource, "resource"), link(stack_url(call, stack), "stack")],
    }
