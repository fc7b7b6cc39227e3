"""Views of resources, in Heat's shapes."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ...db.ids import ResourceId, StackId
from ...db.rows import ListedResource, Resource
from ...db.work.breakpoint_rules import reached_reason
from ...db.work.breakpoints import HeldTask
from ...observe.instants import iso
from ...resources.nested.base import output_error
from ...sealing.redaction import MASK
from ...sealing.sealer import BoundSealer, SealError
from ...sealing.stored import in_clear
from ...shapes import Json
from ...template.language import is_template_name
from ...template.residual import ReadOnce, ResidualError
from ..reply import link, quoted

LOG = logging.getLogger(__name__)


class StackLookup(ReadOnce):
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

    def _read(self, resource: str, name: str) -> Json:
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


def attributes(item: Resource | ListedResource, unseal: Callable[[str], Json]) -> dict[str, Json]:
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


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """The values of resources' views that are not in their own rows.

    :ivar stacks: the addresses of the resources' stacks.
    :ivar parents: the names of the resources that nested ones of these stacks belong to.
    :ivar children: the addresses of the stacks that nested resources are.
    :ivar required_by: the names of the resources that need a resource, by its id.
    :ivar held: the breakpoints that hold resources, by the resource's id.
    :ivar reasons: reasons that are shown in place of the stored ones, by the resource's id.
    """

    stacks: Mapping[StackId, str]
    parents: Mapping[StackId, str]
    children: Mapping[ResourceId, str]
    required_by: Mapping[ResourceId, Iterable[str]]
    held: Mapping[ResourceId, HeldTask]
    reasons: Mapping[ResourceId, str]


def resource_summary(item: Resource | ListedResource, surroundings: Surroundings) -> dict[str, Json]:
    """Return the view of a resource in a list."""
    name = item.name
    url_of_stack = surroundings.stacks[item.stack_id]
    view: dict[str, Json] = {
        "resource_name": name,
        "logical_resource_id": name,
        "physical_resource_id": item.physical_id or "",
        "resource_type": item.type,
        "resource_status": f"{item.action}_{item.status}",
        "resource_status_reason": surroundings.reasons.get(item.id, item.reason),
        "creation_time": iso(item.created_at),
        "updated_time": iso(item.updated_at),
        "required_by": sorted(surroundings.required_by.get(item.id, ())),
        "links": [link(f"{url_of_stack}/resources/{quoted(name)}"), link(url_of_stack, "stack")],
    }
    if (nested := surroundings.children.get(item.id)) is not None:
        view["links"].append(link(nested, "nested"))
    if (parent := surroundings.parents.get(item.stack_id)) is not None:
        view["parent_resource"] = parent
    if (held := surroundings.held.get(item.id)) is not None:
        view |= {"resource_status_reason": reached_reason(held.hook), "breakpoint": held.hook}
    return view
