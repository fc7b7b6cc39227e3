"""Views of stacks, in Heat's shapes."""

from collections.abc import Iterable, Mapping

from ...db.errors import DamagedRow
from ...db.ids import host_of
from ...db.rows import DetailedStack, ListedStack, Stack
from ...db.work.breakpoint_rules import paused_reason
from ...db.work.breakpoints import HeldTask
from ...db.work.cancel import Unanswered
from ...observe.instants import iso
from ...shapes import Json, JsonMap, StackView
from ...template.budget import Budget
from ...template.errors import TemplateError
from ...template.residual import Lookup, evaluate
from ..reply import link, stack_url
from ..request import HttpRequest

NO_DESCRIPTION = "No description"
"""The text that Heat shows for a template that has none."""


def stack_summary(request: HttpRequest, stack: ListedStack, *, project: bool = False) -> StackView:
    """Return the view of a stack in a list.

    :param project: show the stack's project.
    """
    view: StackView = {
        "id": stack.id,
        "links": [link(stack_url(request, stack))],
        "stack_name": stack.name,
        "description": stack.description,
        "stack_status": f"{stack.action}_{stack.status}",
        "stack_status_reason": stack.reason,
        "creation_time": iso(stack.created_at),
        "updated_time": iso(stack.updated_at),
        "deletion_time": iso(stack.deleted_at),
        "stack_owner": stack.owner,
        "parent": stack.parent_id,
        "stack_user_project_id": stack.project_id,
        "tags": list(stack.tags) or None,
    }
    if project:
        view["project"] = stack.project_id
    return view


def breakpoint_view(item: HeldTask) -> dict[str, Json]:
    """Return the view of a breakpoint at which a resource is held."""
    return {
        "resource_name": item.resource_name,
        "resource_path": item.path,
        "hook": item.hook,
        "resource_type": item.resource_type,
        "physical_resource_id": item.physical_id or "",
        "until": iso(item.until),
    }


def with_breakpoints(body: StackView, stack: Stack, held_tasks: Iterable[HeldTask]) -> StackView:
    """Add the fields that Heat does not have to the view of a stack that uses them."""
    view = body.copy()
    if stack.abort_on_breakpoint:
        view["abort_on_breakpoint"] = True
    held_tasks = list(held_tasks)
    if held_tasks:
        view["breakpoints"] = [breakpoint_view(item) for item in held_tasks]
        # The stored reason names breakpoints of the stack's own resources only.
        view["stack_status_reason"] = paused_reason(
            stack.action, [(h.hook, h.path) for h in held_tasks], len(held_tasks)
        )
    return view


def stack_detail(request: HttpRequest, stack: DetailedStack) -> StackView:
    """Return the view of a stack without its outputs."""
    return {
        **stack_summary(request, stack),
        "tags": list(stack.tags),
        "description": stack.description or NO_DESCRIPTION,
        "template_description": stack.description or NO_DESCRIPTION,
        "parameters": dict(stack.parameter_view),
        "capabilities": [],
        "notification_topics": [],
        "disable_rollback": stack.disable_rollback,
        "timeout_mins": stack.timeout_mins,
    }


def not_stopped(step: Unanswered) -> dict[str, Json]:
    """Return the view of a step that was cancelled and has not ended, which Heat does not have."""
    return {
        "resource_name": step.resource,
        "conductor": host_of(step.member),
        "given_up_at": iso(step.stop_by),
    }


def output(
    name: str, definition: JsonMap, lookup: Lookup | None, budget: Budget | None = None
) -> dict[str, Json]:
    """Return the view of an output; with its value if a lookup is given.

    :param budget: budget of all outputs of one answer; None: one for this output.
    :raises DamagedRow: the stored output is none.
    """
    if not isinstance(definition, Mapping) or not definition.keys() >= {"description", "value"}:
        raise DamagedRow(f"The stored output {name} is not an output")
    view: dict[str, Json] = {
        "output_key": name,
        "description": definition["description"] or "No description given",
    }
    if lookup is None:
        return view
    try:
        view["output_value"] = evaluate(definition["value"], lookup, budget)
    except TemplateError as error:
        view["output_value"] = None
        view["output_error"] = str(error)
    return view


def outputs(request: HttpRequest, stack: Stack, lookup: Lookup) -> list[dict[str, Json]]:
    """Return the views of all outputs with their values, on one budget."""
    budget = Budget(request.limits.budget)
    return [output(name, definition, lookup, budget) for name, definition in stack.outputs.items()]
