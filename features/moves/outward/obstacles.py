"""Decides whether a tree can be moved into Heat's database; pure."""

from collections.abc import Collection, Iterator

from ....db.rows import Resource, Stack
from ....db.states import Status
from ....resources.contract.errors import UnknownType
from ....resources.registry import ResourceRegistry
from ....template.language import is_template_name
from ..heat.rows import STACK_TYPE, HeatStack, HeatTree
from .stoker_rows import StokerTree
from .type_data import ACCOUNTS

BALANCER = "AWS::ElasticLoadBalancing::LoadBalancer"
HOUSE = __name__.partition(".")[0]
"""The package whose types are all Heat's, too."""
SLACK = 1.0
"""Seconds by which the same instant may differ: Heat stores whole ones."""


def obstacles(
    tree: StokerTree, earlier: HeatTree | None, registry: ResourceRegistry, claimed_by: str
) -> Iterator[str]:
    """Yield the reasons why a tree cannot be moved, each with what to do.

    :param earlier: the tree as Heat's database has it; None: it has none with this id.
    :param claimed_by: the engine that holds the locks of stacks which an import has moved.
    """
    for stack in tree.all_stacks:
        if stack.status == Status.IN_PROGRESS:
            yield (
                f"stack {stack.name} is {stack.action}_{stack.status}: let Stoker finish, clear its "
                "breakpoints, or cancel it, and run this again"
            )
        elif stack.id in tree.busy:
            yield f"Stoker works on stack {stack.name}: let it finish, and run this again"
        for row in tree.resources[stack.id]:
            yield from _of_resource(row, stack, tree, registry)
    for name in tree.orphans:
        yield f"what a lost creation of stack {name} has left is still to be deleted: let Stoker finish"
    if earlier is not None:
        yield from _in_heat(tree.root, earlier, claimed_by)


def accounts_made(tree: StokerTree, of_heat: Collection[tuple[str, str]]) -> Iterator[str]:
    """Yield the reasons that accounts give which Stoker has made, and Keystone does not have.

    :param of_heat: ids of stacks, each with the name of a resource whose account Heat has made.
    """
    for stack in tree.all_stacks:
        for row in tree.resources[stack.id]:
            if row.plugin in ACCOUNTS and not row.is_untouched and (stack.id, row.name) not in of_heat:
                yield (
                    f"stack {stack.name}: resource {row.name} of type {row.plugin} is an account of Stoker's "
                    "own, which Heat would look for at Keystone: take it out of the template by an update"
                )


def _of_resource(row: Resource, stack: Stack, tree: StokerTree, registry: ResourceRegistry) -> Iterator[str]:
    label = f"stack {stack.name}: resource {row.name}"
    if row.status == Status.IN_PROGRESS:
        yield f"{label} is {row.action}_{row.status}: let Stoker finish, and run this again"
    if row.plugin == STACK_TYPE and any(child.parent_resource_id == row.id for child in tree.stacks):
        yield (
            f"{label} of type {STACK_TYPE} is nested here, and a root stack of its own in Heat: make that "
            "stack by itself, and take the resource out of the template"
        )
    elif row.plugin == BALANCER and not row.is_untouched:
        yield (
            f"{label} of type {BALANCER} is a load balancer of Octavia, and a server of its own in Heat: use "
            "OS::Octavia::LoadBalancer"
        )
    elif not is_template_name(row.plugin) and not _is_of_heat(row.plugin, registry):
        yield f"{label}: Heat has no type {row.plugin}: use another one in the template, and update the stack"


def _is_of_heat(type_name: str, registry: ResourceRegistry) -> bool:
    """Return whether a type comes with Stoker, so that Heat has it, too: plugins bring all others."""
    try:
        plugin = registry.get(type_name)
    except UnknownType:
        return False
    return type(plugin).__module__.partition(".")[0] == HOUSE


def _in_heat(root: Stack, earlier: HeatTree, claimed_by: str) -> Iterator[str]:
    """Yield the reasons that the rows in Heat's database give."""
    if earlier.faults:
        yield from earlier.faults
        return
    for stack in (earlier.root, *earlier.stacks):
        if stack.locked_by not in (None, claimed_by):
            yield f"an engine of Heat has locked stack {stack.name}: stop heat-engine, and run this again"
    if earlier.root.traversal != root.traversal and _instant(earlier.root) > _last(root) + SLACK:
        yield (
            f"Heat has changed stack {root.name} after the import, so both have worked on it: compare the "
            "two by their events, and leave it to the one that is right"
        )


def _instant(stack: HeatStack) -> float:
    return stack.updated_at or stack.created_at


def _last(stack: Stack) -> float:
    return stack.updated_at or stack.created_at
