"""Compares stacks with the rows that Heat's database has of them; pure."""

from dataclasses import replace

from ..heat.rows import HeatResource, HeatStack


def merged(stack: HeatStack, stored_stack: HeatStack | None) -> HeatStack | None:
    """Return Heat's own rows of a stack with the little that has changed; None: they are to be replaced.

    A stack whose traversal and resources are as Heat has left them keeps its templates, properties and
    cached attributes: what a guest or a client has written since is all that is taken from Stoker.

    :param stored_stack: the stack as Heat's database has it; None: it has none.
    """
    if (
        stored_stack is None
        or stored_stack.traversal != stack.traversal
        or _state(stored_stack) != _state(stack)
    ):
        return None
    if sorted(map(_identity, stored_stack.resources)) != sorted(map(_identity, stack.resources)):
        return None
    present = {_identity(row): row for row in stack.resources}
    resources = [_with_metadata(row, present[_identity(row)]) for row in stored_stack.resources]
    return replace(stored_stack, resources=resources)


def _state(stack: HeatStack) -> tuple[object, ...]:
    updated_at = None if stack.updated_at is None else int(stack.updated_at)
    return (stack.name, stack.action, stack.status, updated_at, stack.owner_id, stack.parent_resource_name)


def _identity(row: HeatResource) -> tuple[str, ...]:
    return (row.name, row.physical_id or "", row.action, row.status, str(int(row.updated_at)))


def _with_metadata(row: HeatResource, present: HeatResource) -> HeatResource:
    """Return Heat's row with the metadata that it has now; Heat itself stores none as an empty map."""
    return replace(row, metadata=present.metadata) if (row.metadata or {}) != present.metadata else row
