"""Views of resources, in Heat's shapes."""

import logging
import typing
from collections.abc import Callable, Iterable, Mapping

from ...db.rows import ListedStack, Resource
from ...db.work.breakpoint_rules import reached_reason
from ...db.work.breakpoints import HeldTask
from ...observe.instants import iso_or_none
from ...resources.context import physical_name
from ...sealing.stored import MASK, BoundSealer, SealError, in_clear
from ..request import HttpRequest, link, quoted, stack_url

Json = typing.Any
LOG = logging.getLogger(__name__)


def held_summary(view: Mapping[str, Json], item: HeldTask | None) -> dict[str, Json]:
    """Add the breakpoint at which a resource is held to its view."""
    if item is None:
        return dict(view)
    return {**view, "resource_status_reason": reached_reason(item.hook), "breakpoint": item.hook}


class StackLookup:
    """Implements template.residual.Lookup on the stored resources of a stack.

    It masks values that cannot be opened, because the key is lost or they were sealed for another stack.
    """

    def __init__(self, resources: Iterable[Resource], sealer: BoundSealer) -> None:
        self._resources = {item.name: item for item in resources if item.replaced_by is None}
        self.unseal = unsealer(sealer)

    def reference_id(self, resource: str) -> Json:
        """Return the reference of a resource; None until the resource is created."""
        found = self._resources.get(resource)
        return None if found is None else in_clear(found.reference_id, self.unseal)

    def attribute(self, resource: str, name: str) -> Json:
        """Return an attribute of a resource; None until the resource is created."""
        found = self._resources.get(resource)
        if found is None:
            return None
        values = found.attributes or {}
        if name == "":
            return {key: in_clear(value, self.unseal) for key, value in values.items()}
        return in_clear(values.get(name), self.unseal)


def unsealer(sealer: BoundSealer) -> Callable[[str], Json]:
    """Return a function that opens tokens for an answer; it masks those that cannot be opened."""

    def unseal(token: str) -> Json:
        try:
            return sealer.open(token)
        except SealError as error:
            LOG.warning("Opening a sealed value failed, showing %s: %s", MASK, error)
            return MASK

    return unseal


def nested_links(call: HttpRequest, stack: ListedStack, item: Resource) -> list[dict[str, str]]:
    """Return the link to the stack of a nested resource, under the name that the stack was made with."""
    if item.physical_id is None:
        return []
    name = physical_name(stack.name, item.name, item.key or "")
    parts = ("v1", stack.tenant, "stacks", name, item.physical_id)
    return [link("/".join([call.base_url, *(quoted(part) for part in parts)]), "nested")]


def resource_summary(
    call: HttpRequest,
    stack: ListedStack,
    item: Resource,
    required_by: Iterable[str],
    *,
    is_nested: bool,
    stack_name: str | None = None,
) -> dict[str, Json]:
    """Return the view of a resource in a list.

    :param is_nested: the resource is a stack of its own.
    :param stack_name: shown, where the list is of a tree of stacks.
    """
    own = stack_url(call, stack, "resources", item.name)
    nested = nested_links(call, stack, item) if is_nested else []
    shown: dict[str, Json] = {
        "resource_name": item.name,
        "logical_resource_id": item.name,
        "physical_resource_id": item.physical_id or "",
        "resource_type": item.type,
        "resource_status": f"{item.action}_{item.status}",
        "resource_status_reason": item.reason,
        "creation_time": iso_or_none(item.created_at),
        "updated_time": iso_or_none(item.updated_at),
        "required_by": sorted(required_by),
        "links": [link(own), link(stack_url(call, stack), "stack"), *nested],
    }
    if stack_name is not None:
        shown["stack_name"] = stack_name
    return shown
