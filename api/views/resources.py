"""Views of resources, in Heat's shapes."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ...db.ids import StackId
from ...db.rows import ListedStack, Resource
from ...db.work.breakpoint_rules import reached_reason
from ...db.work.breakpoints import HeldTask
from ...observe.instants import iso
from ...resources.nested.base import output_error
from ...sealing.sealer import BoundSealer, SealError
from ...sealing.stored import MASK, in_clear
from ...shapes import Json
from ...template.language import is_template_name
from ...template.residual import ResidualError
from ..reply import link, quoted, stack_url
from ..request import HttpRequest

LOG = logging.getLogger(__name__)


class StackLookup:
    """Implements template.residual.Lookup on the stored resources of a stack.

    It masks values that cannot be opened, because the key is lost or they were sealed for another stack.
    """

    def __init__(self, resources: Iterable[Resource], sealer: BoundSealer) -> None:
        self._resources = {item.name: item for item in resources if item.replaced_by is None}
        self.unseal = unsealer(sealer)

    def reference_id(self, resource: str) -> Json:
        """Return the reference of a resource; None until the resource is created."""
        row = self._resources.get(resource)
        return None if row is None else in_clear(row.reference_id, self.unseal)

    def attribute(self, resource: str, name: str) -> Json:
        """Return an attribute of a resource; None until the resource is created."""
        row = self._resources.get(resource)
        if row is None:
            return None
        if name == "":
            return attributes(row, self.unseal)
        value = in_clear((row.attributes or {}).get(name), self.unseal)
        if value is None:
            self._check(row, name)
        return value

    def _check(self, row: Resource, name: str) -> None:
        """Check that an attribute without a value is no wrong output of a nested stack, nor one it lacks.

        :raises ResidualError: the attribute is wrong or missing, in Heat's words.
        """
        if (error := output_error(row.name, in_clear(row.data, self.unseal), name)) is not None:
            raise ResidualError(error)
        values = row.attributes or {}
        if (
            "outputs" in values
            and is_template_name(row.plugin)
            and name not in {*values, "show", "stack_name"}
        ):
            raise ResidualError(f"The Referenced Attribute ({row.name} {name}) is incorrect.")


def attributes(item: Resource, unseal: Callable[[str], Json]) -> dict[str, Json]:
    """Return the attributes of a resource in clear; none of one that was replaced."""
    if item.replaced_by is not None:
        return {}
    return {name: in_clear(value, unseal) for name, value in (item.attributes or {}).items()}


def unsealer(sealer: BoundSealer) -> Callable[[str], Json]:
    """Return a function that opens tokens for an answer; it masks those that cannot be opened."""

    def unseal(token: str) -> Json:
        try:
            return sealer.open(token)
        except SealError as error:
            LOG.warning("Opening a sealed value failed, showing %s: %s", MASK, error)
            return MASK

    return unseal


@dataclass(frozen=True)
class Nesting:
    """The values of a resource's view that come from the stacks around and below its own.

    :ivar parents: the resource that each nested stack belongs to.
    :ivar children: the names of the stacks that nested resources are.
    """

    parents: Mapping[StackId, str] = field(default_factory=dict)
    children: Mapping[StackId, str] = field(default_factory=dict)


def _nested_link(request: HttpRequest, stack: ListedStack, child: str, item: Resource) -> dict[str, str]:
    parts = ("v1", stack.project_id, "stacks", child, item.physical_id or "")
    return link("/".join([request.base_url, *(quoted(part) for part in parts)]), "nested")


def resource_summary(
    request: HttpRequest,
    stack: ListedStack,
    item: Resource,
    required_by: Iterable[str],
    held: HeldTask | None,
    nesting: Nesting,
) -> dict[str, Json]:
    """Return the view of a resource in a list.

    :param held: the breakpoint at which it is held.
    """
    url_of_stack = stack_url(request, stack)
    url = f"{url_of_stack}/resources/{quoted(item.name)}"
    child = nesting.children.get(StackId(item.physical_id or ""))
    view: dict[str, Json] = {
        "resource_name": item.name,
        "logical_resource_id": item.name,
        "physical_resource_id": item.physical_id or "",
        "resource_type": item.type,
        "resource_status": f"{item.action}_{item.status}",
        "resource_status_reason": item.reason,
        "creation_time": iso(item.created_at),
        "updated_time": iso(item.updated_at),
        "required_by": sorted(required_by),
        "links": [link(url), link(url_of_stack, "stack")],
    }
    if child is not None:
        view["links"].append(_nested_link(request, stack, child, item))
    if (parent := nesting.parents.get(stack.id)) is not None:
        view["parent_resource"] = parent
    if held is not None:
        view |= {"resource_status_reason": reached_reason(held.hook), "breakpoint": held.hook}
    return view
